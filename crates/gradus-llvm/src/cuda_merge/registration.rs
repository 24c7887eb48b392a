//! Registration of kernels and variables with the CUDA driver: reads the host's registration calls and
//! replaces the contents of the registering constructor.

use super::is_shared_by_units;
use super::launches::KernelStub;
use crate::host::calls::calls_in;
use crate::host::ffi::*;
use crate::host::module::Host;
use gradus_ir::externals::{KERNEL_PREFIX, VARIABLE_PREFIX};
use gradus_ir::{Code, Diagnostic};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// The registration calls of a module.
#[derive(Debug, Default)]
pub(super) struct Registered {
    /// Stub, name and the address of the name.
    kernels: Vec<(LLVMValueRef, String, LLVMValueRef)>,
    /// Shadow and name, the address of the name, and the size.
    variables: Vec<(LLVMValueRef, String, [LLVMValueRef; 2])>,
    /// Handle and name of texture and surface references.
    textures: Vec<(LLVMValueRef, String)>,
}

/// The runtime function that looks up a variable by name.
const BY_NAME: &str = "__gr_symbol";
/// clang's name of the function with the registration calls.
const REGISTER_GLOBALS: &str = "__cuda_register_globals";
/// clang's name of the registering constructor.
const CONSTRUCTOR: &str = "__cuda_module_ctor";
/// Further functions of clang's registration code, which are removed.
const REMOVED_FUNCTIONS: [&str; 2] = [REGISTER_GLOBALS, "__cuda_module_dtor"];

impl Host {
    /// Reads the host's registration calls.
    pub(super) fn registered_on_device(&self) -> Result<Registered, Diagnostic> {
        let mut registered = Registered::default();
        let Some(f) = self.function(REGISTER_GLOBALS) else {
            return Ok(registered);
        };
        for call in unsafe { calls_in(f) } {
            let operand = |i: u32| unsafe { LLVMGetOperand(call, i) };
            let callee = unsafe { name_of(LLVMGetCalledValue(call)) };
            let name = unsafe { text(operand(2)) };
            match callee.as_str() {
                "__cudaRegisterFunction" => registered.kernels.push((operand(1), name, operand(2))),
                "__cudaRegisterVar" | "__cudaRegisterManagedVar" => {
                    // The managed form has an additional operand, the address of the host's pointer.
                    let size = operand(u32::from(callee.len() == "__cudaRegisterVar".len()) + 4);
                    let row = (operand(1), name, [operand(2), size]);
                    registered.variables.push(row);
                }
                "__cudaRegisterTexture" | "__cudaRegisterSurface" => {
                    registered.textures.push((operand(1), name));
                }
                _ => {
                    let message =
                        format!("unsupported CUDA registration: `{callee}` registers `{name}`");
                    return Err(Diagnostic::error(Code::KernelRefused, message).help(
                        "Gradus supports registered kernels, variables, textures and surfaces",
                    ));
                }
            }
        }
        Ok(registered)
    }

    /// Replaces host shadows by the device's variables. For a texture, the host's object replaces the
    /// device's handle: to the device a texture is an address.
    pub(super) fn unify_variables(&mut self, registered: &Registered, separate: bool) {
        for (shadow, name, _) in &registered.variables {
            if let Some(variable) = self.device_variable(name) {
                unsafe { LLVMReplaceAllUsesWith(*shadow, variable) };
                if separate && is_shared_by_units(name) {
                    unsafe { self.add_host_alias(*shadow, variable) };
                }
            }
        }
        for variable in self.variables() {
            // Another unit defines the variable, and the host half of the present unit may refer to it.
            let name = unsafe { name_of(variable) };
            let declared = unsafe { LLVMIsDeclaration(variable) } != 0;
            if let Some(name) = name.strip_prefix(VARIABLE_PREFIX).filter(|_| declared) {
                let shadow = c_string(name);
                let shadow = unsafe { LLVMGetNamedGlobal(self.module, shadow.as_ptr()) };
                if !shadow.is_null() {
                    unsafe { LLVMReplaceAllUsesWith(shadow, variable) };
                }
            }
        }
        for (texture, name) in &registered.textures {
            if let Some(handle) = self.device_variable(name) {
                unsafe { LLVMReplaceAllUsesWith(handle, *texture) };
            }
        }
    }

    /// Adds an alias under the shadow's name, by which host code of other units without matching device
    /// code refers to the variable.
    ///
    /// # Safety
    /// Both are live variables of the module.
    unsafe fn add_host_alias(&self, shadow: LLVMValueRef, variable: LLVMValueRef) {
        unsafe {
            let name = c_string(&name_of(shadow));
            LLVMSetValueName2(shadow, NO_NAME, 0);
            let ty = LLVMGlobalGetValueType(variable);
            LLVMAddAlias2(self.module, ty, 0, variable, name.as_ptr());
        }
    }

    /// Returns the device's variable with the given name.
    fn device_variable(&self, name: &str) -> Option<LLVMValueRef> {
        let own = c_string(&format!("{VARIABLE_PREFIX}{name}"));
        let variable = unsafe { LLVMGetNamedGlobal(self.module, own.as_ptr()) };
        (!variable.is_null()).then_some(variable)
    }

    /// Emits the entries of all kernels, and a constructor that registers them with the runtime, with their
    /// target architecture.
    pub(super) fn emit_registration(
        &mut self,
        registered: &Registered,
        architecture: u64,
    ) -> Result<(), Diagnostic> {
        let Some(constructor) = self.function(CONSTRUCTOR) else {
            // Not an error: the module registers no kernels.
            return Ok(());
        };
        let symbols = self.symbols_by_name(registered);
        let (mut rows, mut known) = (Vec::new(), Vec::new());
        for (stub, name, text) in &registered.kernels {
            if let Some(kernel) = self.function(&format!("{KERNEL_PREFIX}{name}")) {
                let entry = self.add_entry(kernel, name);
                let threads = unsafe { self.block_threads_max(kernel) };
                let shared = self.shared_bytes(kernel);
                rows.push((*stub, entry, *text, threads, shared));
                known.push(KernelStub {
                    stub: *stub,
                    kernel,
                    name: name.clone(),
                });
            }
        }
        self.connect_launches(&known);
        unsafe {
            delete_body(constructor);
            for name in REMOVED_FUNCTIONS {
                if let Some(f) = self.function(name) {
                    delete_body(f);
                    LLVMDeleteFunction(f);
                }
            }
            let ptr = LLVMPointerTypeInContext(self.ctx, 0);
            let (int, long) = (
                LLVMInt32TypeInContext(self.ctx),
                LLVMInt64TypeInContext(self.ctx),
            );
            let mut types = [ptr, ptr, ptr, int, long, int];
            let void = LLVMVoidTypeInContext(self.ctx);
            let ty = LLVMFunctionType(void, types.as_mut_ptr(), types.len() as u32, 0);
            let register = self.get_or_declare(c"__gr_kernel_register", ty);
            let b = LLVMCreateBuilderInContext(self.ctx);
            let block = LLVMAppendBasicBlockInContext(self.ctx, constructor, NO_NAME);
            LLVMPositionBuilderAtEnd(b, block);
            for (stub, entry, text, threads, shared) in rows {
                let threads = LLVMConstInt(int, threads, 0);
                let shared = LLVMConstInt(long, shared, 0);
                let architecture = LLVMConstInt(int, architecture, 0);
                let mut args = [stub, entry, text, threads, shared, architecture];
                LLVMBuildCall2(
                    b,
                    ty,
                    register,
                    args.as_mut_ptr(),
                    args.len() as u32,
                    NO_NAME,
                );
            }
            self.register_symbols(b, symbols);
            LLVMBuildRetVoid(b);
            LLVMDisposeBuilder(b);
        }
        self.invalidate_units();
        Ok(())
    }

    /// Returns address, name and size of the registered variables, if the host looks up variables by name.
    fn symbols_by_name(&self, registered: &Registered) -> Vec<[LLVMValueRef; 3]> {
        if self.function(BY_NAME).is_none() {
            return Vec::new();
        }
        let rows = registered.variables.iter().map(|(shadow, name, rest)| {
            let variable = self.device_variable(name).unwrap_or(*shadow);
            [variable, rest[0], rest[1]]
        });
        rows.collect()
    }

    /// Emits calls that register the names of variables with the runtime.
    unsafe fn register_symbols(&self, b: LLVMBuilderRef, rows: Vec<[LLVMValueRef; 3]>) {
        unsafe {
            let ptr = LLVMPointerTypeInContext(self.ctx, 0);
            let mut types = [ptr, ptr, LLVMInt64TypeInContext(self.ctx)];
            let void = LLVMVoidTypeInContext(self.ctx);
            let ty = LLVMFunctionType(void, types.as_mut_ptr(), types.len() as u32, 0);
            for mut row in rows {
                let register = self.get_or_declare(c"__gr_symbol_register", ty);
                LLVMBuildCall2(b, ty, register, row.as_mut_ptr(), row.len() as u32, NO_NAME);
            }
        }
    }

    /// Returns the function with the given name and type; declares it on first use.
    pub(super) fn get_or_declare(&self, name: &std::ffi::CStr, ty: LLVMTypeRef) -> LLVMValueRef {
        unsafe {
            let known = LLVMGetNamedFunction(self.module, name.as_ptr());
            match known.is_null() {
                true => LLVMAddFunction(self.module, name.as_ptr(), ty),
                false => known,
            }
        }
    }
}

/// Returns the string constant that a pointer refers to.
unsafe fn text(pointer: LLVMValueRef) -> String {
    unsafe {
        if LLVMIsAGlobalVariable(pointer).is_null() {
            return String::new();
        }
        let contents = LLVMGetInitializer(pointer);
        if contents.is_null() || LLVMIsConstantString(contents) == 0 {
            return String::new();
        }
        let mut len = 0;
        let start = LLVMGetAsString(contents, &mut len);
        text_of(start, len).trim_end_matches('\0').to_string()
    }
}

/// Deletes a function's code.
unsafe fn delete_body(f: LLVMValueRef) {
    unsafe {
        let mut last = LLVMGetLastBasicBlock(f);
        while !last.is_null() {
            // Backwards order: the users of an instruction are already erased.
            let mut inst = LLVMGetLastInstruction(last);
            while !inst.is_null() {
                LLVMInstructionEraseFromParent(inst);
                inst = LLVMGetLastInstruction(last);
            }
            LLVMDeleteBasicBlock(last);
            last = LLVMGetLastBasicBlock(f);
        }
    }
}
