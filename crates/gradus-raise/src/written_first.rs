//! Whether the code of an iteration writes an allocation before it reads it.
//!
//! A walk in the order of the program, with the bytes that are written on every way so far: definite assignment, as
//! the Java Language Specification (chapter 16) has it for variables, by bytes. Where the address goes elsewhere — to a
//! call, into memory, through a branch's result — all of the allocation must be written, so that whoever has it from
//! there on reads what this iteration wrote.

use crate::Reason;
use crate::openmp::{Step, reason};
use gradus_ir::known::{Known, MarkerFn, MemoryFn};
use gradus_ir::{AttrValue, Body, Op, OpKind, Region, Type, TypeId, Unit, Value};
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of an allocation: ranges that neither meet nor touch, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bytes(Vec<Range<u64>>);

impl Bytes {
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

    /// The bytes that both have.
    fn both(&self, other: &Bytes) -> Bytes {
        let mut found = Bytes::default();
        for a in &self.0 {
            for b in &other.0 {
                found.add(a.start.max(b.start)..a.end.min(b.end));
            }
        }
        found
    }
}

/// An allocation, and the addresses in it that are known.
struct Walk<'a> {
    unit: &'a Unit,
    body: &'a Body,
    size: u64,
    /// What its type leaves between its members.
    gaps: Bytes,
    /// Whether something is read or written there all the same, as another type has a member there.
    uses_gaps: bool,
    /// Addresses of the allocation, and how many bytes behind its start they are where that is a number.
    parts: HashMap<Value, Option<u64>>,
}

/// Whether the code of `region` writes each byte of `alloca` before it reads it; else why not, with the op that reads.
/// `addresses` are those of its parts that are made outside of the region, each after what it is made of.
pub(crate) fn is_written_first(
    unit: &Unit,
    body: &Body,
    region: Region,
    alloca: Op,
    addresses: &[Value],
) -> Step {
    let OpKind::Alloca(info) = body.kind(alloca) else {
        return Err(read(unit, body, alloca));
    };
    let mut gaps = Bytes::default();
    if !is_union(unit, info.ty) {
        add_gaps(unit, info.ty, 0, &mut gaps);
    }
    let mut walk = Walk {
        unit,
        body,
        size: unit.layout.size_bytes(unit, info.ty),
        gaps,
        uses_gaps: false,
        parts: HashMap::from([(body.result(alloca), Some(0))]),
    };
    for address in addresses {
        if let Some(op) = body.def_op(*address) {
            walk.part(op);
        }
    }
    let begun = walk.gaps.clone();
    let done = walk.region(region, begun);
    match walk.uses_gaps {
        true => walk.region(region, Bytes::default()),
        false => done,
    }
    .map(|_| ())
}

fn read(unit: &Unit, body: &Body, op: Op) -> Reason {
    let text = "an iteration may read memory of its thread's own before it writes it";
    reason(unit, body, op, text)
}

/// Whether a type is, or holds, one that stands for a union's members, as clang calls it: what it leaves free may be
/// another member's. An optimiser may have made it the first member, where all that is done with it is seen.
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

/// The bytes that no member of a structure has. Those between the elements of an array are left out.
fn add_gaps(unit: &Unit, ty: TypeId, start: u64, gaps: &mut Bytes) {
    let Type::Struct { fields, .. } = unit.types.get(ty) else {
        // Not an error: only structures leave bytes between their members.
        return;
    };
    let mut end = 0;
    for (index, field) in fields.iter().enumerate() {
        let offset = unit.layout.field_offset_bytes(unit, ty, index as u64);
        gaps.add(start + end..start + offset);
        add_gaps(unit, *field, start + offset, gaps);
        end = offset + unit.layout.store_bytes(unit, *field);
    }
    gaps.add(start + end..start + unit.layout.size_bytes(unit, ty));
}

impl Walk<'_> {
    /// Takes note of an address in the allocation.
    fn part(&mut self, op: Op) {
        let address = self.unit.layout.address(self.unit, self.body, op);
        let Some(&base) = self.parts.get(&self.body.operand(op, 0)) else {
            // Not an error: the address leads to other memory, or all was written before its base was handed on.
            return;
        };
        let offset = address.filter(|a| a.terms.is_empty()).and_then(|a| {
            let offset = base?.checked_add_signed(a.offset)?;
            (offset <= self.size).then_some(offset)
        });
        self.parts.insert(self.body.result(op), offset);
    }

    /// What is written at the end of a region that begins with `written`; `None` where control never gets there.
    fn region(&mut self, region: Region, mut written: Bytes) -> Step<Option<Bytes>> {
        let body = self.body;
        for op in body.ops_in(region) {
            match body.kind(op) {
                OpKind::Addr { .. } => self.part(op),
                OpKind::ICmp(_) => {}
                OpKind::Load(access) if access.is_plain() => {
                    let bytes = self.bytes(body.ty(body.result(op)));
                    self.touches(body.operand(op, 0), bytes);
                    self.reads(op, body.operand(op, 0), Some(bytes), &written)?;
                }
                OpKind::Store(access) if access.is_plain() => {
                    self.gives_away(op, body.operand(op, 0), &written)?;
                    let bytes = self.bytes(body.ty(body.operand(op, 0)));
                    self.touches(body.operand(op, 1), bytes);
                    self.writes(body.operand(op, 1), Some(bytes), &mut written);
                }
                OpKind::Call(_) => self.call(op, &mut written)?,
                OpKind::Invoke(_) => {
                    let args = self.unit.call_args(body, op);
                    self.call_of_code(op, &args, &mut written)?;
                    match self.inner(op, &written)? {
                        Some(further) => written = further,
                        None => return Ok(None),
                    }
                }
                OpKind::Return | OpKind::Unreachable | OpKind::Resume => return Ok(None),
                _ => {
                    for value in body.operands(op) {
                        self.gives_away(op, value, &written)?;
                    }
                    match self.inner(op, &written)? {
                        Some(further) => written = further,
                        None => return Ok(None),
                    }
                }
            }
        }
        Ok(Some(written))
    }

    /// What is written behind an op, by its regions.
    fn inner(&mut self, op: Op, before: &Bytes) -> Step<Option<Bytes>> {
        let body = self.body;
        let mut ends = Vec::new();
        for region in body.op_regions(op) {
            ends.push(self.region(*region, before.clone())?);
        }
        let may_be_left_out = match body.kind(op) {
            OpKind::For { .. } | OpKind::Single { .. } => true,
            kind => kind.begins_strands(),
        };
        if may_be_left_out || ends.is_empty() {
            return Ok(Some(before.clone()));
        }
        let ends = ends.into_iter().flatten();
        Ok(ends.reduce(|a, b| a.both(&b)))
    }

    fn call(&mut self, op: Op, written: &mut Bytes) -> Step {
        let (unit, body) = (self.unit, self.body);
        let args = unit.call_args(body, op);
        let length = |at: usize| {
            let value = args.get(at)?;
            u64::try_from(body.as_int(unit, *value)?).ok()
        };
        match unit.callee(body, op).and_then(|func| unit.known(func)) {
            Some(Known::Marker(MarkerFn::LifetimeStart)) => {
                let begins = args.iter().any(|a| self.parts.get(a) == Some(&Some(0)));
                written.add(0..if begins { self.size } else { 0 });
            }
            Some(Known::Marker(MarkerFn::LifetimeEnd)) => {}
            Some(Known::Memory(MemoryFn::MemcpyIntrinsic | MemoryFn::MemmoveIntrinsic)) => {
                self.reads(op, args[1], length(2), written)?;
                self.writes(args[0], length(2), written);
            }
            Some(Known::Memory(MemoryFn::MemsetIntrinsic)) => {
                self.writes(args[0], length(2), written);
            }
            _ => self.call_of_code(op, &args, written)?,
        }
        Ok(())
    }

    /// A call of code reads what it is given, but for the place of its result, which it writes.
    fn call_of_code(&mut self, op: Op, args: &[Value], written: &mut Bytes) -> Step {
        let attrs = self.body.kind(op).call_info().and_then(|info| info.attrs);
        let attrs = attrs.map(|attrs| self.unit.attrs(attrs));
        let mut result = None;
        for (index, &value) in args.iter().enumerate() {
            match attrs.and_then(|attrs| attrs.param(index, "sret")) {
                Some(AttrValue::Type(ty)) => {
                    result = Some((value, self.unit.layout.size_bytes(self.unit, *ty)))
                }
                _ => self.gives_away(op, value, written)?,
            }
        }
        if let Some((value, bytes)) = result {
            self.writes(value, Some(bytes), written);
        }
        Ok(())
    }

    fn bytes(&self, ty: TypeId) -> u64 {
        self.unit.layout.store_bytes(self.unit, ty)
    }

    /// Takes note of a number that lies where the type has none.
    fn touches(&mut self, address: Value, bytes: u64) {
        if let Some(&Some(start)) = self.parts.get(&address) {
            let touched = start..start.saturating_add(bytes);
            let meets = |gap: &Range<u64>| gap.start < touched.end && touched.start < gap.end;
            self.uses_gaps |= self.gaps.0.iter().any(meets);
        }
    }

    /// Whoever has the address may read all.
    fn gives_away(&self, op: Op, value: Value, written: &Bytes) -> Step {
        match self.parts.contains_key(&value) && !written.has(&(0..self.size)) {
            true => Err(read(self.unit, self.body, op)),
            false => Ok(()),
        }
    }

    /// `op` reads from an address; `bytes` is `None` where it may be any number.
    fn reads(&self, op: Op, address: Value, bytes: Option<u64>, written: &Bytes) -> Step {
        let Some(&part) = self.parts.get(&address) else {
            // Not an error: the address leads to other memory, or all was written before it was handed on.
            return Ok(());
        };
        let all = 0..self.size;
        let wanted = match (part, bytes) {
            (Some(start), Some(bytes)) => start..start.saturating_add(bytes),
            _ => all,
        };
        match written.has(&wanted) {
            true => Ok(()),
            false => Err(read(self.unit, self.body, op)),
        }
    }

    fn writes(&self, address: Value, bytes: Option<u64>, written: &mut Bytes) {
        if let (Some(&Some(start)), Some(bytes)) = (self.parts.get(&address), bytes) {
            written.add(start..start.saturating_add(bytes).min(self.size));
        }
    }
}
