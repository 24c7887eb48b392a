//! Pointers that global variables hold across derivatives, and the validity of their shadows.
//!
//! A derivative that stores a pointer in a global variable stores the pointer's shadow in the variable's
//! shadow. The program may replace the pointer later, outside of derivatives. The shadow then belongs to the
//! old pointer, and adjoints would silently go to the wrong memory. A third variable, the *witness*, detects
//! the change: each outermost derivative copies the pointers to the witness at the end of its forward pass,
//! and begins by comparing both. The shadow of a changed pointer becomes null. A derivative that dereferences
//! the null shadow ends the program with a message (`body_facts/from_globals.rs`). `global_pointers` rebinds the
//! shadow if the pointer points to a known variable.
//!
//! # Invariants
//! Outside of derivatives, the shadow of a stored pointer belongs to the pointer in the witness.

use crate::analysis::program_facts::ProgramFacts;
use crate::emit::builder::{DerivativeBuilder, MemorySpace};
use crate::shadow::constants::{shadow_global, witness_global};
use crate::shadow::global_pointers::has_shadow;
use crate::shadow::globals::address;
use crate::shadow::owned_blocks::OwnedShadow;
use crate::variant::{Mode, Variant};
use gradus_analysis::{CellRef, MemoryOrigin};
use gradus_ir::{BinaryOp, Code, Diagnostic, GlobalId, IntPredicate, Unit, Value};

/// Limit on the number of strided ranges of pointers in a variable: each range is emitted as a loop.
const RANGES_MAX: usize = 256;

/// A strided range of pointers in a global variable.
pub(crate) struct StridedPointers {
    pub(crate) global: GlobalId,
    start_bytes: u64,
    stride_bytes: u64,
    count: u64,
}

/// Returns the pointers that a variant compares with their witnesses. The blocks of owning pointers get shadows at each
/// start.
///
/// # Errors
/// GRD0033: a variable whose pointers lie at too many uneven distances.
pub(crate) fn collect_checked_pointers(
    unit: &Unit,
    closure: &ProgramFacts,
    variant: &Variant,
    owned: &[OwnedShadow],
) -> Result<Vec<StridedPointers>, Vec<Diagnostic>> {
    let mut list = Vec::new();
    if !variant.outermost || variant.mode == Mode::Reverse {
        return Ok(list);
    }
    for &global in closure.closure.globals() {
        let mut offsets = checked_pointer_offsets(unit, closure, global);
        offsets.retain(|offset| !owned.iter().any(|cell| cell.is_at(global, *offset)));
        let stretches = group_into_ranges(global, &offsets);
        if stretches.len() > RANGES_MAX {
            return Err(vec![too_many_ranges_error(unit, global)]);
        }
        list.extend(stretches);
    }
    Ok(list)
}

fn too_many_ranges_error(unit: &Unit, global: GlobalId) -> Diagnostic {
    let name = &unit.globals[global].name;
    let message = format!("`{name}` holds pointers at too many irregular offsets");
    Diagnostic::error(Code::Outlives, message).help(format!(
        "use a local variable of the differentiated function, or pass `{name}` as an argument"
    ))
}

/// Returns the byte offsets of the pointers in a variable whose shadows a derivative may dereference.
fn checked_pointer_offsets(unit: &Unit, closure: &ProgramFacts, global: GlobalId) -> Vec<u64> {
    let place = closure.memory.global(global);
    let place =
        place.filter(|_| has_shadow(unit, closure, global) && closure.holds_pointers(global));
    let Some(place) = place else {
        // Not an error: the variable has no shadow, or no pointers.
        return Vec::new();
    };
    let size = unit.layout.size_bytes(unit, unit.globals[global].ty);
    let width = unit.layout.pointer_bytes;
    let is_kept = |offset: &u64| {
        let word = CellRef {
            offset_bytes: place.offset_bytes + *offset as i64,
            ..place
        };
        let is_number = closure
            .memory_cells
            .type_at(&closure.memory, word)
            .has_float();
        let targets = closure.memory.pointee(word).iter();
        let mut origins = targets.flat_map(|to| &closure.memory.get(to.class).origins);
        !is_number
            && origins.any(|origin| match origin {
                MemoryOrigin::Global(target) => !unit.globals[*target].constant,
                MemoryOrigin::Function(_) => false,
                MemoryOrigin::Argument(..)
                | MemoryOrigin::Alloca(..)
                | MemoryOrigin::Heap(..)
                | MemoryOrigin::External(..)
                | MemoryOrigin::Unknown => true,
            })
    };
    let whole = (size + 1).saturating_sub(width);
    (0..whole).step_by(width as usize).filter(is_kept).collect()
}

/// Groups offsets into strided ranges.
fn group_into_ranges(global: GlobalId, offsets: &[u64]) -> Vec<StridedPointers> {
    let mut list: Vec<StridedPointers> = Vec::new();
    for &offset in offsets {
        match list.last_mut() {
            Some(last) if last.count == 1 => {
                last.stride_bytes = offset - last.start_bytes;
                last.count = 2;
            }
            Some(last) if offset == last.start_bytes + last.count * last.stride_bytes => {
                last.count += 1;
            }
            _ => list.push(StridedPointers {
                global,
                start_bytes: offset,
                stride_bytes: 0,
                count: 1,
            }),
        }
    }
    list
}

/// Emits, at the start of a derivative, the reset of stale shadows: the shadow of a pointer that differs from
/// its witness becomes null, in the whole batch.
pub(crate) fn reset_stale_shadows(
    out: &mut DerivativeBuilder<'_>,
    variant: &Variant,
    list: &[StridedPointers],
) {
    let forward = variant.mode == Mode::Forward;
    for kept in list {
        let shadows = (0..variant.width as usize)
            .map(|lane| shadow_global(out.unit, kept.global, forward, lane))
            .collect::<Vec<_>>();
        for_each(out, kept, |out, offset| {
            let ptr = out.unit.types.ptr();
            let [own, then] = pointer_and_witness(out, kept.global, forward, offset);
            let own = out.load(ptr, own, MemorySpace::Primal, None);
            let then = out.load(ptr, then, MemorySpace::Shadow, None);
            let is_same = out.build().icmp(IntPredicate::Eq, own, then);
            let null = out.build().zero(ptr);
            for &shadow in &shadows {
                let at = place(out, shadow, offset);
                let before = out.load(ptr, at, MemorySpace::Shadow, None);
                let after = out.build().select(is_same, before, null);
                out.store(after, at, MemorySpace::Shadow, None);
            }
        });
    }
}

/// Emits, at the end of the forward pass, the copy of the pointers to the witnesses.
pub(crate) fn update_witnesses(
    out: &mut DerivativeBuilder<'_>,
    variant: &Variant,
    list: &[StridedPointers],
) {
    let forward = variant.mode == Mode::Forward;
    for kept in list {
        for_each(out, kept, |out, offset| {
            let ptr = out.unit.types.ptr();
            let [own, then] = pointer_and_witness(out, kept.global, forward, offset);
            let own = out.load(ptr, own, MemorySpace::Primal, None);
            out.store(own, then, MemorySpace::Shadow, None);
        });
    }
}

/// Returns the addresses of a pointer and of its witness.
fn pointer_and_witness(
    out: &mut DerivativeBuilder<'_>,
    global: GlobalId,
    forward: bool,
    offset: Value,
) -> [Value; 2] {
    let witness = witness_global(out.unit, global, forward);
    [global, witness].map(|global| place(out, global, offset))
}

fn place(out: &mut DerivativeBuilder<'_>, global: GlobalId, offset: Value) -> Value {
    let start = address(out, global, 0);
    out.build().byte_addr(start, offset)
}

/// Emits `make` for the byte offset of each pointer.
fn for_each(
    out: &mut DerivativeBuilder<'_>,
    kept: &StridedPointers,
    make: impl FnOnce(&mut DerivativeBuilder<'_>, Value),
) {
    let start = out.build().i64(kept.start_bytes as i64);
    if kept.count == 1 {
        return make(out, start);
    }
    let count = out.build().i64(kept.count as i64);
    let (_, region) = out.build().for_(count, &[]);
    let outside = std::mem::replace(&mut out.insertion_point, (region, None));
    let index = out.body.region_params(region)[0];
    let stride = out.build().i64(kept.stride_bytes as i64);
    let moved = out.build().binary(BinaryOp::Mul, index, stride);
    let offset = out.build().add(start, moved);
    make(out, offset);
    out.build().yield_(&[]);
    out.insertion_point = outside;
}
