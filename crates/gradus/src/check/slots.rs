//! The arguments of the checked function, with values and element types.

use super::Check;
use super::values::{Fill, RANDOM, Value, parse_value};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{Argument, Derivative, DescriptorKind, Role};

/// An argument of the function, as seen by the driver.
pub(super) struct Slot<'a> {
    pub(super) argument: &'a Argument,
    pub(super) value: Value,
    /// The C type of the number or of an element.
    pub(super) elem: String,
    /// The C type of a by-value structure, whose members are the elements.
    pub(super) structure: Option<String>,
    pub(super) active: bool,
}

impl Slot<'_> {
    /// Returns true if the function receives an address, or several numbers.
    pub(super) fn by_address(&self) -> bool {
        self.structure.is_some() || is_address(self.argument)
    }

    /// Returns true if `name` is the argument's name in the source. The header's name may belong to another
    /// argument in the source.
    pub(super) fn is_called(&self, name: &str) -> bool {
        is_called(self.argument, name)
    }
}

fn is_called(argument: &Argument, name: &str) -> bool {
    argument.source_name == name
}

fn is_address(argument: &Argument) -> bool {
    argument.c_type.contains('*')
}

pub(super) fn missing(message: String) -> Diagnostic {
    Diagnostic::error(Code::MissingCheckInput, message)
}

pub(super) fn is_float(ty: Option<&str>) -> bool {
    matches!(ty, Some("double" | "float" | "long double"))
}

/// Returns `x` for `x:float`.
pub(super) fn without_type_suffix(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

/// Element types that a user may state for memory, in addition to C's integer types.
const TYPES: [&str; 11] = [
    "double", "float", "bool", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t",
    "uint32_t", "uint64_t",
];

/// Returns true if memory can be filled with numbers of this type.
fn is_number_type(ty: &str) -> bool {
    let words = ["char", "short", "int", "long", "signed", "unsigned"];
    TYPES.contains(&ty) || ty.split(' ').all(|word| words.contains(&word))
}

/// Checks that every `--arg` names an argument, and that no argument is named twice.
fn check_argument_names(what: &Check, derivative: &Derivative) -> Result<(), Diagnostic> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, _) in &what.values {
        let name = without_type_suffix(name);
        let Some(argument) = derivative.primal.iter().find(|a| is_called(a, name)) else {
            let list = derivative.primal.iter().map(|a| a.source_name.as_str());
            let list: Vec<&str> = list.collect();
            let message = format!("{} has no argument `{name}`", derivative.source_name);
            return Err(Diagnostic::error(Code::NoSuchArgument, message)
                .note(format!("the arguments are {}", list.join(", "))));
        };
        if seen.contains(&argument.name.as_str()) {
            return Err(
                missing(format!("`{name}` has two values")).help("pass one `--arg` per argument")
            );
        }
        seen.push(&argument.name);
    }
    Ok(())
}

/// Returns the arguments in order, with values.
///
/// # Errors
/// `MissingCheckInput`, `NoSuchArgument`.
pub(super) fn slots<'a>(
    what: &Check,
    derivative: &'a Derivative,
) -> Result<Vec<Slot<'a>>, Diagnostic> {
    check_argument_names(what, derivative)?;
    let mut slots = Vec::new();
    let mut absent = Vec::new();
    for (i, argument) in derivative.primal.iter().enumerate() {
        check_supported(argument)?;
        let given = what
            .values
            .iter()
            .find(|(name, _)| is_called(argument, without_type_suffix(name)));
        match given {
            Some((name, value)) => slots.push(slot(argument, name, value, what)?),
            None if what.driver.is_some()
                && !is_address(argument)
                && argument.elements.is_none() =>
            {
                let value = Value::Number(format!("gr_given_{i}"));
                slots.push(with_element_type(argument, value, None)?);
            }
            None if is_float(Some(&argument.c_type)) => {
                slots.push(with_element_type(
                    argument,
                    Value::Number(RANDOM.into()),
                    None,
                )?);
            }
            None => match &argument.elements {
                Some((elem, count)) => {
                    slots.push(structure_slot(
                        argument,
                        elem,
                        *count,
                        &format!("rand({count})"),
                    )?);
                }
                None => absent.push(argument),
            },
        }
    }
    match absent.is_empty() {
        true => Ok(slots),
        false => Err(values_are_missing(what, derivative, &absent)),
    }
}

/// Refuses an argument for which no value can be given.
fn check_supported(argument: &Argument) -> Result<(), Diagnostic> {
    let name = &argument.source_name;
    let refuse = |how: &str, help: &str| {
        Err(missing(format!(
            "`{name}` is {how}, which `gradus check` does not support"
        ))
        .help(help))
    };
    let ty = argument.c_type.as_str();
    if argument.elements.is_none() && ty.starts_with("struct ") && !ty.contains('*') {
        return refuse(
            "a structure with members of different types",
            "check a wrapper function that takes the members",
        );
    }
    if ty.matches('*').count() > 1 {
        return refuse(
            "a pointer to pointers",
            "check a wrapper function that takes an array of numbers and builds the pointers",
        );
    }
    if ["long double", "__float128", "_Float16", "__attribute__"]
        .iter()
        .any(|t| ty.contains(t))
    {
        return refuse(
            &format!("of type {}", ty.trim_end_matches(['*', ' '])),
            "check a wrapper function that takes double or float",
        );
    }
    match &argument.descriptor {
        Some(d) if d.kind == DescriptorKind::Allocatable => refuse(
            "allocatable",
            "check a wrapper procedure that takes an array `x(:)` and allocates the argument",
        ),
        Some(d) if d.kind == DescriptorKind::Pointer => refuse(
            "a Fortran pointer",
            "check a wrapper procedure that takes an array `x(:)` with `target`",
        ),
        Some(d) if d.kind == DescriptorKind::AssumedRank => refuse(
            "of assumed rank",
            "check a wrapper procedure that takes an array `x(:)`",
        ),
        Some(d) if !is_number_type(&d.elem) => refuse(
            "an array of a type other than real or integer",
            "check a wrapper procedure that takes an array of numbers",
        ),
        _ => Ok(()),
    }
}

/// Returns an example of a value for an argument.
fn example(argument: &Argument, fill: &str) -> String {
    let name = &argument.source_name;
    let ty = &argument.c_type;
    if let Some(descriptor) = &argument.descriptor {
        let extents = vec!["8"; descriptor.rank as usize].join(",");
        return match is_float(Some(&descriptor.elem)) {
            true => format!("--arg '{name}={fill}({extents})'"),
            false => format!("--arg '{name}=randint({extents},8)'"),
        };
    }
    if !is_address(argument) {
        return format!("--arg {name}=100");
    }
    if ty.contains("struct ") || ty.contains("void") {
        return format!("--arg '{name}:double={fill}(100)'");
    }
    match ty.contains("double") || ty.contains("float") || fill == "given" {
        true => format!("--arg '{name}={fill}(100)'"),
        false => format!("--arg {name}=100"),
    }
}

fn values_are_missing(what: &Check, derivative: &Derivative, absent: &[&Argument]) -> Diagnostic {
    let mut finding = missing(format!(
        "values for arguments of {} are missing",
        derivative.source_name
    ));
    for argument in absent {
        let ty = match &argument.descriptor {
            Some(d) => format!("array of {} with {} dimensions", d.elem, d.rank),
            None => argument.c_type.clone(),
        };
        let article = match ty.starts_with(['a', 'i', 'u']) && !ty.starts_with("un") {
            true => "an",
            false => "a",
        };
        finding = finding.note(format!("`{}` is {article} {ty}", argument.source_name));
    }
    let fill = match what.driver {
        Some(_) => "given",
        None => "rand",
    };
    let example: Vec<String> = absent.iter().map(|a| example(a, fill)).collect();
    let finding = finding.help(format!(
        "pass the values, for example {}",
        example.join(" ")
    ));
    let is_integer = |a: &&&Argument| example_is_one_integer(a);
    match absent.iter().find(is_integer) {
        Some(a) => finding.note(format!(
            "`{0}=100` passes a pointer to one integer; `{0}=randint(LENGTH, BOUND)` or `{0}=[1, 2]` passes an array",
            a.source_name
        )),
        None => finding,
    }
}

fn example_is_one_integer(argument: &Argument) -> bool {
    let other = ["double", "float", "struct ", "void"];
    is_address(argument)
        && argument.descriptor.is_none()
        && !other.iter().any(|t| argument.c_type.contains(t))
}

fn not_understood(argument: &Argument, value: &str, what: &Check) -> Diagnostic {
    let note = match (is_address(argument), &what.driver) {
        (true, None) => {
            "an array is [VALUE, VALUE, …], rand(LENGTH), zeros(LENGTH), ones(LENGTH), iota(LENGTH) or randint(LENGTH, BOUND), and a single number is VALUE"
        }
        (true, Some(_)) => {
            "an array is [VALUE, VALUE, …], rand(LENGTH), zeros(LENGTH), ones(LENGTH), iota(LENGTH), randint(LENGTH, BOUND) or, from the driver, given(LENGTH), and a single number is VALUE"
        }
        (false, _) => "a value is a number or an expression of preceding arguments",
    };
    missing(format!(
        "`{}={value}` is not a valid value",
        argument.source_name
    ))
    .note(note)
}

fn slot<'a>(
    argument: &'a Argument,
    name: &str,
    text: &str,
    what: &Check,
) -> Result<Slot<'a>, Diagnostic> {
    if let Some((elem, count)) = &argument.elements {
        return structure_slot(argument, elem, *count, text);
    }
    let value = parse_value(text, is_address(argument))
        .ok_or_else(|| not_understood(argument, text, what))?;
    if let Value::Array {
        fill: Fill::FromDriver,
        ..
    } = value
        && (what.driver.is_none() || argument.descriptor.is_some())
    {
        let message = format!(
            "`{}={text}` requires an array from a driver",
            argument.source_name
        );
        return Err(missing(message).help("pass `--driver FILE` with a call of the function; for an array with a descriptor, use `rand`, `zeros`, `ones` or `iota`"));
    }
    let stated = name.split_once(':').map(|(_, ty)| ty.trim());
    with_element_type(argument, value, stated)
}

/// Returns an argument with its value. The element type is the stated type, by default the source's.
fn with_element_type<'a>(
    argument: &'a Argument,
    value: Value,
    stated: Option<&str>,
) -> Result<Slot<'a>, Diagnostic> {
    let name = &argument.source_name;
    let elem = match (&argument.descriptor, stated) {
        (Some(descriptor), _) => descriptor.elem.clone(),
        (None, Some(stated)) => stated.to_string(),
        (None, None) => {
            let pointee = argument.c_type.replace("const ", "");
            pointee
                .replace("restrict", "")
                .replace('*', "")
                .trim()
                .to_string()
        }
    };
    if stated.is_none() && (elem == "void" || elem.starts_with("struct ")) {
        let message = format!("the element type of `{name}` is unknown");
        return Err(missing(message).help(format!(
            "state the element type: `--arg '{name}:double=rand(n)'`; `gradus check` does not support structures with members of different types"
        )));
    }
    if !is_number_type(&elem) {
        let message = format!("`{name}:{elem}` does not name a supported number type");
        return Err(missing(message).help(format!(
            "use a C integer type or one of {}",
            TYPES.join(", ")
        )));
    }
    check_value_fits_type(argument, &value, &elem)?;
    // Memory without floats is its own shadow: the argument is inactive.
    let active = matches!(argument.role, Role::Active(_)) && is_float(Some(&elem));
    Ok(Slot {
        argument,
        value,
        elem,
        structure: None,
        active,
    })
}

/// Refuses values that the conversion to the type would silently change.
fn check_value_fits_type(argument: &Argument, value: &Value, elem: &str) -> Result<(), Diagnostic> {
    let name = &argument.source_name;
    let random = match value {
        Value::Number(number) => number == RANDOM,
        Value::Array { fill, .. } => *fill == Fill::Random,
    };
    if random && !is_float(Some(elem)) {
        let message = format!("`{name}` holds integers, but rand returns numbers between -1 and 1");
        return Err(missing(message).help(match value {
            Value::Number(_) => format!("pass a number: `--arg {name}=8`"),
            Value::Array { .. } => {
                format!("pass integers: `--arg '{name}=randint(LENGTH, BOUND)'`")
            }
        }));
    }
    let extents = match value {
        Value::Number(_) => 0,
        Value::Array { extents, .. } => extents.len(),
    };
    match &argument.descriptor {
        Some(d) if extents != d.rank as usize => {
            let lengths = ["3", "4", "5", "2", "2", "2", "2"];
            let lengths = lengths.iter().cycle().take(d.rank as usize);
            let lengths: Vec<&str> = lengths.copied().collect();
            let message = format!(
                "`{name}` is an array of {} dimensions, but the value has {extents}",
                d.rank
            );
            Err(missing(message).help(format!(
                "pass all lengths: `--arg '{name}=rand({})'`",
                lengths.join(",")
            )))
        }
        _ => Ok(()),
    }
}

/// Returns a by-value structure whose members have a single type.
fn structure_slot<'a>(
    argument: &'a Argument,
    elem: &str,
    count: u64,
    value: &str,
) -> Result<Slot<'a>, Diagnostic> {
    let counted = count.to_string();
    let fill = match parse_value(value, true) {
        Some(Value::Array { extents, fill }) if extents == [counted.clone()] => fill,
        _ => Fill::FromDriver,
    };
    if fill == Fill::FromDriver {
        let message = format!("`{}={value}` is not a valid value", argument.source_name);
        return Err(missing(message).note(format!(
            "a structure of {count} numbers is [VALUE, …] with {count} values, rand({count}), zeros({count}), ones({count}) or iota({count})"
        )));
    }
    Ok(Slot {
        argument,
        value: Value::Array {
            extents: vec![counted],
            fill,
        },
        elem: elem.to_string(),
        structure: Some(argument.c_type.clone()),
        active: matches!(argument.role, Role::Active(_)),
    })
}
