//! Mirrors: for each region of the primal, the region of the return sweep that undoes it.
//!
//! What is recalled is put into a mirror's prologue, before the ops that undo. The prologue grows
//! while later ops are made, and stays in front of them.

use crate::out::Out;
use gradus_ir::{Op, Region, Value};
use std::collections::HashMap;

/// The mirrored regions made so far.
#[derive(Debug, Default)]
pub struct Mirrors {
    regions: HashMap<Region, Mirror>,
    frames: HashMap<Op, Value>,
}

#[derive(Clone, Copy, Debug)]
struct Mirror {
    region: Region,
    prologue_end: Option<Op>,
}

/// Where building went on before a prologue was entered.
pub struct Outside {
    place: (Region, Option<Op>),
    loc: Option<gradus_ir::LocId>,
    fast: gradus_ir::Flags,
}

impl Mirrors {
    /// States that `region` mirrors `primal`; its prologue begins after `after`, or at its start.
    pub fn add(&mut self, primal: Region, region: Region, after: Option<Op>) {
        self.regions.insert(
            primal,
            Mirror {
                region,
                prologue_end: after,
            },
        );
    }
    /// States which frame the current reversed iteration of a `loop` has.
    pub fn set_frame(&mut self, at: Op, frame: Value) {
        self.frames.insert(at, frame);
    }
    /// The frame of the current reversed iteration of a `loop`.
    pub fn frame(&self, at: Op) -> Option<Value> {
        self.frames.get(&at).copied()
    }
    /// Goes to the end of the prologue of `primal`'s mirror.
    pub fn enter_prologue(&mut self, primal: Region, out: &mut Out<'_>) -> Outside {
        let outside = Outside {
            place: out.place,
            loc: out.loc,
            fast: out.fast,
        };
        if let Some(mirror) = self.regions.get(&primal) {
            let before = match mirror.prologue_end {
                Some(op) => out.body.next(op),
                None => out.body.first(mirror.region),
            };
            out.place = (mirror.region, before);
        }
        outside
    }
    /// Notes what was put into the prologue and goes back.
    pub fn leave_prologue(&mut self, primal: Region, out: &mut Out<'_>, outside: Outside) {
        if let Some(mirror) = self.regions.get_mut(&primal) {
            mirror.prologue_end = match out.place.1 {
                Some(next) => out.body.prev(next),
                None => out.body.last(mirror.region),
            };
        }
        out.place = outside.place;
        out.loc = outside.loc;
        out.fast = outside.fast;
    }
}
