//! Escaping globals: the functions and initialisers that store the address of a global, and the functions
//! that store pointers into a global. Code outside the unit may run before a differentiated function, and a
//! pointer global may then point to a named global.
//!
//! Addresses are followed through address computations, calls of defined functions, returns, and stack
//! variables. A callee without a body captures an address, unless the function table or an attribute of LLVM
//! excludes the capture. A use of an unknown kind counts as a store by unknown code.

use super::Importer;
use crate::host::attributes::attribute_kind;
use crate::host::ffi::name_of;
use gradus_ir::externals::effects;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{AddressEscapes, GlobalId, Symbol};
use llvm_sys::LLVMAttributeIndex;
use llvm_sys::LLVMLinkage::{LLVMInternalLinkage, LLVMPrivateLinkage};
use llvm_sys::LLVMOpcode::{self, *};
use llvm_sys::LLVMTypeKind::{LLVMDoubleTypeKind, LLVMFloatTypeKind, LLVMX86_FP80TypeKind};
use llvm_sys::LLVMValueKind::*;
use llvm_sys::core::*;
use llvm_sys::prelude::{LLVMAttributeRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::target::LLVMStoreSizeOfType;
use std::collections::HashSet;

/// The most uses of a variable's address; beyond the limit, the variable counts as escaping to unknown
/// code.
const USES_MAX: usize = 1 << 14;

/// Worklist of values derived from an address.
pub(super) struct Search {
    work: Vec<LLVMValueRef>,
    seen: HashSet<LLVMValueRef>,
    /// A variable that may hold the address.
    owner: Option<LLVMValueRef>,
    found: AddressEscapes,
}

impl Search {
    fn new(starts: &[LLVMValueRef], owner: Option<LLVMValueRef>) -> Search {
        Search {
            work: starts.to_vec(),
            seen: starts.iter().copied().collect(),
            owner,
            found: AddressEscapes::default(),
        }
    }

    /// Returns the values derived from the address, if only the owner and stack variables may hold the address after a
    /// call.
    pub(super) fn values_unless_escaped(&self) -> Option<&HashSet<LLVMValueRef>> {
        self.found.stored_by.is_empty().then_some(&self.seen)
    }

    fn follow(&mut self, value: LLVMValueRef) {
        if self.seen.insert(value) {
            self.work.push(value);
        }
    }
}

impl Importer<'_> {
    /// Records the escapes of all imported mutable globals in the unit.
    pub(super) fn record_escaping_globals(&mut self) {
        let variables: Vec<(LLVMValueRef, GlobalId)> = self
            .global_ids
            .iter()
            .filter(|(_, id)| !self.unit.globals[**id].constant)
            .map(|(g, id)| (*g, *id))
            .collect();
        for (variable, id) in variables {
            let found = self.escapes_of(variable);
            if !found.stored_by.is_empty() || !found.pointers_stored_by.is_empty() {
                self.unit.set_address_escapes(id, found);
            }
        }
    }

    fn escapes_of(&self, variable: LLVMValueRef) -> AddressEscapes {
        self.search(&[variable], None).found
    }

    /// Follows the addresses `starts` through the module. The variable `owner` may hold them.
    pub(super) fn search(&self, starts: &[LLVMValueRef], owner: Option<LLVMValueRef>) -> Search {
        let mut search = Search::new(starts, owner);
        while let Some(value) = search.work.pop() {
            if search.seen.len() > USES_MAX {
                search.found.stored_by.insert(None);
                search.found.pointers_stored_by.insert(None);
                break;
            }
            let mut at = unsafe { LLVMGetFirstUse(value) };
            while !at.is_null() {
                let user = unsafe { LLVMGetUser(at) };
                self.visit_use(&mut search, value, user);
                at = unsafe { LLVMGetNextUse(at) };
            }
        }
        search
    }

    /// Classifies a use of an address.
    fn visit_use(&self, search: &mut Search, value: LLVMValueRef, user: LLVMValueRef) {
        unsafe {
            match LLVMGetValueKind(user) {
                LLVMGlobalVariableValueKind => {
                    let holder = self.global_ids.get(&user).map(|id| Symbol::Global(*id));
                    search.found.stored_by.insert(holder);
                    return;
                }
                LLVMInstructionValueKind => {}
                LLVMConstantExprValueKind if LLVMGetConstOpcode(user) == LLVMPtrToInt => {
                    search.found.stored_by.insert(None);
                    return;
                }
                _ => return search.follow(user),
            }
            match LLVMGetInstructionOpcode(user) {
                LLVMStore if LLVMGetOperand(user, 0) == value => {
                    self.visit_stored_address(search, user);
                }
                LLVMStore => {
                    if self.may_hold_address(LLVMTypeOf(LLVMGetOperand(user, 0))) {
                        search
                            .found
                            .pointers_stored_by
                            .insert(self.function_of(user));
                    }
                }
                LLVMAtomicRMW | LLVMAtomicCmpXchg => {
                    search
                        .found
                        .pointers_stored_by
                        .insert(self.function_of(user));
                    if LLVMGetOperand(user, 0) != value {
                        search.found.stored_by.insert(self.function_of(user));
                    }
                }
                LLVMPtrToInt => _ = search.found.stored_by.insert(self.function_of(user)),
                LLVMGetElementPtr | LLVMBitCast | LLVMAddrSpaceCast | LLVMPHI | LLVMSelect
                | LLVMFreeze | LLVMInsertValue | LLVMExtractValue | LLVMInsertElement
                | LLVMExtractElement | LLVMShuffleVector => search.follow(user),
                LLVMCall | LLVMInvoke => self.visit_argument(search, value, user),
                LLVMRet => self.visit_returned_address(search, user),
                LLVMLoad | LLVMICmp => {}
                _ => _ = search.found.stored_by.insert(None),
            }
        }
    }

    /// Returns whether a type may hold an address: at least pointer size, and no floating-point type.
    fn may_hold_address(&self, ty: LLVMTypeRef) -> bool {
        let numbers = [LLVMFloatTypeKind, LLVMDoubleTypeKind, LLVMX86_FP80TypeKind];
        let bytes = unsafe { LLVMStoreSizeOfType(self.data_layout, ty) };
        bytes >= self.unit.layout.pointer_bytes
            && !numbers.contains(&unsafe { LLVMGetTypeKind(ty) })
    }

    /// Records the store of an address; an address in a stack variable is followed through the loads of the
    /// variable.
    fn visit_stored_address(&self, search: &mut Search, store: LLVMValueRef) {
        unsafe {
            let place = LLVMGetOperand(store, 1);
            if search.owner == Some(place) {
                // Not an error: the owner may hold the address.
                return;
            }
            if LLVMIsAAllocaInst(place).is_null() {
                search.found.stored_by.insert(self.function_of(store));
                return;
            }
            let mut at = LLVMGetFirstUse(place);
            while !at.is_null() {
                let user = LLVMGetUser(at);
                if !LLVMIsALoadInst(user).is_null() {
                    search.follow(user);
                } else if !only_writes_variable(user, place) {
                    search.found.stored_by.insert(self.function_of(store));
                }
                at = LLVMGetNextUse(at);
            }
        }
    }

    /// Follows an address argument into the callee, if the callee is defined.
    fn visit_argument(&self, search: &mut Search, value: LLVMValueRef, call: LLVMValueRef) {
        unsafe {
            let callee = LLVMGetCalledValue(call);
            let given = (0..LLVMGetNumArgOperands(call))
                .filter(|number| LLVMGetOperand(call, *number) == value);
            let given: Vec<u32> = given.collect();
            let in_bundle = (LLVMGetNumArgOperands(call)..LLVMGetNumOperands(call).unsigned_abs())
                .any(|number| {
                    LLVMGetOperand(call, number) == value && LLVMGetOperand(call, number) != callee
                });
            let is_function = LLVMGetValueKind(callee) == LLVMFunctionValueKind;
            if !is_function || LLVMIsDeclaration(callee) != 0 {
                if may_write_argument(call, callee, value) {
                    search
                        .found
                        .pointers_stored_by
                        .insert(self.function_of(call));
                }
                for number in given {
                    match argument_fate(call, callee, number) {
                        ArgumentFate::Captured => _ = search.found.stored_by.insert(None),
                        ArgumentFate::Returned => search.follow(call),
                        ArgumentFate::Unused => {}
                    }
                }
                return;
            }
            let params = LLVMCountParams(callee);
            for number in given {
                match number < params {
                    true => search.follow(LLVMGetParam(callee, number)),
                    // The callee reads the argument by `va_arg`.
                    false => _ = search.found.stored_by.insert(self.function_of(call)),
                }
            }
            if in_bundle {
                search.found.stored_by.insert(self.function_of(call));
            }
        }
    }

    /// Follows a returned address to all calls of the function.
    fn visit_returned_address(&self, search: &mut Search, end: LLVMValueRef) {
        unsafe {
            let function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(end));
            if search.owner.is_some() && !is_local(function) {
                search.found.stored_by.insert(None);
            }
            let mut at = LLVMGetFirstUse(function);
            while !at.is_null() {
                let user = LLVMGetUser(at);
                let is_call = LLVMGetValueKind(user) == LLVMInstructionValueKind
                    && matches!(
                        LLVMGetInstructionOpcode(user),
                        LLVMCall | LLVMOpcode::LLVMInvoke
                    )
                    && LLVMGetCalledValue(user) == function;
                if is_call {
                    search.follow(user);
                } else if search.owner.is_some() {
                    // A pointer to the function, or another name, may lead unknown code to the address.
                    search.found.stored_by.insert(None);
                }
                at = LLVMGetNextUse(at);
            }
        }
    }

    /// Returns the function of an instruction; `None` if the function was not imported.
    fn function_of(&self, instruction: LLVMValueRef) -> Option<Symbol> {
        let block = unsafe { LLVMGetInstructionParent(instruction) };
        let function = unsafe { LLVMGetBasicBlockParent(block) };
        self.func_ids.get(&function).map(|id| Symbol::Func(*id))
    }
}

/// The use of an address by a callee without a body.
enum ArgumentFate {
    /// The callee may store the address.
    Captured,
    /// The result may be the address.
    Returned,
    /// The address does not outlive the call.
    Unused,
}

/// Classifies argument `number` of a call of a function without a body.
unsafe fn argument_fate(call: LLVMValueRef, callee: LLVMValueRef, number: u32) -> ArgumentFate {
    unsafe {
        if LLVMGetValueKind(callee) != LLVMFunctionValueKind {
            return ArgumentFate::Captured;
        }
        let name = name_of(callee);
        // A derivative's arguments are the parameters of the differentiated function. A marker of lifetime
        // or debug information has no effect.
        if name.contains("__enzyme_") || name.starts_with("gradus_") || is_marker(&name) {
            return ArgumentFate::Unused;
        }
        if name.starts_with("llvm.threadlocal.address") {
            return ArgumentFate::Returned;
        }
        if let Some(effects) = effects(&name) {
            let captured = effects.captures.checked_shr(number).unwrap_or(1) & 1 != 0;
            return match effects.returns_argument.map(u32::from) == Some(number) {
                _ if captured || effects.has_callbacks => ArgumentFate::Captured,
                true => ArgumentFate::Returned,
                false => ArgumentFate::Unused,
            };
        }
        let kind = attribute_kind("captures");
        let place = LLVMAttributeIndex::from(number) + 1;
        let stated = [
            LLVMGetCallSiteEnumAttribute(call, place, kind),
            LLVMGetEnumAttributeAtIndex(callee, place, kind),
        ];
        // The value 0 is `captures(none)`.
        let excludes = |attribute: LLVMAttributeRef| {
            !attribute.is_null() && LLVMGetEnumAttributeValue(attribute) == 0
        };
        let unnoticed = is_planted(Mutant::UnknownCalleesCaptureNothing);
        match unnoticed || stated.into_iter().any(excludes) {
            true => ArgumentFate::Unused,
            false => ArgumentFate::Captured,
        }
    }
}

/// Returns whether only this module names a function or variable.
pub(super) unsafe fn is_local(symbol: LLVMValueRef) -> bool {
    let linkage = unsafe { LLVMGetLinkage(symbol) };
    matches!(linkage, LLVMInternalLinkage | LLVMPrivateLinkage)
}

/// Returns whether an intrinsic has no effect on memory or addresses.
fn is_marker(name: &str) -> bool {
    let marks = ["llvm.lifetime", "llvm.dbg", "llvm.invariant", "llvm.assume"];
    marks.iter().any(|mark| name.starts_with(mark))
}

/// Returns whether an unknown callee may write to an address argument. Lifetime and debug markers, the
/// source of a copy, and requests for a derivative do not write.
unsafe fn may_write_argument(
    call: LLVMValueRef,
    callee: LLVMValueRef,
    value: LLVMValueRef,
) -> bool {
    unsafe {
        let name = name_of(callee);
        let copies = name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove");
        let reads = copies && LLVMGetOperand(call, 0) != value;
        let asks = name.contains("__enzyme_");
        !(reads || asks || is_marker(&name))
    }
}

/// Returns whether a use of a stack variable only stores to the variable or marks its lifetime.
unsafe fn only_writes_variable(user: LLVMValueRef, variable: LLVMValueRef) -> bool {
    unsafe {
        let writes = !LLVMIsAStoreInst(user).is_null() && LLVMGetOperand(user, 1) == variable;
        let marks = || {
            !LLVMIsACallInst(user).is_null()
                && name_of(LLVMGetCalledValue(user)).starts_with("llvm.lifetime")
        };
        writes || marks()
    }
}
