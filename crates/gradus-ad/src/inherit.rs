//! What a derivative inherits from its primal's attributes.
//!
//! *Permissions* (what lets the optimiser do more) are dropped unless listed here; *restrictions*
//! are kept. String attributes (`no-builtins`, `target-cpu`, `denormal-fp-math`, `frame-pointer` …)
//! restrict or describe the target and are kept, except the fast-math ones, which promise that
//! values are never infinite or not a number: `sqrt'(0) = ∞` would become poison.

use crate::variant::{ParamRole, Variant};
use gradus_ir::{Attr, AttrSet, AttrValue, FuncId, Unit};

/// Function attributes that restrict, by LLVM's names.
const RESTRICTIONS: &[&str] = &[
    "nobuiltin",
    "noinline",
    "null_pointer_is_valid",
    "convergent",
    "nomerge",
    "sanitize_address",
    "sanitize_hwaddress",
    "sanitize_memory",
    "sanitize_memtag",
    "sanitize_thread",
    "sanitize_realtime",
    "sanitize_type",
    "uwtable",
    "nounwind",
    "ssp",
    "sspreq",
    "sspstrong",
    "safestack",
    "shadowcallstack",
    "speculative_load_hardening",
    "noimplicitfloat",
    "noredzone",
    "optforfuzzing",
];

/// String attributes that promise something of the primal's numbers alone.
const PROMISES: &[&str] = &[
    "no-infs-fp-math",
    "no-nans-fp-math",
    "no-signed-zeros-fp-math",
    "unsafe-fp-math",
    "approx-func-fp-math",
];

/// Parameter attributes that belong to the way an argument is passed.
const CONVENTION: &[&str] = &["signext", "zeroext", "inreg", "noext"];

/// LLVM's inliner takes derivatives of up to this cost into their callers: their primal parts are
/// then merged where several derivatives are taken at one point, as for the rows of a Jacobian.
const INLINE_THRESHOLD: u32 = 6000;

/// Gives the derivative `func` its attributes.
pub fn attributes(unit: &mut Unit, variant: &Variant, func: FuncId) {
    let primal = unit.attrs(unit.functions[variant.func].attrs).clone();
    let signature = variant.signature(unit);
    let mut set = AttrSet::default();
    set.function = primal
        .function
        .iter()
        .filter(|a| keeps_function(a))
        .cloned()
        .collect();
    set.function.push(Attr {
        name: "function-inline-threshold".to_string(),
        value: AttrValue::Text(INLINE_THRESHOLD.to_string()),
    });
    for (role, _) in &signature.params {
        let attrs = match role {
            ParamRole::Primal(number) => primal.params.get(*number),
            _ => None,
        };
        let kept = attrs.map_or(Vec::new(), |list| {
            list.iter()
                .filter(|a| CONVENTION.contains(&a.name.as_str()))
                .cloned()
                .collect()
        });
        set.params.push(kept);
    }
    let attrs = unit.intern_attrs(set);
    unit.functions[func].attrs = attrs;
}

fn keeps_function(attr: &Attr) -> bool {
    match attr.value {
        AttrValue::Text(_) => !PROMISES.contains(&attr.name.as_str()),
        _ => RESTRICTIONS.contains(&attr.name.as_str()),
    }
}
