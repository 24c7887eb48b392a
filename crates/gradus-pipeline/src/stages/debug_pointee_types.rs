//! Pointee types of parameters from debug information, if floats: `const double *x`.
//!
//! Flow: import → the attribute [`POINTEE_ATTR`] of parameters → type analysis. The attribute is the weakest
//! type evidence: it counts only if nothing else determines the type of the memory.

use gradus_ir::{Attr, AttrValue, FloatKind, FuncId, POINTEE_ATTR, Type, Unit};
use gradus_llvm::Host;

/// Declares the pointee types of all functions with bodies.
pub(crate) fn declare(host: &Host, unit: &mut Unit) {
    let functions: Vec<FuncId> = unit.functions.ids().collect();
    for func in functions {
        if unit.functions[func].body.is_some() {
            of_function(host, unit, func);
        }
    }
}

/// Declares the pointee types of a function. Spellings count only if source and function have equally many
/// parameters.
fn of_function(host: &Host, unit: &mut Unit, func: FuncId) {
    let function = &unit.functions[func];
    let spellings = host.c_types(&function.name);
    let params = unit.param_types(function.ty).to_vec();
    if spellings.len() != params.len() + 1 {
        return;
    }
    let mut attrs = unit.attrs(function.attrs).clone();
    let mut found = false;
    for (index, (ty, spelling)) in params.into_iter().zip(&spellings[1..]).enumerate() {
        let pointer = matches!(unit.types.get(ty), Type::Ptr(_));
        let kind = spelling.as_deref().and_then(pointee).filter(|_| pointer);
        let Some(kind) = kind else { continue };
        if attrs.params.len() <= index {
            attrs.params.resize(index + 1, Vec::new());
        }
        attrs.params[index].push(Attr {
            name: POINTEE_ATTR.into(),
            value: AttrValue::Type(unit.types.float(kind)),
        });
        found = true;
    }
    if found {
        unit.functions[func].attrs = unit.intern_attrs(attrs);
    }
}

/// Returns the float type that a C spelling of a pointer type points to.
fn pointee(spelling: &str) -> Option<FloatKind> {
    let inner = spelling.strip_suffix('*')?.trim_end();
    match inner.strip_prefix("const ").unwrap_or(inner) {
        "double" => Some(FloatKind::F64),
        "float" => Some(FloatKind::F32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pointers_to_numbers_count() {
        let spellings = [
            "double *",
            "const float *",
            "double **",
            "double",
            "long *",
            "void *",
        ];
        let kinds = spellings.map(pointee);
        let expected = [
            Some(FloatKind::F64),
            Some(FloatKind::F32),
            None,
            None,
            None,
            None,
        ];
        assert_eq!(kinds, expected);
    }
}
