//! Library functions that write text or integers, by call, over memory that holds active floats at other times
//! (GRD0008): `snprintf` or `strcpy` into a union with a number.
//!
//! Such a function has no derivative: the shadow keeps the old number. C++ strings are exempt, because the language ends
//! the life of the number before the string begins.

use crate::checks::address_parts::{is_in_address, may_be_active};
use crate::checks::finding::Finding;
use crate::checks::variant::{CallFacts, VariantFacts};
use gradus_ir::externals::{Effects, ExternalFn, SystemFn, TextFn, is_cpp_text_function};
use gradus_ir::{Code, Value};

/// Refuses calls that write such memory through an argument.
pub(crate) fn check(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let unit = variant.facts.unit;
    variant.at_known_calls(|call, known| {
        let callee = unit.callee(variant.body, call.op)?;
        let name = &unit.functions[callee].name;
        let effects = unit.known_effects(callee).unwrap_or(Effects::UNKNOWN);
        let is_library = matches!(known, ExternalFn::System(_) | ExternalFn::Text(_))
            && known != ExternalFn::Text(TextFn::Buckets);
        let is_refused = is_library
            && effects.inactive
            && !is_cpp_text_function(name)
            && writes_over_floats(variant, call, known, effects);
        is_refused.then(|| {
            let message = format!(
                "`{}` writes over memory that holds active floats at other times",
                unit.functions[callee].display_name()
            );
            let help = "write to memory that holds no floats, for example to a structure member of its own instead of a union";
            [variant.error(call.op, Code::FloatBits, message).help(help)]
        })
    })
}

/// Refuses calls that append the bytes of active numbers to a C++ string: the string has no shadow.
pub(crate) fn numbers_as_text(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let unit = variant.facts.unit;
    variant.at_known_calls(|call, _| {
        let callee = unit.callee(variant.body, call.op)?;
        let name = &unit.functions[callee].name;
        let mut texts = call.args.iter().skip(1);
        let is_refused =
            is_cpp_text_function(name) && texts.any(|arg| is_active_number(variant, *arg));
        is_refused.then(|| {
            let message = format!(
                "`{}` copies the bytes of active numbers into a text",
                unit.functions[callee].display_name()
            );
            let help = "keep the numbers in a `std::vector<double>` or an array";
            [variant.error(call.op, Code::FloatBits, message).help(help)]
        })
    })
}

/// Returns true if an argument points to an active number, or to an address of active memory.
fn is_active_number(variant: &VariantFacts<'_>, arg: Value) -> bool {
    let (words, memory) = (variant.facts.words, variant.facts.memory);
    let mut places = memory.targets(variant.func, arg).iter();
    places.any(|place| {
        let seen = words.type_at(memory, *place);
        let is_number = seen.has_float() && !seen.has_pointer();
        is_number && may_be_active(variant, place.class) || is_in_address(variant, *place)
    })
}

/// Returns true if a call writes memory that holds active floats. A text of unknown length counts as one byte: a text
/// stays in its member.
fn writes_over_floats(
    variant: &VariantFacts<'_>,
    call: &CallFacts,
    known: ExternalFn,
    effects: Effects,
) -> bool {
    let memory = variant.facts.memory;
    let bytes = written_bytes(variant, known, &call.args).max(1);
    let is_over_floats = |(index, arg): (usize, &Value)| {
        let targets = memory.targets(variant.func, *arg);
        effects.writes.argument(index)
            && variant.points_to_active(*arg)
            && targets.iter().any(|place| {
                variant.classes.is_useful(place.class)
                    && variant.facts.words.overlaps_floats(memory, *place, bytes)
            })
    };
    call.args.iter().enumerate().any(is_over_floats)
}

/// Returns the constant length of the written text, or 0 if the length is unknown.
fn written_bytes(variant: &VariantFacts<'_>, known: ExternalFn, args: &[Value]) -> u64 {
    let length = match known {
        ExternalFn::System(SystemFn::PrintToMemory) => args.get(1),
        ExternalFn::Text(TextFn::Strncpy) => args.get(2),
        _ => None,
    };
    let bytes = length.and_then(|value| variant.body.as_int(variant.facts.unit, *value));
    bytes.map_or(0, i64::unsigned_abs)
}
