//! Activity of values inside one variant of a function: active values and shadows of pointers.
//!
//! A variant is a function with the activity of its arguments and the demand for its result's derivative.
//! Steps:
//!
//! 1. Shadows of pointers, forwards from parameters, allocations, globals and loads, in the lattice
//!    {unknown} < {none, real} < maybe.
//! 2. Varied values, forwards from active parameters and from loads behind pointers with shadows.
//! 3. Useful values, backwards from stores behind pointers with shadows, the result, and calls.
//! 4. A value is active if it is varied and useful.

use crate::activity::exception_objects;
use crate::activity::flow_graph;
use crate::activity::memory::{ArgActivity, MemoryActivity, ShadowPresence, ShadowState};
use crate::call_graph::Callee;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use crate::view::View;
use gradus_ir::externals::{Effects, ExternalFn};
use gradus_ir::{Body, CastOp, ConstKind, Definition, Entity, FuncId, Op, OpKind, Unit, Value};
use std::collections::HashMap;

/// A variant of a function, as distinguished by activity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// The function.
    pub func: FuncId,
    /// One entry per parameter.
    pub args: Vec<ArgActivity>,
    /// True if the derivative of the result is required.
    pub result: bool,
}

/// The activity of one variant.
#[derive(Clone, Debug)]
pub struct BodyActivity {
    active: Vec<bool>,
    varied: Vec<bool>,
    shadow: Vec<ShadowState>,
    calls: HashMap<Op, CallActivity>,
    result: ArgActivity,
}

/// Activity at a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallActivity {
    /// The callee's variant, if the callee has a body in the call graph.
    pub variant: Option<Variant>,
    /// One entry per argument.
    pub args: Vec<ArgActivity>,
    /// Activity and shadow of the result.
    pub result: ArgActivity,
    /// True if the call works on derivatives. An inactive call is copied unchanged.
    pub active: bool,
}

impl BodyActivity {
    /// Computes the activity of `variant`. The variant's function must have a body.
    pub fn of(facts: View<'_>, classes: &MemoryActivity, variant: &Variant) -> BodyActivity {
        let Some(body) = facts.unit.functions[variant.func].body.as_deref() else {
            unreachable!("the function of a variant has a body");
        };
        let mut solver = Solver {
            facts,
            classes,
            variant,
            body,
            shadow: vec![None; body.values.len()],
            varied: vec![false; body.values.len()],
            useful: vec![false; body.values.len()],
            forward: vec![Vec::new(); body.values.len()],
            backward: vec![Vec::new(); body.values.len()],
        };
        solver.propagate_shadows();
        solver.collect_flows();
        solver.varied();
        solver.useful();
        solver.finish()
    }
    fn nothing() -> BodyActivity {
        BodyActivity {
            active: Vec::new(),
            varied: Vec::new(),
            shadow: Vec::new(),
            calls: HashMap::new(),
            result: ArgActivity::default(),
        }
    }

    /// Returns true if the floats of a value have a required, possibly non-zero derivative.
    pub fn active(&self, value: Value) -> bool {
        self.active.get(value.index()).copied().unwrap_or(false)
    }
    /// Returns true if the floats of a value depend on active inputs.
    pub fn varied(&self, value: Value) -> bool {
        self.varied.get(value.index()).copied().unwrap_or(false)
    }
    /// Returns the shadow kind of a pointer. Integers that carry pointers count as pointers.
    pub fn shadow(&self, value: Value) -> ShadowState {
        self.shadow.get(value.index()).copied().unwrap_or_default()
    }
    /// Returns the activity at a `call` or `invoke`, and `None` for other ops.
    pub fn call(&self, op: Op) -> Option<&CallActivity> {
        self.calls.get(&op)
    }
    /// Iterates over the activity of all calls, in unspecified order.
    pub fn calls(&self) -> impl Iterator<Item = &CallActivity> {
        self.calls.values()
    }
    /// Returns the activity of the function's result: varied floats, and the shadow of a pointer.
    pub fn result(&self) -> ArgActivity {
        self.result
    }
}

struct Solver<'a> {
    facts: View<'a>,
    classes: &'a MemoryActivity,
    variant: &'a Variant,
    body: &'a Body,
    /// `None`: unknown so far, or the pointer is null or undefined.
    shadow: Vec<Option<ShadowState>>,
    varied: Vec<bool>,
    useful: Vec<bool>,
    forward: Vec<Vec<Value>>,
    backward: Vec<Vec<Value>>,
}

impl Solver<'_> {
    fn shadow_of(&self, value: Value) -> ShadowState {
        self.shadow[value.index()].unwrap_or_default()
    }
    fn carries_float(&self, value: Value) -> bool {
        self.facts.words.carries_float(self.variant.func, value)
    }
    /// Returns an alias set behind the first pointer in a value. All alias sets behind one pointer have the
    /// same shadow state (`shadow_groups.rs`).
    fn first_alias_set(&self, value: Value) -> Option<AliasSetId> {
        let mut leaves = self.facts.memory.leaf_targets(self.variant.func, value);
        let target = leaves.find_map(|targets| targets.first())?;
        Some(target.class)
    }
    /// Returns the shadow of a pointer according to its alias set alone.
    fn shadow_of_set(&self, class: Option<AliasSetId>) -> ShadowState {
        match class.map_or(ShadowPresence::Inactive, |c| self.classes.state(c)) {
            ShadowPresence::Inactive => ShadowState::None,
            ShadowPresence::Active => ShadowState::Real,
            ShadowPresence::Maybe => ShadowState::Maybe,
        }
    }
    /// Returns [`Self::shadow_of_set`] joined over the pointers in a value.
    fn shadow_of_sets(&self, value: Value) -> ShadowState {
        let (unit, memory) = (self.facts.unit, self.facts.memory);
        let leaves = memory.leaves_of(self.body.ty(value));
        let targets = memory.leaf_targets(self.variant.func, value);
        let pointers = (leaves.iter().zip(targets)).filter(|(leaf, _)| unit.types.is_ptr(leaf.ty));
        let states = pointers.filter_map(|(_, targets)| {
            let target = targets.first()?;
            Some(self.shadow_of_set(Some(target.class)))
        });
        let joined = states.reduce(ShadowState::or);
        joined.unwrap_or_else(|| self.shadow_of_set(self.first_alias_set(value)))
    }

    // ---- step 1 ----------------------------------------------------------------------------

    /// Propagates shadows. A value that only forwards pointers takes the join of its sources.
    fn propagate_shadows(&mut self) {
        let count = self.body.values.len();
        let mut passes: Vec<Vec<Value>> = vec![Vec::new(); count];
        let mut loads: Vec<Vec<Value>> = vec![Vec::new(); count];
        let mut work: Vec<(Value, ShadowState)> = Vec::new();
        for (index, &param) in self.body.params().iter().enumerate() {
            let given = self.variant.args.get(index).copied().unwrap_or_default();
            if self.facts.words.carries_pointer(self.variant.func, param) {
                work.push((param, given.shadow));
            }
        }
        for (value, data) in self.body.values.iter() {
            if let Definition::Const(_) = data.def {
                work.extend(self.constant_shadow(value).map(|s| (value, s)));
            }
        }
        for op in self.body.walk(self.body.root()) {
            self.body
                .value_flows(op, |from, to| passes[from.index()].push(to));
            self.shadow_sources(op, &mut passes, &mut loads, &mut work);
        }
        while let Some((value, state)) = work.pop() {
            if !self.facts.words.carries_pointer(self.variant.func, value) {
                continue;
            }
            let old = self.shadow[value.index()];
            let new = old.map_or(state, |old| old.or(state));
            if old == Some(new) {
                continue;
            }
            self.shadow[value.index()] = Some(new);
            work.extend(passes[value.index()].iter().map(|to| (*to, new)));
            for &to in &loads[value.index()] {
                work.push((to, self.loaded_shadow(new, to)));
            }
        }
    }
    /// Returns the shadow of a loaded pointer. `from` is the shadow of the address.
    fn loaded_shadow(&self, from: ShadowState, value: Value) -> ShadowState {
        match (from, self.shadow_of_sets(value)) {
            (ShadowState::None, _) | (_, ShadowState::None) => ShadowState::None,
            (ShadowState::Real, state) => state,
            (ShadowState::Maybe, _) => ShadowState::Maybe,
        }
    }
    fn constant_shadow(&self, value: Value) -> Option<ShadowState> {
        let id = self.body.as_const(value)?;
        let unit = self.facts.unit;
        let mut found = None;
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            let state = match &unit.constant(id).kind {
                ConstKind::Aggregate(parts) => {
                    work.extend(parts);
                    continue;
                }
                ConstKind::Global { global, .. } => self.classes.global(self.facts, *global),
                ConstKind::Func(_) | ConstKind::Foreign(_) => ShadowState::None,
                _ => continue,
            };
            found = Some(found.map_or(state, |old: ShadowState| old.or(state)));
        }
        found
    }
    fn shadow_sources(
        &self,
        op: Op,
        passes: &mut [Vec<Value>],
        loads: &mut [Vec<Value>],
        work: &mut Vec<(Value, ShadowState)>,
    ) {
        let (unit, body) = (self.facts.unit, self.body);
        let mut pass_all = |op: Op| {
            for value in body.operands(op) {
                for &result in body.results(op) {
                    passes[value.index()].push(result);
                }
            }
        };
        match body.kind(op) {
            OpKind::Alloca(_) => {
                let result = body.result(op);
                let own = MemoryOrigin::Alloca(self.variant.func, op);
                work.push((result, self.allocated_shadow(result, own)));
            }
            OpKind::Addr { .. } => passes[body.operand(op, 0).index()].push(body.result(op)),
            OpKind::Cast(CastOp::IntToPtr) => {
                let from = body.operand(op, 0);
                let words = self.facts.words;
                if words.has_address_terms(body, self.variant.func, from) {
                    passes[from.index()].push(body.result(op));
                } else {
                    let result = body.result(op);
                    work.push((result, self.shadow_of_set(self.first_alias_set(result))));
                }
            }
            OpKind::ExtractValue(_) if self.extracts_call_result(op) => {
                let result = body.result(op);
                work.push((result, self.shadow_of_sets(result)));
            }
            OpKind::Cast(_)
            | OpKind::Binary(_)
            | OpKind::ExtractValue(_)
            | OpKind::InsertValue(_)
            | OpKind::ExtractElement
            | OpKind::InsertElement
            | OpKind::Shuffle(_) => pass_all(op),
            OpKind::LandingPad(_) | OpKind::Foreign(_) => {
                for &result in body.results(op) {
                    work.push((result, ShadowState::None));
                }
            }
            OpKind::Call(_) | OpKind::Invoke(_) => {
                if let Some(result) = body.call_result(op) {
                    self.add_call_shadow(op, result, passes, work);
                }
            }
            _ => {}
        }
        value_accesses(unit, body, op, |touch| {
            if let ValueAccess::Load { ptr, value } = touch {
                loads[ptr.index()].push(value);
            }
        });
    }
    /// Returns the shadow of memory allocated by this op.
    fn allocated_shadow(&self, result: Value, own: MemoryOrigin) -> ShadowState {
        let memory = self.facts.memory;
        let is_own = |class| memory.get(class).origins.contains(&own);
        let known = memory.may_point_into(self.variant.func, result, is_own);
        match self.shadow_of_set(self.first_alias_set(result)) {
            ShadowState::Maybe if known => ShadowState::Real,
            state => state,
        }
    }
    fn add_call_shadow(
        &self,
        op: Op,
        result: Value,
        passes: &mut [Vec<Value>],
        work: &mut Vec<(Value, ShadowState)>,
    ) {
        let unit = self.facts.unit;
        let args = unit.call_args(self.body, op);
        if let Some(Callee::Outside(func)) = self.facts.closure.callee(unit, self.body, op) {
            let effects = unit.known_effects(func).unwrap_or(Effects::UNKNOWN);
            if let Some(&given) = effects
                .returns_argument
                .and_then(|i| args.get(usize::from(i)))
            {
                return passes[given.index()].push(result);
            }
            if self.throws_inactive_object(op) {
                return work.push((result, ShadowState::None));
            }
            if effects.allocates {
                let own = MemoryOrigin::Heap(self.variant.func, op);
                return work.push((result, self.allocated_shadow(result, own)));
            }
        }
        work.push((result, self.shadow_of_sets(result)));
    }
    /// Returns true if a call allocates an exception object without derivatives.
    fn throws_inactive_object(&self, op: Op) -> bool {
        let carries_nothing = |value: Value| {
            let is_number = self
                .facts
                .unit
                .types
                .int_bits(self.body.ty(value))
                .is_some()
                && !self.carries_float(value)
                && (self.facts.memory)
                    .targets(self.variant.func, value)
                    .is_empty();
            let is_constant = self.body.as_const(value).is_some();
            is_number || is_constant && !self.constant_shadow(value).unwrap_or_default().is_some()
        };
        self.classes.handlers_are_read_only()
            && exception_objects::allocates_inactive_exception(
                self.facts,
                self.body,
                op,
                carries_nothing,
            )
    }
    /// Returns true if an op extracts a member from the result of a function in the call graph. The alias
    /// set of the member is more precise than the join over the whole result.
    fn extracts_call_result(&self, op: Op) -> bool {
        let call = self.body.def_op(self.body.operand(op, 0));
        matches!(self.body.kind(op), OpKind::ExtractValue(_))
            && call.is_some_and(|call| {
                let callee = self.facts.closure.callee(self.facts.unit, self.body, call);
                matches!(callee, Some(Callee::Inside(_)))
            })
    }

    // ---- steps 2 and 3 ---------------------------------------------------------------------

    fn collect_flows(&mut self) {
        let (unit, body) = (self.facts.unit, self.body);
        for op in body.walk(body.root()) {
            flow_graph::value_flows(unit, body, op, |from, to| {
                if self.carries_float(from) && self.carries_float(to) {
                    self.forward[from.index()].push(to);
                    self.backward[to.index()].push(from);
                }
            });
        }
    }
    fn varied(&mut self) {
        let (unit, body) = (self.facts.unit, self.body);
        let mut work: Vec<Value> = Vec::new();
        for (index, &param) in body.params().iter().enumerate() {
            let given = self.variant.args.get(index).copied().unwrap_or_default();
            if given.active && self.carries_float(param) {
                work.push(param);
            }
        }
        let mut calls: HashMap<Value, Vec<Value>> = HashMap::new();
        for op in body.walk(body.root()) {
            value_accesses(unit, body, op, |touch| {
                if let ValueAccess::Load { ptr, value } = touch
                    && self.loads_varied(ptr)
                    && self.carries_float(value)
                {
                    work.push(value);
                }
            });
            self.seed_varied_call(op, &mut calls, &mut work);
        }
        while let Some(value) = work.pop() {
            if std::mem::replace(&mut self.varied[value.index()], true) {
                continue;
            }
            work.extend(&self.forward[value.index()]);
            work.extend(calls.get(&value).into_iter().flatten());
        }
    }
    /// Returns true if floats loaded from `ptr` may be varied.
    fn loads_varied(&self, ptr: Value) -> bool {
        let (memory, func) = (self.facts.memory, self.variant.func);
        self.shadow_of(ptr).is_some()
            && memory.may_point_into(func, ptr, |class| self.classes.is_varied(class))
    }
    /// Marks a call's result as varied if its arguments, or memory read by the callee, are varied.
    fn seed_varied_call(
        &self,
        op: Op,
        calls: &mut HashMap<Value, Vec<Value>>,
        work: &mut Vec<Value>,
    ) {
        let (unit, body) = (self.facts.unit, self.body);
        let Some(callee) = self.facts.closure.callee(unit, body, op) else {
            // Not an error: the op is no call.
            return;
        };
        let Some(result) = body.call_result(op).filter(|r| self.carries_float(*r)) else {
            // Not an error: the call has no result with floats.
            return;
        };
        let args = unit.call_args(body, op);
        let (may_vary, reads_globals) = match callee {
            Callee::Inside(func) => (
                self.classes.result_varied(func),
                self.classes.touches_globals(func),
            ),
            Callee::Indirect(_) => {
                let callees = self.facts.memory.callees(self.variant.func, op);
                let varied =
                    |f: &FuncId| !self.facts.closure.contains(*f) || self.classes.result_varied(*f);
                (
                    self.facts.memory.may_call_unknown(self.variant.func, op)
                        || callees.iter().any(varied),
                    callees.iter().any(|f| self.classes.touches_globals(*f)),
                )
            }
            Callee::Outside(func) => {
                let effects = unit.known_effects(func).unwrap_or(Effects::UNKNOWN);
                (!effects.inactive && !effects.reads.is_none(), false)
            }
            Callee::Foreign => (true, false),
        };
        if !may_vary {
            return;
        }
        let shadowed = args.iter().any(|arg| {
            self.shadow_of(*arg).is_some()
                && self.facts.words.carries_pointer(self.variant.func, *arg)
        });
        if shadowed || reads_globals {
            work.push(result);
        }
        for arg in args.into_iter().filter(|arg| self.carries_float(*arg)) {
            calls.entry(arg).or_default().push(result);
        }
    }
    fn useful(&mut self) {
        let (unit, body) = (self.facts.unit, self.body);
        let mut work: Vec<Value> = Vec::new();
        for op in body.walk(body.root()) {
            value_accesses(unit, body, op, |touch| {
                if let ValueAccess::Store { ptr, value } = touch
                    && self.shadow_of(ptr).is_some()
                {
                    work.push(value);
                }
            });
            match body.kind(op) {
                OpKind::Return if self.variant.result => work.extend(body.operands(op)),
                OpKind::Call(_) | OpKind::Invoke(_) => self.seed_useful_call(op, &mut work),
                _ => {}
            }
        }
        while let Some(value) = work.pop() {
            if self.carries_float(value)
                && !std::mem::replace(&mut self.useful[value.index()], true)
            {
                work.extend(&self.backward[value.index()]);
            }
        }
    }
    /// Adds the arguments of a call that are useful in the callee.
    fn seed_useful_call(&self, op: Op, work: &mut Vec<Value>) {
        let (unit, body) = (self.facts.unit, self.body);
        let args = unit.call_args(body, op);
        match self.facts.closure.callee(unit, body, op) {
            Some(Callee::Inside(func)) => {
                let inner = unit.functions[func].body.as_deref();
                let params = inner.map_or(&[][..], |b| b.params());
                for (index, &arg) in args.iter().enumerate() {
                    match params.get(index) {
                        Some(&param) if !self.classes.value_useful(func, param) => {}
                        _ => work.push(arg),
                    }
                }
            }
            Some(Callee::Indirect(_) | Callee::Foreign) => work.extend(args),
            Some(Callee::Outside(func)) => {
                let effects = unit.known_effects(func).unwrap_or(Effects::UNKNOWN);
                if !effects.inactive && writes_memory(unit, func, effects) {
                    work.extend(args);
                }
            }
            None => {}
        }
    }

    // ---- step 4 ----------------------------------------------------------------------------

    fn finish(self) -> BodyActivity {
        let active: Vec<bool> = (self.varied.iter().zip(&self.useful))
            .map(|(varied, useful)| *varied && *useful)
            .collect();
        let shadow: Vec<ShadowState> = self.shadow.iter().map(|s| s.unwrap_or_default()).collect();
        let mut activity = BodyActivity {
            active,
            varied: self.varied.clone(),
            shadow,
            ..BodyActivity::nothing()
        };
        for op in self.body.walk(self.body.root()) {
            match self.body.kind(op) {
                OpKind::Call(_) | OpKind::Invoke(_) => {
                    let call = self.call(&activity, op);
                    activity.calls.insert(op, call);
                }
                OpKind::Return if self.body.operand_count(op) == 1 => {
                    let value = self.body.operand(op, 0);
                    activity.result = ArgActivity {
                        active: activity.varied(value),
                        shadow: activity.shadow(value),
                    };
                }
                _ => {}
            }
        }
        activity
    }
    fn call(&self, activity: &BodyActivity, op: Op) -> CallActivity {
        let (unit, body) = (self.facts.unit, self.body);
        let state = |value: Value| ArgActivity {
            active: activity.active(value),
            shadow: activity.shadow(value),
        };
        let args: Vec<ArgActivity> = unit.call_args(body, op).into_iter().map(state).collect();
        let result = body.call_result(op).map(state).unwrap_or_default();
        let variant = match self.facts.closure.callee(unit, body, op) {
            Some(Callee::Inside(func)) => Some(Variant {
                func,
                args: args.clone(),
                result: result.active,
            }),
            _ => None,
        };
        let by_address = self.facts.memory.callees(self.variant.func, op);
        let mut callees = variant.iter().map(|v| &v.func).chain(by_address);
        let touches = callees.any(|func| self.classes.touches_globals(*func));
        // Only the exception object is thrown. Its type and its destructor carry no derivative.
        let throws = exception_objects::is_throw(self.facts, body, op);
        let count = if throws { 1 } else { args.len() };
        let active = touches
            || result != ArgActivity::default()
            || args
                .iter()
                .take(count)
                .any(|a| *a != ArgActivity::default());
        CallActivity {
            variant,
            args,
            result,
            active,
        }
    }
}

/// Returns true if an external function may write floats to memory, beyond [`crate::value_accesses`].
fn writes_memory(unit: &Unit, func: FuncId, effects: Effects) -> bool {
    let handled = matches!(
        unit.known(func),
        Some(
            ExternalFn::Masked(_)
                | ExternalFn::MathOut(_)
                | ExternalFn::Memory(_)
                | ExternalFn::Marker(_)
        )
    );
    !handled && (effects.writes.any || effects.writes.arguments != 0)
}
