//! Shadows of blocks that variables keep from one call to the next: workspaces that grow on demand, and allocatable arrays
//! of Fortran modules.
//!
//! The contents of such a block at the call are constants, like those of a variable. A requested derivative therefore
//! begins with a zeroed shadow for the block that each owning pointer leads to ([`gradus_ir::OwnedBlock`]). It ends with
//! the release: in reverse mode the shadow of this block, since the shadows of later blocks end in the reverse pass where
//! the blocks were allocated; in forward mode the shadow of the block that is left, since a `free` in the call also
//! releases the shadow. After a derivative the shadow pointers are null.

use crate::analysis::program_facts::ProgramFacts;
use crate::emit::builder::{DerivativeBuilder, MemorySpace};
use crate::emit::libc;
use crate::emit::stop_message::stop_message;
use crate::shadow::constants::shadow_global;
use crate::shadow::global_pointers::has_shadow;
use crate::shadow::globals::address;
use crate::shadow::indirect_calls;
use crate::variant::{Mode, ParamRole, Signature, Variant};
use gradus_analysis::CellRef;
use gradus_ir::{
    AttrSet, CastOp, Code, Diagnostic, GlobalId, IntPredicate, OwnedBlock, OwnedBlockSize, Symbol,
    Unit, Value,
};

/// Offsets in flang's `CFI_cdesc_t`, in bytes: the size of an element, the extent of the first dimension, and the distance
/// between extents.
const ELEMENT_BYTES: u64 = 8;
const FIRST_EXTENT_BYTES: u64 = 32;
const DIMENSION_BYTES: u64 = 24;

/// An owning pointer whose block needs a shadow.
pub(crate) struct OwnedShadow {
    pub(crate) global: GlobalId,
    block: OwnedBlock,
}

impl OwnedShadow {
    /// Returns true for the pointer at an offset of a variable.
    pub(crate) fn is_at(&self, global: GlobalId, offset_bytes: u64) -> bool {
        self.global == global && self.block.offset_bytes == offset_bytes
    }
}

/// Returns the owning pointers whose blocks get a shadow at the start of a variant.
///
/// # Errors
/// GRD0033: split mode, in which the program may move the pointers between both halves.
pub(crate) fn collect(
    unit: &Unit,
    closure: &ProgramFacts,
    variant: &Variant,
) -> Result<Vec<OwnedShadow>, Vec<Diagnostic>> {
    if !variant.outermost {
        return Ok(Vec::new());
    }
    let owned = closure.owned_blocks(unit);
    let mut list = Vec::new();
    for &global in closure.closure.globals() {
        let Some(start) = closure.memory.global(global) else {
            continue;
        };
        if !has_shadow(unit, closure, global) {
            continue;
        }
        list.extend(unit.owned_blocks(global).iter().filter_map(|block| {
            let cell = CellRef {
                offset_bytes: start.offset_bytes + block.offset_bytes as i64,
                ..start
            };
            let mut sets = closure.memory.pointee_sets(cell).into_iter();
            let is_active =
                sets.any(|set| owned.contains(&set) && closure.classes.holds_active_floats(set));
            is_active.then_some(OwnedShadow {
                global,
                block: *block,
            })
        }));
    }
    match (&list[..], variant.mode) {
        ([first, ..], Mode::Augmented | Mode::Reverse) => {
            Err(vec![split_mode_error(unit, first.global)])
        }
        _ => Ok(list),
    }
}

fn split_mode_error(unit: &Unit, global: GlobalId) -> Diagnostic {
    let name = &unit.globals[global].name;
    let message = format!(
        "`{name}` retains active memory from one call to the next, and the derivative is split into two calls"
    );
    Diagnostic::error(Code::Outlives, message).help(format!(
        "use the derivative in one call, or pass `{name}` as an argument"
    ))
}

/// Emits the shadows at the start of a derivative, for the whole batch. Returns the blocks in the order of `list`.
pub(crate) fn allocate(
    out: &mut DerivativeBuilder<'_>,
    (variant, signature): (&Variant, &Signature),
    list: &[OwnedShadow],
) -> Vec<Value> {
    let mut shadows = Vec::new();
    declare_shadow_owners(out.unit, variant, list);
    for owned in list {
        let block = load_block(out, owned);
        let bytes = block_bytes(out, owned, block);
        stop_if_argument(out, (variant, signature), owned, [block, bytes]);
        for lane in 0..variant.width as usize {
            let shadow = block_shadow(out, block, bytes);
            let place = shadow_place(out, variant, owned, lane);
            out.store(shadow, place, MemorySpace::Shadow, None);
            shadows.push(shadow);
        }
    }
    shadows
}

/// Emits the shadow of a block; null without a block.
fn block_shadow(out: &mut DerivativeBuilder<'_>, block: Value, bytes: Value) -> Value {
    let ptr = out.unit.types.ptr();
    let null = out.build().zero(ptr);
    let given = out.build().icmp(IntPredicate::Ne, block, null);
    let (op, yes, no) = out.build().if_(given, &[ptr]);
    let outside = std::mem::replace(&mut out.insertion_point, (yes, None));
    let shadow = libc::zeroed_private_block(out, bytes);
    out.build().yield_(&[shadow]);
    out.insertion_point = (no, None);
    out.build().yield_(&[null]);
    out.insertion_point = outside;
    out.body.result(op)
}

/// Emits the release of the shadows at the end of a derivative. `shadows` are the blocks of [`allocate`].
pub(crate) fn release(
    out: &mut DerivativeBuilder<'_>,
    variant: &Variant,
    list: &[OwnedShadow],
    shadows: &[Value],
) {
    let lanes = variant.width as usize;
    for (owned, blocks) in list.iter().zip(shadows.chunks(lanes)) {
        for (lane, &first) in blocks.iter().enumerate() {
            let ptr = out.unit.types.ptr();
            let place = shadow_place(out, variant, owned, lane);
            let last = match variant.mode {
                Mode::Forward => out.load(ptr, place, MemorySpace::Shadow, None),
                _ => first,
            };
            let free = gradus_edit::declare_free(out.unit);
            out.build().call(free, &[last]);
            let null = out.build().zero(ptr);
            out.store(null, place, MemorySpace::Shadow, None);
        }
    }
}

/// States that the shadows of owning pointers own their blocks, too: derivatives of the derivative give them shadows. Between
/// calls the shadows are null.
fn declare_shadow_owners(unit: &mut Unit, variant: &Variant, list: &[OwnedShadow]) {
    let forward = variant.mode == Mode::Forward;
    for owned in list {
        for lane in 0..variant.width as usize {
            let shadow = shadow_global(unit, owned.global, forward, lane);
            let mut blocks = unit.owned_blocks(shadow).to_vec();
            let block = OwnedBlock {
                size: OwnedBlockSize::Usable,
                ..owned.block
            };
            if !blocks.contains(&block) {
                blocks.push(block);
                unit.declare_owned_blocks(shadow, blocks);
            }
        }
    }
}

fn shadow_place(
    out: &mut DerivativeBuilder<'_>,
    variant: &Variant,
    owned: &OwnedShadow,
    lane: usize,
) -> Value {
    let forward = variant.mode == Mode::Forward;
    let shadow = shadow_global(out.unit, owned.global, forward, lane);
    address(out, shadow, owned.block.offset_bytes)
}

/// Emits the load of an owning pointer.
fn load_block(out: &mut DerivativeBuilder<'_>, owned: &OwnedShadow) -> Value {
    let ptr = out.unit.types.ptr();
    let place = address(out, owned.global, owned.block.offset_bytes);
    out.load(ptr, place, MemorySpace::Primal, None)
}

/// Ends the program with a message if an argument with a shadow points into the block: it would have two shadows. In C the
/// import excludes it; Fortran allows such arguments if no call writes to the block.
fn stop_if_argument(
    out: &mut DerivativeBuilder<'_>,
    (variant, signature): (&Variant, &Signature),
    owned: &OwnedShadow,
    [block, bytes]: [Value; 2],
) {
    let has_shadow = |number: usize| {
        let mut roles = signature.params.iter();
        roles.any(|(role, _)| matches!(role, ParamRole::Shadow(of, _) if *of == number))
    };
    let given = signature.params.iter().zip(out.body.params());
    let given = given.filter_map(|((role, ty), &param)| match *role {
        ParamRole::Primal(number) if out.unit.types.is_ptr(*ty) && has_shadow(number) => {
            Some(param)
        }
        _ => None,
    });
    let given: Vec<Value> = given.collect();
    for param in given {
        let long = out.unit.types.int(64);
        let [param, block] = [param, block].map(|at| out.build().cast(CastOp::PtrToInt, at, long));
        let offset = out.build().sub(param, block);
        let outside = out.build().icmp(IntPredicate::Uge, offset, bytes);
        let function = out.unit.functions[variant.func].display_name();
        let text = format!(
            "an argument of the derivative of `{function}` is the memory of `{}`, which has a shadow of its own",
            out.unit.globals[owned.global].name
        );
        indirect_calls::stop_unless(out, outside, &stop_message(Code::Outlives, &text));
    }
}

/// Emits the size of the present block in bytes; zero without a block.
fn block_bytes(out: &mut DerivativeBuilder<'_>, owned: &OwnedShadow, block: Value) -> Value {
    let (ptr, long) = (out.unit.types.ptr(), out.unit.types.int(64));
    let start = owned.block.offset_bytes;
    match owned.block.size {
        OwnedBlockSize::Usable => {
            let measure = match out.unit.symbol("malloc_usable_size") {
                Some(Symbol::Func(func)) => func,
                _ => {
                    let ty = out.unit.types.func(long, vec![ptr]);
                    (out.unit).declare("malloc_usable_size", ty, AttrSet::default())
                }
            };
            let call = out.build().call(measure, &[block]);
            out.body.result(call)
        }
        OwnedBlockSize::Descriptor { rank } => {
            let extents = (0..u64::from(rank)).map(|k| FIRST_EXTENT_BYTES + k * DIMENSION_BYTES);
            let mut bytes = None;
            for offset in std::iter::once(ELEMENT_BYTES).chain(extents) {
                let place = address(out, owned.global, start + offset);
                let factor = out.load(long, place, MemorySpace::Primal, None);
                bytes = Some(match bytes {
                    None => factor,
                    Some(bytes) => out.build().mul(bytes, factor),
                });
            }
            let bytes = bytes.unwrap_or_else(|| out.build().i64(0));
            libc::bytes_unless_null(out, block, bytes)
        }
    }
}
