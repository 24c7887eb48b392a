//! Function bodies as arenas of ops, values and regions.
//!
//! # Invariants
//!
//! - The ops of a region form one doubly linked list.
//! - Each operand is linked into the use list of the operand's value.
//! - Results, parameters and operands refer to each other consistently.
//!
//! All edits go through the methods of [`Body`], and each method preserves the invariants. No method recurses
//! over region depth.

use crate::stamps::Stamp;
use crate::{Arena, ConstId, Flags, LocId, MetaId, Op, OpKind, Region, TypeId, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// The numbered result of an op.
    Result(Op, u32),
    /// The numbered parameter of a region.
    Param(Region, u32),
    /// A constant.
    Const(ConstId),
}

/// A value: definition, type and use list.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// The value's definition.
    pub def: Definition,
    /// The value's type.
    pub ty: TypeId,
    first_use: Option<Use>,
}

/// Operand number `index` of `op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// The user.
    pub op: Op,
    /// The operand number.
    pub index: u32,
}

/// An operand: a value and the neighbours in the value's use list.
#[derive(Clone, Debug)]
pub struct Operand {
    value: Value,
    prev: Option<Use>,
    next: Option<Use>,
}

/// An op: kind, flags, operands, results, regions and list links.
#[derive(Clone, Debug)]
pub struct OpData {
    /// The kind of op.
    pub kind: OpKind,
    /// Flags: LLVM's poison-generating and fast-math flags, and Gradus's own flags.
    pub flags: Flags,
    /// The source location.
    pub loc: Option<LocId>,
    /// Metadata stated by the host.
    pub meta: Option<MetaId>,
    /// The name of the first result in the source or the host, for printing.
    pub name: Option<Box<str>>,
    operands: SmallVec<[Operand; 2]>,
    results: SmallVec<[Value; 1]>,
    regions: SmallVec<[Region; 2]>,
    parent: Option<Region>,
    prev: Option<Op>,
    next: Option<Op>,
}

/// A region: parameters, op list and owner.
#[derive(Clone, Debug)]
pub struct RegionData {
    params: SmallVec<[Value; 2]>,
    first: Option<Op>,
    last: Option<Op>,
    owner: Option<Op>,
}

/// The code of one function.
#[derive(Clone, Debug)]
pub struct Body {
    /// The ops. Erased ops remain in the arena without a parent.
    pub ops: Arena<Op, OpData>,
    /// The values.
    pub values: Arena<Value, ValueData>,
    regions: Arena<Region, RegionData>,
    root: Region,
    consts: HashMap<ConstId, Value>,
    names: HashMap<Value, Box<str>>,
    version: Stamp,
}

/// A stamp of the contents of a body: bodies with equal stamps are equal. Names of values do not count.
///
/// A mutable access to an op, a value or a region makes the stamp outdated, and the next query draws a new one. A
/// copy of a body has the stamp of the original until either is edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyVersion(u64);

impl Body {
    /// Creates a body; the root region has parameters of the types `params`.
    pub fn new(params: &[TypeId]) -> Self {
        let mut regions = Arena::default();
        let root = regions.push(RegionData {
            params: SmallVec::new(),
            first: None,
            last: None,
            owner: None,
        });
        let mut body = Body {
            ops: Arena::default(),
            values: Arena::default(),
            regions,
            root,
            consts: HashMap::new(),
            names: HashMap::new(),
            version: Stamp::default(),
        };
        for &ty in params {
            body.add_param(root, ty);
        }
        body
    }

    // ---- reading ---------------------------------------------------------------------------

    /// Returns the stamp of the present contents.
    pub fn version(&self) -> BodyVersion {
        // All three flags must be taken.
        let touched = [
            self.ops.take_touched(),
            self.values.take_touched(),
            self.regions.take_touched(),
        ];
        if touched.contains(&true) {
            self.version.renew();
        }
        BodyVersion(self.version.number())
    }

    /// Returns the outermost region. The region's parameters are the function's parameters.
    pub fn root(&self) -> Region {
        self.root
    }
    /// Returns all regions ever created, regions of erased ops included.
    pub fn regions(&self) -> impl DoubleEndedIterator<Item = Region> + use<> {
        self.regions.ids()
    }
    /// Returns the function's parameters.
    pub fn params(&self) -> &[Value] {
        self.region_params(self.root)
    }
    /// Returns a region's parameters.
    pub fn region_params(&self, region: Region) -> &[Value] {
        &self.regions[region].params
    }
    /// Returns the op that owns a region; `None` for the root.
    pub fn owner(&self, region: Region) -> Option<Op> {
        self.regions[region].owner
    }
    /// Returns the region that contains an op; `None` for a detached or erased op.
    pub fn parent(&self, op: Op) -> Option<Region> {
        self.ops[op].parent
    }
    /// Returns the region in which an alloca at `op` is fresh for each strand: the region of the nearest
    /// enclosing task, iteration or rank, or the root.
    pub fn enclosing_strand(&self, op: Op) -> Region {
        let mut at = self.parent(op).unwrap_or(self.root());
        while let Some(owner) = self.owner(at) {
            match self.parent(owner) {
                Some(outer) if !self.kind(owner).is_strand_op() => at = outer,
                _ => break,
            }
        }
        at
    }
    /// Returns the previous op in the region.
    pub fn prev(&self, op: Op) -> Option<Op> {
        self.ops[op].prev
    }
    /// Returns the next op in the region.
    pub fn next(&self, op: Op) -> Option<Op> {
        self.ops[op].next
    }
    /// Returns a region's first op.
    pub fn first(&self, region: Region) -> Option<Op> {
        self.regions[region].first
    }
    /// Returns a region's last op: the terminator of a complete region.
    pub fn last(&self, region: Region) -> Option<Op> {
        self.regions[region].last
    }
    /// Iterates over a region's ops in order.
    pub fn ops_in(&self, region: Region) -> impl Iterator<Item = Op> + '_ {
        std::iter::successors(self.regions[region].first, |op| self.ops[*op].next)
    }
    /// Iterates over a region's ops in reverse order.
    pub fn ops_in_rev(&self, region: Region) -> impl Iterator<Item = Op> + '_ {
        std::iter::successors(self.regions[region].last, |op| self.ops[*op].prev)
    }
    /// Iterates over all ops under `region` in program order (pre-order: an op precedes the ops of nested
    /// regions).
    pub fn walk(&self, region: Region) -> Walk<'_> {
        Walk {
            body: self,
            stack: vec![self.regions[region].first],
        }
    }
    /// Returns the kind of an op.
    pub fn kind(&self, op: Op) -> &OpKind {
        &self.ops[op].kind
    }
    /// Iterates over an op's operands.
    pub fn operands(
        &self,
        op: Op,
    ) -> impl ExactSizeIterator<Item = Value> + DoubleEndedIterator + '_ {
        self.ops[op].operands.iter().map(|o| o.value)
    }
    /// Returns the number of operands of an op.
    pub fn operand_count(&self, op: Op) -> usize {
        self.ops[op].operands.len()
    }
    /// Returns operand `index` of an op.
    pub fn operand(&self, op: Op, index: usize) -> Value {
        self.ops[op].operands[index].value
    }
    /// Returns the result of a call: the op's result, or the parameter of an invoke's region 0.
    pub fn call_result(&self, op: Op) -> Option<Value> {
        match self.kind(op) {
            OpKind::Invoke(_) => {
                let normal = *self.op_regions(op).first()?;
                self.region_params(normal).first().copied()
            }
            OpKind::Call(_) => self.results(op).first().copied(),
            _ => None,
        }
    }
    /// Returns an op's results.
    pub fn results(&self, op: Op) -> &[Value] {
        &self.ops[op].results
    }
    /// Returns the first result of an op; panics if the op has none.
    pub fn result(&self, op: Op) -> Value {
        self.ops[op].results[0]
    }
    /// Returns the regions owned by an op.
    pub fn op_regions(&self, op: Op) -> &[Region] {
        &self.ops[op].regions
    }
    /// Returns the type of a value.
    pub fn ty(&self, value: Value) -> TypeId {
        self.values[value].ty
    }
    /// Returns the op that defines a value; `None` for parameters and constants.
    pub fn def_op(&self, value: Value) -> Option<Op> {
        match self.values[value].def {
            Definition::Result(op, _) => Some(op),
            _ => None,
        }
    }
    /// Returns the constant behind a value; `None` for results and parameters.
    pub fn as_const(&self, value: Value) -> Option<ConstId> {
        match self.values[value].def {
            Definition::Const(id) => Some(id),
            _ => None,
        }
    }
    /// Returns the region that defines a value; `None` for a constant, visible in every region.
    pub fn region_of(&self, value: Value) -> Option<Region> {
        match self.values[value].def {
            Definition::Result(op, _) => self.ops[op].parent,
            Definition::Param(region, _) => Some(region),
            Definition::Const(_) => None,
        }
    }
    /// Iterates over the uses of a value, the most recently linked use first.
    pub fn uses(&self, value: Value) -> impl Iterator<Item = Use> + '_ {
        std::iter::successors(self.values[value].first_use, |u| self.slot(*u).next)
    }
    /// Returns whether a value has uses.
    pub fn has_uses(&self, value: Value) -> bool {
        self.values[value].first_use.is_some()
    }
    /// Returns the parent region of the op that owns `region`.
    pub fn enclosing(&self, region: Region) -> Option<Region> {
        self.owner(region).and_then(|op| self.parent(op))
    }

    /// Returns the printed name of a value, if any. Constants usually have no name.
    pub fn name(&self, value: Value) -> Option<&str> {
        match self.values[value].def {
            Definition::Result(op, 0) => self.ops[op].name.as_deref(),
            _ => self.names.get(&value).map(|n| &**n),
        }
    }
    /// Sets the printed name of a value.
    pub fn set_name(&mut self, value: Value, name: &str) {
        match self.values[value].def {
            Definition::Result(op, 0) => self.ops[op].name = Some(name.into()),
            _ => {
                self.names.insert(value, name.into());
            }
        }
    }

    fn slot(&self, at: Use) -> &Operand {
        &self.ops[at.op].operands[at.index as usize]
    }
    fn slot_mut(&mut self, at: Use) -> &mut Operand {
        &mut self.ops[at.op].operands[at.index as usize]
    }

    // ---- construction ----------------------------------------------------------------------

    /// Returns the value of constant `id` of type `ty` in this body, created on first use.
    pub(crate) fn typed_constant(&mut self, id: ConstId, ty: TypeId) -> Value {
        if let Some(&value) = self.consts.get(&id) {
            return value;
        }
        let value = self.values.push(ValueData {
            def: Definition::Const(id),
            ty,
            first_use: None,
        });
        self.consts.insert(id, value);
        value
    }
    /// Creates a detached op with fresh results and empty regions.
    pub fn new_op(
        &mut self,
        kind: OpKind,
        operands: &[Value],
        results: &[TypeId],
        regions: usize,
    ) -> Op {
        let op = self.ops.push(OpData {
            kind,
            flags: Flags::NONE,
            loc: None,
            meta: None,
            name: None,
            operands: SmallVec::new(),
            results: SmallVec::new(),
            regions: SmallVec::new(),
            parent: None,
            prev: None,
            next: None,
        });
        for &value in operands {
            self.add_operand(op, value);
        }
        for &ty in results {
            self.add_result(op, ty);
        }
        for _ in 0..regions {
            self.add_region(op);
        }
        op
    }
    /// Appends an operand to an op.
    pub fn add_operand(&mut self, op: Op, value: Value) {
        let index = self.ops[op].operands.len() as u32;
        self.ops[op].operands.push(Operand {
            value,
            prev: None,
            next: None,
        });
        self.link(Use { op, index });
    }
    /// Appends a result to an op.
    pub fn add_result(&mut self, op: Op, ty: TypeId) -> Value {
        let index = self.ops[op].results.len() as u32;
        let value = self.values.push(ValueData {
            def: Definition::Result(op, index),
            ty,
            first_use: None,
        });
        self.ops[op].results.push(value);
        value
    }
    /// Appends an empty region to an op.
    pub fn add_region(&mut self, op: Op) -> Region {
        let region = self.regions.push(RegionData {
            params: SmallVec::new(),
            first: None,
            last: None,
            owner: Some(op),
        });
        self.ops[op].regions.push(region);
        region
    }
    /// Appends a parameter to a region.
    pub fn add_param(&mut self, region: Region, ty: TypeId) -> Value {
        let index = self.regions[region].params.len() as u32;
        let value = self.values.push(ValueData {
            def: Definition::Param(region, index),
            ty,
            first_use: None,
        });
        self.regions[region].params.push(value);
        value
    }

    // ---- placement -------------------------------------------------------------------------

    /// Appends a detached op to a region.
    pub fn append(&mut self, region: Region, op: Op) {
        let last = self.regions[region].last;
        self.link_op(region, last, op, None);
    }
    /// Inserts a detached op before `at`; no effect if `at` is detached.
    pub fn insert_before(&mut self, at: Op, op: Op) {
        if let Some(region) = self.ops[at].parent {
            let prev = self.ops[at].prev;
            self.link_op(region, prev, op, Some(at));
        }
    }
    /// Inserts a detached op after `at`; no effect if `at` is detached.
    pub fn insert_after(&mut self, at: Op, op: Op) {
        if let Some(region) = self.ops[at].parent {
            let next = self.ops[at].next;
            self.link_op(region, Some(at), op, next);
        }
    }
    fn link_op(&mut self, region: Region, prev: Option<Op>, op: Op, next: Option<Op>) {
        debug_assert!(self.ops[op].parent.is_none(), "an op occurs once in a body");
        self.ops[op].parent = Some(region);
        self.ops[op].prev = prev;
        self.ops[op].next = next;
        match prev {
            Some(p) => self.ops[p].next = Some(op),
            None => self.regions[region].first = Some(op),
        }
        match next {
            Some(n) => self.ops[n].prev = Some(op),
            None => self.regions[region].last = Some(op),
        }
    }
    /// Removes an op from the region; operands, results and nested regions are unchanged.
    pub fn detach(&mut self, op: Op) {
        let Some(region) = self.ops[op].parent.take() else {
            // Not an error: the op is already detached.
            return;
        };
        let (prev, next) = (self.ops[op].prev.take(), self.ops[op].next.take());
        match prev {
            Some(p) => self.ops[p].next = next,
            None => self.regions[region].first = next,
        }
        match next {
            Some(n) => self.ops[n].prev = prev,
            None => self.regions[region].last = prev,
        }
    }
    /// Erases an op and all ops of nested regions. The results must have no uses outside.
    pub fn erase(&mut self, op: Op) {
        let mut doomed = vec![op];
        let mut next = 0;
        while next < doomed.len() {
            for region in self.ops[doomed[next]].regions.clone() {
                doomed.extend(self.ops_in(region));
            }
            next += 1;
        }
        for &op in &doomed {
            self.detach(op);
            self.truncate_operands(op, 0);
        }
    }

    // ---- operand edits ---------------------------------------------------------------------

    /// Replaces operand `index` of an op.
    pub fn set_operand(&mut self, op: Op, index: usize, value: Value) {
        let at = Use {
            op,
            index: index as u32,
        };
        self.unlink(at);
        self.slot_mut(at).value = value;
        self.link(at);
    }
    /// Removes the operands from index `len` on.
    pub fn truncate_operands(&mut self, op: Op, len: usize) {
        for index in (len..self.ops[op].operands.len()).rev() {
            self.unlink(Use {
                op,
                index: index as u32,
            });
            self.ops[op].operands.pop();
        }
    }
    /// Replaces all operands of an op.
    pub fn set_operands(&mut self, op: Op, values: &[Value]) {
        self.truncate_operands(op, 0);
        for &value in values {
            self.add_operand(op, value);
        }
    }
    /// Replaces all uses of `old` by `new`.
    pub fn replace_uses(&mut self, old: Value, new: Value) {
        if old == new {
            return;
        }
        while let Some(at) = self.values[old].first_use {
            self.set_operand(at.op, at.index as usize, new);
        }
    }
    /// Removes the results with `keep[i] == false` (missing entries count as true). Removed results must have
    /// no uses.
    pub fn retain_results(&mut self, op: Op, keep: &[bool]) {
        let mut flags = keep.iter();
        self.ops[op]
            .results
            .retain(|_| *flags.next().unwrap_or(&true));
        for (index, value) in self.ops[op].results.clone().into_iter().enumerate() {
            self.values[value].def = Definition::Result(op, index as u32);
        }
    }
    /// Removes the region parameters with `keep[i] == false` (missing entries count as true). Removed
    /// parameters must have no uses.
    pub fn retain_params(&mut self, region: Region, keep: &[bool]) {
        let mut flags = keep.iter();
        self.regions[region]
            .params
            .retain(|_| *flags.next().unwrap_or(&true));
        for (index, value) in self.regions[region].params.clone().into_iter().enumerate() {
            self.values[value].def = Definition::Param(region, index as u32);
        }
    }
    /// Moves an op to the end of a region.
    pub fn move_op(&mut self, op: Op, to: Region) {
        self.detach(op);
        self.append(to, op);
    }
    /// Moves all ops of `from` to the end of `to`.
    pub fn move_ops(&mut self, from: Region, to: Region) {
        while let Some(op) = self.regions[from].first {
            self.detach(op);
            self.append(to, op);
        }
    }

    fn link(&mut self, at: Use) {
        let value = self.slot(at).value;
        let head = self.values[value].first_use.replace(at);
        let slot = self.slot_mut(at);
        slot.prev = None;
        slot.next = head;
        if let Some(head) = head {
            self.slot_mut(head).prev = Some(at);
        }
    }
    fn unlink(&mut self, at: Use) {
        let Operand { value, prev, next } = self.slot(at).clone();
        match prev {
            Some(p) => self.slot_mut(p).next = next,
            None => self.values[value].first_use = next,
        }
        if let Some(n) = next {
            self.slot_mut(n).prev = prev;
        }
    }
}

/// Pre-order iterator over ops, see [`Body::walk`].
#[derive(Debug)]
pub struct Walk<'a> {
    body: &'a Body,
    stack: Vec<Option<Op>>,
}

impl Iterator for Walk<'_> {
    type Item = Op;
    fn next(&mut self) -> Option<Op> {
        loop {
            let top = self.stack.last_mut()?;
            let Some(op) = *top else {
                self.stack.pop();
                continue;
            };
            *top = self.body.ops[op].next;
            for &region in self.body.ops[op].regions.iter().rev() {
                self.stack.push(self.body.regions[region].first);
            }
            return Some(op);
        }
    }
}
