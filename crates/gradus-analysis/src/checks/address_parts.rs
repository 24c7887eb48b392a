//! Addresses of active memory that the program takes apart, or computes by arithmetic from which no shadow follows
//! (GRD0006): byte-wise copies of pointers, tag bytes, products, averages of two addresses.
//!
//! Sums, differences and masks have shadows (`type_analysis/address_words.rs`). Bits of an address that a register assembles
//! again are refused by `no_derivative::address_arithmetic`.

use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use crate::points_to::alias_sets::{AliasSetId, CellRef};
use crate::types::lattice;
use gradus_ir::{BinaryOp, CastOp, Code, Op, OpKind, Value};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// Size of an address in bits.
const ADDRESS_BITS: u32 = 64;

/// Maximal number of values that are searched for an address.
const SOURCES_MAX: usize = 256;

/// Refuses stores of parts of addresses, and addresses without a shadow.
pub(super) fn check(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let search = AddressSearch {
        variant,
        flows: OnceCell::new(),
    };
    variant.at_ops(|op| {
        let (message, help) = match variant.body.kind(op) {
            OpKind::Store(_) if search.stores_part(op) => (
                "a part of an address of active memory is stored",
                "copy pointers as a whole, with an assignment or `memcpy`",
            ),
            OpKind::Store(_) | OpKind::Cast(CastOp::IntToPtr) if search.loses_shadow(op) => (
                "an address of active memory is computed by arithmetic without a derivative",
                "compute addresses by sums, differences and masks, or with pointers",
            ),
            _ => return None,
        };
        Some(variant.error(op, Code::NoDerivative, message).help(help))
    })
}

/// Returns true if a pointer to active floats lies in the word around a location.
pub(super) fn is_in_address(variant: &VariantFacts<'_>, place: CellRef) -> bool {
    let targets = variant.facts.memory.pointee(word_of(variant, place));
    targets
        .iter()
        .any(|target| may_be_active(variant, target.class))
}

/// Returns true if memory holds floats that depend on inputs or that outputs depend on. Both count: without a shadow, no
/// analysis sees that an address leads from one to the other.
pub(super) fn may_be_active(variant: &VariantFacts<'_>, class: AliasSetId) -> bool {
    let classes = variant.classes;
    variant.facts.words.types_of_set(class).has_float()
        && (classes.is_varied(class) || classes.is_useful(class))
}

/// Returns the start of the word around a location.
fn word_of(variant: &VariantFacts<'_>, place: CellRef) -> CellRef {
    let word = variant.facts.unit.layout.pointer_bytes as i64;
    CellRef {
        offset_bytes: place.offset_bytes - place.offset_bytes.rem_euclid(word),
        ..place
    }
}

/// A search for the addresses from which the function computes a value.
struct AddressSearch<'v, 'a> {
    variant: &'v VariantFacts<'a>,
    /// The sources of region parameters and results, made at the first search.
    flows: OnceCell<HashMap<Value, Vec<Value>>>,
}

impl AddressSearch<'_, '_> {
    /// Returns true for a store of less than a word into the word of an address: of a part of another address, or into memory
    /// whose words are addresses or integers.
    fn stores_part(&self, op: Op) -> bool {
        let (variant, body) = (self.variant, self.variant.body);
        let (value, ptr) = (body.operand(op, 0), body.operand(op, 1));
        let (words, memory) = (variant.facts.words, variant.facts.memory);
        // The aliasing rules keep an `int` out of the memory of an address; characters and unions have no such name.
        if !self.is_part(value) || lattice::access_type(variant.facts.unit, body, op).has_integer()
        {
            return false;
        }
        let is_address = |place: &&CellRef| {
            // Unreduced offsets: a mask may move an address to any member of a structure.
            words.has_pointer_at(word_of(variant, **place))
        };
        let targets = memory.targets(variant.func, ptr).iter();
        let mut addresses = targets.filter(is_address).peekable();
        if addresses.peek().is_none() {
            return false;
        }
        let is_word = |place: &CellRef| {
            words.may_be_address_word(memory, word_of(variant, *place))
                && is_in_address(variant, *place)
        };
        addresses.any(is_word) || self.moves(value, |source| self.is_loaded_part(source))
    }

    /// Returns true for an integer that is shorter than an address.
    fn is_part(&self, value: Value) -> bool {
        let unit = self.variant.facts.unit;
        let bits = unit.types.int_bits(self.variant.body.ty(value));
        bits.is_some_and(|bits| bits < ADDRESS_BITS)
    }

    /// Returns true for a load of a part of an address.
    fn is_loaded_part(&self, value: Value) -> bool {
        let (variant, body) = (self.variant, self.variant.body);
        let load = body
            .def_op(value)
            .filter(|op| matches!(body.kind(*op), OpKind::Load(_)));
        load.is_some_and(|op| {
            let places = variant
                .facts
                .memory
                .targets(variant.func, body.operand(op, 0));
            self.is_part(value) && places.iter().any(|place| is_in_address(variant, *place))
        })
    }

    /// Returns true if an integer becomes an address, by a cast or by a store between addresses, and the function computes the
    /// integer from an address by arithmetic without a shadow.
    fn loses_shadow(&self, op: Op) -> bool {
        let (variant, body) = (self.variant, self.variant.body);
        let value = body.operand(op, 0);
        let (words, memory) = (variant.facts.words, variant.facts.memory);
        if let OpKind::Store(_) = body.kind(op) {
            let mut targets = memory.targets(variant.func, body.operand(op, 1)).iter();
            let is_word = variant.facts.unit.types.int_bits(body.ty(value)) == Some(ADDRESS_BITS)
                && body.as_const(value).is_none()
                && !words.carries_pointer(variant.func, value)
                && targets.any(|place| {
                    words.may_be_address_word(memory, *place) && is_in_address(variant, *place)
                });
            return is_word && self.is_computed_from_address(value);
        }
        self.is_computed_from_address(value)
    }

    /// Returns true if an op without a shadow rule lies between a value and an address of active memory.
    fn is_computed_from_address(&self, value: Value) -> bool {
        let (variant, body) = (self.variant, self.variant.body);
        let words = variant.facts.words;
        self.reaches(value, |step| {
            let Some(op) = body.def_op(step) else {
                // Not an error: a parameter or a constant is no result of arithmetic.
                return false;
            };
            let is_opaque = match body.kind(op) {
                OpKind::Binary(_) => !words.has_address_terms(body, variant.func, step),
                OpKind::Cast(cast) => !matches!(cast, CastOp::PtrToInt | CastOp::IntToPtr),
                _ => false,
            };
            is_opaque
                && body
                    .operands(op)
                    .any(|term| self.reaches(term, |source| self.is_address(source)))
        })
    }

    fn is_address(&self, value: Value) -> bool {
        let variant = self.variant;
        variant.facts.words.carries_pointer(variant.func, value)
            && variant.may_point_into(value, |class| may_be_active(variant, class))
    }

    /// Returns true if `is_found` holds for a value or one that casts, shifts and masks move to it.
    fn moves(&self, value: Value, is_found: impl Fn(Value) -> bool) -> bool {
        use BinaryOp::{And, LShr, Or, Shl, Xor};
        let moves = |binary| matches!(binary, And | LShr | Or | Shl | Xor);
        self.search(value, is_found, |op, _| {
            let kind = self.variant.body.kind(op);
            matches!(kind, OpKind::Cast(_))
                || matches!(kind, OpKind::Binary(binary) if moves(*binary))
        })
    }

    /// Returns true if `is_found` holds for a value or one of its sources. Of a sum with an address, only the address is a
    /// source: other terms are distances.
    fn reaches(&self, value: Value, is_found: impl Fn(Value) -> bool) -> bool {
        let (variant, body) = (self.variant, self.variant.body);
        let words = variant.facts.words;
        self.search(value, is_found, |op, term| match body.kind(op) {
            OpKind::Binary(_) => {
                !words.has_address_terms(body, variant.func, body.result(op))
                    || words.carries_pointer(variant.func, term)
            }
            OpKind::Cast(_) => true,
            _ => false,
        })
    }

    /// Returns true if `is_found` holds for a value or one of its sources: along forwarded values, and from results to the
    /// operands that `is_source` selects.
    fn search(
        &self,
        value: Value,
        is_found: impl Fn(Value) -> bool,
        is_source: impl Fn(Op, Value) -> bool,
    ) -> bool {
        let body = self.variant.body;
        let (mut work, mut seen) = (vec![value], HashSet::new());
        while let Some(value) = work.pop() {
            if seen.len() == SOURCES_MAX || !seen.insert(value) {
                continue;
            }
            if is_found(value) {
                return true;
            }
            work.extend(self.flows().get(&value).into_iter().flatten());
            if let Some(op) = body.def_op(value) {
                work.extend(body.operands(op).filter(|term| is_source(op, *term)));
            }
        }
        false
    }

    /// Returns the sources of each value that an op forwards.
    fn flows(&self) -> &HashMap<Value, Vec<Value>> {
        self.flows.get_or_init(|| {
            let body = self.variant.body;
            let mut flows: HashMap<Value, Vec<Value>> = HashMap::new();
            for op in body.walk(body.root()) {
                body.value_flows(op, |from, to| flows.entry(to).or_default().push(from));
            }
            flows
        })
    }
}
