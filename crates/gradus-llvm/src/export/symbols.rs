//! Declares and defines the functions and variables that the unit added.
use super::Exporter;
use crate::host::attributes::attribute_kind;
use crate::host::ffi::functions_of;
use crate::host::ffi::*;
use gradus_ir::{
    Body, Diagnostic, Entity, FuncId, Function, Global, Initializer, Linkage, OpKind, Symbol,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMLinkage, LLVMThreadLocalMode, LLVMVisibility};
use std::ptr::null_mut;

unsafe extern "C" {
    fn gr_set_dso_local(global: LLVMValueRef, local: i32);
    fn gr_is_dso_local(global: LLVMValueRef) -> i32;
    fn gr_leave_room(global: LLVMValueRef, room_bytes: u32) -> LLVMValueRef;
}

/// Attributes that a derivative inherits from its primal: requirements on code generation and restrictions.
/// Permissive attributes are decided by the creator of the derivative.
const INHERITED_ATTRIBUTES: [&str; 16] = [
    "uwtable",
    "ssp",
    "sspstrong",
    "sspreq",
    "strictfp",
    "sanitize_address",
    "sanitize_memory",
    "sanitize_thread",
    "sanitize_hwaddress",
    "sanitize_memtag",
    "null_pointer_is_valid",
    "noimplicitfloat",
    "safestack",
    "shadowcallstack",
    "nocf_check",
    "noredzone",
];

/// A fragment of an initialiser.
enum Fragment<'i> {
    Bytes(&'i [u8]),
    Address(Symbol, i64),
}

impl Exporter<'_, '_> {
    /// Declares every function and variable that the host lacks.
    pub(super) fn declare_symbols(&mut self) -> Result<(), Diagnostic> {
        let unit = self.unit;
        for (_, function) in unit.functions.iter().skip(self.host.tables.functions.len()) {
            let raw = self.declare_function(function)?;
            self.host.tables.functions.push(raw);
        }
        for (_, global) in unit.globals.iter().skip(self.host.tables.globals.len()) {
            let raw = self.declare_global(global);
            self.host.tables.globals.push(raw);
        }
        Ok(())
    }

    fn declare_function(&mut self, function: &Function) -> Result<LLVMValueRef, Diagnostic> {
        if let Some(known) = self.host.function(&function.name) {
            if unsafe { LLVMGlobalGetValueType(known) } == self.ty(function.ty) {
                return Ok(known);
            }
            return Err(self.broken_unit(format!(
                "the LLVM module has a function {} of another type",
                function.name
            )));
        }
        let name = c_string(&function.name);
        let raw = unsafe { LLVMAddFunction(self.host.module, name.as_ptr(), self.ty(function.ty)) };
        self.set_linkage(raw, function.linkage, function.body.is_some());
        unsafe { LLVMSetFunctionCallConv(raw, function.convention) };
        for (index, attribute) in self.attributes(function.attrs)? {
            unsafe { LLVMAddAttributeAtIndex(raw, index, attribute) };
        }
        let params = unsafe { LLVMCountParams(raw) };
        for (i, name) in (0..params).zip(&function.param_names) {
            if let Some(name) = name {
                unsafe {
                    LLVMSetValueName2(LLVMGetParam(raw, i), name.as_ptr().cast(), name.len())
                };
            }
        }
        if let Some(from) = function.derived_from {
            self.inherit(raw, from);
            // A variant that was replaced by another stays a declaration, without a personality and without
            // a subprogram.
            if function.body.is_some()
                && let Some(origin) = self.host.tables.function(from)
            {
                unsafe {
                    if LLVMHasPersonalityFn(origin) != 0 {
                        LLVMSetPersonalityFn(raw, LLVMGetPersonalityFn(origin));
                    }
                }
                self.derive_subprogram(raw, origin);
            }
        }
        Ok(raw)
    }

    /// Copies the code-generation attributes of the primal to a derivative.
    fn inherit(&mut self, raw: LLVMValueRef, from: FuncId) {
        let Some(origin) = self.host.tables.function(from) else {
            unreachable!("the origin of a derived function is declared earlier");
        };
        unsafe {
            let count = LLVMGetAttributeCountAtIndex(origin, LLVMAttributeFunctionIndex) as usize;
            let mut list: Vec<LLVMAttributeRef> = vec![null_mut(); count];
            LLVMGetAttributesAtIndex(origin, LLVMAttributeFunctionIndex, list.as_mut_ptr());
            let kinds: Vec<u32> = INHERITED_ATTRIBUTES
                .iter()
                .map(|n| attribute_kind(n))
                .collect();
            for attribute in list {
                let taken = LLVMIsStringAttribute(attribute) != 0
                    || kinds.contains(&LLVMGetEnumAttributeKind(attribute));
                if taken {
                    LLVMAddAttributeAtIndex(raw, LLVMAttributeFunctionIndex, attribute);
                }
            }
            // A symbol of local linkage is dso-local, whatever its origin is.
            if gr_is_dso_local(raw) == 0 {
                gr_set_dso_local(raw, gr_is_dso_local(origin));
            }
        }
    }

    /// Sets a personality on a function with inlined exception handlers. LLVM's inliner requires one
    /// personality per module, therefore any other function's personality serves.
    pub(super) fn set_personality(&self, raw: LLVMValueRef, body: &Body) {
        let handles = |op| matches!(body.kind(op), OpKind::Invoke(_));
        unsafe {
            if LLVMHasPersonalityFn(raw) != 0 || !body.walk(body.root()).any(handles) {
                return;
            }
            let mut functions = functions_of(self.host.module).into_iter();
            let personality = match functions.find(|f| LLVMHasPersonalityFn(*f) != 0) {
                Some(other) => LLVMGetPersonalityFn(other),
                None => self.cxx_personality(),
            };
            LLVMSetPersonalityFn(raw, personality);
        }
    }

    /// Returns C++'s personality, for generated handlers in a module without a personality. The declaration
    /// is weak: a program without C++ throws no exceptions.
    unsafe fn cxx_personality(&self) -> LLVMValueRef {
        let name = c"__gxx_personality_v0".as_ptr();
        unsafe {
            let known = LLVMGetNamedFunction(self.host.module, name);
            if !known.is_null() {
                return known;
            }
            let word = LLVMInt32TypeInContext(LLVMGetModuleContext(self.host.module));
            let ty = LLVMFunctionType(word, std::ptr::null_mut(), 0, 1);
            let made = LLVMAddFunction(self.host.module, name, ty);
            LLVMSetLinkage(made, LLVMLinkage::LLVMExternalWeakLinkage);
            made
        }
    }

    fn set_linkage(&self, raw: LLVMValueRef, linkage: Linkage, defined: bool) {
        let is = match (linkage, defined) {
            (Linkage::Internal, true) => LLVMLinkage::LLVMInternalLinkage,
            (Linkage::LinkOnceOdr, true) => LLVMLinkage::LLVMLinkOnceODRLinkage,
            (Linkage::Interposable, true) => LLVMLinkage::LLVMWeakAnyLinkage,
            _ => LLVMLinkage::LLVMExternalLinkage,
        };
        let merged = is == LLVMLinkage::LLVMLinkOnceODRLinkage;
        unsafe {
            LLVMSetLinkage(raw, is);
            if merged {
                LLVMSetVisibility(raw, LLVMVisibility::LLVMHiddenVisibility);
            }
        }
    }

    // ---- variables -------------------------------------------------------------------------

    fn declare_global(&mut self, global: &Global) -> LLVMValueRef {
        let name = c_string(&global.name);
        let known = unsafe { LLVMGetNamedGlobal(self.host.module, name.as_ptr()) };
        if !known.is_null() {
            return known;
        }
        let ty = match &global.init {
            Some(init) if global.defined && !is_zero(init) => self.image_type(init),
            _ => self.ty(global.ty),
        };
        unsafe {
            let raw = LLVMAddGlobal(self.host.module, ty, name.as_ptr());
            self.set_linkage(raw, global.linkage, global.defined);
            LLVMSetGlobalConstant(raw, i32::from(global.constant));
            LLVMSetAlignment(raw, global.align_bytes.max(1));
            if global.thread_local {
                LLVMSetThreadLocalMode(raw, LLVMThreadLocalMode::LLVMGeneralDynamicTLSModel);
            }
            raw
        }
    }

    /// Adds tail padding to variables, so that the address past their end differs from the start of other
    /// variables. Runs last, because the created constants refer to the variables.
    pub(super) fn add_tail_padding(&mut self) {
        for (id, global) in self.unit.globals.iter() {
            let raw = &mut self.host.tables.globals[id.index()];
            if global.room_bytes > 0 {
                *raw = unsafe { gr_leave_room(*raw, global.room_bytes) };
            }
        }
    }

    /// Sets the initialisers of the variables that the unit added.
    pub(super) fn define_globals(&mut self) -> Result<(), Diagnostic> {
        let unit = self.unit;
        for (id, global) in unit.globals.iter() {
            let raw = self.host.tables.globals[id.index()];
            if !global.defined || unsafe { LLVMIsDeclaration(raw) } == 0 {
                continue;
            }
            let value = match &global.init {
                Some(init) if is_zero(init) => unsafe { LLVMConstNull(self.ty(global.ty)) },
                Some(init) => self.image(init),
                None => {
                    return Err(self.broken_unit(format!(
                        "the defined global {} has no initial value",
                        global.name
                    )));
                }
            };
            unsafe { LLVMSetInitializer(raw, value) };
        }
        Ok(())
    }

    /// Returns the fragments of an initialiser: byte runs, and addresses between them.
    fn fragments<'i>(&self, init: &'i Initializer) -> Vec<Fragment<'i>> {
        let width = self.unit.layout.pointer_bytes as usize;
        let mut pieces = Vec::new();
        let mut at = 0;
        for relocation in &init.relocations {
            let start = (relocation.offset_bytes as usize).min(init.bytes.len());
            if start > at {
                pieces.push(Fragment::Bytes(&init.bytes[at..start]));
            }
            pieces.push(Fragment::Address(relocation.target, relocation.addend));
            at = start + width;
        }
        if at < init.bytes.len() {
            pieces.push(Fragment::Bytes(&init.bytes[at..]));
        }
        pieces
    }

    fn image_type(&self, init: &Initializer) -> LLVMTypeRef {
        unsafe {
            let byte = LLVMInt8TypeInContext(self.host.ctx);
            let part = |piece| match piece {
                Fragment::Bytes(bytes) => LLVMArrayType2(byte, bytes.len() as u64),
                Fragment::Address(..) => LLVMPointerTypeInContext(self.host.ctx, 0),
            };
            let mut parts: Vec<LLVMTypeRef> = self.fragments(init).into_iter().map(part).collect();
            LLVMStructTypeInContext(self.host.ctx, parts.as_mut_ptr(), parts.len() as u32, 1)
        }
    }

    fn image(&self, init: &Initializer) -> LLVMValueRef {
        unsafe {
            let ctx = self.host.ctx;
            let part = |piece| match piece {
                Fragment::Bytes(bytes) => {
                    LLVMConstStringInContext2(ctx, bytes.as_ptr().cast(), bytes.len(), 1)
                }
                Fragment::Address(target, addend) => {
                    let start = match target {
                        Symbol::Func(f) => self.host.tables.functions[f.index()],
                        Symbol::Global(g) => self.host.tables.globals[g.index()],
                    };
                    self.constant_offset(start, addend, false)
                }
            };
            let mut parts: Vec<LLVMValueRef> = self.fragments(init).into_iter().map(part).collect();
            LLVMConstStructInContext(ctx, parts.as_mut_ptr(), parts.len() as u32, 1)
        }
    }
}

fn is_zero(init: &Initializer) -> bool {
    init.relocations.is_empty() && init.bytes.iter().all(|b| *b == 0)
}
