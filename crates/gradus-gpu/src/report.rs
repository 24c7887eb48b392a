//! Kernel records: data for `--gpu-report`.
//!
//! Place: read from the facts of [`crate::fission`] before the split, with a record for each block that
//! becomes loops. Positions follow the source order. A loop-carried value therefore counts as carried by the
//! loop, not again at each barrier.

use crate::blocks::skeleton::Skeleton;
use crate::blocks::sync_ops;
use crate::blocks::sync_ops::SyncScope;
use crate::blocks::thread_storage::ThreadStorage;
use crate::blocks::uniformity::Uniformity;
use gradus_ir::{Body, Op, OpKind, SourceSpan, Unit, Value};
use std::collections::HashMap;

/// Record of a block: a kernel at a launch, or the kernel entry for unknown launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelRecord {
    /// Source name of the enclosing function, or the symbol if both agree or the source name is unknown.
    pub function: String,
    /// File of the kernel's code, with the first and last line.
    pub lines: Option<(String, u32, u32)>,
    /// Lines of further launches that run fused with the kernel's launch, if the run-time checks pass.
    pub fused_lines: Vec<u32>,
    /// Lines of removed barriers.
    pub removed_barriers: Vec<u32>,
    /// The remaining barriers.
    pub barriers: Vec<BarrierRecord>,
    /// Lines of interchanged loops: one iteration of all threads runs before the next.
    pub interchanged_loops: Vec<u32>,
    /// Lines of divergent branches and loops around barriers; each has a flag per thread.
    pub divergent: Vec<u32>,
    /// Bytes per thread in private arrays that live across a barrier.
    pub array_bytes: u64,
}

/// A barrier and the values that cross the barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierRecord {
    /// Source line; 0 if unknown.
    pub line: u32,
    /// The barrier has warp scope.
    pub is_warp_scope: bool,
    /// Number of values stored per thread.
    pub stored: usize,
    /// Bytes stored per thread.
    pub bytes: u64,
    /// Number of values recomputed after the barrier.
    pub recomputed: usize,
}

/// Returns the record of a block that is about to be split.
pub(crate) fn kernel_record(
    unit: &Unit,
    body: &Body,
    spine: &Skeleton,
    levels: &Uniformity,
    homes: &ThreadStorage,
) -> KernelRecord {
    let mut record = KernelRecord {
        lines: line_range(unit, body, spine),
        ..KernelRecord::default()
    };
    let size = |value: &Value| unit.layout.store_bytes(unit, body.ty(*value));
    let line = |op: Op| unit.span(body.ops[op].loc).map_or(0, |span| span.line);
    let inside = body.walk(spine.root).filter(|op| spine.is_structural(*op));
    for op in inside {
        if let Some(kind) = sync_ops::sync_scope(unit, body, op) {
            let stored = values_crossing(body, spine, &homes.stored, op);
            record.barriers.push(BarrierRecord {
                line: line(op),
                is_warp_scope: kind == SyncScope::WarpBarrier,
                stored: stored.len(),
                bytes: stored.iter().map(size).sum(),
                recomputed: values_crossing(body, spine, &homes.recomputed, op).len(),
            });
            continue;
        }
        let meets = |op: Op| sync_ops::sync_scope(unit, body, op).is_some();
        let regions = body.op_regions(op);
        if !regions.iter().any(|region| body.walk(*region).any(meets)) {
            record.interchanged_loops.push(line(op));
        } else if levels.is_divergent(op) {
            record.divergent.push(line(op));
        }
    }
    let arrays = homes.live_allocas.iter().map(|&op| match body.kind(op) {
        OpKind::Alloca(info) => {
            let count = body.as_int(unit, body.operand(op, 0)).unwrap_or(1);
            unit.layout.store_bytes(unit, info.ty) * u64::try_from(count).unwrap_or(1)
        }
        _ => 0,
    });
    record.array_bytes = arrays.sum();
    record
}

/// The values defined before a barrier and used after the barrier, in another segment.
pub(crate) fn values_crossing(
    body: &Body,
    spine: &Skeleton,
    values: &[Value],
    barrier: Op,
) -> Vec<Value> {
    let places: HashMap<Op, usize> = body.walk(spine.root).zip(0..).collect();
    let place = places[&barrier];
    let crosses = |value: &&Value| is_live_across(body, spine, &places, **value, place);
    values.iter().filter(crosses).copied().collect()
}

/// Returns whether a value is defined before a place and used after the place, in another segment.
fn is_live_across(
    body: &Body,
    spine: &Skeleton,
    places: &HashMap<Op, usize>,
    value: Value,
    place: usize,
) -> bool {
    let made = body.def_op(value).and_then(|op| places.get(&op));
    let own = body.def_op(value).and_then(|op| spine.segment_of(op));
    made.is_some_and(|made| *made < place)
        && body.uses(value).any(|used| {
            let there = places.get(&used.op).is_some_and(|at| *at > place);
            there && spine.segment_of(used.op) != own
        })
}

/// The line range of a block, in the file with most of the block's ops.
fn line_range(unit: &Unit, body: &Body, spine: &Skeleton) -> Option<(String, u32, u32)> {
    let launcher = body.ops[spine.block].loc.map(|loc| &unit.locations[loc]);
    let mut files: HashMap<String, (usize, u32, u32)> = HashMap::new();
    for op in body.walk(spine.root) {
        let Some(SourceSpan { file, line, .. }) = unit.span(body.ops[op].loc) else {
            continue;
        };
        // Launch arguments are evaluated at the launch, with locations of the launching function.
        let own = body.ops[op].loc.map(|loc| &unit.locations[loc]);
        let is_launch = own.zip(launcher).is_some_and(|(own, launcher)| {
            own.function == launcher.function && own.inlined_at == launcher.inlined_at
        });
        if line > 0 && !is_launch {
            let (count, first, last) = files.entry(file).or_insert((0, line, line));
            *count += 1;
            *first = line.min(*first);
            *last = line.max(*last);
        }
    }
    let most = files.into_iter().max_by(|a, b| {
        let by_count = a.1.0.cmp(&b.1.0);
        by_count.then_with(|| b.0.cmp(&a.0))
    });
    most.map(|(file, (_, first, last))| (file, first, last))
}
