//! Export: rebuilds bodies of the IR in the host module.
//!
//! Flow: symbols that the host lacks are declared ([`symbols`]); constants and types are created
//! ([`constants`]); each body is built as fresh blocks of its function ([`structure`], [`instructions`]);
//! last, the old blocks are deleted. Until then foreign ops and debug records are cloned from the old
//! blocks. A function of the host keeps everything except its body: attributes, comdat and debug
//! information are not rebuilt. The unit is outdated afterwards.
mod access_groups;
mod constants;
mod debug;
mod induction_start;
mod instructions;
mod jump_threading;
mod live_ranges;
mod loops;
mod metadata;
mod structure;
mod symbols;
mod zero_trip_guard;

use crate::host::ffi::instructions_of;
use crate::host::ffi::*;
use crate::host::module::Host;
use gradus_ir::{
    AttrsId, Code, Diagnostic, Entity, FuncId, LocId, MetaId, ScopeId, TbaaTypeId, TypeId, Unit,
};
use llvm_sys::LLVMAttributeIndex;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::HashMap;
use std::rc::Rc;

/// The state of an export.
struct Exporter<'h, 'u> {
    host: &'h mut Host,
    unit: &'u Unit,
    consts: Vec<LLVMValueRef>,
    attrs: HashMap<AttrsId, Vec<(LLVMAttributeIndex, LLVMAttributeRef)>>,
    metas: HashMap<MetaId, Rc<[(u32, LLVMMetadataRef)]>>,
    tbaa: HashMap<TbaaTypeId, LLVMMetadataRef>,
    scopes: HashMap<ScopeId, LLVMMetadataRef>,
    domains: HashMap<String, LLVMMetadataRef>,
    locations: HashMap<LocId, LLVMMetadataRef>,
    builder: LLVMBuilderRef,
}

impl Host {
    /// Replaces the host's bodies of `functions`, or defines a function if the host has no definition.
    /// Declares or defines the symbols that the unit added.
    ///
    /// # Errors
    /// A unit that does not match the host's present state, a function without a body, or an op without an
    /// LLVM counterpart (parallel ops must be lowered before). After an error the module must not be used
    /// further.
    pub fn export(&mut self, unit: &Unit, functions: &[FuncId]) -> Result<(), Diagnostic> {
        self.check_generation(unit)?;
        let mut exporter = Exporter::new(self, unit);
        let result = exporter.run(functions);
        drop(exporter);
        self.invalidate_units();
        result
    }

    /// Exports every function of the unit that has a body.
    ///
    /// # Errors
    /// The errors of [`Host::export`].
    pub fn export_all(&mut self, unit: &Unit) -> Result<(), Diagnostic> {
        let with_body = unit.functions.iter().filter(|(_, f)| f.body.is_some());
        let all: Vec<FuncId> = with_body.map(|(id, _)| id).collect();
        self.export(unit, &all)
    }

    /// Checks that the unit was imported from the host and that the host has not changed since.
    fn check_generation(&self, unit: &Unit) -> Result<(), Diagnostic> {
        let known = self.tables.functions.len();
        let same = |(id, f): (FuncId, &gradus_ir::Function)| {
            let raw = self.tables.functions[id.index()];
            let name = unsafe { name_of(raw) };
            name == f.name || name.is_empty()
        };
        let fits = self.tables.live
            && known <= unit.functions.len()
            && self.tables.globals.len() <= unit.globals.len()
            && unit.functions.iter().take(known).all(same);
        if fits {
            return Ok(());
        }
        let message = "the LLVM module has changed since the import of the unit";
        Err(Diagnostic::error(Code::BrokenOutput, message))
    }
}

impl<'h, 'u> Exporter<'h, 'u> {
    fn new(host: &'h mut Host, unit: &'u Unit) -> Self {
        let builder = unsafe { LLVMCreateBuilderInContext(host.ctx) };
        Exporter {
            host,
            unit,
            consts: Vec::new(),
            attrs: HashMap::new(),
            metas: HashMap::new(),
            tbaa: HashMap::new(),
            scopes: HashMap::new(),
            domains: HashMap::new(),
            locations: HashMap::new(),
            builder,
        }
    }

    fn run(&mut self, functions: &[FuncId]) -> Result<(), Diagnostic> {
        self.make_types()?;
        self.declare_symbols()?;
        self.make_constants()?;
        self.define_globals()?;
        let mut old = Vec::new();
        for &id in functions {
            let body = self.unit.functions[id].body.as_deref().ok_or_else(|| {
                let name = &self.unit.functions[id].name;
                self.broken_unit(format!("{name} has no body to export"))
            })?;
            let function = self.host.tables.functions[id.index()];
            let blocks = blocks_of(function);
            clear_value_names(&blocks);
            structure::build(self, id, function, body)?;
            self.set_personality(function, body);
            self.align_recursive_function(id, function, body);
            old.push((function, blocks));
        }
        for (function, blocks) in old {
            delete(self.host.ctx, function, &blocks);
        }
        self.add_tail_padding();
        Ok(())
    }

    /// Returns LLVM's type of `id`.
    fn ty(&self, id: TypeId) -> LLVMTypeRef {
        self.host.tables.types[id.index()]
    }

    fn broken_unit(&self, what: impl Into<String>) -> Diagnostic {
        Diagnostic::error(Code::BrokenOutput, what)
    }
}

impl Drop for Exporter<'_, '_> {
    fn drop(&mut self) {
        unsafe { LLVMDisposeBuilder(self.builder) }
    }
}

/// Frees the value names of a body that is about to be replaced, for reuse in the new body.
fn clear_value_names(blocks: &[LLVMBasicBlockRef]) {
    for &block in blocks {
        unsafe { LLVMSetValueName2(LLVMBasicBlockAsValue(block), NO_NAME, 0) };
        for inst in instructions_of(block) {
            unsafe {
                let mut len = 0;
                LLVMGetValueName2(inst, &mut len);
                if len > 0 {
                    LLVMSetValueName2(inst, NO_NAME, 0);
                }
            }
        }
    }
}

/// Deletes old blocks. Debug records are attached to terminators, so terminators are never erased
/// individually: terminators are redirected to a temporary block, then whole blocks are deleted.
fn delete(ctx: LLVMContextRef, function: LLVMValueRef, blocks: &[LLVMBasicBlockRef]) {
    if blocks.is_empty() {
        return;
    }
    unsafe {
        for &block in blocks {
            for inst in instructions_of(block) {
                if !LLVMGetFirstUse(inst).is_null() {
                    LLVMReplaceAllUsesWith(inst, LLVMGetPoison(LLVMTypeOf(inst)));
                }
            }
        }
        let nowhere = LLVMAppendBasicBlockInContext(ctx, function, NO_NAME);
        let builder = LLVMCreateBuilderInContext(ctx);
        LLVMPositionBuilderAtEnd(builder, nowhere);
        LLVMBuildUnreachable(builder);
        LLVMDisposeBuilder(builder);
        for &block in blocks {
            let terminator = LLVMGetBasicBlockTerminator(block);
            for slot in 0..LLVMGetNumSuccessors(terminator) {
                LLVMSetSuccessor(terminator, slot, nowhere);
            }
        }
        for &block in blocks {
            LLVMDeleteBasicBlock(block);
        }
        LLVMDeleteBasicBlock(nowhere);
    }
}
