//! Which functions a program reaches from some of its own, and where that ends.
//!
//! A function that never comes back is where a way through the program ends: no derivative depends on
//! what it does, so its body, and all that only such bodies reach (how a panic formats its message),
//! stay outside. It would come back by unwinding to a handler that goes on, or by `longjmp`: so this
//! holds where it cannot unwind or nothing that is reached catches, and where nothing asks `setjmp`.
//! Programs with kernels are taken whole: what any of their functions asks of the GPU is rewritten.
use crate::ffi::*;
use crate::host::Host;
use crate::pipeline::attribute_kind;
use gradus_ir::known::{ExceptionFn, KERNEL, Known, is_text_object, lookup};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMOpcode, LLVMValueKind};
use std::collections::{HashMap, HashSet};

/// What some functions reach.
#[derive(Default)]
pub(crate) struct Reached {
    /// The functions with bodies; the roots first, then in the order found.
    pub functions: Vec<LLVMValueRef>,
    /// The functions, with and without bodies, that are mentioned and never come back.
    pub last: Vec<LLVMValueRef>,
    /// The functions with bodies that are mentioned only where such a call is next.
    pub aside: Vec<LLVMValueRef>,
}

/// Why functions that do not return are not the end.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct WaysOn {
    /// Something catches what is thrown, and goes on.
    handler: bool,
    /// Something calls a function that returns twice, or there are kernels.
    other: bool,
}

/// LLVM's numbers of the attributes asked for.
struct Kinds {
    no_return: u32,
    no_unwind: u32,
    returns_twice: u32,
}

impl Host {
    /// The defined functions that `roots` reach through calls or by taking addresses, also through the
    /// initialisers of globals; roots first, then in the order found. Unknown roots are left out, and
    /// so are functions that never come back.
    pub fn closure(&self, roots: &[&str]) -> Vec<String> {
        let reached = self.reached(roots);
        let names = reached.functions.iter().map(|f| unsafe { name_of(*f) });
        names.collect()
    }

    /// As [`Host::closure`], with the functions that never come back.
    pub(crate) fn reached(&self, roots: &[&str]) -> Reached {
        let roots: Vec<LLVMValueRef> = roots.iter().filter_map(|r| self.function(r)).collect();
        let kernel = |f: &LLVMValueRef| unsafe { name_of(*f) }.starts_with(KERNEL);
        let mut on = WaysOn {
            handler: false,
            other: self.functions().iter().any(kernel),
        };
        loop {
            let mut walk = Walk::new(self.taken_by_type(), on);
            roots.iter().for_each(|f| walk.enter(*f));
            let mut at = 0;
            while at < walk.reached.functions.len() {
                let f = walk.reached.functions[at];
                at += 1;
                walk.body(f);
            }
            // A way on makes more functions reach further, which may show another.
            if walk.found == on {
                return walk.finished();
            }
            on = walk.found;
        }
    }

    /// The functions whose address is taken, by type.
    fn taken_by_type(&self) -> HashMap<LLVMTypeRef, Vec<LLVMValueRef>> {
        let mut found: HashMap<LLVMTypeRef, Vec<LLVMValueRef>> = HashMap::new();
        for function in self.functions() {
            if is_taken(function) {
                let ty = unsafe { LLVMGlobalGetValueType(function) };
                found.entry(ty).or_default().push(function);
            }
        }
        found
    }
}

/// Finds functions through operands and constants; each constant is looked at once.
struct Walk {
    reached: Reached,
    /// What is taken for granted, and what is found.
    on: WaysOn,
    found: WaysOn,
    kinds: Kinds,
    /// The functions that are mentioned where control is lost.
    passed: HashSet<LLVMValueRef>,
    seen: HashSet<LLVMValueRef>,
    pending: Vec<LLVMValueRef>,
    /// The module's functions whose address is taken, by type: a call through a pointer may lead to
    /// any of its type.
    by_address: HashMap<LLVMTypeRef, Vec<LLVMValueRef>>,
}

impl Walk {
    fn new(by_address: HashMap<LLVMTypeRef, Vec<LLVMValueRef>>, on: WaysOn) -> Walk {
        Walk {
            reached: Reached::default(),
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

    fn finished(mut self) -> Reached {
        let seen = &self.seen;
        let aside = |f: &LLVMValueRef| !seen.contains(f) && unsafe { LLVMIsDeclaration(*f) } == 0;
        self.reached.aside = self.passed.into_iter().filter(aside).collect();
        self.reached
    }

    /// A function whose body is wanted, whether it comes back or not.
    fn enter(&mut self, function: LLVMValueRef) {
        if self.seen.insert(function) && unsafe { LLVMIsDeclaration(function) } == 0 {
            self.reached.functions.push(function);
        }
    }

    /// Whether control never comes back from a function. What else is known by name is left to its row.
    fn is_last(&self, function: LLVMValueRef) -> bool {
        let has = |kind| unsafe {
            !LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind).is_null()
        };
        has(self.kinds.no_return)
            && !self.on.other
            && (!self.on.handler || has(self.kinds.no_unwind))
            && matches!(
                lookup(&unsafe { name_of(function) }),
                None | Some(Known::Exception(
                    ExceptionFn::Panic | ExceptionFn::LibraryThrow
                ))
            )
    }

    /// Whether a block ends with a call of a function that never comes back.
    fn is_lost(&self, block: LLVMBasicBlockRef) -> bool {
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
                !LLVMIsAFunction(callee).is_null() && self.is_last(callee)
            }
        }
    }

    /// Whether an instruction lets control come back from what does not return.
    fn way_on(&mut self, inst: LLVMValueRef) {
        unsafe {
            match LLVMGetInstructionOpcode(inst) {
                LLVMOpcode::LLVMLandingPad => {
                    self.found.handler |=
                        LLVMGetNumClauses(inst) > 0 && goes_on(LLVMGetInstructionParent(inst));
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

    fn called_by_address(&mut self, inst: LLVMValueRef) {
        let ty = unsafe {
            let opcode = LLVMGetInstructionOpcode(inst);
            let is_call = matches!(opcode, LLVMOpcode::LLVMCall | LLVMOpcode::LLVMInvoke);
            if !is_call || !LLVMIsAConstant(LLVMGetCalledValue(inst)).is_null() {
                return;
            }
            LLVMGetCalledFunctionType(inst)
        };
        for function in self.by_address.remove(&ty).unwrap_or_default() {
            self.visit(function);
        }
    }

    fn body(&mut self, function: LLVMValueRef) {
        unsafe {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut inst = LLVMGetFirstInstruction(block);
                let lost = self.is_lost(block);
                while !inst.is_null() {
                    if !lost {
                        self.called_by_address(inst);
                        self.way_on(inst);
                    }
                    for i in 0..LLVMGetNumOperands(inst) as u32 {
                        let operand = LLVMGetOperand(inst, i);
                        let function = !LLVMIsAFunction(operand).is_null();
                        if lost && function && !self.is_last(operand) {
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
                        if self.is_last(c) {
                            self.reached.last.push(c);
                        } else if LLVMIsDeclaration(c) == 0 && !is_text_object(&name_of(c)) {
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

/// Whether a way from a block leads back out of its function by a return.
fn goes_on(block: LLVMBasicBlockRef) -> bool {
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

/// Whether a function is mentioned otherwise than as what is called.
fn is_taken(function: LLVMValueRef) -> bool {
    unsafe {
        let mut at = LLVMGetFirstUse(function);
        while !at.is_null() {
            let user = LLVMGetUser(at);
            let calls = (!LLVMIsACallInst(user).is_null() || !LLVMIsAInvokeInst(user).is_null())
                && LLVMGetCalledValue(user) == function
                && (0..LLVMGetNumArgOperands(user)).all(|i| LLVMGetOperand(user, i) != function);
            if !calls {
                return true;
            }
            at = LLVMGetNextUse(at);
        }
    }
    false
}
