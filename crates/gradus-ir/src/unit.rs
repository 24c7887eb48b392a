//! A unit: what a compilation knows beside the bodies.

use crate::meta::{AliasScope, Meta, TbaaType};
use crate::types::{Type, TypeTable};
use crate::{
    Arena, AttrSet, AttrsId, Body, Const, ConstKind, ConstTable, FloatKind, FuncId, GlobalId,
    Layout, LocId, MetaId, ScopeId, SourceSpan, TbaaTypeId, TypeId,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Who can see a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// Every module.
    #[default]
    External,
    /// This module.
    Internal,
    /// Every module, and equal definitions may be merged or replaced by each other.
    LinkOnceOdr,
    /// Every module, and another definition may be taken in its place at link time.
    Interposable,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Its type, a [`Type::Func`].
    pub ty: TypeId,
    /// Its attributes.
    pub attrs: AttrsId,
    /// LLVM's number of the calling convention; 0 is C's.
    pub convention: u32,
    /// Who can see it.
    pub linkage: Linkage,
    /// Whether the host module holds a body for it.
    pub defined: bool,
    /// Its code, once imported or made; `None` while a pass has taken it out.
    pub body: Option<Box<Body>>,
    /// The function that this one was derived from: its debug information, target features and
    /// restrictions are taken over on export.
    pub derived_from: Option<FuncId>,
    /// The names of its parameters in the source, where known.
    pub param_names: Vec<Option<String>>,
    /// Where it starts in the source.
    pub span: Option<SourceSpan>,
    /// Its name in the source, where it differs from the symbol.
    pub source_name: Option<String>,
}

/// An address stored in a global's initial bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Bytes from the start of the variable.
    pub offset_bytes: u64,
    /// What is pointed to.
    pub target: Symbol,
    /// Bytes from the start of the target.
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

/// What a global variable holds at start-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initializer {
    /// Its bytes; those covered by relocations are zero.
    pub bytes: Vec<u8>,
    /// The addresses in it, by offset.
    pub relocations: Vec<Relocation>,
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its symbol.
    pub name: String,
    /// The type of its contents.
    pub ty: TypeId,
    /// Whether it never changes.
    pub constant: bool,
    /// Whether every thread has its own.
    pub thread_local: bool,
    /// Whether this module defines it.
    pub defined: bool,
    /// Who can see it.
    pub linkage: Linkage,
    /// The alignment in bytes.
    pub align_bytes: u32,
    /// What it holds at start-up; `None` where it is not known or could not be read.
    pub init: Option<Initializer>,
    /// Where that could not be read: whose addresses stand in it, wherever and in whatever form.
    pub unread: Vec<Symbol>,
    /// How many bytes behind it stay free on export, so that the end of it is no other variable's start.
    pub room_bytes: u32,
    /// The variable whose shadow this one is: new ones are emitted beside it on export.
    pub derived_from: Option<GlobalId>,
}

/// What becomes of a variable and its address in all of a module, also where it was not imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenAway {
    /// The functions that put its address into memory, and the variables that hold it at start-up; `None` among
    /// them stands for those that were not imported.
    pub by: BTreeSet<Option<Symbol>>,
    /// The functions that put pointers into it.
    pub set_by: BTreeSet<Option<Symbol>>,
}

impl Global {
    /// Whose addresses it holds at start-up, as far as this module says.
    pub fn named(&self) -> impl Iterator<Item = Symbol> {
        let read = self.init.iter().flat_map(|init| &init.relocations);
        read.map(|r| r.target).chain(self.unread.iter().copied())
    }
}

/// A source location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The place.
    pub span: SourceSpan,
    /// The function of the source that it belongs to.
    pub function: String,
    /// The call that was inlined.
    pub inlined_at: Option<LocId>,
    /// The debug location in the host's table, or the one that this is an inlined copy of.
    pub host: Option<u32>,
}

/// What a compilation knows beside the bodies: interned types and constants, symbols, locations
/// and facts.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// The target's layout.
    pub layout: Layout,
    /// Types.
    pub types: TypeTable,
    /// Constants.
    pub consts: ConstTable,
    /// Functions.
    pub functions: Arena<FuncId, Function>,
    /// Global variables.
    pub globals: Arena<GlobalId, Global>,
    /// Source locations.
    pub locations: Arena<LocId, Location>,
    /// Alias scopes.
    pub scopes: Arena<ScopeId, AliasScope>,
    /// Types of type-based alias analysis.
    pub tbaa_types: Arena<TbaaTypeId, TbaaType>,
    attrs: Arena<AttrsId, AttrSet>,
    attrs_ids: HashMap<AttrSet, AttrsId>,
    metas: Arena<MetaId, Meta>,
    metas_ids: HashMap<Meta, MetaId>,
    symbols: HashMap<String, Symbol>,
    /// Names that the host has given away, to symbols that are here and to others.
    taken: HashSet<String>,
    /// What the program states about functions of its own.
    pub(crate) stated: HashMap<FuncId, crate::known::Found>,
    /// Pointer variables in which the program stores fresh blocks only.
    pub(crate) own_blocks: HashSet<GlobalId>,
    /// What was stated of who uses the addresses of variables.
    pub(crate) given_away: HashMap<GlobalId, GivenAway>,
    /// Functions of the program that have the names of known ones.
    pub(crate) own: HashSet<FuncId>,
}

impl Unit {
    /// The id of a set of attributes, interned.
    pub fn intern_attrs(&mut self, set: AttrSet) -> AttrsId {
        if let Some(&id) = self.attrs_ids.get(&set) {
            return id;
        }
        let id = self.attrs.push(set.clone());
        self.attrs_ids.insert(set, id);
        id
    }
    /// The set of attributes behind `id`.
    pub fn attrs(&self, id: AttrsId) -> &AttrSet {
        &self.attrs[id]
    }
    /// The id of a set of attributes, if it was interned before.
    pub fn find_attrs(&self, set: &AttrSet) -> Option<AttrsId> {
        self.attrs_ids.get(set).copied()
    }
    /// All sets of attributes, in the order of interning.
    pub fn attr_sets(&self) -> impl DoubleEndedIterator<Item = (AttrsId, &AttrSet)> {
        self.attrs.iter()
    }
    /// The id of what is stated about an op, interned; `None` for nothing.
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
    /// What is stated behind `id`.
    pub fn meta(&self, id: MetaId) -> &Meta {
        &self.metas[id]
    }
    /// Adds a function under its name, which must be new.
    pub fn add_function(&mut self, function: Function) -> FuncId {
        let name = function.name.clone();
        let id = self.functions.push(function);
        self.symbols.insert(name, Symbol::Func(id));
        id
    }
    /// Adds a global variable under its name, which must be new.
    pub fn add_global(&mut self, global: Global) -> GlobalId {
        let name = global.name.clone();
        let id = self.globals.push(global);
        self.symbols.insert(name, Symbol::Global(id));
        id
    }
    /// The function or global of that name.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }
    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<FuncId> {
        match self.symbol(name) {
            Some(Symbol::Func(id)) => Some(id),
            _ => None,
        }
    }
    /// The function `name`, declared with type `ty` and attributes `attrs` where it is new.
    pub fn declare(&mut self, name: &str, ty: TypeId, attrs: AttrSet) -> FuncId {
        if let Some(id) = self.function(name) {
            return id;
        }
        self.add(name.to_string(), ty, attrs, Linkage::External, None)
    }
    /// Adds a function of our own with its body, under a name that must be new: C's calling convention,
    /// no attributes, no place in the source.
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
    /// Adds a text that stays as it is, without a zero at its end, under a name that must be new.
    pub fn add_text(&mut self, name: String, text: &str) -> GlobalId {
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
            unread: Vec::new(),
            room_bytes: 0,
            derived_from: None,
        })
    }
    /// Gives a function another symbol, which must be new. Functions of the host keep theirs.
    pub fn rename(&mut self, func: FuncId, name: String) {
        let old = std::mem::replace(&mut self.functions[func].name, name.clone());
        if self.symbols.get(&old) == Some(&Symbol::Func(func)) {
            self.symbols.remove(&old);
        }
        self.symbols.insert(name, Symbol::Func(func));
    }
    /// States which names the host has given away: the unit may hold a part of its symbols.
    pub fn take_names(&mut self, names: impl IntoIterator<Item = String>) {
        self.taken.extend(names);
    }
    /// A symbol that begins with `stem` and is not in use, here or in the host.
    pub fn fresh_name(&self, stem: &str) -> String {
        let is_free = |name: &str| !self.symbols.contains_key(name) && !self.taken.contains(name);
        let numbered = (1..).map(|n| format!("{stem}.{n}"));
        let mut names = std::iter::once(stem.to_string()).chain(numbered);
        names.find(|name| is_free(name)).unwrap_or_default()
    }
    /// The result type of a function type.
    pub fn result_type(&self, func_ty: TypeId) -> Option<TypeId> {
        match self.types.get(func_ty) {
            Type::Func { result, .. } => Some(*result),
            _ => None,
        }
    }
    /// The parameter types of a function type.
    pub fn param_types(&self, func_ty: TypeId) -> &[TypeId] {
        match self.types.get(func_ty) {
            Type::Func { params, .. } => params,
            _ => &[],
        }
    }
    /// An integer constant of type `ty`, cut to its width.
    pub fn int_const(&mut self, ty: TypeId, value: i128) -> crate::ConstId {
        let bits = self.types.int_bits(ty).unwrap_or(128).min(128);
        let mask = if bits == 128 {
            u128::MAX
        } else {
            (1u128 << bits) - 1
        };
        self.consts.intern(ty, ConstKind::Int(value as u128 & mask))
    }
    /// A floating-point constant of type `ty` (a scalar), rounded to its format. Formats without a
    /// Rust type (f16, bf16, x87, quad) are given for small dyadic numbers exactly.
    pub fn float_const(&mut self, ty: TypeId, value: f64) -> crate::ConstId {
        let kind = self.types.float_kind(ty).unwrap_or(FloatKind::F64);
        self.consts
            .intern(ty, ConstKind::Float(crate::consts::float_bits(kind, value)))
    }
    /// The constant behind `id`.
    pub fn constant(&self, id: crate::ConstId) -> &Const {
        self.consts.get(id)
    }
    /// The place of a location, that of the innermost source line.
    pub fn span(&self, loc: Option<LocId>) -> Option<SourceSpan> {
        let location = &self.locations[loc?];
        let mut span = location.span.clone();
        if span.is_of_system() {
            let callers =
                std::iter::successors(location.inlined_at, |at| self.locations[*at].inlined_at);
            let mut callers = callers.map(|at| &self.locations[at].span);
            let own = callers.find(|caller| !caller.is_of_system());
            span.called_at = own.cloned().map(Box::new);
        }
        Some(span)
    }
}

impl Unit {
    /// The function that a `call` or `invoke` calls directly.
    pub fn callee(&self, body: &Body, op: crate::Op) -> Option<FuncId> {
        body.kind(op).call_info()?;
        match self.constant(body.as_const(body.operand(op, 0))?).kind {
            ConstKind::Func(func) => Some(func),
            _ => None,
        }
    }
    /// The arguments of a `call` or `invoke`, without callee and bundle operands.
    pub fn call_args(&self, body: &Body, op: crate::Op) -> Vec<crate::Value> {
        let bundled: u32 = body
            .kind(op)
            .call_info()
            .map_or(0, |i| i.bundles.iter().map(|(_, n)| n).sum());
        let end = body.operand_count(op).saturating_sub(bundled as usize);
        body.operands(op).take(end).skip(1).collect()
    }
}
