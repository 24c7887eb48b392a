//! A body: one function's code as arenas of ops, values and regions.
//!
//! Invariants: a region's ops form one doubly linked list; an operand is linked into the use list
//! of its value; results, parameters and operands refer to each other consistently. Edits go
//! through the methods here, which keep that so. Nothing here recurses over nesting.

use crate::{Arena, ConstId, Flags, LocId, MetaId, Op, OpKind, Region, TypeId, Unit, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// Result number so-and-so of an op.
    Result(Op, u32),
    /// Parameter number so-and-so of a region.
    Param(Region, u32),
    /// A constant.
    Const(ConstId),
}

/// A value.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Where it comes from.
    pub def: Definition,
    /// Its type.
    pub ty: TypeId,
    first_use: Option<Use>,
}

/// Operand number `index` of `op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// The user.
    pub op: Op,
    /// Which of its operands.
    pub index: u32,
}

/// An operand: a value, and the neighbours in the list of that value's uses.
#[derive(Clone, Debug)]
pub struct Operand {
    value: Value,
    prev: Option<Use>,
    next: Option<Use>,
}

/// An op.
#[derive(Clone, Debug)]
pub struct OpData {
    /// What it does.
    pub kind: OpKind,
    /// What is promised about it.
    pub flags: Flags,
    /// Where it stands in the source.
    pub loc: Option<LocId>,
    /// What the host stated about it.
    pub meta: Option<MetaId>,
    /// The name of its result in the source or the host, for readers.
    pub name: Option<Box<str>>,
    operands: SmallVec<[Operand; 2]>,
    results: SmallVec<[Value; 1]>,
    regions: SmallVec<[Region; 2]>,
    parent: Option<Region>,
    prev: Option<Op>,
    next: Option<Op>,
}

/// A region.
#[derive(Clone, Debug)]
pub struct RegionData {
    params: SmallVec<[Value; 2]>,
    first: Option<Op>,
    last: Option<Op>,
    owner: Option<Op>,
}

/// One function's code.
#[derive(Clone, Debug)]
pub struct Body {
    /// The ops; those erased stay behind without a parent.
    pub ops: Arena<Op, OpData>,
    /// The values.
    pub values: Arena<Value, ValueData>,
    regions: Arena<Region, RegionData>,
    root: Region,
    consts: HashMap<ConstId, Value>,
    names: HashMap<Value, Box<str>>,
}

impl Body {
    /// A body whose root region has parameters of the given types.
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
        };
        for &ty in params {
            body.add_param(root, ty);
        }
        body
    }

    // ---- reading ---------------------------------------------------------------------------

    /// The outermost region; its parameters are the function's.
    pub fn root(&self) -> Region {
        self.root
    }
    /// All regions ever made, also those of erased ops.
    pub fn regions(&self) -> impl DoubleEndedIterator<Item = Region> + use<> {
        self.regions.ids()
    }
    /// The function's parameters.
    pub fn params(&self) -> &[Value] {
        self.region_params(self.root)
    }
    /// A region's parameters.
    pub fn region_params(&self, region: Region) -> &[Value] {
        &self.regions[region].params
    }
    /// The op that owns a region; `None` for the root.
    pub fn owner(&self, region: Region) -> Option<Op> {
        self.regions[region].owner
    }
    /// The region that an op stands in; `None` once erased.
    pub fn parent(&self, op: Op) -> Option<Region> {
        self.ops[op].parent
    }
    /// The region in which an allocation at `op` is made anew for every strand: that of the nearest
    /// task, iteration or rank around, or the root.
    pub fn strand_of(&self, op: Op) -> Region {
        let mut at = self.parent(op).unwrap_or(self.root());
        while let Some(owner) = self.owner(at) {
            match self.parent(owner) {
                Some(outer) if !self.kind(owner).begins_strands() => at = outer,
                _ => break,
            }
        }
        at
    }
    /// The op before, in the same region.
    pub fn prev(&self, op: Op) -> Option<Op> {
        self.ops[op].prev
    }
    /// The op after, in the same region.
    pub fn next(&self, op: Op) -> Option<Op> {
        self.ops[op].next
    }
    /// A region's first op.
    pub fn first(&self, region: Region) -> Option<Op> {
        self.regions[region].first
    }
    /// A region's last op: its terminator, once complete.
    pub fn last(&self, region: Region) -> Option<Op> {
        self.regions[region].last
    }
    /// A region's ops in order.
    pub fn ops_in(&self, region: Region) -> impl Iterator<Item = Op> + '_ {
        std::iter::successors(self.regions[region].first, |op| self.ops[*op].next)
    }
    /// A region's ops in reverse order.
    pub fn ops_in_rev(&self, region: Region) -> impl Iterator<Item = Op> + '_ {
        std::iter::successors(self.regions[region].last, |op| self.ops[*op].prev)
    }
    /// All ops under `region` in program order; an op comes before the ops of its regions.
    pub fn walk(&self, region: Region) -> Walk<'_> {
        Walk {
            body: self,
            stack: vec![self.regions[region].first],
        }
    }
    /// The kind of an op.
    pub fn kind(&self, op: Op) -> &OpKind {
        &self.ops[op].kind
    }
    /// An op's operands.
    pub fn operands(
        &self,
        op: Op,
    ) -> impl ExactSizeIterator<Item = Value> + DoubleEndedIterator + '_ {
        self.ops[op].operands.iter().map(|o| o.value)
    }
    /// The number of an op's operands.
    pub fn operand_count(&self, op: Op) -> usize {
        self.ops[op].operands.len()
    }
    /// Operand `index` of an op.
    pub fn operand(&self, op: Op, index: usize) -> Value {
        self.ops[op].operands[index].value
    }
    /// An op's results.
    pub fn results(&self, op: Op) -> &[Value] {
        &self.ops[op].results
    }
    /// The only (or first) result of an op that has one.
    pub fn result(&self, op: Op) -> Value {
        self.ops[op].results[0]
    }
    /// The regions that an op owns.
    pub fn op_regions(&self, op: Op) -> &[Region] {
        &self.ops[op].regions
    }
    /// The type of a value.
    pub fn ty(&self, value: Value) -> TypeId {
        self.values[value].ty
    }
    /// The op whose result a value is.
    pub fn def_op(&self, value: Value) -> Option<Op> {
        match self.values[value].def {
            Definition::Result(op, _) => Some(op),
            _ => None,
        }
    }
    /// The constant that a value is.
    pub fn as_const(&self, value: Value) -> Option<ConstId> {
        match self.values[value].def {
            Definition::Const(id) => Some(id),
            _ => None,
        }
    }
    /// The value of an integer constant of at most 64 bits, sign-extended.
    pub fn as_int(&self, unit: &Unit, value: Value) -> Option<i64> {
        crate::layout::int_constant(unit, self, value)
    }
    /// The region in which a value is defined; `None` for a constant, which is visible everywhere.
    pub fn region_of(&self, value: Value) -> Option<Region> {
        match self.values[value].def {
            Definition::Result(op, _) => self.ops[op].parent,
            Definition::Param(region, _) => Some(region),
            Definition::Const(_) => None,
        }
    }
    /// The uses of a value, the latest made first.
    pub fn uses(&self, value: Value) -> impl Iterator<Item = Use> + '_ {
        std::iter::successors(self.values[value].first_use, |u| self.slot(*u).next)
    }
    /// Whether a value is used at all.
    pub fn has_uses(&self, value: Value) -> bool {
        self.values[value].first_use.is_some()
    }
    /// The region that encloses the op that owns `region`.
    pub fn enclosing(&self, region: Region) -> Option<Region> {
        self.owner(region).and_then(|op| self.parent(op))
    }

    /// The name of a value for readers, where it has one; constants have none.
    pub fn name(&self, value: Value) -> Option<&str> {
        match self.values[value].def {
            Definition::Result(op, 0) => self.ops[op].name.as_deref(),
            _ => self.names.get(&value).map(|n| &**n),
        }
    }
    /// Names a value for readers.
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

    // ---- making ----------------------------------------------------------------------------

    /// The value that stands for a constant of type `ty`.
    pub fn constant(&mut self, unit: &Unit, id: ConstId) -> Value {
        if let Some(&value) = self.consts.get(&id) {
            return value;
        }
        let ty = unit.consts.get(id).ty;
        let value = self.values.push(ValueData {
            def: Definition::Const(id),
            ty,
            first_use: None,
        });
        self.consts.insert(id, value);
        value
    }
    /// An op outside every region, with fresh results and empty regions.
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
    /// A further operand of an op.
    pub fn add_operand(&mut self, op: Op, value: Value) {
        let index = self.ops[op].operands.len() as u32;
        self.ops[op].operands.push(Operand {
            value,
            prev: None,
            next: None,
        });
        self.link(Use { op, index });
    }
    /// A further result of an op.
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
    /// A further, empty region of an op.
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
    /// A further parameter of a region.
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

    // ---- placing ---------------------------------------------------------------------------

    /// Puts an op that stands nowhere at the end of a region.
    pub fn append(&mut self, region: Region, op: Op) {
        let last = self.regions[region].last;
        self.place(region, last, op, None);
    }
    /// Puts an op that stands nowhere before another.
    pub fn insert_before(&mut self, at: Op, op: Op) {
        if let Some(region) = self.ops[at].parent {
            let prev = self.ops[at].prev;
            self.place(region, prev, op, Some(at));
        }
    }
    /// Puts an op that stands nowhere after another.
    pub fn insert_after(&mut self, at: Op, op: Op) {
        if let Some(region) = self.ops[at].parent {
            let next = self.ops[at].next;
            self.place(region, Some(at), op, next);
        }
    }
    fn place(&mut self, region: Region, prev: Option<Op>, op: Op, next: Option<Op>) {
        debug_assert!(self.ops[op].parent.is_none(), "an op stands in one place");
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
    /// Takes an op out of its region; it keeps operands, results and regions.
    pub fn detach(&mut self, op: Op) {
        let Some(region) = self.ops[op].parent.take() else {
            // Not an error: the op stands in no region.
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
    /// Erases an op and everything in its regions; its results must have no uses outside.
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

    // ---- changing operands -----------------------------------------------------------------

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
    /// Drops the operands from `len` on.
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
    /// Makes every user of `old` use `new`.
    pub fn replace_uses(&mut self, old: Value, new: Value) {
        if old == new {
            return;
        }
        while let Some(at) = self.values[old].first_use {
            self.set_operand(at.op, at.index as usize, new);
        }
    }
    /// Drops results of an op for which `keep` (in order) is false; they must have no uses.
    pub fn retain_results(&mut self, op: Op, keep: &[bool]) {
        let mut flags = keep.iter();
        self.ops[op]
            .results
            .retain(|_| *flags.next().unwrap_or(&true));
        for (index, value) in self.ops[op].results.clone().into_iter().enumerate() {
            self.values[value].def = Definition::Result(op, index as u32);
        }
    }
    /// Drops parameters of a region for which `keep` (in order) is false; they must have no uses.
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

    /// Whether `inner` is `outer` or lies inside it.
    pub fn is_inside(&self, inner: Region, outer: Region) -> bool {
        let mut at = Some(inner);
        while let Some(region) = at {
            if region == outer {
                return true;
            }
            at = self.enclosing(region);
        }
        false
    }
}

/// See [`Body::walk`].
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
