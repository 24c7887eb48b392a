//! Copies in shadow memory of words whose kind only the run knows: address, `double` or integer. Unions, the callables
//! of `std::function` and arenas consist of such words.
//!
//! A shadow word tells its kind. The shadow of an address is an address, from [`ADDRESS_MIN`] to [`ADDRESS_END`]. A
//! tangent or adjoint with such bits is a subnormal number below 7e-310, and counts as zero. The shadow of an integer
//! is zero. The functions are emitted next to the derivatives that call them, with `linkonce_odr` linkage.

pub(super) use crate::analysis::body_facts::word_offsets::WORD_BYTES;
use crate::emit::libc;
use crate::shadow::indirect_calls::emit_stop;
use crate::shadow::tangent_ops::MEMORY_SUM_FLAGS;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, FloatKind, FuncId, IntPredicate, Linkage, Region, Unit,
    Value,
};

/// The lowest address of memory: no system maps the first page.
const ADDRESS_MIN: i64 = 1 << 12;
/// The end of the addresses of a process.
const ADDRESS_END: i64 = 1 << 47;

const SPLIT_WORD: &str = "gradus: error[GRD0007]: a byte copy ends inside a number, or moves an address inside its word\n";

/// What a copy does with the shadow words of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordCopy {
    /// Copies the shadows of addresses; other words keep their adjoints.
    Addresses,
    /// Copies the shadows of addresses; other words become zero, because the source has no tangents.
    AddressesAndZeros,
    /// Moves the adjoints back to the source.
    Back,
}

/// Returns the function `(to, from, bytes)` on shadow memory.
pub fn word_copy_function(unit: &mut Unit, copy: WordCopy, overlap: bool) -> FuncId {
    let what = match copy {
        WordCopy::Addresses => "addresses",
        WordCopy::AddressesAndZeros => "addresses_and_zeros",
        WordCopy::Back => "words_back",
    };
    let how = if overlap { "move" } else { "copy" };
    let name = format!("__gradus1_{how}_{what}");
    if let Some(func) = unit.function(&name) {
        return func;
    }
    let (ptr, long, void) = (unit.types.ptr(), unit.types.int(64), unit.types.void());
    let params = vec![ptr, ptr, long];
    let ty = unit.types.func(void, params.clone());
    let mut body = Body::new(&params);
    build(&mut Builder::new(unit, &mut body), copy, overlap);
    unit.define(name, ty, Linkage::LinkOnceOdr, body)
}

/// The whole words of a copy: those that begin at a multiple of [`WORD_BYTES`] at both ends.
struct WholeWords {
    to: Value,
    from: Value,
    count: Value,
}

fn build(b: &mut Builder<'_>, copy: WordCopy, overlap: bool) {
    let (to, from, bytes) = (b.body.params()[0], b.body.params()[1], b.body.params()[2]);
    let (words, head) = whole_words(b, [to, from], bytes);
    let (size, zero) = (b.i64(WORD_BYTES), b.i64(0));
    let inside = b.mul(words.count, size);
    let tail = b.add(head, inside);
    for ends in [[zero, head], [tail, bytes]] {
        match copy {
            WordCopy::Back => stop_if_split(b, to, ends),
            WordCopy::AddressesAndZeros => zero_bytes(b, to, ends),
            WordCopy::Addresses => {}
        }
    }
    if copy == WordCopy::Addresses {
        stop_if_moved_apart(b, [to, from], bytes);
    }
    let read = if copy == WordCopy::Back {
        words.to
    } else {
        words.from
    };
    // All words are read, and the words of a copy back are cleared, before the first one is written.
    let saved = overlap.then(|| libc::private_block(b, inside));
    if let Some(saved) = saved {
        each(b, words.count, |b, i| {
            let word = load_word(b, read, i);
            store_word(b, word, saved, i);
            if copy == WordCopy::Back && !is_planted(Mutant::WordCopyKeepsAdjoints) {
                store_word(b, zero, read, i);
            }
        });
    }
    each(b, words.count, |b, i| {
        let word = load_word(b, saved.unwrap_or(read), i);
        match copy {
            WordCopy::Back => {
                if saved.is_none() && !is_planted(Mutant::WordCopyKeepsAdjoints) {
                    store_word(b, zero, words.to, i);
                }
                add_adjoint(b, word, words.from, i);
            }
            WordCopy::Addresses => {
                let old = load_word(b, words.to, i);
                let kept = zero_if_address(b, old);
                copy_address(b, [word, kept], words.to, i);
            }
            WordCopy::AddressesAndZeros => copy_address(b, [word, zero], words.to, i),
        }
    });
    if let Some(saved) = saved {
        let free = gradus_edit::declare_free(b.unit);
        b.call(free, &[saved]);
    }
    b.return_(None);
}

/// Returns the whole words of a copy, and the bytes in front of them. There are none if the ends lie at different
/// distances from their words.
fn whole_words(b: &mut Builder<'_>, [to, from]: [Value; 2], bytes: Value) -> (WholeWords, Value) {
    let (size, zero) = (b.i64(WORD_BYTES), b.i64(0));
    let [at_to, at_from] = [to, from].map(|end| offset_in_word(b, end));
    let rest = b.sub(size, at_to);
    let is_aligned = b.icmp(IntPredicate::Eq, at_to, zero);
    let head = b.select(is_aligned, zero, rest);
    let is_alike = b.icmp(IntPredicate::Eq, at_to, at_from);
    let is_long = b.icmp(IntPredicate::Ult, head, bytes);
    let has_words = b.binary(BinaryOp::And, is_alike, is_long);
    let head = b.select(has_words, head, bytes);
    let inside = b.sub(bytes, head);
    let words = WholeWords {
        to: b.byte_addr(to, head),
        from: b.byte_addr(from, head),
        count: b.binary(BinaryOp::UDiv, inside, size),
    };
    (words, head)
}

/// Emits the distance in bytes of an address from the start of its word.
pub(super) fn offset_in_word(b: &mut Builder<'_>, address: Value) -> Value {
    let (bits, mask) = (address_bits(b, address), b.i64(WORD_BYTES - 1));
    b.binary(BinaryOp::And, bits, mask)
}

fn address_bits(b: &mut Builder<'_>, address: Value) -> Value {
    let long = b.unit.types.int(64);
    b.cast(CastOp::PtrToInt, address, long)
}

/// Emits `to[i] = word` for the shadow of an address, else `to[i] = otherwise`.
fn copy_address(b: &mut Builder<'_>, [word, otherwise]: [Value; 2], to: Value, i: Value) {
    let is_address = is_address(b, word);
    let address = match is_planted(Mutant::WordCopyLosesAddresses) {
        true => otherwise,
        false => word,
    };
    let new = b.select(is_address, address, otherwise);
    store_word(b, new, to, i);
}

/// Emits `from[i] += word`, for adjoints only.
fn add_adjoint(b: &mut Builder<'_>, word: Value, from: Value, i: Value) {
    let zero = b.i64(0);
    let adjoint = zero_if_address(b, word);
    let is_some = b.icmp(IntPredicate::Ne, adjoint, zero);
    let (_, yes, no) = b.if_(is_some, &[]);
    let back = b.set_insertion_end(yes);
    let old = load_word(b, from, i);
    let old = match is_planted(Mutant::CopyReplacesAdjoints) {
        true => zero,
        false => zero_if_address(b, old),
    };
    let number = b.unit.types.float(FloatKind::F64);
    let [old, adjoint] = [old, adjoint].map(|word| b.cast(CastOp::BitCast, word, number));
    b.fast_math = MEMORY_SUM_FLAGS;
    let sum = b.fadd(old, adjoint);
    b.fast_math = Flags::NONE;
    let at = b.addr(number, from, i);
    b.store(sum, at);
    b.yield_(&[]);
    b.set_insertion_end(no);
    b.yield_(&[]);
    b.restore_insertion_point(back);
}

/// Emits the end of the program if the ends lie at different distances from their words, and the source has an address.
fn stop_if_moved_apart(b: &mut Builder<'_>, [to, from]: [Value; 2], bytes: Value) {
    let (size, zero) = (b.i64(WORD_BYTES), b.i64(0));
    let [at_to, at_from] = [to, from].map(|end| offset_in_word(b, end));
    let is_apart = b.icmp(IntPredicate::Ne, at_to, at_from);
    let bits = address_bits(b, from);
    let distance = b.sub(zero, bits);
    let mask = b.i64(WORD_BYTES - 1);
    let head = b.binary(BinaryOp::And, distance, mask);
    let is_long = b.icmp(IntPredicate::Ult, head, bytes);
    let is_checked = b.binary(BinaryOp::And, is_apart, is_long);
    let rest = b.sub(bytes, head);
    let rest = b.select(is_checked, rest, zero);
    let count = b.binary(BinaryOp::UDiv, rest, size);
    let first = b.byte_addr(from, head);
    each(b, count, |b, i| {
        let word = load_word(b, first, i);
        let is_address = is_address(b, word);
        let (_, yes, no) = b.if_(is_address, &[]);
        let back = b.set_insertion_end(yes);
        emit_stop(b, SPLIT_WORD);
        b.set_insertion_end(no);
        b.yield_(&[]);
        b.restore_insertion_point(back);
    });
}

/// Zeroes the bytes outside the whole words.
fn zero_bytes(b: &mut Builder<'_>, to: Value, [begin, end]: [Value; 2]) {
    let byte = b.unit.types.int(8);
    let count = b.sub(end, begin);
    each(b, count, |b, i| {
        let at = b.add(begin, i);
        let at = b.addr(byte, to, at);
        let zero = b.zero(byte);
        b.store(zero, at);
    });
}

/// Emits the end of the program if bytes outside the whole words have an adjoint or a shadow.
fn stop_if_split(b: &mut Builder<'_>, to: Value, [begin, end]: [Value; 2]) {
    let byte = b.unit.types.int(8);
    let count = b.sub(end, begin);
    each(b, count, |b, i| {
        let at = b.add(begin, i);
        let at = b.addr(byte, to, at);
        let value = b.load(byte, at);
        let zero = b.zero(byte);
        let is_some = b.icmp(IntPredicate::Ne, value, zero);
        let (_, yes, no) = b.if_(is_some, &[]);
        let back = b.set_insertion_end(yes);
        emit_stop(b, SPLIT_WORD);
        b.set_insertion_end(no);
        b.yield_(&[]);
        b.restore_insertion_point(back);
    });
}

fn zero_if_address(b: &mut Builder<'_>, word: Value) -> Value {
    let (is_address, zero) = (is_address(b, word), b.i64(0));
    b.select(is_address, zero, word)
}

/// Emits the test of a shadow word for an address.
pub(super) fn is_address(b: &mut Builder<'_>, word: Value) -> Value {
    let (first, count) = (b.i64(ADDRESS_MIN), b.i64(ADDRESS_END - ADDRESS_MIN));
    let distance = b.sub(word, first);
    b.icmp(IntPredicate::Ult, distance, count)
}

fn load_word(b: &mut Builder<'_>, base: Value, i: Value) -> Value {
    let long = b.unit.types.int(64);
    let at = b.addr(long, base, i);
    b.load(long, at)
}

fn store_word(b: &mut Builder<'_>, word: Value, base: Value, i: Value) {
    let long = b.unit.types.int(64);
    let at = b.addr(long, base, i);
    b.store(word, at);
}

fn each(b: &mut Builder<'_>, count: Value, make: impl FnOnce(&mut Builder<'_>, Value)) {
    let (_, region): (_, Region) = b.for_(count, &[]);
    let back = b.set_insertion_end(region);
    let index = b.body.region_params(region)[0];
    make(b, index);
    b.yield_(&[]);
    b.restore_insertion_point(back);
}
