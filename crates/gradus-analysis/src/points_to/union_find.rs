//! Union-find with offsets: the core of the alias-set analysis.
//!
//! Steensgaard's analysis (POPL 1996), made field-sensitive by a *weighted* union-find. A target is a node
//! and an offset in it. Each alias set has a modulus m: offsets count modulo m; m = 0 means exact offsets.
//! A pointer increment by an unknown multiple of s unifies (c, o) with (c, o + s), which makes m = gcd(m,
//! s). An array of 24-byte structures has three separate cells; an array of doubles has one. The contents
//! of an alias set are stored per offset (a [`Cell`]). If two cells merge, a worklist unifies their
//! pointees. A modulus at least halves on each change, and the smaller of two maps moves into the larger:
//! O(n log² n) in total.

use crate::points_to::alias_sets::Origin;
use std::collections::BTreeMap;

/// A node and an offset in it: the target of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub node: u32,
    pub offset: i64,
}

impl Target {
    /// Returns the target `bytes` further on.
    pub fn plus(self, bytes: i64) -> Target {
        Target {
            node: self.node,
            offset: self.offset.wrapping_add(bytes),
        }
    }
}

/// Largest tracked offset. Larger offsets reduce the modulus to 1.
const OFFSET_MAX: i64 = 1 << 40;

/// State of the memory cell at one offset of an alias set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// Target of the pointers stored in the cell.
    pub points: Option<Target>,
    /// Types observed in the cell.
    pub seen: crate::types::lattice::Seen,
}

/// State of an alias set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub modulus: u64,
    pub cells: BTreeMap<i64, Cell>,
    pub origins: Vec<Origin>,
    pub escaped: bool,
}

impl Content {
    /// Normalises an offset: reduces `offset` by the modulus.
    pub fn normal(&self, offset: i64) -> i64 {
        match self.modulus {
            0 => offset,
            m => offset.rem_euclid(m as i64),
        }
    }
    fn weight(&self) -> usize {
        self.cells.len() + self.origins.len()
    }
}

#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    shift: i64,
}

/// The alias sets under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    nodes: Vec<Node>,
    contents: Vec<Content>,
    work: Vec<(Target, Target)>,
    /// Number of unions and modulus changes. A fixpoint loop compares it before and after a round.
    pub changes: usize,
    /// Repeated pointer increments: start and stride in bytes.
    pub steps: Vec<(Target, u64)>,
}

impl Classes {
    /// Creates an alias set and returns its offset 0.
    pub fn fresh(&mut self) -> Target {
        let node = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent: node,
            shift: 0,
        });
        self.contents.push(Content::default());
        Target { node, offset: 0 }
    }
    /// Returns the number of nodes created.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
    /// Returns the target relative to its representative, normalised by the modulus.
    pub fn find(&mut self, target: Target) -> Target {
        let raw = self.find_raw(target);
        Target {
            node: raw.node,
            offset: self.contents[raw.node as usize].normal(raw.offset),
        }
    }
    /// Returns the target relative to its representative, without reduction by the modulus.
    pub fn find_raw(&mut self, target: Target) -> Target {
        let (mut node, mut shift) = (target.node, 0i64);
        while self.nodes[node as usize].parent != node {
            shift = shift.wrapping_add(self.nodes[node as usize].shift);
            node = self.nodes[node as usize].parent;
        }
        let (root, mut at, mut left) = (node, target.node, shift);
        while self.nodes[at as usize].parent != at {
            let Node { parent, shift } = self.nodes[at as usize];
            self.nodes[at as usize] = Node {
                parent: root,
                shift: left,
            };
            left = left.wrapping_sub(shift);
            at = parent;
        }
        Target {
            node: root,
            offset: target.offset.wrapping_add(shift),
        }
    }
    /// Returns the state of a target's alias set.
    pub fn content(&mut self, target: Target) -> &mut Content {
        let root = self.find(target).node;
        &mut self.contents[root as usize]
    }
    /// Returns true if a node is the representative of its alias set.
    pub fn is_root(&self, node: u32) -> bool {
        self.nodes[node as usize].parent == node
    }
    /// Returns the state of a representative.
    pub fn root_content(&self, root: u32) -> &Content {
        &self.contents[root as usize]
    }
    /// Moves the state of a representative out; the modulus stays.
    pub fn take(&mut self, root: u32) -> Content {
        let content = std::mem::take(&mut self.contents[root as usize]);
        self.contents[root as usize].modulus = content.modulus;
        content
    }
    /// Returns the cell at a target.
    pub fn cell(&mut self, target: Target) -> &mut Cell {
        let at = self.bounded(target);
        let content = &mut self.contents[at.node as usize];
        content.cells.entry(at.offset).or_default()
    }
    /// Returns the target of the pointers stored at a target.
    pub fn pointee(&mut self, target: Target) -> Target {
        if let Some(points) = self.cell(target).points {
            return points;
        }
        let points = self.fresh();
        self.cell(target).points = Some(points);
        points
    }
    /// Records that a pointer to `target` may move by any multiple of `stride` bytes.
    pub fn step(&mut self, target: Target, stride: i64) {
        if stride != 0 {
            self.unify(target, target.plus(stride));
        }
    }
    /// Records that two pointers may alias.
    pub fn unify(&mut self, a: Target, b: Target) {
        self.work.push((a, b));
        while let Some((a, b)) = self.work.pop() {
            let (a, b) = (self.find_raw(a), self.find_raw(b));
            if a.node == b.node {
                let distance = a.offset.wrapping_sub(b.offset).unsigned_abs();
                if distance != 0 {
                    let lower = if a.offset < b.offset { a } else { b };
                    self.steps.push((lower, distance));
                    self.shrink(a.node, distance);
                }
                continue;
            }
            let heavier = |t: Target, c: &[Content]| c[t.node as usize].weight();
            let (big, small) = match heavier(a, &self.contents) >= heavier(b, &self.contents) {
                true => (a, b),
                false => (b, a),
            };
            self.attach(small.node, big.node, big.offset.wrapping_sub(small.offset));
        }
    }

    /// Returns the target relative to its representative. An offset beyond [`OFFSET_MAX`] reduces the
    /// modulus to 1.
    fn bounded(&mut self, target: Target) -> Target {
        let at = self.find(target);
        if at.offset.unsigned_abs() <= OFFSET_MAX as u64 {
            return at;
        }
        self.step(at, 1);
        self.find(at)
    }

    fn attach(&mut self, small: u32, big: u32, shift: i64) {
        self.changes += 1;
        self.nodes[small as usize] = Node { parent: big, shift };
        let moved = std::mem::take(&mut self.contents[small as usize]);
        self.shrink(big, moved.modulus);
        let content = &mut self.contents[big as usize];
        content.escaped |= moved.escaped;
        content.origins.extend(moved.origins);
        for (offset, cell) in moved.cells {
            self.put(big, offset.wrapping_add(shift), cell);
        }
    }
    /// Reduces the modulus of a representative to its gcd with `step`.
    fn shrink(&mut self, root: u32, step: u64) {
        let content = &mut self.contents[root as usize];
        let step = if step > OFFSET_MAX as u64 { 1 } else { step };
        let modulus = gcd(content.modulus, step);
        if modulus == content.modulus {
            return;
        }
        self.changes += 1;
        content.modulus = modulus;
        for (offset, cell) in std::mem::take(&mut content.cells) {
            self.put(root, offset, cell);
        }
    }
    fn put(&mut self, root: u32, offset: i64, cell: Cell) {
        let content = &mut self.contents[root as usize];
        let offset = content.normal(offset);
        let slot = content.cells.entry(offset).or_default();
        slot.seen.add(&cell.seen);
        match (slot.points, cell.points) {
            (None, points) => slot.points = points,
            (Some(a), Some(b)) => self.work.push((a, b)),
            (Some(_), None) => {}
        }
    }
}

/// Returns the greatest common divisor; gcd(0, n) = n.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_structure_stay_apart_until_a_stride_joins_them() {
        let mut classes = Classes::default();
        let object = classes.fresh();
        let (a, b) = (classes.pointee(object), classes.pointee(object.plus(8)));
        classes.step(object, 24);
        let late = classes.pointee(object.plus(48));
        assert_eq!(classes.find(late), classes.find(a));
        assert_ne!(classes.find(a).node, classes.find(b).node);
        classes.step(object, 8);
        assert_eq!(classes.find(a).node, classes.find(b).node);
    }

    #[test]
    fn an_inner_pointer_joins_at_its_offset() {
        let mut classes = Classes::default();
        let (outer, inner) = (classes.fresh(), classes.fresh());
        let (x, y) = (
            classes.pointee(outer.plus(16)),
            classes.pointee(inner.plus(8)),
        );
        classes.unify(outer.plus(8), inner);
        assert_eq!(classes.find(x), classes.find(y));
        assert_eq!(classes.find(inner).node, classes.find(outer).node);
        let distance = classes.find(inner).offset - classes.find(outer).offset;
        assert_eq!(distance.abs(), 8);
    }

    #[test]
    fn a_list_is_one_class_that_points_to_itself() {
        let mut classes = Classes::default();
        let node = classes.fresh();
        let next = classes.pointee(node.plus(8));
        classes.unify(node, next);
        let far = classes.pointee(next.plus(8));
        assert_eq!(classes.find(far), classes.find(node));
        assert_eq!(classes.content(node).modulus, 0);
    }
}
