//! The C header of derivatives: prototypes, structures of results, and contracts for callers.

use super::c_names;
use crate::requests::source_arguments;
use crate::wire::reply::{Argument, Derivative, Descriptor, DescriptorKind, Role};
use crate::wire::request::Mode;
use gradus_ir::{FloatKind, FuncId, Type, TypeId, Unit};
use gradus_llvm::host::symbols::ArrayDescriptor;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The spelling of a Fortran descriptor's type (`ISO_Fortran_binding.h`).
const DESCRIPTOR: &str = "CFI_cdesc_t *";

/// The C types of a function's result and arguments, from debug information.
#[derive(Clone, Debug, Default)]
pub(crate) struct CTypes {
    result: Option<String>,
    /// The type of each source argument.
    arguments: Vec<Option<String>>,
    /// The descriptors of the result and of each argument, for arrays with a descriptor.
    descriptors: Vec<Option<ArrayDescriptor>>,
    /// The shapes of the result and of each argument, for arguments that Fortran passes by address.
    shapes: Vec<Option<Vec<Option<u64>>>>,
}

impl CTypes {
    /// Creates the types from the spellings of the result and of the arguments, in order.
    pub(crate) fn new(
        spellings: Vec<Option<String>>,
        descriptors: Vec<Option<ArrayDescriptor>>,
        shapes: Vec<Option<Vec<Option<u64>>>>,
    ) -> Self {
        let mut spellings = spellings.into_iter();
        CTypes {
            result: spellings.next().flatten(),
            arguments: spellings.collect(),
            descriptors,
            shapes,
        }
    }

    /// Returns true if parameter `index` of `func` is the address of a Fortran descriptor.
    pub(crate) fn is_descriptor(&self, unit: &Unit, func: FuncId, index: usize) -> bool {
        let number = self.number(unit, func, index);
        let known = number.and_then(|n| self.arguments.get(n)?.as_ref());
        known.is_some_and(|known| known == DESCRIPTOR)
    }

    /// Returns the number of the source argument of parameter `index` of `func`, if the source's and LLVM's
    /// parameters correspond.
    fn number(&self, unit: &Unit, func: FuncId, index: usize) -> Option<usize> {
        let attrs = unit.attrs(unit.functions[func].attrs);
        let arguments = source_arguments(unit, func);
        let skipped = usize::from(attrs.param(0, "sret").is_some());
        let number = arguments
            .iter()
            .position(|a| a.params == (index..index + 1))?;
        (arguments.len() == self.arguments.len() + skipped)
            .then(|| number.checked_sub(skipped))
            .flatten()
    }

    /// Returns the description of the array if parameter `index` of `func` is a descriptor.
    pub(crate) fn descriptor(&self, unit: &Unit, func: FuncId, index: usize) -> Option<Descriptor> {
        let number = self.number(unit, func, index)?;
        let found = self.descriptors.get(number + 1)?.as_ref()?;
        Some(Descriptor {
            elem: found.elem.clone(),
            rank: found.rank,
            kind: match found.kind {
                'a' => DescriptorKind::Allocatable,
                'p' => DescriptorKind::Pointer,
                'r' => DescriptorKind::AssumedRank,
                _ => DescriptorKind::AssumedShape,
            },
        })
    }

    /// Returns the extents if Fortran passes parameter `index` of `func` by address without a descriptor.
    pub(crate) fn shape(
        &self,
        unit: &Unit,
        func: FuncId,
        index: usize,
    ) -> Option<Vec<Option<u64>>> {
        let attrs = unit.attrs(unit.functions[func].attrs);
        let is_address = attrs.param(index, "byval").is_none()
            && matches!(
                unit.types
                    .get(unit.param_types(unit.functions[func].ty)[index]),
                Type::Ptr(_)
            );
        let number = self.number(unit, func, index).filter(|_| is_address)?;
        self.shapes.get(number + 1)?.clone()
    }

    /// Returns the C type of parameter `index` of `func`, whose LLVM type is `ty`. A spelling counts only
    /// if the argument is passed as C passes it.
    pub(crate) fn param(&self, unit: &Unit, func: FuncId, index: usize, ty: TypeId) -> String {
        let attrs = unit.attrs(unit.functions[func].attrs);
        let number = self.number(unit, func, index);
        let known = number.and_then(|n| self.arguments.get(n)?.as_ref());
        let by_value = known.is_some_and(|t| t.starts_with("struct ") && !t.ends_with('*'));
        match (attrs.param(index, "byval").is_some(), known) {
            (_, Some(known)) if known == DESCRIPTOR => "void *".to_string(),
            (true, Some(known)) if by_value => known.clone(),
            (true, _) => {
                let name = c_names::identifier(&unit.functions[func].name);
                format!("struct {name}_argument{index}")
            }
            (false, Some(known)) if !by_value => passed_type(unit, known, ty),
            (false, _) => c_type_of(unit, ty),
        }
    }

    /// Returns true if the tag of a by-value structure is invented, since the source names none.
    pub(crate) fn is_invented_tag(&self, unit: &Unit, func: FuncId, index: usize) -> bool {
        let attrs = unit.attrs(unit.functions[func].attrs);
        let number = self.number(unit, func, index);
        let known = number.and_then(|n| self.arguments.get(n)?.as_ref());
        let by_value = known.is_some_and(|t| t.starts_with("struct ") && !t.ends_with('*'));
        let is_descriptor = known.is_some_and(|known| known == DESCRIPTOR);
        attrs.param(index, "byval").is_some() && !by_value && !is_descriptor
    }

    /// Returns the C type of a parameter's shadow or tangent: the pointee is writable.
    pub(crate) fn shadow(&self, unit: &Unit, func: FuncId, index: usize, ty: TypeId) -> String {
        let own = self.param(unit, func, index, ty);
        let attrs = unit.attrs(unit.functions[func].attrs);
        if attrs.param(index, "byval").is_some() {
            return format!("{own} *");
        }
        match own.strip_prefix("const ") {
            Some(rest) if own.ends_with('*') => rest.to_string(),
            _ => own,
        }
    }

    /// Returns the C type of the result of `func`, whose LLVM type is `ty`.
    pub(crate) fn result(&self, unit: &Unit, func: FuncId, ty: Option<TypeId>) -> String {
        let attrs = unit.attrs(unit.functions[func].attrs);
        match &self.result {
            Some(known) if attrs.param(0, "sret").is_none() => known.clone(),
            _ => match ty.map(|ty| (ty, unit.types.get(ty))) {
                Some((_, Type::Struct { .. } | Type::Array { .. })) => {
                    let name = c_names::identifier(&unit.functions[func].name);
                    format!("struct {name}_result")
                }
                Some((ty, _)) => c_type_of(unit, ty),
                None => "void".to_string(),
            },
        }
    }
}

/// Returns the spelling of the type passed by LLVM: Fortran passes the address of the named type.
fn passed_type(unit: &Unit, known: &str, ty: TypeId) -> String {
    let address = matches!(unit.types.get(ty), Type::Ptr(_));
    match address && !known.ends_with('*') {
        true => format!("{known} *"),
        false => known.to_string(),
    }
}

/// Returns the C type for values of `ty`, by LLVM's type alone.
pub(crate) fn c_type_of(unit: &Unit, ty: TypeId) -> String {
    match unit.types.get(ty) {
        Type::Void => "void".to_string(),
        Type::Int(1) => "bool".to_string(),
        Type::Int(bits @ (8 | 16 | 32 | 64)) => format!("int{bits}_t"),
        Type::Int(128) => "__int128".to_string(),
        Type::Float(FloatKind::F32) => "float".to_string(),
        Type::Float(FloatKind::F64) => "double".to_string(),
        Type::Float(FloatKind::X86F80) => "long double".to_string(),
        Type::Float(FloatKind::F128) => "__float128".to_string(),
        Type::Float(_) => "_Float16".to_string(),
        Type::Ptr(_) => "void *".to_string(),
        Type::Vector { elem, len, .. } => {
            let bytes = unit.layout.store_bytes(unit, *elem) * u64::from(*len);
            let elem = c_type_of(unit, *elem);
            format!("__attribute__((vector_size({bytes}))) {elem}")
        }
        _ => "void".to_string(),
    }
}

/// Returns a declaration of `name` with a type, separated by a space unless the type ends in `*`.
fn declare(c_type: &str, name: &str) -> String {
    match c_type.ends_with('*') {
        true => format!("{c_type}{name}"),
        false => format!("{c_type} {name}"),
    }
}

/// Returns a prototype without the semicolon.
pub(crate) fn prototype(result: &str, name: &str, arguments: &[Argument]) -> String {
    let list: Vec<String> = arguments
        .iter()
        .map(|a| declare(&a.c_type, &a.name))
        .collect();
    let list = if list.is_empty() {
        "void".to_string()
    } else {
        list.join(", ")
    };
    format!("{}({list})", declare(result, name))
}

/// Returns the tag of the structure for several results.
fn tag(derivative: &Derivative) -> String {
    let (end, kind) = match derivative.mode {
        Mode::Forward => ("_jvp", "tan"),
        Mode::Reverse => ("_vjp", "adj"),
        Mode::Dependencies => ("_dep", "dep"),
    };
    let stem = derivative
        .name
        .strip_suffix(end)
        .unwrap_or(&derivative.name);
    format!("{stem}_{kind}")
}

/// Returns the C type of a derivative's result.
pub(crate) fn returned_type(derivative: &Derivative) -> String {
    match derivative.results.as_slice() {
        [] => "void".to_string(),
        [one] => one.c_type.clone(),
        _ => format!("struct {}", tag(derivative)),
    }
}

/// Returns the header of these derivatives.
pub(crate) fn header(derivatives: &[Derivative]) -> String {
    let guard = guard(derivatives);
    let mut text =
        format!("/* Derivatives generated by gradus. */\n#ifndef {guard}\n#define {guard}\n\n");
    text.push_str("#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n");
    text.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    let mut tags = BTreeSet::new();
    for derivative in derivatives {
        for made in &derivative.structures {
            let tag = struct_tag(made).unwrap_or_default();
            if tags.insert(tag.to_string()) {
                let _ = write!(text, "\n{made}");
            }
        }
        let types = derivative.arguments.iter().map(|a| &a.c_type);
        for tag in types.filter_map(|t| struct_tag(t)) {
            if tags.insert(tag.to_string()) {
                let _ = write!(text, "\nstruct {tag};\n");
            }
        }
    }
    for derivative in derivatives {
        text.push('\n');
        describe(&mut text, derivative);
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    text
}

fn guard(derivatives: &[Derivative]) -> String {
    let first = derivatives.first().map_or("EMPTY", |d| &d.name);
    // The guard is case-sensitive: `F_vjp` and `f_vjp` have different headers.
    format!("GRADUS_{first}_H")
}

/// Returns the tag of a structure type or of its pointee.
fn struct_tag(c_type: &str) -> Option<&str> {
    let at = c_type.find("struct ")?;
    let rest = &c_type[at + "struct ".len()..];
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&rest[..end.unwrap_or(rest.len())])
}

fn describe(text: &mut String, derivative: &Derivative) {
    let lines = contract(derivative);
    let _ = writeln!(text, "/* {}", lines.join("\n * "));
    let _ = writeln!(text, " */");
    if derivative.results.len() > 1 {
        let _ = writeln!(text, "struct {} {{", tag(derivative));
        for part in &derivative.results {
            let _ = writeln!(text, "    {};", declare(&part.c_type, &part.name));
        }
        text.push_str("};\n");
    }
    let _ = writeln!(text, "{};", derivative.prototype);
}

/// Returns the prototype of the function, with the function's name in the source instead of a mangled symbol.
fn source_prototype(derivative: &Derivative) -> String {
    let prototype = &derivative.primal_prototype;
    match derivative.source_name.contains("*/") {
        // The text is inside a comment.
        true => prototype.clone(),
        false => prototype.replacen(&derivative.function, &derivative.source_name, 1),
    }
}

/// The form of dependency sets, in the contract for callers.
const DEPENDENCY_SETS: &[&str] = &[
    "A set is a number: 0 without inputs, else 1 with bit k of the fraction for the",
    "input k. A double holds 44 inputs, a float 22. A NaN is unknown.",
];

/// Returns the contract for callers, line by line.
fn contract(derivative: &Derivative) -> Vec<String> {
    let name = &derivative.source_name;
    let with_role = |wanted: fn(Role) -> bool| {
        let hits = derivative.arguments.iter().filter(|a| wanted(a.role));
        hits.map(|a| a.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let shadows = with_role(|r| matches!(r, Role::Shadow(..)));
    let inactive = with_role(|r| matches!(r, Role::Inactive(_)));
    let mut lines = vec![match derivative.mode {
        Mode::Forward => format!("JVP of {}", source_prototype(derivative)),
        Mode::Reverse => format!("VJP of {}", source_prototype(derivative)),
        Mode::Dependencies => format!("Dependency sets of {}", source_prototype(derivative)),
    }];
    for argument in &derivative.primal {
        if argument.name != argument.source_name && !argument.source_name.contains("*/") {
            lines.push(format!(
                "{}: the argument {} of the source.",
                argument.name, argument.source_name
            ));
        }
    }
    match derivative.mode {
        Mode::Forward if !shadows.is_empty() => {
            lines.push(format!(
                "{shadows}: the tangents of the preceding arguments; memory behind"
            ));
            lines.push(format!(
                "pointers is updated as {name} updates the memory of the argument."
            ));
        }
        Mode::Reverse => {
            if !shadows.is_empty() {
                lines.push(format!(
                    "{shadows}: adjoints are added into this memory; for values that {name}"
                ));
                lines.push(
                    "overwrites, the cotangents are read from the memory and cleared.".to_string(),
                );
            }
            let cotangent = with_role(|r| matches!(r, Role::Cotangent(_)));
            if !cotangent.is_empty() {
                lines.push(format!(
                    "{cotangent}: the cotangent of the result (1 for a gradient)."
                ));
            }
        }
        Mode::Dependencies => {
            lines.extend(DEPENDENCY_SETS.iter().map(ToString::to_string));
            if !shadows.is_empty() {
                lines.push(format!(
                    "{shadows}: the sets of the preceding arguments; memory behind pointers"
                ));
                lines.push(format!(
                    "is updated as {name} updates the memory of the argument."
                ));
            }
        }
        Mode::Forward => {}
    }
    let has_sets = derivative.mode == Mode::Dependencies;
    let parts = derivative.results.iter();
    let parts: Vec<String> = parts.map(|part| part_text(part, has_sets)).collect();
    if !parts.is_empty() {
        lines.push(format!("Returns {}.", parts.join(", ")));
    }
    if !inactive.is_empty() {
        lines.push(format!("Inactive: {inactive}."));
    }
    if !derivative.descriptors.is_empty() {
        let names = derivative.descriptors.join(", ");
        lines.push(format!(
            "{names}: the address of a Fortran descriptor (CFI_cdesc_t), also for shadows."
        ));
    }
    if !shadows.is_empty() {
        lines.push("A shadow must not overlap the arguments.".to_string());
    }
    lines
}

fn part_text(part: &crate::wire::reply::ResultPart, has_sets: bool) -> String {
    match part.role {
        Role::PrimalResult => "the value".to_string(),
        Role::ResultTangent(_) if has_sets => "the set of the result".to_string(),
        Role::ResultTangent(_) => "the tangent of the result".to_string(),
        _ => format!("the adjoint of {}", part.name),
    }
}
