//! What a kernel asks of its surroundings: numbers become the ranks and extents of its regions, barriers
//! ops.

use super::{Launch, asks};
use gradus_ir::known::GpuFn;
use gradus_ir::{BarrierScope, Body, Builder, CastOp, Code, Diagnostic, Op, OpKind, Unit, Value};
use std::collections::HashMap;

/// Answers all that a launch's code asks.
///
/// # Errors
/// A question without an answer yet.
pub(super) fn answer(unit: &mut Unit, body: &mut Body, launch: &Launch) -> Result<(), Diagnostic> {
    let ops: Vec<(Op, GpuFn)> = body
        .walk(launch.block)
        .filter_map(|op| Some((op, asks(unit, body, op)?)))
        .collect();
    let mut numbers: HashMap<GpuFn, Value> = HashMap::new();
    for (op, id) in ops {
        match id {
            GpuFn::Thread(_) | GpuFn::BlockSize(_) | GpuFn::Block(_) | GpuFn::GridSize(_) => {
                let number = match numbers.get(&id) {
                    Some(&number) => number,
                    None => number(unit, body, launch, id),
                };
                numbers.insert(id, number);
                let result = body.result(op);
                body.replace_uses(result, number);
                body.erase(op);
            }
            GpuFn::Barrier => meet(unit, body, op, BarrierScope::Block),
            GpuFn::SyncWarp => meet(unit, body, op, BarrierScope::Warp),
            GpuFn::Print | GpuFn::Assert | GpuFn::Clock => {}
            _ => return Err(unanswered(unit, body, op)),
        }
    }
    Ok(())
}

/// A number that the regions know, as the kernel asks for it: in 32 bits.
fn number(unit: &mut Unit, body: &mut Body, launch: &Launch, id: GpuFn) -> Value {
    let of_block = matches!(id, GpuFn::Thread(_) | GpuFn::BlockSize(_));
    let (region, param) = match id {
        GpuFn::Thread(dim) => (launch.block, usize::from(dim)),
        GpuFn::BlockSize(dim) => (launch.block, 3 + usize::from(dim)),
        GpuFn::GridSize(dim) => (launch.grid, 3 + usize::from(dim)),
        GpuFn::Block(dim) => (launch.grid, usize::from(dim)),
        _ => (launch.grid, 0),
    };
    let wide = body.region_params(region)[param];
    let first = match of_block {
        true => body.first(region),
        false => Some(launch.inner),
    };
    let mut b = Builder::new(unit, body);
    match first {
        Some(first) => b.at_op(first),
        None => b.at_end(region),
    };
    let int = b.unit.types.int(32);
    b.cast(CastOp::Trunc, wide, int)
}

fn meet(unit: &mut Unit, body: &mut Body, call: Op, scope: BarrierScope) {
    let mut b = Builder::new(unit, body);
    b.at_op(call);
    b.loc = b.body.ops[call].loc;
    b.op(OpKind::Barrier(scope), &[], &[], 0);
    body.erase(call);
}

fn unanswered(unit: &Unit, body: &Body, op: Op) -> Diagnostic {
    let name = unit
        .callee(body, op)
        .map(|func| unit.functions[func].name.clone());
    let name = name.unwrap_or_default();
    let name = name.trim_start_matches("__gr_");
    let message = format!("a warp's `{name}` is not supported yet");
    Diagnostic::error(Code::KernelRefused, message)
        .at(unit.span(body.ops[op].loc), "called here")
        .help("exchange the values through shared memory and `__syncthreads()`")
}
