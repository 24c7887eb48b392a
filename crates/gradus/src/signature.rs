//! The signatures of functions and derivatives as JSON, for callers that build their calls at run time. The page
//! `docs/reference/signature.md` states the format.

use crate::shared_library::{Entry, entry_name};
use gradus_pipeline::{Argument, Derivative, DescriptorKind, Mode};
use serde_json::{Value, json};

/// The version of the format: incremented by a change that a reader must know.
const VERSION: u32 = 1;

/// Returns the signatures as JSON text.
pub(crate) fn json(derivatives: &[Derivative], entry: Entry) -> String {
    let mut functions: Vec<Value> = Vec::new();
    for derivative in derivatives {
        let function = function(derivative, entry);
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    let derivatives: Vec<Value> = derivatives.iter().map(|d| derived(d, entry)).collect();
    let all = json!({ "version": VERSION, "functions": functions, "derivatives": derivatives });
    format!("{all:#}\n")
}

/// Describes a primal.
fn function(derivative: &Derivative, entry: Entry) -> Value {
    json!({
        "name": derivative.source_name,
        "symbol": derivative.function,
        "entry": entry_symbol(&derivative.function, entry),
        "prototype": derivative.primal_prototype,
        "result": derivative.primal_result,
        "arguments": derivative.primal.iter().map(argument).collect::<Vec<_>>(),
    })
}

/// Describes a derivative.
fn derived(derivative: &Derivative, entry: Entry) -> Value {
    let one = |argument: &Argument| {
        let (role, of) = argument.role.name_and_argument();
        json!({ "name": argument.name, "type": argument.c_type, "role": role, "of": of })
    };
    let results = derivative.results.iter().map(|part| {
        let (role, of) = part.role.name_and_argument();
        json!({ "name": part.name, "type": part.c_type, "role": role, "of": of })
    });
    json!({
        "name": derivative.name,
        "function": derivative.function,
        "mode": match derivative.mode {
            Mode::Forward => "forward",
            Mode::Reverse => "reverse",
            Mode::Dependencies => "dependencies",
        },
        "width": derivative.width,
        "single_precision": derivative.computes_single,
        "entry": entry_symbol(&derivative.name, entry),
        "prototype": derivative.prototype,
        "arguments": derivative.arguments.iter().map(one).collect::<Vec<_>>(),
        "results": results.collect::<Vec<_>>(),
    })
}

fn entry_symbol(symbol: &str, entry: Entry) -> Option<String> {
    (entry == Entry::Uniform).then(|| entry_name(symbol))
}

/// Describes an argument of a primal.
fn argument(argument: &Argument) -> Value {
    let is_pointer = argument.c_type.contains('*');
    let (passing, element) = match &argument.descriptor {
        Some(descriptor) => ("descriptor", Some(descriptor.elem.as_str())),
        None if is_pointer => ("pointer", element(&argument.c_type)),
        None => ("value", None),
    };
    let shape = match &argument.descriptor {
        Some(descriptor) => Some(vec![None; descriptor.rank as usize]),
        None => argument.shape.clone(),
    };
    json!({
        "name": argument.source_name,
        "type": argument.c_type,
        "passing": passing,
        "element": element,
        "written": argument.is_written,
        "shape": shape,
        "descriptor": argument.descriptor.as_ref().map(|descriptor| match descriptor.kind {
            DescriptorKind::AssumedShape => "assumed shape",
            DescriptorKind::Allocatable => "allocatable",
            DescriptorKind::Pointer => "pointer",
            DescriptorKind::AssumedRank => "assumed rank",
        }),
    })
}

/// Returns the pointee of a pointer to numbers; `None` for other pointees.
fn element(c_type: &str) -> Option<&str> {
    let pointee = c_type.strip_suffix('*')?.trim_end();
    let pointee = pointee.strip_prefix("const ").unwrap_or(pointee);
    let is_other = pointee.contains('*') || pointee.starts_with("struct ") || pointee == "void";
    (!is_other).then_some(pointee)
}
