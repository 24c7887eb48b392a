//! BLAS routines of a program as registrations: bodies for analyses, and rules for derivatives.
//!
//! A routine is a declared function. During differentiation it has a body that calls the routine's body in the
//! host. Analyses read effects and types from the body, and derivatives of the body call the variants of core
//! routines, for which [`LibraryRules`] has rules. The bodies are removed before the export: the primal calls the
//! program's library.

use crate::requests::library_rules::{CoreRules, LibraryRules};
use gradus_ir::externals::BLAS_PREFIX;
use gradus_ir::{Attr, AttrValue, Body, Builder, CastOp, FuncId, Unit};
use gradus_llvm::prepare::blas::BlasRoutines;

/// Returns the functions that derivatives call or read, which must be imported.
pub(crate) fn functions(routines: &BlasRoutines) -> Vec<String> {
    let bodies = routines.bodies.iter().map(|one| one.body.clone());
    let rules = routines.rules.iter().flat_map(|rules| {
        [&rules.tangent, &rules.augmented, &rules.reverse]
            .into_iter()
            .cloned()
    });
    bodies.chain(rules).collect()
}

/// Returns the routines and core routines, which stay calls.
pub(crate) fn routines(routines: &BlasRoutines) -> Vec<String> {
    let declared = routines.bodies.iter().map(|one| one.function.clone());
    declared.collect()
}

/// Gives the routines their bodies, and returns the rules.
pub(crate) fn apply(routines: &BlasRoutines, unit: &mut Unit) -> LibraryRules {
    let mut library = LibraryRules::default();
    for one in &routines.bodies {
        let (Some(declared), Some(body)) = (unit.function(&one.function), unit.function(&one.body))
        else {
            // Not an error: no differentiated function reaches the routine.
            continue;
        };
        if unit.functions[declared].body.is_none() {
            let name = one.function.strip_prefix(BLAS_PREFIX);
            let name = name.unwrap_or(&one.function).to_string();
            unit.functions[declared].source_name = Some(name.clone());
            unit.functions[body].source_name = Some(name);
            call_body(unit, declared, body);
            keep_calls(unit, declared);
            library.bodies.push(declared);
        }
    }
    for one in &routines.rules {
        let find = |name: &String| unit.function(name);
        if let (Some(core), Some(tangent), Some(augmented), Some(reverse)) = (
            find(&one.core),
            find(&one.tangent),
            find(&one.augmented),
            find(&one.reverse),
        ) {
            let rules = CoreRules {
                tangent,
                augmented,
                reverse,
            };
            library.add(core, rules);
        }
    }
    library
}

/// Forbids inlining of a function: its calls stay calls of the library.
fn keep_calls(unit: &mut Unit, func: FuncId) {
    let mut attrs = unit.attrs(unit.functions[func].attrs).clone();
    if attrs.function("noinline").is_none() {
        attrs.function.push(Attr {
            name: "noinline".to_string(),
            value: AttrValue::Flag,
        });
    }
    let attrs = unit.intern_attrs(attrs);
    unit.functions[func].attrs = attrs;
}

/// Gives a declared function a body that calls another function with the leading parameters.
fn call_body(unit: &mut Unit, declared: FuncId, callee: FuncId) {
    let (own, taken) = (unit.functions[declared].ty, unit.functions[callee].ty);
    let params = unit.param_types(own).to_vec();
    let count = unit.param_types(taken).len();
    let result = unit.result_type(own).filter(|ty| !unit.types.is_void(*ty));
    let mut body = Body::new(&params);
    let args = body.params()[..count].to_vec();
    let mut build = Builder::new(unit, &mut body);
    let call = build.call(callee, &args);
    let returned = build.body.results(call).first().copied();
    let value = result.map(|ty| match returned {
        Some(value) => {
            let given = build.body.ty(value);
            let bits = |build: &Builder<'_>, ty| build.unit.types.int_bits(ty);
            match (bits(&build, given), bits(&build, ty)) {
                (Some(from), Some(to)) if from > to => build.cast(CastOp::Trunc, value, ty),
                (Some(from), Some(to)) if from < to => build.cast(CastOp::SExt, value, ty),
                _ => value,
            }
        }
        None => build.zero(ty),
    });
    build.return_(value);
    unit.functions[declared].body = Some(Box::new(body));
}
