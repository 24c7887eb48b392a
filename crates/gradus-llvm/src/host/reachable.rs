//! Call graph of a program: the functions reachable from a set of roots.
//!
//! A call to a no-return function ends its path: no derivative depends on the callee. The body of such a
//! function and everything that only such bodies reach (for example the formatting of a panic message) are
//! left out of the unit. Control can leave a no-return function by unwinding to a handler that resumes
//! normal execution, or by `longjmp`. The rule therefore applies only if the function cannot unwind or no
//! reachable handler catches, and if no reachable code calls `setjmp`. Programs with kernels are walked in
//! full, because GPU queries in all functions are rewritten.
use crate::host::attributes::attribute_kind;
use crate::host::calls::is_call;
use crate::host::ffi::users_of;
use crate::host::ffi::*;
use crate::host::module::Host;
use gradus_ir::externals::{ExceptionFn, ExternalFn, KERNEL_PREFIX, is_cpp_text_function, lookup};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMOpcode, LLVMValueKind};
use std::collections::{HashMap, HashSet};

/// The functions reachable from a set of roots.
#[derive(Default)]
pub(crate) struct Reachable {
    /// The functions with bodies; roots first, then in discovery order.
    pub functions: Vec<LLVMValueRef>,
    /// The mentioned no-return functions, with and without bodies.
    pub no_return: Vec<LLVMValueRef>,
    /// The functions with bodies that are mentioned only in blocks that end in a no-return call.
    pub only_before_no_return: Vec<LLVMValueRef>,
    /// The possible targets of indirect calls: the address-taken functions of their types.
    pub indirect_targets: Vec<LLVMValueRef>,
}

/// Reasons why control may continue after a call to a function marked `noreturn`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct NoReturnExceptions {
    /// A handler catches an exception and reaches a return.
    handler: bool,
    /// Some function calls a `returns_twice` function, or the module has kernels.
    other: bool,
}

/// LLVM's kind numbers of the required attributes.
struct Kinds {
    no_return: u32,
    no_unwind: u32,
    returns_twice: u32,
}

impl Host {
    /// Returns the defined functions that `roots` reach through calls, address-taking or initialisers of
    /// globals; roots first, then in discovery order. Unknown roots and no-return functions are left out.
    pub fn closure(&self, roots: &[&str]) -> Vec<String> {
        let reached = self.reached(roots);
        let names = reached.functions.iter().map(|f| unsafe { name_of(*f) });
        names.collect()
    }

    /// Like [`Host::closure`], with the no-return functions.
    pub(crate) fn reached(&self, roots: &[&str]) -> Reachable {
        let roots: Vec<LLVMValueRef> = roots.iter().filter_map(|r| self.function(r)).collect();
        let kernel = |f: &LLVMValueRef| unsafe { name_of(*f) }.starts_with(KERNEL_PREFIX);
        let mut on = NoReturnExceptions {
            handler: false,
            other: self.functions().iter().any(kernel),
        };
        loop {
            let mut walk = Walk::new(self.address_taken_by_type(), on);
            roots.iter().for_each(|f| walk.add_root(*f));
            let mut at = 0;
            while at < walk.reached.functions.len() {
                let f = walk.reached.functions[at];
                at += 1;
                walk.body(f);
            }
            // A new exception makes more functions reachable, and these may reveal another exception:
            // iterate to a fixpoint.
            if walk.found == on {
                return walk.finish();
            }
            on = walk.found;
        }
    }

    /// Returns the address-taken functions, grouped by function type.
    fn address_taken_by_type(&self) -> HashMap<LLVMTypeRef, Vec<LLVMValueRef>> {
        let mut found: HashMap<LLVMTypeRef, Vec<LLVMValueRef>> = HashMap::new();
        for function in self.functions() {
            if is_address_taken(function) {
                let ty = unsafe { LLVMGlobalGetValueType(function) };
                found.entry(ty).or_default().push(function);
            }
        }
        found
    }
}

/// The reachability walk over operands and constants; each constant is visited once.
struct Walk {
    reached: Reachable,
    /// The assumed exceptions of the present iteration, and the exceptions found.
    on: NoReturnExceptions,
    found: NoReturnExceptions,
    kinds: Kinds,
    /// The functions mentioned in blocks that end in a no-return call.
    passed: HashSet<LLVMValueRef>,
    seen: HashSet<LLVMValueRef>,
    pending: Vec<LLVMValueRef>,
    /// The module's address-taken functions by type: an indirect call may reach any function of its type.
    by_address: HashMap<LLVMTypeRef, Vec<LLVMValueRef>>,
}

impl Walk {
    fn new(by_address: HashMap<LLVMTypeRef, Vec<LLVMValueRef>>, on: NoReturnExceptions) -> Walk {
        Walk {
            reached: Reachable::default(),
            on,
            found: on,
            kinds: Kinds {
                no_return: attribute_kind("noreturn"),
                no_unwind: attribute_kind("nounwind"),
                returns_twice: attribute_kind("returns_twice"),
            },
            passed: HashSet::new(),
            seen: HashSet::new(),
            pending: Vec::new(),
            by_address,
        }
    }

    fn finish(mut self) -> Reachable {
        let seen = &self.seen;
        let aside = |f: &LLVMValueRef| !seen.contains(f) && unsafe { LLVMIsDeclaration(*f) } == 0;
        self.reached.only_before_no_return = self.passed.into_iter().filter(aside).collect();
        self.reached
    }

    /// Adds a root, even if the root does not return.
    fn add_root(&mut self, function: LLVMValueRef) {
        if self.seen.insert(function) && unsafe { LLVMIsDeclaration(function) } == 0 {
            self.reached.functions.push(function);
        }
    }

    /// Returns whether control never returns from a function. A function with an entry in the table of
    /// known functions is handled by that entry, unless the entry is a panic or a library throw.
    fn is_no_return(&self, function: LLVMValueRef) -> bool {
        let has = |kind| unsafe {
            !LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind).is_null()
        };
        has(self.kinds.no_return)
            && !self.on.other
            && (!self.on.handler || has(self.kinds.no_unwind))
            && matches!(
                lookup(&unsafe { name_of(function) }),
                None | Some(ExternalFn::Exception(
                    ExceptionFn::Panic | ExceptionFn::LibraryThrow
                ))
            )
    }

    /// Returns whether a block ends with a call to a no-return function.
    fn ends_in_no_return(&self, block: LLVMBasicBlockRef) -> bool {
        unsafe {
            let end = LLVMGetBasicBlockTerminator(block);
            let call = match LLVMGetInstructionOpcode(end) {
                LLVMOpcode::LLVMUnreachable => LLVMGetPreviousInstruction(end),
                _ => end,
            };
            let is_call = !call.is_null()
                && matches!(
                    LLVMGetInstructionOpcode(call),
                    LLVMOpcode::LLVMCall | LLVMOpcode::LLVMInvoke
                );
            is_call && {
                let callee = LLVMGetCalledValue(call);
                !LLVMIsAFunction(callee).is_null() && self.is_no_return(callee)
            }
        }
    }

    /// Records whether an instruction lets control continue after a no-return call.
    fn record_no_return_exception(&mut self, inst: LLVMValueRef) {
        unsafe {
            match LLVMGetInstructionOpcode(inst) {
                LLVMOpcode::LLVMLandingPad => {
                    self.found.handler |= LLVMGetNumClauses(inst) > 0
                        && reaches_return(LLVMGetInstructionParent(inst));
                }
                LLVMOpcode::LLVMCatchPad => self.found.handler = true,
                LLVMOpcode::LLVMCall | LLVMOpcode::LLVMInvoke => {
                    let callee = LLVMGetCalledValue(inst);
                    let function = !LLVMIsAFunction(callee).is_null();
                    let kind = self.kinds.returns_twice;
                    self.found.other |= function
                        && !LLVMGetEnumAttributeAtIndex(callee, LLVMAttributeFunctionIndex, kind)
                            .is_null();
                }
                _ => {}
            }
        }
    }

    fn visit_indirect_callees(&mut self, inst: LLVMValueRef) {
        let ty = unsafe {
            let opcode = LLVMGetInstructionOpcode(inst);
            let is_call = matches!(opcode, LLVMOpcode::LLVMCall | LLVMOpcode::LLVMInvoke);
            if !is_call || !LLVMIsAConstant(LLVMGetCalledValue(inst)).is_null() {
                return;
            }
            LLVMGetCalledFunctionType(inst)
        };
        for function in self.by_address.remove(&ty).unwrap_or_default() {
            self.reached.indirect_targets.push(function);
            self.visit(function);
        }
    }

    fn body(&mut self, function: LLVMValueRef) {
        unsafe {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut inst = LLVMGetFirstInstruction(block);
                let lost = self.ends_in_no_return(block);
                while !inst.is_null() {
                    if !lost {
                        self.visit_indirect_callees(inst);
                        self.record_no_return_exception(inst);
                    }
                    for i in 0..LLVMGetNumOperands(inst) as u32 {
                        let operand = LLVMGetOperand(inst, i);
                        let function = !LLVMIsAFunction(operand).is_null();
                        if lost && function && !self.is_no_return(operand) {
                            self.passed.insert(operand);
                        } else if !LLVMIsAConstant(operand).is_null() && (!lost || function) {
                            self.visit(operand);
                        }
                    }
                    inst = LLVMGetNextInstruction(inst);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        }
    }

    fn visit(&mut self, constant: LLVMValueRef) {
        self.pending.push(constant);
        while let Some(c) = self.pending.pop() {
            if !self.seen.insert(c) {
                continue;
            }
            unsafe {
                match LLVMGetValueKind(c) {
                    LLVMValueKind::LLVMFunctionValueKind => {
                        if self.is_no_return(c) {
                            self.reached.no_return.push(c);
                        } else if LLVMIsDeclaration(c) == 0 && !is_cpp_text_function(&name_of(c)) {
                            self.reached.functions.push(c);
                        }
                        continue;
                    }
                    LLVMValueKind::LLVMGlobalVariableValueKind => {
                        let init = LLVMGetInitializer(c);
                        if !init.is_null() {
                            self.pending.push(init);
                        }
                        continue;
                    }
                    _ => {}
                }
                for i in 0..LLVMGetNumOperands(c).max(0) as u32 {
                    let operand = LLVMGetOperand(c, i);
                    if !operand.is_null() && !LLVMIsAConstant(operand).is_null() {
                        self.pending.push(operand);
                    }
                }
            }
        }
    }
}

/// Returns whether a path from a block reaches a return of its function.
fn reaches_return(block: LLVMBasicBlockRef) -> bool {
    let (mut seen, mut work) = (HashSet::from([block]), vec![block]);
    while let Some(block) = work.pop() {
        let end = unsafe { LLVMGetBasicBlockTerminator(block) };
        if unsafe { LLVMGetInstructionOpcode(end) } == LLVMOpcode::LLVMRet {
            return true;
        }
        for i in 0..unsafe { LLVMGetNumSuccessors(end) } {
            let next = unsafe { LLVMGetSuccessor(end, i) };
            if seen.insert(next) {
                work.push(next);
            }
        }
    }
    false
}

/// Returns whether a function is used other than as a callee.
fn is_address_taken(function: LLVMValueRef) -> bool {
    unsafe {
        for user in users_of(function) {
            let calls = is_call(user)
                && LLVMGetCalledValue(user) == function
                && (0..LLVMGetNumArgOperands(user)).all(|i| LLVMGetOperand(user, i) != function);
            if !calls {
                return true;
            }
        }
    }
    false
}
