//! Specialisation of the C bodies of flang's run-time functions.
//!
//! `semantics/flang_rt.c` holds a body for each function, compiled to bitcode by the build script. A body
//! receives the leading arguments of a library call, and constants that [`descriptor_analysis`] derives from
//! the call's descriptors. A specialisation is a function of the host's module with the constants inlined:
//! LLVM inlines the body, unrolls the loops over dimensions and scalars, and promotes the local arrays.
//! Each remaining memory access has a scalar type, so that type analysis sees floats.
//!
//! [`descriptor_analysis`]: crate::prepare::fortran::descriptor_analysis

use crate::host::ffi::{NO_NAME, c_string, functions_of, name_of, take_error};
use crate::host::module::Host;
use crate::prepare::fortran::element_layout::Element;
use gradus_ir::externals::QUERY_SYMBOL;
use gradus_ir::{Code, Diagnostic};
use llvm_sys::LLVMLinkage::{LLVMExternalLinkage, LLVMInternalLinkage, LLVMPrivateLinkage};
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;
use llvm_sys::transforms::pass_builder::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex};
use std::ptr::null_mut;

/// The bodies, as bitcode.
const BODIES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/flang_rt.bc"));

/// Prefix of the names of specialisations.
pub(super) const RUNTIME_PREFIX: &str = "__gr_fortran_";

/// The passes of a specialisation. A loop over scalars inside a loop over components has a constant trip
/// count only after the outer loop is unrolled, so the unrolling runs twice. `instcombine` is absent: it
/// replaces copies of default values by integer accesses.
const PASSES: &str = "globaldce,always-inline,globaldce,\
    function(sroa,early-cse,simplifycfg,loop-simplify,lcssa,loop(loop-rotate),loop-unroll-full,\
    sroa,early-cse,simplifycfg,loop-simplify,lcssa,loop(loop-rotate),loop-unroll-full,\
    sroa,early-cse,simplifycfg),globaldce";

/// A constant argument of a body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Constant {
    Number(u64),
    /// A table of the scalars of an element.
    Element(Element),
    /// A table of components: the offset in bytes, and a specialised body for the component.
    Components(Vec<(u64, Specialisation)>),
}

/// A body with its constants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Specialisation {
    /// The name of the C function.
    pub(super) body: &'static str,
    /// The trailing arguments.
    pub(super) constants: Vec<Constant>,
}

impl Specialisation {
    /// Returns a specialisation for numbers.
    pub(super) fn new(body: &'static str, numbers: &[u64]) -> Specialisation {
        let constants = numbers.iter().copied().map(Constant::Number).collect();
        Specialisation { body, constants }
    }

    /// Returns the names of all bodies.
    #[cfg(test)]
    pub(super) fn bodies() -> Vec<String> {
        let host = Host::parse(BODIES, "bodies").unwrap_or_else(|_| unreachable!("embedded"));
        host.defined_functions()
    }

    /// Returns the name of the specialised function. A query without constants is a function that
    /// differentiation knows.
    fn name(&self) -> String {
        let mut name = match self.constants.is_empty() && self.body.starts_with("require_") {
            true => format!("{QUERY_SYMBOL}_{}", self.body),
            false => format!("{RUNTIME_PREFIX}{}", self.body),
        };
        for constant in &self.constants {
            name += &format!("_{}", constant.name());
        }
        name
    }
}

impl Constant {
    fn name(&self) -> String {
        match self {
            Constant::Number(number) => number.to_string(),
            Constant::Element(element) => element.name(),
            Constant::Components(components) => {
                let component = |(offset, body): &(u64, Specialisation)| {
                    let constants = body.constants.iter().map(|constant| constant.name());
                    format!("{offset}_{}", constants.collect::<Vec<_>>().join("_"))
                };
                components
                    .iter()
                    .map(component)
                    .collect::<Vec<_>>()
                    .join("_")
            }
        }
    }
}

impl Host {
    /// Returns the specialised function, defined in the module on first use.
    ///
    /// # Errors
    /// LLVM's message if a pass fails.
    pub(super) fn runtime_function(
        &mut self,
        written: &Specialisation,
    ) -> Result<LLVMValueRef, Diagnostic> {
        let name = written.name();
        if !self.defines(&name) {
            let module = self.specialise(written, &name)?;
            self.link_module(module, &name)?;
        }
        let Some(function) = self.function(&name) else {
            unreachable!("the specialised function is linked");
        };
        // The function becomes internal only after linking: the linker drops internal functions without
        // uses.
        unsafe { LLVMSetLinkage(function, LLVMInternalLinkage) };
        Ok(function)
    }

    /// Returns a module with the specialised function and the functions that the function calls.
    fn specialise(
        &mut self,
        written: &Specialisation,
        name: &str,
    ) -> Result<LLVMModuleRef, Diagnostic> {
        let module = self.read_bitcode(BODIES, name)?;
        unsafe {
            LLVMSetDataLayout(module, LLVMGetDataLayoutStr(self.module));
            LLVMSetTarget(module, LLVMGetTarget(self.module));
            for function in functions_of(module) {
                if LLVMIsDeclaration(function) == 0 {
                    LLVMSetLinkage(function, LLVMInternalLinkage);
                }
            }
            let function = self.add_specialised(module, written, name);
            LLVMSetLinkage(function, LLVMExternalLinkage);
            self.run_specialising_passes(module)?;
            for function in functions_of(module) {
                remove_target_attributes(function);
                let called = name_of(function);
                if LLVMIsDeclaration(function) == 0 && called != name {
                    let own = c_string(&format!("{name}_{called}"));
                    LLVMSetValueName2(function, own.as_ptr(), own.as_bytes().len());
                }
            }
        }
        Ok(module)
    }

    /// Returns a function that calls the body with the constants, added to the module on first use.
    unsafe fn add_specialised(
        &self,
        module: LLVMModuleRef,
        written: &Specialisation,
        name: &str,
    ) -> LLVMValueRef {
        unsafe {
            let added = LLVMGetNamedFunction(module, c_string(name).as_ptr());
            if !added.is_null() {
                return added;
            }
            let body = LLVMGetNamedFunction(module, c_string(written.body).as_ptr());
            assert!(!body.is_null(), "{} has a body", written.body);
            let ty = LLVMGlobalGetValueType(body);
            let mut params = vec![null_mut(); LLVMCountParamTypes(ty) as usize];
            LLVMGetParamTypes(ty, params.as_mut_ptr());
            let leading = params.len() - written.constants.len();
            let result = LLVMGetReturnType(ty);
            let own = LLVMFunctionType(result, params.as_mut_ptr(), leading as u32, 0);
            let function = LLVMAddFunction(module, c_string(name).as_ptr(), own);
            LLVMSetLinkage(function, LLVMInternalLinkage);
            if name.starts_with(QUERY_SYMBOL) {
                let kind = LLVMGetEnumAttributeKindForName(c"noinline".as_ptr(), 8);
                let attribute = LLVMCreateEnumAttribute(self.ctx, kind, 0);
                LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
            }
            let mut given: Vec<_> = (0..leading as u32)
                .map(|at| LLVMGetParam(function, at))
                .collect();
            for constant in &written.constants {
                given.push(self.constant_argument(module, constant));
            }
            let build = LLVMCreateBuilderInContext(self.ctx);
            let entry = LLVMAppendBasicBlockInContext(self.ctx, function, c"entry".as_ptr());
            LLVMPositionBuilderAtEnd(build, entry);
            let count = given.len() as u32;
            let made = LLVMBuildCall2(build, ty, body, given.as_mut_ptr(), count, NO_NAME);
            match LLVMGetTypeKind(result) {
                llvm_sys::LLVMTypeKind::LLVMVoidTypeKind => LLVMBuildRetVoid(build),
                _ => LLVMBuildRet(build, made),
            };
            LLVMDisposeBuilder(build);
            function
        }
    }

    unsafe fn constant_argument(&self, module: LLVMModuleRef, constant: &Constant) -> LLVMValueRef {
        unsafe {
            let long = LLVMInt64TypeInContext(self.ctx);
            let number = |value| LLVMConstInt(long, value, 0);
            match constant {
                Constant::Number(value) => number(*value),
                Constant::Element(element) => {
                    let scalars = element.scalars();
                    let mut words = vec![number(element.size()), number(scalars.len() as u64)];
                    for (offset, ty) in scalars {
                        words.extend([number(offset), number(ty as u64)]);
                    }
                    let count = words.len() as u64;
                    let words = LLVMConstArray2(long, words.as_mut_ptr(), count);
                    add_table(module, words)
                }
                Constant::Components(components) => {
                    let mut members = vec![number(components.len() as u64)];
                    for (offset, body) in components {
                        let function = self.add_specialised(module, body, &body.name());
                        members.extend([number(*offset), function]);
                    }
                    let count = members.len() as u32;
                    add_table(
                        module,
                        LLVMConstStructInContext(self.ctx, members.as_mut_ptr(), count, 0),
                    )
                }
            }
        }
    }

    unsafe fn run_specialising_passes(&self, module: LLVMModuleRef) -> Result<(), Diagnostic> {
        let text = c_string(PASSES);
        let failed = unsafe {
            let options = LLVMCreatePassBuilderOptions();
            let failed = take_error(LLVMRunPasses(module, text.as_ptr(), null_mut(), options));
            LLVMDisposePassBuilderOptions(options);
            failed
        };
        match failed {
            Some(text) => {
                let message = format!("LLVM's passes failed: {text}");
                Err(self.error_with_messages(Code::ToolFailed, &message))
            }
            None => Ok(()),
        }
    }

    /// Replaces each call by a call of the specialised function with the call's leading arguments.
    ///
    /// # Errors
    /// LLVM's message if a pass fails.
    pub(super) fn replace_calls(
        &mut self,
        written: &Specialisation,
        calls: &[LLVMValueRef],
    ) -> Result<(), Diagnostic> {
        let function = self.runtime_function(written)?;
        for &call in calls {
            unsafe {
                let count = LLVMCountParams(function);
                let given: Vec<_> = (0..count).map(|i| LLVMGetOperand(call, i)).collect();
                let made = self.call_before(call, function, &given);
                LLVMReplaceAllUsesWith(call, made);
                LLVMInstructionEraseFromParent(call);
            }
        }
        Ok(())
    }

    /// Emits a call in front of an instruction, with the instruction's debug location.
    ///
    /// # Safety
    /// All are live values of the module, and the arguments match the function's type.
    pub(super) unsafe fn call_before(
        &self,
        before: LLVMValueRef,
        function: LLVMValueRef,
        given: &[LLVMValueRef],
    ) -> LLVMValueRef {
        let mut given = given.to_vec();
        let count = given.len() as u32;
        unsafe {
            let build = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(build, before);
            let ty = LLVMGlobalGetValueType(function);
            let made = LLVMBuildCall2(build, ty, function, given.as_mut_ptr(), count, NO_NAME);
            LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(before));
            LLVMDisposeBuilder(build);
            made
        }
    }
}

/// Adds a constant.
unsafe fn add_table(module: LLVMModuleRef, contents: LLVMValueRef) -> LLVMValueRef {
    unsafe {
        let table = LLVMAddGlobal(module, LLVMTypeOf(contents), c"table".as_ptr());
        LLVMSetInitializer(table, contents);
        LLVMSetGlobalConstant(table, 1);
        LLVMSetLinkage(table, LLVMPrivateLinkage);
        table
    }
}

/// Removes the string attributes of a function: the processor that the build script compiled for would
/// forbid inlining into the program's functions.
pub(crate) unsafe fn remove_target_attributes(function: LLVMValueRef) {
    const FUNCTION: LLVMAttributeIndex = LLVMAttributeFunctionIndex;
    unsafe {
        let count = LLVMGetAttributeCountAtIndex(function, FUNCTION) as usize;
        let mut attributes = vec![null_mut(); count];
        LLVMGetAttributesAtIndex(function, FUNCTION, attributes.as_mut_ptr());
        for attribute in attributes {
            if LLVMIsStringAttribute(attribute) != 0 {
                let mut length = 0;
                let key = LLVMGetStringAttributeKind(attribute, &mut length);
                LLVMRemoveStringAttributeAtIndex(function, FUNCTION, key, length);
            }
        }
    }
}
