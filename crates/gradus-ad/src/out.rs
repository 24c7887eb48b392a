//! The derivative under construction: its body and the place where ops go.

use crate::report::ParallelLoop;
use gradus_ir::{
    Access, Body, Builder, Flags, LocId, Meta, MetaId, Op, OpKind, Region, ScopeId, TypeId, Unit,
    Value,
};
use smallvec::SmallVec;

/// One value for each tangent or cotangent that goes along (the variant's width).
pub type Lanes = SmallVec<[Value; 1]>;

/// The alias scopes of a derivative (memory axiom S1): primal memory, shadow memory and tape
/// never overlap.
#[derive(Clone, Copy, Debug)]
pub struct Scopes {
    primal: ScopeId,
    shadow: ScopeId,
    tape: ScopeId,
}

/// Whose memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The program's.
    Primal,
    /// The memory beside it.
    Shadow,
    /// The tape.
    Tape,
}

/// The derivative under construction.
#[derive(Debug)]
pub struct Out<'u> {
    /// The unit that holds primal and derivative.
    pub unit: &'u mut Unit,
    /// The derivative's code.
    pub body: Body,
    /// Where the next op goes.
    pub place: (Region, Option<Op>),
    /// The location of ops to come.
    pub loc: Option<LocId>,
    /// The fast-math flags of ops to come.
    pub fast: Flags,
    /// Whether it must not run beside others that add to the same shadow memory.
    pub exclusive: bool,
    /// The place in the primal that is the reason, if it is known.
    pub alone_for: Option<LocId>,
    /// The loops of the return sweep whose iterations may run at once.
    pub parallel: Vec<ParallelLoop>,
    /// Its atomic accesses to shadow memory, and the bytes to which each place is known to be aligned.
    pub atomics: Vec<(Op, u32)>,
    scopes: Option<Scopes>,
}

impl<'u> Out<'u> {
    /// An empty derivative whose parameters have the given types; with `scopes`, accesses state
    /// axiom S1.
    pub fn new(unit: &'u mut Unit, params: &[TypeId], scopes: bool) -> Self {
        let body = Body::new(params);
        let place = (body.root(), None);
        let scopes = scopes.then(|| Scopes::new(unit));
        Out {
            unit,
            body,
            place,
            loc: None,
            fast: Flags::NONE,
            exclusive: false,
            alone_for: None,
            parallel: Vec::new(),
            atomics: Vec::new(),
            scopes,
        }
    }
    /// A builder at the current place.
    pub fn build(&mut self) -> Builder<'_> {
        let mut builder = Builder::new(self.unit, &mut self.body);
        builder.restore(self.place);
        builder.loc = self.loc;
        builder.fast = self.fast;
        builder
    }
    /// Takes location and inheritable fast-math flags from a primal op.
    pub fn follow(&mut self, primal: &Body, op: Op) {
        self.loc = primal.ops[op].loc;
        self.fast = primal.ops[op].flags.and(Flags::FAST_ALGEBRA);
    }
    /// What is stated about an access of `space` that stands for a primal access with `meta`. What
    /// only the host understands (ranges, non-null loads, debug information) is not inherited.
    pub fn access_meta(&mut self, meta: Option<MetaId>, space: Space) -> Option<MetaId> {
        let mut new = match (meta, space) {
            (Some(id), Space::Primal) => Meta {
                host: Vec::new(),
                ..self.unit.meta(id).clone()
            },
            (Some(id), Space::Shadow) => Meta {
                tbaa: self.unit.meta(id).tbaa,
                ..Meta::default()
            },
            _ => Meta::default(),
        };
        if let Some(tag) = &mut new.tbaa {
            tag.constant &= space == Space::Primal;
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
    /// States that the op that gives `value` is an access of `space`.
    pub fn mark_access(&mut self, op: Op, meta: Option<MetaId>, space: Space) {
        let meta = self.access_meta(meta, space);
        self.body.ops[op].meta = meta;
    }
    /// A load of `ty` from `space`, standing for a primal access with `meta`.
    pub fn load(&mut self, ty: TypeId, ptr: Value, space: Space, meta: Option<MetaId>) -> Value {
        let value = self.build().load(ty, ptr);
        if let Some(op) = self.body.def_op(value) {
            self.mark_access(op, meta, space);
            self.cap_align(op, space);
        }
        value
    }
    /// A store to `space`, standing for a primal access with `meta`.
    pub fn store(&mut self, value: Value, ptr: Value, space: Space, meta: Option<MetaId>) -> Op {
        let op = self.build().store(value, ptr);
        self.mark_access(op, meta, space);
        self.cap_align(op, space);
        op
    }
    fn cap_align(&mut self, op: Op, space: Space) {
        if let (Space::Tape | Space::Shadow, Some(access)) = (space, access_of(&mut self.body, op))
        {
            access.align_bytes = access.align_bytes.min(MOST_ALIGN_BYTES);
        }
    }
    /// Sets bytes to zero.
    pub fn clear(&mut self, at: Value, bytes: Value, space: Space) {
        let memset = crate::alloc::memset_function(self.unit);
        let (byte, bit) = (self.unit.types.int(8), self.unit.types.int(1));
        let zero = self.build().zero(byte);
        let no = self.build().zero(bit);
        let call = self.build().call(memset, &[at, zero, bytes, no]);
        self.mark_access(call, None, space);
    }

    /// The alignment of an access op, put onto another of the tape or of shadow memory as far as it holds
    /// there.
    pub fn set_align(&mut self, op: Op, align_bytes: u32) {
        if let Some(access) = access_of(&mut self.body, op) {
            access.align_bytes = align_bytes.min(MOST_ALIGN_BYTES);
        }
    }
}

/// What is certain of an address beside the program's own memory. On the tape, frames may follow a word;
/// shadows are an allocator's or the caller's, who know nothing of wide vectors, and where a program rounds
/// an address up, the same step leads elsewhere in the shadow.
const MOST_ALIGN_BYTES: u32 = 8;

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
    fn split(self, space: Space) -> (ScopeId, [ScopeId; 2]) {
        match space {
            Space::Primal => (self.primal, [self.shadow, self.tape]),
            Space::Shadow => (self.shadow, [self.primal, self.tape]),
            Space::Tape => (self.tape, [self.primal, self.shadow]),
        }
    }
}
