//! Integers that the program computes from integers loaded by their TBAA names: states of random-number generators,
//! hashes, counters.
//!
//! Such a computation yields no bits of addresses, unless some integer of the program becomes an address by a cast.
//! Without a cast, the program can use the bits as an address only by a store under the name of an integer and a load
//! under the name of a pointer. A copy of the loaded word keeps its address: only arithmetic yields bits.

use crate::call_graph::CallGraph;
use crate::types::lattice;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{Body, CastOp, Definition, OpKind, Unit, Value};

/// Maximal number of values that are searched for their loads.
const VALUES_MAX: usize = 64;

/// Returns true if some integer becomes an address by a cast.
pub(super) fn casts_to_addresses(unit: &Unit, closure: &CallGraph) -> bool {
    closure.bodies(unit).any(|(_, body)| {
        let mut ops = body.walk(body.root());
        ops.any(|op| matches!(body.kind(op), OpKind::Cast(CastOp::IntToPtr)))
    })
}

/// Returns true if a value is computed from loads of integers by name and from constants alone.
pub(super) fn is_computed_from_names(unit: &Unit, body: &Body, value: Value) -> bool {
    let (mut values, mut next) = (vec![value], 0);
    while let Some(&value) = values.get(next) {
        next += 1;
        let Some(sources) = sources(unit, body, value) else {
            // Not an error: the value may hold an address.
            return false;
        };
        for source in sources {
            if !values.contains(&source) {
                values.push(source);
            }
        }
        if values.len() > VALUES_MAX {
            // Not an error: a value of a long computation may hold an address.
            return false;
        }
    }
    true
}

/// Returns the values that a number is computed from; `None` if the value may hold an address.
fn sources(unit: &Unit, body: &Body, value: Value) -> Option<Vec<Value>> {
    let op = match body.values[value].def {
        Definition::Const(_) => return body.as_int(unit, value).map(|_| Vec::new()),
        Definition::Result(op, _) => op,
        Definition::Param(region, _) => body.owner(region)?,
    };
    match body.kind(op) {
        OpKind::Load(_) => {
            let is_named = lattice::access_type(unit, body, op).has_integer();
            is_named.then(Vec::new)
        }
        OpKind::Binary(binary) if !binary.is_float() => Some(body.operands(op).collect()),
        OpKind::Cast(CastOp::ZExt | CastOp::SExt | CastOp::Trunc) => {
            Some(vec![body.operand(op, 0)])
        }
        OpKind::Call(_) => match unit.known_callee(body, op) {
            Some(ExternalFn::Integer(_)) => Some(unit.call_args(body, op)),
            _ => None,
        },
        _ => {
            let mut found = Vec::new();
            body.value_flows(op, |from, to| {
                if to == value {
                    found.push(from);
                }
            });
            (!found.is_empty()).then_some(found)
        }
    }
}
