//! Union-find with offsets: the core of the alias-set analysis.
//!
//! Steensgaard's analysis (POPL 1996), made field-sensitive by a *weighted* union-find. A target is a node
//! and an offset in it. Each alias set has a modulus m: offsets count modulo m; m = 0 means exact offsets.
//! A pointer increment by an unknown multiple of s unifies (c, o) with (c, o + s), which makes m = gcd(m,
//! s). An array of 24-byte structures has three separate cells; an array of doubles has one. The contents
//! of an alias set are stored per offset (a [`CellNode`]). If two cells merge, a worklist unifies their
//! pointees. A modulus at least halves on each change, and the smaller of two maps moves into the larger:
//! O(n log² n) in total.

use crate::points_to::alias_sets::MemoryOrigin;
use std::collections::BTreeMap;

/// A node and an offset in it: the target of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeOffset {
    pub node: u32,
    pub offset: i64,
}

impl NodeOffset {
    /// Returns the target `bytes` further on.
    pub fn plus(self, bytes: i64) -> NodeOffset {
        NodeOffset {
            node: self.node,
            offset: self.offset.wrapping_add(bytes),
        }
    }
}

/// Largest tracked offset. Larger offsets reduce the modulus to 1.
const OFFSET_MAX: i64 = 1 << 40;

/// State of the memory cell at one offset of an alias set.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellNode {
    /// Target of the pointers stored in the cell.
    pub target: Option<NodeOffset>,
    /// Types observed in the cell.
    pub observed: crate::types::lattice::CellType,
}

/// State of an alias set.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeState {
    pub modulus: u64,
    pub cells: BTreeMap<i64, CellNode>,
    pub origins: Vec<MemoryOrigin>,
    pub escaped: bool,
}

impl NodeState {
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
pub(crate) struct AliasSetUnifier {
    nodes: Vec<Node>,
    contents: Vec<NodeState>,
    work: Vec<(NodeOffset, NodeOffset)>,
    /// Number of unions and modulus changes. A fixpoint loop compares it before and after a round.
    pub changes: usize,
    /// Repeated pointer increments: start and stride in bytes.
    pub steps: Vec<(NodeOffset, u64)>,
}

impl AliasSetUnifier {
    /// Creates an alias set and returns its offset 0.
    pub fn new_node(&mut self) -> NodeOffset {
        let node = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent: node,
            shift: 0,
        });
        self.contents.push(NodeState::default());
        NodeOffset { node, offset: 0 }
    }
    /// Returns the number of nodes created.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
    /// Returns the target relative to its representative, normalised by the modulus.
    pub fn find(&mut self, target: NodeOffset) -> NodeOffset {
        let raw = self.find_raw(target);
        NodeOffset {
            node: raw.node,
            offset: self.contents[raw.node as usize].normal(raw.offset),
        }
    }
    /// Returns the target relative to its representative, without reduction by the modulus.
    pub fn find_raw(&mut self, target: NodeOffset) -> NodeOffset {
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
        NodeOffset {
            node: root,
            offset: target.offset.wrapping_add(shift),
        }
    }
    /// Returns the state of a target's alias set.
    pub fn content(&mut self, target: NodeOffset) -> &mut NodeState {
        let root = self.find(target).node;
        &mut self.contents[root as usize]
    }
    /// Returns true if a node is the representative of its alias set.
    pub fn is_root(&self, node: u32) -> bool {
        self.nodes[node as usize].parent == node
    }
    /// Returns the state of a representative.
    pub fn root_content(&self, root: u32) -> &NodeState {
        &self.contents[root as usize]
    }
    /// Moves the state of a representative out; the modulus stays.
    pub fn take_content(&mut self, root: u32) -> NodeState {
        let content = std::mem::take(&mut self.contents[root as usize]);
        self.contents[root as usize].modulus = content.modulus;
        content
    }
    /// Returns the cell at a target.
    pub fn cell(&mut self, target: NodeOffset) -> &mut CellNode {
        let at = self.find_bounded(target);
        let content = &mut self.contents[at.node as usize];
        content.cells.entry(at.offset).or_default()
    }
    /// Returns the target of the pointers stored at a target.
    pub fn pointee(&mut self, target: NodeOffset) -> NodeOffset {
        if let Some(points) = self.cell(target).target {
            return points;
        }
        let points = self.new_node();
        self.cell(target).target = Some(points);
        points
    }
    /// Records that a pointer to `target` may move by any multiple of `stride` bytes.
    pub fn add_stride(&mut self, target: NodeOffset, stride: i64) {
        if stride != 0 {
            self.unify(target, target.plus(stride));
        }
    }
    /// Records that two pointers may alias.
    pub fn unify(&mut self, a: NodeOffset, b: NodeOffset) {
        self.work.push((a, b));
        while let Some((a, b)) = self.work.pop() {
            let (a, b) = (self.find_raw(a), self.find_raw(b));
            if a.node == b.node {
                let distance = a.offset.wrapping_sub(b.offset).unsigned_abs();
                if distance != 0 {
                    let lower = if a.offset < b.offset { a } else { b };
                    self.steps.push((lower, distance));
                    self.reduce_modulus(a.node, distance);
                }
                continue;
            }
            let heavier = |t: NodeOffset, c: &[NodeState]| c[t.node as usize].weight();
            let (big, small) = match heavier(a, &self.contents) >= heavier(b, &self.contents) {
                true => (a, b),
                false => (b, a),
            };
            self.merge_into(small.node, big.node, big.offset.wrapping_sub(small.offset));
        }
    }

    /// Returns the target relative to its representative. An offset beyond [`OFFSET_MAX`] reduces the
    /// modulus to 1.
    fn find_bounded(&mut self, target: NodeOffset) -> NodeOffset {
        let at = self.find(target);
        if at.offset.unsigned_abs() <= OFFSET_MAX as u64 {
            return at;
        }
        self.add_stride(at, 1);
        self.find(at)
    }

    fn merge_into(&mut self, small: u32, big: u32, shift: i64) {
        self.changes += 1;
        self.nodes[small as usize] = Node { parent: big, shift };
        let moved = std::mem::take(&mut self.contents[small as usize]);
        self.reduce_modulus(big, moved.modulus);
        let content = &mut self.contents[big as usize];
        content.escaped |= moved.escaped;
        content.origins.extend(moved.origins);
        for (offset, cell) in moved.cells {
            self.merge_cell(big, offset.wrapping_add(shift), cell);
        }
    }
    /// Reduces the modulus of a representative to its gcd with `step`.
    fn reduce_modulus(&mut self, root: u32, step: u64) {
        let content = &mut self.contents[root as usize];
        let step = if step > OFFSET_MAX as u64 { 1 } else { step };
        let modulus = gcd(content.modulus, step);
        if modulus == content.modulus {
            return;
        }
        self.changes += 1;
        content.modulus = modulus;
        for (offset, cell) in std::mem::take(&mut content.cells) {
            self.merge_cell(root, offset, cell);
        }
    }
    fn merge_cell(&mut self, root: u32, offset: i64, cell: CellNode) {
        let content = &mut self.contents[root as usize];
        let offset = content.normal(offset);
        let slot = content.cells.entry(offset).or_default();
        slot.observed.add(&cell.observed);
        match (slot.target, cell.target) {
            (None, points) => slot.target = points,
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
    fn struct_cells_separate_until_strided() {
        let mut classes = AliasSetUnifier::default();
        let object = classes.new_node();
        let (a, b) = (classes.pointee(object), classes.pointee(object.plus(8)));
        classes.add_stride(object, 24);
        let late = classes.pointee(object.plus(48));
        assert_eq!(classes.find(late), classes.find(a));
        assert_ne!(classes.find(a).node, classes.find(b).node);
        classes.add_stride(object, 8);
        assert_eq!(classes.find(a).node, classes.find(b).node);
    }

    #[test]
    fn inner_pointer_unifies_at_offset() {
        let mut classes = AliasSetUnifier::default();
        let (outer, inner) = (classes.new_node(), classes.new_node());
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
    fn list_is_one_self_referential_set() {
        let mut classes = AliasSetUnifier::default();
        let node = classes.new_node();
        let next = classes.pointee(node.plus(8));
        classes.unify(node, next);
        let far = classes.pointee(next.plus(8));
        assert_eq!(classes.find(far), classes.find(node));
        assert_eq!(classes.content(node).modulus, 0);
    }
}
