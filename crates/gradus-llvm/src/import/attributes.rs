//! Translates functions of the host to functions of the unit: type, linkage, attributes, names, source
//! lines.
//!
//! Attributes keep LLVM's names. Payloads without a plain form (integer ranges, `initializes`) are numbers
//! in the host's table.
use super::Importer;
use super::constants::linkage;
use crate::host::ffi::*;
use crate::host::source_files::file_name;
use crate::host::symbols::qualified_name;
use gradus_ir::{Attr, AttrSet, AttrValue, AttrsId, FuncId, Function, SourceSpan};
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use llvm_sys::{
    LLVMAttributeFunctionIndex, LLVMAttributeIndex, LLVMAttributeReturnIndex, LLVMValueKind,
};
use std::ffi::c_char;
use std::ptr::null_mut;

unsafe extern "C" {
    fn gr_attribute_name(kind: u32, len: *mut usize) -> *const c_char;
    fn gr_is_integer_attribute(attribute: LLVMAttributeRef) -> i32;
    fn gr_subprogram_name(subprogram: LLVMMetadataRef, len: *mut usize) -> *const c_char;
}

impl Importer<'_> {
    /// Returns the unit's function for a host function or a function alias; adds it on first use.
    pub(super) fn func(&mut self, f: LLVMValueRef) -> FuncId {
        if let Some(id) = self.func_ids.get(&f) {
            return *id;
        }
        let is_function = unsafe { LLVMGetValueKind(f) } == LLVMValueKind::LLVMFunctionValueKind;
        let attrs = if is_function {
            self.function_attributes(f)
        } else {
            self.unit.intern_attrs(AttrSet::default())
        };
        let defined = is_function && unsafe { LLVMIsDeclaration(f) } == 0;
        let name = self.symbol_name(f);
        let mut function = Function {
            param_names: Vec::new(),
            span: None,
            source_name: None,
            ty: self.ty(unsafe { LLVMGlobalGetValueType(f) }),
            attrs,
            convention: if is_function {
                unsafe { LLVMGetFunctionCallConv(f) }
            } else {
                0
            },
            linkage: linkage(unsafe { LLVMGetLinkage(f) }),
            defined,
            body: None,
            derived_from: None,
            name,
        };
        match defined {
            true => self.set_source_info(f, &mut function),
            false => function.source_name = qualified_name(&function.name),
        }
        let id = self.unit.add_function(function);
        self.host.tables.functions.push(f);
        self.func_ids.insert(f, id);
        id
    }

    /// Sets the source name, parameter names and source position of a function.
    fn set_source_info(&self, f: LLVMValueRef, function: &mut Function) {
        function.param_names = self.host.parameter_names(f);
        function.source_name = qualified_name(&function.name);
        unsafe {
            let program = LLVMGetSubprogram(f);
            if program.is_null() {
                return;
            }
            let mut len = 0;
            let name = gr_subprogram_name(program, &mut len);
            let name = text_of(name, len);
            let is_other = !name.is_empty() && name != function.name;
            let name = is_other.then_some(name);
            function.source_name = function.source_name.take().or(name);
            let file = LLVMDIScopeGetFile(program);
            if !file.is_null() {
                function.span = Some(SourceSpan {
                    file: file_name(program),
                    line: LLVMDISubprogramGetLine(program),
                    column: 0,
                    called_at: None,
                });
            }
        }
    }

    fn function_attributes(&mut self, f: LLVMValueRef) -> AttrsId {
        let params = unsafe { LLVMCountParams(f) };
        let mut listed = Vec::new();
        for index in attribute_indices(params) {
            unsafe {
                let count = LLVMGetAttributeCountAtIndex(f, index) as usize;
                let mut list: Vec<LLVMAttributeRef> = vec![null_mut(); count];
                LLVMGetAttributesAtIndex(f, index, list.as_mut_ptr());
                listed.extend(list.into_iter().map(|a| (index, a)));
            }
        }
        self.intern_attributes(listed)
    }

    /// Returns the attributes of a call; `None` if the call has none.
    pub(super) fn call_attributes(&mut self, call: LLVMValueRef) -> Option<AttrsId> {
        let params = unsafe { LLVMGetNumArgOperands(call) };
        let mut listed = Vec::new();
        for index in attribute_indices(params) {
            unsafe {
                let count = LLVMGetCallSiteAttributeCount(call, index) as usize;
                if count == 0 {
                    continue;
                }
                let mut list: Vec<LLVMAttributeRef> = vec![null_mut(); count];
                LLVMGetCallSiteAttributes(call, index, list.as_mut_ptr());
                listed.extend(list.into_iter().map(|a| (index, a)));
            }
        }
        (!listed.is_empty()).then(|| self.intern_attributes(listed))
    }

    fn intern_attributes(
        &mut self,
        listed: Vec<(LLVMAttributeIndex, LLVMAttributeRef)>,
    ) -> AttrsId {
        if let Some(id) = self.attrs_ids.get(&listed) {
            return *id;
        }
        let mut set = AttrSet::default();
        for (index, raw) in &listed {
            let attr = self.attribute(*raw);
            if *index == LLVMAttributeFunctionIndex {
                set.function.push(attr);
            } else if *index == LLVMAttributeReturnIndex {
                set.result.push(attr);
            } else {
                let param = *index as usize - 1;
                if set.params.len() <= param {
                    set.params.resize(param + 1, Vec::new());
                }
                set.params[param].push(attr);
            }
        }
        let id = self.unit.intern_attrs(set);
        self.attrs_ids.insert(listed, id);
        id
    }

    fn attribute(&mut self, raw: LLVMAttributeRef) -> Attr {
        unsafe {
            if LLVMIsStringAttribute(raw) != 0 {
                let mut len = 0;
                let key = LLVMGetStringAttributeKind(raw, &mut len);
                let name = text_of(key, len as usize);
                let value = LLVMGetStringAttributeValue(raw, &mut len);
                return Attr {
                    name,
                    value: AttrValue::Text(text_of(value, len as usize)),
                };
            }
            let mut len = 0;
            let name = gr_attribute_name(LLVMGetEnumAttributeKind(raw), &mut len);
            let name = text_of(name, len);
            let value = if LLVMIsTypeAttribute(raw) != 0 {
                AttrValue::Type(self.ty(LLVMGetTypeAttributeValue(raw)))
            } else if gr_is_integer_attribute(raw) != 0 {
                AttrValue::Int(LLVMGetEnumAttributeValue(raw))
            } else if LLVMIsEnumAttribute(raw) != 0 {
                AttrValue::Flag
            } else {
                AttrValue::Host(self.host.tables.attributes.number(raw))
            };
            Attr { name, value }
        }
    }
}

/// Attribute indices of the function, the result and each parameter.
fn attribute_indices(params: u32) -> impl Iterator<Item = LLVMAttributeIndex> {
    std::iter::once(LLVMAttributeFunctionIndex).chain(0..=params)
}
