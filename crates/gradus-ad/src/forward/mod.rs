//! The forward pass: clones the primal and emits shadows, tangents and tape writes.
//!
//! Forward mode and the forward pass of reverse mode share the code. Every op of the primal is cloned. Some
//! values have a *companion*: the shadow of a pointer, and in forward mode the tangent of an active float.
//! Reverse mode also writes the tape according to the plan. An explicit stack of tasks replaces recursion,
//! and nesting does not consume Rust stack.

mod address_arithmetic;
mod calls;
mod dependencies;
mod invoke;
mod memory;
pub(crate) mod recompute_loops;
mod save;
mod shadow_and_tangent;
mod snapshot;
mod structure;

pub use crate::forward::save::TapeWriter;

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::Node;
use crate::context::inputs::Inputs;
use crate::emit::builder::{DerivativeBuilder, Lanes, MemorySpace, pack};
use crate::shadow::constants::shadow_constant;
use crate::shadow::owned_blocks;
use crate::tape::plan::missing_value_error;
use crate::variant::{Mode, ParamRole, Signature, Variant};
use gradus_ir::{Diagnostic, Flags, Op, OpKind, Region, Type, TypeId, Unit, Value};
use snapshot::PiecewiseCopy;
use std::collections::HashMap;
use structure::OpenStructure;

/// A pending step; the last one is executed first.
#[derive(Debug)]
enum Task {
    /// An op and all later ops in its region.
    Ops(Option<Op>),
    /// A single op.
    One(Op),
    /// Start of a region of the innermost open region op, by number.
    Enter(usize),
    /// End of the innermost open region op.
    Leave,
    /// Continuation after an invoke whose handler was filled.
    LeaveHandler((Region, Option<Op>)),
}

/// A forward pass under construction.
pub struct ForwardPass<'a, 'f, 'u, 'p> {
    facts: &'a BodyFacts<'f>,
    variant: &'a Variant,
    /// The derivative under construction.
    pub out: &'a mut DerivativeBuilder<'u>,
    values: HashMap<Value, Value>,
    companions: HashMap<Value, Lanes>,
    /// Forward values other than primal values and shadows that the reverse pass may read as SSA values.
    other_forward_values: HashMap<Node, Lanes>,
    tape: Option<TapeWriter<'p>>,
    /// The tape while saving is suspended for a recomputed loop.
    suspended_tape: Option<TapeWriter<'p>>,
    tasks: Vec<Task>,
    open: Vec<OpenStructure>,
    /// Piecewise copies of the next opened loop.
    piecewise_copies: Vec<PiecewiseCopy>,
    /// In-place snapshots of the open regions, by root.
    in_place: HashMap<Value, usize>,
    /// The last emitted invoke, whose handler is still empty.
    handler: Option<Op>,
    needs: &'a mut Vec<Variant>,
    findings: &'a mut Vec<Diagnostic>,
}

impl<'a, 'f, 'u, 'p> ForwardPass<'a, 'f, 'u, 'p> {
    /// Creates a forward pass at the insertion point of `out`, whose root region has the parameters of
    /// `signature`.
    pub fn new(
        facts: &'a BodyFacts<'f>,
        variant: &'a Variant,
        signature: &Signature,
        out: &'a mut DerivativeBuilder<'u>,
        tape: Option<TapeWriter<'p>>,
        needs: &'a mut Vec<Variant>,
        findings: &'a mut Vec<Diagnostic>,
    ) -> Self {
        let (values, companions) = parameters(facts, signature, out);
        ForwardPass {
            facts,
            variant,
            out,
            values,
            companions,
            other_forward_values: HashMap::new(),
            tape,
            suspended_tape: None,
            tasks: Vec::new(),
            open: Vec::new(),
            piecewise_copies: Vec::new(),
            in_place: HashMap::new(),
            handler: None,
            needs,
            findings,
        }
    }

    /// Emits the whole body. Returns the primal's result in the derivative, and its shadow or tangent.
    pub fn run(&mut self) -> (Option<Value>, Option<Lanes>) {
        let root = self.facts.body.root();
        for &param in self.facts.body.params() {
            self.save_value(param);
        }
        self.tasks.push(Task::Ops(self.facts.body.first(root)));
        self.work();
        let result = self
            .facts
            .body
            .last(root)
            .and_then(|op| self.facts.body.operands(op).next());
        match result {
            Some(result) => {
                let companions = self.has_companion(result).then(|| self.companion(result));
                (Some(self.value(result)), companions)
            }
            None => (None, None),
        }
    }

    /// Reports an impossible state and refuses the derivative (GRD0024).
    #[track_caller]
    pub(super) fn ice(&mut self, op: Option<Op>, reason: &str) {
        let name = &self.out.unit.functions[self.variant.func].name;
        let error = gradus_ir::internal_error(self.out.unit, self.facts.body, op, reason);
        self.findings.push(error.in_function(name));
    }

    /// Executes all pending steps.
    fn work(&mut self) {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Ops(None) => {}
                Task::Ops(Some(op)) => {
                    self.tasks.push(Task::Ops(self.facts.body.next(op)));
                    self.op(op);
                }
                Task::One(op) => self.op(op),
                Task::Enter(number) => self.enter(number),
                Task::Leave => self.leave(),
                Task::LeaveHandler(outside) => self.out.insertion_point = outside,
            }
        }
        if !self.open.is_empty() || self.handler.is_some() {
            self.ice(None, "the forward pass ends inside of a region op");
        }
    }

    /// Returns the forward values that a reverse pass in the same function reads as SSA values.
    pub fn available_values(&mut self, nodes: impl Iterator<Item = Node>) -> HashMap<Node, Lanes> {
        let mut at_hand = HashMap::new();
        for node in nodes {
            let lanes = match node {
                Node::Primal(value) => std::iter::once(self.value(value)).collect(),
                Node::Shadow(value) => self.companion(value),
                other => match self.other_forward_values.get(&other) {
                    Some(lanes) => lanes.clone(),
                    None => continue,
                },
            };
            at_hand.insert(node, lanes);
        }
        at_hand
    }

    fn forward_mode(&self) -> bool {
        self.variant.mode == Mode::Forward
    }
    /// Returns true if a value has a companion: a shadow or tangent emitted in the forward pass.
    fn has_companion(&self, value: Value) -> bool {
        self.facts.has_shadow(value) && !self.facts.is_lazy_shadow(value)
            || (self.forward_mode() && self.facts.is_active(value))
    }
    /// Returns the derivative's value of a primal value.
    fn value(&mut self, value: Value) -> Value {
        if let Some(&new) = self.values.get(&value) {
            return new;
        }
        match self.facts.body.as_const(value) {
            Some(id) => self.out.body.constant(self.out.unit, id),
            None => {
                self.findings.push(missing_value_error(Node::Primal(value)));
                let ty = self.facts.body.ty(value);
                self.out.build().poison(ty)
            }
        }
    }
    /// Returns the companion of a value. Without a companion, a pointer is its own shadow, and a float has a
    /// zero tangent.
    fn companion(&mut self, value: Value) -> Lanes {
        if let Some(lanes) = self.companions.get(&value) {
            return lanes.clone();
        }
        let constant = self.facts.body.as_const(value).is_some();
        if self.facts.is_lazy_shadow(value) || self.has_companion(value) && !constant {
            (self.findings).push(missing_value_error(Node::Shadow(value)));
        }
        let ty = self.facts.body.ty(value);
        let is_pointer = self.out.unit.types.is_ptr(self.out.unit.types.scalar(ty));
        if let (true, Some(id)) = (
            self.facts.has_shadow(value),
            self.facts.body.as_const(value),
        ) {
            return match shadow_constant(self.out, self.facts, self.forward_mode(), id) {
                Ok(lanes) => lanes,
                Err(finding) => {
                    self.findings.push(finding);
                    Lanes::from_elem(self.value(value), self.facts.width)
                }
            };
        }
        // An inactive address, also as an integer, is its own shadow.
        let is_own = self.facts.has_shadow(value) || self.facts.holds_pointer(self.out.unit, value);
        let own = match is_pointer || is_own {
            true => self.value(value),
            false => self.inactive_companion(value),
        };
        Lanes::from_elem(own, self.facts.width)
    }

    /// Returns the companion of an inactive value: contained addresses are their own shadows, floats have
    /// zero tangents.
    fn inactive_companion(&mut self, value: Value) -> Value {
        let ty = self.facts.body.ty(value);
        let mut companion = self.out.build().zero(ty);
        for path in address_paths(self.out.unit, ty) {
            let own = self.value(value);
            let part = self.out.build().extract(own, &path);
            companion = self.out.build().insert(companion, part, &path);
        }
        companion
    }

    fn op(&mut self, op: Op) {
        self.out.copy_loc_and_flags(self.facts.body, op);
        if self.is_skipped(op) {
            return self.skip_loop(op);
        }
        self.allocate_arrays(op);
        self.take_snapshots(op);
        match self.facts.body.kind(op) {
            OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. } => {
                self.open_structure(op)
            }
            OpKind::Yield if self.is_handler_end(op) => self.end_handler(op),
            OpKind::Yield | OpKind::Repeat => self.end_region(op),
            OpKind::Return => {}
            OpKind::Call(_) => self.call(op),
            OpKind::Invoke(_) => self.invoke(op),
            OpKind::Alloca(_) => self.alloca(op),
            OpKind::Store(_) => self.store(op),
            OpKind::AtomicRmw(..) => self.atomic_sum(op),
            OpKind::Unreachable | OpKind::Resume => {
                self.clone_plain(op);
            }
            _ if !self.facts.body.op_regions(op).is_empty() => {
                let finding = self.facts.unhandled_region_error(self.out.unit, op);
                self.findings.push(finding);
            }
            _ => {
                self.clone_plain(op);
                self.test_converted_name(op);
                self.emit_shadow_and_tangent(op);
                self.fill_snapshot(op);
            }
        }
        for number in 0..self.facts.body.results(op).len() {
            let result = self.facts.body.results(op)[number];
            if !matches!(
                self.facts.body.kind(op),
                OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. }
            ) {
                self.save_value(result);
            }
        }
        self.open_handler(op);
    }

    /// Returns the flags of an op and of its companion.
    fn flags(&self, op: Op) -> Flags {
        match &self.tape {
            Some(tape) if tape.plan.wrapping_ops.contains(&op) => Flags::NONE,
            _ => self.facts.body.ops[op].flags,
        }
    }

    /// Clones an op on the derivative's values.
    fn clone_plain(&mut self, op: Op) -> Op {
        let body = self.facts.body;
        let data = &body.ops[op];
        let operands: Vec<Value> = body.operands(op).map(|v| self.value(v)).collect();
        let types: Vec<_> = body.results(op).iter().map(|v| body.ty(*v)).collect();
        if matches!(data.kind, OpKind::Invoke(_)) {
            return self.clone_invoke(op);
        }
        let new = self.out.build().op(data.kind.clone(), &operands, &types, 0);
        self.out.body.ops[new].flags = self.flags(op);
        self.out.body.ops[new].name = data.name.clone();
        if let OpKind::Load(access) | OpKind::Store(access) = &data.kind {
            let space = self.space_of(op);
            self.out.mark_access(new, data.meta, space);
            if space == MemorySpace::Tape {
                self.out.set_align(new, access.align_bytes);
            }
        }
        for (&old, &result) in body.results(op).iter().zip(self.out.body.results(new)) {
            self.values.insert(old, result);
        }
        new
    }
}

/// Maps the primal's parameters and their shadows or tangents to the derivative's parameters.
fn parameters(
    facts: &BodyFacts<'_>,
    signature: &Signature,
    out: &DerivativeBuilder<'_>,
) -> (HashMap<Value, Value>, HashMap<Value, Lanes>) {
    let (mut values, mut companions) = (HashMap::new(), HashMap::<Value, Lanes>::new());
    for ((role, _), &param) in signature.params.iter().zip(out.body.params()) {
        match *role {
            ParamRole::Primal(number) => {
                values.insert(facts.body.params()[number], param);
            }
            ParamRole::Shadow(number, _) => {
                companions
                    .entry(facts.body.params()[number])
                    .or_default()
                    .push(param);
            }
            ParamRole::Cotangent(_) | ParamRole::Tape => {}
        }
    }
    (values, companions)
}

/// Builds the body of a forward-mode derivative.
pub(crate) fn forward_mode<'u>(
    unit: &'u mut gradus_ir::Unit,
    inputs: &mut Inputs<'_, '_>,
) -> DerivativeBuilder<'u> {
    let signature = inputs.variant.signature(unit);
    let params: Vec<_> = signature.params.iter().map(|(_, ty)| *ty).collect();
    let mut out = DerivativeBuilder::new(unit, &params, inputs.options.alias_scopes);
    crate::shadow::globals::clear(&mut out, inputs.variant, inputs.cleared);
    crate::shadow::pointer_witness::reset_stale_shadows(
        &mut out,
        inputs.variant,
        inputs.checked_pointers,
    );
    crate::shadow::global_pointers::rebind(&mut out, inputs.variant, inputs.global_pointers);
    let owned = owned_blocks::allocate(&mut out, (inputs.variant, &signature), inputs.owned_blocks);
    crate::shadow::descriptors::compare(&mut out, inputs.variant, &signature, inputs.facts.body);
    let mut pass = ForwardPass::new(
        inputs.facts,
        inputs.variant,
        &signature,
        &mut out,
        None,
        inputs.needs,
        inputs.findings,
    );
    let (result, shadow) = pass.run();
    crate::shadow::pointer_witness::update_witnesses(
        &mut out,
        inputs.variant,
        inputs.checked_pointers,
    );
    owned_blocks::release(&mut out, inputs.variant, inputs.owned_blocks, &owned);
    let mut values = Vec::new();
    for (role, ty) in &signature.results {
        let value = match *role {
            crate::variant::ResultRole::Primal => result,
            crate::variant::ResultRole::Shadow(lane) => shadow
                .as_ref()
                .and_then(|lanes| lanes.get(lane as usize).copied()),
            _ => None,
        };
        let own =
            matches!(role, crate::variant::ResultRole::Shadow(_)) && out.unit.types.is_ptr(*ty);
        values.push(match value.or(result.filter(|_| own)) {
            Some(value) => value,
            None => out.build().zero(*ty),
        });
    }
    pack(&mut out, &values);
    out
}

/// Returns the index paths of the addresses in a struct or array type.
fn address_paths(unit: &Unit, ty: TypeId) -> Vec<Vec<u32>> {
    let (mut found, mut work) = (Vec::new(), vec![(ty, Vec::new())]);
    while let Some((ty, path)) = work.pop() {
        let count = match unit.types.get(ty) {
            Type::Struct { fields, .. } => fields.len() as u64,
            Type::Array { len, .. } => *len,
            _ if unit.types.is_ptr(unit.types.scalar(ty)) => {
                found.push(path);
                continue;
            }
            _ => continue,
        };
        for index in 0..count as u32 {
            let inner = [path.as_slice(), &[index]].concat();
            work.extend(unit.types.field(ty, index).map(|field| (field, inner)));
        }
    }
    found
}
