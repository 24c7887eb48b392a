//! Effects of single ops, from the op, the table of known externals and stated attributes.
//!
//! Conservative: a callee without a table entry and without attributes may have every effect.

use gradus_ir::externals::{Effects, ExternalFn};
use gradus_ir::{
    Atomicity, AttrValue, BinaryOp, Body, ConstKind, FuncId, Op, OpKind, Region, Unit,
};

/// Maximum number of ops that [`may_not_complete`] inspects before answering yes.
const LEAVE_LIMIT: usize = 4_000;

/// Returns whether the result depends on the operands only: no memory access, always returns, no regions.
/// Some operands may still be undefined behaviour (division by zero).
pub fn is_pure(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Freeze => true,
        OpKind::Call(info) => info.bundles.is_empty() && call_is_pure(unit, body, op),
        kind => kind.is_arithmetic(),
    }
}

/// Returns whether the op may be erased if its results have no uses.
pub fn is_removable(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) => {
            !access.volatile && matches!(access.order, Atomicity::NotAtomic | Atomicity::Unordered)
        }
        OpKind::Alloca(info) => !info.inalloca,
        OpKind::Call(info) => {
            let reads = info.attrs.is_some_and(|id| unit.attrs(id).is_read_only());
            reads && info.bundles.is_empty() || is_pure(unit, body, op)
        }
        _ => is_pure(unit, body, op),
    }
}

/// Returns whether the op may be executed speculatively: pure and defined for all operands.
pub fn is_speculatable(unit: &Unit, body: &Body, op: Op) -> bool {
    use BinaryOp::{SDiv, SRem, UDiv, URem};
    match body.kind(op) {
        OpKind::Binary(UDiv | URem) => divisor(unit, body, op).is_some_and(|d| d != 0),
        OpKind::Binary(SDiv | SRem) => divisor(unit, body, op).is_some_and(|d| d != 0 && d != -1),
        OpKind::Binary(binary) if binary.may_trap() => false,
        OpKind::Call(_) => {
            is_pure(unit, body, op)
                && unit.callee(body, op).is_some_and(|func| {
                    let known = unit.known(func);
                    matches!(
                        known,
                        Some(ExternalFn::Math(_) | ExternalFn::Integer(_) | ExternalFn::Reduce(_))
                    ) || has_attribute(unit, func, "speculatable")
                })
        }
        _ => is_pure(unit, body, op),
    }
}

/// Returns whether a load cannot fault. The load must read a part of an alloca, of a defined global, or of
/// the memory that a `dereferenceable` parameter of `func` points to.
pub fn is_dereferenceable(unit: &Unit, func: Option<FuncId>, body: &Body, load: Op) -> bool {
    let mut ptr = body.operand(load, 0);
    let mut offset = 0i64;
    if let Some(maker) = body.def_op(ptr)
        && let Some(address) = unit.layout.address(unit, body, maker)
    {
        if !address.terms.is_empty() {
            return false;
        }
        (ptr, offset) = (address.base, address.offset);
    }
    let size = if let Some(maker) = body.def_op(ptr) {
        match body.kind(maker) {
            OpKind::Alloca(info) => Some(unit.layout.size_bytes(unit, info.ty)),
            _ => None,
        }
    } else if let Some(param) = body.params().iter().position(|param| *param == ptr) {
        let attrs = func.map(|func| unit.attrs(unit.functions[func].attrs));
        match attrs.and_then(|attrs| attrs.param(param, "dereferenceable")) {
            Some(AttrValue::Int(bytes)) => Some(*bytes),
            _ => None,
        }
    } else {
        body.as_const(ptr)
            .and_then(|id| match unit.constant(id).kind {
                ConstKind::Global { global, offset: at } => {
                    offset = offset.saturating_add(at);
                    let global = &unit.globals[global];
                    global
                        .defined
                        .then(|| unit.layout.size_bytes(unit, global.ty))
                }
                _ => None,
            })
    };
    let bytes = unit.layout.store_bytes(unit, body.ty(body.result(load)));
    let end = u64::try_from(offset)
        .ok()
        .and_then(|o| o.checked_add(bytes));
    size.zip(end).is_some_and(|(size, end)| end <= size)
}

fn divisor(unit: &Unit, body: &Body, op: Op) -> Option<i64> {
    body.as_int(unit, body.operand(op, 1))
}

fn has_attribute(unit: &Unit, func: FuncId, name: &str) -> bool {
    unit.attrs(unit.functions[func].attrs)
        .function(name)
        .is_some()
}

fn call_is_pure(unit: &Unit, body: &Body, op: Op) -> bool {
    let Some(func) = unit.callee(body, op) else {
        return false;
    };
    if let Some(effects) = unit.known_effects(func) {
        return effects.is_pure() && !effects.returns_twice;
    }
    let attrs = unit.attrs(unit.functions[func].attrs);
    matches!(attrs.function("memory"), Some(AttrValue::Int(0)))
        && ["willreturn", "nounwind"]
            .iter()
            .all(|name| attrs.function(name).is_some())
        && ["convergent", "returns_twice"]
            .iter()
            .all(|name| attrs.function(name).is_none())
}

/// Returns whether control may leave `region` except through its end, or never leave the region. Causes are
/// no-return calls, exceptions and infinite loops. Inspects a bounded number of ops and
/// is conservative beyond.
pub fn may_not_complete(unit: &Unit, body: &Body, region: Region) -> bool {
    let mut seen = 0;
    for op in body.walk(region) {
        seen += 1;
        let leaves = match body.kind(op) {
            OpKind::Call(_) | OpKind::Invoke(_) => !call_returns(unit, body, op),
            OpKind::Loop { trip_max } => trip_max.is_none(),
            OpKind::Unreachable | OpKind::Resume | OpKind::Return | OpKind::Foreign(_) => true,
            kind => kind.is_parallel(),
        };
        if leaves || seen > LEAVE_LIMIT {
            return true;
        }
    }
    false
}

fn call_returns(unit: &Unit, body: &Body, op: Op) -> bool {
    let Some(func) = unit.callee(body, op) else {
        return false;
    };
    match unit.known_effects(func) {
        Some(Effects {
            always_returns: returns,
            may_throw,
            ..
        }) => returns && !may_throw,
        None => has_attribute(unit, func, "willreturn") && has_attribute(unit, func, "nounwind"),
    }
}

#[cfg(test)]
mod tests {
    use super::is_dereferenceable;
    use gradus_ir::{FuncId, OpKind, parse};

    #[test]
    fn loads_from_dereferenceable_params() {
        let text = "attrs 0 = fn() param(dereferenceable = 16) param()
             func @f(%p: ptr, %q: ptr) #0 {
               %a = addr i8, %p, 8 %b = addr i8, %p, 12 %c = addr i8, %p, -8
               %u = load %a -> i64 %v = load %b -> i64 %w = load %c -> i64 %x = load %q -> i64
               return }";
        let unit = parse(text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let func: FuncId = unit.functions.ids().next().expect("a function");
        let body = unit.functions[func].body.as_deref().expect("it has code");
        let is_load = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::Load(_));
        let there = |func| -> Vec<bool> {
            let loads = body.walk(body.root()).filter(is_load);
            loads
                .map(|op| is_dereferenceable(&unit, func, body, op))
                .collect()
        };
        assert_eq!(there(Some(func)), [true, false, false, false]);
        assert_eq!(there(None), [false; 4]);
    }
}
