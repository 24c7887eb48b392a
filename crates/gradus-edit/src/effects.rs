//! What single ops do, as far as the op, its callee's row and the stated attributes tell.
//!
//! Conservative: a callee without a row and without attributes does everything.

use gradus_ir::known::{Effects, Known};
use gradus_ir::{
    Atomicity, AttrValue, BinaryOp, Body, ConstKind, FuncId, Op, OpKind, Region, Unit,
};

/// How many ops [`may_leave`] looks at before it gives up and says yes.
const LEAVE_LIMIT: usize = 4_000;

/// Whether the op gives a value of its operands alone, reads and writes no memory, always comes
/// back and owns no regions. It may still be undefined for some operands (a division by zero).
pub fn is_pure(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Freeze => true,
        OpKind::Call(info) => info.bundles.is_empty() && call_is_pure(unit, body, op),
        kind => kind.is_arithmetic(),
    }
}

/// Whether the op may go where nobody uses its results.
pub fn is_removable(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) => {
            !access.volatile && matches!(access.order, Atomicity::NotAtomic | Atomicity::Unordered)
        }
        OpKind::Alloca(info) => !info.inalloca,
        OpKind::Call(info) => {
            let reads = info.attrs.is_some_and(|id| unit.attrs(id).only_reads());
            reads && info.bundles.is_empty() || is_pure(unit, body, op)
        }
        _ => is_pure(unit, body, op),
    }
}

/// Whether the op may run where it did not run before: it is pure, and defined for all operands.
pub fn is_speculatable(unit: &Unit, body: &Body, op: Op) -> bool {
    use BinaryOp::{SDiv, SRem, UDiv, URem};
    match body.kind(op) {
        OpKind::Binary(UDiv | URem) => divisor(unit, body, op).is_some_and(|d| d != 0),
        OpKind::Binary(SDiv | SRem) => divisor(unit, body, op).is_some_and(|d| d != 0 && d != -1),
        OpKind::Call(_) => {
            is_pure(unit, body, op)
                && unit.callee(body, op).is_some_and(|func| {
                    let known = unit.known(func);
                    matches!(
                        known,
                        Some(Known::Math(_) | Known::Integer(_) | Known::Reduce(_))
                    ) || stated(unit, func, "speculatable")
                })
        }
        _ => is_pure(unit, body, op),
    }
}

/// Whether a load can never fail: it reads part of a stack slot or of a global variable.
pub fn is_dereferenceable(unit: &Unit, body: &Body, load: Op) -> bool {
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

fn stated(unit: &Unit, func: FuncId, name: &str) -> bool {
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

/// Whether control may leave `region` otherwise than through its end, or stay in it for ever: by a
/// call that does not come back, an exception, an endless loop. Looks at a bounded number of ops.
pub fn may_leave(unit: &Unit, body: &Body, region: Region) -> bool {
    let mut seen = 0;
    for op in body.walk(region) {
        seen += 1;
        let leaves = match body.kind(op) {
            OpKind::Call(_) | OpKind::Invoke(_) => !call_comes_back(unit, body, op),
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

fn call_comes_back(unit: &Unit, body: &Body, op: Op) -> bool {
    let Some(func) = unit.callee(body, op) else {
        return false;
    };
    match unit.known_effects(func) {
        Some(Effects {
            returns, may_throw, ..
        }) => returns && !may_throw,
        None => stated(unit, func, "willreturn") && stated(unit, func, "nounwind"),
    }
}
