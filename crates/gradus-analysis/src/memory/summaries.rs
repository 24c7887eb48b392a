//! Function summaries: effects of a function from its body and its callees.
//!
//! Bottom-up over the call graph. In a recursive component the summaries start empty and grow to the least
//! fixpoint. Offsets behind arguments widen to the whole object there, which guarantees termination.

use crate::call_graph::{CallGraph, Component};
use crate::cfg::nesting::Nest;
use crate::cfg::no_return::NoReturnRegions;
use crate::memory::effects::{
    AccessKind, AccessSummary, Effects, Extent, FunctionEffects, MemoryAccess, MemoryRegion,
    ParamEffects,
};
use crate::memory::local_points_to::{Object, ObjectId, PointsTo, PointsToTarget};
use crate::memory::sync_points::Waits;
use crate::scev::poly::{BaseValue, PolyForms};
use gradus_ir::{Body, FuncId, OpKind, Unit};
use std::collections::{HashSet, VecDeque};

/// Maximal number of globals listed by name.
const MAX_GLOBALS: usize = 64;

/// Computes the summaries of the functions of a component.
pub(crate) fn component(
    unit: &Unit,
    closure: &CallGraph,
    effects: &mut Effects,
    component: &Component,
) {
    for &func in component.functions.iter().filter(|_| component.recursive) {
        let params = unit.param_types(unit.functions[func].ty).len();
        let nothing = FunctionEffects {
            params: vec![ParamEffects::default(); params],
            ..FunctionEffects::default()
        };
        effects.set(func, nothing);
    }
    let members: HashSet<FuncId> = component.functions.iter().copied().collect();
    let mut work: VecDeque<FuncId> = component.functions.iter().copied().collect();
    let mut queued = members.clone();
    while let Some(func) = work.pop_front() {
        queued.remove(&func);
        let Some(body) = unit.functions[func].body.as_deref() else {
            continue;
        };
        let mut summary = of_body(unit, effects, func, body);
        if component.recursive {
            widen_extents(&mut summary);
            summary.may_not_return = true;
            if let Some(before) = effects.of_function(func) {
                join_results(&mut summary, before);
            }
        }
        if effects.of_function(func) == Some(&summary) {
            continue;
        }
        effects.set(func, summary);
        for site in closure
            .calls_of(func)
            .iter()
            .filter(|_| component.recursive)
        {
            if members.contains(&site.caller) && queued.insert(site.caller) {
                work.push_back(site.caller);
            }
        }
    }
}

fn widen_extents(summary: &mut FunctionEffects) {
    for param in &mut summary.params {
        for extent in [&mut param.reads, &mut param.writes] {
            *extent = Extent::if_any(!extent.is_nothing());
        }
    }
}

/// Makes the result facts monotonic over the rounds. A block that turns out to escape is no longer fresh;
/// without the join, its callers would return fresh memory again.
fn join_results(summary: &mut FunctionEffects, before: &FunctionEffects) {
    summary.returns_fresh |= before.returns_fresh;
    summary.returns_other |= before.returns_other;
    summary.fresh_holds_pointers |= before.fresh_holds_pointers;
    summary.fresh_may_be_cyclic |= before.fresh_may_be_cyclic;
    for (param, before) in summary.params.iter_mut().zip(&before.params) {
        param.captures |= before.captures;
        param.returned |= before.returned;
    }
}

fn of_body(unit: &Unit, effects: &Effects, func: FuncId, body: &Body) -> FunctionEffects {
    let nest = Nest::of(body);
    let mut reader = EffectCollector {
        unit,
        body,
        points_to: PointsTo::of(unit, Some(func), body, &nest, effects),
        forms: PolyForms::of(unit, body),
        found: FunctionEffects {
            params: vec![ParamEffects::default(); body.params().len()],
            ..FunctionEffects::default()
        },
    };
    let lost = NoReturnRegions::of(unit, body);
    for op in body.walk(body.root()) {
        if lost.contains(body, op) {
            let is_call = matches!(body.kind(op), OpKind::Call(_));
            reader.found.may_throw |= is_call && effects.of_call(unit, body, op).may_throw;
            reader.found.may_not_return = true;
            continue;
        }
        if !matches!(body.kind(op), OpKind::Resume) {
            for access in effects.of_op(unit, body, op) {
                reader.access(&access);
            }
        }
        reader.found.synchronizes |= FunctionEffects::is_ordering(body.kind(op));
        match body.kind(op) {
            OpKind::Call(_) => {
                let callee = effects.of_call(unit, body, op);
                reader.found.may_throw |= callee.may_throw;
                reader.join_control(&callee);
            }
            OpKind::Invoke(_) => reader.join_control(&effects.of_call(unit, body, op)),
            OpKind::Resume => reader.found.may_throw = true,
            OpKind::Unreachable | OpKind::Loop { .. } => reader.found.may_not_return = true,
            OpKind::Foreign(_) => {
                reader.found.calls_unknown = true;
                reader.found.may_throw = true;
                reader.found.may_not_return = true;
            }
            OpKind::Return => reader.add_returned(op),
            _ => {}
        }
    }
    reader.add_captures();
    let mut found = reader.found;
    if Waits::of(unit, body, &nest, effects).may_sync_callers(body, &nest) {
        // The caller observes earlier writes of other ranks after the call.
        found.may_sync_ranks = true;
        found.reachable = AccessSummary::BOTH;
    }
    if found.globals.len() > MAX_GLOBALS {
        let touches = std::mem::take(&mut found.globals).into_values();
        found.reachable = touches.fold(found.reachable, AccessSummary::or);
    }
    // A function without variadic parameters cannot access further arguments.
    if unit.types.is_variadic(unit.functions[func].ty) {
        found.variadic = ParamEffects {
            captures: true,
            reads: Extent::Object,
            writes: Extent::Object,
            frees: true,
            returned: false,
        };
    }
    crate::memory::external_effects::refine(&mut found, unit.attrs(unit.functions[func].attrs));
    found
}

struct EffectCollector<'a> {
    unit: &'a Unit,
    body: &'a Body,
    points_to: PointsTo,
    forms: PolyForms,
    found: FunctionEffects,
}

impl EffectCollector<'_> {
    fn join_control(&mut self, callee: &FunctionEffects) {
        self.found.may_not_return |= callee.may_not_return;
        self.found.calls_unknown |= callee.calls_unknown;
        self.found.synchronizes |= callee.synchronizes;
    }

    fn access(&mut self, access: &MemoryAccess) {
        let touch = AccessSummary {
            reads: access.kind == AccessKind::Read,
            writes: access.kind == AccessKind::Write,
        };
        match access.place {
            MemoryRegion::At(ptr) => {
                let targets = self.points_to.targets(self.body, ptr).to_vec();
                if targets.is_empty() {
                    self.found.reachable = self.found.reachable.or(touch);
                }
                for target in targets {
                    self.target(access, touch, target);
                }
            }
            MemoryRegion::Global(global) => self.global(global, access.kind, touch),
            MemoryRegion::Reachable => {
                self.found.reachable = self.found.reachable.or(touch);
                self.found.frees_other |= access.kind == AccessKind::Free;
            }
            MemoryRegion::Errno => self.found.errno = self.found.errno.or(touch),
            MemoryRegion::Inaccessible => {
                self.found.inaccessible = self.found.inaccessible.or(touch);
            }
            MemoryRegion::Frame => {}
        }
    }

    fn global(&mut self, global: gradus_ir::GlobalId, kind: AccessKind, touch: AccessSummary) {
        let known = self.found.globals.entry(global).or_default();
        *known = known.or(touch);
        self.found.frees_other |= kind == AccessKind::Free;
    }

    fn target(&mut self, access: &MemoryAccess, touch: AccessSummary, target: PointsToTarget) {
        match self.points_to.object(target.object) {
            Object::Unknown => {
                self.found.reachable = self.found.reachable.or(touch);
                self.found.frees_other |= access.kind == AccessKind::Free;
            }
            Object::Global(global) => self.global(global, access.kind, touch),
            Object::Param(index) if !self.points_to.is_local(target.object) => {
                let extent = self.extent(access, index);
                let param = &mut self.found.params[index as usize];
                match access.kind {
                    AccessKind::Read => param.reads = param.reads.or(extent),
                    AccessKind::Write => param.writes = param.writes.or(extent),
                    AccessKind::Free => param.frees = true,
                    AccessKind::Lifetime => param.writes = Extent::Object,
                }
            }
            _ => {}
        }
    }

    /// Returns the bytes behind argument `index` that an access touches.
    fn extent(&self, access: &MemoryAccess, index: u32) -> Extent {
        let (MemoryRegion::At(ptr), Some(size)) = (access.place, access.size) else {
            return Extent::Object;
        };
        let place = self.forms.of_pointer(self.unit, self.body, ptr);
        let from_param = place.root == BaseValue::Value(self.body.params()[index as usize]);
        let start = place.offset.as_constant().filter(|_| from_param);
        let start = start.and_then(|start| start.checked_add(access.offset));
        let end = start.and_then(|start| start.checked_add(i64::try_from(size).ok()?));
        match (start, end) {
            (Some(start), Some(end)) => Extent::Bytes(start, end),
            _ => Extent::Object,
        }
    }

    fn add_returned(&mut self, op: gradus_ir::Op) {
        let Some(value) = self.body.operands(op).next() else {
            // Not an error: the function returns no value.
            return;
        };
        let targets = self.points_to.targets(self.body, value).to_vec();
        let fresh = |id: &ObjectId| {
            let is_heap = matches!(self.points_to.object(*id), Object::Heap(_));
            is_heap && !self.points_to.escaped(*id)
        };
        let given = targets.iter().map(|target| target.object);
        let given: HashSet<ObjectId> = given.filter(fresh).collect();
        for target in targets {
            match self.points_to.object(target.object) {
                Object::Param(index) => self.found.params[index as usize].returned = true,
                _ if given.contains(&target.object) => self.found.returns_fresh = true,
                _ => self.found.returns_other = true,
            }
        }
        // For the caller, all fresh memory is one object.
        let held = self.points_to.reachable_from(&given);
        self.found.fresh_holds_pointers |= !held.is_empty();
        self.found.fresh_may_be_cyclic |= !held.is_disjoint(&given);
        for object in held {
            if let Object::Param(index) = self.points_to.object(object) {
                self.found.params[index as usize].captures = true;
            }
        }
    }

    fn add_captures(&mut self) {
        for index in 0..self.found.params.len() {
            let object = self.points_to.find(Object::Param(index as u32));
            self.found.params[index].captures |=
                object.is_none_or(|object| self.points_to.escaped(object));
        }
    }
}
