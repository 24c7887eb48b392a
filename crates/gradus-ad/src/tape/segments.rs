//! The tape stack: a LIFO allocator in segments, which never moves an allocation.
//!
//! Two small GIR functions are emitted next to the derivatives that call them and merged by the linker. A
//! derivative therefore requires no library. The state is `{next free byte, end of the segment, segment}`. A
//! segment begins with a header of four 8-byte fields: the state before the segment, and the size of the next
//! segment. Release of the first allocation of a segment frees the segment.
//!
//! An allocation that is long relative to the next segment gets a segment of exactly its length, and the
//! growth of other segments continues unchanged. A tape with few long arrays therefore wastes no memory. The
//! analyses treat the two functions like `malloc` and `free` ([`gradus_ir::externals::MemoryFn::is_tape`]). Each
//! push is a separate allocation, which keeps derivatives differentiable.

use crate::emit::builder::{DerivativeBuilder, MemorySpace};
use gradus_ir::externals::{TAPE_PUSH, TAPE_RELEASE};
use gradus_ir::{
    Body, Builder, CastOp, FuncId, IntPredicate, Linkage, Region, TypeId, Unit, Value,
};

/// The functions of the stack.
#[derive(Clone, Copy, Debug)]
pub struct StackFunctions {
    /// `(state, bytes) → address`.
    pub push: FuncId,
    /// `(state, address)`: releases the allocation at the address and all younger ones.
    pub release: FuncId,
}

/// Name of the function that adds a segment.
pub(super) const GROW_FUNCTION: &str = "__gradus1_tape_grow";

const HEADER_BYTES: i64 = 32;
/// Overhead of a block in the C library's allocator: adjacent segments have their size including the
/// overhead.
const ALLOCATOR_OVERHEAD_BYTES: i64 = 16;
/// Header field that holds the size of the next segment.
const NEXT_SIZE_FIELD: i64 = 3;
const FIRST_SEGMENT_BYTES: i64 = 64 << 10;
/// Segment sizes double up to this limit, which bounds the unused end of a long tape.
const SEGMENT_BYTES_MAX: i64 = 4 << 20;

/// Returns the type of a stack's state.
pub fn state_type(unit: &mut Unit) -> TypeId {
    let ptr = unit.types.ptr();
    unit.types.tuple(vec![ptr, ptr, ptr])
}

/// Emits the initialisation of an empty stack at `state`.
pub fn initialise(out: &mut DerivativeBuilder<'_>, state: Value) {
    let ptr = out.unit.types.ptr();
    let null = out.build().zero(ptr);
    for word in 0..3 {
        let word = out.build().i64(word);
        let at = out.build().addr(ptr, state, word);
        out.store(null, at, MemorySpace::Tape, None);
    }
}

/// Returns the stack's functions, and defines them if they are new.
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
    unit.define(name.to_string(), ty, Linkage::LinkOnceOdr, body)
}

fn push_function(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![ptr, long]);
    let grow_ty = ty;
    define(unit, GROW_FUNCTION, grow_ty, build_grow);
    define(unit, TAPE_PUSH, ty, build_push)
}

fn release_function(unit: &mut Unit) -> FuncId {
    let (ptr, void) = (unit.types.ptr(), unit.types.void());
    let ty = unit.types.func(void, vec![ptr, ptr]);
    define(unit, "__gradus1_tape_shrink", ty, build_shrink);
    define(unit, TAPE_RELEASE, ty, build_release)
}

/// Emits the address of 8-byte field `number` after `base`.
fn field_address(b: &mut Builder<'_>, base: Value, number: i64) -> Value {
    let ptr = b.unit.types.ptr();
    let number = b.i64(number);
    b.addr(ptr, base, number)
}

fn load_field(b: &mut Builder<'_>, base: Value, number: i64) -> Value {
    let ptr = b.unit.types.ptr();
    let at = field_address(b, base, number);
    b.load(ptr, at)
}

fn store_field(b: &mut Builder<'_>, base: Value, number: i64, value: Value) {
    let at = field_address(b, base, number);
    b.store(value, at);
}

/// Emits an `if` with at most one result; `make` fills an arm and returns the arm's value.
pub(crate) fn choose(
    b: &mut Builder<'_>,
    condition: Value,
    result: &[TypeId],
    mut make: impl FnMut(&mut Builder<'_>, bool) -> Option<Value>,
) -> Option<Value> {
    let (op, yes, no) = b.if_(condition, result);
    for (region, arm) in [(yes, true), (no, false)] {
        let back: (Region, _) = b.set_insertion_end(region);
        let value = make(b, arm);
        b.yield_(value.as_slice());
        b.restore_insertion_point(back);
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
    // No allocation is empty. An empty array would share its address with the next allocation, and releasing
    // both would enter a segment already freed.
    let none = b.i64(0);
    let empty = b.icmp(IntPredicate::Eq, rounded, none);
    let least = b.i64(16);
    let rounded = b.select(empty, least, rounded);
    let next = load_field(b, state, 0);
    let end = load_field(b, state, 1);
    let start = b.cast(CastOp::PtrToInt, next, long);
    let stop = b.cast(CastOp::PtrToInt, end, long);
    let left = b.sub(stop, start);
    let fits = b.icmp(IntPredicate::Ule, rounded, left);
    let taken = choose(b, fits, &[ptr], |b, fits| {
        if fits {
            let byte = b.unit.types.int(8);
            let after = b.addr(byte, next, rounded);
            store_field(b, state, 0, after);
            return Some(next);
        }
        let grow = b.unit.function(GROW_FUNCTION)?;
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
    let malloc = gradus_edit::declare_malloc(b.unit);
    let old = load_field(b, state, 2);
    let null = b.zero(ptr);
    let first = b.icmp(IntPredicate::Eq, old, null);
    let usual = choose(b, first, &[long], |b, first| {
        Some(match first {
            true => b.i64(FIRST_SEGMENT_BYTES),
            false => {
                let at = field_address(b, old, NEXT_SIZE_FIELD);
                b.load(long, at)
            }
        })
    });
    let Some(usual) = usual else {
        unreachable!("the choice between two sizes yields a size");
    };
    let two = b.i64(2);
    let quarter = b.binary(gradus_ir::BinaryOp::LShr, usual, two);
    let own = b.icmp(IntPredicate::Uge, bytes, quarter);
    let beside = b.i64(HEADER_BYTES + ALLOCATOR_OVERHEAD_BYTES);
    let room = b.sub(usual, beside);
    let size = b.select(own, bytes, room);
    let double = b.add(usual, usual);
    let most = b.i64(SEGMENT_BYTES_MAX);
    let small = b.icmp(IntPredicate::Ult, double, most);
    let grown = b.select(small, double, most);
    let then = b.select(own, usual, grown);
    let header = b.i64(HEADER_BYTES);
    let total = b.add(size, header);
    let call = b.call(malloc, &[total]);
    let segment = b.body.result(call);
    let refused = b.icmp(IntPredicate::Eq, segment, null);
    let base = choose(b, refused, &[ptr], |b, refused| {
        if refused {
            // The caller that pushes ends the program and prints the requested bytes.
            b.store(total, state);
            return Some(null);
        }
        for number in 0..3 {
            let value = load_field(b, state, number);
            store_field(b, segment, number, value);
        }
        store_field(b, segment, NEXT_SIZE_FIELD, then);
        let base = b.addr(byte, segment, header);
        let next = b.addr(byte, base, bytes);
        let end = b.addr(byte, segment, total);
        store_field(b, state, 0, next);
        store_field(b, state, 1, end);
        store_field(b, state, 2, segment);
        Some(base)
    });
    b.return_(base);
}

fn build_release(b: &mut Builder<'_>) {
    let (state, address) = (b.body.params()[0], b.body.params()[1]);
    let segment = load_field(b, state, 2);
    let end = load_field(b, state, 1);
    let inside = is_in_segment(b, address, segment, end);
    choose(b, inside, &[], |b, inside| {
        if inside {
            store_field(b, state, 0, address);
        } else if let Some(shrink) = b.unit.function("__gradus1_tape_shrink") {
            b.call(shrink, &[state, address]);
        }
        None
    });
    b.return_(None);
}

/// Emits the test that an address lies in a segment, after the start of the first allocation.
fn is_in_segment(b: &mut Builder<'_>, address: Value, segment: Value, end: Value) -> Value {
    let (long, byte) = (b.unit.types.int(64), b.unit.types.int(8));
    let header = b.i64(HEADER_BYTES + 1);
    let second = b.addr(byte, segment, header);
    let [address, second, end] =
        [address, second, end].map(|value| b.cast(CastOp::PtrToInt, value, long));
    let (offset, size) = (b.sub(address, second), b.sub(end, second));
    b.icmp(IntPredicate::Ult, offset, size)
}

/// Frees segments down to the segment that contains `address`. The containing segment is freed too if
/// `address` is the first allocation of the segment.
fn build_shrink(b: &mut Builder<'_>) {
    let (state, address) = (b.body.params()[0], b.body.params()[1]);
    let byte = b.unit.types.int(8);
    let free = gradus_edit::declare_free(b.unit);
    let (_, region) = b.loop_(&[], &[]);
    let back = b.set_insertion_end(region);
    let segment = load_field(b, state, 2);
    let header = b.i64(HEADER_BYTES);
    let first = b.addr(byte, segment, header);
    let last = b.icmp(IntPredicate::Eq, address, first);
    for number in 0..3 {
        let value = load_field(b, segment, number);
        store_field(b, state, number, value);
    }
    b.call(free, &[segment]);
    let before = load_field(b, state, 2);
    let end = load_field(b, state, 1);
    let inside = is_in_segment(b, address, before, end);
    let truth = b.unit.types.int(1);
    let again = choose(b, last, &[truth], |b, last| {
        if last {
            return Some(b.bool(false));
        }
        choose(b, inside, &[truth], |b, inside| {
            if inside {
                store_field(b, state, 0, address);
            }
            Some(b.bool(!inside))
        })
    });
    if let Some(again) = again {
        b.repeat(again, &[], &[]);
    }
    b.restore_insertion_point(back);
    b.return_(None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_interp::{Machine, Value};

    /// Blocks that share a segment, that end a segment, and that have a separate segment: the release of a
    /// block releases all younger blocks. No memory leaks or is used after its release.
    #[test]
    fn release_frees_younger_blocks() {
        let mut unit = Unit::default();
        functions(&mut unit);
        let sizes = [16, 60_000, 30_000, 24, 9_000_000, 8, 0, 5_000_000];
        for from in 0..sizes.len() {
            let mut machine = Machine::new(&unit);
            let state = machine.alloc_f64(&[0.0; 3]).expect("memory");
            let push = |machine: &mut Machine<'_>, bytes: i64| {
                let args = [Value::ptr(state), Value::i64(bytes)];
                let block = machine.call(TAPE_PUSH, &args).expect("runs");
                block.expect("an address")
            };
            let release = |machine: &mut Machine<'_>, block: &Value| {
                let args = [Value::ptr(state), block.clone()];
                machine.call(TAPE_RELEASE, &args).expect("runs");
            };
            let blocks: Vec<Value> = sizes.iter().map(|n| push(&mut machine, *n)).collect();
            release(&mut machine, &blocks[from]);
            let again: Vec<Value> = sizes[from..]
                .iter()
                .map(|n| push(&mut machine, *n))
                .collect();
            release(&mut machine, &again[0]);
            for block in blocks[..from].iter().rev() {
                release(&mut machine, block);
            }
            let left = machine.read_f64(state, 3).expect("read");
            assert!(left.iter().all(|w| w.to_bits() == 0), "{from}: {left:?}");
        }
    }

    /// A long block gets a segment of its length, and the segments of short blocks grow unaffected.
    #[test]
    fn long_blocks_waste_no_memory() {
        let mut unit = Unit::default();
        functions(&mut unit);
        let mut machine = Machine::new(&unit);
        let state = machine.alloc_f64(&[0.0; 3]).expect("memory");
        let beside = HEADER_BYTES.unsigned_abs() + ALLOCATOR_OVERHEAD_BYTES.unsigned_abs();
        let segments = [
            (16, 65_536 - beside),
            (60_000, 65_536 - beside),
            (40_000, 40_000),
            (16, 131_072 - beside),
            (9_000_000, 9_000_000),
            (60_000, 262_144 - beside),
        ];
        for (bytes, expected) in segments {
            let args = [Value::ptr(state), Value::i64(bytes)];
            machine.call(TAPE_PUSH, &args).expect("runs");
            let words = machine.read_bytes(state, 24).expect("read");
            let word = |number: usize| {
                let bytes = words[8 * number..8 * number + 8].try_into();
                u64::from_le_bytes(bytes.expect("eight bytes"))
            };
            let header = HEADER_BYTES.unsigned_abs();
            assert_eq!(word(1) - word(2), expected + header, "{bytes}");
        }
    }
}
