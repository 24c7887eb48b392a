//! The host: owns an LLVM context with a single module, and implements the operations on the module as a
//! whole.
//!
//! Flow: read (bitcode, text, objects with embedded bitcode) → link further inputs → pipelines
//! ([`crate::pipeline`]) → import → export → verify → object, assembly, bitcode or text.
//!
//! # Invariants
//! - The context outlives the module.
//! - LLVM's diagnostics are collected as data; nothing is printed.
//! - Every change of the module outside import and export (a link, a pipeline) increments `generation`, and
//!   export refuses a unit that was imported from an older generation.
use crate::host::ffi::functions_of;
use crate::host::ffi::*;
use crate::host::handle_tables::Tables;
use crate::host::pristine_bodies::Originals;
use gradus_ir::{Code, Diagnostic};
use llvm_sys::analysis::*;
use llvm_sys::bit_reader::*;
use llvm_sys::bit_writer::*;
use llvm_sys::core::*;
use llvm_sys::ir_reader::*;
use llvm_sys::linker::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMDiagnosticSeverity, LLVMModule};
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

/// An LLVM module with its context: the program as emitted by the user's compiler.
pub struct Host {
    pub(crate) ctx: LLVMContextRef,
    pub(crate) module: *mut LLVMModule,
    pub(crate) tables: Tables,
    pub(crate) generation: u32,
    pub(crate) originals: Originals,
    /// Enables unrolling of loops that index small stack arrays, before differentiation.
    pub(crate) local_loops: bool,
    /// True if the module is a whole Rust program.
    pub(crate) whole_program: bool,
    messages: Box<RefCell<Vec<Message>>>,
}

/// A diagnostic of LLVM about the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// True for an error; false for a warning or note.
    pub is_error: bool,
    /// LLVM's text.
    pub text: String,
}

extern "C" fn collect(info: LLVMDiagnosticInfoRef, sink: *mut c_void) {
    let sink = unsafe { &*sink.cast::<RefCell<Vec<Message>>>() };
    let severity = unsafe { LLVMGetDiagInfoSeverity(info) };
    if matches!(severity, LLVMDiagnosticSeverity::LLVMDSRemark) {
        return;
    }
    let text = unsafe { take_message(LLVMGetDiagInfoDescription(info)) };
    sink.borrow_mut().push(Message {
        is_error: matches!(severity, LLVMDiagnosticSeverity::LLVMDSError),
        text,
    });
}

impl Host {
    /// Reads a module: bitcode, textual IR or an object file with embedded bitcode, distinguished by the
    /// first bytes. `name` is used in messages only.
    ///
    /// # Errors
    /// Input that LLVM cannot read, with LLVM's explanation.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Host, Diagnostic> {
        let mut modules = modules_in(bytes, name)?.into_iter();
        let first = modules.next().ok_or_else(|| {
            Diagnostic::error(
                Code::UnreadableInput,
                format!("{name}: the file contains no LLVM module"),
            )
        })?;
        let mut host = Host::empty();
        host.module = host.read(&first, name)?;
        for next in modules {
            host.link_one(&next, name)?;
        }
        Ok(host)
    }

    /// Creates a host with an empty module called `name`, for the given triple and data layout.
    pub fn create(name: &str, triple: &str, data_layout: &str) -> Host {
        let mut host = Host::empty();
        unsafe {
            host.module = LLVMModuleCreateWithNameInContext(c_string(name).as_ptr(), host.ctx);
            LLVMSetTarget(host.module, c_string(triple).as_ptr());
            LLVMSetDataLayout(host.module, c_string(data_layout).as_ptr());
        }
        host
    }

    fn empty() -> Host {
        let messages = Box::new(RefCell::new(Vec::new()));
        let ctx = unsafe { LLVMContextCreate() };
        let sink: *const RefCell<Vec<Message>> = &*messages;
        unsafe { LLVMContextSetDiagnosticHandler(ctx, Some(collect), sink as *mut c_void) };
        Host {
            ctx,
            module: null_mut(),
            tables: Tables::default(),
            generation: 0,
            originals: Originals::default(),
            local_loops: true,
            whole_program: false,
            messages,
        }
    }

    /// Links every module in `bytes` (in any format of [`Host::parse`]) into the host's module.
    ///
    /// # Errors
    /// Unreadable input, or a clash of symbols; the module may then hold a part of the input and must not
    /// be used further.
    pub fn link(&mut self, bytes: &[u8], name: &str) -> Result<(), Diagnostic> {
        for module in modules_in(bytes, name)? {
            self.link_one(&module, name)?;
        }
        Ok(())
    }

    fn link_one(&mut self, module: &Source<'_>, name: &str) -> Result<(), Diagnostic> {
        let other = self.read(module, name)?;
        self.link_module(other, name)
    }

    /// Links a module of the same context into the host's module, and consumes it.
    pub(crate) fn link_module(
        &mut self,
        other: LLVMModuleRef,
        name: &str,
    ) -> Result<(), Diagnostic> {
        self.invalidate_units();
        if unsafe { LLVMLinkModules2(self.module, other) } != 0 {
            return Err(
                self.error_with_messages(Code::UnreadableInput, &format!("cannot link {name}"))
            );
        }
        Ok(())
    }

    /// Parses a module of the same context from LLVM's text.
    pub(crate) fn read_text(&self, text: &[u8], name: &str) -> Result<LLVMModuleRef, Diagnostic> {
        self.read(&Source::Text(text), name)
    }

    /// Parses a module of the same context from bitcode.
    pub(crate) fn read_bitcode(
        &self,
        bitcode: &[u8],
        name: &str,
    ) -> Result<LLVMModuleRef, Diagnostic> {
        self.read(&Source::Bitcode(bitcode), name)
    }

    fn read(&self, source: &Source<'_>, name: &str) -> Result<LLVMModuleRef, Diagnostic> {
        let mut module = null_mut();
        match source {
            Source::Bitcode(bytes) => {
                let buffer = make_buffer(bytes, name);
                let failed = unsafe { LLVMParseBitcodeInContext2(self.ctx, buffer, &mut module) };
                unsafe { LLVMDisposeMemoryBuffer(buffer) };
                if failed != 0 {
                    return Err(self.error_with_messages(
                        Code::UnreadableInput,
                        &format!("cannot read the bitcode of {name}"),
                    ));
                }
            }
            Source::Text(bytes) => {
                let mut message: *mut c_char = null_mut();
                let buffer = make_buffer(bytes, name);
                let failed =
                    unsafe { LLVMParseIRInContext2(self.ctx, buffer, &mut module, &mut message) };
                unsafe { LLVMDisposeMemoryBuffer(buffer) };
                let text = unsafe { take_message(message) };
                if failed != 0 {
                    return Err(Diagnostic::error(
                        Code::UnreadableInput,
                        format!("cannot read {name}: {}", text.trim_end()),
                    ));
                }
            }
        }
        Ok(module)
    }

    /// Runs LLVM's verifier on the module.
    ///
    /// # Errors
    /// The verifier's report.
    pub fn verify(&self) -> Result<(), Diagnostic> {
        let mut message = null_mut();
        let broken = unsafe {
            LLVMVerifyModule(
                self.module,
                LLVMVerifierFailureAction::LLVMReturnStatusAction,
                &mut message,
            )
        };
        let text = unsafe { take_message(message) };
        if broken != 0 {
            return Err(Diagnostic::error(
                Code::BrokenOutput,
                format!("LLVM's verifier rejects the module: {}", text.trim_end()),
            ));
        }
        Ok(())
    }

    /// Returns the module as bitcode.
    pub fn to_bitcode(&self) -> Vec<u8> {
        unsafe { take_buffer(LLVMWriteBitcodeToMemoryBuffer(self.module)) }
    }

    /// Returns the module as textual IR.
    pub fn to_text(&self) -> String {
        unsafe { take_message(LLVMPrintModuleToString(self.module)) }
    }

    /// Returns the textual IR of a function, if the module has it.
    pub fn function_text(&self, name: &str) -> Option<String> {
        let function = self.function(name)?;
        Some(unsafe { take_message(LLVMPrintValueToString(function)) })
    }

    /// Returns the target triple of the input.
    pub fn triple(&self) -> String {
        unsafe {
            std::ffi::CStr::from_ptr(LLVMGetTarget(self.module))
                .to_string_lossy()
                .into_owned()
        }
    }

    /// Returns the data layout string.
    pub fn data_layout(&self) -> String {
        unsafe {
            std::ffi::CStr::from_ptr(LLVMGetDataLayoutStr(self.module))
                .to_string_lossy()
                .into_owned()
        }
    }

    /// Returns LLVM's diagnostics since the last call, oldest first.
    pub fn take_messages(&self) -> Vec<Message> {
        std::mem::take(&mut self.messages.borrow_mut())
    }

    /// Marks all imported units as outdated.
    pub(crate) fn invalidate_units(&mut self) {
        self.generation += 1;
        self.tables.clear();
    }

    /// Returns the function called `name`, declared or defined.
    pub(crate) fn function(&self, name: &str) -> Option<LLVMValueRef> {
        let f = unsafe {
            LLVMGetNamedFunctionWithLength(self.module, name.as_ptr().cast(), name.len())
        };
        (!f.is_null()).then_some(f)
    }

    /// Returns every function of the module, in module order.
    pub(crate) fn functions(&self) -> Vec<LLVMValueRef> {
        functions_of(self.module)
    }

    /// Returns an error of `what` and the errors that LLVM reported meanwhile.
    pub(crate) fn error_with_messages(&self, code: Code, what: &str) -> Diagnostic {
        let said: Vec<String> = self
            .take_messages()
            .into_iter()
            .filter(|m| m.is_error)
            .map(|m| m.text)
            .collect();
        if said.is_empty() {
            return Diagnostic::error(code, what);
        }
        Diagnostic::error(code, format!("{what}: {}", said.join("; ")))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.tables.clear();
        self.originals = Originals::default();
        unsafe {
            if !self.module.is_null() {
                LLVMDisposeModule(self.module);
            }
            if !self.ctx.is_null() {
                LLVMContextDispose(self.ctx);
            }
        }
    }
}

/// The bytes of a module inside an input.
enum Source<'a> {
    Bitcode(&'a [u8]),
    Text(&'a [u8]),
}

/// Sections of objects that hold bitcode, in order of preference. Gradus' own section holds the front end's
/// output; clang's sections (`-ffat-lto-objects`, `-fembed-bitcode`) may be optimised already.
const BITCODE_SECTIONS: [&str; 4] = [".gradus.bc", ".llvm.lto", ".llvmbc", "__LLVM,__bitcode"];

fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b")
}

/// Finds the modules in a file's bytes.
fn modules_in<'a>(bytes: &'a [u8], name: &str) -> Result<Vec<Source<'a>>, Diagnostic> {
    use object::{Object, ObjectSection};
    if is_bitcode(bytes) {
        return Ok(vec![Source::Bitcode(bytes)]);
    }
    let Ok(file) = object::File::parse(bytes) else {
        return Ok(vec![Source::Text(bytes)]);
    };
    for wanted in BITCODE_SECTIONS {
        let wanted = wanted.rsplit(',').next().unwrap_or(wanted);
        let mut found = Vec::new();
        for section in file.sections().filter(|s| s.name() == Ok(wanted)) {
            let data = section.data().map_err(|e| {
                Diagnostic::error(
                    Code::UnreadableInput,
                    format!("{name}: cannot read section {wanted}: {e}"),
                )
            })?;
            found.extend(split_bitcode(data).into_iter().map(Source::Bitcode));
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(Diagnostic::error(
        Code::UnreadableInput,
        format!(
            "{name}: the object contains no LLVM bitcode; compile the source with `gradus cc`, or with clang and -fembed-bitcode=all or -flto"
        ),
    ))
}

/// Splits a section that a linker concatenated from several objects: each module starts with the magic. A
/// module's own bytes are word-aligned and carry the magic only at their start.
fn split_bitcode(data: &[u8]) -> Vec<&[u8]> {
    let starts: Vec<usize> = (0..data.len().saturating_sub(3))
        .step_by(4)
        .filter(|i| is_bitcode(&data[*i..]))
        .collect();
    let ends = starts
        .iter()
        .skip(1)
        .copied()
        .chain(std::iter::once(data.len()));
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(a, b)| &data[a..b])
        .collect()
}
