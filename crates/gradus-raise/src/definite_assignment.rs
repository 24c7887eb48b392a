//! Definite assignment of an allocation: does an iteration write every byte before reading it?
//!
//! A forward walk in program order with the set of bytes written on all paths (definite assignment of the Java
//! Language Specification, chapter 16, per byte). If the address escapes, to a call, into memory, or through a
//! branch's result, the whole allocation must be written: any later reader then reads values of the current
//! iteration.

use crate::report::{RaiseResult, Reason, reason};
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

/// An allocation and its known derived addresses.
struct AssignmentWalk<'a> {
    unit: &'a Unit,
    body: &'a Body,
    size: u64,
    /// The padding of the allocation's type.
    padding: ByteSet,
    /// True if an access touches padding, because another type has a member at the bytes.
    touches_padding: bool,
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
    let mut walk = AssignmentWalk {
        unit,
        body,
        size: unit.layout.size_bytes(unit, info.ty),
        padding: gaps,
        touches_padding: false,
        derived_addresses: HashMap::from([(body.result(alloca), Some(0))]),
    };
    for address in addresses {
        if let Some(op) = body.def_op(*address) {
            walk.record_address(op);
        }
    }
    let begun = walk.padding.clone();
    let done = walk.region(region, begun);
    match walk.touches_padding {
        true => walk.region(region, ByteSet::default()),
        false => done,
    }
    .map(|_| ())
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

impl AssignmentWalk<'_> {
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

    /// Returns the bytes written at the end of a region entered with `written`; `None` if the end is
    /// unreachable.
    fn region(&mut self, region: Region, mut written: ByteSet) -> RaiseResult<Option<ByteSet>> {
        let body = self.body;
        for op in body.ops_in(region) {
            match body.kind(op) {
                OpKind::Addr { .. } => self.record_address(op),
                OpKind::ICmp(_) => {}
                OpKind::Load(access) if access.is_plain() => {
                    let bytes = self.bytes(body.ty(body.result(op)));
                    self.record_padding_access(body.operand(op, 0), bytes);
                    self.check_read(op, body.operand(op, 0), Some(bytes), &written)?;
                }
                OpKind::Store(access) if access.is_plain() => {
                    self.check_escape(op, body.operand(op, 0), &written)?;
                    let bytes = self.bytes(body.ty(body.operand(op, 0)));
                    self.record_padding_access(body.operand(op, 1), bytes);
                    self.record_write(body.operand(op, 1), Some(bytes), &mut written);
                }
                OpKind::Call(_) => self.call(op, &mut written)?,
                OpKind::Invoke(_) => {
                    let args = self.unit.call_args(body, op);
                    self.call_of_code(op, &args, &mut written)?;
                    match self.bytes_after_regions(op, &written)? {
                        Some(further) => written = further,
                        None => return Ok(None),
                    }
                }
                OpKind::Return | OpKind::Unreachable | OpKind::Resume => return Ok(None),
                _ => {
                    for value in body.operands(op) {
                        self.check_escape(op, value, &written)?;
                    }
                    match self.bytes_after_regions(op, &written)? {
                        Some(further) => written = further,
                        None => return Ok(None),
                    }
                }
            }
        }
        Ok(Some(written))
    }

    /// Returns the bytes written after an op with regions.
    fn bytes_after_regions(&mut self, op: Op, before: &ByteSet) -> RaiseResult<Option<ByteSet>> {
        let body = self.body;
        let mut ends = Vec::new();
        for region in body.op_regions(op) {
            ends.push(self.region(*region, before.clone())?);
        }
        let may_be_left_out = match body.kind(op) {
            OpKind::For { .. } | OpKind::Single { .. } => true,
            kind => kind.is_strand_op(),
        };
        if may_be_left_out || ends.is_empty() {
            return Ok(Some(before.clone()));
        }
        let ends = ends.into_iter().flatten();
        Ok(ends.reduce(|a, b| a.intersection(&b)))
    }

    fn call(&mut self, op: Op, written: &mut ByteSet) -> RaiseResult {
        let (unit, body) = (self.unit, self.body);
        let args = unit.call_args(body, op);
        let length = |at: usize| {
            let value = args.get(at)?;
            u64::try_from(body.as_int(unit, *value)?).ok()
        };
        match unit.known_callee(body, op) {
            Some(ExternalFn::Marker(CompilerIntrinsic::LifetimeStart)) => {
                let begins = args
                    .iter()
                    .any(|a| self.derived_addresses.get(a) == Some(&Some(0)));
                written.add(0..if begins { self.size } else { 0 });
            }
            Some(ExternalFn::Marker(CompilerIntrinsic::LifetimeEnd)) => {}
            Some(ExternalFn::Memory(MemoryFn::MemcpyIntrinsic | MemoryFn::MemmoveIntrinsic)) => {
                self.check_read(op, args[1], length(2), written)?;
                self.record_write(args[0], length(2), written);
            }
            Some(ExternalFn::Memory(MemoryFn::MemsetIntrinsic)) => {
                self.record_write(args[0], length(2), written);
            }
            _ => self.call_of_code(op, &args, written)?,
        }
        Ok(())
    }

    /// Handles a call: every argument may be read, except the return slot, which is written.
    fn call_of_code(&mut self, op: Op, args: &[Value], written: &mut ByteSet) -> RaiseResult {
        let attrs = self.body.kind(op).call_info().and_then(|info| info.attrs);
        let attrs = attrs.map(|attrs| self.unit.attrs(attrs));
        let mut result = None;
        for (index, &value) in args.iter().enumerate() {
            match attrs.and_then(|attrs| attrs.param(index, "sret")) {
                Some(AttrValue::Type(ty)) => {
                    result = Some((value, self.unit.layout.size_bytes(self.unit, *ty)))
                }
                _ => self.check_escape(op, value, written)?,
            }
        }
        if let Some((value, bytes)) = result {
            self.record_write(value, Some(bytes), written);
        }
        Ok(())
    }

    fn bytes(&self, ty: TypeId) -> u64 {
        self.unit.layout.store_bytes(self.unit, ty)
    }

    /// Records an access to padding.
    fn record_padding_access(&mut self, address: Value, bytes: u64) {
        if let Some(&Some(start)) = self.derived_addresses.get(&address) {
            let touched = start..start.saturating_add(bytes);
            let meets = |gap: &Range<u64>| gap.start < touched.end && touched.start < gap.end;
            self.touches_padding |= self.padding.0.iter().any(meets);
        }
    }

    /// The address escapes: every byte may be read.
    fn check_escape(&self, op: Op, value: Value, written: &ByteSet) -> RaiseResult {
        match self.derived_addresses.contains_key(&value) && !written.has(&(0..self.size)) {
            true => Err(read_before_write(self.unit, self.body, op)),
            false => Ok(()),
        }
    }

    /// `op` reads from an address; `bytes` is `None` if unknown.
    fn check_read(
        &self,
        op: Op,
        address: Value,
        bytes: Option<u64>,
        written: &ByteSet,
    ) -> RaiseResult {
        let Some(&part) = self.derived_addresses.get(&address) else {
            // Not an error: the address is of other memory, or all bytes were written before the address
            // escaped.
            return Ok(());
        };
        let all = 0..self.size;
        let wanted = match (part, bytes) {
            (Some(start), Some(bytes)) => start..start.saturating_add(bytes),
            _ => all,
        };
        match written.has(&wanted) {
            true => Ok(()),
            false => Err(read_before_write(self.unit, self.body, op)),
        }
    }

    fn record_write(&self, address: Value, bytes: Option<u64>, written: &mut ByteSet) {
        if let (Some(&Some(start)), Some(bytes)) = (self.derived_addresses.get(&address), bytes) {
            written.add(start..start.saturating_add(bytes).min(self.size));
        }
    }
}
