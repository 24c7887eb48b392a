//! Outlining: attaches alias scopes to memory accesses before a region becomes a function.
//!
//! An outlined region receives the addresses of heap blocks, stack slots, `noalias` arguments and globals as
//! plain pointers, and nothing distinguishes two pointer arguments. Each access therefore lists the objects it
//! may touch (`alias.scope`, one scope per object) and the objects it never touches (`noalias`), from points-to
//! sets of the function before outlining. LLVM's vectorisers read both lists.
//!
//! Two distinct objects never share memory, on any thread. The lists say nothing about accesses of concurrent
//! threads: locks, atomics and calls get no list.

use gradus_analysis::{Alias, AliasOptions, Effects, Object, ObjectId, UNKNOWN};
use gradus_ir::{AliasScope, Body, FuncId, Op, OpKind, Region, ScopeId, Unit, Value};
use std::collections::{HashMap, HashSet};

/// Functions with more shared objects get no scopes: the lists would be long.
const OBJECTS_MAX: usize = 64;

/// A memory access and the objects the access may touch.
struct ObjectAccess {
    op: Op,
    objects: Vec<ObjectId>,
}

/// Attaches alias scopes and `noalias` lists to the accesses in regions of `body`.
pub(crate) fn attach_alias_scopes(
    unit: &mut Unit,
    func: FuncId,
    body: &mut Body,
    effects: &Effects,
) {
    let alias = Alias::new(unit, Some(func), body, effects, &AliasOptions::default());
    let touches: Vec<ObjectAccess> = body
        .walk(body.root())
        .filter(|op| body.enclosing_strand(*op) != body.root())
        .filter_map(|op| {
            let targets = alias
                .points_to
                .targets(body, plain_access_address(body, op)?);
            let mut objects: Vec<ObjectId> = targets.iter().map(|t| t.object).collect();
            objects.sort_unstable();
            objects.dedup();
            (!objects.is_empty()).then_some(ObjectAccess { op, objects })
        })
        .collect();
    let shared = objects_shared_by_strands(body, &alias, &touches);
    if shared.len() < 2 || shared.len() > OBJECTS_MAX {
        return;
    }
    let meets = |touch: &ObjectAccess, object: ObjectId| {
        let mut own = touch.objects.iter();
        own.any(|mine| alias.objects_may_alias(*mine, object, false))
    };
    let statements: Vec<(Op, Vec<ObjectId>, Vec<ObjectId>)> = touches
        .iter()
        .map(|touch| {
            let whole = touch.objects.iter().all(|o| shared.contains(o));
            let keeps_to = if whole {
                touch.objects.clone()
            } else {
                Vec::new()
            };
            let never = shared.iter().copied().filter(|o| !meets(touch, *o));
            (touch.op, keeps_to, never.collect())
        })
        .collect();
    let domain = format!("memory of {}", unit.functions[func].name);
    let scope = |(number, object): (usize, &ObjectId)| {
        let scope = AliasScope {
            name: format!("object {number}"),
            domain: domain.clone(),
            host: None,
        };
        (*object, unit.scopes.push(scope))
    };
    let scopes: HashMap<ObjectId, ScopeId> = shared.iter().enumerate().map(scope).collect();
    for (op, keeps_to, never) in statements {
        let mut meta = body.ops[op]
            .meta
            .map_or_else(Default::default, |id| unit.meta(id).clone());
        meta.alias_scopes.extend(keeps_to.iter().map(|o| scopes[o]));
        meta.noalias.extend(never.iter().map(|o| scopes[o]));
        meta.alias_scopes.sort_unstable();
        meta.noalias.sort_unstable();
        body.ops[op].meta = unit.intern_meta(meta);
    }
}

/// Returns the address of a plain load or store.
fn plain_access_address(body: &Body, op: Op) -> Option<Value> {
    match body.kind(op) {
        OpKind::Load(access) if access.is_plain() => Some(body.operand(op, 0)),
        OpKind::Store(access) if access.is_plain() => Some(body.operand(op, 1)),
        _ => None,
    }
}

/// Returns the objects accessed in a strand different from the allocating strand, sorted. The remaining objects
/// are distinguished at the allocation.
fn objects_shared_by_strands(
    body: &Body,
    alias: &Alias<'_>,
    touches: &[ObjectAccess],
) -> Vec<ObjectId> {
    let home = |object: ObjectId| -> Option<Region> {
        match alias.points_to.object(object) {
            Object::Stack(op) | Object::Heap(op) => Some(body.enclosing_strand(op)),
            Object::Param(_) | Object::Global(_) => Some(body.root()),
            Object::Unknown | Object::Code(_) => None,
        }
    };
    let mut found = HashSet::new();
    for touch in touches {
        let strand = body.enclosing_strand(touch.op);
        let foreign = |object: &&ObjectId| {
            **object != UNKNOWN && home(**object).is_some_and(|home| home != strand)
        };
        found.extend(touch.objects.iter().filter(foreign));
    }
    let mut found: Vec<ObjectId> = found.into_iter().collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_analysis::CallGraph;
    use gradus_ir::parse;

    /// Returns, for each access in the region of a test program, the number of scopes and the number of
    /// `noalias` entries.
    fn scope_counts(before: &str) -> Vec<(usize, usize)> {
        let text = format!(
            "declare @malloc(i64) -> ptr
             declare @keep(ptr)
             func @f(%p: ptr, %n: i64) {{
               %a = call @malloc(%n) {before}
               par.for %i < %n {{
                 %x = addr f64, %a, %i %y = addr f64, %b, %i %z = addr f64, %p, %i
                 %v = load %x -> f64 store %v, %y store %v, %z
                 %own = alloca private f64, i32 1 store %v, %own
                 %l = load monotonic align 8 %x -> i64
                 yield }}
               return }}"
        );
        let mut unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let f = unit.function("f").expect("it is there");
        let effects = Effects::of(&unit, &CallGraph::of(&unit, &[f]));
        let mut body = unit.functions[f].body.take().expect("it has code");
        attach_alias_scopes(&mut unit, f, &mut body, &effects);
        let is_access = |op: &Op| {
            matches!(body.kind(*op), OpKind::Load(_) | OpKind::Store(_))
                && body.enclosing_strand(*op) != body.root()
        };
        let accesses = body.walk(body.root()).filter(is_access);
        let counts = accesses.map(|op| {
            let meta = body.ops[op].meta.map(|id| unit.meta(id));
            meta.map_or((0, 0), |m| (m.alias_scopes.len(), m.noalias.len()))
        });
        counts.collect()
    }

    #[test]
    fn blocks_do_not_alias_arguments() {
        // Three objects: two blocks and the argument's. The iteration's private slot is no shared object, and
        // an atomic access gets no list.
        let apart = (1, 2);
        assert_eq!(
            scope_counts("%b = call @malloc(%n)"),
            [apart, apart, apart, (0, 3), (0, 0)]
        );
    }

    #[test]
    fn loaded_pointer_may_alias_escaped() {
        let apart = (1, 1);
        assert_eq!(
            scope_counts("%b = load %p -> ptr"),
            [apart, (0, 1), apart, (0, 2), (0, 0)]
        );
        assert_eq!(
            scope_counts("call @keep(%a) %b = load %p -> ptr"),
            [apart, (0, 0), apart, (0, 2), (0, 0)]
        );
    }
}
