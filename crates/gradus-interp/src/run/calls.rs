//! Calls, returns and exception unwinding, on the strand's explicit frame stack.

use crate::bytecode::code::{CallSite, Callee, Instr};
use crate::externals::Outcome;
use crate::memory::ObjectKind;
use crate::state::access_trace::AllocationSite;
use crate::state::edge_trace::EdgeTrace;
use crate::state::machine::Machine;
use crate::state::strand::{At, Flow, Frame};
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::Value;
use gradus_ir::FuncId;

impl Machine<'_> {
    /// Pushes a frame for a call; the callee runs next.
    pub(crate) fn push_call(&mut self, func: FuncId, args: &[Value]) -> Eval<()> {
        let code = self.code(func)?;
        if args.len() < code.params.len() || (args.len() > code.params.len() && !code.variadic) {
            let name = &self.unit.functions[func].name;
            let text = format!(
                "the call of `{name}` does not pass {} arguments",
                code.params.len()
            );
            return fault(TrapKind::BadCall, text);
        }
        if self.strand.frames.len() >= self.options.max_calls {
            return fault(TrapKind::Limit, "the call stack is too deep");
        }
        let base = self.strand.regs.len();
        let objects = self.strand.objects.len();
        self.strand
            .regs
            .resize(base + code.registers as usize, Value::Poison);
        for (reg, arg) in std::iter::zip(&code.params, args) {
            self.strand.regs[base + *reg as usize] = arg.clone();
        }
        for &(index, size, align) in &code.byval_params {
            let Some(Value::Bits(from)) = args.get(index) else {
                return fault(TrapKind::Undefined, "a `byval` argument is undefined");
            };
            let copy = self
                .memory
                .allocate(size, align, ObjectKind::Stack, false)?;
            self.strand.objects.push(copy);
            self.trace_object(copy, AllocationSite::ByValue(func, index as u32));
            self.memory.copy(copy.0, *from, size)?;
            self.strand.regs[base + code.params[index] as usize] = Value::ptr(copy);
        }
        let inside = EdgeTrace::Inside(code.root);
        let trace = self.options.check_edges.then(|| Box::new(inside));
        self.strand.frames.push(Frame {
            code,
            pc: 0,
            base,
            objects,
            trace,
        });
        Ok(())
    }

    /// Executes a call: a function of the unit gets a frame, an external function runs to completion.
    pub(crate) fn execute_call(&mut self, at: &At, site: &CallSite) -> Eval<Flow> {
        let mut callee = site.callee;
        if let Callee::Value(reg) = callee {
            let address = self.defined(at, reg, "the called address")?;
            let Some(func) = self.memory.function(address) else {
                return fault(TrapKind::BadCall, "the called address is not a function");
            };
            self.trace_indirect_call(func);
            callee = match self.unit.known(func) {
                Some(known) if self.unit.functions[func].body.is_none() => {
                    Callee::Known(known, func)
                }
                _ => Callee::Func(func),
            };
        }
        let args: Vec<Value> = site
            .args
            .iter()
            .map(|reg| self.get(at, *reg).clone())
            .collect();
        let func = match callee {
            Callee::Func(func) => func,
            Callee::Known(known, func) => {
                return match self.execute_external(known, func, site, &args)? {
                    Outcome::Nothing => Ok(Flow::Next),
                    Outcome::Value(value) => match &site.result {
                        Some((dst, _)) => self.set(at, *dst, value),
                        None => Ok(Flow::Next),
                    },
                    Outcome::Throw(object) => self.unwind(object),
                };
            }
            Callee::Value(_) => return fault(TrapKind::BadCall, "the called function is unknown"),
        };
        let pc = self.pc;
        if let Some(frame) = self.strand.frames.last_mut() {
            frame.pc = pc;
        }
        self.push_call(func, &args)?;
        Ok(Flow::Switch)
    }

    /// Returns from the current function and passes the result to the caller.
    pub(crate) fn return_from_call(&mut self, value: Option<Value>) -> Eval<Flow> {
        if self.strand.frames.len() == 1 && !self.groups.is_empty() {
            return fault(TrapKind::Unsupported, "a `return` out of a parallel region");
        }
        self.pop_frame();
        let Some(caller) = self.strand.frames.last_mut() else {
            return Ok(Flow::Done(value));
        };
        if let Instr::Call(site) = &caller.code.instrs[caller.pc as usize]
            && let Some((dst, _)) = &site.result
        {
            let slot = caller.base + *dst as usize;
            match value {
                Some(value) => self.strand.regs[slot] = value,
                None => return fault(TrapKind::BadCall, "the called function returns no result"),
            }
        }
        caller.pc += 1;
        Ok(Flow::Switch)
    }

    /// Pops the top frame with registers and stack objects.
    fn pop_frame(&mut self) {
        if let Some(frame) = self.strand.frames.pop() {
            self.strand.regs.truncate(frame.base);
            self.free_stack(frame.objects);
        }
    }

    // ---- exceptions ------------------------------------------------------------------------

    /// Unwinds to the nearest landing pad that handles the exception.
    pub(crate) fn unwind(&mut self, object: u64) -> Eval<Flow> {
        let pc = self.pc;
        if let Some(frame) = self.strand.frames.last_mut() {
            frame.pc = pc;
        }
        while let Some(frame) = self.strand.frames.last() {
            let place = match &frame.code.instrs[frame.pc as usize] {
                Instr::Call(site) => site.unwind,
                _ => None,
            };
            if let Some(place) = place
                && let Some(selector) = self.selector(place, object)
            {
                self.strand.pending = Some((object, selector));
                if let Some(races) = &mut self.races {
                    races.unwind_to(self.strand.frames.len());
                }
                if let Some(frame) = self.strand.frames.last_mut() {
                    frame.pc = place;
                }
                return Ok(Flow::Switch);
            }
            if self.strand.frames.len() == 1 {
                break;
            }
            self.pop_frame();
            if let Some(frame) = self.strand.frames.last() {
                self.pc = frame.pc;
            }
        }
        fault(TrapKind::Uncaught, "uncaught exception")
    }

    /// Returns the selector of the clause that handles an exception, 0 for a cleanup; `None` if no clause
    /// matches.
    fn selector(&mut self, place: u32, object: u64) -> Option<u64> {
        let code = std::rc::Rc::clone(&self.strand.frames.last()?.code);
        // A traced run marks the start of the region before the landing pad.
        let mut instrs = (code.instrs.iter().skip(place as usize))
            .skip_while(|instr| matches!(instr, Instr::EdgePoint(_)));
        let Some(Instr::LandingPad { clauses, .. }) = instrs.next() else {
            return Some(0);
        };
        let thrown = self.thrown.get(&object).copied().unwrap_or(0);
        for clause in &clauses.catches {
            let wanted = clause.bits().unwrap_or(0);
            if wanted == 0 || self.is_derived_type(thrown, wanted) {
                return Some(self.type_id(wanted));
            }
        }
        clauses.cleanup.then_some(0)
    }

    /// Returns whether a thrown type equals the caught type or derives from the caught type by single
    /// inheritance.
    fn is_derived_type(&self, thrown: u64, wanted: u64) -> bool {
        const BASE_OFFSET: u64 = 16;
        let mut ty = thrown;
        for _ in 0..64 {
            if ty == wanted {
                return true;
            }
            match self.memory.read(ty.wrapping_add(BASE_OFFSET), 8) {
                Ok(Value::Bits(base)) if base != 0 => ty = base,
                _ => return false,
            }
        }
        false
    }
}
