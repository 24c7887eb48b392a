//! Mirrors: for each region of the primal, the region of the return sweep that undoes it.
//!
//! What is recalled is put into the mirror of the region that it comes from, as late as can be: where
//! building has got to in that mirror. What is built later stands behind it, and between its first
//! use and the mirror's beginning it takes no register. Nothing that is undone in between can have
//! changed it: its uses come after it in the primal, so they are undone before anything that
//! precedes it.

use crate::out::Out;
use gradus_ir::{Op, Region, Value};
use std::collections::HashMap;

/// The mirrored regions made so far.
#[derive(Debug, Default)]
pub struct Mirrors {
    regions: HashMap<Region, Region>,
    frames: HashMap<Op, Value>,
}

/// Where building goes on after a recall.
pub struct Outside {
    place: (Region, Option<Op>),
    loc: Option<gradus_ir::LocId>,
    fast: gradus_ir::Flags,
}

impl Mirrors {
    /// States that `region` mirrors `primal`.
    pub fn add(&mut self, primal: Region, region: Region) {
        self.regions.insert(primal, region);
    }
    /// States which frame the current reversed iteration of a `loop` has.
    pub fn set_frame(&mut self, at: Op, frame: Value) {
        self.frames.insert(at, frame);
    }
    /// The frame of the current reversed iteration of a `loop`.
    pub fn frame(&self, at: Op) -> Option<Value> {
        self.frames.get(&at).copied()
    }
    /// Goes to where building has got to in the mirror of `primal`: before its last op where that one's
    /// regions are being built.
    pub fn enter(&self, primal: Region, out: &mut Out<'_>) -> Outside {
        let outside = Outside {
            place: out.place,
            loc: out.loc,
            fast: out.fast,
        };
        if let Some(&mirror) = self.regions.get(&primal)
            && mirror != out.place.0
        {
            out.place = (mirror, out.body.last(mirror));
        }
        outside
    }
    /// Goes back.
    pub fn leave(&self, out: &mut Out<'_>, outside: Outside) {
        out.place = outside.place;
        out.loc = outside.loc;
        out.fast = outside.fast;
    }
}
