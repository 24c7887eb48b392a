//! The calls of a page: `@sum(n = 4, x = [1.0, 2.0], y = undef 16)`.
//!
//! An argument is a number, `true`, `false`, `null`, `@symbol`, or for a pointer an array. An array is
//! `zeros 8` (a number of binary64 zeros), `undef 64` (a number of undefined bytes), or a list of numbers.
//! A list has floats if any number has a point; an element type other than `f64` or `i64` precedes the list
//! (`f32 [1, 2]`). Arguments are in order or named.

use gradus_interp::{Address, Machine, Options, Trap, Value};
use gradus_ir::{FloatKind, FuncId, Type, TypeId, Unit};

/// The elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Binary64 numbers.
    F64,
    /// Binary32 numbers.
    F32,
    /// Integers with a size in bytes.
    Int(u32),
    /// Undefined bytes.
    Undefined,
}

/// An array argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The element type.
    pub elements: Elements,
    /// The floats.
    pub numbers: Vec<f64>,
    /// The integers, for integer elements.
    pub integers: Vec<i128>,
    /// The size in bytes, for undefined elements.
    pub size_bytes: u64,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A float.
    Float(f64),
    /// An integer.
    Int(i128),
    /// Null.
    Null,
    /// The address of a function or global variable.
    Symbol(String),
    /// The address of fresh memory.
    Array(Array),
}

/// A call to be checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The name of the function.
    pub function: String,
    /// Arguments, with names if given.
    pub args: Vec<(Option<String>, Argument)>,
}

/// The outcome of a call.
#[derive(Debug)]
pub struct CallOutcome {
    /// The result, or the trap.
    pub outcome: Result<Option<Value>, Trap>,
    /// The array arguments: parameter index, array, and address.
    pub arrays: Vec<(usize, Array, Address)>,
}

impl Call {
    /// Parses a call.
    ///
    /// # Errors
    /// A sentence with the syntax error.
    pub fn parse(text: &str) -> Result<Call, String> {
        let open = text.find('(').ok_or("expected a call `@name(arguments)`")?;
        let close = text
            .rfind(')')
            .ok_or("expected `)` at the end of the call")?;
        let function = text[..open].trim().trim_start_matches('@').to_string();
        let inside = text
            .get(open + 1..close)
            .ok_or("expected a call `@name(arguments)`")?;
        let mut args = Vec::new();
        for part in split(inside) {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (Some(name.trim().to_string()), value.trim()),
                None => (None, part.trim()),
            };
            args.push((name, argument(value)?));
        }
        Ok(Call { function, args })
    }

    /// Returns the arguments in the order of the function's parameters.
    ///
    /// # Errors
    /// A sentence with the mismatch.
    pub fn ordered_arguments(&self, unit: &Unit) -> Result<(FuncId, Vec<Argument>), String> {
        let name = &self.function;
        let func = unit
            .function(name)
            .ok_or(format!("undefined function `{name}`"))?;
        let function = &unit.functions[func];
        let count = unit.param_types(function.ty).len();
        let mut slots: Vec<Option<Argument>> = vec![None; count];
        for (position, (name, value)) in self.args.iter().enumerate() {
            let index = match name {
                None => position,
                Some(name) => {
                    let own = |n: &Option<String>| n.as_ref() == Some(name);
                    let found = function.param_names.iter().position(own);
                    found.ok_or(format!("unknown argument `{name}`"))?
                }
            };
            let slot = slots
                .get_mut(index)
                .ok_or("the call has too many arguments")?;
            *slot = Some(value.clone());
        }
        let slots: Option<Vec<Argument>> = slots.into_iter().collect();
        Ok((func, slots.ok_or("the call has too few arguments")?))
    }
}

/// Splits at commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn argument(text: &str) -> Result<Argument, String> {
    if let Some(name) = text.strip_prefix('@') {
        return Ok(Argument::Symbol(name.to_string()));
    }
    match text {
        "null" => return Ok(Argument::Null),
        "true" => return Ok(Argument::Int(1)),
        "false" => return Ok(Argument::Int(0)),
        _ => {}
    }
    if let Some(count) = text.strip_prefix("zeros ") {
        let count: usize = count
            .trim()
            .parse()
            .map_err(|_| format!("`{text}` is not an array"))?;
        return Ok(Argument::Array(floats(Elements::F64, vec![0.0; count])));
    }
    if let Some(size) = text.strip_prefix("undef ") {
        let size_bytes = size
            .trim()
            .parse()
            .map_err(|_| format!("`{text}` is not an array"))?;
        let mut array = floats(Elements::Undefined, Vec::new());
        array.size_bytes = size_bytes;
        return Ok(Argument::Array(array));
    }
    if let Some(open) = text.find('[') {
        return array(text[..open].trim(), &text[open..]).map(Argument::Array);
    }
    if let Ok(n) = text.parse() {
        return Ok(Argument::Int(n));
    }
    text.parse()
        .map(Argument::Float)
        .map_err(|_| format!("`{text}` is not an argument"))
}

fn floats(elements: Elements, numbers: Vec<f64>) -> Array {
    Array {
        elements,
        numbers,
        integers: Vec::new(),
        size_bytes: 0,
    }
}

fn array(kind: &str, list: &str) -> Result<Array, String> {
    let inside = list.trim_start_matches('[').trim_end_matches(']');
    let items: Vec<&str> = inside
        .split(',')
        .map(str::trim)
        .filter(|i| !i.is_empty())
        .collect();
    let whole = items.iter().all(|item| item.parse::<i128>().is_ok());
    let elements = match kind {
        "" if whole && !items.is_empty() => Elements::Int(8),
        "" | "f64" => Elements::F64,
        "f32" => Elements::F32,
        "i8" => Elements::Int(1),
        "i16" => Elements::Int(2),
        "i32" => Elements::Int(4),
        "i64" => Elements::Int(8),
        _ => return Err(format!("`{kind}` is not an element type")),
    };
    let bad = |item: &str| format!("`{item}` is not an element");
    if let Elements::Int(_) = elements {
        let integers: Result<Vec<i128>, String> = items
            .iter()
            .map(|item| item.parse().map_err(|_| bad(item)))
            .collect();
        let mut array = floats(elements, Vec::new());
        array.integers = integers?;
        return Ok(array);
    }
    let numbers: Result<Vec<f64>, String> = items
        .iter()
        .map(|item| item.parse().map_err(|_| bad(item)))
        .collect();
    Ok(floats(elements, numbers?))
}

impl Array {
    /// Returns the bytes; empty for undefined elements.
    pub fn bytes(&self) -> Vec<u8> {
        match self.elements {
            Elements::F64 => self.numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Elements::F32 => self
                .numbers
                .iter()
                .flat_map(|x| (*x as f32).to_le_bytes())
                .collect(),
            Elements::Int(size) => {
                let cut = |n: &i128| n.to_le_bytes()[..size as usize].to_vec();
                self.integers.iter().flat_map(cut).collect()
            }
            Elements::Undefined => Vec::new(),
        }
    }

    fn lay_out(&self, machine: &mut Machine) -> Result<Address, Trap> {
        match self.elements {
            Elements::Undefined => machine.alloc_undefined(self.size_bytes),
            _ => machine.alloc_bytes(&self.bytes()),
        }
    }

    /// Formats the contents of memory: numbers of the element type, `_` for undefined elements.
    pub fn contents(&self, bytes: &[Option<u8>]) -> String {
        let size = match self.elements {
            Elements::F64 | Elements::Undefined => 8,
            Elements::F32 => 4,
            Elements::Int(size) => size as usize,
        };
        let words: Vec<String> = bytes
            .chunks(size)
            .map(|chunk| {
                let Some(chunk) = chunk.iter().copied().collect::<Option<Vec<u8>>>() else {
                    return "_".into();
                };
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(&chunk);
                let bits = u64::from_le_bytes(word);
                match self.elements {
                    Elements::F32 => number_text(f64::from(f32::from_bits(bits as u32))),
                    Elements::Int(_) => {
                        let unused = 64 - 8 * size as u32;
                        (((bits << unused) as i64) >> unused).to_string()
                    }
                    _ => number_text(f64::from_bits(bits)),
                }
            })
            .collect();
        format!("[{}]", words.join(" "))
    }
}

/// Formats a number with at most twelve digits, independent of the machine.
pub fn number_text(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    let rounded: f64 = format!("{x:.11e}").parse().unwrap_or(x);
    match rounded.abs() {
        0.0 | 1e-4..1e15 => format!("{rounded}"),
        _ => format!("{rounded:e}"),
    }
}

/// Runs a call on a new machine.
///
/// # Errors
/// A sentence with the argument that does not fit; a trap of the program is in the outcome.
pub fn run_call<'u>(
    unit: &'u Unit,
    call: &Call,
    options: Options,
) -> Result<(Machine<'u>, CallOutcome), String> {
    let (func, args) = call.ordered_arguments(unit)?;
    let mut machine = Machine::with_options(unit, options);
    let types = unit.param_types(unit.functions[func].ty).to_vec();
    let mut arrays = Vec::new();
    let mut values = Vec::new();
    for (position, (argument, ty)) in args.into_iter().zip(types).enumerate() {
        values.push(match argument {
            Argument::Array(array) => {
                let address = array.lay_out(&mut machine).map_err(|t| t.to_string())?;
                arrays.push((position, array, address));
                Value::ptr(address)
            }
            Argument::Symbol(name) => {
                let address = machine.symbol(&name);
                Value::ptr(address.ok_or(format!("undefined symbol `@{name}`"))?)
            }
            Argument::Null => Value::ptr(Address(0)),
            Argument::Float(x) => number(unit, ty, x, None)?,
            Argument::Int(n) => number(unit, ty, n as f64, Some(n))?,
        });
    }
    let outcome = machine.call_function(func, &values);
    Ok((machine, CallOutcome { outcome, arrays }))
}

/// Returns a number as a value of a type.
fn number(unit: &Unit, ty: TypeId, x: f64, n: Option<i128>) -> Result<Value, String> {
    match (unit.types.get(ty), n) {
        (Type::Float(FloatKind::F64), _) => Ok(Value::f64(x)),
        (Type::Float(FloatKind::F32), _) => Ok(Value::f32(x as f32)),
        (Type::Int(bits @ 1..=64), Some(n)) => {
            Ok(Value::Bits(n as u64 & (u64::MAX >> (64 - bits))))
        }
        _ => Err("a number does not match the parameter type".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        let call =
            Call::parse("@f(n = 4, x = [1.0, 2], k = i32 [-1, 2], q = undef 8, @g)").unwrap();
        assert_eq!(call.function, "f");
        assert_eq!(call.args.len(), 5);
        assert_eq!(call.args[0], (Some("n".into()), Argument::Int(4)));
        let Argument::Array(x) = &call.args[1].1 else {
            panic!("an array");
        };
        assert_eq!(
            (x.elements, x.numbers.as_slice()),
            (Elements::F64, &[1.0, 2.0][..])
        );
        let Argument::Array(k) = &call.args[2].1 else {
            panic!("an array");
        };
        assert_eq!(k.bytes(), [255, 255, 255, 255, 2, 0, 0, 0]);
        assert_eq!(call.args[4].1, Argument::Symbol("g".into()));
        for bad in [
            "f",
            "@f(",
            "@f(x = what)",
            "@f(x = [1, two])",
            "@f(x = f99 [1])",
        ] {
            assert!(Call::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_short_and_stable() {
        assert_eq!(number_text(10.0), "10");
        assert_eq!(number_text(0.1 + 0.2), "0.3");
        assert_eq!(number_text(-1.5e-20), "-1.5e-20");
        assert_eq!(number_text(f64::NAN), "nan");
    }
}
