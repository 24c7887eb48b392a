//! What the host would register with a driver: kernels by their stubs, and variables by their shadows.
//! The calls are read and the constructor that makes them gets new contents.

use super::launches::Stubbed;
use super::{calls_in, is_shared_by_units};
use crate::ffi::*;
use crate::host::Host;
use gradus_ir::known::{KERNEL, VARIABLE};
use gradus_ir::{Code, Diagnostic};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// The calls of a module's registration.
#[derive(Debug, Default)]
pub(super) struct Registered {
    /// Stub, name and the address of the name.
    kernels: Vec<(LLVMValueRef, String, LLVMValueRef)>,
    /// Shadow and name, the address of the name, and the size.
    variables: Vec<(LLVMValueRef, String, [LLVMValueRef; 2])>,
    /// Texture and surface references, the same.
    textures: Vec<(LLVMValueRef, String)>,
}

/// What the host asks for a variable by its name with.
const BY_NAME: &str = "__gr_symbol";
/// What clang calls the function with the calls.
const CALLS: &str = "__cuda_register_globals";
/// What it calls the constructor.
const CONSTRUCTOR: &str = "__cuda_module_ctor";
/// What it makes beside them, that means nothing here.
const REST: [&str; 2] = [CALLS, "__cuda_module_dtor"];

impl Host {
    /// Reads what the host registers.
    pub(super) fn registered_on_device(&self) -> Result<Registered, Diagnostic> {
        let mut registered = Registered::default();
        let Some(f) = self.function(CALLS) else {
            return Ok(registered);
        };
        for call in unsafe { calls_in(f) } {
            let operand = |i: u32| unsafe { LLVMGetOperand(call, i) };
            let callee = unsafe { name_of(LLVMGetCalledValue(call)) };
            let name = unsafe { text(operand(2)) };
            match callee.as_str() {
                "__cudaRegisterFunction" => registered.kernels.push((operand(1), name, operand(2))),
                "__cudaRegisterVar" | "__cudaRegisterManagedVar" => {
                    // The managed form has the address of the host's pointer in between.
                    let size = operand(u32::from(callee.len() == "__cudaRegisterVar".len()) + 4);
                    let row = (operand(1), name, [operand(2), size]);
                    registered.variables.push(row);
                }
                "__cudaRegisterTexture" | "__cudaRegisterSurface" => {
                    registered.textures.push((operand(1), name));
                }
                _ => {
                    let message = format!("the program registers `{name}` by `{callee}`");
                    return Err(Diagnostic::error(Code::KernelRefused, message)
                        .help("variables, kernels and textures can be registered"));
                }
            }
        }
        Ok(registered)
    }

    /// A variable of the device takes the place of the host's shadow of it. A texture is what the host has:
    /// to the device it is an address.
    pub(super) fn unify_variables(&mut self, registered: &Registered, separate: bool) {
        for (shadow, name, _) in &registered.variables {
            if let Some(variable) = self.device_variable(name) {
                unsafe { LLVMReplaceAllUsesWith(*shadow, variable) };
                if separate && is_shared_by_units(name) {
                    unsafe { self.name_for_others(*shadow, variable) };
                }
            }
        }
        for variable in self.variables() {
            // Another unit defines it, and the host's half of this one may name it, too.
            let name = unsafe { name_of(variable) };
            let declared = unsafe { LLVMIsDeclaration(variable) } != 0;
            if let Some(name) = name.strip_prefix(VARIABLE).filter(|_| declared) {
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

    /// Gives a variable the name, too, by which the host's half of another unit means it, where that has no device
    /// code that uses it.
    ///
    /// # Safety
    /// Both are live variables of this module.
    unsafe fn name_for_others(&self, shadow: LLVMValueRef, variable: LLVMValueRef) {
        unsafe {
            let name = c_string(&name_of(shadow));
            LLVMSetValueName2(shadow, NO_NAME, 0);
            let ty = LLVMGlobalGetValueType(variable);
            LLVMAddAlias2(self.module, ty, 0, variable, name.as_ptr());
        }
    }

    /// The device's variable of that name.
    fn device_variable(&self, name: &str) -> Option<LLVMValueRef> {
        let own = c_string(&format!("{VARIABLE}{name}"));
        let variable = unsafe { LLVMGetNamedGlobal(self.module, own.as_ptr()) };
        (!variable.is_null()).then_some(variable)
    }

    /// Makes the entries of all kernels, and a constructor that hands them to the run time, with what they were compiled
    /// for.
    pub(super) fn register_here(
        &mut self,
        registered: &Registered,
        architecture: u64,
    ) -> Result<(), Diagnostic> {
        let Some(constructor) = self.function(CONSTRUCTOR) else {
            // Not an error: the module registers no kernels.
            return Ok(());
        };
        let symbols = self.named_symbols(registered);
        let (mut rows, mut known) = (Vec::new(), Vec::new());
        for (stub, name, text) in &registered.kernels {
            if let Some(kernel) = self.function(&format!("{KERNEL}{name}")) {
                let entry = self.add_entry(kernel, name);
                let threads = unsafe { self.most_threads(kernel) };
                let shared = self.shared_bytes(kernel);
                rows.push((*stub, entry, *text, threads, shared));
                known.push(Stubbed {
                    stub: *stub,
                    kernel,
                    name: name.clone(),
                });
            }
        }
        self.connect_launches(&known);
        unsafe {
            clear(constructor);
            for name in REST {
                if let Some(f) = self.function(name) {
                    clear(f);
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
            let register = self.declared(c"__gr_kernel_register", ty);
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
        self.touch();
        Ok(())
    }

    /// The variables that a host may ask for by their names, where it does: address, name, size.
    fn named_symbols(&self, registered: &Registered) -> Vec<[LLVMValueRef; 3]> {
        if self.function(BY_NAME).is_none() {
            return Vec::new();
        }
        let rows = registered.variables.iter().map(|(shadow, name, rest)| {
            let variable = self.device_variable(name).unwrap_or(*shadow);
            [variable, rest[0], rest[1]]
        });
        rows.collect()
    }

    /// Tells the run time the names of variables.
    unsafe fn register_symbols(&self, b: LLVMBuilderRef, rows: Vec<[LLVMValueRef; 3]>) {
        unsafe {
            let ptr = LLVMPointerTypeInContext(self.ctx, 0);
            let mut types = [ptr, ptr, LLVMInt64TypeInContext(self.ctx)];
            let void = LLVMVoidTypeInContext(self.ctx);
            let ty = LLVMFunctionType(void, types.as_mut_ptr(), types.len() as u32, 0);
            for mut row in rows {
                let register = self.declared(c"__gr_symbol_register", ty);
                LLVMBuildCall2(b, ty, register, row.as_mut_ptr(), row.len() as u32, NO_NAME);
            }
        }
    }

    /// The function of that name and type, declared where it is new.
    pub(super) fn declared(&self, name: &std::ffi::CStr, ty: LLVMTypeRef) -> LLVMValueRef {
        unsafe {
            let known = LLVMGetNamedFunction(self.module, name.as_ptr());
            match known.is_null() {
                true => LLVMAddFunction(self.module, name.as_ptr(), ty),
                false => known,
            }
        }
    }
}

/// The text that a constant points to.
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

/// Takes a function's code away.
unsafe fn clear(f: LLVMValueRef) {
    unsafe {
        let mut last = LLVMGetLastBasicBlock(f);
        while !last.is_null() {
            // What is used by later code is gone with it.
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
