//! Generates the C driver of a check: arguments, values, and the three calls. Names of the program occur in
//! the driver only as text: symbols as assembler labels, arguments by number.

use super::Check;
use super::slots::{Slot, is_float, missing, slots, without_type_suffix};
use super::values::{Fill, RANDOM, Value, to_c};
use crate::fortran_descriptor::type_code;
use gradus_ir::Diagnostic;
use gradus_pipeline::{Argument, Derivative, ResultPart, Role};
use std::fmt::Write;

/// Returns the driver's text.
///
/// # Errors
/// `MissingCheckInput` if a value is missing or cannot be parsed.
pub(super) fn write(
    what: &Check,
    forward: &Derivative,
    reverse: &Derivative,
) -> Result<String, Diagnostic> {
    let slots = slots(what, forward)?;
    let result = result_type(forward)?;
    let mut text = format!(
        "#define _GNU_SOURCE\n#define GR_SECONDS {}\n#define GR_MEMORY_BYTES {}ull\n#define GR_ARG_COUNT {}\n",
        what.limit_seconds,
        what.limit_memory_bytes,
        slots.len()
    );
    if what.flags.iter().any(|f| f.starts_with("-fsanitize=")) {
        line(&mut text, "#define GR_SANITIZED");
    }
    text.push_str(&structures(&slots));
    text.push_str("#include \"derivatives.h\"\n");
    line(&mut text, "#include \"runtime.h\"\n");
    line(&mut text, primal(what, forward, result.as_deref()));
    line(&mut text, table(&slots));
    let float = result.as_deref() == Some("float");
    line(
        &mut text,
        format!(
            "static const int gr_has_result = {}, gr_result_is_float = {};\n",
            u8::from(is_float(result.as_deref())),
            u8::from(float)
        ),
    );
    line(
        &mut text,
        format!(
            "static int gr_single = {};\n",
            u8::from(what.single || forward.computes_single)
        ),
    );
    line(&mut text, descriptors(&slots));
    line(&mut text, initial_values(what, &slots)?);
    let values: Vec<String> = (0..slots.len()).map(|i| primal_value(&slots, i)).collect();
    let call = format!("gr_function({})", values.join(", "));
    line(
        &mut text,
        match is_float(result.as_deref()) {
            true => format!("static double gr_primal(void) {{ return {call}; }}\n"),
            false => format!("static double gr_primal(void) {{ {call}; return 0; }}\n"),
        },
    );
    line(&mut text, forward_call(&slots, forward)?);
    line(&mut text, reverse_call(&slots, reverse)?);
    line(
        &mut text,
        match what.driver {
            Some(_) => wrapper(forward, result.as_deref()),
            None => "int main(void) { gr_check(); }".to_string(),
        },
    );
    Ok(text)
}

/// Returns the by-value structures, declared as arrays of their numbers.
fn structures(slots: &[Slot<'_>]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut text = String::new();
    for slot in slots {
        if let (Some(name), Some((elem, count))) = (&slot.structure, &slot.argument.elements)
            && !seen.contains(&name.as_str())
        {
            seen.push(name);
            line(&mut text, format!("{name} {{ {elem} number[{count}]; }};"));
        }
    }
    text
}

fn line(text: &mut String, more: impl AsRef<str>) {
    text.push_str(more.as_ref());
    text.push('\n');
}

/// Quotes a text as a C string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            _ if c.is_control() => quoted.push('?'),
            _ => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Declares the function by symbol, and the arguments passed by a call in the user's driver.
fn primal(what: &Check, derivative: &Derivative, result: Option<&str>) -> String {
    let types: Vec<&str> = derivative
        .primal
        .iter()
        .map(|a| a.c_type.as_str())
        .collect();
    let mut text = String::new();
    let mut symbol = derivative.function.clone();
    if what.driver.is_some() {
        symbol.insert_str(0, "__real_");
        for (i, argument) in derivative.primal.iter().enumerate() {
            line(
                &mut text,
                format!("static {} gr_given_{i};", unqualified(&argument.c_type)),
            );
        }
    }
    let list = match types.is_empty() {
        true => "void".to_string(),
        false => types.join(", "),
    };
    text + &format!(
        "extern {} gr_function({list}) __asm__({});\n",
        result.unwrap_or("void"),
        quoted(&symbol)
    )
}

/// Returns the C type of the result; `None` for `void`.
fn result_type(derivative: &Derivative) -> Result<Option<String>, Diagnostic> {
    let ty = derivative.primal_result.as_str();
    let other = |what: &str| ty.contains(what);
    match ty {
        "void" => Ok(None),
        _ if other("*") || other("struct") || other("__") || other("_Float") => {
            let message = format!(
                "the result of {} has type {ty}, which `gradus check` does not support",
                derivative.source_name
            );
            Err(missing(message).help("check a wrapper function that returns a number"))
        }
        _ => Ok(Some(ty.to_string())),
    }
}

fn table(slots: &[Slot<'_>]) -> String {
    let mut text = String::from("static gr_arg gr_args[GR_ARG_COUNT + 1] = {\n");
    for slot in slots {
        let kind = match slot.elem.as_str() {
            "double" => "GR_DOUBLE",
            "float" => "GR_FLOAT",
            _ => "GR_BYTES",
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "    {{.name = {}, .kind = {kind}, .is_array = {}, .is_active = {}, .size = sizeof({})}},",
            quoted(&slot.argument.source_name),
            u8::from(slot.by_address()),
            u8::from(slot.active),
            slot.elem
        );
    }
    text + "};"
}

/// The kinds of buffers for a descriptor.
const BUFFERS: [&str; 3] = ["primal", "tangent", "adjoint"];

/// Declares Fortran array descriptors, and the code that resets them.
fn descriptors(slots: &[Slot<'_>]) -> String {
    let (mut text, mut body) = (String::new(), String::new());
    for (i, slot) in slots.iter().enumerate() {
        let Some(descriptor) = &slot.argument.descriptor else {
            continue;
        };
        line(
            &mut text,
            format!(
                "static gr_descriptor gr_shape_{i}[3];\nstatic size_t gr_extents_{i}[{}];",
                descriptor.rank
            ),
        );
        for (k, buffer) in BUFFERS.iter().enumerate() {
            line(
                &mut body,
                format!(
                    "    gr_describe(&gr_shape_{i}[{k}], gr_args[{i}].{buffer}, sizeof({}), {}, {}, gr_extents_{i});",
                    slot.elem,
                    type_code(&slot.elem),
                    descriptor.rank
                ),
            );
        }
    }
    format!("{text}static void gr_shapes(void)\n{{\n{body}}}\n")
}

/// Returns the code for the initial values: defaults first, then the values on the command line in order,
/// since later values may refer to earlier arguments.
fn initial_values(what: &Check, slots: &[Slot<'_>]) -> Result<String, Diagnostic> {
    let mut text = String::from("static void gr_fill(void)\n{\n");
    let given = |slot: &Slot<'_>| {
        let at = what
            .values
            .iter()
            .position(|(name, _)| slot.is_called(without_type_suffix(name)));
        at.map_or(0, |at| at + 1)
    };
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_by_key(|&i| given(&slots[i]));
    let mut known: Vec<usize> = Vec::new();
    for i in order {
        text.push_str(&initial_value(slots, i, &known)?);
        if matches!(slots[i].value, Value::Number(_)) {
            known.push(i);
        }
    }
    Ok(text + "}\n")
}

/// Refuses a name in the value of an argument that is not a number with a preceding value.
fn no_number(slots: &[Slot<'_>], slot: &Slot<'_>, text: &str, name: &str) -> Diagnostic {
    let argument = &slot.argument.source_name;
    let rest = text.split_once(name).map_or("", |(_, rest)| rest);
    if rest.trim_start().starts_with('(') {
        return missing(format!(
            "`{name}` in the value of `{argument}` is no generator"
        ))
        .help("the generators are rand, zeros, ones, iota and randint");
    }
    if !slots.iter().any(|slot| slot.is_called(name)) {
        let numbers = slots
            .iter()
            .filter(|slot| matches!(slot.value, Value::Number(_)));
        let names: Vec<&str> = numbers
            .map(|slot| slot.argument.source_name.as_str())
            .collect();
        return missing(format!(
            "`{name}` in the value of `{argument}` is no argument"
        ))
        .help(format!("numbers with values: {}", names.join(", ")));
    }
    let message =
        format!("`{name}` in the value of `{argument}` is not a number with a preceding value");
    missing(message).help("put the `--arg` of each number before the values that use the number")
}

/// Returns the code for the values of argument `i`; the arguments in `known` already have values.
fn initial_value(slots: &[Slot<'_>], i: usize, known: &[usize]) -> Result<String, Diagnostic> {
    let slot = &slots[i];
    let elem = &slot.elem;
    let floating = is_float(Some(elem));
    let variable = |name: &str| {
        let hit = known.iter().find(|&&k| slots[k].is_called(name))?;
        Some(format!("gr_v{hit}"))
    };
    let c = |text: &str, floating: bool| {
        to_c(text, &variable, floating).map_err(|name| no_number(slots, slot, text, &name))
    };
    let start = format!("(({elem} *)gr_args[{i}].start)");
    let mut text = String::new();
    let set = |k: &str, value: String| match floating {
        true => format!("{start}[{k}] = ({elem})({value});\n"),
        false => format!(
            "{start}[{k}] = ({elem})({value}); gr_fits({i}, (long double)({value}), (long double){start}[{k}]);\n"
        ),
    };
    let (extents, fill) = match &slot.value {
        Value::Number(number) => {
            let value = match number.as_str() {
                RANDOM => "gr_uniform()".to_string(),
                _ if number.starts_with("gr_given_") => number.clone(),
                _ => c(number, floating)?,
            };
            line(&mut text, format!("    gr_array({i}, 1);"));
            let _ = write!(text, "    {}", set("0", value));
            line(&mut text, format!("    const {elem} gr_v{i} = {start}[0];"));
            return Ok(text);
        }
        Value::Array { extents, fill } => (extents, fill),
    };
    let mut lengths = Vec::new();
    for (k, extent) in extents.iter().enumerate() {
        let length = format!("gr_length({i}, (long double)({}))", c(extent, false)?);
        lengths.push(match slot.argument.descriptor {
            Some(_) => format!("(gr_extents_{i}[{k}] = {length})"),
            None => length,
        });
    }
    let counted = format!("    gr_array({i}, {});", lengths.join(" * "));
    line(&mut text, counted);
    if let Fill::Listed(values) = fill {
        for (k, value) in values.iter().enumerate() {
            let _ = write!(text, "    {}", set(&k.to_string(), c(value, floating)?));
        }
        return Ok(text);
    }
    let value = match fill {
        Fill::FromDriver => format!("gr_given_{i}[k]"),
        Fill::Random => "gr_uniform()".to_string(),
        Fill::Ones => "1".into(),
        Fill::Iota => "k".into(),
        Fill::RandomIntegers(bound) => format!(
            "gr_below(gr_length({i}, (long double)({})))",
            c(bound, false)?
        ),
        Fill::Zeros | Fill::Listed(_) => "0".into(),
    };
    line(
        &mut text,
        format!(
            "    for (size_t k = 0; k < gr_args[{i}].count; k++)\n        {start}[k] = ({elem}){value};"
        ),
    );
    Ok(text)
}

/// Returns the expression for an argument of a call: the array, its descriptor, or the number in it.
fn buffer_value(slots: &[Slot<'_>], i: usize, buffer: &str) -> String {
    let slot = &slots[i];
    if let Some(structure) = &slot.structure {
        let place = format!("({structure} *)gr_args[{i}].{buffer}");
        // The structure is passed by value, its shadow by address.
        return match buffer {
            "primal" => format!("*{place}"),
            _ => place,
        };
    }
    if slot.argument.descriptor.is_some() {
        let k = BUFFERS.iter().position(|b| *b == buffer).unwrap_or(0);
        return format!("(void *)&gr_shape_{i}[{k}]");
    }
    match slot.by_address() {
        true => format!("gr_args[{i}].{buffer}"),
        false => format!("*({} *)gr_args[{i}].{buffer}", slot.elem),
    }
}

fn primal_value(slots: &[Slot<'_>], i: usize) -> String {
    buffer_value(slots, i, "primal")
}

/// Returns the arguments of a derivative's call.
fn arguments(
    slots: &[Slot<'_>],
    derivative: &Derivative,
    shadow: &str,
) -> Result<String, Diagnostic> {
    let value = |argument: &Argument| match argument.role {
        Role::Inactive(i) | Role::Active(i) => Ok(primal_value(slots, i)),
        Role::Shadow(i, _) if !slots[i].active && slots[i].structure.is_none() => {
            Ok(primal_value(slots, i))
        }
        Role::Shadow(i, _) => Ok(buffer_value(slots, i, shadow)),
        Role::Cotangent(_) => Ok("cotangent".to_string()),
        Role::PrimalResult | Role::ResultTangent(_) | Role::Adjoint(..) => {
            let message = format!(
                "`gradus check` does not support an argument of {}",
                derivative.name
            );
            Err(missing(message))
        }
    };
    let values: Result<Vec<String>, Diagnostic> = derivative.arguments.iter().map(value).collect();
    Ok(values?.join(", "))
}

/// Returns the expression that reads a part of a result.
fn result_part_expression(derivative: &Derivative, part: &ResultPart) -> String {
    match derivative.results.len() {
        1 => "result".to_string(),
        _ => format!("result.{}", part.name),
    }
}

/// Returns the statement of a call, with the result stored in a variable.
fn call_statement(derivative: &Derivative, arguments: &str) -> String {
    let keep = if derivative.results.is_empty() {
        ""
    } else {
        "__auto_type result = "
    };
    format!("    {keep}{}({arguments});\n", derivative.name)
}

fn forward_call(slots: &[Slot<'_>], derivative: &Derivative) -> Result<String, Diagnostic> {
    let mut text = String::from("static double gr_forward(void)\n{\n");
    text.push_str(&call_statement(
        derivative,
        &arguments(slots, derivative, "tangent")?,
    ));
    let tangent = derivative
        .results
        .iter()
        .find(|p| matches!(p.role, Role::ResultTangent(_)));
    let value = tangent.map_or("0".to_string(), |part| {
        result_part_expression(derivative, part)
    });
    line(&mut text, format!("    return {value};\n}}"));
    Ok(text)
}

fn reverse_call(slots: &[Slot<'_>], derivative: &Derivative) -> Result<String, Diagnostic> {
    let mut text = String::from("static void gr_reverse(double cotangent)\n{\n");
    text.push_str(&call_statement(
        derivative,
        &arguments(slots, derivative, "adjoint")?,
    ));
    for part in &derivative.results {
        if let Role::Adjoint(i, _) = part.role {
            let value = result_part_expression(derivative, part);
            line(
                &mut text,
                format!("    {} += {value};", buffer_value(slots, i, "adjoint")),
            );
        }
    }
    Ok(text + "}")
}

/// Returns a type without qualifiers that forbid assignment.
fn unqualified(c_type: &str) -> String {
    c_type
        .replace("restrict", "")
        .trim_end_matches("const")
        .trim()
        .to_string()
}

/// Returns the wrapper called by the user's driver.
fn wrapper(derivative: &Derivative, result: Option<&str>) -> String {
    let list = derivative.primal.iter().enumerate();
    let params: Vec<String> = list
        .map(|(i, a)| format!("{} gr_a{i}", unqualified(&a.c_type)))
        .collect();
    let result = result.unwrap_or("void");
    let list = match params.is_empty() {
        true => "void".to_string(),
        false => params.join(", "),
    };
    let label = quoted(&format!("__wrap_{}", derivative.function));
    let mut text = format!("{result} gr_wrapper({list}) __asm__({label});\n");
    line(&mut text, format!("{result} gr_wrapper({list})\n{{"));
    for i in 0..params.len() {
        line(&mut text, format!("    gr_given_{i} = gr_a{i};"));
    }
    text + "    gr_check();\n    abort();\n}"
}
