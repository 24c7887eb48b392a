//! The reverse pass: reverses every op of the primal in reverse order.
//!
//! Adjoints of SSA values are SSA values. The reversal of an op takes the adjoint of its results and
//! accumulates into the adjoints of its operands; the reversal of memory ops accumulates into shadow memory.
//! A region op is reversed by a region op: see `structure.rs`. An explicit stack of tasks replaces recursion,
//! and nesting does not consume Rust stack.

use super::structure::{OpenBranch, OpenLoop};
use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::Node;
use crate::calculus;
use crate::emit::builder::{DerivativeBuilder, Lanes};
use crate::reverse::region_map::RegionMap;
use crate::reverse::restore::Recall;
use crate::reverse::select_guards::Guards;
use crate::shadow::integer_words::TestedConversion;
use crate::shadow::{integer_words, tangent_ops};
use crate::variant::Variant;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Code, Diagnostic, FloatPredicate, Op, OpKind, Region, Value};
use std::collections::HashMap;

/// A pending step; the last one is executed first.
#[derive(Debug)]
pub(super) enum Task {
    /// Reversal of an op and of all earlier ops in its region.
    Reverse(Option<Op>),
    /// Start of an arm of the innermost open branch, by number.
    BeginArm(usize),
    /// End of the arm.
    EndArm,
    /// End of the innermost open branch.
    EndBranch,
    /// End of the innermost open loop.
    EndLoop,
}

/// A reverse pass under construction.
pub struct ReversePass<'a, 'f, 'u, 'p> {
    pub(super) facts: &'a BodyFacts<'f>,
    pub(super) variant: &'a Variant,
    pub(super) out: &'a mut DerivativeBuilder<'u>,
    pub(super) recall: Recall<'p>,
    pub(super) mirrors: RegionMap,
    pub(super) adjoints: HashMap<Value, Lanes>,
    pub(super) guards: Guards,
    pub(super) tasks: Vec<Task>,
    pub(super) merges: Vec<OpenBranch>,
    pub(super) loops: Vec<OpenLoop>,
    pub(super) needs: &'a mut Vec<Variant>,
    pub(super) findings: &'a mut Vec<Diagnostic>,
}

impl<'a, 'f, 'u, 'p> ReversePass<'a, 'f, 'u, 'p> {
    /// Creates a reverse pass at the insertion point of `out`, which is the end of the forward pass.
    pub fn new(
        facts: &'a BodyFacts<'f>,
        variant: &'a Variant,
        out: &'a mut DerivativeBuilder<'u>,
        recall: Recall<'p>,
        needs: &'a mut Vec<Variant>,
        findings: &'a mut Vec<Diagnostic>,
    ) -> Self {
        ReversePass {
            facts,
            variant,
            out,
            recall,
            mirrors: RegionMap::default(),
            adjoints: HashMap::new(),
            guards: Guards::default(),
            tasks: Vec::new(),
            merges: Vec::new(),
            loops: Vec::new(),
            needs,
            findings,
        }
    }

    /// Reverses the whole body. `cotangents` are the cotangents of the result.
    pub fn run(&mut self, cotangents: &[Value]) {
        let root = self.facts.body.root();
        self.mirrors.add(root, self.out.insertion_point.0);
        let Some(end) = self.facts.body.last(root) else {
            return self.ice(None, "the body has no terminator");
        };
        if let (OpKind::Return, Some(result)) = (
            self.facts.body.kind(end),
            self.facts.body.operands(end).next(),
        ) && !cotangents.is_empty()
        {
            self.accumulate_adjoint(result, cotangents.iter().copied().collect());
        }
        self.tasks.push(Task::Reverse(self.facts.body.prev(end)));
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Reverse(None) => {}
                Task::Reverse(Some(op)) => {
                    self.tasks.push(Task::Reverse(self.facts.body.prev(op)));
                    self.reverse_op(op);
                }
                Task::BeginArm(number) => self.begin_arm(number),
                Task::EndArm => self.end_arm(),
                Task::EndBranch => self.end_branch(),
                Task::EndLoop => self.end_loop(),
            }
        }
        if !(self.merges.is_empty() && self.loops.is_empty()) {
            self.ice(None, "the reverse pass ends inside of a region op");
        }
    }

    /// Reports an impossible state and refuses the derivative (GRD0024).
    #[track_caller]
    pub(super) fn ice(&mut self, op: Option<Op>, reason: &str) {
        let name = &self.out.unit.functions[self.variant.func].name;
        let error = gradus_ir::internal_error(self.out.unit, self.facts.body, op, reason);
        self.findings.push(error.in_function(name));
    }

    /// Checks that the adjoints of a reversed op's results were passed to its operands or to shadow memory. A
    /// remaining adjoint would be missing in the derivative.
    #[track_caller]
    fn expect_adjoints_taken(&mut self, op: Op) {
        let results = self.facts.body.results(op);
        if results.iter().any(|v| self.adjoints.contains_key(v)) {
            self.ice(Some(op), "the adjoint of a result is dropped");
        }
    }

    /// Returns the forward values recorded by a dry run, in order.
    pub fn into_required_values(self) -> Vec<Node> {
        match self.recall {
            Recall::Record { nodes, .. } => nodes,
            Recall::Replay(_) => Vec::new(),
        }
    }

    /// Returns the current adjoint of a value: zero if nothing was accumulated.
    pub fn adjoint(&mut self, value: Value) -> Lanes {
        if let Some(lanes) = self.adjoints.get(&value) {
            return lanes.clone();
        }
        let ty = self.facts.body.ty(value);
        let zero = self.out.build().zero(ty);
        std::iter::repeat_n(zero, self.facts.width).collect()
    }

    /// Accumulates into the adjoint of a value, if it is active.
    pub(super) fn accumulate_adjoint(&mut self, value: Value, more: Lanes) {
        if !self.facts.is_active(value) {
            return;
        }
        let sum = match self.adjoints.get(&value).cloned() {
            None => more,
            Some(old) => {
                let add = |(a, b): (&Value, &Value)| {
                    tangent_ops::accumulate(self.out, self.facts, value, *a, *b)
                };
                old.iter().zip(&more).map(add).collect()
            }
        };
        self.adjoints.insert(value, sum);
    }

    /// Removes and returns the adjoint of an op's result, which is complete at the reversal of the op.
    pub(super) fn take_adjoint(&mut self, value: Value) -> Option<Lanes> {
        self.adjoints.remove(&value)
    }

    /// Returns a forward value. A missing value becomes a diagnostic and placeholders.
    pub(super) fn recall(&mut self, node: Node) -> Lanes {
        match self
            .recall
            .get(node, self.facts, self.out, &mut self.mirrors)
        {
            Ok(lanes) => lanes,
            Err(finding) => {
                self.findings.push(finding);
                let (ty, lanes) = self.facts.node_type(self.out.unit, node);
                let value = self.out.build().poison(ty);
                std::iter::repeat_n(value, lanes).collect()
            }
        }
    }
    /// Returns a primal value.
    pub(super) fn primal(&mut self, value: Value) -> Value {
        self.recall(Node::Primal(value))[0]
    }
    /// Returns the shadows of a pointer.
    pub(super) fn shadows_of(&mut self, pointer: Value) -> Lanes {
        self.recall(Node::Shadow(pointer))
    }

    fn reverse_op(&mut self, op: Op) {
        if !self.facts.has_reversal(op) {
            self.expect_adjoints_taken(op);
            return self.release_arrays(op);
        }
        self.out.copy_loc_and_flags(self.facts.body, op);
        self.keep_or_drop_independence(op);
        match self.facts.body.kind(op) {
            OpKind::If | OpKind::Switch(_) => self.open_branch(op),
            OpKind::For { .. } | OpKind::Loop { .. } => self.open_loop(op),
            OpKind::Load(_) => self.undo_load(op),
            OpKind::Store(_) => self.undo_store(op),
            OpKind::AtomicRmw(..) => self.undo_atomic_sum(op),
            OpKind::Alloca(_) => self.undo_alloca(op),
            OpKind::Call(_) | OpKind::Invoke(_) => self.undo_call(op),
            OpKind::Select
            | OpKind::Freeze
            | OpKind::ExtractElement
            | OpKind::InsertElement
            | OpKind::Shuffle(_)
            | OpKind::ExtractValue(_)
            | OpKind::InsertValue(_) => self.undo_linear(op),
            _ if !self.facts.body.op_regions(op).is_empty() => {
                let finding = self.facts.unhandled_region_error(self.out.unit, op);
                self.findings.push(finding);
            }
            OpKind::Cast(_)
                if self.facts.is_tested_conversion(op) || self.facts.is_tested_name(op) =>
            {
                self.undo_conversion(op);
            }
            OpKind::Binary(_) if is_planted(Mutant::AdjointNotEmitted) => {}
            _ => self.undo_by_rule(op),
        }
        if self.facts.body.op_regions(op).is_empty() {
            self.expect_adjoints_taken(op);
        }
    }

    /// Reverses an op with a formula in the calculus.
    pub(super) fn undo_by_rule(&mut self, op: Op) {
        let Some(&result) = self.facts.body.results(op).first() else {
            // Not an error: an op without results moves no adjoint.
            return;
        };
        if !self.facts.is_active(result) {
            return;
        }
        if self.facts.float_bit_ranges(result).is_some()
            || matches!(
                self.facts.body.kind(op),
                OpKind::Cast(gradus_ir::CastOp::BitCast)
            )
        {
            return self.undo_byte_lanes(op);
        }
        let Some(rule) = calculus::rule(self.out.unit, self.facts.body, op) else {
            self.refuse(op);
            return;
        };
        let Some(seeds) = self.take_adjoint(result) else {
            // Not an error: no adjoint was accumulated, and it is zero.
            return;
        };
        let body = self.facts.body;
        for number in rule.float_args() {
            let operand = body.operand(op, rule.operand(number));
            if rule.zero(number) || !self.facts.is_active(operand) {
                continue;
            }
            let uses = rule.uses(number);
            let args: Vec<Option<Value>> = (0..rule.arg_count())
                .map(|i| {
                    let operand = body.operand(op, rule.operand(i));
                    let wanted = uses.arg(i) || body.as_const(operand).is_some();
                    wanted.then(|| self.primal(operand))
                })
                .collect();
            let operands = (0..rule.arg_count()).map(|i| body.operand(op, rule.operand(i)));
            let known = operands
                .zip(&args)
                .filter_map(|(v, arg)| Some((v, (*arg)?)));
            let known: Vec<(Value, Value)> = known.collect();
            let value = uses.result.then(|| self.primal(result));
            let guarded =
                rule.maybe_infinite(number) || self.reads_undef_or_infinite(op, &rule, uses);
            let mut lanes = Lanes::new();
            for &seed in &seeds {
                let mut builder = self.out.build();
                let part = rule.build_adjoint(&mut builder, number, &args, value, seed);
                let Some(mut part) = part else {
                    self.ice(
                        Some(op),
                        "a derivative rule returns no adjoint of an active operand",
                    );
                    break;
                };
                if self.variant.strong_zero && !uses.is_none() {
                    part = tangent_ops::strong_product(self.out, seed, part);
                    let one = tangent_ops::unit_seed(self.out, seed);
                    let mut builder = self.out.build();
                    let slope = one.and_then(|one| {
                        rule.build_adjoint(&mut builder, number, &args, value, one)
                    });
                    if let Some(slope) = slope {
                        part = tangent_ops::strong_product(self.out, slope, part);
                    }
                }
                let guard = guarded.then(|| self.emit_guard(result, seed)).flatten();
                if guard.is_none() && !self.variant.strong_zero {
                    part = self.with_scaled_seed(op, seed, part, &known);
                }
                lanes.push(tangent_ops::select_guarded(self.out, guard, part));
            }
            if lanes.len() == seeds.len() {
                self.accumulate_adjoint(operand, lanes);
            }
        }
    }

    /// Reverses the conversion of a word of run-time kind: an integer has no adjoint. An adjoint of the bits of a float
    /// ends the program.
    fn undo_conversion(&mut self, op: Op) {
        let (word, result) = (self.facts.body.operand(op, 0), self.facts.body.result(op));
        let Some(seeds) = self.take_adjoint(result) else {
            // Not an error: no adjoint was accumulated, and it is zero.
            return;
        };
        if !self.facts.is_tested_conversion(op) {
            // Not an error: the forward pass has tested the operand.
            return;
        }
        let word = self.primal(word);
        let test = integer_words::integer_test_function(self.out.unit, TestedConversion::Word);
        for seed in seeds {
            let ty = self.out.body.ty(seed);
            let zero = self.out.build().zero(ty);
            let is_used = self.out.build().fcmp(FloatPredicate::Une, seed, zero);
            self.out.build().call(test, &[word, is_used]);
        }
    }

    /// Returns true if a partial derivative reads an undefined value, or a value that may be infinite or NaN
    /// although all its inputs are finite.
    fn reads_undef_or_infinite(
        &mut self,
        op: Op,
        rule: &calculus::Rule,
        uses: calculus::Uses,
    ) -> bool {
        let body = self.facts.body;
        let args = (0..rule.arg_count()).filter(|i| uses.arg(*i));
        let mut read: Vec<Value> = args.map(|i| body.operand(op, rule.operand(i))).collect();
        if read.iter().any(|v| self.may_be_unbounded(*v))
            || uses.result && rule.result_maybe_infinite()
        {
            return true;
        }
        read.extend(uses.result.then(|| body.result(op)));
        let (absent, unit) = (&mut self.guards.undef, &*self.out.unit);
        read.iter().any(|v| absent.is_any_undef(unit, body, *v))
    }

    /// Reports an active op without a derivative.
    pub(super) fn refuse(&mut self, op: Op) {
        let what = self.facts.describe(self.out.unit, op);
        self.findings.push(
            Diagnostic::error(
                Code::NoDerivative,
                format!("no derivative is known for {what}"),
            )
            .at(
                self.out.unit.span(self.facts.body.ops[op].loc),
                "works on active values",
            )
            .help("mark the value inactive if the value does not affect the result, or rewrite this line"),
        );
    }

    /// Returns the reverse region at the insertion point.
    pub(super) fn region(&self) -> Region {
        self.out.insertion_point.0
    }
}
