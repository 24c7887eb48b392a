//! Definite assignment of an allocation: does an iteration write every byte before reading it?
//!
//! A forward dataflow analysis of the set of bytes written on all paths (definite assignment of the Java Language
//! Specification, chapter 16, per byte). If the address escapes, to a call, into memory, or through a
//! branch's result, the whole allocation must be written: any later reader then reads values of the current
//! iteration.

use crate::report::{RaiseResult, Reason, reason};
use gradus_analysis::{Dataflow, Direction, Lattice, Solution};
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn, MemoryFn};
use gradus_ir::{AttrValue, Body, Op, OpKind, Region, Type, TypeId, Unit, Value};
use std::collections::HashMap;
use std::ops::Range;

/// A set of bytes of an allocation: sorted, disjoint, non-adjacent ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ByteSet(Vec<Range<u64>>);

impl ByteSet {
    fn add(&mut self, mut new: Range<u64>) {
        if new.is_empty() {
            return;
        }
        self.0.retain(|old| {
            let apart = old.end < new.start || new.end < old.start;
            if !apart {
                new = new.start.min(old.start)..new.end.max(old.end);
            }
            apart
        });
        let at = self.0.partition_point(|old| old.start < new.start);
        self.0.insert(at, new);
    }

    fn has(&self, wanted: &Range<u64>) -> bool {
        let holds = |range: &Range<u64>| range.start <= wanted.start && wanted.end <= range.end;
        wanted.is_empty() || self.0.iter().any(holds)
    }

    /// Returns the intersection.
    fn intersection(&self, other: &ByteSet) -> ByteSet {
        let mut found = ByteSet::default();
        for a in &self.0 {
            for b in &other.0 {
                found.add(a.start.max(b.start)..a.end.min(b.end));
            }
        }
        found
    }
}

/// The bytes written on all paths.
#[derive(Clone, Debug)]
struct WrittenBytes(ByteSet);

impl Lattice for WrittenBytes {
    fn join(&mut self, other: &WrittenBytes) -> bool {
        let common = self.0.intersection(&other.0);
        let changed = common != self.0;
        self.0 = common;
        changed
    }
}

/// The effect of an op on an allocation.
enum Effect {
    /// The op reads the bytes at an address; `None` if the number of bytes is unknown.
    Reads(Value, Option<u64>),
    /// The op writes the bytes at an address.
    Writes(Value, Option<u64>),
    /// A value leaves the code that the analysis sees. Every byte may be read if the value is an address.
    Escapes(Value),
    /// The allocation begins with undefined contents, which count as written.
    Begins(Value),
}

/// An allocation and its known derived addresses.
struct Assignment<'a> {
    unit: &'a Unit,
    body: &'a Body,
    size: u64,
    /// The padding of the allocation's type.
    padding: ByteSet,
    /// The bytes that count as written at the start: the padding, or none.
    begun: ByteSet,
    /// Derived addresses, with the byte offset from the allocation's start if constant.
    derived_addresses: HashMap<Value, Option<u64>>,
}

/// Checks that the code of `region` writes each byte of `alloca` before reading it; otherwise returns the
/// reading op. `addresses` are derived addresses defined outside of the region, in definition order.
pub(crate) fn is_written_first(
    unit: &Unit,
    body: &Body,
    region: Region,
    alloca: Op,
    addresses: &[Value],
) -> RaiseResult {
    let OpKind::Alloca(info) = body.kind(alloca) else {
        return Err(read_before_write(unit, body, alloca));
    };
    let mut gaps = ByteSet::default();
    if !is_union(unit, info.ty) {
        add_padding(unit, info.ty, 0, &mut gaps);
    }
    let mut assignment = Assignment {
        unit,
        body,
        size: unit.layout.size_bytes(unit, info.ty),
        begun: gaps.clone(),
        padding: gaps,
        derived_addresses: HashMap::from([(body.result(alloca), Some(0))]),
    };
    let outside = addresses.iter().filter_map(|value| body.def_op(*value));
    let inside = body.walk(region);
    let inside = inside.filter(|op| matches!(body.kind(*op), OpKind::Addr { .. }));
    outside
        .chain(inside)
        .for_each(|op| assignment.record_address(op));
    match assignment.check_region(region) {
        (_, true) => {
            assignment.begun = ByteSet::default();
            assignment.check_region(region).0
        }
        (done, false) => done,
    }
}

fn read_before_write(unit: &Unit, body: &Body, op: Op) -> Reason {
    let text =
        "an iteration may read thread-private memory before the first write of the iteration";
    reason(unit, body, op, text)
}

/// Returns true if a type is, or contains, a union as named by clang: its padding may belong to another member.
/// An optimiser may have replaced the union by its first member if all accesses are visible.
fn is_union(unit: &Unit, ty: TypeId) -> bool {
    match unit.types.get(ty) {
        Type::Struct { name, fields, .. } => {
            name.as_deref().is_none_or(|n| n.starts_with("union."))
                || fields.iter().any(|field| is_union(unit, *field))
        }
        Type::Array { elem, .. } => is_union(unit, *elem),
        _ => false,
    }
}

/// Adds the padding bytes of a struct. Padding between array elements is ignored.
fn add_padding(unit: &Unit, ty: TypeId, start: u64, gaps: &mut ByteSet) {
    let Type::Struct { fields, .. } = unit.types.get(ty) else {
        // Not an error: only structs have padding between members.
        return;
    };
    let mut end = 0;
    for (index, field) in fields.iter().enumerate() {
        let offset = unit.layout.field_offset_bytes(unit, ty, index as u64);
        gaps.add(start + end..start + offset);
        add_padding(unit, *field, start + offset, gaps);
        end = offset + unit.layout.store_bytes(unit, *field);
    }
    gaps.add(start + end..start + unit.layout.size_bytes(unit, ty));
}

impl Dataflow for Assignment<'_> {
    type State = WrittenBytes;
    const DIRECTION: Direction = Direction::Forward;

    fn boundary(&self) -> WrittenBytes {
        WrittenBytes(self.begun.clone())
    }

    fn transfer(&self, op: Op, written: &mut WrittenBytes) {
        for effect in self.effects(op) {
            self.apply(&effect, &mut written.0);
        }
    }
}

impl Assignment<'_> {
    /// Checks all reads of a region. Also returns whether an access touches padding, because another type has a
    /// member at the bytes; a failed check ends the search.
    fn check_region(&self, region: Region) -> (RaiseResult, bool) {
        let mut touches_padding = false;
        let solution = Solution::of(self.body, region, self);
        let checked = solution.visit(|op, written| {
            let mut written = written.0.clone();
            for effect in self.effects(op) {
                touches_padding |= self.touches_padding(op, &effect);
                self.check(op, &effect, &written)?;
                self.apply(&effect, &mut written);
            }
            Ok(())
        });
        (checked, touches_padding)
    }

    /// Records a derived address.
    fn record_address(&mut self, op: Op) {
        let address = self.unit.layout.address(self.unit, self.body, op);
        let Some(&base) = self.derived_addresses.get(&self.body.operand(op, 0)) else {
            // Not an error: the address is of other memory, or all bytes were written before its base escaped.
            return;
        };
        let offset = address.filter(|a| a.terms.is_empty()).and_then(|a| {
            let offset = base?.checked_add_signed(a.offset)?;
            (offset <= self.size).then_some(offset)
        });
        self.derived_addresses.insert(self.body.result(op), offset);
    }

    /// Returns the effects of an op on the allocation, in order. The regions of a region op have effects of their
    /// own.
    fn effects(&self, op: Op) -> Vec<Effect> {
        let body = self.body;
        let bytes = |value: Value| Some(self.unit.layout.store_bytes(self.unit, body.ty(value)));
        match body.kind(op) {
            OpKind::Addr { .. } | OpKind::ICmp(_) => Vec::new(),
            OpKind::Return | OpKind::Unreachable | OpKind::Resume => Vec::new(),
            OpKind::Load(access) if access.is_plain() => {
                vec![Effect::Reads(body.operand(op, 0), bytes(body.result(op)))]
            }
            OpKind::Store(access) if access.is_plain() => {
                let (value, address) = (body.operand(op, 0), body.operand(op, 1));
                vec![
                    Effect::Escapes(value),
                    Effect::Writes(address, bytes(value)),
                ]
            }
            OpKind::Call(_) => self.call(op),
            OpKind::Invoke(_) => self.call_of_code(op),
            _ => body.operands(op).map(Effect::Escapes).collect(),
        }
    }

    fn call(&self, op: Op) -> Vec<Effect> {
        let (unit, body) = (self.unit, self.body);
        let args = unit.call_args(body, op);
        let length = |at: usize| {
            let value = args.get(at)?;
            u64::try_from(body.as_int(unit, *value)?).ok()
        };
        match unit.known_callee(body, op) {
            Some(ExternalFn::Marker(CompilerIntrinsic::LifetimeStart)) => {
                args.into_iter().map(Effect::Begins).collect()
            }
            Some(ExternalFn::Marker(CompilerIntrinsic::LifetimeEnd)) => Vec::new(),
            Some(ExternalFn::Memory(MemoryFn::MemcpyIntrinsic | MemoryFn::MemmoveIntrinsic)) => {
                vec![
                    Effect::Reads(args[1], length(2)),
                    Effect::Writes(args[0], length(2)),
                ]
            }
            Some(ExternalFn::Memory(MemoryFn::MemsetIntrinsic)) => {
                vec![Effect::Writes(args[0], length(2))]
            }
            _ => self.call_of_code(op),
        }
    }

    /// Returns the effects of a call: every argument may be read, except the return slot, which is written.
    fn call_of_code(&self, op: Op) -> Vec<Effect> {
        let attrs = self.body.kind(op).call_info().and_then(|info| info.attrs);
        let attrs = attrs.map(|attrs| self.unit.attrs(attrs));
        let (mut effects, mut result) = (Vec::new(), None);
        for (index, value) in self.unit.call_args(self.body, op).into_iter().enumerate() {
            match attrs.and_then(|attrs| attrs.param(index, "sret")) {
                Some(AttrValue::Type(ty)) => {
                    let bytes = self.unit.layout.size_bytes(self.unit, *ty);
                    result = Some(Effect::Writes(value, Some(bytes)));
                }
                _ => effects.push(Effect::Escapes(value)),
            }
        }
        effects.extend(result);
        effects
    }

    /// Returns whether a load or store touches padding.
    fn touches_padding(&self, op: Op, effect: &Effect) -> bool {
        use Effect::{Reads, Writes};
        let touched = match (self.body.kind(op), effect) {
            (
                OpKind::Load(_) | OpKind::Store(_),
                Reads(address, Some(bytes)) | Writes(address, Some(bytes)),
            ) => {
                let start = self.derived_addresses.get(address).copied().flatten();
                start.map(|start| start..start.saturating_add(*bytes))
            }
            _ => None,
        };
        let meets = |gap: &Range<u64>| {
            let own = touched.as_ref();
            own.is_some_and(|touched| gap.start < touched.end && touched.start < gap.end)
        };
        self.padding.0.iter().any(meets)
    }

    /// Checks that all bytes that an op reads are written.
    fn check(&self, op: Op, effect: &Effect, written: &ByteSet) -> RaiseResult {
        let (value, bytes) = match effect {
            Effect::Reads(address, bytes) => (address, *bytes),
            Effect::Escapes(value) => (value, None),
            Effect::Writes(..) | Effect::Begins(_) => return Ok(()),
        };
        let Some(&start) = self.derived_addresses.get(value) else {
            // Not an error: the value is no address, or addresses other memory, or all bytes were written before
            // the address escaped.
            return Ok(());
        };
        let wanted = match (start, bytes) {
            (Some(start), Some(bytes)) => start..start.saturating_add(bytes),
            _ => 0..self.size,
        };
        match written.has(&wanted) {
            true => Ok(()),
            false => Err(read_before_write(self.unit, self.body, op)),
        }
    }

    fn apply(&self, effect: &Effect, written: &mut ByteSet) {
        match effect {
            Effect::Writes(address, Some(bytes)) => {
                if let Some(&Some(start)) = self.derived_addresses.get(address) {
                    written.add(start..start.saturating_add(*bytes).min(self.size));
                }
            }
            Effect::Begins(address) => {
                if self.derived_addresses.get(address) == Some(&Some(0)) {
                    written.add(0..self.size);
                }
            }
            Effect::Reads(..) | Effect::Escapes(_) | Effect::Writes(_, None) => {}
        }
    }
}
