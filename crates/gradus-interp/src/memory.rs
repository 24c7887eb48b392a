//! The memory model: objects with bounds, lifetime and per-byte initialisation state.
//!
//! An address has an object number in the upper 28 bits and a position in the lower 36 bits. Each object
//! starts well inside the object's address range, at position 2³⁴: an access slightly out of bounds, on
//! either side, never reaches another object. The start address has the object's alignment and no larger
//! alignment.

mod shape_access;

use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::{Address, Value};
use gradus_ir::FuncId;
use std::collections::VecDeque;

const RANGE_BITS: u32 = 36;
const START_OFFSET: u64 = 1 << 34;
const MAX_OBJECTS: usize = 1 << 28;
/// The number of dead objects whose numbers are not reused.
const QUARANTINE: usize = 1 << 20;

/// State of an initialised byte.
const DEFINED: u8 = 1;
const POISONED: u8 = 2;
/// State of an uninitialised byte. Zero allows lazily zeroed host pages for fresh memory.
const UNDEFINED: u8 = 0;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// A heap block, allocated and freed by the program.
    Heap,
    /// A stack object of a function.
    Stack,
    /// A global variable, or memory allocated by the machine's user.
    Static,
    /// A constant global.
    Constant,
    /// A function.
    Function(FuncId),
}

#[derive(Debug)]
struct Object {
    base: u64,
    bytes: Vec<u8>,
    /// The state per byte; empty if all bytes are defined.
    state: Vec<u8>,
    place: ObjectKind,
    alive: bool,
}

/// The memory of a machine.
#[derive(Debug)]
pub(crate) struct Memory {
    objects: Vec<Object>,
    dead: VecDeque<u32>,
    used_bytes: u64,
    limit_bytes: u64,
}

impl Memory {
    pub fn new(limit_bytes: u64) -> Self {
        let null = Object {
            base: 0,
            bytes: Vec::new(),
            state: Vec::new(),
            place: ObjectKind::Static,
            alive: false,
        };
        Memory {
            objects: vec![null],
            dead: VecDeque::new(),
            used_bytes: 0,
            limit_bytes,
        }
    }

    /// Allocates an object; the bytes are zero, and undefined unless `defined`.
    pub fn allocate(
        &mut self,
        size: u64,
        align: u64,
        place: ObjectKind,
        defined: bool,
    ) -> Eval<Address> {
        self.used_bytes = self.used_bytes.saturating_add(size);
        if size >= START_OFFSET || self.used_bytes > self.limit_bytes {
            return fault(TrapKind::Limit, "the program allocates too much memory");
        }
        let align = align.max(1).next_power_of_two().min(1 << 20);
        let reused = match self.dead.len() > QUARANTINE {
            true => self.dead.pop_front(),
            false => None,
        };
        let number = match reused {
            Some(number) => number as usize,
            None => self.objects.len(),
        };
        if number >= MAX_OBJECTS {
            return fault(TrapKind::Limit, "the program allocates too many objects");
        }
        let base = ((number as u64) << RANGE_BITS) + START_OFFSET + align;
        let object = Object {
            base,
            bytes: vec![0; size as usize],
            state: match defined {
                true => Vec::new(),
                false => vec![UNDEFINED; size as usize],
            },
            place,
            alive: true,
        };
        match number == self.objects.len() {
            true => self.objects.push(object),
            false => self.objects[number] = object,
        }
        Ok(Address(base))
    }

    /// Ends the lifetime of the object at `address`.
    pub fn end_lifetime(&mut self, address: Address) {
        let number = (address.0 >> RANGE_BITS) as usize;
        if let Some(object) = self.objects.get_mut(number)
            && object.alive
        {
            object.alive = false;
            self.used_bytes -= object.bytes.len() as u64;
            object.bytes = Vec::new();
            object.state = Vec::new();
            self.dead.push_back(number as u32);
        }
    }

    /// Frees the heap object that starts at `address`; no effect for null.
    pub fn free(&mut self, address: Address) -> Eval<()> {
        if address.0 == 0 {
            return Ok(());
        }
        let Some(object) = self.objects.get((address.0 >> RANGE_BITS) as usize) else {
            return fault(TrapKind::BadFree, "free of memory that was never allocated");
        };
        if !object.alive {
            return fault(TrapKind::BadFree, "double free of a block");
        }
        if object.place != ObjectKind::Heap || object.base != address.0 {
            return fault(
                TrapKind::BadFree,
                "free of an address that is not the start of a heap block",
            );
        }
        self.end_lifetime(address);
        Ok(())
    }

    /// Returns the number of live heap objects.
    pub fn heap_blocks(&self) -> usize {
        let heap = |o: &&Object| o.alive && o.place == ObjectKind::Heap;
        self.objects.iter().filter(heap).count()
    }

    /// Returns the size in bytes of the live object that starts at `address`.
    pub fn size(&self, address: Address) -> Option<u64> {
        let object = self.objects.get((address.0 >> RANGE_BITS) as usize)?;
        (object.alive && object.base == address.0).then_some(object.bytes.len() as u64)
    }

    /// Returns the bytes of the object that starts at `address`; `None` for an undefined byte.
    pub fn snapshot(&self, address: Address) -> Option<Vec<Option<u8>>> {
        self.size(address)?;
        let object = self.objects.get((address.0 >> RANGE_BITS) as usize)?;
        let state = |i: usize| object.state.get(i).is_none_or(|s| *s == DEFINED);
        let bytes = object.bytes.iter().enumerate();
        Some(bytes.map(|(i, byte)| state(i).then_some(*byte)).collect())
    }

    /// Returns the function at an address.
    pub fn function(&self, address: u64) -> Option<FuncId> {
        let object = self.objects.get((address >> RANGE_BITS) as usize)?;
        match object.place {
            ObjectKind::Function(func) if object.base == address => Some(func),
            _ => None,
        }
    }

    /// Returns start address and kind of the object around an address.
    pub fn object_around(&self, address: u64) -> Option<(u64, ObjectKind)> {
        let object = self.objects.get((address >> RANGE_BITS) as usize)?;
        Some((object.base, object.place))
    }

    /// Returns whether an address is inside or at the end of a live object.
    pub fn in_bounds(&self, address: u64) -> bool {
        let Some(object) = self.objects.get((address >> RANGE_BITS) as usize) else {
            return false;
        };
        object.alive && address.wrapping_sub(object.base) <= object.bytes.len() as u64
    }

    fn locate(&self, address: u64, size: u64) -> Eval<(usize, usize)> {
        let number = (address >> RANGE_BITS) as usize;
        let Some(object) = self.objects.get(number).filter(|_| number != 0) else {
            let text = if address == 0 {
                "null"
            } else {
                "an address outside of all objects"
            };
            return fault(TrapKind::BadAddress, format!("access through {text}"));
        };
        if !object.alive {
            return fault(
                TrapKind::UseAfterFree,
                "the memory is freed or out of scope",
            );
        }
        let offset = address.wrapping_sub(object.base);
        let length = object.bytes.len() as u64;
        if offset > length || length - offset < size {
            let offset = offset as i64;
            let text =
                format!("access of {size} bytes at offset {offset} of an object of {length} bytes");
            return fault(TrapKind::OutOfBounds, text);
        }
        Ok((number, offset as usize))
    }

    fn locate_mut(&mut self, address: u64, size: u64) -> Eval<(&mut Object, usize)> {
        let (number, offset) = self.locate(address, size)?;
        let object = &mut self.objects[number];
        match object.place {
            ObjectKind::Constant => fault(TrapKind::ReadOnly, "write to a constant"),
            ObjectKind::Function(_) => fault(TrapKind::ReadOnly, "write to a function"),
            _ => Ok((object, offset)),
        }
    }

    /// Reads a number of `size` ≤ 8 bytes.
    #[inline]
    pub fn read(&self, address: u64, size: usize) -> Eval<Value> {
        let (number, offset) = self.locate(address, size as u64)?;
        let object = &self.objects[number];
        let mut word = [0u8; 8];
        word[..size].copy_from_slice(&object.bytes[offset..offset + size]);
        let bits = u64::from_le_bytes(word);
        if object.state.is_empty() {
            return Ok(Value::Bits(bits));
        }
        let state = &object.state[offset..offset + size];
        if state.iter().all(|s| *s == DEFINED) {
            return Ok(Value::Bits(bits));
        }
        if state.contains(&POISONED) {
            return Ok(Value::Poison);
        }
        let mut mask = 0u64;
        for (i, s) in state.iter().enumerate() {
            mask |= (u64::from(*s == UNDEFINED) * 0xff) << (8 * i);
        }
        if state.iter().all(|s| *s == UNDEFINED) {
            return Ok(Value::UNDEF);
        }
        Ok(Value::Undef {
            bits: bits & !mask,
            mask,
        })
    }

    /// Writes a number of `size` ≤ 8 bytes.
    #[inline]
    pub fn write(&mut self, address: u64, size: usize, value: &Value) -> Eval<()> {
        let (object, offset) = self.locate_mut(address, size as u64)?;
        if let Value::Bits(bits) = value {
            object.bytes[offset..offset + size].copy_from_slice(&bits.to_le_bytes()[..size]);
            if !object.state.is_empty() {
                object.state[offset..offset + size].fill(DEFINED);
            }
            return Ok(());
        }
        if object.state.is_empty() {
            object.state = vec![DEFINED; object.bytes.len()];
        }
        for i in 0..size {
            let (byte, state) = match value {
                Value::Undef { bits, mask } => {
                    let lost = (mask >> (8 * i)) as u8 != 0;
                    (
                        (bits >> (8 * i)) as u8,
                        if lost { UNDEFINED } else { DEFINED },
                    )
                }
                _ => (0, POISONED),
            };
            object.bytes[offset + i] = byte;
            object.state[offset + i] = state;
        }
        Ok(())
    }

    /// Copies bytes and state; the ranges may overlap.
    pub fn copy(&mut self, to: u64, from: u64, size: u64) -> Eval<()> {
        if size == 0 {
            return Ok(());
        }
        let (source, start) = self.locate(from, size)?;
        let range = start..start + size as usize;
        let bytes = self.objects[source].bytes[range.clone()].to_vec();
        let state = match self.objects[source].state.is_empty() {
            true => Vec::new(),
            false => self.objects[source].state[range].to_vec(),
        };
        let (target, offset) = self.locate_mut(to, size)?;
        let range = offset..offset + size as usize;
        target.bytes[range.clone()].copy_from_slice(&bytes);
        if target.state.is_empty() && !state.is_empty() {
            target.state = vec![DEFINED; target.bytes.len()];
        }
        if !target.state.is_empty() {
            match state.is_empty() {
                true => target.state[range].fill(DEFINED),
                false => target.state[range].copy_from_slice(&state),
            }
        }
        Ok(())
    }

    /// Fills bytes with one value.
    pub fn fill(&mut self, to: u64, byte: &Value, size: u64) -> Eval<()> {
        if size == 0 {
            return Ok(());
        }
        let (target, offset) = self.locate_mut(to, size)?;
        let range = offset..offset + size as usize;
        let state = match byte {
            Value::Bits(_) => DEFINED,
            Value::Poison => POISONED,
            _ => UNDEFINED,
        };
        target.bytes[range.clone()].fill(byte.bits().unwrap_or(0) as u8);
        if target.state.is_empty() && state != DEFINED {
            target.state = vec![DEFINED; target.bytes.len()];
        }
        if !target.state.is_empty() {
            target.state[range].fill(state);
        }
        Ok(())
    }

    /// Returns a slice of bytes; traps if a byte is undefined.
    pub fn bytes(&self, address: u64, size: u64) -> Eval<&[u8]> {
        if size == 0 {
            return Ok(&[]);
        }
        let (number, offset) = self.locate(address, size)?;
        let object = &self.objects[number];
        let range = offset..offset + size as usize;
        if !object.state.is_empty() && object.state[range.clone()].iter().any(|s| *s != DEFINED) {
            return fault(TrapKind::Undefined, "read of uninitialised bytes");
        }
        Ok(&object.bytes[range])
    }

    /// Writes bytes, constants included: for the initialisation of memory.
    pub fn initialize_bytes(&mut self, address: Address, bytes: &[u8]) -> Eval<()> {
        let (number, offset) = self.locate(address.0, bytes.len() as u64)?;
        let object = &mut self.objects[number];
        object.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        if !object.state.is_empty() {
            object.state[offset..offset + bytes.len()].fill(DEFINED);
        }
        Ok(())
    }

    /// Returns the bytes of a C string without the terminating zero.
    pub fn c_string(&self, address: u64) -> Eval<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let byte = self.bytes(address.wrapping_add(text.len() as u64), 1)?[0];
            if byte == 0 {
                return Ok(text);
            }
            text.push(byte);
        }
    }
}

/// Checks the stated alignment of an address.
#[inline(always)]
pub(crate) fn check_alignment(address: u64, align: u64) -> Eval<()> {
    match address & (align - 1) {
        0 => Ok(()),
        _ => fault(
            TrapKind::Misaligned,
            format!("the address is not aligned to {align} bytes"),
        ),
    }
}
