//! Shadows of constants that are or hold addresses: null, functions, globals.

use crate::facts::Facts;
use crate::out::{Lanes, Out};
use gradus_ir::{
    ConstId, ConstKind, Diagnostic, Global, GlobalId, Initializer, Linkage, Symbol, Unit,
};
use std::collections::HashMap;

/// The shadows of a constant: that of a global's address is the same place of its shadow global; null,
/// functions and unspecified addresses are their own shadows. Of vectors and structures that is so part by
/// part, and numbers in them have none.
///
/// # Errors
/// A constant that only the host understands.
pub fn shadow_constant(
    out: &mut Out<'_>,
    facts: &Facts<'_>,
    forward: bool,
    id: ConstId,
) -> Result<Lanes, Diagnostic> {
    let mut lanes = Lanes::new();
    for lane in 0..facts.width {
        let shadow = in_lane(out.unit, facts, forward, id, lane);
        lanes.push(out.body.constant(out.unit, shadow));
    }
    Ok(lanes)
}

fn in_lane(unit: &mut Unit, facts: &Facts<'_>, forward: bool, id: ConstId, lane: usize) -> ConstId {
    let mut made: HashMap<ConstId, ConstId> = HashMap::new();
    let mut work = vec![id];
    while let Some(&top) = work.last() {
        let constant = unit.constant(top).clone();
        let shadow = match constant.kind {
            ConstKind::Aggregate(parts) => {
                let before = work.len();
                work.extend(parts.iter().filter(|part| !made.contains_key(part)));
                if work.len() > before {
                    continue;
                }
                let parts = parts.iter().map(|part| made[part]).collect();
                (unit.consts).intern(constant.ty, ConstKind::Aggregate(parts))
            }
            ConstKind::Global { global, offset } if top == id || facts.is_shadowed(global) => {
                let global = shadow_global(unit, global, forward, lane);
                (unit.consts).intern(constant.ty, ConstKind::Global { global, offset })
            }
            ConstKind::Float(_) => unit.consts.intern(constant.ty, ConstKind::Float(0)),
            _ => top,
        };
        made.insert(top, shadow);
        work.pop();
    }
    made[&id]
}

/// The shadow of a global variable in a lane: of the same type, merged with those of other modules
/// that differentiate uses of the same variable. At start-up numbers in it are zero, and pointers
/// point to the shadows of what the variable's own point to; what never changes is its own shadow.
/// Tangents and adjoints have memory of their own: a program may use both modes in turn.
pub fn shadow_global(unit: &mut Unit, global: GlobalId, forward: bool, lane: usize) -> GlobalId {
    let kind = if forward { "tangent" } else { "shadow" };
    let (shadow, fresh) = declare(unit, global, kind, lane);
    let mut pending = Vec::from_iter(fresh.then_some((global, shadow)));
    while let Some((primal, shadow)) = pending.pop() {
        let stated = unit.globals[primal].init.as_ref();
        let mut relocations = stated
            .map(|init| init.relocations.clone())
            .unwrap_or_default();
        for relocation in &mut relocations {
            let Symbol::Global(target) = relocation.target else {
                continue;
            };
            if unit.globals[target].constant {
                continue;
            }
            let (of_target, fresh) = declare(unit, target, kind, lane);
            relocation.target = Symbol::Global(of_target);
            pending.extend(fresh.then_some((target, of_target)));
        }
        if let Some(init) = &mut unit.globals[shadow].init {
            init.relocations = relocations;
        }
    }
    shadow
}

/// The witness of a global variable: it holds the pointers that the shadow's pointers belong to
/// (`kept_pointers`). At start-up it holds what the variable holds.
pub fn witness_global(unit: &mut Unit, global: GlobalId, forward: bool) -> GlobalId {
    let kind = if forward { "tangent_of" } else { "shadow_of" };
    let (witness, fresh) = declare(unit, global, kind, 0);
    if fresh {
        let init = unit.globals[global].init.clone();
        let witness = &mut unit.globals[witness];
        witness.init = init.or(witness.init.take());
    }
    witness
}

/// The global of a kind that stands beside another, zero all over, and whether it is new.
fn declare(unit: &mut Unit, global: GlobalId, kind: &str, lane: usize) -> (GlobalId, bool) {
    let primal = unit.globals[global].clone();
    let name = match lane {
        0 => format!("__gradus1_{kind}_{}", primal.name),
        _ => format!("__gradus1_{kind}{lane}_{}", primal.name),
    };
    if let Some(Symbol::Global(id)) = unit.symbol(&name) {
        return (id, false);
    }
    let bytes = unit.layout.size_bytes(unit, primal.ty) as usize;
    let linkage = match primal.linkage {
        Linkage::Internal => Linkage::Internal,
        _ => Linkage::LinkOnceOdr,
    };
    let shadow = unit.add_global(Global {
        name,
        constant: false,
        linkage,
        defined: true,
        init: Some(Initializer {
            bytes: vec![0; bytes],
            relocations: Vec::new(),
        }),
        unread: Vec::new(),
        room_bytes: 0,
        derived_from: Some(global),
        ..primal
    });
    (shadow, true)
}
