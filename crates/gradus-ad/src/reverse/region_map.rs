//! Region map: the reverse region of each primal region.
//!
//! A restored or recomputed value is emitted in the reverse region of its defining region, as late as
//! possible: at the current end of emission there. All later code comes after it, and the value occupies no
//! register before its first use. No reversal in between can have changed the value: all uses follow the
//! definition in the primal, and are therefore reversed before everything that precedes the definition.

use crate::emit::builder::DerivativeBuilder;
use gradus_ir::{Op, Region, Value};
use std::collections::HashMap;

/// Reverse regions emitted up to now.
#[derive(Debug, Default)]
pub struct RegionMap {
    regions: HashMap<Region, Region>,
    frames: HashMap<Op, Value>,
}

/// Insertion state to resume after the emission of a restored value.
pub struct InsertionState {
    place: (Region, Option<Op>),
    loc: Option<gradus_ir::LocId>,
    fast: gradus_ir::Flags,
}

impl RegionMap {
    /// Records `region` as the reverse region of `primal`.
    pub fn add(&mut self, primal: Region, region: Region) {
        self.regions.insert(primal, region);
    }
    /// Records the frame of the current reversed iteration of a `loop`.
    pub fn set_frame(&mut self, at: Op, frame: Value) {
        self.frames.insert(at, frame);
    }
    /// Returns the frame of the current reversed iteration of a `loop`.
    pub fn frame(&self, at: Op) -> Option<Value> {
        self.frames.get(&at).copied()
    }
    /// Moves the insertion point to the end of emission in the reverse region of `primal`: before the last op
    /// if its regions are under construction.
    pub fn enter_reverse_region(
        &self,
        primal: Region,
        out: &mut DerivativeBuilder<'_>,
    ) -> InsertionState {
        let outside = InsertionState {
            place: out.insertion_point,
            loc: out.loc,
            fast: out.fast,
        };
        if let Some(&mirror) = self.regions.get(&primal)
            && mirror != out.insertion_point.0
        {
            out.insertion_point = (mirror, out.body.last(mirror));
        }
        outside
    }
    /// Restores the insertion state.
    pub fn leave(&self, out: &mut DerivativeBuilder<'_>, outside: InsertionState) {
        out.insertion_point = outside.place;
        out.loc = outside.loc;
        out.fast = outside.fast;
    }
}
