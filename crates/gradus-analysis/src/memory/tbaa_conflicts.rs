//! TBAA conflicts: memory that a program reuses with a different type, for example blocks of its own pool.
//!
//! TBAA assumes that memory keeps its type. For allocated memory, C and C++ let a store change the type. An
//! optimiser tolerates the difference, because it moves accesses only locally. A reverse pass reads memory
//! long after the original access. Tags therefore count only for memory without contradictions: no two
//! accesses to common bytes of an alias set have tags that claim no alias.

use crate::call_graph::CallGraph;
use crate::points_to::alias_sets::{AliasSetId, AliasSets};
use crate::types::tbaa;
use gradus_ir::{Body, FuncId, Op, OpKind, TbaaTag, Unit, Value};
use std::collections::{HashMap, HashSet};

/// The alias sets that a call graph uses with conflicting types.
#[derive(Clone, Debug, Default)]
pub struct TbaaConflicts {
    classes: HashSet<AliasSetId>,
}

/// Offset in bytes, size in bytes and TBAA tag of an access.
type Tagged = (i64, i64, TbaaTag);

impl TbaaConflicts {
    /// Scans all accesses of a call graph.
    pub fn of(unit: &Unit, closure: &CallGraph, memory: &AliasSets) -> TbaaConflicts {
        let mut by_class: HashMap<AliasSetId, HashSet<Tagged>> = HashMap::new();
        for &func in closure.functions() {
            let Some(body) = unit.functions[func].body.as_deref() else {
                continue;
            };
            for op in body.walk(body.root()) {
                let Some((ptr, bytes, tag)) = tagged_access(unit, body, op) else {
                    continue;
                };
                for place in memory.targets(func, ptr) {
                    let offset = memory.get(place.class).normalize_offset(place.offset_bytes);
                    let all = by_class.entry(place.class).or_default();
                    all.insert((offset, bytes, tag));
                }
            }
        }
        let several = |(class, all): (AliasSetId, HashSet<Tagged>)| {
            let all: Vec<Tagged> = all.into_iter().collect();
            let set = memory.get(class);
            let contradicts = |(i, a): (usize, &Tagged)| {
                let mut others = all[i + 1..].iter();
                others.any(|b| {
                    set.may_overlap((a.0, a.1), (b.0, b.1)) && !tbaa::may_alias(unit, &a.2, &b.2)
                })
            };
            all.iter().enumerate().any(contradicts).then_some(class)
        };
        TbaaConflicts {
            classes: by_class.into_iter().filter_map(several).collect(),
        }
    }

    /// Returns the accesses of a body to memory with conflicting types.
    pub fn accesses(
        &self,
        unit: &Unit,
        memory: &AliasSets,
        func: FuncId,
        body: &Body,
    ) -> HashSet<Op> {
        let is_retyped = |op: &Op| {
            let conflicts = |class| self.classes.contains(&class);
            tagged_access(unit, body, *op)
                .is_some_and(|(ptr, ..)| memory.may_point_into(func, ptr, conflicts))
        };
        body.walk(body.root()).filter(is_retyped).collect()
    }
}

/// Returns the pointer, the size in bytes and the tag of an access.
fn tagged_access(unit: &Unit, body: &Body, op: Op) -> Option<(Value, i64, TbaaTag)> {
    let (pointer, ty) = match body.kind(op) {
        OpKind::Load(_) => (0, body.ty(body.result(op))),
        OpKind::Store(_) => (1, body.ty(body.operand(op, 0))),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => (0, body.ty(body.operand(op, 1))),
        _ => return None,
    };
    let tag = unit.meta(body.ops[op].meta?).tbaa?;
    let bytes = unit.layout.size_bytes(unit, ty) as i64;
    Some((body.operand(op, pointer), bytes, tag))
}
