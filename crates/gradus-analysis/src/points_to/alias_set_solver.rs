//! Solver of alias-set constraints: the fixpoint over copies, indirect calls and pointer differences.
//!
//! The constraints of ops come from [`crate::points_to::constraints`]. An unresolved indirect call escapes only after
//! all other facts are exhausted. Unknown code is one alias set that points to itself; all memory reachable from
//! unknown code is merged with it.

use crate::call_graph::{CallGraph, Callee};
use crate::cfg::no_return::NoReturnRegions;
use crate::points_to::alias_sets::{
    AliasSet, AliasSetId, AliasSets, CellRef, CellState, CopyBytes, MemoryOrigin,
};
use crate::points_to::constraints::ConstraintBuilder;
use crate::points_to::folds::Fold;
use crate::points_to::leaf_tables::Slots;
use crate::points_to::pointer_arith::OffsetConstraint;
use crate::points_to::union_find::{AliasSetUnifier, NodeOffset};
use crate::types::flat_aggregates::FlatTypes;
use crate::types::lattice::CellType;
use gradus_ir::{
    Body, Entity, FuncId, GlobalId, Op, OpKind, TbaaTypeId, Type, TypeId, Unit, Value,
};
use std::collections::{HashMap, HashSet};

/// Computes [`AliasSets::of`].
pub(crate) fn solve(unit: &Unit, closure: &CallGraph) -> AliasSets {
    let mut solver = Solver::new(unit, closure);
    solver.add_initializers();
    for &func in closure.roots() {
        solver.root(func);
    }
    for (func, body) in closure.bodies(unit) {
        solver.declare_params(func, body);
        let mut at = ConstraintBuilder {
            solver: &mut solver,
            func,
            body,
        };
        let lost = NoReturnRegions::of(unit, body);
        for op in body.walk(body.root()) {
            let handed = matches!(body.kind(op), OpKind::Store(_))
                || matches!(closure.callee(unit, body, op), Some(Callee::Outside(_)));
            // A function that never returns gets no constraints from stores and external calls on no-return
            // paths.
            if !(handed && lost.contains(body, op)) {
                at.op(op);
            }
        }
    }
    solver.solve_fixpoint();
    solver.finish()
}

/// A byte copy, before the alias sets are final.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub at: (FuncId, Op),
    pub to: NodeOffset,
    pub from: NodeOffset,
    pub size_bytes: Option<u64>,
}

/// An indirect call: target of the callee pointer, arguments and result.
#[derive(Clone)]
pub(super) struct IndirectCall {
    pub(super) at: (FuncId, Op),
    pub(super) address: NodeOffset,
    /// Location from which the callee pointer is loaded, if known.
    pub(super) loaded_from: Option<NodeOffset>,
    pub(super) signature: TypeId,
    pub(super) params: Vec<Vec<NodeOffset>>,
    pub(super) result: Vec<NodeOffset>,
}

/// Policy for unresolved facts: an indirect call without known callees, or a pointer difference between two
/// distinct alias sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnresolvedPolicy {
    /// Defers the call or difference to a later round.
    Defer,
    /// Assumes distance 0 if the target exists only through the distance itself; otherwise defers.
    AssumeZero,
    /// The callee is unknown code; the distance is any number of bytes.
    Escape,
}

/// The alias sets under construction, with the facts of all bodies.
pub(crate) struct Solver<'a> {
    pub unit: &'a Unit,
    pub closure: &'a CallGraph,
    pub leaves: FlatTypes,
    pub classes: AliasSetUnifier,
    pub slots: HashMap<FuncId, Slots<NodeOffset>>,
    returns: HashMap<FuncId, Vec<Option<NodeOffset>>>,
    globals: HashMap<GlobalId, NodeOffset>,
    functions: HashMap<FuncId, NodeOffset>,
    pub copies: Vec<Copy>,
    /// Pointers moved by pointer differences.
    pub offset_constraints: Vec<OffsetConstraint>,
    unseen: Option<NodeOffset>,
    /// Indirect calls.
    pub(super) indirect: Vec<IndirectCall>,
    bound_calls: HashSet<(FuncId, Op, FuncId)>,
    /// Type evidence of accesses to single cells.
    pub evidence: Vec<(NodeOffset, CellType)>,
    pub bases: HashSet<(NodeOffset, TbaaTypeId)>,
    pub sources: HashSet<(NodeOffset, TypeId)>,
}

impl<'a> Solver<'a> {
    fn new(unit: &'a Unit, closure: &'a CallGraph) -> Self {
        let leaves = FlatTypes::of(unit);
        let mut slots = HashMap::new();
        let mut returns = HashMap::new();
        for (func, body) in closure.bodies(unit) {
            slots.insert(func, Slots::new(body, &leaves));
            let result = unit.result_type(unit.functions[func].ty);
            let count = result.map_or(0, |ty| leaves.get(ty).len());
            returns.insert(func, vec![None; count]);
        }
        Solver {
            unit,
            closure,
            leaves,
            classes: AliasSetUnifier::default(),
            slots,
            returns,
            globals: HashMap::new(),
            functions: HashMap::new(),
            copies: Vec::new(),
            offset_constraints: Vec::new(),
            unseen: None,
            indirect: Vec::new(),
            bound_calls: HashSet::new(),
            evidence: Vec::new(),
            bases: HashSet::new(),
            sources: HashSet::new(),
        }
    }

    /// Returns true if a leaf of this type may hold an address.
    pub fn holds_address(&self, ty: TypeId) -> bool {
        match self.unit.types.get(self.unit.types.scalar(ty)) {
            Type::Ptr(_) | Type::Array { .. } | Type::Struct { .. } => true,
            Type::Int(bits) => u64::from(*bits) >= self.unit.layout.pointer_bytes * 8,
            _ => false,
        }
    }
    /// Creates an alias set for a new object.
    pub fn object(&mut self, origin: MemoryOrigin) -> NodeOffset {
        let target = self.classes.new_node();
        self.classes.content(target).origins.push(origin);
        target
    }
    /// Returns the alias set of unknown code. The set points to itself at every offset.
    pub fn unseen(&mut self) -> NodeOffset {
        if let Some(target) = self.unseen {
            return target;
        }
        let target = self.object(MemoryOrigin::Unknown);
        self.unseen = Some(target);
        self.classes.content(target).escaped = true;
        self.classes.add_stride(target, 1);
        let points = self.classes.pointee(target);
        self.classes.unify(points, target);
        self.classes
            .cell(target)
            .observed
            .add(&CellType::UNKNOWN_WRITE);
        target
    }
    /// Returns the start of a global variable.
    pub fn global(&mut self, global: GlobalId) -> NodeOffset {
        if let Some(&target) = self.globals.get(&global) {
            return target;
        }
        let target = self.object(MemoryOrigin::Global(global));
        self.globals.insert(global, target);
        target
    }
    /// Returns the address of a function.
    pub fn function(&mut self, func: FuncId) -> NodeOffset {
        if let Some(&target) = self.functions.get(&func) {
            return target;
        }
        let target = self.object(MemoryOrigin::Function(func));
        self.functions.insert(func, target);
        target
    }

    fn root(&mut self, func: FuncId) {
        let Some(body) = self.unit.functions[func].body.as_deref() else {
            // Not an error: the parameters of a function without a body have no uses.
            return;
        };
        for (number, &param) in body.params().iter().enumerate() {
            if self.address_leaves(body.ty(param)).contains(&true) {
                let object = self.object(MemoryOrigin::Argument(func, number as u32));
                self.point_leaves_to(func, body, param, object);
            }
        }
    }
    /// Returns, per leaf of a type, true if the leaf may hold an address.
    fn address_leaves(&self, ty: TypeId) -> Vec<bool> {
        let leaves = self.leaves.get(ty).iter();
        leaves.map(|leaf| self.holds_address(leaf.ty)).collect()
    }
    /// Records that every address leaf of `value` may point to `target`.
    pub(super) fn point_leaves_to(
        &mut self,
        func: FuncId,
        body: &Body,
        value: Value,
        target: NodeOffset,
    ) {
        let range = self.slots[&func].range(value);
        for (position, holds) in range.zip(self.address_leaves(body.ty(value))) {
            if holds {
                self.unify_leaf(func, position, target);
            }
        }
    }
    /// Records that the leaf at `position` may point to `target`.
    pub fn unify_leaf(&mut self, func: FuncId, position: usize, target: NodeOffset) {
        let Some(slots) = self.slots.get_mut(&func) else {
            unreachable!("every function of the call graph has a table of its values' leaves");
        };
        match *slots.at(position) {
            Some(old) => self.classes.unify(old, target),
            None => *slots.at(position) = Some(target),
        }
    }
    /// Returns the target of the leaf at `position`.
    pub fn slot(&mut self, func: FuncId, position: usize) -> Option<NodeOffset> {
        let slot = self.slots.get_mut(&func)?.at(position);
        match *slot {
            Some(target) => Some(target),
            None => {
                let target = self.classes.new_node();
                *slot = Some(target);
                Some(target)
            }
        }
    }

    /// Returns the targets of the leaves of `func`'s result.
    pub(super) fn result_of(&mut self, func: FuncId) -> Vec<NodeOffset> {
        let Some(slots) = self.returns.get_mut(&func) else {
            unreachable!("every function of the call graph has a table of its result's leaves");
        };
        let classes = &mut self.classes;
        let list = slots.iter_mut();
        list.map(|slot| *slot.get_or_insert_with(|| classes.new_node()))
            .collect()
    }
    /// Creates alias sets for the parameters and the result of an indirect call.
    pub(super) fn fresh_signature(
        &mut self,
        signature: TypeId,
    ) -> (Vec<Vec<NodeOffset>>, Vec<NodeOffset>) {
        let fresh = |solver: &mut Self, ty: TypeId| -> Vec<NodeOffset> {
            let count = solver.leaves.get(ty).len();
            (0..count).map(|_| solver.classes.new_node()).collect()
        };
        let params = self.unit.param_types(signature).to_vec();
        let params: Vec<Vec<NodeOffset>> = params.iter().map(|ty| fresh(self, *ty)).collect();
        let result = self.unit.result_type(signature);
        let result = result.map_or(Vec::new(), |ty| fresh(self, ty));
        (params, result)
    }
    /// Unifies a function's parameters and result with the arguments and the result of the call `at`.
    fn bind_call(
        &mut self,
        at: (FuncId, Op),
        func: FuncId,
        args: &[Vec<NodeOffset>],
        result: &[NodeOffset],
    ) {
        let Some(body) = self.unit.functions[func].body.as_deref() else {
            return self.external_indirect_call(at, func);
        };
        for (&param, targets) in body.params().iter().zip(args) {
            let range = self.slots[&func].range(param);
            let holds = self.address_leaves(body.ty(param));
            for ((position, &target), holds) in range.zip(targets).zip(holds) {
                if holds {
                    self.unify_leaf(func, position, target);
                }
            }
        }
        for (own, &seen) in self.result_of(func).into_iter().zip(result) {
            self.classes.unify(own, seen);
        }
    }

    /// Iterates byte copies, indirect calls and callbacks to a fixpoint.
    ///
    /// Each round reads the copies forwards and backwards, which keeps the number of rounds low for long
    /// chains of copies. An unresolved indirect call escapes only after all facts are exhausted, because
    /// the arguments of one virtual call may resolve the next.
    fn solve_fixpoint(&mut self) {
        loop {
            let before = self.classes.changes;
            crate::points_to::memcpy::collapse_copy_cycles(&mut self.classes, &self.copies);
            for &copy in &self.copies {
                crate::points_to::memcpy::unify_cells(&mut self.classes, copy);
            }
            for &copy in self.copies.iter().rev() {
                crate::points_to::memcpy::unify_cells(&mut self.classes, copy);
            }
            self.solve_offsets(UnresolvedPolicy::Defer);
            self.resolve_indirect_calls(UnresolvedPolicy::Defer);
            self.bind_escaped_functions();
            if self.classes.changes == before {
                self.solve_offsets(UnresolvedPolicy::AssumeZero);
            }
            if self.classes.changes == before {
                self.solve_offsets(UnresolvedPolicy::Escape);
                self.resolve_indirect_calls(UnresolvedPolicy::Escape);
            }
            if self.classes.changes == before {
                return;
            }
        }
    }
    /// Binds indirect calls to their possible callees. If the callee may be unknown, all functions of the
    /// type are bound, and arguments and result escape.
    fn resolve_indirect_calls(&mut self, unknown: UnresolvedPolicy) {
        for call in self.indirect.clone() {
            let is_unknown = self.classes.content(call.address).origins.is_empty();
            if is_unknown && unknown == UnresolvedPolicy::Defer {
                continue;
            }
            let (functions, elsewhere) = self.callees(&call);
            for func in functions {
                if self.bound_calls.insert((call.at.0, call.at.1, func)) {
                    self.bind_call(call.at, func, &call.params, &call.result);
                }
            }
            if elsewhere {
                let unseen = self.unseen();
                for &target in call.params.iter().flatten().chain(&call.result) {
                    self.classes.unify(target, unseen);
                }
            }
        }
    }
    /// Returns the possible callees of an indirect call, and true if an unknown callee is possible.
    fn callees(&mut self, call: &IndirectCall) -> (Vec<FuncId>, bool) {
        let content = self.classes.content(call.address);
        let only_functions = content
            .origins
            .iter()
            .all(|o| matches!(o, MemoryOrigin::Function(_)));
        let (escaped, is_empty) = (content.escaped, content.origins.is_empty());
        if is_empty
            && !escaped
            && (call
                .loaded_from
                .is_some_and(|table| self.is_null_slot(table))
                || self.is_only_null(call.address))
        {
            return (Vec::new(), false);
        }
        if escaped || is_empty || !only_functions {
            return (self.closure.candidates(call.signature).to_vec(), true);
        }
        let content = self.classes.content(call.address);
        let mut found: Vec<FuncId> = (content.origins.iter())
            .filter_map(|origin| match origin {
                MemoryOrigin::Function(func) => Some(*func),
                _ => None,
            })
            .filter(|func| self.unit.functions[*func].ty == call.signature)
            .collect();
        found.sort_unstable();
        found.dedup();
        (found, false)
    }
    fn bind_escaped_functions(&mut self) {
        let Some(unseen) = self.unseen else {
            // Not an error: no address escapes to unknown code.
            return;
        };
        let origins = self.classes.content(unseen).origins.clone();
        for origin in origins {
            if let MemoryOrigin::Function(func) = origin {
                self.called_from_unknown(func, unseen);
            }
        }
    }
    /// Records that unknown code may call `func` with pointers to `target` and receive such pointers.
    pub fn called_from_unknown(&mut self, func: FuncId, target: NodeOffset) {
        let Some(body) = self.unit.functions[func].body.as_deref() else {
            // Not an error: a function without a body is itself unknown code.
            return;
        };
        for &param in body.params() {
            self.point_leaves_to(func, body, param, target);
        }
        for own in self.result_of(func) {
            self.classes.unify(own, target);
        }
    }

    fn finish(mut self) -> AliasSets {
        let calls = std::mem::take(&mut self.indirect);
        let callees = (calls.iter())
            .map(|call| (call.at, self.callees(call)))
            .collect();
        let mut number: HashMap<u32, AliasSetId> = HashMap::new();
        let mut roots = Vec::new();
        for node in 0..self.classes.len() as u32 {
            let root = self.classes.find(NodeOffset { node, offset: 0 }).node;
            number.entry(root).or_insert_with(|| {
                roots.push(root);
                AliasSetId::from_index(roots.len() - 1)
            });
        }
        let classes = &mut self.classes;
        let mut place = |target: NodeOffset| {
            let target = classes.find_raw(target);
            CellRef {
                class: number[&target.node],
                offset_bytes: target.offset,
            }
        };
        let mut memory = AliasSets {
            leaves: self.leaves,
            ..AliasSets::default()
        };
        for copy in &self.copies {
            memory.copies.push(CopyBytes {
                at: copy.at,
                to: vec![place(copy.to)],
                from: vec![place(copy.from)],
                size_bytes: copy.size_bytes,
            });
        }
        memory.callees = callees;
        for (func, slots) in self.slots {
            let targets = slots.into_targets(|target| [place(target)]);
            memory.functions.insert(func, targets);
        }
        for (func, slots) in self.returns {
            let slots = slots.into_iter();
            let leaves = slots.map(|slot| slot.map(&mut place).into_iter().collect());
            memory.returns.insert(func, leaves.collect());
        }
        let evidence: Vec<(CellRef, CellType)> = (self.evidence.iter())
            .map(|(target, seen)| (place(*target), *seen))
            .collect();
        let globals = self.globals.into_iter();
        memory.globals = globals.map(|(g, target)| (g, place(target))).collect();
        for root in roots {
            memory
                .classes
                .push(finish_alias_set(classes, root, &number));
        }
        for (place, seen) in evidence {
            let class = &mut memory.classes[place.class.index()];
            class
                .evidence
                .entry(place.offset_bytes)
                .or_default()
                .add(&seen);
        }
        for (target, stride) in std::mem::take(&mut classes.steps) {
            let target = classes.find_raw(target);
            let class = &mut memory.classes[number[&target.node].index()];
            class.strides.push((target.offset, stride));
        }
        for class in &mut memory.classes {
            class.strides.sort_unstable();
            class.strides.dedup();
        }
        memory
    }
}

/// Returns the final alias set of the root node `root`. `number` has the final number of each root node.
fn finish_alias_set(
    classes: &mut AliasSetUnifier,
    root: u32,
    number: &HashMap<u32, AliasSetId>,
) -> AliasSet {
    let content = classes.take_content(root);
    let whole = (content.modulus != 0).then(|| Fold::of_whole_object(content.modulus));
    let mut class = AliasSet {
        folds: whole.into_iter().collect(),
        origins: content.origins,
        escaped: content.escaped,
        ..AliasSet::default()
    };
    class.origins.sort_unstable();
    class.origins.dedup();
    for (offset, cell) in content.cells {
        let target = cell.target.map(|target| {
            let target = classes.find_raw(target);
            CellRef {
                class: number[&target.node],
                offset_bytes: target.offset,
            }
        });
        let state = CellState {
            targets: target.into_iter().collect(),
            observed: cell.observed,
        };
        class.words.insert(offset, state);
    }
    class
}
