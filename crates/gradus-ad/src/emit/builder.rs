//! Builder of a derivative: body, insertion point, and metadata of memory accesses.

use crate::emit::parallel_loops::ParallelLoop;
use gradus_ir::{
    Access, Body, Builder, Flags, LocId, Meta, MetaId, Op, OpKind, Region, ScopeId, TypeId, Unit,
    Value,
};
use smallvec::SmallVec;

/// One value per tangent or cotangent of a batch (the variant's width).
pub type Lanes = SmallVec<[Value; 1]>;

/// Alias scopes of a derivative (memory axiom S1): primal memory, shadow memory and tape never overlap.
#[derive(Clone, Copy, Debug)]
pub struct Scopes {
    primal: ScopeId,
    shadow: ScopeId,
    tape: ScopeId,
}

/// The memory space of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySpace {
    /// Memory of the primal.
    Primal,
    /// Shadow memory.
    Shadow,
    /// The tape.
    Tape,
}

/// A derivative under construction.
#[derive(Debug)]
pub struct DerivativeBuilder<'u> {
    /// The unit that holds primal and derivative.
    pub unit: &'u mut Unit,
    /// Body of the derivative.
    pub body: Body,
    /// Insertion point.
    pub insertion_point: (Region, Option<Op>),
    /// Source location of the next ops.
    pub loc: Option<LocId>,
    /// Fast-math flags of the next ops.
    pub fast: Flags,
    /// True if the derivative must not run concurrently with other derivatives that add to the same shadow
    /// memory.
    pub exclusive: bool,
    /// Primal location that causes `exclusive`, if known.
    pub exclusive_cause: Option<LocId>,
    /// Loops of the reverse pass whose iterations may run concurrently.
    pub parallel: Vec<ParallelLoop>,
    /// Atomic accesses to shadow memory, with the known alignment in bytes.
    pub atomics: Vec<(Op, u32)>,
    scopes: Option<Scopes>,
}

impl<'u> DerivativeBuilder<'u> {
    /// Creates an empty derivative with parameters of the given types. With `scopes`, accesses state axiom
    /// S1.
    pub fn new(unit: &'u mut Unit, params: &[TypeId], scopes: bool) -> Self {
        let body = Body::new(params);
        let insertion_point = (body.root(), None);
        let scopes = scopes.then(|| Scopes::new(unit));
        DerivativeBuilder {
            unit,
            body,
            insertion_point,
            loc: None,
            fast: Flags::NONE,
            exclusive: false,
            exclusive_cause: None,
            parallel: Vec::new(),
            atomics: Vec::new(),
            scopes,
        }
    }
    /// Returns a builder at the insertion point.
    pub fn build(&mut self) -> Builder<'_> {
        let mut builder = Builder::new(self.unit, &mut self.body);
        builder.restore_insertion_point(self.insertion_point);
        builder.loc = self.loc;
        builder.fast_math = self.fast;
        builder
    }
    /// Copies location and inheritable fast-math flags from a primal op.
    pub fn copy_loc_and_flags(&mut self, primal: &Body, op: Op) {
        self.loc = primal.ops[op].loc;
        self.fast = primal.ops[op].flags.and(Flags::FAST_ALGEBRA);
    }
    /// Returns the metadata of an access to `space` that corresponds to a primal access with `meta`. Metadata
    /// that only the host understands (ranges, non-null loads, debug information) is not inherited.
    pub fn access_meta(&mut self, meta: Option<MetaId>, space: MemorySpace) -> Option<MetaId> {
        let mut new = match (meta, space) {
            (Some(id), MemorySpace::Primal) => Meta {
                host: Vec::new(),
                ..self.unit.meta(id).clone()
            },
            (Some(id), MemorySpace::Shadow) => Meta {
                tbaa: self.unit.meta(id).tbaa,
                ..Meta::default()
            },
            _ => Meta::default(),
        };
        if let Some(tag) = &mut new.tbaa {
            tag.constant &= space == MemorySpace::Primal;
        }
        if let Some(scopes) = self.scopes {
            let (own, others) = scopes.split(space);
            new.alias_scopes.push(own);
            new.noalias.extend(others);
            new.alias_scopes.sort_unstable();
            new.noalias.sort_unstable();
        }
        self.unit.intern_meta(new)
    }
    /// Marks `op` as an access to `space`.
    pub fn mark_access(&mut self, op: Op, meta: Option<MetaId>, space: MemorySpace) {
        let meta = self.access_meta(meta, space);
        self.body.ops[op].meta = meta;
    }
    /// Emits a load of `ty` from `space` that corresponds to a primal access with `meta`.
    pub fn load(
        &mut self,
        ty: TypeId,
        ptr: Value,
        space: MemorySpace,
        meta: Option<MetaId>,
    ) -> Value {
        let value = self.build().load(ty, ptr);
        if let Some(op) = self.body.def_op(value) {
            self.mark_access(op, meta, space);
            self.limit_align(op, space);
        }
        value
    }
    /// Emits a store to `space` that corresponds to a primal access with `meta`.
    pub fn store(
        &mut self,
        value: Value,
        ptr: Value,
        space: MemorySpace,
        meta: Option<MetaId>,
    ) -> Op {
        let op = self.build().store(value, ptr);
        self.mark_access(op, meta, space);
        self.limit_align(op, space);
        op
    }
    fn limit_align(&mut self, op: Op, space: MemorySpace) {
        if let (MemorySpace::Tape | MemorySpace::Shadow, Some(access)) =
            (space, access_of(&mut self.body, op))
        {
            access.align_bytes = access.align_bytes.min(ALIGN_BYTES_MAX);
        }
    }
    /// Emits a `memset` of `bytes` bytes to zero.
    pub fn zero_bytes(&mut self, at: Value, bytes: Value, space: MemorySpace) {
        let memset = gradus_edit::declare_memset(self.unit);
        let (byte, bit) = (self.unit.types.int(8), self.unit.types.int(1));
        let zero = self.build().zero(byte);
        let no = self.build().zero(bit);
        let call = self.build().call(memset, &[at, zero, bytes, no]);
        self.mark_access(call, None, space);
    }

    /// Sets the alignment of a tape or shadow access to that of another access, as far as it is guaranteed
    /// there.
    pub fn set_align(&mut self, op: Op, align_bytes: u32) {
        if let Some(access) = access_of(&mut self.body, op) {
            access.align_bytes = align_bytes.min(ALIGN_BYTES_MAX);
        }
    }
}

/// Alignment that is guaranteed outside of primal memory. Tape frames may follow an 8-byte value. Shadows
/// come from an allocator, or from a caller without knowledge of wide vectors. If a program rounds an address
/// up, the same offset may be unaligned in the shadow.
const ALIGN_BYTES_MAX: u32 = 8;

/// Emits an unsigned integer as 64 bits.
pub fn widen(out: &mut DerivativeBuilder<'_>, value: Value) -> Value {
    gradus_edit::to_i64(&mut out.build(), value)
}

/// Returns nothing, one value, or a struct of several values.
pub(crate) fn pack(out: &mut DerivativeBuilder<'_>, values: &[Value]) {
    let result = match values {
        [] => None,
        [one] => Some(*one),
        several => {
            let types = several.iter().map(|v| out.body.ty(*v)).collect();
            let ty = out.unit.types.tuple(types);
            let mut whole = out.build().poison(ty);
            for (number, &value) in several.iter().enumerate() {
                whole = out.build().insert(whole, value, &[number as u32]);
            }
            Some(whole)
        }
    };
    out.build().return_(result);
}

fn access_of(body: &mut Body, op: Op) -> Option<&mut Access> {
    match &mut body.ops[op].kind {
        OpKind::Load(access) | OpKind::Store(access) => Some(access),
        _ => None,
    }
}

impl Scopes {
    fn new(unit: &mut Unit) -> Self {
        let domain = format!("gradus.{}", unit.scopes.len());
        let mut scope = |name: &str| {
            unit.scopes.push(gradus_ir::AliasScope {
                name: name.to_string(),
                domain: domain.clone(),
                host: None,
            })
        };
        Scopes {
            primal: scope("primal"),
            shadow: scope("shadow"),
            tape: scope("tape"),
        }
    }
    fn split(self, space: MemorySpace) -> (ScopeId, [ScopeId; 2]) {
        match space {
            MemorySpace::Primal => (self.primal, [self.shadow, self.tape]),
            MemorySpace::Shadow => (self.shadow, [self.primal, self.tape]),
            MemorySpace::Tape => (self.tape, [self.primal, self.shadow]),
        }
    }
}
