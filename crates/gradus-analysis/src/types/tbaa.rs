//! Type-based alias analysis on struct-path tags, and disjointness from alias scopes.
//!
//! The rules are LLVM's (`TypeBasedAliasAnalysis`, `ScopedNoAliasAA`). Two tags may alias if the base type
//! of one tag, entered at its offset, contains the base type of the second tag at an equal offset. Two tags
//! also may alias if one accesses a whole type common to both.

use gradus_ir::{ScopeId, TbaaTag, TbaaTypeId, Unit};

/// Bound of the walk through types; front ends nest far less deeply.
const MAX_STEPS: usize = 256;

/// Returns true if accesses with these tags may alias.
pub(crate) fn may_alias(unit: &Unit, a: &TbaaTag, b: &TbaaTag) -> bool {
    if a == b {
        return true;
    }
    let Some(common) = least_common(unit, a.access, b.access) else {
        return true;
    };
    may_access_member(unit, a, b, common)
        .or_else(|| may_access_member(unit, b, a, common))
        .unwrap_or(false)
}

fn parent(unit: &Unit, ty: TbaaTypeId) -> Option<TbaaTypeId> {
    unit.tbaa_types[ty].members.first().map(|(_, ty)| *ty)
}

/// Returns the nearest common ancestor of two types; `None` for types of different trees.
fn least_common(unit: &Unit, a: TbaaTypeId, b: TbaaTypeId) -> Option<TbaaTypeId> {
    let chain = |ty| std::iter::successors(Some(ty), |ty| parent(unit, *ty)).take(MAX_STEPS);
    // Chains have few types: a second walk is faster than a list.
    chain(b).find(|ty| chain(a).any(|above| above == *ty))
}

/// Returns true if `part` may access a member inside `whole`. Returns `None` if the walk through the types
/// of `whole` never reaches the type of `part`.
fn may_access_member(
    unit: &Unit,
    whole: &TbaaTag,
    part: &TbaaTag,
    common: TbaaTypeId,
) -> Option<bool> {
    if whole.access == whole.base && whole.access == common {
        return Some(true);
    }
    let (mut ty, mut offset) = (whole.base, whole.offset_bytes);
    for _ in 0..MAX_STEPS {
        if ty == part.base {
            return Some(
                offset == part.offset_bytes || ty == whole.access || part.base == part.access,
            );
        }
        let members = &unit.tbaa_types[ty].members;
        let &(start, member) = members.iter().rev().find(|(start, _)| *start <= offset)?;
        (ty, offset) = (member, offset - start);
    }
    Some(true)
}

/// Returns true if accesses in `scopes` may alias an access with `noalias`. Both are disjoint if `noalias`
/// excludes all scopes of a domain.
pub(crate) fn may_alias_in_scopes(
    unit: &Unit,
    scopes: &[ScopeId],
    noalias: &[ScopeId],
    usable: impl Fn(ScopeId) -> bool,
) -> bool {
    noalias.iter().all(|&excluded| {
        let domain = &unit.scopes[excluded].domain;
        let mut mine = scopes
            .iter()
            .filter(|&&scope| unit.scopes[scope].domain == *domain)
            .peekable();
        mine.peek().is_none() || !mine.all(|&scope| usable(scope) && noalias.contains(&scope))
    })
}
