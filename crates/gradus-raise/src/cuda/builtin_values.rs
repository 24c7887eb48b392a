//! Builtin values of a kernel: thread and block indices become parameters of the regions, `__syncthreads`
//! becomes a barrier op, and warp operations become exchanges through shared memory ([`crate::cuda::warp_ops`]).

use super::{Launch, gpu_builtin};
use crate::cuda::warp_ops;
use crate::cuda::warp_ops::{Shuffle, ThreadIndices, Vote};
use gradus_ir::externals::GpuFn;
use gradus_ir::{BarrierScope, Body, Builder, CastOp, Code, Diagnostic, Op, OpKind, Unit, Value};
use std::collections::HashMap;

/// Replaces all builtin calls in the code of a launch.
///
/// # Errors
/// An unsupported builtin, or a barrier of the whole grid.
pub(super) fn replace_builtins(
    unit: &mut Unit,
    body: &mut Body,
    launch: &Launch,
) -> Result<(), Diagnostic> {
    let ops: Vec<(Op, GpuFn)> = body
        .walk(launch.block)
        .filter_map(|op| Some((op, gpu_builtin(unit, body, op)?)))
        .collect();
    let needs_place =
        |id: &GpuFn| id.depends_on_thread() && !is_index_or_size(*id) && *id != GpuFn::Barrier;
    let mut answers = BuiltinValues {
        launch,
        numbers: HashMap::new(),
        place: match ops.iter().any(|(_, id)| needs_place(id)) {
            true => Some(warp_ops::thread_indices(unit, body, launch)),
            false => None,
        },
    };
    for (op, id) in ops {
        answers.replace_builtin(unit, body, op, id)?;
    }
    Ok(())
}

/// Returns true for an index or size that the regions have as a parameter.
fn is_index_or_size(id: GpuFn) -> bool {
    use GpuFn::{Block, BlockSize, GridSize, Thread};
    matches!(id, Thread(_) | BlockSize(_) | Block(_) | GridSize(_))
}

struct BuiltinValues<'a> {
    launch: &'a Launch,
    numbers: HashMap<GpuFn, Value>,
    place: Option<ThreadIndices>,
}

impl BuiltinValues<'_> {
    fn replace_builtin(
        &mut self,
        unit: &mut Unit,
        body: &mut Body,
        op: Op,
        id: GpuFn,
    ) -> Result<(), Diagnostic> {
        match id {
            _ if is_index_or_size(id) => {
                let number = match self.numbers.get(&id) {
                    Some(&number) => number,
                    None => index_or_size(unit, body, self.launch, id),
                };
                self.numbers.insert(id, number);
                replace_by(body, op, number);
                return Ok(());
            }
            GpuFn::Barrier => return Ok(call_to_barrier(unit, body, op, BarrierScope::Block)),
            GpuFn::GridBarrier => return Err(grid_barrier_error(unit, body, op)),
            GpuFn::SyncWarp => return Ok(call_to_barrier(unit, body, op, BarrierScope::Warp)),
            GpuFn::Print | GpuFn::Assert | GpuFn::Clock | GpuFn::Service | GpuFn::Reset => {
                return Ok(());
            }
            _ => {}
        }
        let Some(place) = self.place else {
            return Err(unsupported_builtin(unit, body, op));
        };
        let name = unit
            .callee(body, op)
            .map(|func| unit.functions[func].name.clone());
        let name = name.unwrap_or_default();
        let args = unit.call_args(body, op);
        let arg = |i: usize| args.get(i).copied();
        match (id, name.as_str()) {
            (GpuFn::Lane, _) => replace_by(body, op, place.lane),
            (GpuFn::Shuffle, _) => match Shuffle::named(&name) {
                Some(how) => warp_ops::shuffle(unit, body, self.launch, place, op, how),
                None => return Err(unsupported_builtin(unit, body, op)),
            },
            _ => match vote_kind(id, &name) {
                Some(question) => {
                    let mask = arg(0).filter(|_| id == GpuFn::Vote);
                    warp_ops::lower_vote(
                        unit,
                        body,
                        self.launch,
                        place,
                        op,
                        (question, mask, arg(1)),
                    );
                }
                None => return Err(unsupported_builtin(unit, body, op)),
            },
        }
        Ok(())
    }
}

/// Returns the vote that a call performs.
fn vote_kind(id: GpuFn, name: &str) -> Option<Vote> {
    Some(match (id, name) {
        (GpuFn::BarrierCount, _) => Vote::Count,
        (GpuFn::BarrierOr, _) => Vote::BlockAny,
        (GpuFn::BarrierAnd, _) => Vote::BlockAll,
        (GpuFn::ActiveMask, _) | (_, "__gr_vote_ballot") => Vote::Ballot,
        (_, "__gr_vote_any") => Vote::Any,
        (_, "__gr_vote_all") => Vote::All,
        _ => return None,
    })
}

fn replace_by(body: &mut Body, op: Op, value: Value) {
    let result = body.result(op);
    body.replace_uses(result, value);
    body.erase(op);
}

/// Emits a region parameter truncated to the kernel's 32 bits.
fn index_or_size(unit: &mut Unit, body: &mut Body, launch: &Launch, id: GpuFn) -> Value {
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
        Some(first) => b.set_insertion_before(first),
        None => b.set_insertion_end(region),
    };
    let int = b.unit.types.int(32);
    b.cast(CastOp::Trunc, wide, int)
}

fn call_to_barrier(unit: &mut Unit, body: &mut Body, call: Op, scope: BarrierScope) {
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(call);
    b.loc = b.body.ops[call].loc;
    b.op(OpKind::Barrier(scope), &[], &[], 0);
    body.erase(call);
}

fn grid_barrier_error(unit: &Unit, body: &Body, op: Op) -> Diagnostic {
    let message = "a grid-wide barrier cannot be lowered: the blocks of a grid become iterations of a parallel loop";
    Diagnostic::error(Code::KernelRefused, message)
        .at(unit.span(body.ops[op].loc), "grid-wide barrier")
        .help("end the kernel at the barrier and launch a second kernel for the remaining code")
}

fn unsupported_builtin(unit: &Unit, body: &Body, op: Op) -> Diagnostic {
    let name = unit
        .callee(body, op)
        .map(|func| unit.functions[func].name.clone());
    let name = name.unwrap_or_default();
    let name = name.trim_start_matches("__gr_");
    let message = format!("the warp operation `{name}` is not supported");
    Diagnostic::error(Code::KernelRefused, message)
        .at(unit.span(body.ops[op].loc), "called here")
        .help("exchange the values through shared memory and `__syncthreads()`")
}
