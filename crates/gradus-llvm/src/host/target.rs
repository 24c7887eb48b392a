//! Code generation: optimisation levels, the target machine of a module, objects and assembly.
use crate::host::ffi::*;
use crate::host::module::Host;
use gradus_ir::{Code, Diagnostic};
use llvm_sys::core::*;
use llvm_sys::orc2::LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine;
use llvm_sys::orc2::lljit::*;
use llvm_sys::prelude::*;
use llvm_sys::target::*;
use llvm_sys::target_machine::*;
use std::ptr::null_mut;
use std::sync::Once;

unsafe extern "C" {
    fn gr_disable_fast_isel(machine: LLVMTargetMachineRef);
}

/// An optimisation level of LLVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptLevel {
    /// `-O0`
    O0,
    /// `-O1`
    O1,
    /// `-O2`
    O2,
    /// `-O3`
    O3,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// A relocatable object file.
    Object,
    /// Assembly text.
    Assembly,
}

/// An owned target machine.
pub(crate) struct TargetMachine {
    pub(crate) raw: LLVMTargetMachineRef,
}

impl Drop for TargetMachine {
    fn drop(&mut self) {
        unsafe { LLVMDisposeTargetMachine(self.raw) }
    }
}

/// Registers all targets of LLVM, once.
pub(crate) fn initialise_targets() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe {
        LLVM_InitializeAllTargetInfos();
        LLVM_InitializeAllTargets();
        LLVM_InitializeAllTargetMCs();
        LLVM_InitializeAllAsmPrinters();
        LLVM_InitializeAllAsmParsers();
    });
}

impl TargetMachine {
    /// Creates the target machine for the module's triple; CPU and features are function attributes.
    /// Relocation model and code model follow the module flags that clang writes.
    pub(crate) fn for_module(host: &Host, level: OptLevel) -> Result<TargetMachine, Diagnostic> {
        initialise_targets();
        let triple = match host.triple() {
            t if t.is_empty() => unsafe { take_message(LLVMGetDefaultTargetTriple()) },
            t => t,
        };
        let c_triple = c_string(&triple);
        let mut target = null_mut();
        let mut message = null_mut();
        if unsafe { LLVMGetTargetFromTriple(c_triple.as_ptr(), &mut target, &mut message) } != 0 {
            let text = unsafe { take_message(message) };
            return Err(Diagnostic::error(
                Code::ToolFailed,
                format!(
                    "LLVM cannot generate code for {triple}: {}",
                    text.trim_end()
                ),
            ));
        }
        let level = match level {
            OptLevel::O0 => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
            OptLevel::O1 => LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
            OptLevel::O2 => LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
            OptLevel::O3 => LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
        };
        let reloc = match host.module_flag("PIC Level") {
            Some(l) if l > 0 => LLVMRelocMode::LLVMRelocPIC,
            _ => LLVMRelocMode::LLVMRelocStatic,
        };
        let model = match host.module_flag("Code Model") {
            Some(0) => LLVMCodeModel::LLVMCodeModelTiny,
            Some(1) => LLVMCodeModel::LLVMCodeModelSmall,
            Some(2) => LLVMCodeModel::LLVMCodeModelKernel,
            Some(3) => LLVMCodeModel::LLVMCodeModelMedium,
            Some(4) => LLVMCodeModel::LLVMCodeModelLarge,
            _ => LLVMCodeModel::LLVMCodeModelDefault,
        };
        let none = NO_NAME;
        let raw = unsafe {
            LLVMCreateTargetMachine(target, c_triple.as_ptr(), none, none, level, reloc, model)
        };
        if raw.is_null() {
            return Err(Diagnostic::error(
                Code::ToolFailed,
                format!("LLVM has no target machine for {triple}"),
            ));
        }
        // LLVM's fast instruction selection takes an address from a floating-point register if a cast of a loaded `double`
        // makes the address.
        // SAFETY: the machine is live.
        unsafe { gr_disable_fast_isel(raw) };
        Ok(TargetMachine { raw })
    }

    /// Returns a builder of JITs that generate code with the machine.
    pub(crate) fn into_jit_builder(self) -> LLVMOrcLLJITBuilderRef {
        // LLVM takes ownership of the machine.
        let raw = std::mem::ManuallyDrop::new(self).raw;
        unsafe {
            let machines = LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(raw);
            let builder = LLVMOrcCreateLLJITBuilder();
            LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder, machines);
            builder
        }
    }
}

impl Host {
    /// Generates code for the module. `level` is the code generator's; run the late pipeline first.
    ///
    /// # Errors
    /// A triple without a code generator, or an error of the code generator.
    pub fn emit(&mut self, what: Emit, level: OptLevel) -> Result<Vec<u8>, Diagnostic> {
        let machine = TargetMachine::for_module(self, level)?;
        let kind = match what {
            Emit::Object => LLVMCodeGenFileType::LLVMObjectFile,
            Emit::Assembly => LLVMCodeGenFileType::LLVMAssemblyFile,
        };
        self.invalidate_units();
        let mut message = null_mut();
        let mut buffer = null_mut();
        let failed = unsafe {
            LLVMTargetMachineEmitToMemoryBuffer(
                machine.raw,
                self.module,
                kind,
                &mut message,
                &mut buffer,
            )
        };
        let text = unsafe { take_message(message) };
        if failed != 0 {
            return Err(self.error_with_messages(
                Code::ToolFailed,
                &format!("cannot emit machine code: {}", text.trim_end()),
            ));
        }
        let bytes = unsafe { take_buffer(buffer) };
        match self.take_messages().into_iter().find(|m| m.is_error) {
            Some(m) => Err(Diagnostic::error(
                Code::ToolFailed,
                format!("cannot emit machine code: {}", m.text),
            )),
            None => Ok(bytes),
        }
    }

    /// Returns an integer module flag.
    pub fn module_flag(&self, name: &str) -> Option<u64> {
        unsafe {
            let md: LLVMMetadataRef =
                LLVMGetModuleFlag(self.module, name.as_ptr().cast(), name.len());
            if md.is_null() {
                return None;
            }
            let value = LLVMMetadataAsValue(self.ctx, md);
            let constant = match LLVMIsAConstantInt(value) {
                c if !c.is_null() => c,
                _ if LLVMGetMDNodeNumOperands(value) == 1 => {
                    let mut operand = null_mut();
                    LLVMGetMDNodeOperands(value, &mut operand);
                    LLVMIsAConstantInt(operand)
                }
                _ => null_mut(),
            };
            (!constant.is_null()).then(|| LLVMConstIntGetZExtValue(constant))
        }
    }
}
