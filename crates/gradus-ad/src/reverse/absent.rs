//! Absent lanes: those of a vector that hold no number at all.
//!
//! Optimisers leave a lane `poison` where its value goes nowhere: `insertelement poison, a, 0` whose other
//! lane is replaced later. Its adjoint is 0, yet 0 · poison is poison, which would reach the adjoints of
//! what it was multiplied by. A partial derivative that reads such a lane is guarded by the adjoint
//! (`guard`).
//!
//! A lane is absent where a constant says so, and in what is computed from it element by element; a loaded
//! value and a result of a structure have all their lanes. Vectors of more than 64 lanes are told as a
//! whole.

use gradus_ir::known::Known;
use gradus_ir::{Body, ConstId, ConstKind, OpKind, Type, Unit, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A bit for each lane.
type Lanes = u64;

/// The absent lanes of values, found so far.
#[derive(Debug, Default)]
pub(super) struct Absent {
    known: HashMap<Value, Lanes>,
}

impl Absent {
    /// Whether a value has absent lanes.
    pub fn any(&mut self, unit: &Unit, body: &Body, value: Value) -> bool {
        let mut work = vec![value];
        while let Some(&at) = work.last() {
            let sources = match self.known.contains_key(&at) {
                true => SmallVec::new(),
                false => sources(unit, body, at),
            };
            let open = sources.iter().find(|v| !self.known.contains_key(v));
            if let Some(open) = open {
                work.push(*open);
                continue;
            }
            work.pop();
            if !self.known.contains_key(&at) {
                let lanes = self.combined(unit, body, at, &sources);
                self.known.insert(at, lanes);
            }
        }
        self.known.get(&value).is_some_and(|lanes| *lanes != 0)
    }

    /// The absent lanes of a value, from those of its sources.
    fn combined(&self, unit: &Unit, body: &Body, value: Value, sources: &[Value]) -> Lanes {
        let of = |v: &Value| self.known.get(v).copied().unwrap_or(0);
        let Some(count) = lane_count(unit, body, value) else {
            return 0;
        };
        if let Some(id) = body.as_const(value) {
            return of_constant(unit, id, count);
        }
        let any = sources.iter().fold(0, |lanes, v| lanes | of(v));
        let whole = if any == 0 { 0 } else { Lanes::MAX };
        let Some(op) = body.def_op(value).filter(|_| count <= Lanes::BITS) else {
            return whole;
        };
        match body.kind(op) {
            OpKind::InsertElement => match body.as_int(unit, body.operand(op, 2)) {
                Some(lane @ 0..64) => any & !(1 << lane),
                _ => any,
            },
            OpKind::Shuffle(mask) => {
                let Some(len) = sources.first().and_then(|v| lane_count(unit, body, *v)) else {
                    return 0;
                };
                let absent = |from: i32| {
                    let Ok(from) = u32::try_from(from) else {
                        return true;
                    };
                    let source = sources.get((from / len) as usize).map_or(0, of);
                    source >> (from % len).min(Lanes::BITS - 1) & 1 == 1
                };
                let lanes = mask.iter().enumerate().filter(|(_, from)| absent(**from));
                lanes.fold(0, |all, (lane, _)| all | 1 << lane)
            }
            OpKind::Cast(_) if lane_count(unit, body, sources[0]) != Some(count) => whole,
            _ => any,
        }
    }
}

/// How many lanes a vector has.
fn lane_count(unit: &Unit, body: &Body, value: Value) -> Option<u32> {
    match *unit.types.get(body.ty(value)) {
        Type::Vector { len, .. } => u32::try_from(len).ok(),
        _ => None,
    }
}

/// The vectors whose lanes decide about a value's.
fn sources(unit: &Unit, body: &Body, value: Value) -> SmallVec<[Value; 2]> {
    let Some(op) = body.def_op(value) else {
        return SmallVec::new();
    };
    let element_wise = match body.kind(op) {
        OpKind::Binary(_) | OpKind::FNeg | OpKind::Cast(_) | OpKind::Select => true,
        OpKind::InsertElement | OpKind::Shuffle(_) => true,
        OpKind::Call(_) => {
            let known = unit.callee(body, op).and_then(|f| unit.known(f));
            matches!(known, Some(Known::Math(_)))
        }
        _ => false,
    };
    if !element_wise {
        return SmallVec::new();
    }
    let operands = body.operands(op);
    operands
        .filter(|v| lane_count(unit, body, *v).is_some())
        .collect()
}

fn of_constant(unit: &Unit, id: ConstId, count: u32) -> Lanes {
    let absent = |id: ConstId| {
        let kind = &unit.constant(id).kind;
        matches!(kind, ConstKind::Poison | ConstKind::Undef)
    };
    match &unit.constant(id).kind {
        _ if absent(id) => Lanes::MAX >> Lanes::BITS.saturating_sub(count),
        ConstKind::Aggregate(parts) if parts.len() > Lanes::BITS as usize => {
            match parts.iter().any(|part| absent(*part)) {
                true => Lanes::MAX,
                false => 0,
            }
        }
        ConstKind::Aggregate(parts) => {
            let lanes = parts.iter().enumerate().filter(|(_, part)| absent(**part));
            lanes.fold(0, |all, (lane, _)| all | 1 << lane)
        }
        _ => 0,
    }
}
