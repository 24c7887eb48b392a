//! Reduces a module to derivatives that are linked next to the user's own object.
//!
//! The requested functions and the reachable definitions that no other object provides stay defined:
//! `static` functions and constants, which may be duplicated, and `inline` (linkonce) definitions, which
//! any object may emit. Definitions of the user's object become declarations. Static *state* must not be
//! duplicated. A reachable mutable `static` variable and the address of a `static` function (two copies
//! compare unequal) are refused.
use crate::host::ffi::*;
use crate::host::module::Host;
use gradus_ir::{Code, Diagnostic};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMValueKind};
use std::collections::HashSet;

unsafe extern "C" {
    fn gr_drop_definition(global: LLVMValueRef);
    fn gr_erase_global(global: LLVMValueRef);
}

/// Relation of a definition to other objects, by linkage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The user's object defines the symbol.
    UserObject,
    /// Local linkage: only the present module can define the symbol.
    ThisModule,
    /// Linkonce or weak ODR linkage: any object that requires the symbol defines it.
    AnyObject,
}

fn owner(value: LLVMValueRef) -> Owner {
    use LLVMLinkage::*;
    match unsafe { LLVMGetLinkage(value) } {
        LLVMInternalLinkage | LLVMPrivateLinkage => Owner::ThisModule,
        LLVMLinkOnceAnyLinkage | LLVMLinkOnceODRLinkage | LLVMWeakODRLinkage => Owner::AnyObject,
        _ => Owner::UserObject,
    }
}

/// Worklist of the reachability walk, with the definitions to preserve and the refusals.
struct Reach<'a> {
    ours: &'a dyn Fn(&str) -> bool,
    kept: HashSet<LLVMValueRef>,
    seen: HashSet<LLVMValueRef>,
    pending: Vec<LLVMValueRef>,
    findings: Vec<Diagnostic>,
}

impl Host {
    /// Reduces the module to the functions `names` and their reachable definitions. `ours` decides by name
    /// whether Gradus generated a function, so that no other object has a copy.
    ///
    /// # Errors
    /// Reachable static state ([`Code::StaticState`]), each symbol once.
    pub fn keep_beside(
        &mut self,
        names: &[String],
        ours: &dyn Fn(&str) -> bool,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut reach = Reach {
            ours,
            kept: HashSet::new(),
            seen: HashSet::new(),
            pending: Vec::new(),
            findings: Vec::new(),
        };
        for f in names.iter().filter_map(|n| self.function(n)) {
            reach.keep(f);
        }
        reach.run();
        if !reach.findings.is_empty() {
            reach.findings.sort_by(|a, b| a.message.cmp(&b.message));
            return Err(reach.findings);
        }
        self.drop_all_but(&reach.kept);
        Ok(())
    }

    fn drop_all_but(&mut self, kept: &HashSet<LLVMValueRef>) {
        self.invalidate_units();
        let special = |v: &LLVMValueRef| unsafe { name_of(*v) }.starts_with("llvm.");
        let (tables, variables): (Vec<_>, Vec<_>) = self.variables().into_iter().partition(special);
        for table in tables {
            unsafe { gr_erase_global(table) };
        }
        unsafe {
            let mut alias = LLVMGetFirstGlobalAlias(self.module);
            while !alias.is_null() {
                let next = LLVMGetNextGlobalAlias(alias);
                gr_drop_definition(alias);
                alias = next;
            }
        }
        let others = variables.into_iter().chain(self.functions());
        let doomed: Vec<LLVMValueRef> = others
            .filter(|v| !kept.contains(v) && unsafe { LLVMIsDeclaration(*v) } == 0)
            .collect();
        for &value in &doomed {
            unsafe { gr_drop_definition(value) };
        }
        for value in self.variables().into_iter().chain(self.functions()) {
            unsafe {
                if LLVMIsDeclaration(value) != 0 && LLVMGetFirstUse(value).is_null() {
                    gr_erase_global(value);
                }
            }
        }
    }
}

impl Reach<'_> {
    fn keep(&mut self, value: LLVMValueRef) {
        if self.kept.insert(value) {
            self.pending.push(value);
        }
    }

    fn run(&mut self) {
        while let Some(value) = self.pending.pop() {
            unsafe {
                if LLVMGetValueKind(value) == LLVMValueKind::LLVMFunctionValueKind {
                    self.body(value);
                } else {
                    let init = LLVMGetInitializer(value);
                    if !init.is_null() {
                        self.visit_constant(init, false);
                    }
                }
            }
        }
    }

    unsafe fn body(&mut self, function: LLVMValueRef) {
        unsafe {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut inst = LLVMGetFirstInstruction(block);
                while !inst.is_null() {
                    let called = match LLVMIsACallInst(inst).is_null()
                        && LLVMIsAInvokeInst(inst).is_null()
                    {
                        true => std::ptr::null_mut(),
                        false => LLVMGetCalledValue(inst),
                    };
                    let count = LLVMGetNumOperands(inst).max(0) as u32;
                    for i in 0..count {
                        let operand = LLVMGetOperand(inst, i);
                        if !LLVMIsAConstant(operand).is_null() {
                            self.visit_constant(operand, operand == called && i + 1 == count);
                        }
                    }
                    inst = LLVMGetNextInstruction(inst);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        }
    }

    /// Visits a constant and its operands. `called` is true for the callee operand of a call.
    unsafe fn visit_constant(&mut self, constant: LLVMValueRef, called: bool) {
        let mut pending = vec![(constant, called)];
        while let Some((c, called)) = pending.pop() {
            unsafe {
                match LLVMGetValueKind(c) {
                    LLVMValueKind::LLVMFunctionValueKind => self.function(c, called),
                    LLVMValueKind::LLVMGlobalVariableValueKind => self.variable(c),
                    _ if !self.seen.insert(c) => {}
                    _ => {
                        for i in 0..LLVMGetNumOperands(c).max(0) as u32 {
                            let operand = LLVMGetOperand(c, i);
                            if !operand.is_null() && !LLVMIsAConstant(operand).is_null() {
                                pending.push((operand, false));
                            }
                        }
                    }
                }
            }
        }
    }

    unsafe fn function(&mut self, f: LLVMValueRef, called: bool) {
        let name = unsafe { name_of(f) };
        if unsafe { LLVMIsDeclaration(f) } != 0 {
            return;
        }
        match owner(f) {
            Owner::ThisModule if called || (self.ours)(&name) => self.keep(f),
            Owner::ThisModule => {
                self.refuse(f, format!("the address of the static function `{name}`"))
            }
            Owner::AnyObject => self.keep(f),
            Owner::UserObject if (self.ours)(&name) => self.keep(f),
            Owner::UserObject => {}
        }
    }

    unsafe fn variable(&mut self, v: LLVMValueRef) {
        let name = unsafe { name_of(v) };
        if unsafe { LLVMIsDeclaration(v) } != 0 {
            return;
        }
        match owner(v) {
            Owner::ThisModule if unsafe { LLVMIsGlobalConstant(v) } != 0 || (self.ours)(&name) => {
                self.keep(v);
            }
            Owner::ThisModule => self.refuse(v, format!("the static variable `{name}`")),
            Owner::AnyObject => self.keep(v),
            Owner::UserObject => {}
        }
    }

    fn refuse(&mut self, value: LLVMValueRef, what: String) {
        if self.seen.insert(value) {
            let message = format!("`--beside` would duplicate {what}");
            let help =
                "omit `--beside`, and link the object in place of the source file's own object";
            self.findings
                .push(Diagnostic::error(Code::StaticState, message).help(help));
        }
    }
}
