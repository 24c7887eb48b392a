//! Allocation failures in a derivative: tape, snapshots and shadows of blocks.
//!
//! A derivative allocates with `malloc` and `calloc`, so that analyses and LLVM recognise the blocks. Calls
//! of a derivative carry the name [`DERIVATIVE_BLOCK_NAME`]; calls of the program do not, and keep their meaning. Once
//! all derivatives are built, each named call gets a test. If the block is null and the size is not zero, the
//! program prints the size and the largest entry of the tape report, and aborts. The tape stack returns null
//! if growth fails, and leaves the requested number of bytes in its state.

use crate::emit::libc;
use crate::emit::stop_message::stop_message;
use gradus_ir::externals::{AllocationSize, DERIVATIVE_BLOCK_NAME, ExternalFn, MemoryFn};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Code, ConstKind, FuncId, IntPredicate, Linkage, Op, OpKind,
    Symbol, Unit, Value,
};

/// The function that ends the program. Several files may define the function.
const ALLOCATION_FAILED: &str = "__gradus1_no_memory";
/// Version of the function that also prints the largest entry of the tape report of this file's derivatives.
const ALLOCATION_FAILED_WITH_TAPE: &str = "__gradus1_no_memory_for_tape";

/// Tests all private blocks of the derivatives in `functions`. `row` describes the largest entry of the tape
/// report and may be empty. The functions that end the program are appended to `functions`.
pub fn check_private_allocations(unit: &mut Unit, functions: &mut Vec<FuncId>, row: &str) {
    let mut ends = Vec::new();
    for &func in &*functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let shared = unit.functions[func].linkage == Linkage::LinkOnceOdr;
        let calls: Vec<(Op, Size)> = body
            .walk(body.root())
            .filter_map(|op| Some((op, size_of(unit, &body, op)?)))
            .collect();
        for (call, size) in calls {
            let text = if shared { "" } else { row };
            ends.extend(insert_null_check(unit, &mut body, call, size, text));
        }
        unit.functions[func].body = Some(body);
    }
    ends.sort_unstable();
    ends.dedup();
    functions.extend(ends);
}

/// Source of the number of bytes that a call requests.
#[derive(Clone, Copy)]
enum Size {
    Arguments(AllocationSize),
    /// The state of the tape stack.
    State,
}

/// Returns the size that a call requests, if the call allocates a private block of a derivative.
fn size_of(unit: &Unit, body: &Body, op: Op) -> Option<Size> {
    if !matches!(body.kind(op), OpKind::Call(_)) {
        return None;
    }
    let ExternalFn::Memory(function) = unit.known_callee(body, op)? else {
        return None;
    };
    let allocation = function.allocation()?;
    match function {
        MemoryFn::TapePush => Some(Size::State),
        _ if body.ops[op].name.as_deref() == Some(DERIVATIVE_BLOCK_NAME) => {
            Some(Size::Arguments(allocation.size))
        }
        _ => None,
    }
}

/// Inserts the test after a call. Returns the function that ends the program. A region never ends with a
/// call.
fn insert_null_check(
    unit: &mut Unit,
    body: &mut Body,
    call: Op,
    size: Size,
    row: &str,
) -> Option<FuncId> {
    let next = body.next(call)?;
    let refused = allocation_failed_function(unit, row);
    let args = unit.call_args(body, call);
    let block = body.result(call);
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[call].loc;
    b.set_insertion_before(next);
    let ptr = b.body.ty(block);
    let null = b.zero(ptr);
    let mut is_refused = b.icmp(IntPredicate::Eq, block, null);
    let bytes = match size {
        Size::State => None,
        Size::Arguments(size) => Some(bytes_of(&mut b, size, &args)),
    };
    if let Some(bytes) = bytes {
        let none = b.i64(0);
        let some = b.icmp(IntPredicate::Ne, bytes, none);
        is_refused = b.binary(BinaryOp::And, is_refused, some);
    }
    let (_, yes, no) = b.if_(is_refused, &[]);
    let back = b.set_insertion_end(yes);
    let bytes = bytes.unwrap_or_else(|| {
        let long = b.unit.types.int(64);
        b.load(long, args[0])
    });
    b.call(refused, &[bytes]);
    b.yield_(&[]);
    b.set_insertion_end(no);
    b.yield_(&[]);
    b.restore_insertion_point(back);
    Some(refused)
}

/// Returns the number of bytes that the arguments of an allocation request.
fn bytes_of(b: &mut Builder<'_>, size: AllocationSize, args: &[Value]) -> Value {
    let long = b.unit.types.int(64);
    let mut product: Option<Value> = None;
    for factor in libc::size_factors(size, args).unwrap_or_default() {
        let narrow = b.body.ty(factor) != long;
        let factor = match narrow {
            true => b.cast(CastOp::ZExt, factor, long),
            false => factor,
        };
        product = Some(match product {
            Some(product) => b.mul(product, factor),
            None => factor,
        });
    }
    product.unwrap_or_else(|| b.i64(1))
}

/// Returns the function that ends the program. The parameter is the number of requested bytes.
fn allocation_failed_function(unit: &mut Unit, row: &str) -> FuncId {
    let (name, linkage) = match row.is_empty() {
        true => (ALLOCATION_FAILED, Linkage::LinkOnceOdr),
        false => (ALLOCATION_FAILED_WITH_TAPE, Linkage::Internal),
    };
    if let Some(func) = unit.function(name)
        && unit.functions[func].body.is_some()
    {
        return func;
    }
    let name = unit.fresh_name(name);
    let (void, long) = (unit.types.void(), unit.types.int(64));
    let ty = unit.types.func(void, vec![long]);
    let mut body = Body::new(&[long]);
    build(&mut Builder::new(unit, &mut body), &name, row);
    unit.define(name, ty, linkage, body)
}

/// Builds a body that prints the refused size and ends the program.
fn build(b: &mut Builder<'_>, name: &str, row: &str) {
    let bytes = b.body.params()[0];
    let (ptr, int) = (b.unit.types.ptr(), b.unit.types.int(32));
    let plain = b.unit.types.func(int, vec![int, ptr]);
    let print_ty = b.unit.types.with_varargs(plain);
    // A program may define another function of the same name; the message is left out then.
    if let Some(print) = libc::library_function(b.unit, "dprintf", print_ty) {
        let format = message(b.unit, name, row);
        let id = b.unit.consts.intern(
            ptr,
            ConstKind::Global {
                global: format,
                offset: 0,
            },
        );
        let format = b.constant(id);
        let file = b.int(int, libc::STANDARD_ERROR);
        b.call(print, &[file, format, bytes]);
    }
    libc::emit_abort(b);
}

/// Returns the message as a format string of `dprintf`.
fn message(unit: &mut Unit, name: &str, row: &str) -> gradus_ir::GlobalId {
    let name = format!("{name}_text");
    if let Some(Symbol::Global(known)) = unit.symbol(&name) {
        return known;
    }
    let row = match row.is_empty() {
        true => String::new(),
        false => format!("; largest tape entry: {}", row.replace('%', "%%")),
    };
    let text = format!("cannot allocate %llu bytes of memory for a derivative{row}");
    let text = stop_message(Code::LimitReached, &text) + "\0";
    unit.add_string(name, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_interp::{Machine, Value as Run};

    /// The program's call stays unchanged. The derivative's call gets a test, which passes if memory is
    /// available or if zero bytes were requested.
    #[test]
    fn only_private_blocks_are_checked() {
        let mut unit = Unit::default();
        let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
        let ty = unit.types.func(ptr, vec![long]);
        let mut body = Body::new(&[long]);
        let size = body.params()[0];
        let malloc = gradus_edit::declare_malloc(&mut unit);
        let mut b = Builder::new(&mut unit, &mut body);
        b.call(malloc, &[size]);
        let block = libc::private_block(&mut b, size);
        b.return_(Some(block));
        let func = unit.define("f".to_string(), ty, Linkage::External, body);
        let mut functions = vec![func];
        check_private_allocations(&mut unit, &mut functions, "x, 100 %");
        assert_eq!(functions.len(), 2);
        assert!(gradus_ir::verify_function(&unit, func).is_empty());
        let body = unit.functions[func].body.as_deref().expect("it has code");
        let tests = body.walk(body.root());
        let tests = tests.filter(|op| matches!(body.kind(*op), OpKind::If));
        assert_eq!(tests.count(), 1);
        for bytes in [0, 64] {
            let mut machine = Machine::new(&unit);
            machine.call("f", &[Run::i64(bytes)]).expect("it runs");
        }
    }
}
