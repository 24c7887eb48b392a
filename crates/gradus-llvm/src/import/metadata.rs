//! Translates metadata of instructions: TBAA tags, alias scopes, locations, and opaque metadata that is
//! preserved only.
use super::Importer;
use crate::host::ffi::*;
use crate::host::source_files::file_name;
use gradus_ir::{
    AliasScope, LocId, Location, Meta, MetaId, ScopeId, SourceSpan, TbaaStructMember, TbaaTag,
    TbaaType, TbaaTypeId,
};
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use std::ffi::c_char;
use std::ptr::null_mut;

unsafe extern "C" {
    fn gr_location_function(location: LLVMMetadataRef, len: *mut usize) -> *const c_char;
}

/// An operand of a metadata node.
enum Operand {
    Node(LLVMMetadataRef),
    Text(String),
    Number(u64),
    Other,
}

impl Importer<'_> {
    /// Returns the metadata of an instruction, without its location.
    pub(super) fn meta(&mut self, inst: LLVMValueRef) -> Option<MetaId> {
        if unsafe { LLVMHasMetadata(inst) } == 0 {
            return None;
        }
        let mut count = 0;
        let entries = unsafe { LLVMInstructionGetAllMetadataOtherThanDebugLoc(inst, &mut count) };
        // In spite of its name the function also lists the location, with kind 0.
        let listed: Vec<(u32, LLVMMetadataRef)> = (0..count as u32)
            .map(|i| unsafe {
                let kind = LLVMValueMetadataEntriesGetKind(entries, i);
                (kind, LLVMValueMetadataEntriesGetMetadata(entries, i))
            })
            .filter(|(kind, _)| *kind != LOCATION_KIND)
            .collect();
        unsafe { LLVMDisposeValueMetadataEntries(entries) };
        if listed.is_empty() {
            return None;
        }
        if let Some(id) = self.meta_ids.get(&listed) {
            return *id;
        }
        let mut meta = Meta::default();
        for (kind, node) in &listed {
            let name = self
                .metadata_kinds
                .get(*kind as usize)
                .cloned()
                .unwrap_or_default();
            let understood = match name.as_str() {
                "tbaa" => {
                    meta.tbaa = self.tbaa_tag(*node);
                    meta.tbaa.is_some()
                }
                "tbaa.struct" => {
                    meta.tbaa_struct = self.read_tbaa_struct(*node).unwrap_or_default();
                    !meta.tbaa_struct.is_empty()
                }
                "alias.scope" => self.scopes(*node).map(|s| meta.alias_scopes = s).is_some(),
                "noalias" => self.scopes(*node).map(|s| meta.noalias = s).is_some(),
                _ => false,
            };
            if !understood {
                meta.host
                    .push((name, self.host.tables.metadata.number(*node)));
            }
        }
        meta.host.sort();
        let id = self.unit.intern_meta(meta);
        self.meta_ids.insert(listed, id);
        id
    }

    /// Returns the operands of a metadata node.
    fn operands(&self, node: LLVMMetadataRef) -> Vec<Operand> {
        unsafe {
            let value = LLVMMetadataAsValue(self.host.ctx, node);
            if LLVMIsAMDNode(value).is_null() {
                return Vec::new();
            }
            let mut raw = vec![null_mut(); LLVMGetMDNodeNumOperands(value) as usize];
            LLVMGetMDNodeOperands(value, raw.as_mut_ptr());
            raw.into_iter().map(|v| self.operand(v)).collect()
        }
    }

    fn operand(&self, value: LLVMValueRef) -> Operand {
        unsafe {
            if value.is_null() {
                return Operand::Other;
            }
            if !LLVMIsAConstantInt(value).is_null() {
                return Operand::Number(LLVMConstIntGetZExtValue(value));
            }
            if !LLVMIsAMDString(value).is_null() {
                let mut len = 0;
                let text = LLVMGetMDString(value, &mut len);
                return Operand::Text(text_of(text, len as usize));
            }
            if !LLVMIsAMDNode(value).is_null() {
                return Operand::Node(LLVMValueAsMetadata(value));
            }
            Operand::Other
        }
    }

    /// Reads a TBAA access tag `!{base, access, offset, constant?}`; `None` for other forms.
    fn tbaa_tag(&mut self, node: LLVMMetadataRef) -> Option<TbaaTag> {
        let operands = self.operands(node);
        let [
            Operand::Node(base),
            Operand::Node(access),
            Operand::Number(offset_bytes),
            rest @ ..,
        ] = operands.as_slice()
        else {
            return None;
        };
        let constant = match rest {
            [] => false,
            [Operand::Number(n)] => *n & 1 == 1,
            _ => return None,
        };
        let (base, access) = (self.tbaa_type(*base)?, self.tbaa_type(*access)?);
        Some(TbaaTag {
            base,
            access,
            offset_bytes: *offset_bytes,
            constant,
        })
    }

    /// Reads the members of a `tbaa.struct` node `!{offset, size, tag, …}`; `None` for other forms.
    fn read_tbaa_struct(&mut self, node: LLVMMetadataRef) -> Option<Vec<TbaaStructMember>> {
        let operands = self.operands(node);
        let (members, []) = operands.as_chunks() else {
            return None;
        };
        let mut copied = Vec::new();
        for member in members {
            let [
                Operand::Number(offset_bytes),
                Operand::Number(size_bytes),
                Operand::Node(tag),
            ] = member
            else {
                return None;
            };
            copied.push(TbaaStructMember {
                offset_bytes: *offset_bytes,
                size_bytes: *size_bytes,
                tag: self.tbaa_tag(*tag)?,
            });
        }
        Some(copied)
    }

    /// Reads a TBAA type node `!{name, (member, offset)…}`; members are numbered before their struct.
    fn tbaa_type(&mut self, node: LLVMMetadataRef) -> Option<TbaaTypeId> {
        let mut stack = vec![node];
        while let Some(&top) = stack.last() {
            if self.tbaa_ids.contains_key(&top) {
                stack.pop();
                continue;
            }
            let (name, members) = self.tbaa_members(top)?;
            if stack.len() > TBAA_DEPTH_MAX {
                return None;
            }
            let waiting = stack.len();
            stack.extend(
                members
                    .iter()
                    .map(|(_, m)| *m)
                    .filter(|m| !self.tbaa_ids.contains_key(m)),
            );
            if stack.len() == waiting {
                stack.pop();
                let members = members
                    .iter()
                    .map(|(at, m)| (*at, self.tbaa_ids[m]))
                    .collect();
                let host = Some(self.host.tables.metadata.number(top));
                let id = self.unit.tbaa_types.push(TbaaType {
                    name,
                    members,
                    host,
                });
                self.tbaa_ids.insert(top, id);
            }
        }
        self.tbaa_ids.get(&node).copied()
    }

    fn tbaa_members(&self, node: LLVMMetadataRef) -> Option<(String, Vec<(u64, LLVMMetadataRef)>)> {
        let mut operands = self.operands(node).into_iter();
        let Some(Operand::Text(name)) = operands.next() else {
            return None;
        };
        let mut members = Vec::new();
        loop {
            match (operands.next(), operands.next()) {
                (None, _) => return Some((name, members)),
                (Some(Operand::Node(member)), Some(Operand::Number(at))) => {
                    members.push((at, member))
                }
                (Some(Operand::Node(member)), None) => members.push((0, member)),
                _ => return None,
            }
        }
    }

    /// Reads a list of alias scopes, sorted.
    fn scopes(&mut self, list: LLVMMetadataRef) -> Option<Vec<ScopeId>> {
        let mut scopes = Vec::new();
        for operand in self.operands(list) {
            let Operand::Node(scope) = operand else {
                return None;
            };
            scopes.push(self.scope(scope));
        }
        scopes.sort();
        scopes.dedup();
        self.host
            .tables
            .scope_lists
            .entry(scopes.clone())
            .or_insert(list);
        Some(scopes)
    }

    fn scope(&mut self, node: LLVMMetadataRef) -> ScopeId {
        if let Some(id) = self.scope_ids.get(&node) {
            return *id;
        }
        let number = self.host.tables.metadata.number(node);
        let mut scope = AliasScope {
            name: format!("scope.{number}"),
            domain: String::new(),
            host: Some(number),
        };
        for operand in self.operands(node) {
            match operand {
                Operand::Text(text) => scope.name = text,
                Operand::Node(domain) if domain != node => {
                    scope.domain = format!("host.{}", self.host.tables.metadata.number(domain));
                }
                _ => {}
            }
        }
        let id = self.unit.scopes.push(scope);
        self.scope_ids.insert(node, id);
        id
    }

    /// Returns the source location of an instruction.
    pub(super) fn location(&mut self, inst: LLVMValueRef) -> Option<LocId> {
        let location = unsafe { LLVMInstructionGetDebugLoc(inst) };
        self.debug_location(location)
    }

    fn debug_location(&mut self, location: LLVMMetadataRef) -> Option<LocId> {
        let mut chain = Vec::new();
        let mut at = location;
        while !at.is_null() && !self.loc_ids.contains_key(&at) {
            chain.push(at);
            at = unsafe { LLVMDILocationGetInlinedAt(at) };
        }
        for here in chain.into_iter().rev() {
            let made = self.make_location(here);
            let id = self.unit.locations.push(made);
            self.loc_ids.insert(here, id);
        }
        self.loc_ids.get(&location).copied()
    }

    /// Creates a location whose call site is already numbered.
    fn make_location(&mut self, here: LLVMMetadataRef) -> Location {
        let outer = unsafe { LLVMDILocationGetInlinedAt(here) };
        unsafe {
            let scope = LLVMDILocationGetScope(here);
            let mut name_len = 0;
            let name = gr_location_function(here, &mut name_len);
            Location {
                span: SourceSpan {
                    file: file_name(scope),
                    line: LLVMDILocationGetLine(here),
                    column: LLVMDILocationGetColumn(here),
                    called_at: None,
                },
                function: text_of(name, name_len),
                inlined_at: self.loc_ids.get(&outer).copied(),
                host: Some(self.host.tables.metadata.number(here)),
            }
        }
    }
}

/// LLVM's fixed number of the metadata kind `dbg`.
const LOCATION_KIND: u32 = 0;
/// The most nesting of TBAA type nodes; a deeper tag is preserved without being interpreted.
const TBAA_DEPTH_MAX: usize = 4096;
