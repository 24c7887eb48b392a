//! Stores of integers to words that hold floats or addresses at other times: tagged unions, arenas, one block with
//! several arrays.
//!
//! The store ends the life of the address or the tangent in the shadow word, which becomes zero. A store to a part of a
//! word could also change the bits of a float that the program reads later, and an integer may have been computed from an
//! active float (approximate exponentials); the derivative of such a float is unknown. The tangent is then NaN, and an
//! adjoint that arrives in the reverse pass ends the program with a message.

use crate::analysis::body_facts::BodyFacts;
use crate::emit::builder::DerivativeBuilder;
use crate::shadow::indirect_calls::emit_stop;
use crate::shadow::word_copy::{WORD_BYTES, is_address, offset_in_word};
use gradus_ir::{BinaryOp, Body, Builder, FuncId, IntPredicate, Linkage, Op, Unit, Value};

const FLOAT_CHANGED: &str =
    "gradus: error[GRD0008]: the program reads a number after a store of an integer to its bytes\n";

const FLOAT_CONVERTED: &str = "gradus: error[GRD0008]: the program converts the bits of a number, or an integer beyond 2^52, from a union\n";

const FLOAT_CONVERTED_BY_NAME: &str = "gradus: error[GRD0008]: the program converts the bits of a number, or an integer beyond 2^23, from memory that holds numbers, too\n";
const DOUBLE_CONVERTED_BY_NAME: &str = "gradus: error[GRD0008]: the program converts the bits of a number, or an integer beyond 2^52, from memory that holds numbers, too\n";

/// A conversion that an integer test guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestedConversion {
    /// A word of run-time kind.
    Word,
    /// An integer of this many bits that the program loads by its name, from memory that also holds floats.
    Name(u32),
}

/// Returns the integer from which on integers have the bits of normal floats of `bits` bits. Integers of a smaller magnitude
/// have the bits of a subnormal float or of a NaN.
fn integer_end(bits: u32) -> i64 {
    match bits {
        32 => 1 << 23,
        _ => 1 << 52,
    }
}

/// The bits of a quiet NaN.
const NAN_BITS: i64 = 0x7ff8_0000_0000_0000;

/// The part of a derivative that a store of an integer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerStore {
    /// Forward mode: the shadow has tangents.
    Tangent,
    /// The forward pass of reverse mode: the shadow may have an address.
    Address,
    /// The reverse pass: the shadow may have an adjoint.
    Back,
}

/// The shadow words that a store of an integer reaches.
#[derive(Clone, Copy, Debug)]
pub struct ShadowWords {
    count: i64,
    bits: StoredBits,
}

/// What a store of an integer leaves in a word, if the program then reads the word as a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoredBits {
    /// A constant.
    Word,
    /// A float with other bits in a part.
    PartOfWord,
    /// Bits that the program computed from an active float.
    OfNumber,
}

impl ShadowWords {
    /// Returns the words of a store for which [`BodyFacts::is_integer_in_words`] holds.
    pub fn of(facts: &BodyFacts<'_>, unit: &Unit, op: Op) -> ShadowWords {
        let bytes = unit
            .layout
            .store_bytes(unit, facts.body.ty(facts.body.operand(op, 0)));
        ShadowWords {
            count: (bytes as i64 / WORD_BYTES).max(1),
            bits: match facts.stores_converted_number(op) {
                true => StoredBits::OfNumber,
                false if (bytes as i64) < WORD_BYTES => StoredBits::PartOfWord,
                false => StoredBits::Word,
            },
        }
    }

    /// Emits the effect of the store on the shadow at `shadow`.
    pub fn store_integer(&self, out: &mut DerivativeBuilder<'_>, shadow: Value, how: IntegerStore) {
        let store = integer_store_function(out.unit, how, self.bits);
        for word in 0..self.count {
            let bytes = out.build().i64(word * WORD_BYTES);
            let at = out.build().byte_addr(shadow, bytes);
            out.build().call(store, &[at]);
        }
    }
}

/// Returns the function on an address in a shadow word.
fn integer_store_function(unit: &mut Unit, how: IntegerStore, bits: StoredBits) -> FuncId {
    let name = match how {
        IntegerStore::Tangent => "tangent",
        IntegerStore::Address => "address",
        IntegerStore::Back => "back",
    };
    let part = match bits {
        StoredBits::Word => "",
        StoredBits::PartOfWord => "_in_part",
        StoredBits::OfNumber => "_of_number",
    };
    let name = format!("__gradus1_integer_over_{name}{part}");
    if let Some(func) = unit.function(&name) {
        return func;
    }
    let (ptr, void) = (unit.types.ptr(), unit.types.void());
    let ty = unit.types.func(void, vec![ptr]);
    let mut body = Body::new(&[ptr]);
    build(&mut Builder::new(unit, &mut body), how, bits);
    unit.define(name, ty, Linkage::LinkOnceOdr, body)
}

/// Returns the function `(word, is_used)` that ends the program if a word that is used as an integer is none.
pub fn integer_test_function(unit: &mut Unit, of: TestedConversion) -> FuncId {
    let (name, bits) = match of {
        TestedConversion::Word => ("__gradus1_integer_of_word".to_owned(), 64),
        TestedConversion::Name(bits) => (format!("__gradus1_integer_of_{bits}_bits"), bits),
    };
    if let Some(func) = unit.function(&name) {
        return func;
    }
    let (word, bool, void) = (unit.types.int(bits), unit.types.int(1), unit.types.void());
    let ty = unit.types.func(void, vec![word, bool]);
    let mut body = Body::new(&[word, bool]);
    let b = &mut Builder::new(unit, &mut body);
    let (word, is_used, no) = (b.body.params()[0], b.body.params()[1], b.bool(false));
    let is_integer = is_small_integer(b, word);
    let is_wrong = b.select(is_integer, no, is_used);
    let (_, yes, no) = b.if_(is_wrong, &[]);
    let back = b.set_insertion_end(no);
    b.yield_(&[]);
    b.set_insertion_end(yes);
    let message = match of {
        TestedConversion::Word => FLOAT_CONVERTED,
        TestedConversion::Name(32) => FLOAT_CONVERTED_BY_NAME,
        TestedConversion::Name(_) => DOUBLE_CONVERTED_BY_NAME,
    };
    emit_stop(b, message);
    b.restore_insertion_point(back);
    b.return_(None);
    unit.define(name, ty, Linkage::LinkOnceOdr, body)
}

/// Emits the test of a word for an integer of small magnitude: the bits of a normal float lie beyond [`integer_end`].
pub fn is_small_integer(b: &mut Builder<'_>, word: Value) -> Value {
    let ty = b.body.ty(word);
    let first = integer_end(b.unit.types.int_bits(ty).unwrap_or(64));
    let (end, count) = (b.int(ty, first.into()), b.int(ty, (2 * first).into()));
    let distance = b.add(word, end);
    b.icmp(IntPredicate::Ult, distance, count)
}

fn build(b: &mut Builder<'_>, how: IntegerStore, bits: StoredBits) {
    let (address, long, zero) = (b.body.params()[0], b.unit.types.int(64), b.i64(0));
    let offset = offset_in_word(b, address);
    let start = b.sub(zero, offset);
    let at = b.byte_addr(address, start);
    let old = b.load(long, at);
    let is_address = is_address(b, old);
    let is_zero = is_zero(b, old);
    let new = match (how, bits) {
        (IntegerStore::Tangent, StoredBits::OfNumber) => b.i64(NAN_BITS),
        (IntegerStore::Tangent, StoredBits::PartOfWord) => {
            let nan = b.i64(NAN_BITS);
            let or_nan = b.select(is_zero, zero, nan);
            b.select(is_address, zero, or_nan)
        }
        (IntegerStore::Address, _) => b.select(is_address, zero, old),
        _ => zero,
    };
    if how == IntegerStore::Back && bits != StoredBits::Word {
        let adjoint = b.select(is_address, zero, old);
        let has_none = self::is_zero(b, adjoint);
        let (_, yes, no) = b.if_(has_none, &[]);
        let back = b.set_insertion_end(yes);
        b.yield_(&[]);
        b.set_insertion_end(no);
        emit_stop(b, FLOAT_CHANGED);
        b.restore_insertion_point(back);
    }
    b.store(new, at);
    b.return_(None);
}

/// Emits the test of a word for the bits of 0.0 or -0.0.
fn is_zero(b: &mut Builder<'_>, word: Value) -> Value {
    let (one, zero) = (b.i64(1), b.i64(0));
    let without_sign = b.binary(BinaryOp::Shl, word, one);
    b.icmp(IntPredicate::Eq, without_sign, zero)
}
