//! A strand of execution: frames, registers, stack objects and control flow.
//!
//! The interpreter loop, the ranks of a team and the external functions run on the machine's current strand.

use crate::bytecode::code::{CONST, Code, InstrIndex, Reg};
use crate::memory::ObjectKind;
use crate::state::edge_trace::EdgeTrace;
use crate::state::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::{Address, Value};
use std::rc::Rc;

/// The frame of an active call.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub code: Rc<Code>,
    pub pc: u32,
    /// The index of the frame's first register.
    pub base: usize,
    /// The number of stack objects before the call.
    pub objects: usize,
    /// The position between control edges, in traced runs.
    pub trace: Option<Box<EdgeTrace>>,
}

/// A strand: active calls, registers and stack objects of one flow of control.
#[derive(Debug, Default)]
pub(crate) struct Strand {
    pub regs: Vec<Value>,
    pub frames: Vec<Frame>,
    pub objects: Vec<Address>,
    /// The rank's number and the number of ranks.
    pub rank: Option<(u64, u64)>,
    /// The number of `single` ops reached.
    pub singles: u64,
    /// The exception for the landing pad: object and selector.
    pub pending: Option<(u64, u64)>,
}

/// The control flow after an instruction.
pub(crate) enum Flow {
    Next,
    To(InstrIndex),
    /// Another frame or strand continues, at the frame's saved position.
    Switch,
    /// The outermost call has returned.
    Done(Option<Value>),
}

/// The current frame.
pub(crate) struct At<'c> {
    pub code: &'c Code,
    pub base: usize,
}

impl Machine<'_> {
    #[inline(always)]
    pub(crate) fn get<'v>(&'v self, at: &At<'v>, reg: Reg) -> &'v Value {
        match reg & CONST {
            0 => &self.strand.regs[at.base + reg as usize],
            _ => &at.code.consts[(reg & !CONST) as usize],
        }
    }
    #[inline(always)]
    pub(crate) fn set(&mut self, at: &At, reg: Reg, value: Value) -> Eval<Flow> {
        self.strand.regs[at.base + reg as usize] = value;
        Ok(Flow::Next)
    }
    /// Returns a value that control flow or an address depends on; traps if the value is not fully defined.
    #[inline(always)]
    pub(crate) fn defined(&self, at: &At, reg: Reg, what: &str) -> Eval<u64> {
        match self.get(at, reg) {
            Value::Bits(bits) => Ok(*bits),
            Value::Wide(bits) if **bits >> 64 == 0 => Ok(**bits as u64),
            Value::Wide(_) => fault(TrapKind::Unsupported, format!("{what} is too large")),
            Value::Poison => fault(TrapKind::Undefined, format!("{what} is poison")),
            _ => fault(TrapKind::Undefined, format!("{what} is undefined")),
        }
    }
    /// Allocates a stack object of the running function.
    pub(crate) fn stack_object(&mut self, size: u64, align: u64) -> Eval<Address> {
        let address = self
            .memory
            .allocate(size, align, ObjectKind::Stack, false)?;
        self.strand.objects.push(address);
        Ok(address)
    }
    /// Frees all stack objects except the first `keep`.
    pub(crate) fn free_stack(&mut self, keep: usize) {
        while self.strand.objects.len() > keep {
            if let Some(object) = self.strand.objects.pop() {
                self.memory.end_lifetime(object);
            }
        }
    }
}
