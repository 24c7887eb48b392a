//! Where a block is cut: the ops at which all its threads meet, what they stand in, and the stretches
//! of code between them.
//!
//! Place: the first step of [`crate::fission`]; computed anew for every block, never kept over an edit.
//!
//! The *spine* of a block is the tree of regions that hold such an op, directly or further inside. A
//! *segment* is a stretch of a spine region's own ops between two of its structural ops (those that
//! are a meeting point or own a spine region); a segment runs as one loop over the threads. Everything
//! else hangs on the op of a spine region that it lies in, its *anchor*.

use crate::cut::is_idle;
use crate::splits::{self, Split};
use gradus_ir::{Body, Code, Diagnostic, Op, OpKind, Region, Unit};
use std::collections::{HashMap, HashSet};

/// The spine of one block.
#[derive(Debug)]
pub(crate) struct Spine {
    /// The `spmd block`.
    pub block: Op,
    /// Its region.
    pub root: Region,
    structural: HashSet<Op>,
    anchors: HashMap<Op, Op>,
    /// By anchor: its place in the program's order.
    places: HashMap<Op, usize>,
    /// By op of a spine region: the segment that it is in, or that ends before it.
    segments: HashMap<Op, u32>,
    regions: Vec<Region>,
    /// By segment: its region.
    homes: Vec<Region>,
}

impl Spine {
    /// Finds the spine of a block, with the loops `in_step` on it as though each held a barrier.
    ///
    /// # Errors
    /// A meeting point inside an op that cannot be cut.
    pub fn of(
        unit: &Unit,
        body: &Body,
        block: Op,
        in_step: &[Op],
    ) -> Result<Spine, Vec<Diagnostic>> {
        let root = body.op_regions(block)[0];
        let mut spine = Spine {
            block,
            root,
            structural: HashSet::new(),
            anchors: HashMap::new(),
            places: HashMap::new(),
            segments: HashMap::new(),
            regions: Vec::new(),
            homes: Vec::new(),
        };
        spine.mark(unit, body)?;
        for &lp in in_step {
            spine.take_in(body, lp);
        }
        spine.number(body);
        Ok(spine)
    }

    /// Marks the ops on the way from each meeting point to the block.
    fn mark(&mut self, unit: &Unit, body: &Body) -> Result<(), Vec<Diagnostic>> {
        for op in body.walk(self.root) {
            if splits::split(unit, body, op).is_none() {
                continue;
            }
            let mut at = Some(op);
            while let Some(here) = at.filter(|here| *here != self.block) {
                if !self.structural.insert(here) {
                    break;
                }
                let cut = here == op || can_be_cut(body, here);
                if !cut {
                    return Err(vec![refused(unit, body, op, here)]);
                }
                at = body.parent(here).and_then(|region| body.owner(region));
            }
        }
        Ok(())
    }

    /// Marks a loop and what it stands in, where all of that can be cut.
    fn take_in(&mut self, body: &Body, lp: Op) {
        let around = |op: &Op| body.parent(*op).and_then(|region| body.owner(region));
        let chain: Vec<Op> = std::iter::successors(Some(lp), around)
            .take_while(|op| *op != self.block)
            .collect();
        if chain.iter().all(|op| can_be_cut(body, *op)) {
            self.structural.extend(chain);
        }
    }

    /// Gives every op its anchor, and the ops of spine regions their segments.
    fn number(&mut self, body: &Body) {
        let mut present: HashMap<Region, u32> = HashMap::new();
        for op in body.walk(self.root) {
            let Some(region) = body.parent(op) else {
                continue;
            };
            if !self.is_spine(body, region) {
                let anchor = body
                    .owner(region)
                    .and_then(|owner| self.anchors.get(&owner));
                if let Some(&anchor) = anchor {
                    self.anchors.insert(op, anchor);
                }
                continue;
            }
            self.anchors.insert(op, op);
            self.places.insert(op, self.places.len());
            if let Some(before) = self.idle_end(body, op, region) {
                self.regions.push(region);
                self.segments.insert(op, before);
                continue;
            }
            let segment = *present.entry(region).or_insert_with(|| {
                self.regions.push(region);
                begun(&mut self.homes, region)
            });
            self.segments.insert(op, segment);
            if self.structural.contains(&op) {
                present.insert(region, begun(&mut self.homes, region));
            }
        }
    }

    /// What an arm without code gives is taken before the branch.
    fn idle_end(&self, body: &Body, end: Op, region: Region) -> Option<u32> {
        let owner = body.owner(region).filter(|_| is_idle(body, region))?;
        let branch = matches!(body.kind(owner), OpKind::If | OpKind::Switch(_));
        let idle = branch && body.kind(end).is_terminator();
        self.segments.get(&owner).copied().filter(|_| idle)
    }

    /// Whether a region of the block is part of the spine.
    pub fn is_spine(&self, body: &Body, region: Region) -> bool {
        region == self.root
            || body
                .owner(region)
                .is_some_and(|owner| self.structural.contains(&owner))
    }
    /// Whether an op is a meeting point or holds one, or a loop that is run in step.
    pub fn is_structural(&self, op: Op) -> bool {
        self.structural.contains(&op)
    }
    /// Whether the threads of the block meet at all.
    pub fn is_cut(&self) -> bool {
        !self.structural.is_empty()
    }
    /// The op of a spine region that an op of the block is or lies in.
    pub fn anchor(&self, op: Op) -> Option<Op> {
        self.anchors.get(&op).copied()
    }
    /// The segment of an anchor; of a structural op, the one that ends before it.
    pub fn segment(&self, anchor: Op) -> Option<u32> {
        self.segments.get(&anchor).copied()
    }
    /// The segment in which an op of the block runs, or before which it takes its operands.
    pub fn segment_of(&self, op: Op) -> Option<u32> {
        self.segment(self.anchor(op)?)
    }
    /// Whether one anchor stands before another in the program's order.
    pub fn is_before(&self, one: Op, other: Op) -> bool {
        self.places.get(&one) < self.places.get(&other)
    }
    /// The spine region that a segment is a part of.
    pub fn region_of(&self, segment: u32) -> Region {
        self.homes[segment as usize]
    }
    /// The spine regions, in program order.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }
    /// The structural ops that are meeting points, in program order.
    pub fn splits(&self, unit: &Unit, body: &Body) -> Vec<(Op, Split)> {
        let inside = self.regions.iter().flat_map(|region| body.ops_in(*region));
        inside
            .filter_map(|op| Some((op, splits::split(unit, body, op)?)))
            .collect()
    }
}

/// A new segment of a region.
fn begun(homes: &mut Vec<Region>, region: Region) -> u32 {
    homes.push(region);
    homes.len() as u32 - 1
}

/// Whether code may be cut inside of an op.
fn can_be_cut(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::If | OpKind::Switch(_) | OpKind::Loop { .. } | OpKind::For { .. }
    )
}

fn refused(unit: &Unit, body: &Body, split: Op, around: Op) -> Diagnostic {
    let message = format!(
        "a barrier stands inside of `{}`, which cannot be cut there",
        body.kind(around).mnemonic()
    );
    Diagnostic::error(Code::KernelRefused, message)
        .at(unit.span(body.ops[split].loc), "the barrier")
        .help("move the barrier out of it, or move it into a plain loop or branch")
}
