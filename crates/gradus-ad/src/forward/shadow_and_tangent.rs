//! Shadows of addresses and tangents of floats, emitted after each op of the forward pass.

use super::ForwardPass;
use crate::calculus;
use crate::emit::builder::{Lanes, MemorySpace};
use crate::emit::stop_message::stop_message;
use crate::shadow::integer_words::TestedConversion;
use crate::shadow::{indirect_calls, integer_words, tangent_ops};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, CastOp, Code, Diagnostic, IntPredicate, Op, OpKind, Value};

impl ForwardPass<'_, '_, '_, '_> {
    /// Emits the shadow or tangent of an op's result, if any.
    pub(super) fn emit_shadow_and_tangent(&mut self, op: Op) {
        let body = self.facts.body;
        let Some(&result) = body.results(op).first() else {
            // Not an error: an op without results has no shadow or tangent.
            return;
        };
        if !self.has_companion(result) {
            return;
        }
        match body.kind(op) {
            OpKind::Addr { .. } if is_planted(Mutant::ShadowAddressMissing) => {}
            OpKind::Addr { .. } => self.clone_on_companions(op, &[0]),
            OpKind::Select if self.has_dependency_sets() && self.unite_selected(op) => {}
            OpKind::Select => self.clone_on_companions(op, &[1, 2]),
            OpKind::ExtractElement | OpKind::ExtractValue(_) | OpKind::Freeze => {
                self.clone_on_companions(op, &[0]);
            }
            OpKind::InsertElement | OpKind::InsertValue(_) | OpKind::Shuffle(_) => {
                self.clone_on_companions(op, &[0, 1]);
            }
            OpKind::Load(_) => self.load_companion(op),
            OpKind::Cast(_)
                if self.facts.is_tested_conversion(op) || self.facts.is_tested_name(op) =>
            {
                self.convert_word(op);
            }
            OpKind::Cast(CastOp::IntToPtr) if !self.facts.has_shadow(body.operand(op, 0)) => {
                self.from_integer(op);
            }
            OpKind::Cast(
                CastOp::AddrSpaceCast
                | CastOp::BitCast
                | CastOp::PtrToInt
                | CastOp::IntToPtr
                | CastOp::Trunc
                | CastOp::ZExt,
            ) => self.clone_on_companions(op, &[0]),
            OpKind::Binary(binary) if self.facts.is_address_word(result) => {
                self.address_arithmetic(op, *binary);
            }
            OpKind::Binary(BinaryOp::Shl | BinaryOp::LShr | BinaryOp::And) => {
                self.clone_on_companions(op, &[0])
            }
            OpKind::Binary(BinaryOp::Or) => self.clone_on_companions(op, &[0, 1]),
            // The address of the shadow cannot be computed from the address of the primal.
            _ if self.facts.has_shadow(result) && !self.facts.is_active(result) => self.refuse(op),
            _ => self.tangent(op),
        }
    }

    /// Handles an address converted from an integer. A constant address is inactive memory and its own
    /// shadow; any other address has an unknown shadow.
    fn from_integer(&mut self, op: Op) {
        let body = self.facts.body;
        match body.as_const(body.operand(op, 0)) {
            Some(_) => self.tangent(op),
            None => self.refuse(op),
        }
    }

    /// Emits the tangent of the conversion of a word of run-time kind: zero for an integer, NaN for the bits of a float.
    fn convert_word(&mut self, op: Op) {
        let word = self.value(self.facts.body.operand(op, 0));
        let result = self.facts.body.result(op);
        let ty = self.facts.body.ty(result);
        let mut b = self.out.build();
        let is_integer = integer_words::is_small_integer(&mut b, word);
        let (zero, nan) = (b.zero(ty), b.float(ty, f64::NAN));
        let tangent = b.select(is_integer, zero, nan);
        let lanes = Lanes::from_elem(tangent, self.facts.width);
        self.companions.insert(result, lanes);
    }

    /// Emits the test of a conversion of an integer by name, from memory that also holds floats.
    pub(super) fn test_converted_name(&mut self, op: Op) {
        if !self.facts.is_tested_name(op) {
            return;
        }
        let word = self.value(self.facts.body.operand(op, 0));
        let ty = self.out.body.ty(word);
        let bits = self.out.unit.types.int_bits(ty).unwrap_or(64);
        let test =
            integer_words::integer_test_function(self.out.unit, TestedConversion::Name(bits));
        let mut b = self.out.build();
        let is_used = b.bool(true);
        b.call(test, &[word, is_used]);
    }

    /// Emits the op on the shadows or tangents of some operands.
    fn clone_on_companions(&mut self, op: Op, data: &[usize]) {
        let body = self.facts.body;
        let result = body.result(op);
        let ty = body.ty(result);
        let mut lanes = Lanes::new();
        let companions: Vec<(usize, Lanes)> = data
            .iter()
            .map(|&i| (i, self.companion(body.operand(op, i))))
            .collect();
        for lane in 0..self.facts.width {
            let mut operands: Vec<Value> = body.operands(op).map(|v| self.value(v)).collect();
            for (i, lanes) in &companions {
                operands[*i] = lanes[lane];
            }
            let value = self.out.build().value(body.kind(op).clone(), &operands, ty);
            let flags = match body.kind(op) {
                OpKind::Addr { .. } => self.flags(op),
                _ => gradus_ir::Flags::NONE,
            };
            self.out.build().set_flags(value, flags);
            lanes.push(value);
        }
        self.companions.insert(result, lanes);
    }

    fn load_companion(&mut self, op: Op) {
        let body = self.facts.body;
        let (result, ptr) = (body.result(op), body.operand(op, 0));
        let OpKind::Load(access) = body.kind(op) else {
            return self.ice(Some(op), "the op is not a load");
        };
        let ty = body.ty(result);
        let shadows = self.companion(ptr);
        let mut lanes = Lanes::new();
        for (lane, &shadow) in shadows.iter().enumerate() {
            let value = self
                .out
                .load(ty, shadow, MemorySpace::Shadow, body.ops[op].meta);
            if let Some(new) = self.out.body.def_op(value) {
                self.out.set_align(new, access.align_bytes);
                self.drop_self_alias_scopes(new, ptr);
            }
            if self.facts.may_lack_shadow(op) {
                self.stop_if_shadow_is_null(op, value);
            }
            let value = self.own_shadow_if_zero(result, value);
            lanes.push(self.zero_if_inactive(ptr, result, lane, value));
        }
        self.companions.insert(result, lanes);
    }

    /// Ends the program if a non-null pointer loaded from a global variable has a null shadow.
    fn stop_if_shadow_is_null(&mut self, op: Op, shadow: Value) {
        let own = self.value(self.facts.body.result(op));
        let function = &self.out.unit.functions[self.facts.func];
        let span = self.out.unit.span(self.facts.body.ops[op].loc);
        let place = match span.as_ref().or(function.span.as_ref()) {
            Some(span) => format!("{}:{}: ", span.file, span.line),
            None => String::new(),
        };
        let name = function.display_name();
        let text = format!(
            "{place}`{name}` loads a pointer to memory without a shadow from a global variable: the pointer was stored before the call of the derivative"
        );
        let text = stop_message(Code::Outlives, &text);
        let stop = indirect_calls::stop_with_message(self.out.unit, &text);
        let ptr = self.out.body.ty(own);
        let null = self.out.build().zero(ptr);
        let has_none = self.out.build().icmp(IntPredicate::Eq, shadow, null);
        let is_there = self.out.build().icmp(IntPredicate::Ne, own, null);
        let lacks = (self.out.build()).binary(BinaryOp::And, has_none, is_there);
        self.when(Some(lacks), |pass| {
            pass.out.build().call(stop, &[]);
        });
    }

    /// Drops the alias scopes of an access whose shadow may be the primal: axiom S1 does not apply.
    pub(super) fn drop_self_alias_scopes(&mut self, new: Op, ptr: Value) {
        if self.facts.shadow_may_be_primal(ptr) {
            self.out.body.ops[new].meta = None;
        }
    }

    /// Emits the tangent of a loaded float: zero if the pointer is its own shadow.
    fn zero_if_inactive(
        &mut self,
        ptr: Value,
        result: Value,
        lane: usize,
        tangent: Value,
    ) -> Value {
        let ty = self.facts.body.ty(result);
        if self.out.unit.types.is_ptr(ty) {
            return tangent;
        }
        let Some(real) = self.activity_test(ptr, lane) else {
            return tangent;
        };
        let zero = self.out.build().zero(ty);
        self.out.build().select(real, tangent, zero)
    }

    /// Emits the tangent of a float by the calculus: Σ ∂ · tangent.
    pub(super) fn tangent(&mut self, op: Op) {
        let body = self.facts.body;
        let result = body.result(op);
        if !self.facts.is_active(result) {
            let lanes = Lanes::from_elem(self.value(result), self.facts.width);
            self.companions.insert(result, lanes);
            return;
        }
        let Some(rule) = calculus::rule(self.out.unit, body, op) else {
            self.refuse(op);
            return;
        };
        if self.has_dependency_sets() {
            return self.unite_by_rule(op, &rule);
        }
        let operands: Vec<Value> = (0..rule.arg_count())
            .map(|i| body.operand(op, rule.operand(i)))
            .collect();
        let args: Vec<Option<Value>> = operands.iter().map(|v| Some(self.value(*v))).collect();
        let value = self.value(result);
        let tangents: Vec<Option<Lanes>> = operands
            .iter()
            .map(|v| self.facts.is_active(*v).then(|| self.companion(*v)))
            .collect();
        let mut sums = Lanes::new();
        for lane in 0..self.facts.width {
            let of_lane: Vec<Option<Value>> = tangents
                .iter()
                .map(|t| t.as_ref().map(|lanes| lanes[lane]))
                .collect();
            let sum = match self.variant.strong_zero {
                true => self.strong_tangent(&rule, &args, value, &of_lane),
                false => {
                    let mut builder = self.out.build();
                    rule.build_tangent(&mut builder, &args, Some(value), &of_lane)
                }
            };
            sums.push(match sum {
                Some(sum) => sum,
                None => {
                    let ty = body.ty(result);
                    self.out.build().zero(ty)
                }
            });
        }
        self.companions.insert(result, sums);
    }

    /// Emits the tangent with strong products: a zero tangent or a zero partial contributes zero.
    fn strong_tangent(
        &mut self,
        rule: &calculus::Rule,
        args: &[Option<Value>],
        value: Value,
        tangents: &[Option<Value>],
    ) -> Option<Value> {
        let mut sum: Option<Value> = None;
        for (number, tangent) in tangents.iter().enumerate() {
            let Some(tangent) = *tangent else { continue };
            let mut single = vec![None; tangents.len()];
            single[number] = Some(tangent);
            let mut builder = self.out.build();
            let Some(part) = rule.build_tangent(&mut builder, args, Some(value), &single) else {
                continue;
            };
            let mut part = tangent_ops::strong_product(self.out, tangent, part);
            single[number] = tangent_ops::unit_seed(self.out, tangent);
            let mut builder = self.out.build();
            let slope = single[number]
                .and_then(|_| rule.build_tangent(&mut builder, args, Some(value), &single));
            if let Some(slope) = slope {
                part = tangent_ops::strong_product(self.out, slope, part);
            }
            let ty = self.out.body.ty(part);
            sum = Some(match sum {
                Some(sum) => tangent_ops::add_typed(self.out, ty, sum, part),
                None => part,
            });
        }
        sum
    }

    pub(super) fn refuse(&mut self, op: Op) {
        let what = self.facts.describe(self.out.unit, op);
        let span = self.out.unit.span(self.facts.body.ops[op].loc);
        self.findings.push(
            Diagnostic::error(
                Code::NoDerivative,
                format!("no derivative is known for {what}"),
            )
            .at(span, "works on active values")
            .help("mark the value inactive if the value does not affect the result, or rewrite this line"),
        );
    }
}
