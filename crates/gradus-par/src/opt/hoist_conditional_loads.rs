//! Hoisting of conditional loads: moves invariant conditional loads out of an iteration's inner loops.
//!
//! ```text
//! par.for t { for k < 4 { if c { x += w } } }   →   par.for t { v = w; for k < 4 { if c { x += v } } }
//! ```
//!
//! LLVM speculates the load, too, when it unrolls the inner loop, because the variable is dereferenceable. A
//! load speculated by LLVM loses its metadata, and the outer loop loses the guarantee of independent accesses,
//! hence vectorisation. Loads hoisted here get their metadata afterwards.
//!
//! Place: after all passes over parallel ops, because an iteration may now read a location written by a
//! concurrent iteration. The value read is then unused. ThreadSanitizer would report the read: instrumented
//! functions stay unchanged.

use gradus_analysis::{Alias, AliasOptions, Clobbers, Effects, ExitClobbers};
use gradus_edit::{ValueMap, clone_op_within, is_dereferenceable};
use gradus_ir::{Body, Builder, Flags, FuncId, Op, OpKind, Unit};

/// Hoists conditional loads of `body` out of inner loops.
pub(crate) fn hoist_conditional_loads(
    unit: &mut Unit,
    func: FuncId,
    body: &mut Body,
    effects: &Effects,
) {
    let moves: Vec<(Op, Op)> = {
        let loads = body.walk(body.root()).filter(|op| {
            matches!(body.kind(*op), OpKind::Load(access) if access.is_plain())
                && body.enclosing_strand(*op) != body.root()
                && is_dereferenceable(unit, Some(func), body, *op)
                && hoist_target(body, *op, |_| true).is_some()
        });
        let loads: Vec<Op> = loads.collect();
        if loads.is_empty() {
            return;
        }
        let alias = Alias::new(unit, Some(func), body, effects, &AliasOptions::default());
        let clobbers = Clobbers::of(&alias, effects, ExitClobbers::default());
        let moved = loads.into_iter().filter_map(|op| {
            hoist_target(body, op, |around| clobbers.invariant_in(op, around)).map(|to| (op, to))
        });
        moved.collect()
    };
    for (op, before) in moves {
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(before);
        let early = clone_op_within(op, &mut b, &mut ValueMap::new());
        b.body.ops[early].meta = None;
        let (old, new) = (b.body.result(op), b.body.result(early));
        b.body.replace_uses(old, new);
        b.body.erase(op);
    }
}

/// Returns the outermost serial loop of the iteration that the conditional load `load` may leave.
fn hoist_target(body: &Body, load: Op, is_unchanged_in: impl Fn(Op) -> bool) -> Option<Op> {
    let address = body.operand(load, 0);
    let (mut at, mut conditional, mut found) = (load, false, None);
    while let Some(around) = body.parent_op(at) {
        match body.kind(around) {
            OpKind::If | OpKind::Switch(_) => conditional = true,
            OpKind::For { .. } | OpKind::Loop { .. } => {
                let shared = body.ops[around].flags.has(Flags::INDEPENDENT);
                let inside = body.op_regions(around)[0];
                if shared || body.is_defined_in(address, inside) || !is_unchanged_in(around) {
                    break;
                }
                if conditional {
                    found = Some(around);
                }
            }
            _ => break,
        }
        at = around;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_analysis::CallGraph;
    use gradus_ir::parse;

    /// Returns true if the variable is read outside of the inner loop with `code` under `condition`.
    fn is_early(condition: &str, code: &str) -> bool {
        let text = format!(
            "global @w: f64
             func @f(%n: i64, %b: i1) {{
               par.for %i < %n {{
                 %x = alloca private f64, i32 1
                 for %k < i64 4 {{
                   {condition} {{ {code} yield }}
                   yield }}
                 yield }}
               return }}"
        );
        let mut unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let f = unit.function("f").expect("it is there");
        let effects = Effects::of(&unit, &CallGraph::of(&unit, &[f]));
        let mut body = unit.functions[f].body.take().expect("it has code");
        hoist_conditional_loads(&mut unit, f, &mut body, &effects);
        let reads = |op: &Op| {
            matches!(body.kind(*op), OpKind::Load(_))
                && body.as_const(body.operand(*op, 0)).is_some()
        };
        let load = body.walk(body.root()).find(reads).expect("it is read");
        let region = body.parent(load).expect("it stands somewhere");
        let owner = body.owner(region).expect("in an iteration");
        matches!(body.kind(owner), OpKind::ParFor { .. })
    }

    #[test]
    fn conditional_load_is_hoisted() {
        assert!(is_early("if %b", "%v = load @w -> f64 store %v, %x"));
    }

    #[test]
    fn clobbered_load_is_not_hoisted() {
        let code = "%v = load @w -> f64 store f64 1.0, @w store %v, %x";
        assert!(!is_early("if %b", code));
    }

    #[test]
    fn volatile_load_is_not_hoisted() {
        let code = "%v = load volatile @w -> f64 store %v, %x";
        assert!(!is_early("if %b", code));
    }
}
