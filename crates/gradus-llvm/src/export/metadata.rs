//! Translates the unit's attributes and metadata to LLVM.
use super::Exporter;
use crate::host::attributes::attribute_kind;
use crate::host::ffi::*;
use gradus_ir::{
    Attr, AttrValue, AttrsId, Diagnostic, MetaId, POINTEE_ATTR, ScopeId, TbaaTag, TbaaTypeId,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex, LLVMAttributeReturnIndex};
use std::ffi::c_char;
use std::rc::Rc;

unsafe extern "C" {
    fn gr_alias_domain(ctx: LLVMContextRef, name: *const c_char) -> LLVMMetadataRef;
    fn gr_alias_scope(
        ctx: LLVMContextRef,
        domain: LLVMMetadataRef,
        name: *const c_char,
    ) -> LLVMMetadataRef;
}

impl Exporter<'_, '_> {
    // ---- attributes ------------------------------------------------------------------------

    /// Returns LLVM's attributes of an interned set, with their indices.
    pub(super) fn attributes(
        &mut self,
        id: AttrsId,
    ) -> Result<Vec<(LLVMAttributeIndex, LLVMAttributeRef)>, Diagnostic> {
        if let Some(made) = self.attrs.get(&id) {
            return Ok(made.clone());
        }
        let set = self.unit.attrs(id);
        let mut made = Vec::new();
        for attr in &set.function {
            made.push((LLVMAttributeFunctionIndex, self.attribute(attr)?));
        }
        for attr in &set.result {
            made.push((LLVMAttributeReturnIndex, self.attribute(attr)?));
        }
        for (i, list) in set.params.iter().enumerate() {
            for attr in list.iter().filter(|attr| attr.name != POINTEE_ATTR) {
                made.push((i as LLVMAttributeIndex + 1, self.attribute(attr)?));
            }
        }
        self.attrs.insert(id, made.clone());
        Ok(made)
    }

    fn attribute(&self, attr: &Attr) -> Result<LLVMAttributeRef, Diagnostic> {
        let ctx = self.host.ctx;
        let kind = attribute_kind(&attr.name);
        let text = |value: &str| unsafe {
            let name = &attr.name;
            let (name, name_len) = (name.as_ptr().cast(), name.len() as u32);
            LLVMCreateStringAttribute(
                ctx,
                name,
                name_len,
                value.as_ptr().cast(),
                value.len() as u32,
            )
        };
        Ok(match &attr.value {
            AttrValue::Text(value) => text(value),
            AttrValue::Flag if kind == 0 => text(""),
            AttrValue::Host(number) => {
                self.host.tables.attributes.get(*number).ok_or_else(|| {
                    self.broken_unit(format!("the LLVM module has no attribute {number}"))
                })?
            }
            _ if kind == 0 => {
                return Err(self.broken_unit(format!("LLVM has no attribute {}", attr.name)));
            }
            AttrValue::Flag => unsafe { LLVMCreateEnumAttribute(ctx, kind, 0) },
            AttrValue::Int(value) => unsafe { LLVMCreateEnumAttribute(ctx, kind, *value) },
            AttrValue::Type(ty) => unsafe { LLVMCreateTypeAttribute(ctx, kind, self.ty(*ty)) },
        })
    }

    // ---- metadata --------------------------------------------------------------------------

    /// Returns an op's metadata as pairs of kind and node.
    pub(super) fn meta(&mut self, id: MetaId) -> Rc<[(u32, LLVMMetadataRef)]> {
        if let Some(made) = self.metas.get(&id) {
            return made.clone();
        }
        let made: Rc<[(u32, LLVMMetadataRef)]> = self.make_meta(id).into();
        self.metas.insert(id, made.clone());
        made
    }

    fn make_meta(&mut self, id: MetaId) -> Vec<(u32, LLVMMetadataRef)> {
        let meta = self.unit.meta(id);
        let mut made = Vec::new();
        if let Some(tag) = &meta.tbaa {
            made.push((self.metadata_kind("tbaa"), self.tbaa_tag(tag)));
        }
        if !meta.tbaa_struct.is_empty() {
            let mut parts = Vec::new();
            for member in &meta.tbaa_struct {
                let numbers = [member.offset_bytes, member.size_bytes].map(|n| self.number(n));
                parts.extend(numbers);
                parts.push(self.tbaa_tag(&member.tag));
            }
            made.push((self.metadata_kind("tbaa.struct"), self.node(&parts)));
        }
        for (kind, scopes) in [
            ("alias.scope", &meta.alias_scopes),
            ("noalias", &meta.noalias),
        ] {
            if !scopes.is_empty() {
                let own = self.host.tables.scope_lists.get(scopes).copied();
                let list = own.unwrap_or_else(|| {
                    let scopes: Vec<LLVMMetadataRef> =
                        scopes.iter().map(|s| self.scope(*s)).collect();
                    self.node(&scopes)
                });
                made.push((self.metadata_kind(kind), list));
            }
        }
        for (kind, number) in &meta.host {
            if let Some(node) = self.host.tables.metadata.get(*number) {
                made.push((self.metadata_kind(kind), node));
            }
        }
        made
    }

    pub(super) fn metadata_kind(&self, name: &str) -> u32 {
        unsafe { LLVMGetMDKindIDInContext(self.host.ctx, name.as_ptr().cast(), name.len() as u32) }
    }

    pub(super) fn node(&self, parts: &[LLVMMetadataRef]) -> LLVMMetadataRef {
        unsafe { LLVMMDNodeInContext2(self.host.ctx, parts.as_ptr().cast_mut(), parts.len()) }
    }

    fn number(&self, value: u64) -> LLVMMetadataRef {
        unsafe {
            LLVMValueAsMetadata(LLVMConstInt(
                LLVMInt64TypeInContext(self.host.ctx),
                value,
                0,
            ))
        }
    }

    fn text(&self, text: &str) -> LLVMMetadataRef {
        unsafe { LLVMMDStringInContext2(self.host.ctx, text.as_ptr().cast(), text.len()) }
    }

    fn tbaa_tag(&mut self, tag: &TbaaTag) -> LLVMMetadataRef {
        let mut parts = vec![
            self.tbaa_type(tag.base),
            self.tbaa_type(tag.access),
            self.number(tag.offset_bytes),
        ];
        if tag.constant {
            parts.push(self.number(1));
        }
        self.node(&parts)
    }

    /// Returns a TBAA type node. Members have smaller ids, so missing nodes are created in the order of
    /// ids.
    fn tbaa_type(&mut self, id: TbaaTypeId) -> LLVMMetadataRef {
        if let Some(made) = self.tbaa.get(&id) {
            return *made;
        }
        let unit = self.unit;
        for (member, ty) in unit.tbaa_types.iter().take_while(|(other, _)| *other <= id) {
            if self.tbaa.contains_key(&member) {
                continue;
            }
            let own = ty.host.and_then(|n| self.host.tables.metadata.get(n));
            let made = own.unwrap_or_else(|| {
                let mut parts = vec![self.text(&ty.name)];
                for (at, part) in &ty.members {
                    parts.extend(self.tbaa.get(part));
                    parts.push(self.number(*at));
                }
                self.node(&parts)
            });
            self.tbaa.insert(member, made);
        }
        self.tbaa[&id]
    }

    fn scope(&mut self, id: ScopeId) -> LLVMMetadataRef {
        if let Some(made) = self.scopes.get(&id) {
            return *made;
        }
        let unit = self.unit;
        let scope = &unit.scopes[id];
        let own = scope.host.and_then(|n| self.host.tables.metadata.get(n));
        let made = own.unwrap_or_else(|| {
            let domain = self.domain(&scope.domain);
            unsafe { gr_alias_scope(self.host.ctx, domain, c_string(&scope.name).as_ptr()) }
        });
        self.scopes.insert(id, made);
        made
    }

    fn domain(&mut self, name: &str) -> LLVMMetadataRef {
        if let Some(made) = self.domains.get(name) {
            return *made;
        }
        let made = unsafe { gr_alias_domain(self.host.ctx, c_string(name).as_ptr()) };
        self.domains.insert(name.to_string(), made);
        made
    }
}
