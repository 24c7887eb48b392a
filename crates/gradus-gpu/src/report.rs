//! What became of every kernel: data for `--gpu-report`.
//!
//! Place: taken from the facts of [`crate::fission`] before the cut, one record for each block that becomes
//! loops. Positions are those of the program's text, so that what a loop carries around is told as what it
//! carries, and not again at each barrier.

use crate::homes::Homes;
use crate::levels::Levels;
use crate::spine::Spine;
use crate::splits::{self, Split};
use gradus_ir::{Body, Op, OpKind, SourceSpan, Unit, Value};
use std::collections::HashMap;

/// One block: a kernel where it is launched, or its entry for launches that are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelRecord {
    /// The function that it stands in, as the linker names it.
    pub function: String,
    /// The file of the kernel's code, and its first and last line.
    pub lines: Option<(String, u32, u32)>,
    /// The lines of further launches that run together with its own, where these can.
    pub with: Vec<u32>,
    /// The lines of the barriers that were removed.
    pub removed: Vec<u32>,
    /// Where its threads meet.
    pub meetings: Vec<Meeting>,
    /// The loops that are run in step, one iteration of all threads before the next.
    pub in_step: Vec<u32>,
    /// The branches and loops around barriers that threads take differently, and of which each keeps a flag.
    pub divergent: Vec<u32>,
    /// The bytes that each thread has in arrays of its own that live on over a barrier.
    pub array_bytes: u64,
}

/// One barrier, by what crosses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Its line; 0 where unknown.
    pub line: u32,
    /// Whether only the threads of a warp meet.
    pub of_warp: bool,
    /// How many values are stored for each thread.
    pub stored: usize,
    /// How many bytes these are, for each thread.
    pub bytes: u64,
    /// How many values are computed again behind it.
    pub recomputed: usize,
}

/// The record of a block that is about to be cut.
pub(crate) fn of(
    unit: &Unit,
    body: &Body,
    spine: &Spine,
    levels: &Levels,
    homes: &Homes,
) -> KernelRecord {
    let mut record = KernelRecord {
        lines: lines(unit, body, spine),
        ..KernelRecord::default()
    };
    let size = |value: &Value| unit.layout.store_bytes(unit, body.ty(*value));
    let line = |op: Op| unit.span(body.ops[op].loc).map_or(0, |span| span.line);
    let inside = body.walk(spine.root).filter(|op| spine.is_structural(*op));
    for op in inside {
        if let Some(kind) = splits::split(unit, body, op) {
            let stored = crossing(body, spine, &homes.stored, op);
            record.meetings.push(Meeting {
                line: line(op),
                of_warp: kind == Split::WarpBarrier,
                stored: stored.len(),
                bytes: stored.iter().map(size).sum(),
                recomputed: crossing(body, spine, &homes.recomputed, op).len(),
            });
            continue;
        }
        let meets = |op: Op| splits::split(unit, body, op).is_some();
        let regions = body.op_regions(op);
        if !regions.iter().any(|region| body.walk(*region).any(meets)) {
            record.in_step.push(line(op));
        } else if levels.is_divergent(op) {
            record.divergent.push(line(op));
        }
    }
    let arrays = homes.kept.iter().map(|&op| match body.kind(op) {
        OpKind::Alloca(info) => {
            let count = body.as_int(unit, body.operand(op, 0)).unwrap_or(1);
            unit.layout.store_bytes(unit, info.ty) * u64::try_from(count).unwrap_or(1)
        }
        _ => 0,
    });
    record.array_bytes = arrays.sum();
    record
}

/// The values that are made before a barrier and used behind it.
pub(crate) fn crossing(body: &Body, spine: &Spine, values: &[Value], barrier: Op) -> Vec<Value> {
    let places: HashMap<Op, usize> = body.walk(spine.root).zip(0..).collect();
    let place = places[&barrier];
    let crosses = |value: &&Value| crosses(body, spine, &places, **value, place);
    values.iter().filter(crosses).copied().collect()
}

/// Whether a value is made before a place and used behind it.
fn crosses(
    body: &Body,
    spine: &Spine,
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

/// The lines of a block in the file that most of its code stands in.
fn lines(unit: &Unit, body: &Body, spine: &Spine) -> Option<(String, u32, u32)> {
    let launcher = body.ops[spine.block].loc.map(|loc| &unit.locations[loc]);
    let mut files: HashMap<String, (usize, u32, u32)> = HashMap::new();
    for op in body.walk(spine.root) {
        let Some(SourceSpan { file, line, .. }) = unit.span(body.ops[op].loc) else {
            continue;
        };
        // Arguments are taken where the launch is: in code of the function that launches.
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
