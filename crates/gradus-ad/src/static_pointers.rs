//! Pointers in global variables at the start of a derivative that a program asks for.
//!
//! The shadow of such a pointer leads, at start-up, to the shadow of what the variable's own leads to, and goes along
//! where a derivative sets that. The program moves the variable's own alone: in other functions, in a call of the
//! same function without derivatives, in a derivative of the other mode. So each derivative begins by leading the
//! shadow to where it belongs. Where the variable's own then leads elsewhere than to variables with shadows, the
//! program ends with a message.

use crate::closure_facts::ClosureFacts;
use crate::dispatch;
use crate::out::{Out, Space};
use crate::shadow::shadow_global;
use crate::static_state::address;
use crate::variant::{Mode, Variant};
use gradus_analysis::{MemoryPlace, Origin, ShadowState};
use gradus_ir::{BinaryOp, CastOp, GlobalId, IntPredicate, Type, TypeId, Unit, Value};

/// More comparisons than this are not made: shadows then lead to where they did.
const MOST_COMPARISONS: usize = 256;

/// A pointer in a global variable.
pub(crate) struct Led {
    global: GlobalId,
    offset_bytes: u64,
    /// The variables with shadows that it may lead to.
    targets: Vec<GlobalId>,
    /// Whether it leads nowhere else, as far as the functions go that are differentiated. Of tables some words may be
    /// something else, which nobody follows.
    is_closed: bool,
}

/// The pointers that a variant begins by leading to where they belong.
pub(crate) fn led(unit: &Unit, closure: &ClosureFacts, variant: &Variant) -> Vec<Led> {
    if !variant.outermost || variant.mode == Mode::Return {
        return Vec::new();
    }
    let mut list = Vec::new();
    for &global in closure.closure.globals() {
        let moves = unit
            .given_away(global)
            .is_some_and(|how| !how.set_by.is_empty());
        let Some(place) = closure.memory.global(global).filter(|_| moves) else {
            continue;
        };
        if !has_shadow(unit, closure, global) {
            continue;
        }
        for offset_bytes in pointers(unit, unit.globals[global].ty) {
            let word = MemoryPlace {
                offset_bytes: place.offset_bytes + offset_bytes as i64,
                ..place
            };
            list.extend(led_word(unit, closure, (global, offset_bytes), word));
        }
    }
    let comparisons: usize = list.iter().map(|led| 2 * led.targets.len()).sum();
    match comparisons > MOST_COMPARISONS {
        true => Vec::new(),
        false => list,
    }
}

fn has_shadow(unit: &Unit, closure: &ClosureFacts, global: GlobalId) -> bool {
    let state = closure.classes.global(closure.view(unit), global);
    !unit.globals[global].constant && state == ShadowState::Real
}

fn led_word(
    unit: &Unit,
    closure: &ClosureFacts,
    (global, offset_bytes): (GlobalId, u64),
    word: MemoryPlace,
) -> Option<Led> {
    let class = closure.memory.pointee(word)?.class;
    let origins = &closure.memory.get(class).origins;
    let variables = origins.iter().filter_map(|origin| match origin {
        Origin::Global(target) => Some(*target),
        _ => None,
    });
    let targets: Vec<GlobalId> = variables
        .filter(|target| has_shadow(unit, closure, *target))
        .collect();
    let is_alone = matches!(unit.types.get(unit.globals[global].ty), Type::Ptr(_));
    let is_closed =
        is_alone && targets.len() == origins.len() && closure.classes.holds_active_floats(class);
    (!targets.is_empty()).then_some(Led {
        global,
        offset_bytes,
        targets,
        is_closed,
    })
}

/// Where the pointers of a type lie, in bytes, but for long arrays of them.
fn pointers(unit: &Unit, ty: TypeId) -> Vec<u64> {
    let (mut found, mut open) = (Vec::new(), vec![(0, ty)]);
    while let Some((at, ty)) = open.pop() {
        match unit.types.get(ty) {
            Type::Ptr(_) => found.push(at),
            Type::Struct { fields, .. } => {
                let field = |(i, field): (usize, &TypeId)| {
                    let inside = unit.layout.field_offset_bytes(unit, ty, i as u64);
                    (at + inside, *field)
                };
                open.extend(fields.iter().enumerate().map(field));
            }
            Type::Array { len, elem } if *len <= MOST_COMPARISONS as u64 => {
                let bytes = unit.layout.size_bytes(unit, *elem);
                open.extend((0..*len).map(|i| (at + i * bytes, *elem)));
            }
            _ => {}
        }
        if found.len() + open.len() > MOST_COMPARISONS {
            return Vec::new();
        }
    }
    found.sort_unstable();
    found
}

/// Leads the shadows to where they belong, in all lanes.
pub(crate) fn lead(out: &mut Out<'_>, variant: &Variant, list: &[Led]) {
    for led in list {
        let ptr = out.unit.types.ptr();
        let at = address(out, led.global, led.offset_bytes);
        let own = out.load(ptr, at, Space::Primal, None);
        let mut is_known = None;
        for lane in 0..variant.width as usize {
            let forward = variant.mode == Mode::Forward;
            let shadow = shadow_global(out.unit, led.global, forward, lane);
            let at = address(out, shadow, led.offset_bytes);
            let mut leads = out.load(ptr, at, Space::Shadow, None);
            // One past a variable's end is what lies there only if nothing else does.
            for bound in [IntPredicate::Ule, IntPredicate::Ult] {
                for &target in &led.targets {
                    let (inside, offset) = is_inside(out, own, target, bound);
                    let of_target = shadow_global(out.unit, target, forward, lane);
                    let start = address(out, of_target, 0);
                    let moved = out.build().byte_addr(start, offset);
                    leads = out.build().select(inside, moved, leads);
                    is_known = Some(match is_known {
                        Some(known) => out.build().binary(BinaryOp::Or, known, inside),
                        None => inside,
                    });
                }
            }
            out.store(leads, at, Space::Shadow, None);
        }
        if let Some(known) = is_known.filter(|_| led.is_closed) {
            let unset = leads_nowhere(out, own);
            let fine = out.build().binary(BinaryOp::Or, known, unset);
            end_unless(out, fine, variant, led.global);
        }
    }
}

/// Whether an address is null, or a small number or one less than zero that stands for something else.
fn leads_nowhere(out: &mut Out<'_>, own: Value) -> Value {
    const PAGE_BYTES: i64 = 4096;
    let long = out.unit.types.int(64);
    let number = out.build().cast(CastOp::PtrToInt, own, long);
    let page = out.build().i64(PAGE_BYTES);
    let moved = out.build().add(number, page);
    let pages = out.build().i64(2 * PAGE_BYTES);
    out.build().icmp(IntPredicate::Ult, moved, pages)
}

/// Whether an address lies in a variable, and how far from its start.
fn is_inside(
    out: &mut Out<'_>,
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

/// Ends the program with a message where a pointer leads elsewhere.
fn end_unless(out: &mut Out<'_>, fine: Value, variant: &Variant, global: GlobalId) {
    let function = &out.unit.functions[variant.func];
    let function = function.source_name.as_ref().unwrap_or(&function.name);
    let text = format!(
        "gradus: `{}` leads to memory without a shadow when the derivative of `{function}` begins\n",
        out.unit.globals[global].name
    );
    let stop = dispatch::stop_saying(out.unit, &text);
    let mut b = out.build();
    let (_, yes, no) = b.if_(fine, &[]);
    let back = b.at_end(yes);
    b.yield_(&[]);
    b.at_end(no);
    b.call(stop, &[]);
    b.yield_(&[]);
    b.restore(back);
}
