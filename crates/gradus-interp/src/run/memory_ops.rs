//! Execution of address computations and memory accesses.

use crate::bytecode::code::{AddrInfo, Instr, Reg};
use crate::memory::check_alignment;
use crate::state::machine::Machine;
use crate::state::races::AccessKind;
use crate::state::strand::{At, Flow};
use crate::trap::{Eval, TrapKind, fault};
use crate::values::arith::{apply_rmw, int_compare};
use crate::values::value::{Address, Value};
use crate::values::value_layout::Shape;
use gradus_ir::IntPredicate;

impl Machine<'_> {
    /// Returns the address of an access; traps if the stated alignment is violated.
    #[inline(always)]
    pub(crate) fn address(&self, at: &At, ptr: Reg, align: u64) -> Eval<u64> {
        let address = self.defined(at, ptr, "an address")?;
        check_alignment(address, align)?;
        Ok(address)
    }

    pub(crate) fn memory_instr(&mut self, at: &At, instr: &Instr) -> Eval<Flow> {
        match instr {
            Instr::Load {
                shape,
                align,
                atomic,
                ptr,
                dst,
            } => {
                let address = self.address(at, *ptr, *align)?;
                self.check_access(address, shape.size_bytes(), AccessKind::load(*atomic))?;
                let value = shape.load(&self.memory, address)?;
                self.trace_access(0, address);
                self.set(at, *dst, value)
            }
            Instr::Store {
                shape,
                align,
                atomic,
                value,
                ptr,
            } => {
                let address = self.address(at, *ptr, *align)?;
                self.check_access(address, shape.size_bytes(), AccessKind::store(*atomic))?;
                let value = self.get(at, *value).clone();
                shape.store(&mut self.memory, address, &value)?;
                self.trace_access(1, address);
                Ok(Flow::Next)
            }
            Instr::AtomicRmw {
                op,
                num,
                align,
                ptr,
                value,
                dst,
            } => {
                let address = self.address(at, *ptr, *align)?;
                let shape = Shape::Num(*num);
                self.check_access(address, shape.size_bytes(), AccessKind::AtomicWrite)?;
                let old = shape.load(&self.memory, address)?;
                self.trace_access(0, address);
                let new = apply_rmw(*op, *num, &old, self.get(at, *value))?;
                shape.store(&mut self.memory, address, &new)?;
                self.set(at, *dst, old)
            }
            Instr::CmpXchg {
                num,
                align,
                ptr,
                expected,
                new,
                dst,
            } => {
                let address = self.address(at, *ptr, *align)?;
                let shape = Shape::Num(*num);
                self.check_access(address, shape.size_bytes(), AccessKind::AtomicWrite)?;
                let old = shape.load(&self.memory, address)?;
                self.trace_access(0, address);
                let expected = self.get(at, *expected);
                let equal = int_compare(IntPredicate::Eq, num.bits(), false, &old, expected);
                let Value::Bits(equal) = equal else {
                    return fault(TrapKind::Undefined, "an operand of `cmpxchg` is undefined");
                };
                if equal == 1 {
                    let new = self.get(at, *new).clone();
                    shape.store(&mut self.memory, address, &new)?;
                }
                self.set(at, *dst, Value::Elements([old, Value::Bits(equal)].into()))
            }
            Instr::Alloca {
                stride,
                align,
                count,
                shared,
                dst,
            } => {
                let count = self.defined(at, *count, "the size of an allocation")?;
                let address = self.alloca(*stride, count, *align, *shared)?;
                self.trace_alloca(address);
                self.set(at, *dst, Value::ptr(address))
            }
            _ => fault(
                TrapKind::Unsupported,
                "an instruction outside of this group",
            ),
        }
    }

    /// Allocates `count` elements of `stride` bytes, in memory shared by a block's ranks if `shared`.
    fn alloca(&mut self, stride: u64, count: u64, align: u64, shared: bool) -> Eval<Address> {
        let Some(size) = stride.checked_mul(count) else {
            return fault(TrapKind::Limit, "the program allocates too much memory");
        };
        match shared {
            true => self.shared_object(size, align),
            false => self.stack_object(size, align),
        }
    }

    pub(crate) fn addr(&mut self, at: &At, info: &AddrInfo) -> Eval<Flow> {
        let Some(len) = info.lanes else {
            let value = self.address_lane(at, info, None);
            return self.set(at, info.dst, value);
        };
        let lanes: Vec<Value> = (0..len)
            .map(|i| self.address_lane(at, info, Some(i)))
            .collect();
        self.set(at, info.dst, Value::Elements(lanes.into()))
    }

    /// Computes a scalar address, or lane `lane` of a vector of addresses.
    #[inline(always)]
    fn address_lane(&self, at: &At, info: &AddrInfo, lane: Option<usize>) -> Value {
        let pick = |reg: Reg| match (self.get(at, reg), lane) {
            (Value::Bits(bits), _) => Ok(*bits),
            (many @ Value::Elements(_), Some(lane)) => {
                let value = many.lane(lane);
                value.bits().ok_or(value)
            }
            (value, _) => Err(value.clone()),
        };
        let unknown = |value| match value {
            Value::Poison => Value::Poison,
            _ => Value::UNDEF,
        };
        let base = match pick(info.base) {
            Ok(base) => base,
            Err(value) => return unknown(value),
        };
        let mut address = base.wrapping_add(info.offset);
        for (reg, bits, stride) in &info.terms {
            let index = match pick(*reg) {
                Ok(bits_of) => ((bits_of << (64 - bits)) as i64) >> (64 - bits),
                Err(value) => return unknown(value),
            };
            address = address.wrapping_add(index.wrapping_mul(*stride) as u64);
        }
        if info.inbounds && address != base && !self.in_same_object(base, address) {
            return Value::Poison;
        }
        Value::Bits(address)
    }

    /// Returns whether both addresses belong to one live object.
    #[inline(always)]
    fn in_same_object(&self, base: u64, address: u64) -> bool {
        base >> 36 == address >> 36 && self.memory.in_bounds(base) && self.memory.in_bounds(address)
    }
}
