//! Undefined values: `poison` and `undef`, as scalars or as single vector lanes.
//!
//! Optimisers leave a lane `poison` if its value is unused: `insertelement poison, a, 0`, whose other lane is
//! replaced later. The value after the last iteration of a loop is `poison` if the loop has no iterations,
//! and a `select` after the loop then takes another value. The adjoint is 0, but 0 · poison is poison and
//! would reach the adjoints of other factors; `select poison, 0, 0` is poison too. A partial derivative that
//! reads an undefined value is therefore guarded by the adjoint (`guard`), and an undefined condition is
//! frozen.
//!
//! A lane is undefined if a constant says so, or if it is computed element-wise from an undefined lane. A
//! scalar has one lane. A result of a branch is undefined if the value of any arm is. Loaded values and
//! members of structs count as defined. Vectors of more than 64 lanes are treated as a whole.

use gradus_ir::externals::ExternalFn;
use gradus_ir::{Body, ConstId, ConstKind, Definition, OpKind, Type, Unit, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// One bit per lane.
type Lanes = u64;

/// Undefined lanes of values, memoised.
#[derive(Debug, Default)]
pub(super) struct UndefLanes {
    known: HashMap<Value, Lanes>,
}

impl UndefLanes {
    /// Returns true if a value has an undefined lane.
    pub fn is_any_undef(&mut self, unit: &Unit, body: &Body, value: Value) -> bool {
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

    /// Returns the undefined lanes of a value, from the lanes of its sources.
    fn combined(&self, unit: &Unit, body: &Body, value: Value, sources: &[Value]) -> Lanes {
        let count = lane_count(unit, body, value);
        if let Some(id) = body.as_const(value) {
            return of_constant(unit, id, count);
        }
        let of = |v: &Value| self.known.get(v).copied().unwrap_or(0);
        let as_wide = |v: &Value| match of(v) {
            0 => 0,
            lanes if lane_count(unit, body, *v) == count => lanes,
            _ => Lanes::MAX,
        };
        let any = sources.iter().fold(0, |lanes, v| lanes | as_wide(v));
        let whole = if any == 0 { 0 } else { Lanes::MAX };
        let Some(op) = body.def_op(value).filter(|_| count <= Lanes::BITS) else {
            return whole;
        };
        match body.kind(op) {
            OpKind::InsertElement => {
                let (vector, element) = (as_wide(&sources[0]), of(&sources[1]));
                match body.as_int(unit, body.operand(op, 2)) {
                    Some(lane @ 0..64) => vector & !(1 << lane) | element << lane,
                    _ => whole,
                }
            }
            OpKind::ExtractElement => match body.as_int(unit, body.operand(op, 1)) {
                Some(lane @ 0..64) => of(&sources[0]) >> lane & 1,
                _ => whole,
            },
            OpKind::Shuffle(mask) => {
                let Some(len) = sources.first().map(|v| lane_count(unit, body, *v)) else {
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
            _ => any,
        }
    }
}

/// Returns the number of lanes: one, except for vectors.
fn lane_count(unit: &Unit, body: &Body, value: Value) -> u32 {
    match *unit.types.get(body.ty(value)) {
        Type::Vector { len, .. } => u32::try_from(len).unwrap_or(u32::MAX),
        _ => 1,
    }
}

/// Returns the values that determine the lanes of a value.
fn sources(unit: &Unit, body: &Body, value: Value) -> SmallVec<[Value; 3]> {
    let Definition::Result(op, index) = body.values[value].def else {
        return SmallVec::new();
    };
    let count = match body.kind(op) {
        OpKind::For { .. } => {
            let initial = body.operand(op, 1 + index as usize);
            return Vec::from_iter(body.as_const(initial).map(|_| initial)).into();
        }
        OpKind::If | OpKind::Switch(_) => {
            let ends = body.op_regions(op).iter().filter_map(|arm| body.last(*arm));
            let yields = ends.filter(|end| matches!(body.kind(*end), OpKind::Yield));
            return yields
                .map(|end| body.operand(end, index as usize))
                .collect();
        }
        OpKind::Binary(_) | OpKind::FNeg | OpKind::Cast(_) | OpKind::Select => usize::MAX,
        OpKind::ICmp(_) | OpKind::FCmp(_) => usize::MAX,
        OpKind::InsertElement | OpKind::Shuffle(_) => 2,
        OpKind::ExtractElement | OpKind::ExtractValue(_) => 1,
        OpKind::Call(_) => {
            let known = unit.known_callee(body, op);
            let math = matches!(known, Some(ExternalFn::Math(_)));
            return match math {
                true => unit.call_args(body, op).into_iter().collect(),
                false => SmallVec::new(),
            };
        }
        _ => 0,
    };
    body.operands(op).take(count).collect()
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
