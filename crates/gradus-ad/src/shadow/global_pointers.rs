//! Pointers in global variables at the start of a requested derivative.
//!
//! At start-up, the shadow of such a pointer points to the shadow of the pointee, and derivatives update both
//! together. The program may update the pointer alone: in other functions, in a call of the primal, or in a
//! derivative of the other mode. Each derivative therefore begins by rebinding the shadow to the shadow of
//! the current pointee. If the pointer points to no known variable, the program ends with a message.

use crate::analysis::program_facts::ProgramFacts;
use crate::emit::builder::{DerivativeBuilder, MemorySpace};
use crate::emit::stop_message::stop_message;
use crate::shadow::constants::shadow_global;
use crate::shadow::globals::address;
use crate::shadow::indirect_calls;
use crate::variant::{Mode, Variant};
use gradus_analysis::{AliasSetId, CellRef, MemoryOrigin, ShadowState};
use gradus_ir::{
    BinaryOp, CastOp, Code, Diagnostic, Flags, GlobalId, IntPredicate, Linkage, Unit, Value,
};

/// Tail padding in bytes of a variable that a pointer in another variable may point to. With the padding, the
/// end of a variable, and addresses just before the next one, never belong to another variable.
const TAIL_PADDING_BYTES: u32 = 64;

/// Reasons for ending the program.
const WITHOUT_SHADOW: &str = "memory without a shadow";
const AMBIGUOUS_POINTEE: &str =
    "the end of a variable of another file or the start of the next variable";

/// Limit on the number of comparisons at the start of a derivative; more are refused.
const COMPARISONS_MAX: usize = 1 << 12;

/// A pointer in a global variable.
pub(crate) struct GlobalPointerShadow {
    pub(crate) global: GlobalId,
    offset_bytes: u64,
    /// Possible pointees.
    targets: Vec<GlobalId>,
    /// Possible pointees without shadows: the shadow pointer then equals the pointer.
    inactive_pointees: Vec<GlobalId>,
    /// True if the pointer has no other pointee, as far as the differentiated functions show.
    has_only_known_pointees: bool,
}

/// Returns the pointers that a variant rebinds at its start.
///
/// # Errors
/// A variable whose pointers require too many comparisons with possible pointees.
pub(crate) fn collect(
    unit: &Unit,
    closure: &ProgramFacts,
    variant: &Variant,
) -> Result<Vec<GlobalPointerShadow>, Vec<Diagnostic>> {
    let mut list = Vec::new();
    if !variant.outermost || variant.mode == Mode::Reverse {
        return Ok(list);
    }
    let mut comparisons = 0;
    for &global in closure.closure.globals() {
        let Some(place) = closure.memory.global(global) else {
            continue;
        };
        if !has_shadow(unit, closure, global) || !closure.holds_pointers(global) {
            continue;
        }
        let size = (unit.layout).size_bytes(unit, unit.globals[global].ty);
        let width = unit.layout.pointer_bytes;
        let whole = (size + 1).saturating_sub(width);
        for offset_bytes in (0..whole).step_by(width as usize) {
            let word = CellRef {
                offset_bytes: place.offset_bytes + offset_bytes as i64,
                ..place
            };
            let led = collect_cell(unit, closure, (global, offset_bytes), word);
            comparisons += led.as_ref().map_or(0, |led| 2 * led.targets.len());
            if comparisons > COMPARISONS_MAX {
                return Err(vec![too_many_pointers_error(unit, global)]);
            }
            list.extend(led);
        }
    }
    Ok(list)
}

fn too_many_pointers_error(unit: &Unit, global: GlobalId) -> Diagnostic {
    let name = &unit.globals[global].name;
    let message = format!(
        "`{name}` holds too many pointers to variables: the derivative would compare each pointer with each variable"
    );
    Diagnostic::error(Code::Outlives, message).help(format!(
        "use a local variable of the differentiated function, or pass `{name}` as an argument"
    ))
}

pub(crate) fn has_shadow(unit: &Unit, closure: &ProgramFacts, global: GlobalId) -> bool {
    let state = closure.classes.global(closure.view(unit), global);
    !unit.globals[global].constant && state == ShadowState::Real
}

fn collect_cell(
    unit: &Unit,
    closure: &ProgramFacts,
    (global, offset_bytes): (GlobalId, u64),
    word: CellRef,
) -> Option<GlobalPointerShadow> {
    if closure
        .memory_cells
        .type_at(&closure.memory, word)
        .has_float()
    {
        return None;
    }
    let sets = closure.memory.pointee_sets(word);
    let origins = || {
        sets.iter()
            .flat_map(|set| &closure.memory.get(*set).origins)
    };
    let variables = origins().filter_map(|origin| match origin {
        MemoryOrigin::Global(target) => Some(*target),
        _ => None,
    });
    let mut targets: Vec<GlobalId> = variables.collect();
    targets.sort_unstable();
    let (shadowed, plain): (Vec<_>, Vec<_>) =
        (targets.iter()).partition(|target| has_shadow(unit, closure, **target));
    let is_active = |set: &AliasSetId| closure.classes.holds_active_floats(*set);
    let is_closed = targets.len() == origins().count() && sets.iter().any(is_active);
    (!shadowed.is_empty()).then_some(GlobalPointerShadow {
        global,
        offset_bytes,
        targets,
        inactive_pointees: plain,
        has_only_known_pointees: is_closed,
    })
}

/// Emits the rebinding of the shadows, for the whole batch.
pub(crate) fn rebind(
    out: &mut DerivativeBuilder<'_>,
    variant: &Variant,
    list: &[GlobalPointerShadow],
) {
    for led in list {
        let ptr = out.unit.types.ptr();
        let at = address(out, led.global, led.offset_bytes);
        let own = out.load(ptr, at, MemorySpace::Primal, None);
        let mut is_known = is_no_address(out, own);
        for &target in &led.targets {
            out.unit.globals[target].room_bytes = TAIL_PADDING_BYTES;
            let (inside, _) = is_in_global(out, own, target, IntPredicate::Ule);
            is_known = out.build().binary(BinaryOp::Or, is_known, inside);
        }
        for lane in 0..variant.width as usize {
            let forward = variant.mode == Mode::Forward;
            let shadow = shadow_global(out.unit, led.global, forward, lane);
            let at = address(out, shadow, led.offset_bytes);
            let before = out.load(ptr, at, MemorySpace::Shadow, None);
            let mut leads = before;
            // The address one past the end of a variable belongs to the variable only if no other variable
            // starts there.
            for bound in [IntPredicate::Ule, IntPredicate::Ult] {
                for &target in &led.targets {
                    let (inside, moved) =
                        rebound_shadow(out, own, (led, target), bound, (forward, lane));
                    leads = out.build().select(inside, moved, leads);
                }
            }
            let place = (led, forward, lane);
            if let Some(clear) = is_unambiguous(out, own, [before, leads], place) {
                stop_unless_rebound(out, clear, variant, (led.global, AMBIGUOUS_POINTEE));
            }
            out.store(leads, at, MemorySpace::Shadow, None);
        }
        if led.has_only_known_pointees {
            stop_unless_rebound(out, is_known, variant, (led.global, WITHOUT_SHADOW));
        }
    }
}

/// Returns true at run time unless the binding is ambiguous: the shadow points to the end of one variable's
/// shadow, while the pointer also is the start of the next variable. Returns `None` if all possible pointees
/// have tail padding.
fn is_unambiguous(
    out: &mut DerivativeBuilder<'_>,
    own: Value,
    [before, leads]: [Value; 2],
    (led, forward, lane): (&GlobalPointerShadow, bool, usize),
) -> Option<Value> {
    let mut clear = None;
    for &target in &led.targets {
        if can_have_tail_padding(out.unit, target) {
            continue;
        }
        let (end, moved) =
            rebound_shadow(out, own, (led, target), IntPredicate::Eq, (forward, lane));
        let same = out.build().icmp(IntPredicate::Eq, before, moved);
        let other = out.build().icmp(IntPredicate::Ne, before, leads);
        let both = out.build().binary(BinaryOp::And, same, other);
        let unclear = out.build().binary(BinaryOp::And, end, both);
        let yes = out.build().bool(true);
        let fine = out.build().binary(BinaryOp::Xor, unclear, yes);
        clear = Some(match clear {
            None => fine,
            Some(so_far) => out.build().binary(BinaryOp::And, so_far, fine),
        });
    }
    clear
}

/// Returns true if a variable can have tail padding: only this file defines it.
fn can_have_tail_padding(unit: &Unit, global: GlobalId) -> bool {
    let variable = &unit.globals[global];
    variable.defined && matches!(variable.linkage, Linkage::Internal | Linkage::External)
}

/// Emits a test of whether a pointer points into `target`, and the corresponding shadow pointer.
fn rebound_shadow(
    out: &mut DerivativeBuilder<'_>,
    own: Value,
    (led, target): (&GlobalPointerShadow, GlobalId),
    bound: IntPredicate,
    (forward, lane): (bool, usize),
) -> (Value, Value) {
    let (inside, offset) = is_in_global(out, own, target, bound);
    let moved = match led.inactive_pointees.contains(&target) {
        true => own,
        false => {
            let of_target = shadow_global(out.unit, target, forward, lane);
            let start = address(out, of_target, 0);
            let moved = out.build().byte_addr(start, offset);
            // No address flags: the pointer may lie outside of the target.
            out.build().set_flags(moved, Flags::default());
            moved
        }
    };
    (inside, moved)
}

/// Emits a test for null and for small integers of either sign, which serve as markers instead of addresses.
fn is_no_address(out: &mut DerivativeBuilder<'_>, own: Value) -> Value {
    const PAGE_BYTES: i64 = 4096;
    let long = out.unit.types.int(64);
    let number = out.build().cast(CastOp::PtrToInt, own, long);
    let page = out.build().i64(PAGE_BYTES);
    let moved = out.build().add(number, page);
    let pages = out.build().i64(2 * PAGE_BYTES);
    out.build().icmp(IntPredicate::Ult, moved, pages)
}

/// Emits a test of whether an address lies in a variable, and the offset from the variable's start.
fn is_in_global(
    out: &mut DerivativeBuilder<'_>,
    own: Value,
    target: GlobalId,
    bound: IntPredicate,
) -> (Value, Value) {
    let long = out.unit.types.int(64);
    let ty = out.unit.globals[target].ty;
    let size = out.unit.layout.size_bytes(out.unit, ty);
    let start = address(out, target, 0);
    let [own, start] = [own, start].map(|at| out.build().cast(CastOp::PtrToInt, at, long));
    let offset = out.build().sub(own, start);
    let size = out.build().i64(size as i64);
    (out.build().icmp(bound, offset, size), offset)
}

/// Ends the program with a message if a pointer points elsewhere.
fn stop_unless_rebound(
    out: &mut DerivativeBuilder<'_>,
    fine: Value,
    variant: &Variant,
    (global, why): (GlobalId, &str),
) {
    let function = &out.unit.functions[variant.func];
    let function = function.display_name();
    let text = format!(
        "at the start of the derivative of `{function}`, `{}` points to {why}",
        out.unit.globals[global].name
    );
    indirect_calls::stop_unless(out, fine, &stop_message(Code::Outlives, &text));
}
