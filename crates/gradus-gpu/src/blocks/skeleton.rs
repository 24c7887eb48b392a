//! Split skeleton of a block: barriers, the enclosing ops, and the segments between.
//!
//! Place: the first step of [`crate::fission`]; recomputed for each block and invalid after any edit.
//!
//! The *skeleton* of a block is the tree of regions that contain a barrier, directly or nested. An op is
//! *structural* if it is a barrier or owns a skeleton region. A *segment* is a maximal run of a skeleton
//! region's own ops between two structural ops; a segment runs as a single loop over the threads. The
//! *anchor* of a nested op is the enclosing op of a skeleton region.

use crate::blocks::arms::is_empty_arm;
use crate::blocks::sync_ops;
use crate::blocks::sync_ops::SyncScope;
use gradus_ir::{Body, Code, Diagnostic, Op, OpKind, Region, Unit};
use std::collections::{HashMap, HashSet};

/// The skeleton of a block.
#[derive(Debug)]
pub(crate) struct Skeleton {
    /// The `spmd block`.
    pub block: Op,
    /// Region of the block.
    pub root: Region,
    structural: HashSet<Op>,
    anchors: HashMap<Op, Op>,
    /// Position of each anchor in program order.
    positions: HashMap<Op, usize>,
    /// Segment of each op of a skeleton region; for a structural op, the segment that ends before the op.
    segments: HashMap<Op, u32>,
    regions: Vec<Region>,
    /// Region of each segment.
    segment_regions: Vec<Region>,
}

impl Skeleton {
    /// Computes the skeleton of a block. Each loop of `in_step` counts as a loop with a barrier.
    ///
    /// # Errors
    /// A barrier inside an op that cannot be split.
    pub fn of(
        unit: &Unit,
        body: &Body,
        block: Op,
        in_step: &[Op],
    ) -> Result<Skeleton, Vec<Diagnostic>> {
        let root = body.op_regions(block)[0];
        let mut spine = Skeleton {
            block,
            root,
            structural: HashSet::new(),
            anchors: HashMap::new(),
            positions: HashMap::new(),
            segments: HashMap::new(),
            regions: Vec::new(),
            segment_regions: Vec::new(),
        };
        spine.mark_structural(unit, body)?;
        for &lp in in_step {
            spine.add_interchanged_loop(body, lp);
        }
        spine.assign_segments(body);
        Ok(spine)
    }

    /// Marks the ops on the path from each barrier to the block.
    fn mark_structural(&mut self, unit: &Unit, body: &Body) -> Result<(), Vec<Diagnostic>> {
        for op in body.walk(self.root) {
            if sync_ops::sync_scope(unit, body, op).is_none() {
                continue;
            }
            let mut at = Some(op);
            while let Some(here) = at.filter(|here| *here != self.block) {
                if !self.structural.insert(here) {
                    break;
                }
                let cut = here == op || can_split_inside(body, here);
                if !cut {
                    return Err(vec![refuse_barrier(unit, body, op, here)]);
                }
                at = body.parent_op(here);
            }
        }
        Ok(())
    }

    /// Marks a loop and the enclosing ops, if all can be split.
    fn add_interchanged_loop(&mut self, body: &Body, lp: Op) {
        let chain: Vec<Op> = body
            .op_and_ancestors(lp)
            .take_while(|op| *op != self.block)
            .collect();
        if chain.iter().all(|op| can_split_inside(body, *op)) {
            self.structural.extend(chain);
        }
    }

    /// Assigns an anchor to each op, and a segment to each op of a skeleton region.
    fn assign_segments(&mut self, body: &Body) {
        let mut present: HashMap<Region, u32> = HashMap::new();
        for op in body.walk(self.root) {
            let Some(region) = body.parent(op) else {
                continue;
            };
            if !self.is_in_skeleton(body, region) {
                let anchor = body
                    .owner(region)
                    .and_then(|owner| self.anchors.get(&owner));
                if let Some(&anchor) = anchor {
                    self.anchors.insert(op, anchor);
                }
                continue;
            }
            self.anchors.insert(op, op);
            self.positions.insert(op, self.positions.len());
            if let Some(before) = self.segment_of_empty_arm(body, op, region) {
                self.regions.push(region);
                self.segments.insert(op, before);
                continue;
            }
            let segment = *present.entry(region).or_insert_with(|| {
                self.regions.push(region);
                new_segment(&mut self.segment_regions, region)
            });
            self.segments.insert(op, segment);
            if self.structural.contains(&op) {
                present.insert(region, new_segment(&mut self.segment_regions, region));
            }
        }
    }

    /// Returns the segment before a branch, if `end` terminates an empty arm: the results of an empty arm
    /// are stored before the branch.
    fn segment_of_empty_arm(&self, body: &Body, end: Op, region: Region) -> Option<u32> {
        let owner = body.owner(region).filter(|_| is_empty_arm(body, region))?;
        let branch = matches!(body.kind(owner), OpKind::If | OpKind::Switch(_));
        let idle = branch && body.kind(end).is_terminator();
        self.segments.get(&owner).copied().filter(|_| idle)
    }

    /// Returns whether a region of the block is part of the skeleton.
    pub fn is_in_skeleton(&self, body: &Body, region: Region) -> bool {
        region == self.root
            || body
                .owner(region)
                .is_some_and(|owner| self.structural.contains(&owner))
    }
    /// Returns whether an op is a barrier, contains a barrier, or is an interchanged loop.
    pub fn is_structural(&self, op: Op) -> bool {
        self.structural.contains(&op)
    }
    /// Returns whether the block has any split point.
    pub fn has_split_points(&self) -> bool {
        !self.structural.is_empty()
    }
    /// The anchor of an op of the block: the op itself, or the enclosing op in a skeleton region.
    pub fn anchor(&self, op: Op) -> Option<Op> {
        self.anchors.get(&op).copied()
    }
    /// The segment of an anchor; for a structural op, the segment that ends before the op.
    pub fn segment(&self, anchor: Op) -> Option<u32> {
        self.segments.get(&anchor).copied()
    }
    /// The segment in which an op of the block runs; for a structural op, the segment that computes the
    /// operands.
    pub fn segment_of(&self, op: Op) -> Option<u32> {
        self.segment(self.anchor(op)?)
    }
    /// Returns whether anchor `one` precedes anchor `other` in program order.
    pub fn is_before(&self, one: Op, other: Op) -> bool {
        self.positions.get(&one) < self.positions.get(&other)
    }
    /// The skeleton region of a segment.
    pub fn region_of(&self, segment: u32) -> Region {
        self.segment_regions[segment as usize]
    }
    /// The skeleton regions, in program order.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }
    /// The barriers, in program order.
    pub fn splits(&self, unit: &Unit, body: &Body) -> Vec<(Op, SyncScope)> {
        let inside = self.regions.iter().flat_map(|region| body.ops_in(*region));
        inside
            .filter_map(|op| Some((op, sync_ops::sync_scope(unit, body, op)?)))
            .collect()
    }
}

/// Starts a new segment of a region.
fn new_segment(homes: &mut Vec<Region>, region: Region) -> u32 {
    homes.push(region);
    homes.len() as u32 - 1
}

/// Returns whether an op may be split inside.
fn can_split_inside(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::If | OpKind::Switch(_) | OpKind::Loop { .. } | OpKind::For { .. }
    )
}

fn refuse_barrier(unit: &Unit, body: &Body, split: Op, around: Op) -> Diagnostic {
    let message = format!(
        "a barrier is inside `{}`, which cannot be split",
        body.kind(around).mnemonic()
    );
    Diagnostic::error(Code::KernelRefused, message)
        .at(unit.span(body.ops[split].loc), "barrier")
        .help("move the barrier out of the construct, or into a plain loop or branch")
}
