//! Memory functions: allocation, deallocation, copies and fills.

use crate::externals::{Outcome, defined_arg};
use crate::memory::ObjectKind;
use crate::state::machine::Machine;
use crate::state::races::AccessKind;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::{Address, Value};
use gradus_ir::externals::{AllocationSize, MemoryFn};

impl Machine<'_> {
    pub(crate) fn memory_fn(&mut self, id: MemoryFn, args: &[Value]) -> Eval<Outcome> {
        use MemoryFn::*;
        match id {
            Malloc | Calloc | Realloc | AlignedAlloc | New | NewNothrow | NewAligned
            | NewAlignedNothrow | RustAlloc | RustAllocZeroed | RustRealloc | UserAllocator(_) => {
                self.allocate(id, args)
            }
            Strdup => {
                let text = self.memory.c_string(defined_arg(args, 0)?)?;
                let to = self
                    .memory
                    .allocate(text.len() as u64 + 1, 16, ObjectKind::Heap, true)?;
                self.memory.initialize_bytes(to, &text)?;
                self.trace_block(to);
                Ok(Outcome::Value(Value::ptr(to)))
            }
            PosixMemalign => {
                let (align, size) = (defined_arg(args, 1)?, defined_arg(args, 2)?);
                let block = self.memory.allocate(size, align, ObjectKind::Heap, false)?;
                self.trace_block(block);
                self.store_result(defined_arg(args, 0)?, 8, &Value::ptr(block))?;
                self.trace_argument(0, defined_arg(args, 0)?);
                Ok(Outcome::Value(Value::Bits(0)))
            }
            Free | Delete | RustDealloc => {
                let block = Address(defined_arg(args, 0)?);
                self.record_free(block)?;
                self.memory.free(block)?;
                Ok(Outcome::Nothing)
            }
            Memcpy | MemcpyIntrinsic | Mempcpy => self.copy(id, args, 0, 1),
            Memmove | MemmoveIntrinsic => self.copy(id, args, 0, 1),
            Bcopy => self.copy(id, args, 1, 0),
            Memset | MemsetIntrinsic => {
                let (to, size) = (defined_arg(args, 0)?, defined_arg(args, 2)?);
                self.check_access(to, size, AccessKind::Write)?;
                self.memory.fill(to, &args[1], size)?;
                self.trace_range(0, to, size);
                Ok(copy_outcome(id, args, 0))
            }
            Bzero => {
                let (to, size) = (defined_arg(args, 0)?, defined_arg(args, 1)?);
                self.check_access(to, size, AccessKind::Write)?;
                self.memory.fill(to, &Value::Bits(0), size)?;
                self.trace_range(0, to, size);
                Ok(Outcome::Nothing)
            }
            TapePush | TapeRelease => fault(
                TrapKind::Unsupported,
                "the tape stack has separate functions",
            ),
            UsableSize => match self.memory.size(Address(defined_arg(args, 0)?)) {
                Some(size) => Ok(Outcome::Value(Value::Bits(size))),
                None => fault(
                    TrapKind::BadAddress,
                    "the address is not the start of a block",
                ),
            },
        }
    }

    fn allocate(&mut self, id: MemoryFn, args: &[Value]) -> Eval<Outcome> {
        let Some(allocation) = id.allocation() else {
            return fault(TrapKind::Unsupported, "the callee is not an allocator");
        };
        let size = match allocation.size {
            AllocationSize::Argument(i) => defined_arg(args, usize::from(i))?,
            AllocationSize::Product(a, b) => {
                let (a, b) = (
                    defined_arg(args, usize::from(a))?,
                    defined_arg(args, usize::from(b))?,
                );
                match a.checked_mul(b) {
                    Some(size) => size,
                    None => return Ok(Outcome::Value(Value::Bits(0))),
                }
            }
            AllocationSize::Unknown => {
                return fault(TrapKind::Unsupported, "an allocation of unknown size");
            }
        };
        let align = match allocation.align {
            Some(i) => defined_arg(args, usize::from(i))?,
            None => 16,
        };
        let block = self
            .memory
            .allocate(size, align, ObjectKind::Heap, allocation.zeroed)?;
        self.trace_block(block);
        if let Some(index) = allocation.replaces {
            let old = Address(defined_arg(args, usize::from(index))?);
            if old.0 != 0 {
                let Some(kept) = self.memory.size(old) else {
                    return fault(
                        TrapKind::BadFree,
                        "reallocation of memory that is not a live block",
                    );
                };
                self.record_free(old)?;
                self.memory.copy(block.0, old.0, kept.min(size))?;
                self.memory.free(old)?;
            }
        }
        Ok(Outcome::Value(Value::ptr(block)))
    }

    fn copy(&mut self, id: MemoryFn, args: &[Value], to: usize, from: usize) -> Eval<Outcome> {
        let (target, source, size) = (
            defined_arg(args, to)?,
            defined_arg(args, from)?,
            defined_arg(args, 2)?,
        );
        let exclusive = matches!(
            id,
            MemoryFn::Memcpy | MemoryFn::MemcpyIntrinsic | MemoryFn::Mempcpy
        );
        let distance = target.abs_diff(source);
        if exclusive && distance < size && (distance != 0 || id == MemoryFn::Mempcpy) {
            return fault(TrapKind::OutOfBounds, "source and target of a copy overlap");
        }
        self.check_access(source, size, AccessKind::Read)?;
        self.check_access(target, size, AccessKind::Write)?;
        self.memory.copy(target, source, size)?;
        self.trace_range(to, target, size);
        self.trace_range(from, source, size);
        if id == MemoryFn::Mempcpy {
            return Ok(Outcome::Value(Value::Bits(target.wrapping_add(size))));
        }
        Ok(copy_outcome(id, args, to))
    }
}

/// Returns the outcome of a copy or fill: C's functions return the destination, LLVM's return nothing.
fn copy_outcome(id: MemoryFn, args: &[Value], to: usize) -> Outcome {
    match id {
        MemoryFn::Memcpy | MemoryFn::Memmove | MemoryFn::Memset => Outcome::Value(args[to].clone()),
        _ => Outcome::Nothing,
    }
}
