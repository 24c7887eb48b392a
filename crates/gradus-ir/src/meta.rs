//! What the host stated about single accesses: type-based alias tags, alias scopes, and metadata
//! that only the host understands.

use crate::{ScopeId, TbaaTypeId};

/// A type of type-based alias analysis: a scalar type has its parent as only member, at offset 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TbaaType {
    /// The front end's name for it (`double`, `any pointer`, a structure's name …).
    pub name: String,
    /// Bytes from the start, and the type that lies there; empty for a root.
    pub members: Vec<(u64, TbaaTypeId)>,
    /// The metadata node in the host's table, where it came from there.
    pub host: Option<u32>,
}

/// The tag of one access: the member of type `access` that lies `offset_bytes` into `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TbaaTag {
    /// The outermost type.
    pub base: TbaaTypeId,
    /// The type accessed.
    pub access: TbaaTypeId,
    /// Bytes from the start of `base`.
    pub offset_bytes: u64,
    /// Whether the memory never changes.
    pub constant: bool,
}

/// What a copy of bytes moves at one place, as the front end names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopiedMember {
    /// Bytes from the start of the copy.
    pub offset_bytes: u64,
    /// Its size.
    pub size_bytes: u64,
    /// What lies there: one of it, or several side by side.
    pub tag: TbaaTag,
}

/// A set of accesses about which disjointness is stated (`!alias.scope`, `!noalias`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasScope {
    /// A name for readers.
    pub name: String,
    /// Scopes of one domain speak of each other.
    pub domain: String,
    /// The metadata node in the host's table, where it came from there.
    pub host: Option<u32>,
}

/// What is stated about one op.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Meta {
    /// The type-based alias tag of the access.
    pub tbaa: Option<TbaaTag>,
    /// The members of the structure that a copy of bytes moves; what none of them covers is padding. Empty where
    /// the front end does not say.
    pub copied: Vec<CopiedMember>,
    /// The scopes that the access belongs to, sorted.
    pub alias_scopes: Vec<ScopeId>,
    /// The scopes whose accesses this one never meets, sorted.
    pub noalias: Vec<ScopeId>,
    /// Further metadata: kind and number in the host's table, sorted by kind.
    pub host: Vec<(String, u32)>,
}
