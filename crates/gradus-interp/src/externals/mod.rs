//! External functions, executed by id. Functions without an implementation trap with the function's name.

pub(crate) mod format;
pub(crate) mod int;
pub(crate) mod math;
pub(crate) mod memory;
pub(crate) mod openmp;
pub(crate) mod vector;

use crate::bytecode::code::CallSite;
use crate::state::access_trace::AllocationSite;
use crate::state::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::Value;
use gradus_ir::externals::{CompilerIntrinsic, ExceptionFn, ExternalFn, SystemFn, TextFn};
use gradus_ir::{FuncId, Type};

/// The outcome of a call of an external function.
pub(crate) enum Outcome {
    /// Returned without a value.
    Nothing,
    /// Returned a value.
    Value(Value),
    /// Threw the exception object at an address.
    Throw(u64),
}

/// Returns the bits of an argument; traps if the argument is undefined.
pub(crate) fn defined_arg(args: &[Value], index: usize) -> Eval<u64> {
    match args.get(index) {
        Some(Value::Bits(bits)) => Ok(*bits),
        Some(Value::Poison | Value::Undef { .. }) => {
            fault(TrapKind::Undefined, "an argument is undefined")
        }
        _ => fault(
            TrapKind::BadCall,
            "an argument has the wrong type or is missing",
        ),
    }
}

impl Machine<'_> {
    /// Executes an external function.
    pub(crate) fn execute_external(
        &mut self,
        known: ExternalFn,
        func: FuncId,
        site: &CallSite,
        args: &[Value],
    ) -> Eval<Outcome> {
        match known {
            ExternalFn::Math(id) => self.math(id, site, args),
            ExternalFn::MathOut(id) => self.math_out(id, site, args),
            ExternalFn::Integer(id) => self.integer(id, site, args),
            ExternalFn::Reduce(id) => self.reduce(id, site, args),
            ExternalFn::Masked(id) => self.masked(id, site, args),
            ExternalFn::Memory(id) => self.memory_fn(id, args),
            ExternalFn::Text(id) => self.text(id, func, args),
            ExternalFn::Marker(id) => self.compiler_intrinsic(id, func, args),
            ExternalFn::System(id) => self.system(id, func, site, args),
            ExternalFn::Exception(id) => self.exception(id, func, site, args),
            ExternalFn::OpenMp(id) => self.openmp(id, func, args),
            ExternalFn::Complex(_)
            | ExternalFn::Fork(_)
            | ExternalFn::Mpi
            | ExternalFn::Gpu
            | ExternalFn::Kernel(_)
            | ExternalFn::Inactive => self.unsupported(func),
        }
    }

    /// Traps for an external function without an implementation.
    pub(crate) fn unsupported(&self, func: FuncId) -> Eval<Outcome> {
        let name = self.function_name(func);
        fault(
            TrapKind::Unsupported,
            format!("the interpreter does not support `{name}`"),
        )
    }

    fn compiler_intrinsic(
        &mut self,
        id: CompilerIntrinsic,
        func: FuncId,
        args: &[Value],
    ) -> Eval<Outcome> {
        use CompilerIntrinsic::*;
        match id {
            LifetimeStart | LifetimeEnd => {
                let pointer = defined_arg(args, args.len().saturating_sub(1))?;
                let address = crate::values::value::Address(pointer);
                if let Some(size) = self.memory.size(address) {
                    self.memory.fill(pointer, &Value::UNDEF, size)?;
                }
                Ok(Outcome::Nothing)
            }
            Assume => match args.first() {
                Some(Value::Bits(bits)) if bits & 1 == 1 => Ok(Outcome::Nothing),
                Some(Value::Bits(_)) => fault(TrapKind::Unreachable, "an assumption is false"),
                _ => fault(TrapKind::Undefined, "an assumption is undefined"),
            },
            InvariantGroup | Expect | Annotation | ThreadlocalAddress => Ok(Outcome::Value(
                args.first().cloned().unwrap_or(Value::Poison),
            )),
            InvariantStart => Ok(Outcome::Value(Value::Bits(0))),
            StackSave => Ok(Outcome::Value(
                Value::Bits(self.strand.objects.len() as u64),
            )),
            StackRestore => {
                let own = self.strand.frames.last().map_or(0, |frame| frame.objects);
                let keep = usize::try_from(defined_arg(args, 0)?).unwrap_or(usize::MAX);
                self.free_stack(keep.max(own));
                Ok(Outcome::Nothing)
            }
            IsConstant => Ok(Outcome::Value(Value::bool(false))),
            RuntimeCheck => Ok(Outcome::Value(Value::bool(true))),
            ObjectSize => {
                let least = defined_arg(args, 1)? == 1;
                Ok(Outcome::Value(Value::Bits(if least {
                    0
                } else {
                    u64::MAX
                })))
            }
            TypeId => {
                let ty = defined_arg(args, 0)?;
                Ok(Outcome::Value(Value::Bits(self.type_id(ty))))
            }
            Trap | DebugTrap => fault(TrapKind::Abort, "the program executes a trap"),
            InvariantEnd | Prefetch | Debug | NoaliasScopeDecl | SideEffect | DoNothing
            | VarAnnotation | FakeUse => Ok(Outcome::Nothing),
            Frame | Counter | FloatEnvironment | VaStart | VaEnd | VaCopy => self.unsupported(func),
        }
    }

    fn text(&mut self, id: TextFn, func: FuncId, args: &[Value]) -> Eval<Outcome> {
        let found = match id {
            TextFn::Strlen => self.memory.c_string(defined_arg(args, 0)?)?.len() as u64,
            TextFn::Strnlen => {
                let (text, most) = (defined_arg(args, 0)?, defined_arg(args, 1)?);
                let mut length = 0;
                while length < most && self.memory.bytes(text.wrapping_add(length), 1)?[0] != 0 {
                    length += 1;
                }
                length
            }
            TextFn::Memcmp => {
                let size = defined_arg(args, 2)?;
                let a = self.memory.bytes(defined_arg(args, 0)?, size)?;
                let b = self.memory.bytes(defined_arg(args, 1)?, size)?;
                u64::from(ordering_bits(a.cmp(b)))
            }
            TextFn::ToInt => return self.text_to_int(func, args),
            _ => return self.unsupported(func),
        };
        Ok(Outcome::Value(Value::Bits(found)))
    }

    /// Executes `atoi`, `atol`, `atoll`, and `strtol` with a null end pointer and base 10.
    fn text_to_int(&mut self, func: FuncId, args: &[Value]) -> Eval<Outcome> {
        let plain = match args.len() {
            1 => true,
            3 => defined_arg(args, 1)? == 0 && defined_arg(args, 2)? == 10,
            _ => false,
        };
        if !plain {
            return self.unsupported(func);
        }
        let text = self.memory.c_string(defined_arg(args, 0)?)?;
        let text = text.trim_ascii_start();
        let (negative, digits) = match text.split_first() {
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => (false, text),
        };
        let digits = digits.iter().take_while(|b| b.is_ascii_digit());
        let size = digits.fold(0i128, |n, b| {
            n.saturating_mul(10).saturating_add(i128::from(b - b'0'))
        });
        let n = if negative { -size } else { size };
        let n = n.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64 as u64;
        let result = self.unit.result_type(self.unit.functions[func].ty);
        let bits = result
            .and_then(|ty| self.unit.types.int_bits(ty))
            .unwrap_or(64);
        Ok(Outcome::Value(Value::Bits(n & (u64::MAX >> (64 - bits)))))
    }

    fn system(
        &mut self,
        id: SystemFn,
        func: FuncId,
        site: &CallSite,
        args: &[Value],
    ) -> Eval<Outcome> {
        match id {
            SystemFn::Exit => match args.first() {
                Some(_) => fault(
                    TrapKind::Exit(defined_arg(args, 0)? as i32),
                    "the program exits",
                ),
                None => fault(TrapKind::Abort, "the program aborts"),
            },
            SystemFn::AssertFail => fault(TrapKind::Abort, "an assertion failed"),
            SystemFn::Errno => {
                if self.errno.is_none() {
                    let errno =
                        self.memory
                            .allocate(4, 4, crate::memory::ObjectKind::Static, true)?;
                    self.trace_object(errno, AllocationSite::External);
                    self.errno = Some(errno);
                }
                Ok(Outcome::Value(Value::ptr(self.errno.unwrap_or_default())))
            }
            SystemFn::Print | SystemFn::PrintToMemory => self.print(id, func, site, args),
            _ => self.unsupported(func),
        }
    }

    /// Executes the `printf` and `puts` families, distinguished by signature: the last fixed parameter of a
    /// variadic function is the format.
    fn print(
        &mut self,
        id: SystemFn,
        func: FuncId,
        site: &CallSite,
        args: &[Value],
    ) -> Eval<Outcome> {
        let Type::Func {
            params, variadic, ..
        } = self.unit.types.get(self.unit.functions[func].ty)
        else {
            return self.unsupported(func);
        };
        let fixed = params.len();
        let text = match (id, *variadic, fixed) {
            (_, true, 1..) => {
                let format = self.memory.c_string(defined_arg(args, fixed - 1)?)?;
                self.formatted(&format, site, args, fixed)?
            }
            (SystemFn::Print, false, 1 | 2) => match self.unit.types.get(params[0]) {
                Type::Int(_) => vec![defined_arg(args, 0)? as u8],
                _ => {
                    let mut text = self.memory.c_string(defined_arg(args, 0)?)?;
                    text.extend((fixed == 1).then_some(b'\n'));
                    text
                }
            },
            (SystemFn::Print, false, 4) => {
                let size = defined_arg(args, 1)?.saturating_mul(defined_arg(args, 2)?);
                self.memory.bytes(defined_arg(args, 0)?, size)?.to_vec()
            }
            _ => return self.unsupported(func),
        };
        let length = text.len() as u64;
        if id == SystemFn::PrintToMemory {
            self.print_to_memory(fixed, &text, args)?;
        } else {
            self.output.extend_from_slice(&text);
        }
        let count = if fixed == 4 && !variadic {
            defined_arg(args, 2)?
        } else {
            length
        };
        Ok(match site.result {
            Some(_) => Outcome::Value(Value::Bits(count & 0xffff_ffff)),
            None => Outcome::Nothing,
        })
    }

    /// Writes text and a terminating zero. `sprintf` (2 fixed parameters, 4 with checks) writes all text,
    /// `snprintf` (3 and 5) at most the second argument's number of bytes.
    fn print_to_memory(&mut self, fixed: usize, text: &[u8], args: &[Value]) -> Eval<()> {
        let room = match fixed {
            3 | 5 => defined_arg(args, 1)?,
            _ => u64::MAX,
        };
        let to = defined_arg(args, 0)?;
        if room == 0 {
            return Ok(());
        }
        let kept = usize::try_from(room - 1)
            .unwrap_or(usize::MAX)
            .min(text.len());
        for (i, byte) in text[..kept].iter().chain([&0]).enumerate() {
            let byte = Value::Bits(u64::from(*byte));
            self.memory.write(to.wrapping_add(i as u64), 1, &byte)?;
        }
        Ok(())
    }

    fn exception(
        &mut self,
        id: ExceptionFn,
        func: FuncId,
        site: &CallSite,
        args: &[Value],
    ) -> Eval<Outcome> {
        match id {
            ExceptionFn::Allocate => {
                let size = defined_arg(args, 0)?;
                let object =
                    self.memory
                        .allocate(size, 16, crate::memory::ObjectKind::Heap, false)?;
                self.trace_block(object);
                Ok(Outcome::Value(Value::ptr(object)))
            }
            ExceptionFn::Free => {
                self.memory
                    .free(crate::values::value::Address(defined_arg(args, 0)?))?;
                Ok(Outcome::Nothing)
            }
            ExceptionFn::Throw if args.is_empty() => match self.caught.last() {
                Some(&object) => Ok(Outcome::Throw(object)),
                None => fault(TrapKind::Uncaught, "rethrow without a caught exception"),
            },
            ExceptionFn::Throw => {
                let object = defined_arg(args, 0)?;
                self.thrown.insert(object, defined_arg(args, 1)?);
                Ok(Outcome::Throw(object))
            }
            ExceptionFn::BeginCatch => {
                let object = defined_arg(args, 0)?;
                self.caught.push(object);
                Ok(Outcome::Value(Value::Bits(object)))
            }
            ExceptionFn::EndCatch => {
                self.caught.pop();
                Ok(Outcome::Nothing)
            }
            ExceptionFn::Resume => Ok(Outcome::Throw(defined_arg(args, 0)?)),
            ExceptionFn::Guard => self.guard(site, args),
            // The object's memory is dead after the destructor.
            ExceptionFn::LibraryDestructor => Ok(Outcome::Nothing),
            ExceptionFn::Terminate => fault(TrapKind::Abort, "the program terminates"),
            ExceptionFn::LibraryThrow => {
                fault(TrapKind::Uncaught, "the C++ library throws an exception")
            }
            ExceptionFn::Panic => fault(TrapKind::Abort, "the program panics"),
            ExceptionFn::NoReturn => fault(TrapKind::Abort, "the program exits"),
            ExceptionFn::Personality => self.unsupported(func),
        }
    }

    /// Executes the guard of a static variable: acquire returns whether to initialise, release marks the
    /// variable as done.
    fn guard(&mut self, site: &CallSite, args: &[Value]) -> Eval<Outcome> {
        let guard = defined_arg(args, 0)?;
        if site.result.is_none() {
            self.memory.write(guard, 1, &Value::Bits(1))?;
            return Ok(Outcome::Nothing);
        }
        let done = self.memory.bytes(guard, 1)?[0];
        Ok(Outcome::Value(Value::Bits(u64::from(done == 0))))
    }
}

/// Returns −1, 0 or 1 as the bits of an `int`.
fn ordering_bits(ordering: std::cmp::Ordering) -> u32 {
    ordering as i8 as i32 as u32
}
