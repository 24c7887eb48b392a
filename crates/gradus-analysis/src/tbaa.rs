//! Type-based alias analysis on struct-path tags, and disjointness stated by alias scopes.
//!
//! The rules are LLVM's (`TypeBasedAliasAnalysis`, `ScopedNoAliasAA`): two tags may alias if the base
//! type of one, entered at its offset, leads to the base type of the other at the same offset, or if
//! one accesses a whole type that both have in common.

use gradus_ir::{ScopeId, TbaaTag, TbaaTypeId, Unit};

/// A bound of the walk through types, which the front end nests far less deeply.
const MAX_STEPS: usize = 256;

/// Whether accesses with these tags may meet.
pub(crate) fn may_alias(unit: &Unit, a: &TbaaTag, b: &TbaaTag) -> bool {
    if a == b {
        return true;
    }
    let Some(common) = least_common(unit, a.access, b.access) else {
        return true;
    };
    part_of(unit, a, b, common)
        .or_else(|| part_of(unit, b, a, common))
        .unwrap_or(false)
}

fn parent(unit: &Unit, ty: TbaaTypeId) -> Option<TbaaTypeId> {
    unit.tbaa_types[ty].members.first().map(|(_, ty)| *ty)
}

/// The nearest type that both stand under; `None` for types of different trees.
fn least_common(unit: &Unit, a: TbaaTypeId, b: TbaaTypeId) -> Option<TbaaTypeId> {
    let chain = |ty| std::iter::successors(Some(ty), |ty| parent(unit, *ty)).take(MAX_STEPS);
    let above: Vec<TbaaTypeId> = chain(a).collect();
    chain(b).find(|ty| above.contains(ty))
}

/// Whether `part` may be an access to something inside `whole`: `None` where the walk through the
/// types of `whole` never meets that of `part`.
fn part_of(unit: &Unit, whole: &TbaaTag, part: &TbaaTag, common: TbaaTypeId) -> Option<bool> {
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

/// Whether accesses that belong to `scopes` may meet one that states `noalias`: they do not if all
/// of a domain's scopes are excluded.
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
