//! The unit: all compilation state except function bodies' internals.

use crate::meta::{AliasScope, Meta, TbaaType};
use crate::stamps::Stamp;
use crate::types::{Type, TypeTable};
use crate::{
    Arena, AttrSet, AttrsId, Body, Const, ConstKind, ConstTable, FloatKind, FuncId, GlobalId,
    Layout, LocId, MetaId, ScopeId, SourceSpan, TbaaTypeId, TypeId,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The linkage of a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// Visible to all modules.
    #[default]
    External,
    /// Visible to the defining module only.
    Internal,
    /// Visible to all modules; equal definitions may be merged or replaced by each other.
    LinkOnceOdr,
    /// Visible to all modules; another definition may replace the symbol at link time.
    Interposable,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The symbol name.
    pub name: String,
    /// The type, a [`Type::Func`].
    pub ty: TypeId,
    /// The attributes.
    pub attrs: AttrsId,
    /// LLVM's calling-convention number; 0 is C.
    pub convention: u32,
    /// The linkage.
    pub linkage: Linkage,
    /// True if the host module has a body for the function.
    pub defined: bool,
    /// The body, once imported or created; `None` while a pass has taken the body out.
    pub body: Option<Box<Body>>,
    /// The original of a derived function. Export copies debug information, target features and restrictions
    /// from the original.
    pub derived_from: Option<FuncId>,
    /// The parameter names in the source, if known.
    pub param_names: Vec<Option<String>>,
    /// The source location of the definition.
    pub span: Option<SourceSpan>,
    /// The name in the source, if different from the symbol.
    pub source_name: Option<String>,
}

impl Function {
    /// Returns the name in the source, for messages; the symbol if the source's name is not known.
    pub fn display_name(&self) -> &str {
        self.source_name.as_ref().unwrap_or(&self.name)
    }
}

/// An address stored in a global's initial bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The offset from the start of the variable, in bytes.
    pub offset_bytes: u64,
    /// The symbol whose address is stored.
    pub target: Symbol,
    /// The offset from the start of the target, in bytes.
    pub addend: i64,
}

/// A function or a global variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// A function.
    Func(FuncId),
    /// A global variable.
    Global(GlobalId),
}

/// The initial contents of a global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initializer {
    /// The initial bytes; bytes covered by relocations are zero.
    pub bytes: Vec<u8>,
    /// The relocations: addresses in the initial contents, each with an offset.
    pub relocations: Vec<Relocation>,
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct Global {
    /// The symbol name.
    pub name: String,
    /// The type of the contents.
    pub ty: TypeId,
    /// True if the variable is constant.
    pub constant: bool,
    /// True if the variable is thread-local.
    pub thread_local: bool,
    /// True if the module defines the variable.
    pub defined: bool,
    /// The linkage.
    pub linkage: Linkage,
    /// The alignment in bytes.
    pub align_bytes: u32,
    /// The initial contents; `None` if unknown or unreadable.
    pub init: Option<Initializer>,
    /// For an unreadable initialiser: the symbols whose addresses occur anywhere in the initialiser.
    pub unparsed_symbols: Vec<Symbol>,
    /// Tail padding on export, in bytes. Tail padding keeps the variable's end address distinct from the next
    /// variable's start.
    pub room_bytes: u32,
    /// The primal variable of a shadow variable. Export emits a new shadow next to the primal.
    pub derived_from: Option<GlobalId>,
}

/// A pointer in a variable that is null or the start of a heap block, between any two calls of the program's functions. No
/// other pointer from before a call leads to the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedBlock {
    /// The offset of the pointer in the variable.
    pub offset_bytes: u64,
    /// The size of the block.
    pub size: OwnedBlockSize,
}

/// The size of the block of an [`OwnedBlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedBlockSize {
    /// The size that `malloc_usable_size` returns.
    Usable,
    /// The size by the array descriptor (flang's `CFI_cdesc_t`) that starts with the pointer.
    Descriptor {
        /// The number of dimensions.
        rank: u8,
    },
}

/// The escape summary of a variable over the whole module, including functions that were not imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressEscapes {
    /// The functions that store the variable's address in memory, and the variables that hold the address
    /// initially. `None` represents all symbols that were not imported.
    pub stored_by: BTreeSet<Option<Symbol>>,
    /// The functions that store pointers into the variable.
    pub pointers_stored_by: BTreeSet<Option<Symbol>>,
}

impl Global {
    /// Iterates over the symbols whose addresses the initial contents hold, as far as the module states.
    pub fn initial_symbols(&self) -> impl Iterator<Item = Symbol> {
        let read = self.init.iter().flat_map(|init| &init.relocations);
        read.map(|r| r.target)
            .chain(self.unparsed_symbols.iter().copied())
    }
}

/// A source location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The source span.
    pub span: SourceSpan,
    /// The enclosing source function.
    pub function: String,
    /// The call site of the inlined function.
    pub inlined_at: Option<LocId>,
    /// The debug location in the host's table, or the host location of which this location is an inlined
    /// copy.
    pub host: Option<u32>,
}

/// All compilation state besides body internals: interned types and constants, symbols, locations and facts.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// The target's data layout.
    pub layout: Layout,
    /// The interned types.
    pub types: TypeTable,
    /// The interned constants.
    pub consts: ConstTable,
    /// The functions.
    pub functions: Arena<FuncId, Function>,
    /// The global variables.
    pub globals: Arena<GlobalId, Global>,
    /// The source locations.
    pub locations: Arena<LocId, Location>,
    /// The alias scopes.
    pub scopes: Arena<ScopeId, AliasScope>,
    /// The TBAA types.
    pub tbaa_types: Arena<TbaaTypeId, TbaaType>,
    attrs: Arena<AttrsId, AttrSet>,
    attrs_ids: HashMap<AttrSet, AttrsId>,
    metas: Arena<MetaId, Meta>,
    metas_ids: HashMap<Meta, MetaId>,
    symbols: HashMap<String, Symbol>,
    /// Symbol names reserved by the host, present in the unit or not.
    reserved_names: HashSet<String>,
    /// The program's statements about functions.
    pub(crate) user_declared: HashMap<FuncId, crate::externals::ExternalInfo>,
    /// Pointer variables in which the program stores fresh blocks only.
    pub(crate) fresh_block_pointers: HashSet<GlobalId>,
    /// The blocks that variables own.
    pub(crate) owned_blocks: HashMap<GlobalId, Vec<OwnedBlock>>,
    /// Escape summaries of variables.
    pub(crate) address_escapes: HashMap<GlobalId, AddressEscapes>,
    /// Functions of the program with the name of an external function in the table.
    pub(crate) user_defined: HashSet<FuncId>,
    /// Stamp of the statements above and of the variables present.
    pub(crate) facts: Stamp,
}

/// A stamp of the facts of a unit besides functions: equal stamps mean equal facts on each variable that both units
/// have, and equal statements of the program. Functions and new variables do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FactsVersion(u64);

impl Unit {
    /// Returns the stamp of the present facts on variables and of the program's statements. Data layout, types and
    /// constants never change after the import.
    pub fn facts_version(&self) -> FactsVersion {
        if self.globals.take_edited() {
            self.facts.renew();
        }
        FactsVersion(self.facts.number())
    }
    /// Interns an attribute set and returns the id.
    pub fn intern_attrs(&mut self, set: AttrSet) -> AttrsId {
        if let Some(&id) = self.attrs_ids.get(&set) {
            return id;
        }
        let id = self.attrs.push(set.clone());
        self.attrs_ids.insert(set, id);
        id
    }
    /// Returns the attribute set behind `id`.
    pub fn attrs(&self, id: AttrsId) -> &AttrSet {
        &self.attrs[id]
    }
    /// Returns the id of an attribute set, if already interned.
    pub fn find_attrs(&self, set: &AttrSet) -> Option<AttrsId> {
        self.attrs_ids.get(set).copied()
    }
    /// Iterates over all attribute sets in the order of interning.
    pub fn attr_sets(&self) -> impl DoubleEndedIterator<Item = (AttrsId, &AttrSet)> {
        self.attrs.iter()
    }
    /// Interns the metadata of an op and returns the id; `None` for empty metadata.
    pub fn intern_meta(&mut self, meta: Meta) -> Option<MetaId> {
        if meta == Meta::default() {
            return None;
        }
        if let Some(&id) = self.metas_ids.get(&meta) {
            return Some(id);
        }
        let id = self.metas.push(meta.clone());
        self.metas_ids.insert(meta, id);
        Some(id)
    }
    /// Returns the metadata behind `id`.
    pub fn meta(&self, id: MetaId) -> &Meta {
        &self.metas[id]
    }
    /// Adds a function; the name must be new.
    pub fn add_function(&mut self, function: Function) -> FuncId {
        let name = function.name.clone();
        let id = self.functions.push(function);
        self.symbols.insert(name, Symbol::Func(id));
        id
    }
    /// Adds a global variable; the name must be new.
    pub fn add_global(&mut self, global: Global) -> GlobalId {
        let name = global.name.clone();
        let id = self.globals.push(global);
        self.symbols.insert(name, Symbol::Global(id));
        id
    }
    /// Returns the function or global named `name`.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }
    /// Returns the function named `name`.
    pub fn function(&self, name: &str) -> Option<FuncId> {
        match self.symbol(name) {
            Some(Symbol::Func(id)) => Some(id),
            _ => None,
        }
    }
    /// Returns the function `name`, declared with type `ty` and attributes `attrs` if new.
    pub fn declare(&mut self, name: &str, ty: TypeId, attrs: AttrSet) -> FuncId {
        if let Some(id) = self.function(name) {
            return id;
        }
        self.add(name.to_string(), ty, attrs, Linkage::External, None)
    }
    /// Adds a compiler-generated function with a body; the name must be new. The function has C's calling
    /// convention, no attributes and no source location.
    pub fn define(&mut self, name: String, ty: TypeId, linkage: Linkage, body: Body) -> FuncId {
        let body = Some(Box::new(body));
        self.add(name, ty, AttrSet::default(), linkage, body)
    }
    fn add(
        &mut self,
        name: String,
        ty: TypeId,
        attrs: AttrSet,
        linkage: Linkage,
        body: Option<Box<Body>>,
    ) -> FuncId {
        let attrs = self.intern_attrs(attrs);
        self.add_function(Function {
            name,
            ty,
            attrs,
            convention: 0,
            linkage,
            defined: false,
            body,
            derived_from: None,
            param_names: Vec::new(),
            span: None,
            source_name: None,
        })
    }
    /// Adds a constant string without a terminating zero; the name must be new.
    pub fn add_string(&mut self, name: String, text: &str) -> GlobalId {
        let byte = self.types.int(8);
        let ty = self.types.array(byte, text.len() as u64);
        self.add_global(Global {
            name,
            ty,
            constant: true,
            thread_local: false,
            defined: true,
            linkage: Linkage::Internal,
            align_bytes: 1,
            init: Some(Initializer {
                bytes: text.as_bytes().to_vec(),
                relocations: Vec::new(),
            }),
            unparsed_symbols: Vec::new(),
            room_bytes: 0,
            derived_from: None,
        })
    }
    /// Renames a function; the new symbol must be new. Functions of the host are not renamed.
    pub fn rename(&mut self, func: FuncId, name: String) {
        let old = std::mem::replace(&mut self.functions[func].name, name.clone());
        if self.symbols.get(&old) == Some(&Symbol::Func(func)) {
            self.symbols.remove(&old);
        }
        self.symbols.insert(name, Symbol::Func(func));
    }
    /// Reserves symbol names of the host; the unit may hold only part of the host's symbols.
    pub fn reserve_names(&mut self, names: impl IntoIterator<Item = String>) {
        self.reserved_names.extend(names);
    }
    /// Returns an unused symbol name with the prefix `stem`: neither in the unit nor reserved by the host.
    pub fn fresh_name(&self, stem: &str) -> String {
        let is_free =
            |name: &str| !self.symbols.contains_key(name) && !self.reserved_names.contains(name);
        let numbered = (1..).map(|n| format!("{stem}.{n}"));
        let mut names = std::iter::once(stem.to_string()).chain(numbered);
        names.find(|name| is_free(name)).unwrap_or_default()
    }
    /// Returns the result type of a function type.
    pub fn result_type(&self, func_ty: TypeId) -> Option<TypeId> {
        match self.types.get(func_ty) {
            Type::Func { result, .. } => Some(*result),
            _ => None,
        }
    }
    /// Returns the parameter types of a function type.
    pub fn param_types(&self, func_ty: TypeId) -> &[TypeId] {
        match self.types.get(func_ty) {
            Type::Func { params, .. } => params,
            _ => &[],
        }
    }
    /// Returns an integer constant of type `ty`, truncated to the type's width.
    pub fn int_const(&mut self, ty: TypeId, value: i128) -> crate::ConstId {
        let bits = self.types.int_bits(ty).unwrap_or(128).min(128);
        let mask = if bits == 128 {
            u128::MAX
        } else {
            (1u128 << bits) - 1
        };
        self.consts.intern(ty, ConstKind::Int(value as u128 & mask))
    }
    /// Returns a floating-point constant of scalar type `ty`, rounded to the format. For formats without a
    /// Rust type (f16, bf16, x87, quad) the result is exact for small dyadic numbers.
    pub fn float_const(&mut self, ty: TypeId, value: f64) -> crate::ConstId {
        let kind = self.types.float_kind(ty).unwrap_or(FloatKind::F64);
        self.consts
            .intern(ty, ConstKind::Float(crate::consts::float_bits(kind, value)))
    }
    /// Returns the constant behind `id`.
    pub fn constant(&self, id: crate::ConstId) -> &Const {
        self.consts.get(id)
    }
    /// Returns the source span of a location: the innermost source line. For system code, `called_at` is the
    /// nearest caller in user code.
    pub fn span(&self, loc: Option<LocId>) -> Option<SourceSpan> {
        let location = &self.locations[loc?];
        let mut span = location.span.clone();
        if span.is_in_system_code() {
            let callers =
                std::iter::successors(location.inlined_at, |at| self.locations[*at].inlined_at);
            let mut callers = callers.map(|at| &self.locations[at].span);
            let own = callers.find(|caller| !caller.is_in_system_code());
            span.called_at = own.cloned().map(Box::new);
        }
        Some(span)
    }
}

impl Unit {
    /// Returns the direct callee of a `call` or `invoke`.
    pub fn callee(&self, body: &Body, op: crate::Op) -> Option<FuncId> {
        body.kind(op).call_info()?;
        body.as_function(self, body.operand(op, 0))
    }
    /// Returns whether a function, or a function from which it is derived, has a function attribute.
    pub fn origin_has_attribute(&self, func: FuncId, name: &str) -> bool {
        let derived_from = |func: &FuncId| self.functions[*func].derived_from;
        let mut origins = std::iter::successors(Some(func), derived_from);
        origins.any(|func| {
            self.attrs(self.functions[func].attrs)
                .function(name)
                .is_some()
        })
    }
    /// Returns the arguments of a `call` or `invoke`, without callee and bundle operands.
    pub fn call_args(&self, body: &Body, op: crate::Op) -> Vec<crate::Value> {
        let bundled: u32 = body
            .kind(op)
            .call_info()
            .map_or(0, |i| i.bundles.iter().map(|(_, n)| n).sum());
        let end = body.operand_count(op).saturating_sub(bundled as usize);
        body.operands(op).take(end).skip(1).collect()
    }
}
