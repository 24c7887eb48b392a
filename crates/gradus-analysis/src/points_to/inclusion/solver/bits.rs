//! Bits of addresses: numbers into which an address has been shifted, truncated or cast.
//!
//! Such bits are locations of [`ObjectKey::Bits`]. They have no offset. A pointer assembled from bits points to unknown
//! code's memory, and the object behind the bits escapes: nothing is known about the pointer's offset or about a shadow.
//!
//! An integer from the caller or from memory of unknown content may be a number and no address: its bits are ignored.
//!
//! Most programs have no such numbers in memory. Loads and stores of numbers therefore create no cells; the solver
//! inspects them at the end of a round, and only if bits exist.

use crate::points_to::inclusion::constraints::{Constraint, NodeId, NodeKind};
use crate::points_to::inclusion::nodes::Move;
use crate::points_to::inclusion::objects::{EXTERNAL, Location, ObjectKey};
use crate::points_to::inclusion::solver::Solver;
use crate::points_to::inclusion::solver::cells::CellUse;

impl Solver<'_> {
    /// Returns true if a location stands for bits of an address.
    pub(in crate::points_to::inclusion) fn is_bits(&self, at: Location) -> bool {
        matches!(self.objects.get(at.object).key, ObjectKey::Bits(_))
    }
    /// Returns true if a pointer received bits of addresses.
    pub fn is_assembled(&self, node: NodeId) -> bool {
        let is_pointer = self.program.kinds.get(node.0 as usize) == Some(&NodeKind::Pointer);
        is_pointer && self.nodes[self.representatives.get(node).0 as usize].is_assembled
    }
    /// Returns a location as a node holds it; `None` if the node does not hold the location.
    pub(super) fn content(&mut self, node: NodeId, at: Location) -> Option<Location> {
        match (self.node(node).kind, self.objects.get(at.object).key) {
            (NodeKind::Part, ObjectKey::Behind(..) | ObjectKey::Returned(..)) => None,
            (NodeKind::Part, _) if self.objects.get(at.object).is_number => None,
            (NodeKind::Part, _) => Some(Location::start(self.objects.bits_of(at.object))),
            (NodeKind::Pointer, ObjectKey::Bits(of)) => {
                self.node(node).is_assembled = true;
                self.escape(of);
                Some(Location::start(EXTERNAL))
            }
            (NodeKind::Word, ObjectKey::Bits(of)) if self.node(node).has_pointer => {
                if !std::mem::replace(&mut self.node(node).is_assembled, true) {
                    self.add(node, Location::start(EXTERNAL));
                }
                self.escape(of);
                Some(at)
            }
            (NodeKind::Pointer | NodeKind::Word, _) => Some(self.objects.location(at)),
        }
    }
    /// Applies the loads and stores of numbers that hold bits of addresses. Returns true if a set changed.
    pub(super) fn apply_bits(&mut self) -> bool {
        if !self.objects.has_bits() {
            return false;
        }
        for number in 0..self.constraints.len() {
            match self.constraints[number] {
                Constraint::StoreBits { ptr, bytes, from } if self.has_locations(from) => {
                    for at in self.all(ptr) {
                        self.store_bits(at, bytes, from);
                    }
                }
                Constraint::LoadBits { to, ptr, bytes } => {
                    for at in self.all(ptr) {
                        self.load_bits(to, at, bytes);
                    }
                }
                _ => {}
            }
        }
        !self.work.is_empty()
    }
    fn store_bits(&mut self, at: Location, bytes: i64, from: NodeId) {
        if at.object == EXTERNAL {
            self.escape_node(from);
        }
        for cell in self.cells_at(at, self.to_word(at, bytes), CellUse::Store(None)) {
            self.edge(from, cell, Move::Bits);
        }
    }
    fn load_bits(&mut self, to: NodeId, at: Location, bytes: i64) {
        for place in self.moved(at, self.to_word(at, bytes)) {
            let cells = self.cells.stored_at(self.objects.cell(place));
            let has_bits = |&cell: &NodeId| self.locations.has_bits(self.numbers(cell));
            for cell in cells.filter(has_bits).collect::<Vec<_>>() {
                self.edge(cell, to, Move::Bits);
            }
        }
    }
    /// Returns the distance from a location to the word around the byte `bytes` behind it.
    fn to_word(&self, at: Location, bytes: i64) -> i64 {
        let word = self.unit.layout.pointer_bytes as i64;
        bytes.wrapping_sub(at.offset.wrapping_add(bytes).rem_euclid(word))
    }
}
