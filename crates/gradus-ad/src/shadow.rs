//! Shadows of addresses that are constants: null, functions, globals.

use crate::facts::Facts;
use crate::out::{Lanes, Out};
use gradus_ir::{ConstId, ConstKind, Diagnostic, Global, GlobalId, Initializer, Linkage, Unit};

/// The shadows of a constant pointer: that of a global is the same place of its shadow global;
/// null, functions and unspecified addresses are their own shadows.
///
/// # Errors
/// A constant that only the host understands.
pub fn shadow_constant(
    out: &mut Out<'_>,
    facts: &Facts<'_>,
    id: ConstId,
) -> Result<Lanes, Diagnostic> {
    let constant = out.unit.constant(id).clone();
    let mut lanes = Lanes::new();
    for lane in 0..facts.width {
        let shadow = match constant.kind {
            ConstKind::Global { global, offset } => {
                let global = shadow_global(out.unit, global, lane);
                out.unit
                    .consts
                    .intern(constant.ty, ConstKind::Global { global, offset })
            }
            _ => id,
        };
        lanes.push(out.body.constant(out.unit, shadow));
    }
    Ok(lanes)
}

/// The shadow of a global variable in a lane: of the same type, zero at start-up, merged with those
/// of other modules that differentiate uses of the same variable.
pub fn shadow_global(unit: &mut Unit, global: GlobalId, lane: usize) -> GlobalId {
    let primal = unit.globals[global].clone();
    let name = match lane {
        0 => format!("__gradus1_shadow_{}", primal.name),
        _ => format!("__gradus1_shadow{lane}_{}", primal.name),
    };
    if let Some(gradus_ir::Symbol::Global(id)) = unit.symbol(&name) {
        return id;
    }
    let bytes = unit.layout.size_bytes(unit, primal.ty) as usize;
    let linkage = match primal.linkage {
        Linkage::Internal => Linkage::Internal,
        _ => Linkage::LinkOnceOdr,
    };
    unit.add_global(Global {
        name,
        constant: false,
        linkage,
        defined: false,
        init: Some(Initializer {
            bytes: vec![0; bytes],
            relocations: Vec::new(),
        }),
        derived_from: Some(global),
        ..primal
    })
}
