//! Metadata of single accesses, as stated by the host: TBAA tags, alias scopes, and metadata opaque to
//! Gradus.

use crate::{ScopeId, TbaaTypeId};

/// A TBAA type. A scalar type has one member, the parent type at offset 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TbaaType {
    /// The front end's name (`double`, `any pointer`, a structure's name …).
    pub name: String,
    /// Members: (offset in bytes, type); empty for a root.
    pub members: Vec<(u64, TbaaTypeId)>,
    /// The metadata node in the host's table, for imported types.
    pub host: Option<u32>,
}

/// The TBAA tag of one access: the member of type `access` at `offset_bytes` in `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TbaaTag {
    /// The outermost type.
    pub base: TbaaTypeId,
    /// The type accessed.
    pub access: TbaaTypeId,
    /// The offset from the start of `base`, in bytes.
    pub offset_bytes: u64,
    /// True if the memory is never written (TBAA's constant bit).
    pub constant: bool,
}

/// One member moved by a memcpy (`!tbaa.struct`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TbaaStructMember {
    /// The offset from the start of the copy, in bytes.
    pub offset_bytes: u64,
    /// The member's size in bytes.
    pub size_bytes: u64,
    /// The member's tag; the member is one element or several adjacent elements.
    pub tag: TbaaTag,
}

/// An alias scope: a set of accesses with stated disjointness (`!alias.scope`, `!noalias`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasScope {
    /// The printed name.
    pub name: String,
    /// The domain. Disjointness holds between scopes of one domain only.
    pub domain: String,
    /// The metadata node in the host's table, for imported scopes.
    pub host: Option<u32>,
}

/// The metadata of one op.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Meta {
    /// The TBAA tag of the access.
    pub tbaa: Option<TbaaTag>,
    /// Members of the structure moved by a memcpy; uncovered bytes are padding. Empty if the front end states
    /// no members.
    pub tbaa_struct: Vec<TbaaStructMember>,
    /// The scopes that the access belongs to, sorted.
    pub alias_scopes: Vec<ScopeId>,
    /// The scopes with accesses disjoint from this access, sorted.
    pub noalias: Vec<ScopeId>,
    /// Opaque metadata: kind and index in the host's table, sorted by kind.
    pub host: Vec<(String, u32)>,
}
