//! Shadows of constants that are or contain addresses: null, functions, globals.

use crate::analysis::body_facts::BodyFacts;
use crate::emit::builder::{DerivativeBuilder, Lanes};
use gradus_ir::{
    ConstId, ConstKind, Diagnostic, Global, GlobalId, Initializer, Linkage, Symbol, Unit,
};
use std::collections::HashMap;

/// Returns the shadow of a constant per batch element. The shadow of a global's address is the same offset in
/// the shadow global. Null, functions and unspecified addresses are their own shadows. The rules apply
/// element-wise to vectors and structs; floats become zero.
///
/// # Errors
/// A constant that only the host understands.
pub fn shadow_constant(
    out: &mut DerivativeBuilder<'_>,
    facts: &BodyFacts<'_>,
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

fn in_lane(
    unit: &mut Unit,
    facts: &BodyFacts<'_>,
    forward: bool,
    id: ConstId,
    lane: usize,
) -> ConstId {
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

/// Returns the shadow of a global variable for one batch element. The shadow has the type of the variable and
/// is merged by the linker with the shadows in other modules. The initialiser holds zero for floats; pointers
/// point to the shadows of the variable's pointees, and constant globals are their own shadows. Tangents and
/// adjoints have separate shadows: a program may alternate between both modes.
pub fn shadow_global(unit: &mut Unit, global: GlobalId, forward: bool, lane: usize) -> GlobalId {
    let kind = if forward { "tangent" } else { "shadow" };
    let (shadow, fresh) = declare_companion(unit, global, kind, lane);
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
            let (of_target, fresh) = declare_companion(unit, target, kind, lane);
            relocation.target = Symbol::Global(of_target);
            pending.extend(fresh.then_some((target, of_target)));
        }
        if let Some(init) = &mut unit.globals[shadow].init {
            init.relocations = relocations;
        }
    }
    shadow
}

/// Returns the witness of a global variable, which holds the pointers that the shadow's pointers belong to ([`crate::shadow::pointer_witness`]).
/// The initialiser is that of the variable.
pub fn witness_global(unit: &mut Unit, global: GlobalId, forward: bool) -> GlobalId {
    let kind = if forward { "tangent_of" } else { "shadow_of" };
    let (witness, fresh) = declare_companion(unit, global, kind, 0);
    if fresh {
        let init = unit.globals[global].init.clone();
        let witness = &mut unit.globals[witness];
        witness.init = init.or(witness.init.take());
    }
    witness
}

/// Declares the companion global of a kind, initialised to zero. Returns the global, and true if it is new.
fn declare_companion(
    unit: &mut Unit,
    global: GlobalId,
    kind: &str,
    lane: usize,
) -> (GlobalId, bool) {
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
        unparsed_symbols: Vec::new(),
        room_bytes: 0,
        derived_from: Some(global),
        ..primal
    });
    (shadow, true)
}
