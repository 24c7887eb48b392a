//! JIT for tests: runs functions of a module in the present process.
//!
//! [`Jit::new`] consumes the host, adds one thunk per callable function, which reads the arguments from an
//! array of 8-byte slots, and passes the module to LLVM's ORC JIT. Calls run the program's own code and can
//! corrupt the process, so tests run user code in a child process.
use crate::host::ffi::*;
use crate::host::module::Host;
use crate::host::target::{OptLevel, TargetMachine, initialise_targets};
use gradus_ir::{Code, Diagnostic};
use llvm_sys::LLVMTypeKind;
use llvm_sys::core::*;
use llvm_sys::orc2::lljit::*;
use llvm_sys::orc2::*;
use llvm_sys::prelude::*;
use llvm_sys::target::{LLVMABISizeOfType, LLVMGetModuleDataLayout};
use std::collections::HashMap;
use std::ptr::null_mut;

/// A module compiled in the present process.
pub struct Jit {
    raw: LLVMOrcLLJITRef,
    parameters: HashMap<String, usize>,
}

/// An argument of a call.
pub enum Arg<'a> {
    /// A `double`.
    F64(f64),
    /// A `float`.
    F32(f32),
    /// An integer of up to 64 bits (sign-extended to the parameter's width, or truncated).
    Int(i64),
    /// A null or otherwise fixed address.
    Address(usize),
    /// A pointer to numbers.
    F64s(&'a mut [f64]),
    /// A pointer to numbers.
    F32s(&'a mut [f32]),
    /// A pointer to integers.
    I64s(&'a mut [i64]),
    /// A pointer to integers.
    I32s(&'a mut [i32]),
    /// A pointer to bytes.
    Bytes(&'a mut [u8]),
}

/// The bytes of a function's result, zero-filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Returned(pub [u8; RESULT_BYTES]);

/// The most bytes of a result.
pub const RESULT_BYTES: usize = 128;

impl Returned {
    /// Returns the first 8 bytes as a `double`.
    pub fn f64(&self) -> f64 {
        self.f64_at(0)
    }

    /// Returns the `double` at byte `8 * index`, for results that are structs of doubles.
    pub fn f64_at(&self, index: usize) -> f64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[8 * index..8 * index + 8]);
        f64::from_ne_bytes(word)
    }

    /// Returns the first 4 bytes as a `float`.
    pub fn f32(&self) -> f32 {
        f32::from_ne_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    /// Returns the first 8 bytes as an integer; a narrower result is in the low bits.
    pub fn i64(&self) -> i64 {
        self.f64().to_bits() as i64
    }

    /// Returns the first 4 bytes as an integer.
    pub fn i32(&self) -> i32 {
        self.i64() as i32
    }
}

impl Arg<'_> {
    fn slot(&mut self) -> u64 {
        match self {
            Arg::F64(x) => x.to_bits(),
            Arg::F32(x) => u64::from(x.to_bits()),
            Arg::Int(i) => *i as u64,
            Arg::Address(a) => *a as u64,
            Arg::F64s(s) => s.as_mut_ptr() as u64,
            Arg::F32s(s) => s.as_mut_ptr() as u64,
            Arg::I64s(s) => s.as_mut_ptr() as u64,
            Arg::I32s(s) => s.as_mut_ptr() as u64,
            Arg::Bytes(s) => s.as_mut_ptr() as u64,
        }
    }
}

impl Jit {
    /// Compiles the host's module; [`Jit::call`] may call the functions in `callable`.
    ///
    /// # Errors
    /// A function in `callable` that is not defined or has a parameter that is neither a number of at most
    /// 64 bits nor a pointer; an error of the JIT.
    pub fn new(host: Host, callable: &[&str]) -> Result<Jit, Diagnostic> {
        Jit::with(host, callable, null_mut)
    }

    /// Like [`Jit::new`], with a code generator that does not optimise: several times as fast for modules
    /// whose functions run a few times only.
    ///
    /// # Errors
    /// The errors of [`Jit::new`].
    pub fn quick(host: Host, callable: &[&str]) -> Result<Jit, Diagnostic> {
        let machine = TargetMachine::for_module(&host, OptLevel::O0)?;
        Jit::with(host, callable, || machine.into_jit_builder())
    }

    fn with(
        mut host: Host,
        callable: &[&str],
        builder: impl FnOnce() -> LLVMOrcLLJITBuilderRef,
    ) -> Result<Jit, Diagnostic> {
        initialise_targets();
        let mut parameters = HashMap::new();
        for name in callable {
            parameters.insert((*name).to_string(), add_thunk(&mut host, name)?);
        }
        host.verify()?;
        host.invalidate_units();
        unsafe {
            let mut raw = null_mut();
            if let Some(text) = take_error(LLVMOrcCreateLLJIT(&mut raw, builder())) {
                return Err(Diagnostic::error(
                    Code::ToolFailed,
                    format!("cannot start the JIT: {text}"),
                ));
            }
            let jit = Jit { raw, parameters };
            let library = LLVMOrcLLJITGetMainJITDylib(raw);
            let mut generator = null_mut();
            let prefix = LLVMOrcLLJITGetGlobalPrefix(raw);
            let error = LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &mut generator,
                prefix,
                None,
                null_mut(),
            );
            if let Some(text) = take_error(error) {
                return Err(Diagnostic::error(
                    Code::ToolFailed,
                    format!("cannot search this process for symbols: {text}"),
                ));
            }
            LLVMOrcJITDylibAddGenerator(library, generator);
            LLVMContextSetDiagnosticHandler(host.ctx, None, null_mut());
            let context = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(host.ctx);
            let module = LLVMOrcCreateNewThreadSafeModule(host.module, context);
            LLVMOrcDisposeThreadSafeContext(context);
            host.ctx = null_mut();
            host.module = null_mut();
            if let Some(text) = take_error(LLVMOrcLLJITAddLLVMIRModule(raw, library, module)) {
                return Err(Diagnostic::error(
                    Code::ToolFailed,
                    format!("cannot compile the module: {text}"),
                ));
            }
            Ok(jit)
        }
    }

    /// Binds symbols of the module to addresses in the present process.
    ///
    /// # Errors
    /// A symbol that the module defines itself.
    pub fn define(&self, symbols: &[(&str, usize)]) -> Result<(), Diagnostic> {
        let mut pairs: Vec<LLVMOrcCSymbolMapPair> = Vec::new();
        for (name, address) in symbols {
            let text = c_string(name);
            pairs.push(LLVMOrcCSymbolMapPair {
                Name: unsafe { LLVMOrcLLJITMangleAndIntern(self.raw, text.as_ptr()) },
                Sym: LLVMJITEvaluatedSymbol {
                    Address: *address as u64,
                    Flags: LLVMJITSymbolFlags {
                        GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported
                            as u8,
                        TargetFlags: 0,
                    },
                },
            });
        }
        let error = unsafe {
            let unit = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
            take_error(LLVMOrcJITDylibDefine(
                LLVMOrcLLJITGetMainJITDylib(self.raw),
                unit,
            ))
        };
        match error {
            Some(text) => Err(Diagnostic::error(Code::ToolFailed, text)),
            None => Ok(()),
        }
    }

    /// Returns the address of a symbol.
    ///
    /// # Errors
    /// An unknown symbol, or a symbol that cannot be compiled.
    pub fn address(&self, name: &str) -> Result<usize, Diagnostic> {
        let mut address = 0;
        let error = unsafe {
            take_error(LLVMOrcLLJITLookup(
                self.raw,
                &mut address,
                c_string(name).as_ptr(),
            ))
        };
        match error {
            Some(text) => Err(Diagnostic::error(
                Code::ToolFailed,
                format!("undefined symbol {name}: {text}"),
            )),
            None => Ok(address as usize),
        }
    }

    /// Calls a function that was listed in [`Jit::new`].
    ///
    /// # Errors
    /// A function that was not listed, or a wrong number of arguments.
    pub fn call(&self, name: &str, args: &mut [Arg<'_>]) -> Result<Returned, Diagnostic> {
        match self.parameters.get(name) {
            None => {
                return Err(Diagnostic::error(
                    Code::ToolFailed,
                    format!("{name} is not in the list of callable functions"),
                ));
            }
            Some(n) if *n != args.len() => {
                return Err(Diagnostic::error(
                    Code::ToolFailed,
                    format!(
                        "{name} takes {n} arguments, but the call has {}",
                        args.len()
                    ),
                ));
            }
            Some(_) => {}
        }
        let thunk = self.address(&thunk_name(name))?;
        let mut slots: Vec<u64> = args.iter_mut().map(Arg::slot).collect();
        let mut out = Returned([0; RESULT_BYTES]);
        unsafe {
            let run: extern "C" fn(*mut u64, *mut u8) = std::mem::transmute(thunk);
            run(slots.as_mut_ptr(), out.0.as_mut_ptr());
        }
        Ok(out)
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        let error = unsafe { LLVMOrcDisposeLLJIT(self.raw) };
        drop(unsafe { take_error(error) });
    }
}

fn thunk_name(name: &str) -> String {
    format!("__gradus_call_{name}")
}

/// Adds `void __gradus_call_NAME(ptr slots, ptr out)` and returns the number of parameters of NAME.
fn add_thunk(host: &mut Host, name: &str) -> Result<usize, Diagnostic> {
    let callee = host
        .function(name)
        .filter(|f| unsafe { LLVMIsDeclaration(*f) } == 0)
        .ok_or_else(|| {
            Diagnostic::error(
                Code::ToolFailed,
                format!("the module defines no function {name}"),
            )
        })?;
    unsafe {
        check_signature(host, callee, name)?;
        let pointer = LLVMPointerTypeInContext(host.ctx, 0);
        let void = LLVMVoidTypeInContext(host.ctx);
        let word = LLVMInt64TypeInContext(host.ctx);
        let thunk_type = LLVMFunctionType(void, [pointer, pointer].as_mut_ptr(), 2, 0);
        let thunk = LLVMAddFunction(
            host.module,
            c_string(&thunk_name(name)).as_ptr(),
            thunk_type,
        );
        let builder = LLVMCreateBuilderInContext(host.ctx);
        LLVMPositionBuilderAtEnd(
            builder,
            LLVMAppendBasicBlockInContext(host.ctx, thunk, NO_NAME),
        );
        let mut values: Vec<LLVMValueRef> = Vec::new();
        for i in 0..LLVMCountParams(callee) {
            let t = LLVMTypeOf(LLVMGetParam(callee, i));
            let mut index = LLVMConstInt(word, u64::from(i), 0);
            let slot = LLVMBuildGEP2(
                builder,
                word,
                LLVMGetParam(thunk, 0),
                &mut index,
                1,
                NO_NAME,
            );
            values.push(LLVMBuildLoad2(builder, t, slot, NO_NAME));
        }
        let function_type = LLVMGlobalGetValueType(callee);
        let count = values.len() as u32;
        let result = LLVMBuildCall2(
            builder,
            function_type,
            callee,
            values.as_mut_ptr(),
            count,
            NO_NAME,
        );
        LLVMSetInstructionCallConv(result, LLVMGetFunctionCallConv(callee));
        if LLVMGetTypeKind(LLVMTypeOf(result)) != LLVMTypeKind::LLVMVoidTypeKind {
            let store = LLVMBuildStore(builder, result, LLVMGetParam(thunk, 1));
            LLVMSetAlignment(store, 1);
        }
        LLVMBuildRetVoid(builder);
        LLVMDisposeBuilder(builder);
        Ok(values.len())
    }
}

/// Refuses parameters wider than a slot and results wider than [`Returned`].
///
/// # Safety
/// `callee` is a function of `host`.
unsafe fn check_signature(host: &Host, callee: LLVMValueRef, name: &str) -> Result<(), Diagnostic> {
    unsafe {
        let parameters = (0..LLVMCountParams(callee)).map(|i| LLVMTypeOf(LLVMGetParam(callee, i)));
        if let Some(i) = parameters.into_iter().position(|t| !fits_slot(t)) {
            return Err(Diagnostic::error(
                Code::ToolFailed,
                format!(
                    "parameter {i} of {name} is not a `float`, a `double`, a pointer or an integer of at most 64 bits"
                ),
            ));
        }
        let result = LLVMGetReturnType(LLVMGlobalGetValueType(callee));
        if LLVMGetTypeKind(result) == LLVMTypeKind::LLVMVoidTypeKind {
            return Ok(());
        }
        let size_bytes = LLVMABISizeOfType(LLVMGetModuleDataLayout(host.module), result);
        if size_bytes > RESULT_BYTES as u64 {
            return Err(Diagnostic::error(
                Code::ToolFailed,
                format!("the result of {name} has {size_bytes} bytes, too many for a test call"),
            ));
        }
        Ok(())
    }
}

fn fits_slot(t: LLVMTypeRef) -> bool {
    use LLVMTypeKind::*;
    unsafe {
        match LLVMGetTypeKind(t) {
            LLVMDoubleTypeKind | LLVMFloatTypeKind | LLVMPointerTypeKind => true,
            LLVMIntegerTypeKind => LLVMGetIntTypeWidth(t) <= 64,
            _ => false,
        }
    }
}
