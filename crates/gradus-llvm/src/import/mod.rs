//! Import: translates the functions reachable from a set of roots to one unit.
//!
//! Flow: the reachable functions ([`Host::closure`]) are read ([`cfg_reader`]), restructured
//! ([`crate::restructure`]), and their bodies built ([`body`]). Types, constants, symbols, attributes and
//! metadata are interned on the way; the host's tables map ids to LLVM handles. A function that cannot be
//! restructured stays a declaration with `defined` set and is listed with its reason. The host does not
//! change.
mod attributes;
mod body;
mod cfg_reader;
mod constants;
mod escaping_globals;
mod exit_blocks;
mod instructions;
mod metadata;
mod owned_blocks;
mod refusal;
mod types;
mod unique_malloc_globals;
mod unwritten;

pub(crate) use body::SELECTOR_NAME;
pub(crate) use instructions::FAST_SHIFT;
pub use refusal::Refusal;

use crate::host::attributes::attribute_kind;
use crate::host::ffi::*;
use crate::host::handle_tables::Tables;
use crate::host::metadata_kinds::metadata_kinds;
use crate::host::module::Host;
use crate::prepare::fortran;
use crate::restructure;
use gradus_ir::externals::{QUERY_SYMBOL, REPORTING_FUNCTIONS};
use gradus_ir::{
    AttrsId, Code, ConstId, Diagnostic, FuncId, GlobalId, Layout, LocId, MetaId, ScopeId,
    TbaaTypeId, Unit,
};
use llvm_sys::LLVMAttributeIndex;
use llvm_sys::core::LLVMIsDeclaration;
use llvm_sys::debuginfo::LLVMGetSubprogram;
use llvm_sys::prelude::*;
use llvm_sys::target::{LLVMGetModuleDataLayout, LLVMTargetDataRef};
use std::collections::HashMap;

/// The result of an import.
pub struct Imported {
    /// The unit: all mentioned functions, with the bodies of the reachable definitions.
    pub unit: Unit,
    /// The functions that stay in the host unchanged, with the reason.
    pub refused: Vec<(FuncId, Refusal)>,
    /// The number of LLVM instructions that were read.
    pub instructions: usize,
}

impl Imported {
    /// Returns the diagnostic for a function that could not be imported, to report when its body is
    /// required.
    pub fn refusal(&self, function: FuncId) -> Option<Diagnostic> {
        let (_, why) = self.refused.iter().find(|(f, _)| *f == function)?;
        let f = &self.unit.functions[function];
        let name = f.display_name();
        let message = format!("cannot import `{name}` into the IR: {}", why.text());
        Some(
            Diagnostic::error(Code::NotImportable, message)
                .in_function(name)
                .at(f.span.clone(), "defined here")
                .note(format!("reason code: {}", why.code())),
        )
    }
}

/// Records the effects of generated runtime replacements, and drops their bodies.
fn record_replacement_effects(unit: &mut Unit) {
    for func in unit.functions.ids() {
        let name = &unit.functions[func].name;
        if fortran::is_allocator(name) {
            unit.declare_allocator(func, 0);
        } else if !name.starts_with(QUERY_SYMBOL) || !unit.declare_equivalent(func, QUERY_SYMBOL) {
            continue;
        }
        unit.functions[func].body = None;
    }
}

/// Numbers of frequently queried attribute kinds.
struct Kinds {
    coroutine: u32,
    naked: u32,
}

/// The state of an import: the unit, and the ids of everything imported.
struct Importer<'h> {
    host: &'h mut Host,
    unit: Unit,
    data_layout: LLVMTargetDataRef,
    kinds: Kinds,
    metadata_kinds: Vec<String>,
    /// Enables copies of shared exit blocks per landing pad.
    copies_exit_blocks: bool,
    const_ids: HashMap<LLVMValueRef, ConstId>,
    func_ids: HashMap<LLVMValueRef, FuncId>,
    global_ids: HashMap<LLVMValueRef, GlobalId>,
    unread_globals: Vec<(GlobalId, LLVMValueRef)>,
    attrs_ids: HashMap<Vec<(LLVMAttributeIndex, LLVMAttributeRef)>, AttrsId>,
    meta_ids: HashMap<Vec<(u32, LLVMMetadataRef)>, Option<MetaId>>,
    tbaa_ids: HashMap<LLVMMetadataRef, TbaaTypeId>,
    scope_ids: HashMap<LLVMMetadataRef, ScopeId>,
    loc_ids: HashMap<LLVMMetadataRef, LocId>,
}

impl Host {
    /// Imports all functions reachable from `roots`. Earlier units are outdated afterwards.
    ///
    /// # Errors
    /// A root that the module does not define.
    pub fn import(&mut self, roots: &[&str]) -> Result<Imported, Diagnostic> {
        if let Some(missing) = roots.iter().find(|r| !self.defines(r)) {
            let message = format!("this program defines no function `{missing}`");
            return Err(Diagnostic::error(Code::NoSuchFunction, message));
        }
        let reached = self.reached(roots);
        let targets = match self.whole_program {
            true => self.add_address_table(&reached.indirect_targets),
            false => None,
        };
        let mut imported = self.import_functions(&reached.functions, true, targets);
        for name in reached.no_return.iter().map(|f| unsafe { name_of(*f) }) {
            if let Some(func) = imported.unit.function(&name) {
                imported.unit.declare_no_return(func);
            }
        }
        for name in reached
            .only_before_no_return
            .iter()
            .map(|f| unsafe { name_of(*f) })
        {
            if let Some(func) = imported.unit.function(&name) {
                imported.unit.declare_inactive(func);
            }
        }
        record_replacement_effects(&mut imported.unit);
        Ok(imported)
    }

    /// Imports every function that the module defines.
    pub fn import_all(&mut self) -> Imported {
        let defined = |f: &LLVMValueRef| unsafe { LLVMIsDeclaration(*f) } == 0;
        let functions: Vec<LLVMValueRef> = self.functions().into_iter().filter(defined).collect();
        self.import_functions(&functions, false, None)
    }

    /// Imports functions, and a table of the targets of indirect calls.
    fn import_functions(
        &mut self,
        functions: &[LLVMValueRef],
        parts_ways: bool,
        targets: Option<LLVMValueRef>,
    ) -> Imported {
        self.tables = Tables {
            live: true,
            ..Tables::default()
        };
        let mut importer = Importer::new(self, parts_ways);
        let mut imported = Imported {
            unit: Unit::default(),
            refused: Vec::new(),
            instructions: 0,
        };
        let ids: Vec<FuncId> = functions.iter().map(|f| importer.func(*f)).collect();
        for (id, function) in std::iter::zip(ids, functions) {
            match importer.import_body(id, *function) {
                Ok(size) => imported.instructions += size,
                Err(why) => imported.refused.push((id, why)),
            }
        }
        if let Some(table) = targets {
            importer.global(table);
        }
        importer.read_initializers();
        importer.mention_reporting_functions();
        importer.record_fresh_allocation_globals();
        importer.record_escaping_globals();
        importer.record_owned_blocks();
        imported.unit = importer.unit;
        imported
    }
}

impl<'h> Importer<'h> {
    /// Mentions the module's functions with names of the C library's reporting functions. A derivative must not
    /// call a function of the program with such a name.
    fn mention_reporting_functions(&mut self) {
        for name in REPORTING_FUNCTIONS {
            if let Some(function) = self.host.function(name) {
                self.func(function);
            }
        }
    }

    fn new(host: &'h mut Host, copies_exit_blocks: bool) -> Importer<'h> {
        let mut unit = Unit::default();
        unit.layout = Layout::parse(&host.data_layout());
        let functions = host.functions();
        unit.reserve_names(functions.into_iter().map(|f| unsafe { name_of(f) }));
        Importer {
            unit,
            data_layout: unsafe { LLVMGetModuleDataLayout(host.module) },
            kinds: Kinds {
                coroutine: attribute_kind("presplitcoroutine"),
                naked: attribute_kind("naked"),
            },
            metadata_kinds: metadata_kinds(host.ctx),
            copies_exit_blocks,
            const_ids: HashMap::new(),
            func_ids: HashMap::new(),
            global_ids: HashMap::new(),
            unread_globals: Vec::new(),
            attrs_ids: HashMap::new(),
            meta_ids: HashMap::new(),
            tbaa_ids: HashMap::new(),
            scope_ids: HashMap::new(),
            loc_ids: HashMap::new(),
            host,
        }
    }

    /// Imports a function's body; returns the number of its instructions.
    fn import_body(&mut self, id: FuncId, function: LLVMValueRef) -> Result<usize, Refusal> {
        self.check_function(function)?;
        let mut source = cfg_reader::read(self, function)?;
        if self.copies_exit_blocks {
            exit_blocks::duplicate_exit_blocks(&mut source);
        }
        let tree = restructure::restructure(&source.cfg).map_err(|_| Refusal::ControlFlow)?;
        let scope = source.scope(&tree);
        let has_records = !unsafe { LLVMGetSubprogram(function) }.is_null();
        let (body, origins) = body::build_body(self, &source, &tree, &scope, (id, has_records))?;
        self.unit.functions[id].body = Some(Box::new(body));
        self.host.tables.origins.insert(id, origins);
        Ok(source.size)
    }

    /// Returns the name of a value, for printing.
    fn value_name(&self, value: LLVMValueRef) -> Option<Box<str>> {
        let name = unsafe { name_of(value) };
        (!name.is_empty()).then(|| name.into())
    }
}
