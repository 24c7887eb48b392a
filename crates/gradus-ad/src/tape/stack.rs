//! The tape's stack: last in, first out, in segments, so that nothing is ever moved.
//!
//! Two small functions in the language itself, emitted beside the derivatives that use them and
//! merged by the linker; a derivative needs no library. The state is `{next free byte, end of the
//! segment, segment}`. A segment begins with the state that it replaced, four words; giving back
//! its first allocation frees it.

use crate::out::{Out, Space};
use gradus_ir::{
    AttrSet, Body, Builder, CastOp, FuncId, Function, IntPredicate, Linkage, Region, TypeId, Unit,
    Value,
};

/// The functions that work on a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackFunctions {
    /// `(state, bytes) → address`.
    pub push: FuncId,
    /// `(state, address)`: gives back what was pushed there and since.
    pub release: FuncId,
}

const HEADER_BYTES: i64 = 32;
const FIRST_SEGMENT_BYTES: i64 = 64 << 10;
/// Segments double up to this size, so that little is left unused at the end of a long tape.
const LAST_SEGMENT_BYTES: i64 = 4 << 20;

/// The type of a stack's state.
pub fn state_type(unit: &mut Unit) -> TypeId {
    let ptr = unit.types.ptr();
    unit.types.tuple(vec![ptr, ptr, ptr])
}

/// Makes the stack at `state` empty.
pub fn initialise(out: &mut Out<'_>, state: Value) {
    let ptr = out.unit.types.ptr();
    let null = out.build().zero(ptr);
    for word in 0..3 {
        let word = out.build().i64(word);
        let at = out.build().addr(ptr, state, word);
        out.store(null, at, Space::Tape, None);
    }
}

/// The stack's functions, made where they are new.
pub fn functions(unit: &mut Unit) -> StackFunctions {
    StackFunctions {
        push: push_function(unit),
        release: release_function(unit),
    }
}

fn define(unit: &mut Unit, name: &str, ty: TypeId, make: fn(&mut Builder<'_>)) -> FuncId {
    if let Some(func) = unit.function(name) {
        return func;
    }
    let params = unit.param_types(ty).to_vec();
    let mut body = Body::new(&params);
    make(&mut Builder::new(unit, &mut body));
    let attrs = unit.intern_attrs(AttrSet::default());
    unit.add_function(Function {
        name: name.to_string(),
        ty,
        attrs,
        convention: 0,
        linkage: Linkage::LinkOnceOdr,
        defined: false,
        body: Some(Box::new(body)),
        derived_from: None,
        param_names: Vec::new(),
        span: None,
        source_name: None,
    })
}

fn push_function(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![ptr, long]);
    let grow_ty = ty;
    define(unit, "__gradus1_tape_grow", grow_ty, build_grow);
    define(unit, "__gradus1_tape_push", ty, build_push)
}

fn release_function(unit: &mut Unit) -> FuncId {
    let (ptr, void) = (unit.types.ptr(), unit.types.void());
    let ty = unit.types.func(void, vec![ptr, ptr]);
    define(unit, "__gradus1_tape_release", ty, build_release)
}

/// Word `number` after `base`.
fn word(b: &mut Builder<'_>, base: Value, number: i64) -> Value {
    let ptr = b.unit.types.ptr();
    let number = b.i64(number);
    b.addr(ptr, base, number)
}

fn load_word(b: &mut Builder<'_>, base: Value, number: i64) -> Value {
    let ptr = b.unit.types.ptr();
    let at = word(b, base, number);
    b.load(ptr, at)
}

fn store_word(b: &mut Builder<'_>, base: Value, number: i64, value: Value) {
    let at = word(b, base, number);
    b.store(value, at);
}

/// An `if` that gives one value; `make` fills an arm and gives that arm's value.
fn choose(
    b: &mut Builder<'_>,
    condition: Value,
    result: &[TypeId],
    mut make: impl FnMut(&mut Builder<'_>, bool) -> Option<Value>,
) -> Option<Value> {
    let (op, yes, no) = b.if_(condition, result);
    for (region, arm) in [(yes, true), (no, false)] {
        let back: (Region, _) = b.at_end(region);
        let value = make(b, arm);
        b.yield_(value.as_slice());
        b.restore(back);
    }
    b.body.results(op).first().copied()
}

fn build_push(b: &mut Builder<'_>) {
    let (state, bytes) = (b.body.params()[0], b.body.params()[1]);
    let ptr = b.unit.types.ptr();
    let long = b.unit.types.int(64);
    let fifteen = b.i64(15);
    let mask = b.i64(-16);
    let sum = b.add(bytes, fifteen);
    let rounded = b.binary(gradus_ir::BinaryOp::And, sum, mask);
    // Nothing is empty: an array of no bytes would share its address with the next one, and a
    // segment given back with that one would be entered again.
    let none = b.i64(0);
    let empty = b.icmp(IntPredicate::Eq, rounded, none);
    let least = b.i64(16);
    let rounded = b.select(empty, least, rounded);
    let next = load_word(b, state, 0);
    let end = load_word(b, state, 1);
    let start = b.cast(CastOp::PtrToInt, next, long);
    let stop = b.cast(CastOp::PtrToInt, end, long);
    let left = b.sub(stop, start);
    let fits = b.icmp(IntPredicate::Ule, rounded, left);
    let taken = choose(b, fits, &[ptr], |b, fits| {
        if fits {
            let byte = b.unit.types.int(8);
            let after = b.addr(byte, next, rounded);
            store_word(b, state, 0, after);
            return Some(next);
        }
        let grow = b.unit.function("__gradus1_tape_grow")?;
        let call = b.call(grow, &[state, rounded]);
        Some(b.body.result(call))
    });
    b.return_(taken);
}

fn build_grow(b: &mut Builder<'_>) {
    let (state, bytes) = (b.body.params()[0], b.body.params()[1]);
    let (ptr, long, byte) = (
        b.unit.types.ptr(),
        b.unit.types.int(64),
        b.unit.types.int(8),
    );
    let malloc_ty = b.unit.types.func(ptr, vec![long]);
    let malloc = b.unit.declare("malloc", malloc_ty, AttrSet::default());
    let old = load_word(b, state, 2);
    let null = b.zero(ptr);
    let first = b.icmp(IntPredicate::Eq, old, null);
    let least = choose(b, first, &[long], |b, first| {
        if first {
            return Some(b.i64(FIRST_SEGMENT_BYTES));
        }
        let end = load_word(b, state, 1);
        let stop = b.cast(CastOp::PtrToInt, end, long);
        let start = b.cast(CastOp::PtrToInt, old, long);
        let size = b.sub(stop, start);
        let double = b.add(size, size);
        let most = b.i64(LAST_SEGMENT_BYTES);
        let small = b.icmp(IntPredicate::Ult, double, most);
        Some(b.select(small, double, most))
    });
    let least = least.unwrap_or(bytes);
    let enough = b.icmp(IntPredicate::Ugt, least, bytes);
    let size = b.select(enough, least, bytes);
    let header = b.i64(HEADER_BYTES);
    let total = b.add(size, header);
    let call = b.call(malloc, &[total]);
    let segment = b.body.result(call);
    for number in 0..3 {
        let value = load_word(b, state, number);
        store_word(b, segment, number, value);
    }
    let base = b.addr(byte, segment, header);
    let next = b.addr(byte, base, bytes);
    let end = b.addr(byte, segment, total);
    store_word(b, state, 0, next);
    store_word(b, state, 1, end);
    store_word(b, state, 2, segment);
    b.return_(Some(base));
}

fn build_release(b: &mut Builder<'_>) {
    let (state, address) = (b.body.params()[0], b.body.params()[1]);
    let (ptr, void, byte) = (b.unit.types.ptr(), b.unit.types.void(), b.unit.types.int(8));
    let free_ty = b.unit.types.func(void, vec![ptr]);
    let free = b.unit.declare("free", free_ty, AttrSet::default());
    let segment = load_word(b, state, 2);
    let header = b.i64(HEADER_BYTES);
    let first = b.addr(byte, segment, header);
    let last_out = b.icmp(IntPredicate::Eq, address, first);
    choose(b, last_out, &[], |b, last_out| {
        if last_out {
            for number in 0..3 {
                let value = load_word(b, segment, number);
                store_word(b, state, number, value);
            }
            b.call(free, &[segment]);
        } else {
            store_word(b, state, 0, address);
        }
        None
    });
    b.return_(None);
}
