//! Addresses in integers with which the program computes: bump allocators on `uintptr_t`, tagged pointers, exclusive ors
//! of two addresses, tables of addresses in `uint64_t`.
//!
//! Points-to tells which integers may hold addresses, and includes too many: a count beside a pointer in a table that is
//! indexed as a whole. The uses tell which integers must be addresses: casts to pointers, and cells from which pointers are
//! loaded. An integer with both properties has the bit range of a pointer, and with it a shadow. The shadow of a sum is
//! computed from the shadows of its terms (`shadow/address_arithmetic.rs` in gradus-ad).
//!
//! Note [Address words]: memory with address words also holds integers. The shadow of an integer in such memory is zero,
//! and a load with a shadow of zero takes the loaded word itself as its shadow. A store of an integer therefore clears the
//! shadow of the word.

use crate::points_to::alias_sets::{AliasSets, CellRef, CopyBytes};
use crate::type_analysis::bit_ranges::{Equation, Node};
use crate::type_analysis::type_map::{BitRange, CopyKind, LaneKind, TypeMap};
use gradus_ir::{BinaryOp, Body, Entity, FuncId, Op, OpKind, Unit, Value};
use smallvec::SmallVec;

/// Size of an address in bits.
const ADDRESS_BITS: u32 = 64;

/// The bit range of an address that fills its word.
const WHOLE_ADDRESS: BitRange = BitRange {
    bit: 0,
    kind: LaneKind::Pointer,
};

/// Returns true if an integer may hold an address.
pub(crate) fn may_hold_address(
    unit: &Unit,
    memory: &AliasSets,
    (func, value): (FuncId, Value),
    body: &Body,
) -> bool {
    unit.types.int_bits(body.ty(value)) == Some(ADDRESS_BITS)
        && !memory.targets(func, value).is_empty()
}

/// Returns the terms of address arithmetic on integers that may hold an address; none for other ops.
pub(crate) fn address_terms(
    unit: &Unit,
    memory: &AliasSets,
    func: FuncId,
    body: &Body,
    op: Op,
) -> SmallVec<[Value; 2]> {
    let OpKind::Binary(binary) = *body.kind(op) else {
        // Not an error: the op is no arithmetic.
        return SmallVec::new();
    };
    let is_address = |value: &Value| may_hold_address(unit, memory, (func, *value), body);
    if !keeps_addresses(binary) || !is_address(&body.result(op)) {
        return SmallVec::new();
    }
    body.operands(op).filter(is_address).collect()
}

/// Returns true for arithmetic from whose result the program can compute an address.
fn keeps_addresses(binary: BinaryOp) -> bool {
    use BinaryOp::{Add, And, Or, Sub, Xor};
    matches!(binary, Add | Sub | And | Or | Xor)
}

impl TypeMap {
    /// Returns true for an integer that holds an address, and is a term or the result of arithmetic.
    pub fn is_address_word(&self, unit: &Unit, body: &Body, func: FuncId, value: Value) -> bool {
        let node = self.nodes.of_value(func, value);
        unit.types.int_bits(body.ty(value)) == Some(ADDRESS_BITS)
            && node.is_some_and(|node| self.is_computed_address(node))
    }
    /// Returns true for a value with an address from which a shadow follows: of arithmetic, at least one term has an
    /// address.
    pub(crate) fn has_address_terms(&self, body: &Body, func: FuncId, value: Value) -> bool {
        let terms = body
            .def_op(value)
            .filter(|op| matches!(body.kind(*op), OpKind::Binary(_)));
        let is_derived = terms.is_none_or(|op| {
            let mut terms = body.operands(op);
            terms.any(|term| self.carries_pointer(func, term))
        });
        is_derived && self.carries_pointer(func, value)
    }
    /// Returns true for a word that holds an address or an integer, and whose integers have a shadow of zero
    /// (Note [Address words]).
    pub fn may_be_address_word(&self, memory: &AliasSets, place: CellRef) -> bool {
        self.address_words[place.class.index()] && self.type_at(memory, place).has_pointer()
    }
    /// Returns true if the program accesses an address at a location, at unreduced offsets.
    pub(crate) fn has_pointer_at(&self, place: CellRef) -> bool {
        let seen = self.evidence[place.class.index()].get(&place.offset_bytes);
        seen.is_some_and(|seen| seen.has_pointer())
    }
    /// Returns the kind of a copy of integers: over words that may hold addresses, the copy also writes their shadows.
    pub(super) fn kind_over_address_words(&self, memory: &AliasSets, copy: &CopyBytes) -> CopyKind {
        let is_word = |end: &CellRef| {
            self.address_words[end.class.index()] && self.types_of_set(end.class).has_pointer()
        };
        if !copy.to.iter().any(is_word) {
            return CopyKind::Nothing;
        }
        let is_whole = |end: &CellRef| self.begins_word(memory, *end);
        let bytes = copy.size_bytes.unwrap_or(0);
        match bytes.is_multiple_of(u64::from(ADDRESS_BITS / 8)) && copy.to.iter().all(is_whole) {
            true => CopyKind::Pointers,
            false => CopyKind::Unknown,
        }
    }
    /// Marks the alias sets with address words.
    pub(super) fn mark_address_words(&mut self, equations: &[Equation]) {
        for equation in equations {
            if let Equation::Access { node, place, .. } = equation
                && self.is_computed_address(*node)
            {
                self.address_words[place.class.index()] = true;
            }
        }
    }
    /// Gives a term the bit range of the address in the result. Returns true if the range is new.
    pub(super) fn flow_to_term(&mut self, result: Node, term: Node) -> bool {
        self.nodes.lanes(result).contains(&WHOLE_ADDRESS)
            && self.nodes.lanes(term).is_empty()
            && self.nodes.add(term, WHOLE_ADDRESS.bit, WHOLE_ADDRESS.kind)
    }
    /// Gives a stored integer that may hold an address the bit range of a pointer, if the cell holds pointers. Returns true
    /// if the range is new. In a cell that also holds floats, only the result of address arithmetic is an address.
    pub(super) fn stores_address(
        &mut self,
        memory: &AliasSets,
        node: Node,
        place: CellRef,
    ) -> bool {
        let seen = self.type_at(memory, place);
        let is_address = !seen.has_float() || self.nodes.has_address_arithmetic(node);
        seen.has_pointer()
            && is_address
            && self.nodes.lanes(node).is_empty()
            && self.nodes.add(node, WHOLE_ADDRESS.bit, WHOLE_ADDRESS.kind)
    }
    fn is_computed_address(&self, node: Node) -> bool {
        self.nodes.has_address_arithmetic(node) && self.nodes.lanes(node) == [WHOLE_ADDRESS]
    }
}
