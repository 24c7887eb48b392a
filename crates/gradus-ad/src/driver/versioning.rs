//! Versioning: a run-time alias check chooses between two versions of a derivative.
//!
//! Without the check, memory behind one argument may be overwritten through another argument, and every load
//! from it must be saved. If the accessed ranges behind both arguments are known at entry, a disjointness
//! test selects the version that assumes disjoint memory. Memory axiom S2 forbids to assume disjointness
//! without a test.
//!
//! In split mode, the augmented primal executes the test, and the tape pointer passes the result to the
//! reverse pass. The tape pointer of the overlapping version is returned with an offset of one byte, where no
//! tape starts.

use crate::analysis::body_facts::alias_assumptions::RuntimeAliasCheck;
use crate::analysis::body_facts::{FactsBuilder, PlanChoices};
use crate::analysis::program_facts::ProgramFacts;
use crate::emit::builder::{DerivativeBuilder, pack};
use crate::variant::{Mode, ParamRole, Signature, Variant, Versions};
use gradus_analysis::{AccessRanges, BaseValue, Bound, BoundId, Condition};
use gradus_ir::{
    BinaryOp, Body, CastOp, ConstKind, FuncId, IntPredicate, OpKind, TypeId, Unit, Value,
};
use std::collections::HashMap;

/// A body that executes the check and calls one of two versions.
pub(crate) struct Dispatch {
    pub body: Body,
    /// The two versions; the version for disjoint memory comes first.
    pub needs: Vec<Variant>,
    /// See [`crate::Derived::disjoint_pairs`].
    pub apart: Vec<(usize, usize)>,
}

/// Builds the body that executes the check and calls one of two versions; `None` if no check is possible or
/// profitable.
pub(crate) fn version_dispatch(
    unit: &mut Unit,
    primal: &Body,
    closure: &ProgramFacts,
    variant: &Variant,
    options: &crate::Options,
) -> Option<Dispatch> {
    let test = FactsBuilder {
        unit,
        closure,
        variant,
        options,
        choices: PlanChoices::default(),
    }
    .runtime_alias_check(primal)?;
    let versions = [Versions::Disjoint, Versions::Plain];
    let needs: Vec<Variant> = versions
        .iter()
        .map(|v| Variant {
            versions: *v,
            ..variant.clone()
        })
        .collect();
    let funcs: Vec<FuncId> = needs.iter().map(|v| v.declare(unit)).collect();
    let signature = variant.signature(unit);
    let params: Vec<TypeId> = signature.params.iter().map(|(_, ty)| *ty).collect();
    let result = unit
        .result_type(signature.ty)
        .filter(|ty| !unit.types.is_void(*ty));
    let mut out = DerivativeBuilder::new(unit, &params, false);
    let mut values: HashMap<Value, Value> = HashMap::new();
    for ((role, _), &param) in signature.params.iter().zip(out.body.params()) {
        if let ParamRole::Primal(number) = role {
            values.insert(primal.params()[*number], param);
        }
    }
    let mut args: Vec<Value> = out.body.params().to_vec();
    let holds = match variant.mode {
        Mode::Reverse => untag_tape(&mut out, &signature, &mut args),
        _ => {
            let mut tester = CheckBuilder {
                out: &mut out,
                primal,
                values,
                bounds: HashMap::new(),
            };
            tester.emit_check(&test)
        }
    };
    let (op, yes, no) = out.build().if_(holds, result.as_slice());
    let outside = out.insertion_point;
    for (region, func) in [(yes, funcs[0]), (no, funcs[1])] {
        out.insertion_point = (region, None);
        let call = out.build().call(func, &args);
        let mut results = out.body.results(call).to_vec();
        if variant.mode == Mode::Augmented && region == no {
            let one = out.build().i64(1);
            results = vec![tag_tape(&mut out, &signature, results[0], one)];
        }
        out.build().yield_(&results);
    }
    out.insertion_point = outside;
    let results = out.body.results(op).to_vec();
    pack(&mut out, &results);
    Some(Dispatch {
        body: out.body,
        needs,
        apart: match variant.mode {
            Mode::Combined => disjoint_parameter_pairs(primal, &test, &signature),
            _ => Vec::new(),
        },
    })
}

/// Returns the augmented primal's result with a tagged tape pointer.
fn tag_tape(
    out: &mut DerivativeBuilder<'_>,
    signature: &Signature,
    given: Value,
    mark: Value,
) -> Value {
    if signature.results.len() == 1 {
        return offset_address(out, given, mark);
    }
    let tape = out.build().extract(given, &[0]);
    let tape = offset_address(out, tape, mark);
    out.build().insert(given, tape, &[0])
}

/// Emits an address at a byte offset, without `inbounds`.
fn offset_address(out: &mut DerivativeBuilder<'_>, address: Value, bytes: Value) -> Value {
    let source = out.unit.types.int(8);
    let ty = out.body.ty(address);
    let kind = OpKind::Addr { source };
    out.build().value(kind, &[address, bytes], ty)
}

/// Emits the test of the tag: true if the memory was disjoint. Removes the tag from the tape argument.
fn untag_tape(out: &mut DerivativeBuilder<'_>, signature: &Signature, args: &mut [Value]) -> Value {
    let mut roles = signature.params.iter();
    let number = roles.position(|(role, _)| *role == ParamRole::Tape);
    let long = out.unit.types.int(64);
    let mut build = out.build();
    let Some(number) = number else {
        return build.bool(true);
    };
    let address = build.cast(CastOp::PtrToInt, args[number], long);
    let (zero, one) = (build.i64(0), build.i64(1));
    let mark = build.binary(BinaryOp::And, address, one);
    let back = build.sub(zero, mark);
    let disjoint = build.icmp(IntPredicate::Eq, mark, zero);
    args[number] = offset_address(out, args[number], back);
    disjoint
}

/// Returns the pairs of a check as parameters of the derivative; empty if any pair involves memory other than
/// that of parameters.
fn disjoint_parameter_pairs(
    primal: &Body,
    test: &RuntimeAliasCheck,
    signature: &Signature,
) -> Vec<(usize, usize)> {
    let position = |number: usize| {
        let BaseValue::Value(value) = test.extents.roots[number].root else {
            return None;
        };
        let number = primal.params().iter().position(|param| *param == value)?;
        let role = ParamRole::Primal(number);
        signature
            .params
            .iter()
            .position(|(known, _)| *known == role)
    };
    let pairs = test.pairs.iter();
    let pairs = pairs.map(|(a, b)| Some((position(*a)?, position(*b)?)));
    pairs.collect::<Option<Vec<_>>>().unwrap_or_default()
}

struct CheckBuilder<'a, 'u> {
    out: &'a mut DerivativeBuilder<'u>,
    primal: &'a Body,
    values: HashMap<Value, Value>,
    bounds: HashMap<BoundId, Value>,
}

impl CheckBuilder<'_, '_> {
    /// Emits the whole check: true if all pairs are disjoint and all conditions hold.
    fn emit_check(&mut self, test: &RuntimeAliasCheck) -> Value {
        for &op in &test.early {
            let operands: Vec<Value> = self.primal.operands(op).map(|v| self.value(v)).collect();
            let result = self.primal.result(op);
            let ty = self.primal.ty(result);
            let kind = self.primal.kind(op).clone();
            let new = self.out.build().value(kind, &operands, ty);
            self.values.insert(result, new);
        }
        let mut all = self.out.build().bool(true);
        for &(a, b) in &test.pairs {
            let one = self.disjoint(&test.extents, a, b);
            all = self.out.build().binary(BinaryOp::And, all, one);
        }
        for condition in &test.extents.conditions {
            let one = self.holds(&test.extents, condition);
            all = self.out.build().binary(BinaryOp::And, all, one);
        }
        all
    }

    /// Emits the test that a range lies within a condition's bounds.
    fn holds(&mut self, extents: &AccessRanges, condition: &Condition) -> Value {
        let (low, high) = condition.range;
        let (low, high) = (self.bound(extents, low), self.bound(extents, high));
        let wide = self.out.unit.types.int(128);
        let (least, most) = condition.within;
        let mut build = self.out.build();
        let (least, most) = (
            build.int(wide, i128::from(least)),
            build.int(wide, i128::from(most)),
        );
        let above = build.icmp(IntPredicate::Sge, low, least);
        let below = build.icmp(IntPredicate::Sle, high, most);
        build.binary(BinaryOp::And, above, below)
    }

    fn value(&mut self, value: Value) -> Value {
        match (self.values.get(&value), self.primal.as_const(value)) {
            (Some(&new), _) => new,
            (None, Some(id)) => self.out.body.constant(self.out.unit, id),
            (None, None) => {
                let ty = self.primal.ty(value);
                self.out.build().poison(ty)
            }
        }
    }

    /// Emits the test that the accessed ranges behind two pointers are disjoint, and that their bounds lie
    /// within ±2⁶².
    fn disjoint(&mut self, extents: &AccessRanges, a: usize, b: usize) -> Value {
        let (a_from, a_to, a_sane) = self.range(extents, a);
        let (b_from, b_to, b_sane) = self.range(extents, b);
        let mut build = self.out.build();
        let before = build.icmp(IntPredicate::Sle, a_to, b_from);
        let after = build.icmp(IntPredicate::Sle, b_to, a_from);
        let apart = build.binary(BinaryOp::Or, before, after);
        let sane = build.binary(BinaryOp::And, a_sane, b_sane);
        build.binary(BinaryOp::And, apart, sane)
    }

    /// Emits start and end of an accessed range as 128-bit addresses, and the test that the bounds lie within
    /// ±2⁶².
    fn range(&mut self, extents: &AccessRanges, number: usize) -> (Value, Value, Value) {
        let extent = &extents.roots[number];
        let start = self.root(extent.root);
        let wide = self.out.unit.types.int(128);
        let Some((low, high)) = extent.range else {
            let no = self.out.build().bool(false);
            return (start, start, no);
        };
        let (low, high) = (self.bound(extents, low), self.bound(extents, high));
        let mut build = self.out.build();
        let limit = build.int(wide, 1 << 62);
        let least = build.int(wide, -(1 << 62));
        let above = build.icmp(IntPredicate::Sge, low, least);
        let below = build.icmp(IntPredicate::Sle, high, limit);
        let sane = build.binary(BinaryOp::And, above, below);
        (build.add(start, low), build.add(start, high), sane)
    }

    fn root(&mut self, root: BaseValue) -> Value {
        let pointer = match root {
            BaseValue::Value(value) => self.value(value),
            BaseValue::Global(global) => {
                let ptr = self.out.unit.types.ptr();
                let id = self
                    .out
                    .unit
                    .consts
                    .intern(ptr, ConstKind::Global { global, offset: 0 });
                self.out.body.constant(self.out.unit, id)
            }
        };
        let (long, wide) = (self.out.unit.types.int(64), self.out.unit.types.int(128));
        let mut build = self.out.build();
        let address = build.cast(CastOp::PtrToInt, pointer, long);
        build.cast(CastOp::ZExt, address, wide)
    }

    /// Emits a bound. Operands of a bound precede it in the list.
    fn bound(&mut self, extents: &AccessRanges, wanted: BoundId) -> Value {
        for number in 0..=wanted.0 {
            let id = BoundId(number);
            if self.bounds.contains_key(&id) {
                continue;
            }
            let made = self.make(extents.bounds[number as usize]);
            self.bounds.insert(id, made);
        }
        self.bounds[&wanted]
    }

    fn make(&mut self, bound: Bound) -> Value {
        let wide = self.out.unit.types.int(128);
        match bound {
            Bound::Constant(n) => self.out.build().int(wide, i128::from(n)),
            Bound::Signed(value) => {
                let value = self.value(value);
                self.out.build().cast(CastOp::SExt, value, wide)
            }
            Bound::Unsigned(value) => {
                let value = self.value(value);
                self.out.build().cast(CastOp::ZExt, value, wide)
            }
            Bound::Add(a, b) => {
                let (a, b) = (self.bounds[&a], self.bounds[&b]);
                self.out.build().add(a, b)
            }
            Bound::Mul(a, b) => {
                let (a, b) = (self.bounds[&a], self.bounds[&b]);
                self.out.build().mul(a, b)
            }
            Bound::Min(a, b) | Bound::Max(a, b) => {
                let order = match bound {
                    Bound::Min(..) => IntPredicate::Slt,
                    _ => IntPredicate::Sgt,
                };
                let (a, b) = (self.bounds[&a], self.bounds[&b]);
                let first = self.out.build().icmp(order, a, b);
                self.out.build().select(first, a, b)
            }
        }
    }
}
