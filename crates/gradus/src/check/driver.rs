//! The generated part of a check: the arguments, their values, and the three calls, in C.

use super::Check;
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{Argument, Derivative, Part, Role};
use std::fmt::Write;

/// How an argument is given.
enum Value {
    /// A number by value.
    Number(String),
    /// An array: its length and what fills it.
    Array { length: String, fill: Fill },
}

/// What fills an array.
enum Fill {
    /// What the driver's call gives.
    Given,
    Random,
    Zeros,
    Ones,
    /// 0, 1, 2 …
    Steps,
    /// Whole numbers from 0 below a bound.
    Whole(String),
    /// These.
    Listed(Vec<String>),
}

/// An argument of the function, as the driver sees it.
struct Slot<'a> {
    argument: &'a Argument,
    value: Value,
    /// The C type of the number, or of an element.
    elem: String,
    /// The C type of a structure by value, whose numbers are the elements.
    structure: Option<String>,
    active: bool,
}

/// The driver's text.
///
/// # Errors
/// `MissingCheckInput` where a value is missing or cannot be read.
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
    text.push_str(&structures(&slots));
    text.push_str("#include \"derivatives.h\"\n#include \"runtime.h\"\n\n");
    line(&mut text, format!("extern {};\n", forward.primal_prototype));
    if what.driver.is_some() {
        line(&mut text, given(forward, result.as_deref()));
    }
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
        format!("static int gr_single = {};\n", u8::from(what.single)),
    );
    line(&mut text, fill(what, &slots));
    let values: Vec<String> = (0..slots.len()).map(|i| primal_value(&slots, i)).collect();
    let primal = match what.driver {
        Some(_) => format!("__real_{}", forward.function),
        None => forward.function.clone(),
    };
    let call = format!("{primal}({})", values.join(", "));
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

/// The structures that are passed by value, as arrays of their numbers.
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

fn missing(message: String) -> Diagnostic {
    Diagnostic::error(Code::MissingCheckInput, message)
}

/// The arguments in order, each with its value.
fn slots<'a>(what: &Check, derivative: &'a Derivative) -> Result<Vec<Slot<'a>>, Diagnostic> {
    for (name, _) in &what.values {
        let name = plain_name(name);
        if !derivative.primal.iter().any(|a| a.name == name) {
            let list: Vec<&str> = derivative.primal.iter().map(|a| a.name.as_str()).collect();
            let message = format!("{} has no argument `{name}`", derivative.source_name);
            return Err(Diagnostic::error(Code::NoSuchArgument, message)
                .note(format!("its arguments are {}", list.join(", "))));
        }
    }
    let mut slots = Vec::new();
    let mut absent = Vec::new();
    for argument in &derivative.primal {
        // No value would help here.
        if is_mixed_structure(argument) {
            let message = format!(
                "`{}` is a structure of several kinds of members: that is not checked",
                argument.name
            );
            let help = "write a small function around it that takes the members";
            return Err(missing(message).help(help));
        }
        let given = what
            .values
            .iter()
            .find(|(name, _)| plain_name(name) == argument.name);
        match given {
            Some((name, value)) => slots.push(slot(argument, name, value)?),
            None if what.driver.is_some() && !argument.c_type.contains('*') => {
                slots.push(slot(argument, "", &format!("gr_given_{}", argument.name))?);
            }
            None if is_float(Some(&argument.c_type)) => slots.push(slot(argument, "", "rand()")?),
            None if argument.elements.is_some() => {
                let count = argument.elements.as_ref().map_or(0, |(_, count)| *count);
                slots.push(slot(argument, "", &format!("rand({count})"))?);
            }
            None => absent.push(argument),
        }
    }
    if absent.is_empty() {
        return Ok(slots);
    }
    let mut finding = missing(format!(
        "{} cannot be called: values are missing",
        derivative.source_name
    ));
    for argument in &absent {
        finding = finding.note(format!("`{}` is a {}", argument.name, argument.c_type));
    }
    let fill = if what.driver.is_some() {
        "given"
    } else {
        "rand"
    };
    let example: Vec<String> = absent
        .iter()
        .map(|a| match a.c_type.contains('*') {
            true => format!("--arg '{}={fill}(100)'", a.name),
            false => format!("--arg {}=100", a.name),
        })
        .collect();
    Err(finding.help(format!("say them, for example {}", example.join(" "))))
}

/// Whether an argument is a structure by value that is not numbers of one type.
fn is_mixed_structure(argument: &Argument) -> bool {
    argument.elements.is_none()
        && argument.c_type.starts_with("struct ")
        && !argument.c_type.contains('*')
}

/// `x` of `x:float`.
fn plain_name(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

fn slot<'a>(argument: &'a Argument, name: &str, value: &str) -> Result<Slot<'a>, Diagnostic> {
    if let Some((elem, count)) = &argument.elements {
        return structure_slot(argument, elem, *count, value);
    }
    let array = argument.c_type.contains('*');
    let value = read(value, array)
        .ok_or_else(|| missing(format!("`{}={value}` is not understood", argument.name))
            .note(match array {
                true => "an array is [VALUE, VALUE, …], rand(LENGTH), zeros(LENGTH), ones(LENGTH), iota(LENGTH), randint(LENGTH, BOUND) or, with a driver, given(LENGTH)",
                false => "a value is a number, or an expression of arguments given before",
            }))?;
    let stated = name.split_once(':').map(|(_, ty)| ty.to_string());
    let pointee = argument
        .c_type
        .replace("const ", "")
        .replace("restrict", "")
        .replace('*', "");
    let pointee = pointee.trim().to_string();
    if pointee == "void" && stated.is_none() {
        let message = format!(
            "the type of what `{}` points to is not known",
            argument.name
        );
        let help = format!(
            "state it: `--arg '{}:double=rand(n)'`; structures cannot be checked yet",
            argument.name
        );
        return Err(missing(message).help(help));
    }
    let elem = stated.unwrap_or(pointee);
    // Memory without numbers that could carry a derivative is its own shadow: inactive.
    let active = matches!(argument.role, Role::Active(_)) && is_float(Some(&elem));
    if elem == "long double" {
        let message = format!(
            "`{}` is kept in `long double`: that is not checked",
            argument.name
        );
        return Err(missing(message));
    }
    Ok(Slot {
        argument,
        value,
        elem,
        structure: None,
        active,
    })
}

/// A structure by value whose members are numbers of one type.
fn structure_slot<'a>(
    argument: &'a Argument,
    elem: &str,
    count: u64,
    value: &str,
) -> Result<Slot<'a>, Diagnostic> {
    let fill = match read(value, true) {
        Some(Value::Array {
            length,
            fill: Fill::Listed(values),
        }) if length == count.to_string() => Fill::Listed(values),
        Some(Value::Array { fill, .. }) if !matches!(fill, Fill::Given | Fill::Listed(_)) => fill,
        _ => {
            let message = format!("`{}={value}` is not understood", argument.name);
            return Err(missing(message).note(format!(
                "a structure of {count} numbers is [VALUE, …] with all of them, rand({count}), zeros({count}), ones({count}) or iota({count})"
            )));
        }
    };
    Ok(Slot {
        argument,
        value: Value::Array {
            length: count.to_string(),
            fill,
        },
        elem: elem.to_string(),
        structure: Some(argument.c_type.clone()),
        active: matches!(argument.role, Role::Active(_)),
    })
}

/// Letters that an expression of lengths may have: it becomes C.
fn is_expression(text: &str) -> bool {
    !text.trim().is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || " _+-*/%().".contains(c))
}

fn read(text: &str, array: bool) -> Option<Value> {
    let text = text.trim();
    if !array {
        let random = ["rand()", "rand"].contains(&text);
        let number = if random { "gr_uniform()" } else { text };
        return (random || is_expression(text)).then(|| Value::Number(number.into()));
    }
    if let Some(list) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let values: Vec<String> = list.split(',').map(|value| value.trim().into()).collect();
        return values
            .iter()
            .all(|value| is_expression(value))
            .then(|| Value::Array {
                length: values.len().to_string(),
                fill: Fill::Listed(values),
            });
    }
    let (name, rest) = text.split_once('(')?;
    let inside = rest.strip_suffix(')')?;
    let (length, bound) = match inside.split_once(',') {
        Some((length, bound)) => (length, Some(bound)),
        None => (inside, None),
    };
    let fill = match (name.trim(), bound) {
        ("given", None) => Fill::Given,
        ("rand", None) => Fill::Random,
        ("zeros", None) => Fill::Zeros,
        ("ones", None) => Fill::Ones,
        ("iota", None) => Fill::Steps,
        ("randint", Some(bound)) if is_expression(bound) => Fill::Whole(bound.trim().into()),
        _ => return None,
    };
    is_expression(length).then(|| Value::Array {
        length: length.trim().into(),
        fill,
    })
}

fn is_float(ty: Option<&str>) -> bool {
    matches!(ty, Some("double" | "float" | "long double"))
}

/// The C type of the result, `None` for `void`: what stands before the function's name.
fn result_type(derivative: &Derivative) -> Result<Option<String>, Diagnostic> {
    let head = derivative
        .primal_prototype
        .split('(')
        .next()
        .unwrap_or_default();
    let ty = head
        .trim()
        .strip_suffix(derivative.function.as_str())
        .unwrap_or(head)
        .trim();
    match ty {
        "void" => Ok(None),
        _ if ty.contains('*') || ty.contains("struct") => {
            let message = format!(
                "{} returns a {ty}: that cannot be checked",
                derivative.source_name
            );
            Err(missing(message).help("write a small function around it that returns a number"))
        }
        _ => Ok(Some(ty.to_string())),
    }
}

fn table(slots: &[Slot<'_>]) -> String {
    let mut text = String::from("static gr_arg gr_args[GR_ARG_COUNT] = {\n");
    for slot in slots {
        let kind = match slot.elem.as_str() {
            "double" => "GR_DOUBLE",
            "float" => "GR_FLOAT",
            _ => "GR_BYTES",
        };
        let array = matches!(slot.value, Value::Array { .. });
        // Writing into a string does not fail.
        let _ = writeln!(
            text,
            "    {{\"{}\", {kind}, {}, {}, 0, sizeof({}), 0, 0, 0, 0, 0, 0, 0}},",
            slot.argument.name,
            u8::from(array),
            u8::from(slot.active),
            slot.elem
        );
    }
    text + "};"
}

/// The starting values: those that nobody gives first, then in the order of the command line, where
/// later ones may name earlier numbers.
fn fill(what: &Check, slots: &[Slot<'_>]) -> String {
    let mut text = String::from("static void gr_fill(void)\n{\n");
    let given = |slot: &Slot<'_>| {
        let at = what
            .values
            .iter()
            .position(|(name, _)| plain_name(name) == slot.argument.name);
        at.map_or(0, |at| at + 1)
    };
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_by_key(|&i| given(&slots[i]));
    for i in order {
        let slot = &slots[i];
        let (elem, name) = (&slot.elem, &slot.argument.name);
        let start = format!("(({elem} *)gr_args[{i}].start)");
        let _ = match &slot.value {
            Value::Number(number) => writeln!(
                text,
                "    gr_array(&gr_args[{i}], 1);\n    const {elem} {name} = {number};\n    {start}[0] = {name};"
            ),
            Value::Array { length, fill } => {
                let value = match fill {
                    Fill::Given => format!("gr_given_{name}[k]"),
                    Fill::Random => "gr_uniform()".to_string(),
                    Fill::Zeros => "0".into(),
                    Fill::Ones => "1".into(),
                    Fill::Steps => "k".into(),
                    Fill::Listed(values) => format!("(const {elem}[]){{{}}}[k]", values.join(", ")),
                    Fill::Whole(bound) => {
                        format!(
                            "(gr_state = gr_state * 6364136223846793005u + 1442695040888963407u, (gr_state >> 33) % (unsigned long)({bound}))"
                        )
                    }
                };
                writeln!(
                    text,
                    "    gr_array(&gr_args[{i}], (size_t)({length}));\n    for (size_t k = 0; k < gr_args[{i}].count; k++)\n        {start}[k] = ({elem}){value};"
                )
            }
        };
    }
    text + "}\n"
}

/// What of an argument goes into a call: the array, or the number in it.
fn buffer_value(slots: &[Slot<'_>], i: usize, buffer: &str) -> String {
    if let Some(structure) = &slots[i].structure {
        let place = format!("({structure} *)gr_args[{i}].{buffer}");
        // The structure itself goes by value, its shadow by address.
        return match buffer {
            "primal" => format!("*{place}"),
            _ => place,
        };
    }
    match slots[i].value {
        Value::Array { .. } => format!("gr_args[{i}].{buffer}"),
        Value::Number(_) => format!("*({} *)gr_args[{i}].{buffer}", slots[i].elem),
    }
}

fn primal_value(slots: &[Slot<'_>], i: usize) -> String {
    buffer_value(slots, i, "primal")
}

/// The arguments of a derivative's call.
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
            let message = format!("{} takes something that cannot be checked", derivative.name);
            Err(missing(message))
        }
    };
    let values: Result<Vec<String>, Diagnostic> = derivative.arguments.iter().map(value).collect();
    Ok(values?.join(", "))
}

/// How a part of a returned value is read.
fn part_value(derivative: &Derivative, part: &Part) -> String {
    match derivative.results.len() {
        1 => "result".to_string(),
        _ => format!("result.{}", part.name),
    }
}

/// A statement that makes a call, and keeps what it returns.
fn kept_call(derivative: &Derivative, arguments: &str) -> String {
    let keep = if derivative.results.is_empty() {
        ""
    } else {
        "__auto_type result = "
    };
    format!("    {keep}{}({arguments});\n", derivative.name)
}

fn forward_call(slots: &[Slot<'_>], derivative: &Derivative) -> Result<String, Diagnostic> {
    let mut text = String::from("static double gr_forward(void)\n{\n");
    text.push_str(&kept_call(
        derivative,
        &arguments(slots, derivative, "tangent")?,
    ));
    let tangent = derivative
        .results
        .iter()
        .find(|p| matches!(p.role, Role::ResultTangent(_)));
    let value = tangent.map_or("0".to_string(), |part| part_value(derivative, part));
    line(&mut text, format!("    return {value};\n}}"));
    Ok(text)
}

fn reverse_call(slots: &[Slot<'_>], derivative: &Derivative) -> Result<String, Diagnostic> {
    let mut text = String::from("static void gr_reverse(double cotangent)\n{\n");
    text.push_str(&kept_call(
        derivative,
        &arguments(slots, derivative, "adjoint")?,
    ));
    for part in &derivative.results {
        if let Role::Adjoint(i, _) = part.role {
            let value = part_value(derivative, part);
            line(
                &mut text,
                format!("    {} += {value};", buffer_value(slots, i, "adjoint")),
            );
        }
    }
    Ok(text + "}")
}

/// What the driver's call gave, and the function under the name that the linker leaves it.
fn given(derivative: &Derivative, result: Option<&str>) -> String {
    let mut text = String::new();
    let mut types = Vec::new();
    for argument in &derivative.primal {
        line(
            &mut text,
            format!(
                "static {} gr_given_{};",
                loose(&argument.c_type),
                argument.name
            ),
        );
        types.push(argument.c_type.as_str());
    }
    let result = result.unwrap_or("void");
    text + &format!(
        "{result} __real_{}({});\n",
        derivative.function,
        types.join(", ")
    )
}

/// A type without what forbids assigning to it.
fn loose(c_type: &str) -> String {
    c_type
        .replace("restrict", "")
        .trim_end_matches("const")
        .trim()
        .to_string()
}

/// What the driver's calls come to.
fn wrapper(derivative: &Derivative, result: Option<&str>) -> String {
    let list = derivative.primal.iter();
    let params: Vec<String> = list
        .map(|a| format!("{} {}", loose(&a.c_type), a.name))
        .collect();
    let result = result.unwrap_or("void");
    let mut text = format!(
        "{result} __wrap_{}({})\n{{\n",
        derivative.function,
        params.join(", ")
    );
    for argument in &derivative.primal {
        line(&mut text, format!("    gr_given_{0} = {0};", argument.name));
    }
    text + "    gr_check();\n    abort();\n}"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_refused() {
        assert!(matches!(read("3.5", false), Some(Value::Number(n)) if n == "3.5"));
        assert!(matches!(read("2 * n + 1", false), Some(Value::Number(_))));
        assert!(
            matches!(read("rand(n * m)", true), Some(Value::Array { length, fill: Fill::Random }) if length == "n * m")
        );
        assert!(
            matches!(read("randint(n, m - 1)", true), Some(Value::Array { fill: Fill::Whole(b), .. }) if b == "m - 1")
        );
        assert!(
            matches!(read("[0.5, -1e-3,n]", true), Some(Value::Array { length, fill: Fill::Listed(v) }) if length == "3" && v == ["0.5", "-1e-3", "n"])
        );
        for text in ["", "x; abort()", "\"a\""] {
            assert!(read(text, false).is_none(), "{text}");
        }
        for text in [
            "5",
            "rand",
            "rand()",
            "rand(n",
            "noise(n)",
            "randint(n)",
            "rand(n); f(",
            "rand(n, 2)",
            "[]",
            "[1, 2",
            "[1, abort(); 2]",
        ] {
            assert!(read(text, true).is_none(), "{text}");
        }
    }
}
