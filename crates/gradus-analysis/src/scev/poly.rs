//! Polynomial forms: integers and addresses as sums of products of values.
//!
//! A form Σ cᵢ·mᵢ + c stands for a machine integer, sign-extended to 64 bits. Its monomials are products of
//! *atoms*: values without further decomposition. An op is decomposed only if its flags exclude wrapping or
//! its type has 64 bits, because sums and products modulo 2⁶⁴ are ring operations. The latter marks the
//! form inexact. Forms are built in program order in one pass and stay small: a form beyond [`MAX_TERMS`]
//! becomes an atom. A loop-carried value of a `for` with a constant step is start + step · index (chains of
//! recurrences of degree 1; Bachmann, Wang and Zima, 1994).

use crate::scev::intervals::{Interval, Intervals, full_interval};
use gradus_ir::{
    BinaryOp, Body, CastOp, ConstKind, Definition, Entity, Flags, GlobalId, Op, OpKind, Type, Unit,
    Value,
};
use smallvec::{SmallVec, smallvec};
use std::rc::Rc;

/// Maximal number of terms of a form.
pub const MAX_TERMS: usize = 12;
const MAX_DEGREE: usize = 4;

/// A product of atoms, sorted.
pub type Monomial = SmallVec<[Value; 2]>;

/// A sum of products of values; see the module documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poly {
    /// The constant term.
    pub constant: i64,
    /// The monomials and their non-zero coefficients, sorted by monomial.
    pub terms: SmallVec<[(Monomial, i64); 3]>,
    /// True if the sum holds in the integers, false if it holds modulo 2⁶⁴.
    pub exact: bool,
}

impl Poly {
    /// Returns the form of a constant.
    pub fn constant(n: i64) -> Poly {
        Poly {
            constant: n,
            terms: SmallVec::new(),
            exact: true,
        }
    }
    /// Returns the form of a value as an atom.
    pub fn atom(value: Value) -> Poly {
        Poly {
            constant: 0,
            terms: smallvec![(smallvec![value], 1)],
            exact: true,
        }
    }
    /// Returns the value of a constant form.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }
    /// Returns the sum; `None` if it has too many terms.
    pub fn plus(&self, other: &Poly) -> Option<Poly> {
        self.plus_times(other, 1)
    }
    /// Returns `self` + `factor` · `other`; `None` if the sum has too many terms.
    pub fn plus_times(&self, other: &Poly, factor: i64) -> Option<Poly> {
        let mut sum = Poly {
            exact: self.exact && other.exact,
            ..Poly::constant(0)
        };
        sum.constant = sum.wrap(
            other
                .constant
                .checked_mul(factor)
                .and_then(|n| n.checked_add(self.constant)),
            other
                .constant
                .wrapping_mul(factor)
                .wrapping_add(self.constant),
        );
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let from_left = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
            };
            let mut coefficient = 0i64;
            let mut monomial = None;
            if from_left.is_le()
                && let Some((m, c)) = left.next()
            {
                (monomial, coefficient) = (Some(m.clone()), *c);
            }
            if from_left.is_ge()
                && let Some((m, c)) = right.next()
            {
                let checked = c
                    .checked_mul(factor)
                    .and_then(|n| n.checked_add(coefficient));
                let wrapped = c.wrapping_mul(factor).wrapping_add(coefficient);
                (monomial, coefficient) = (Some(m.clone()), sum.wrap(checked, wrapped));
            }
            if let Some(m) = monomial.filter(|_| coefficient != 0) {
                sum.terms.push((m, coefficient));
            }
        }
        (sum.terms.len() <= MAX_TERMS).then_some(sum)
    }
    /// Returns the product; `None` if it has too many terms or too high a degree.
    pub fn times(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::constant(0);
        product.exact = self.exact && other.exact;
        let one: (Monomial, i64) = (Monomial::new(), other.constant);
        for (m, c) in other.terms.iter().chain((one.1 != 0).then_some(&one)) {
            let mut part = Poly::constant(0);
            let ends = (Monomial::new(), self.constant);
            for (n, d) in self.terms.iter().chain((ends.1 != 0).then_some(&ends)) {
                let mut atoms = m.clone();
                atoms.extend_from_slice(n);
                atoms.sort_unstable();
                let value = part.wrap(c.checked_mul(*d), c.wrapping_mul(*d));
                match atoms.len() {
                    0 => part.constant = value,
                    1..=MAX_DEGREE => part.terms.push((atoms, value)),
                    _ => return None,
                }
            }
            part.terms.sort_unstable();
            product = product.plus(&part)?;
        }
        Some(product)
    }
    fn wrap(&mut self, checked: Option<i64>, wrapped: i64) -> i64 {
        self.exact &= checked.is_some();
        checked.unwrap_or(wrapped)
    }
    fn inexact_unless(mut self, exact: bool) -> Poly {
        self.exact &= exact;
        self
    }
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaseValue {
    /// A pointer that is not an address computation.
    Value(Value),
    /// The start of a global variable.
    Global(GlobalId),
}

/// An address: base and offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartAndOffset {
    /// The base.
    pub root: BaseValue,
    /// Offset from the base in bytes.
    pub offset: Rc<Poly>,
}

/// The forms of the integers and addresses of one body. Valid until the first edit.
#[derive(Clone, Debug)]
pub struct PolyForms {
    integers: Vec<Option<Rc<Poly>>>,
    places: Vec<Option<StartAndOffset>>,
    zero: Rc<Poly>,
    /// Constant intervals of the integers.
    pub intervals: Intervals,
}

impl PolyForms {
    /// Computes the forms of a body's integers and addresses.
    pub fn of(unit: &Unit, body: &Body) -> PolyForms {
        let mut forms = PolyForms {
            integers: vec![None; body.values.len()],
            places: vec![None; body.values.len()],
            zero: Rc::new(Poly::constant(0)),
            intervals: Intervals::new(body),
        };
        for op in body.walk(body.root()) {
            match *body.kind(op) {
                OpKind::For { trip_max } => {
                    forms.intervals.enter_for(unit, body, op, trip_max);
                    forms.recurrences(unit, body, op);
                    continue;
                }
                OpKind::Spmd { kind, .. } => {
                    forms.intervals.enter_spmd(unit, body, op, kind);
                    continue;
                }
                OpKind::If | OpKind::Switch(_) => continue,
                OpKind::Yield => forms.intervals.join_yields(unit, body, op),
                _ => {}
            }
            let Some(&result) = body.results(op).first() else {
                continue;
            };
            let interval = forms.intervals.of_op(unit, body, op);
            forms.intervals.set(result, interval);
            if unit.types.is_ptr(body.ty(result)) {
                forms.places[result.index()] = forms.address(unit, body, op);
            } else if let Some(linear) = forms.integer(unit, body, op) {
                forms.integers[result.index()] = Some(Rc::new(linear));
            }
        }
        forms
    }

    /// Returns the form of an integer of at most 64 bits.
    pub fn of_integer(&self, unit: &Unit, body: &Body, value: Value) -> Rc<Poly> {
        match self.integers.get(value.index()) {
            Some(Some(linear)) => linear.clone(),
            _ => Rc::new(match body.as_int(unit, value) {
                Some(n) => Poly::constant(n),
                None => Poly::atom(value),
            }),
        }
    }
    /// Returns the base and the offset of a pointer.
    pub fn of_pointer(&self, unit: &Unit, body: &Body, value: Value) -> StartAndOffset {
        if let Some(Some(place)) = self.places.get(value.index()) {
            return place.clone();
        }
        if let Definition::Const(id) = body.values[value].def
            && let ConstKind::Global { global, offset } = unit.constant(id).kind
        {
            return StartAndOffset {
                root: BaseValue::Global(global),
                offset: Rc::new(Poly::constant(offset)),
            };
        }
        StartAndOffset {
            root: BaseValue::Value(value),
            offset: self.zero.clone(),
        }
    }

    /// Finds the induction variables of a `for`: start + step · index, and start + step · trip count after
    /// the loop.
    fn recurrences(&mut self, unit: &Unit, body: &Body, lp: Op) {
        let (region, trips) = (body.op_regions(lp)[0], body.operand(lp, 0));
        let Some(end) = body.last(region) else {
            unreachable!("a verified region has a terminator");
        };
        let params = body.region_params(region);
        let (low, _) = self.intervals.of(unit, body, params[0]);
        // If no iteration reaches its end, no value is carried.
        if low < 0 || params.len() < 2 || !matches!(body.kind(end), OpKind::Yield) {
            return;
        }
        let index = Poly::atom(params[0]);
        let trips = self.of_integer(unit, body, trips);
        for (number, &param) in params.iter().enumerate().skip(1) {
            let (start, next) = (body.operand(lp, number), body.operand(end, number - 1));
            let Some(step) = self.increment(unit, body, lp, param, next) else {
                continue;
            };
            for (value, times) in [(param, &index), (body.results(lp)[number - 1], &*trips)] {
                let Some(grown) = step.times(times) else {
                    continue;
                };
                if unit.types.is_ptr(body.ty(param)) {
                    let start = self.of_pointer(unit, body, start);
                    self.places[value.index()] =
                        start.offset.plus(&grown).map(|offset| StartAndOffset {
                            root: start.root,
                            offset: Rc::new(offset),
                        });
                } else {
                    let start = self.of_integer(unit, body, start);
                    let form = start.plus(&grown).map(Rc::new);
                    let interval = form
                        .as_ref()
                        .and_then(|form| self.interval(unit, body, form));
                    let fits = interval.filter(|i| {
                        let full = full_interval(unit.types.int_bits(body.ty(value)).unwrap_or(64));
                        i.0 >= full.0 && i.1 <= full.1
                    });
                    self.intervals.set(value, fits);
                    self.integers[value.index()] = form;
                }
            }
        }
    }

    /// Returns the amount that `next` adds to the carried value `param`, if it is loop-invariant.
    fn increment(
        &self,
        unit: &Unit,
        body: &Body,
        lp: Op,
        param: Value,
        next: Value,
    ) -> Option<Poly> {
        const MAX_STEPS: usize = 8;
        let region = body.op_regions(lp)[0];
        let outside = |v: Value| {
            let made_in = body.region_of(v);
            made_in.is_none_or(|made| made != region && body.is_inside(region, made))
        };
        let mut step = Poly::constant(0);
        let mut at = next;
        for _ in 0..MAX_STEPS {
            if at == param {
                return Some(step);
            }
            let op = body.def_op(at)?;
            let flags = body.ops[op].flags;
            if let Some(address) = unit.layout.address(unit, body, op) {
                step = step.plus(&Poly::constant(address.offset))?;
                for (index, stride) in address.terms {
                    let narrow = unit.types.int_bits(body.ty(index))? <= 64;
                    (narrow && outside(index)).then_some(())?;
                    step = step.plus_times(&self.of_integer(unit, body, index), stride)?;
                }
                let exact = flags.has(Flags::INBOUNDS) || flags.has(Flags::NUSW);
                step = step.inexact_unless(exact);
                at = address.base;
                continue;
            }
            let (a, b) = match body.kind(op) {
                OpKind::Binary(BinaryOp::Add | BinaryOp::Sub) => {
                    (body.operand(op, 0), body.operand(op, 1))
                }
                _ => return None,
            };
            let bits = unit.types.int_bits(body.ty(at))?;
            (bits == 64 || bits < 64 && flags.has(Flags::NSW)).then_some(())?;
            let sub = matches!(body.kind(op), OpKind::Binary(BinaryOp::Sub));
            let (rest, added) = if outside(b) { (a, b) } else { (b, a) };
            (outside(added) && !(sub && rest == b)).then_some(())?;
            let sign = if sub { -1 } else { 1 };
            step = step.plus_times(&self.of_integer(unit, body, added), sign)?;
            step = step.inexact_unless(flags.has(Flags::NSW));
            at = rest;
        }
        None
    }

    fn address(&self, unit: &Unit, body: &Body, op: Op) -> Option<StartAndOffset> {
        if let OpKind::Cast(CastOp::BitCast) = body.kind(op) {
            return Some(self.of_pointer(unit, body, body.operand(op, 0)));
        }
        let address = unit.layout.address(unit, body, op)?;
        let base = self.of_pointer(unit, body, address.base);
        let flags = body.ops[op].flags;
        let exact = flags.has(Flags::INBOUNDS) || flags.has(Flags::NUSW);
        let mut offset = base.offset.plus(&Poly::constant(address.offset))?;
        for (index, stride) in address.terms {
            if unit.types.int_bits(body.ty(index))? > 64 {
                return None;
            }
            let index = self.of_integer(unit, body, index);
            offset = offset.plus_times(&index, stride)?;
        }
        Some(StartAndOffset {
            root: base.root,
            offset: Rc::new(offset.inexact_unless(exact)),
        })
    }

    /// Returns the interval of an exact form; `None` if it exceeds 64 bits.
    fn interval(&self, unit: &Unit, body: &Body, form: &Poly) -> Option<Interval> {
        self.range(unit, body, form).filter(|_| form.exact)
    }

    /// Returns the interval of a form's sum in the integers; `None` if it exceeds 64 bits. A sum within 64
    /// bits holds in the integers even if the form is inexact.
    pub(crate) fn range(&self, unit: &Unit, body: &Body, form: &Poly) -> Option<Interval> {
        let terms = form
            .terms
            .iter()
            .map(|(atoms, c)| (*c, atoms.iter().copied()));
        self.intervals.of_sum(unit, body, form.constant, terms)
    }

    /// Matches `ashr (x · 2ᵏ), k`, LLVM's widened form of a sign-extended narrow sum. Returns x if x fits
    /// the remaining bits.
    fn unshifted_form(&self, unit: &Unit, body: &Body, op: Op) -> Option<Poly> {
        let by = body.as_int(unit, body.operand(op, 1))?;
        let by = u32::try_from(by).ok().filter(|by| *by < 63)?;
        let form = self.of_integer(unit, body, body.operand(op, 0));
        let divides = |n: i64| n.trailing_zeros() >= by;
        let whole = divides(form.constant) && form.terms.iter().all(|(_, c)| divides(*c));
        let mut inner = (*form).clone();
        inner.exact = true;
        inner.constant >>= by;
        inner.terms.iter_mut().for_each(|(_, c)| *c >>= by);
        let (low, high) = self.interval(unit, body, &inner)?;
        let (least, most) = full_interval(64 - by);
        (whole && low >= least && high <= most).then_some(inner)
    }

    fn integer(&self, unit: &Unit, body: &Body, op: Op) -> Option<Poly> {
        let Type::Int(bits) = *unit.types.get(body.ty(*body.results(op).first()?)) else {
            return None;
        };
        if bits > 64 {
            return None;
        }
        let flags = body.ops[op].flags;
        let get = |index| self.of_integer(unit, body, body.operand(op, index));
        match body.kind(op) {
            OpKind::Cast(CastOp::SExt) => Some((*get(0)).clone()),
            OpKind::Cast(CastOp::ZExt) => {
                let (low, _) = self.intervals.of(unit, body, body.operand(op, 0));
                let keeps = low >= 0 || flags.has(Flags::NNEG);
                keeps.then(|| (*get(0)).clone())
            }
            OpKind::Cast(CastOp::Trunc) => {
                let keeps = flags.has(Flags::NSW) || self.intervals.cannot_wrap(unit, body, op);
                keeps.then(|| (*get(0)).clone())
            }
            OpKind::Binary(BinaryOp::AShr) if bits == 64 => self.unshifted_form(unit, body, op),
            OpKind::Binary(BinaryOp::And) => {
                let mask = body.as_int(unit, body.operand(op, 1))?;
                let (low, high) = self.intervals.of(unit, body, body.operand(op, 0));
                let keeps = mask >= 0 && mask & (mask.wrapping_add(1)) == 0;
                (keeps && low >= 0 && high <= mask).then(|| (*get(0)).clone())
            }
            OpKind::Binary(binary) => {
                let signed = flags.has(Flags::NSW) || self.intervals.cannot_wrap(unit, body, op);
                if !signed && bits < 64 && *binary != BinaryOp::Or {
                    return None;
                }
                self.sum_or_product(unit, body, op, *binary)
                    .map(|l| l.inexact_unless(signed || *binary == BinaryOp::Or))
            }
            _ => None,
        }
    }

    fn sum_or_product(&self, unit: &Unit, body: &Body, op: Op, binary: BinaryOp) -> Option<Poly> {
        let (left, right) = (body.operand(op, 0), body.operand(op, 1));
        let get = |value| self.of_integer(unit, body, value);
        match binary {
            BinaryOp::Add => get(left).plus(&get(right)),
            BinaryOp::Sub => get(left).plus_times(&get(right), -1),
            BinaryOp::Mul => get(left).times(&get(right)),
            BinaryOp::Or if body.ops[op].flags.has(Flags::DISJOINT) => get(left).plus(&get(right)),
            BinaryOp::Shl => {
                let by = body.as_int(unit, right).filter(|n| (0..63).contains(n))?;
                get(left).times(&Poly::constant(1 << by))
            }
            _ => None,
        }
    }
}

/// Returns true if a value is a constant address without an object: null or near null, or a foreign
/// constant.
pub(crate) fn is_address_without_object(unit: &Unit, body: &Body, value: Value) -> bool {
    let kind = body.const_kind(unit, value);
    matches!(
        kind,
        Some(ConstKind::Zero | ConstKind::DanglingAddress(_) | ConstKind::Foreign(_))
    )
}
