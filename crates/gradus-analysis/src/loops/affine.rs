//! Affine forms: integers and addresses as affine functions of the indices of enclosing loops.

use crate::memory::alias::Alias;
use crate::scev::poly::{BaseValue, Monomial, Poly};
use gradus_ir::{CastOp, Definition, Op, OpKind, Value};

/// A term of one loop: `coefficient · Π factors · index`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffineTerm {
    /// The `for`, `share.for` or `par.for`.
    pub lp: Op,
    /// Dimension of the index; 0 except for `par.for`.
    pub dim: u32,
    /// Constant part of the stride.
    pub coefficient: i64,
    /// Further factors of the stride: values defined outside the nest.
    pub factors: Vec<Value>,
}

/// A sum of loop indices with invariant strides, plus invariant terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Base of an address; `None` for an integer.
    pub start: Option<BaseValue>,
    /// The constant term, in bytes for an address.
    pub constant: i64,
    /// Products of values defined outside the nest, with coefficients.
    pub invariant: Vec<(Monomial, i64)>,
    /// Terms by loop, outermost first. A loop may have several terms with different factors.
    pub terms: Vec<AffineTerm>,
    /// True if the form holds in the integers, false if it holds modulo 2⁶⁴.
    pub exact: bool,
}

impl Affine {
    /// Iterates over the terms of one loop.
    pub fn terms_of(&self, lp: Op) -> impl Iterator<Item = &AffineTerm> {
        self.terms.iter().filter(move |term| term.lp == lp)
    }
    /// Returns the stride of the only index of `lp` if it is constant; 0 if the index does not occur.
    pub fn constant_step(&self, lp: Op) -> Option<i64> {
        self.terms_of(lp).try_fold(0i64, |sum, term| {
            (term.factors.is_empty() && term.dim == 0)
                .then_some(())
                .and_then(|()| sum.checked_add(term.coefficient))
        })
    }
}

/// Returns an integer or address as an affine function of the indices of `nest` and the loops inside it,
/// with strides defined outside. `nest` = `None` stands for the whole body. Returns `None` if the value is
/// not affine.
pub fn affine(alias: &Alias, value: Value, nest: Option<Op>) -> Option<Affine> {
    let (unit, body) = (alias.unit, alias.body);
    let (start, form) = if unit.types.is_ptr(body.ty(value)) {
        let place = alias.forms.of_pointer(unit, body, value);
        if let BaseValue::Value(root) = place.root
            && !is_outside(alias, root, nest)
        {
            return None;
        }
        (Some(place.root), place.offset)
    } else {
        (None, alias.forms.of_integer(unit, body, value))
    };
    let mut found = Affine {
        start,
        constant: form.constant,
        invariant: Vec::new(),
        terms: Vec::new(),
        exact: form.exact,
    };
    split(alias, &form, nest, &mut found)?;
    let depth = |term: &AffineTerm| alias.nest.order(term.lp);
    found.terms.sort_by_key(depth);
    Some(found)
}

fn split(alias: &Alias, form: &Poly, nest: Option<Op>, found: &mut Affine) -> Option<()> {
    for (monomial, coefficient) in &form.terms {
        let mut index = None;
        let mut factors = Monomial::new();
        for &atom in monomial {
            if is_outside(alias, atom, nest) {
                factors.push(atom);
            } else if let Some(found) = index_of(alias, atom).filter(|_| index.is_none()) {
                index = Some(found);
            } else {
                return None;
            }
        }
        match index {
            None => found.invariant.push((factors, *coefficient)),
            Some((lp, dim)) => found.terms.push(AffineTerm {
                lp,
                dim,
                coefficient: *coefficient,
                factors: factors.to_vec(),
            }),
        }
    }
    Some(())
}

/// Returns true if a value is defined outside the nest.
fn is_outside(alias: &Alias, value: Value, nest: Option<Op>) -> bool {
    match nest {
        None => alias.nest.is_invariant_in(alias.body, value, None),
        Some(nest) => match alias.body.values[value].def {
            Definition::Const(_) => true,
            Definition::Result(op, _) => !alias.nest.contains(nest, op),
            Definition::Param(region, _) => alias
                .body
                .owner(region)
                .is_none_or(|owner| !alias.nest.contains(nest, owner)),
        },
    }
}

/// Returns the loop and dimension whose index a value is, directly or zero-extended.
pub(crate) fn index_of(alias: &Alias, value: Value) -> Option<(Op, u32)> {
    let body = alias.body;
    let value = match body.def_op(value) {
        Some(op) if matches!(body.kind(op), OpKind::Cast(CastOp::ZExt)) => body.operand(op, 0),
        _ => value,
    };
    let Definition::Param(region, number) = body.values[value].def else {
        return None;
    };
    let owner = body.owner(region)?;
    let dims = match *body.kind(owner) {
        OpKind::For { .. } | OpKind::ShareFor { .. } => 1,
        OpKind::ParFor { dims, .. } => dims,
        _ => 0,
    };
    (number < dims).then_some((owner, number))
}
