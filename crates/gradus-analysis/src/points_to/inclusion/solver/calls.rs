//! Unknown code and indirect calls: escapes, and the callees that a pointer yields.

use crate::points_to::inclusion::constraints::NodeId;
use crate::points_to::inclusion::nodes::Move;
use crate::points_to::inclusion::objects::{Location, ObjectId, ObjectKey};
use crate::points_to::inclusion::solver::Solver;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{FuncId, TbaaTag};

impl Solver<'_> {
    pub(super) fn escape_node(&mut self, id: NodeId) {
        if !std::mem::replace(&mut self.node(id).escapes, true) {
            for location in self.all(id) {
                self.escape(location.object);
            }
        }
    }
    /// Lets unknown code read and write an object.
    pub(super) fn escape(&mut self, object: ObjectId) {
        if !self.escaped.insert(object) {
            return;
        }
        match self.objects.get(object).key {
            ObjectKey::Function(func) => return self.call_from_unknown(func),
            ObjectKey::Bits(of) => return self.escape(of),
            _ => {}
        }
        for (_, tag, cell) in self.cells.stored_in(object) {
            self.escape_cell(cell, tag);
        }
    }
    /// Lets unknown code read a cell, and store without a tag.
    pub(super) fn escape_cell(&mut self, cell: NodeId, tag: Option<TbaaTag>) {
        self.escape_node(cell);
        if tag.is_none() && !is_planted(Mutant::EscapedCellsKept) {
            self.add_external(cell);
        }
    }
    pub(super) fn call_from_unknown(&mut self, func: FuncId) {
        let Some(context) = self.instances.shared_of(func) else {
            // Not an error: a function without a body is itself unknown code.
            return;
        };
        for node in self.params(func).into_iter().flatten().flatten() {
            self.add_external(node);
        }
        self.add_external(self.variadic[context.0 as usize]);
        for node in self.returns[context.0 as usize]
            .clone()
            .into_iter()
            .flatten()
        {
            self.escape_node(node);
        }
    }
    /// Returns the nodes of the leaves of each parameter of a function's shared instance.
    pub(super) fn params(&self, func: FuncId) -> Vec<Vec<Option<NodeId>>> {
        let body = self.unit.functions[func].body.as_deref();
        let (Some(body), Some(context)) = (body, self.instances.shared_of(func)) else {
            // Not an error: a function without a body has no nodes.
            return Vec::new();
        };
        let slots = &self.slots[context.0 as usize];
        let params = body.params().iter();
        params.map(|&param| slots.of(param).to_vec()).collect()
    }
    pub(super) fn call(&mut self, number: usize, callees: &[Location]) {
        for location in callees {
            match self.objects.get(location.object).key {
                ObjectKey::Function(func) => self.bind(number, func),
                ObjectKey::External
                | ObjectKey::Argument(..)
                | ObjectKey::Returned(..)
                | ObjectKey::Behind(..) => self.call_unknown(number),
                // Data is no code: the pointer does not have this value at the call. A pointer has no bits alone.
                ObjectKey::Bits(_)
                | ObjectKey::ByValue(..)
                | ObjectKey::Variadic(..)
                | ObjectKey::Alloca(..)
                | ObjectKey::Heap(..)
                | ObjectKey::Global(_) => {}
            }
        }
    }
    /// Lets a call reach unknown code and every function of its type.
    pub(super) fn call_unknown(&mut self, number: usize) {
        if !self.unknown_calls.insert(number) {
            return;
        }
        let call = self.program.calls[number].clone();
        for &func in self.closure.candidates(call.signature) {
            self.bind(number, func);
        }
        for node in call.args.into_iter().flatten().flatten() {
            self.escape_node(node);
        }
        for node in call.result.into_iter().flatten() {
            self.add_external(node);
        }
    }
    /// Connects a call with a callee.
    pub(super) fn bind(&mut self, number: usize, func: FuncId) {
        let call = self.program.calls[number].clone();
        if self.unit.functions[func].ty != call.signature {
            return;
        }
        if !self.bound.entry(number).or_default().insert(func) {
            return;
        }
        if let Some(own) = self.program.guarded.get(&(number, func)).cloned() {
            for constraint in own {
                self.constraints.push(constraint);
                self.start(self.constraints.len() as u32 - 1);
            }
            return;
        }
        let Some(context) = self.instances.shared_of(func) else {
            return self.call_unknown(number);
        };
        for (param, arg) in self.params(func).into_iter().zip(&call.args) {
            for (to, from) in param.into_iter().zip(arg) {
                if let (Some(to), Some(from)) = (to, from) {
                    self.edge(*from, to, Move::By(0));
                }
            }
        }
        let further = call.args.iter().skip(self.params(func).len());
        for from in further.flatten().flatten() {
            self.edge(*from, self.variadic[context.0 as usize], Move::By(0));
        }
        let returned = self.returns[context.0 as usize].clone();
        for (from, to) in returned.into_iter().zip(&call.result) {
            if let (Some(from), Some(to)) = (from, to) {
                self.edge(from, *to, Move::By(0));
            }
        }
    }
}
