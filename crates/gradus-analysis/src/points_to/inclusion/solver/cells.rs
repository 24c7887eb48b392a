//! Memory cells: the pointers that a program stores at a location.
//!
//! A cell is one node. A program that needs too much work is solved again with tags ([`Cells::new`]): a cell then has
//! one node per TBAA tag of its stores, and one per tag of its loads. A load reads the stores with compatible tags, by
//! the aliasing rules of the language. Stores and loads without a tag are compatible with all others.

use crate::points_to::folds::Fold;
use crate::points_to::inclusion::constraints::NodeId;
use crate::points_to::inclusion::nodes::{Move, Node};
use crate::points_to::inclusion::objects::{Cell, EXTERNAL, Location, ObjectId};
use crate::points_to::inclusion::solver::Solver;
use crate::points_to::union_find::gcd;
use crate::types::tbaa;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{TbaaTag, TbaaTypeId};
use std::collections::{BTreeMap, HashMap};

/// Maximal number of cells of one object.
const CELLS_MAX: usize = 1024;

/// An access to a cell, with its tag.
#[derive(Clone, Copy, Debug)]
pub(super) enum CellUse {
    Load(Option<TbaaTag>),
    Store(Option<TbaaTag>),
}

/// The nodes of one cell, in the order of their first use. Accesses without a tag have one node.
type Nodes = Vec<(Option<TbaaTag>, NodeId)>;

/// The cells of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    uses_tags: bool,
    stored: BTreeMap<Cell, Nodes>,
    /// The nodes that loads read, if loads depend on tags.
    loaded: HashMap<Cell, Nodes>,
    count: HashMap<ObjectId, usize>,
}

impl Cells {
    /// Returns the table without cells. With `uses_tags`, loads read the stores with compatible tags alone.
    pub fn new(uses_tags: bool) -> Cells {
        Cells {
            uses_tags,
            ..Cells::default()
        }
    }
    /// Returns true if loads read the stores with compatible tags alone.
    pub fn uses_tags(&self) -> bool {
        self.uses_tags
    }
    /// Removes all cells.
    pub fn clear(&mut self) {
        *self = Cells::new(self.uses_tags);
    }
    /// Returns the nodes that hold the stores to a cell.
    pub fn stored_at(&self, at: Cell) -> impl Iterator<Item = NodeId> {
        let nodes = self.stored.get(&at).into_iter().flatten();
        nodes.map(|(_, node)| *node)
    }
    /// Returns all nodes of stores, in the order of cells.
    pub fn stored(&self) -> impl Iterator<Item = (Cell, NodeId)> {
        let cells = self.stored.iter();
        cells.flat_map(|(at, nodes)| nodes.iter().map(|(_, node)| (*at, *node)))
    }
    /// Returns the nodes of the stores to an object.
    pub fn stored_in(&self, object: ObjectId) -> Vec<(Cell, Option<TbaaTag>, NodeId)> {
        let all = |offset| Cell { object, offset };
        let cells = self.stored.range(all(i64::MIN)..=all(i64::MAX));
        let nodes = cells.flat_map(|(at, nodes)| nodes.iter().map(|node| (*at, node.0, node.1)));
        nodes.collect()
    }
}

fn find(nodes: Option<&Nodes>, tag: Option<TbaaTag>) -> Option<NodeId> {
    let found = nodes?.iter().find(|node| node.0 == tag);
    found.map(|node| node.1)
}

impl CellUse {
    /// Returns the access of the same type to no member of a structure.
    fn of_scalar(self) -> CellUse {
        let plain = |tag: TbaaTag| TbaaTag {
            base: tag.access,
            offset_bytes: 0,
            ..tag
        };
        match self {
            CellUse::Load(tag) => CellUse::Load(tag.map(plain)),
            CellUse::Store(tag) => CellUse::Store(tag.map(plain)),
        }
    }
}

impl Solver<'_> {
    /// Returns the nodes of the cells `bytes` behind a location; none for [`EXTERNAL`] and functions.
    pub(super) fn cells_at(&mut self, at: Location, bytes: i64, access: CellUse) -> Vec<NodeId> {
        let data = self.objects.get(at.object);
        if at.object == EXTERNAL || data.key.is_without_memory() {
            return Vec::new();
        }
        // A program may index the pointers in one structure like an array: the tag then names the first one.
        let is_indexed = at.stride == self.unit.layout.pointer_bytes;
        let access = if is_indexed {
            access.of_scalar()
        } else {
            access
        };
        let places = self.moved(at, bytes).into_iter();
        let nodes = places.map(|place| match access {
            CellUse::Load(tag) => self.loaded_cell(place, tag),
            CellUse::Store(tag) => self.stored_cell(place, tag),
        });
        nodes.collect()
    }
    /// Returns the node of the stores with a tag at a location.
    pub(super) fn stored_cell(&mut self, at: Location, tag: Option<TbaaTag>) -> NodeId {
        let owner = tag.map(|tag| tag.base);
        self.cell_of_owner(at, tag.filter(|_| self.cells.uses_tags), owner)
    }
    /// Returns the node of the stores with a tag at a location. The member at the location belongs to `owner`.
    fn cell_of_owner(
        &mut self,
        at: Location,
        tag: Option<TbaaTag>,
        owner: Option<TbaaTypeId>,
    ) -> NodeId {
        let at = self.objects.cell(at);
        if let Some(node) = find(self.cells.stored.get(&at), tag) {
            return node;
        }
        let node = self.new_node();
        let nodes = self.cells.stored.entry(at).or_default();
        let is_new = nodes.is_empty();
        nodes.push((tag, node));
        if tag.is_none() && self.objects.is_unknown(at) {
            let behind = self.objects.behind(at.object, at.offset, owner);
            self.add(node, Location::start(behind));
        }
        if self.escaped.contains(&at.object) {
            self.escape_cell(node, tag);
        }
        if is_new {
            self.limit_cells(at.object);
        }
        if self.is_exhausted() {
            return node;
        }
        for (load, to) in self.cells.loaded.get(&at).cloned().unwrap_or_default() {
            if self.may_read(load, tag) {
                self.edge(node, to, Move::By(0));
            }
        }
        for transfer in self.outgoing.get(&at.object).cloned().unwrap_or_default() {
            self.send(transfer, at.offset, tag, node);
        }
        if tag.is_none() && !is_planted(Mutant::ReceivedPointersLost) {
            for transfer in self.incoming.get(&at.object).cloned().unwrap_or_default() {
                self.receive(transfer, at.offset, node);
            }
        }
        node
    }
    /// Returns the node that a load with a tag reads at a location.
    fn loaded_cell(&mut self, at: Location, tag: Option<TbaaTag>) -> NodeId {
        let untagged = self.cell_of_owner(at, None, tag.map(|tag| tag.base));
        if !self.cells.uses_tags {
            return untagged;
        }
        let at = self.objects.cell(at);
        if let Some(node) = find(self.cells.loaded.get(&at), tag) {
            return node;
        }
        let node = self.new_node();
        let nodes = self.cells.loaded.entry(at).or_default();
        nodes.push((tag, node));
        for (store, from) in self.cells.stored.get(&at).cloned().unwrap_or_default() {
            if self.may_read(tag, store) {
                self.edge(from, node, Move::By(0));
            }
        }
        node
    }
    fn may_read(&self, load: Option<TbaaTag>, store: Option<TbaaTag>) -> bool {
        let (Some(load), Some(store)) = (load, store) else {
            return true;
        };
        tbaa::may_alias(self.unit, &load, &store)
    }
    fn new_node(&mut self) -> NodeId {
        let node = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::default());
        self.representatives.push();
        node
    }
    fn limit_cells(&mut self, object: ObjectId) {
        let count = self.cells.count.entry(object).or_default();
        *count += 1;
        if *count > CELLS_MAX {
            let cells = self.cells.stored_in(object);
            let steps = cells
                .windows(2)
                .map(|pair| pair[0].0.offset.abs_diff(pair[1].0.offset));
            let stride = steps.fold(0, gcd).max(1);
            self.fold(object, Fold::of_whole_object(stride));
        }
    }
}
