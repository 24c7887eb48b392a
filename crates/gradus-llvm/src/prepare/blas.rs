//! Bodies and rules of BLAS routines in a program.
//!
//! [`Host::link_blas`] links the bodies of the routines that a program declares, and the rules of the core
//! routines that the bodies call (`semantics/blas.c`). Routines and core routines stay declarations in the host:
//! the pipeline gives them the bodies during differentiation only. [`Host::define_blas_cores`] defines the core
//! routines by calls of the program's library (`semantics/blas_library.c`).

use crate::host::ffi::{c_string, functions_of, name_of, take_error};
use crate::host::module::Host;
use crate::prepare::fortran::remove_target_attributes;
use gradus_ir::externals::{BLAS_BODY_PREFIX, BLAS_PREFIX, BlasInterface, blas_interface};
use gradus_ir::{Code, Diagnostic};
use llvm_sys::LLVMLinkage::{LLVMExternalLinkage, LLVMInternalLinkage};
use llvm_sys::LLVMTypeKind::{LLVMIntegerTypeKind, LLVMVoidTypeKind};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::transforms::pass_builder::*;
use std::collections::BTreeSet;
use std::ptr::null_mut;

/// The bodies and rules, as bitcode.
const BODIES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/blas.bc"));
/// The definitions of core routines, as bitcode.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/blas_library.bc"));

/// Suffixes of the rules of a core routine.
const RULES: [&str; 3] = ["_tangent", "_augmented", "_reverse"];

/// A declared function with a body for differentiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlasBody {
    /// The declared function.
    pub function: String,
    /// The function with the body. A declaration may have further parameters, the lengths of characters.
    pub body: String,
}

/// The rules of a core routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlasRules {
    /// The core routine.
    pub core: String,
    /// Updates the tangents.
    pub tangent: String,
    /// Runs the primal, and returns the tape.
    pub augmented: String,
    /// Updates the adjoints.
    pub reverse: String,
}

/// The BLAS routines of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlasRoutines {
    /// The declared routines and the core routines.
    pub bodies: Vec<BlasBody>,
    /// The core routines.
    pub rules: Vec<BlasRules>,
    has_fortran_names: bool,
}

impl Host {
    /// Links bodies and rules for the BLAS routines that the module declares with the expected types, except those
    /// for which `is_skipped` holds.
    ///
    /// # Errors
    /// LLVM's message if the functions cannot be linked.
    pub fn link_blas(
        &mut self,
        is_skipped: &dyn Fn(&str) -> bool,
    ) -> Result<BlasRoutines, Diagnostic> {
        self.rename_static(BLAS_PREFIX);
        let declared = self.functions().into_iter().filter_map(|function| unsafe {
            let name = name_of(function);
            let is_used = !LLVMGetFirstUse(function).is_null();
            let is_wanted = LLVMIsDeclaration(function) != 0 && is_used && !is_skipped(&name);
            let interface = blas_interface(&name).filter(|_| is_wanted)?;
            Some((name, function, interface))
        });
        let declared: Vec<(String, LLVMValueRef, BlasInterface)> = declared.collect();
        let mut found = BlasRoutines::default();
        if declared.is_empty() {
            return Ok(found);
        }
        let module = self.read_bitcode(BODIES, "blas")?;
        let mut wanted: Vec<String> = Vec::new();
        for (name, function, interface) in declared {
            let body = format!("{BLAS_BODY_PREFIX}{name}");
            let written = unsafe { LLVMGetNamedFunction(module, c_string(&body).as_ptr()) };
            if written.is_null() || !unsafe { is_type_of(function, written) } {
                continue;
            }
            found.has_fortran_names |= interface == BlasInterface::Fortran;
            wanted.push(body.clone());
            let function = name;
            found.bodies.push(BlasBody { function, body });
        }
        if found.bodies.is_empty() {
            unsafe { LLVMDisposeModule(module) };
            return Ok(found);
        }
        unsafe { find_cores(module, &mut wanted, &mut found) };
        unsafe { self.keep_only(module, &wanted) }?;
        self.link_module(module, "blas")?;
        self.make_internal(&wanted);
        Ok(found)
    }

    /// Defines the core routines by calls of the library, and deletes unused functions of [`Host::link_blas`].
    ///
    /// # Errors
    /// LLVM's message if the functions cannot be linked.
    pub fn define_blas_cores(&mut self, routines: &BlasRoutines) -> Result<(), Diagnostic> {
        if routines.bodies.is_empty() {
            return Ok(());
        }
        self.delete_unused_internal(BLAS_PREFIX);
        let used = routines.rules.iter().map(|rules| rules.core.clone());
        let used: Vec<String> = used
            .filter(|core| {
                let function = self.function(core);
                function.is_some_and(|f| !unsafe { LLVMGetFirstUse(f) }.is_null())
            })
            .collect();
        let via = match routines.has_fortran_names {
            true => "fortran_",
            false => "cblas_",
        };
        if !used.is_empty() {
            let module = self.read_bitcode(LIBRARY, "blas library")?;
            for core in &used {
                let stem = core.strip_prefix(BLAS_PREFIX).unwrap_or_default();
                let definition = c_string(&format!("{BLAS_PREFIX}{via}{stem}"));
                unsafe {
                    let function = LLVMGetNamedFunction(module, definition.as_ptr());
                    assert!(!function.is_null(), "{core} has a definition");
                    let name = c_string(core);
                    LLVMSetValueName2(function, name.as_ptr(), name.as_bytes().len());
                }
            }
            unsafe { self.keep_only(module, &used) }?;
            self.link_module(module, "blas library")?;
            self.make_internal(&used);
        }
        self.drop_unused(&|name| name.starts_with(BLAS_PREFIX));
        Ok(())
    }

    /// Makes functions internal. The linker drops unused internal functions; hence after linking.
    fn make_internal(&mut self, names: &[String]) {
        for name in names {
            if let Some(function) = self.function(name) {
                unsafe { LLVMSetLinkage(function, LLVMInternalLinkage) };
            }
        }
    }

    /// Prepares a module for linking: only functions of `wanted` and their callees remain.
    unsafe fn keep_only(&self, module: LLVMModuleRef, wanted: &[String]) -> Result<(), Diagnostic> {
        unsafe {
            LLVMSetDataLayout(module, LLVMGetDataLayoutStr(self.module));
            LLVMSetTarget(module, LLVMGetTarget(self.module));
            for function in functions_of(module) {
                remove_target_attributes(function);
                if LLVMIsDeclaration(function) == 0 {
                    let is_wanted = wanted.contains(&name_of(function));
                    let linkage = match is_wanted {
                        true => LLVMExternalLinkage,
                        false => LLVMInternalLinkage,
                    };
                    LLVMSetLinkage(function, linkage);
                }
            }
            let options = LLVMCreatePassBuilderOptions();
            let run = LLVMRunPasses(module, c"globaldce".as_ptr(), null_mut(), options);
            let failed = take_error(run);
            LLVMDisposePassBuilderOptions(options);
            match failed {
                Some(text) => {
                    let message = format!("LLVM's passes failed: {text}");
                    Err(self.error_with_messages(Code::ToolFailed, &message))
                }
                None => Ok(()),
            }
        }
    }

    /// Deletes internal functions with a prefix and without uses, until none is left.
    fn delete_unused_internal(&mut self, prefix: &str) {
        loop {
            let all = self.functions().into_iter();
            let unused: Vec<LLVMValueRef> = all
                .filter(|&function| unsafe {
                    name_of(function).starts_with(prefix)
                        && LLVMGetLinkage(function) == LLVMInternalLinkage
                        && LLVMGetFirstUse(function).is_null()
                })
                .collect();
            if unused.is_empty() {
                break;
            }
            for function in unused {
                unsafe { LLVMDeleteFunction(function) };
            }
        }
        self.invalidate_units();
    }
}

/// Adds the core routines that wanted functions call, with bodies and rules, until none is missing.
unsafe fn find_cores(module: LLVMModuleRef, wanted: &mut Vec<String>, found: &mut BlasRoutines) {
    let (mut next, mut cores) = (0, BTreeSet::new());
    while let Some(name) = wanted.get(next).cloned() {
        next += 1;
        for core in unsafe { called_cores(module, &name) } {
            if !cores.insert(core.clone()) {
                continue;
            }
            let body = format!("{BLAS_BODY_PREFIX}{core}");
            let [tangent, augmented, reverse] = RULES.map(|rule| format!("{core}{rule}"));
            wanted.extend([
                body.clone(),
                tangent.clone(),
                augmented.clone(),
                reverse.clone(),
            ]);
            found.bodies.push(BlasBody {
                function: core.clone(),
                body,
            });
            found.rules.push(BlasRules {
                core,
                tangent,
                augmented,
                reverse,
            });
        }
    }
}

/// Returns the core routines that a function calls: the declared functions with our prefix.
unsafe fn called_cores(module: LLVMModuleRef, name: &str) -> Vec<String> {
    let mut cores = Vec::new();
    unsafe {
        let function = LLVMGetNamedFunction(module, c_string(name).as_ptr());
        assert!(!function.is_null(), "{name} is defined");
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut instruction = LLVMGetFirstInstruction(block);
            while !instruction.is_null() {
                for at in 0..LLVMGetNumOperands(instruction) as u32 {
                    let operand = LLVMGetOperand(instruction, at);
                    if !LLVMIsAFunction(operand).is_null()
                        && LLVMIsDeclaration(operand) != 0
                        && name_of(operand).starts_with(BLAS_PREFIX)
                    {
                        cores.push(name_of(operand));
                    }
                }
                instruction = LLVMGetNextInstruction(instruction);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    cores
}

/// Returns true if a declaration has the type of a body. The declaration may have further integer parameters, the
/// lengths of characters. It may return an integer where the body returns none (C headers made from Fortran), or
/// an integer of another width.
unsafe fn is_type_of(declared: LLVMValueRef, written: LLVMValueRef) -> bool {
    unsafe {
        let (own, expected) = (
            LLVMGlobalGetValueType(declared),
            LLVMGlobalGetValueType(written),
        );
        let params = |ty| {
            let mut params = vec![null_mut(); LLVMCountParamTypes(ty) as usize];
            LLVMGetParamTypes(ty, params.as_mut_ptr());
            params
        };
        let is_int = |ty: &LLVMTypeRef| LLVMGetTypeKind(*ty) == LLVMIntegerTypeKind;
        let (given, taken) = (params(own), params(expected));
        let lengths = given.strip_prefix(taken.as_slice());
        let [result, expected] = [own, expected].map(|ty| LLVMGetReturnType(ty));
        let fits = result == expected
            || is_int(&result)
                && (is_int(&expected) || LLVMGetTypeKind(expected) == LLVMVoidTypeKind);
        let has_lengths = !name_of(declared).starts_with("cblas_");
        LLVMIsFunctionVarArg(own) == 0
            && fits
            && lengths.is_some_and(|rest| rest.is_empty() || has_lengths && rest.iter().all(is_int))
    }
}

#[cfg(test)]
mod tests {
    use super::{BODIES, LIBRARY};
    use crate::host::module::Host;
    use gradus_ir::externals::{BLAS_BODY_PREFIX, BLAS_PREFIX, blas_interface};

    fn functions(bitcode: &[u8]) -> Vec<String> {
        let host = Host::parse(bitcode, "blas").unwrap_or_else(|_| unreachable!("embedded"));
        host.defined_functions()
    }

    #[test]
    fn every_body_belongs_to_a_routine() {
        let mut bodies = functions(BODIES);
        bodies.retain(|name| !name.starts_with(&format!("{BLAS_BODY_PREFIX}{BLAS_PREFIX}")));
        let routines: Vec<&str> = bodies
            .iter()
            .filter_map(|name| name.strip_prefix(BLAS_BODY_PREFIX))
            .collect();
        for name in &routines {
            assert!(blas_interface(name).is_some(), "{name}");
        }
        // 31 routines of BLAS in two interfaces, 10 of LAPACK in one; two precisions.
        assert_eq!(routines.len(), 144);
    }

    #[test]
    fn every_core_routine_has_rules_and_definitions() {
        let (bodies, library) = (functions(BODIES), functions(LIBRARY));
        let start = format!("{BLAS_BODY_PREFIX}{BLAS_PREFIX}");
        let cores: Vec<&str> = bodies
            .iter()
            .filter_map(|name| name.strip_prefix(&start))
            .collect();
        assert_eq!(cores.len(), 24);
        for core in cores {
            for rule in super::RULES {
                assert!(
                    bodies.contains(&format!("{BLAS_PREFIX}{core}{rule}")),
                    "{core}"
                );
            }
            let vias: &[&str] = match core.ends_with("trf") {
                true => &["fortran_"],
                false => &["fortran_", "cblas_"],
            };
            for via in vias {
                assert!(
                    library.contains(&format!("{BLAS_PREFIX}{via}{core}")),
                    "{core}"
                );
            }
        }
    }
}
