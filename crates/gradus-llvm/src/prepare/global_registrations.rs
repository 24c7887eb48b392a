//! Registrations through global variables: initialisers as scalar cells, functions that must survive the
//! early pipeline unchanged, and strings among a call's arguments.

use crate::host::attributes::attribute_kind;
use crate::host::calls::is_call;
use crate::host::ffi::users_of;
use crate::host::ffi::*;
use crate::host::module::Host;
use crate::host::symbol_preservation::Exposed;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{
    LLVMAttributeFunctionIndex, LLVMAttributeIndex, LLVMOpcode, LLVMTypeKind, LLVMValueKind,
};

const FUNCTION: LLVMAttributeIndex = LLVMAttributeFunctionIndex;

/// A scalar of a variable's initialiser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitCell {
    /// The address of a function.
    Function(String),
    /// The address of a string.
    Text(String),
    /// The address of another variable.
    Variable(String),
    /// An integer, also one that is cast to an address.
    Number(i64),
    /// Anything else.
    Other,
}

/// The changes of [`Host::hold`].
#[must_use]
pub struct PinnedCalls {
    exposed: Exposed,
    /// The functions that may be inlined.
    inlinable: Vec<String>,
    /// The functions that had `alwaysinline`.
    always_inlined: Vec<String>,
}

impl Host {
    /// Returns the scalars of a variable's initialiser, in order; `None` if the variable is not defined.
    pub fn initializer_cells(&self, variable: &str) -> Option<Vec<InitCell>> {
        let name = c_string(variable);
        let mut words = Vec::new();
        unsafe {
            let global = LLVMGetNamedGlobal(self.module, name.as_ptr());
            if global.is_null() || LLVMIsDeclaration(global) != 0 {
                return None;
            }
            let mut pending = vec![LLVMGetInitializer(global)];
            while let Some(value) = pending.pop() {
                match LLVMGetValueKind(value) {
                    LLVMValueKind::LLVMConstantArrayValueKind
                    | LLVMValueKind::LLVMConstantStructValueKind => {
                        let count = LLVMGetNumOperands(value) as u32;
                        pending.extend((0..count).rev().map(|i| LLVMGetOperand(value, i)));
                    }
                    // A table is read by position, hence a zero array or struct has its cells.
                    LLVMValueKind::LLVMConstantAggregateZeroValueKind => {
                        push_zeros(LLVMTypeOf(value), &mut words);
                    }
                    _ => words.push(read_cell(value)),
                }
            }
        }
        Some(words)
    }

    /// Protects functions: they are neither inlined nor dropped as unused.
    pub fn hold(&mut self, names: &[String]) -> PinnedCalls {
        let (noinline, optnone) = (attribute_kind("noinline"), attribute_kind("optnone"));
        let alwaysinline = attribute_kind("alwaysinline");
        let (mut inlinable, mut always_inlined) = (Vec::new(), Vec::new());
        for name in names {
            let Some(f) = self.function(name) else {
                continue;
            };
            unsafe {
                let has = |kind| !LLVMGetEnumAttributeAtIndex(f, FUNCTION, kind).is_null();
                // `-O0` adds `noinline` to every function.
                if !has(noinline) || has(optnone) {
                    inlinable.push(name.clone());
                }
                if has(alwaysinline) {
                    always_inlined.push(name.clone());
                }
                LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, optnone);
                LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, alwaysinline);
                let attribute = LLVMCreateEnumAttribute(self.ctx, noinline, 0);
                LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
            }
        }
        let defined: Vec<String> = (names.iter().filter(|n| self.defines(n)))
            .cloned()
            .collect();
        PinnedCalls {
            exposed: self.expose(&defined),
            inlinable,
            always_inlined,
        }
    }

    /// Undoes [`Host::hold`], except for `optnone`, which the early pipeline removes from every function.
    pub fn release(&mut self, held: PinnedCalls) {
        let noinline = attribute_kind("noinline");
        for name in &held.inlinable {
            if let Some(f) = self.function(name) {
                unsafe { LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, noinline) };
            }
        }
        let always_inlined = held.always_inlined.iter();
        let functions: Vec<LLVMValueRef> = always_inlined
            .filter_map(|name| self.function(name))
            .collect();
        self.restore_alwaysinline(&functions);
        self.restore(held.exposed);
    }

    /// Replaces metadata strings among the arguments of calls of functions accepted by `wanted` by
    /// variables with the string as name.
    pub fn metadata_strings_to_globals(&mut self, wanted: &dyn Fn(&str) -> bool) {
        let callees = self.functions().into_iter();
        let callees = callees.filter(|f| wanted(&unsafe { name_of(*f) }));
        let mut found: Vec<(LLVMValueRef, u32, String)> = Vec::new();
        for f in callees.collect::<Vec<_>>() {
            unsafe {
                for user in users_of(f) {
                    let count = if is_call(user) {
                        LLVMGetNumArgOperands(user)
                    } else {
                        0
                    };
                    for i in 0..count {
                        found.extend(
                            metadata_string(LLVMGetOperand(user, i)).map(|text| (user, i, text)),
                        );
                    }
                }
            }
        }
        for (call, index, text) in found {
            let name = c_string(&text);
            unsafe {
                let mut global = LLVMGetNamedGlobal(self.module, name.as_ptr());
                if global.is_null() {
                    let int = LLVMInt32TypeInContext(self.ctx);
                    global = LLVMAddGlobal(self.module, int, name.as_ptr());
                }
                LLVMSetOperand(call, index, global);
            }
        }
        self.invalidate_units();
    }
}

/// The most cells of a zero aggregate; beyond the limit, the rest is one cell of unknown contents.
const ZEROS_MAX: usize = 1 << 12;

/// Appends a cell for each scalar of a zero value.
unsafe fn push_zeros(ty: LLVMTypeRef, words: &mut Vec<InitCell>) {
    let mut pending = vec![ty];
    let mut left = ZEROS_MAX;
    while let Some(ty) = pending.pop() {
        unsafe {
            match LLVMGetTypeKind(ty) {
                LLVMTypeKind::LLVMArrayTypeKind => {
                    let element = LLVMGetElementType(ty);
                    let count = usize::try_from(LLVMGetArrayLength2(ty)).unwrap_or(usize::MAX);
                    if count > left {
                        words.push(InitCell::Other);
                        return;
                    }
                    pending.extend(std::iter::repeat_n(element, count));
                    left -= count;
                }
                LLVMTypeKind::LLVMStructTypeKind => {
                    let count = LLVMCountStructElementTypes(ty);
                    let members = (0..count).rev().map(|i| LLVMStructGetTypeAtIndex(ty, i));
                    pending.extend(members);
                }
                LLVMTypeKind::LLVMIntegerTypeKind | LLVMTypeKind::LLVMPointerTypeKind => {
                    words.push(InitCell::Number(0));
                }
                _ => words.push(InitCell::Other),
            }
        }
    }
}

/// Returns the text of a metadata string.
unsafe fn metadata_string(value: LLVMValueRef) -> Option<String> {
    unsafe {
        if LLVMGetValueKind(value) != LLVMValueKind::LLVMMetadataAsValueValueKind {
            return None;
        }
        let mut length = 0;
        let text = LLVMGetMDString(value, &mut length);
        (!text.is_null()).then(|| text_of(text, length as usize))
    }
}

/// Reads a scalar constant, through casts.
pub(crate) unsafe fn read_cell(mut value: LLVMValueRef) -> InitCell {
    unsafe {
        while LLVMGetValueKind(value) == LLVMValueKind::LLVMConstantExprValueKind {
            match LLVMGetConstOpcode(value) {
                LLVMOpcode::LLVMIntToPtr
                | LLVMOpcode::LLVMPtrToInt
                | LLVMOpcode::LLVMBitCast
                | LLVMOpcode::LLVMAddrSpaceCast => value = LLVMGetOperand(value, 0),
                _ => return InitCell::Other,
            }
        }
        match LLVMGetValueKind(value) {
            LLVMValueKind::LLVMFunctionValueKind => InitCell::Function(name_of(value)),
            LLVMValueKind::LLVMConstantIntValueKind => {
                InitCell::Number(LLVMConstIntGetSExtValue(value))
            }
            LLVMValueKind::LLVMConstantPointerNullValueKind => InitCell::Number(0),
            LLVMValueKind::LLVMGlobalVariableValueKind => {
                let text = LLVMGetInitializer(value);
                if text.is_null() || LLVMIsConstantString(text) == 0 {
                    return InitCell::Variable(name_of(value));
                }
                let mut length = 0;
                let start = LLVMGetAsString(text, &mut length);
                let text = text_of(start, length);
                InitCell::Text(text.trim_end_matches('\0').to_string())
            }
            _ => InitCell::Other,
        }
    }
}
