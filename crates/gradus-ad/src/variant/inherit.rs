//! Attributes that a derivative inherits from its primal.
//!
//! *Permissions* (attributes that allow the optimiser more) are dropped unless listed here; *restrictions*
//! are preserved. String attributes (`no-builtins`, `target-cpu`, `denormal-fp-math`, `frame-pointer` …)
//! restrict or describe the target and are preserved. Fast-math attributes are dropped: a promise of finite
//! values would make `sqrt'(0) = ∞` poison.

use crate::variant::{ParamRole, Variant};
use gradus_ir::{Attr, AttrSet, AttrValue, FuncId, Unit};

/// Restricting function attributes, by LLVM's names.
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

/// String attributes that promise properties of primal floats only.
const FAST_MATH_PROMISES: &[&str] = &[
    "no-infs-fp-math",
    "no-nans-fp-math",
    "no-signed-zeros-fp-math",
    "unsafe-fp-math",
    "approx-func-fp-math",
];

/// Parameter attributes of the calling convention.
const CONVENTION: &[&str] = &["signext", "zeroext", "inreg", "noext"];

/// Cost threshold up to which LLVM's inliner inlines derivatives. After inlining, LLVM merges the primal
/// parts of several derivatives at one point, as in the rows of a Jacobian.
const INLINE_THRESHOLD: u32 = 6000;

/// Sets the attributes of the derivative `func`.
pub fn attributes(unit: &mut Unit, variant: &Variant, func: FuncId) {
    let primal = unit.attrs(unit.functions[variant.func].attrs).clone();
    let signature = variant.signature(unit);
    let mut set = AttrSet::default();
    set.function = primal
        .function
        .iter()
        .filter(|a| is_inherited(a))
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

fn is_inherited(attr: &Attr) -> bool {
    match attr.value {
        AttrValue::Text(_) => !FAST_MATH_PROMISES.contains(&attr.name.as_str()),
        _ => RESTRICTIONS.contains(&attr.name.as_str()),
    }
}
