//! Library functions that write text or integers, by call, over memory that holds active floats at other times
//! (GRD0008): `snprintf` or `strcpy` into a union with a number.
//!
//! Such a function has no derivative: the shadow keeps the old number. C++ strings are exempt, because the language ends
//! the life of the number before the string begins.

use crate::checks::findings::Finder;
use gradus_ir::externals::{Effects, ExternalFn, SystemFn, TextFn, is_cpp_text_function};
use gradus_ir::{Code, FuncId, Op, Value};

impl Finder<'_> {
    /// Refuses a call that writes such memory through an argument. A text of unknown length counts as one byte: a text
    /// stays in its member.
    pub(super) fn check_text_over_floats(
        &mut self,
        op: Op,
        callee: FuncId,
        known: ExternalFn,
        effects: Effects,
    ) {
        let (unit, memory) = (self.facts.unit, self.facts.memory);
        let is_library = matches!(known, ExternalFn::System(_) | ExternalFn::Text(_))
            && known != ExternalFn::Text(TextFn::Buckets);
        let is_string = is_cpp_text_function(&unit.functions[callee].name);
        if !is_library || !effects.inactive || is_string {
            return;
        }
        let args = unit.call_args(self.body, op);
        let bytes = self.written_bytes(known, &args).max(1);
        let is_over_floats = |(index, arg): (usize, &Value)| {
            let targets = memory.targets(self.func, *arg);
            effects.writes.argument(index)
                && self.points_to_active(*arg)
                && targets.iter().any(|place| {
                    self.classes.is_useful(place.class)
                        && self.facts.words.overlaps_floats(memory, *place, bytes)
                })
        };
        if args.iter().enumerate().any(is_over_floats) {
            let message = format!(
                "`{}` writes over memory that holds active floats at other times",
                unit.functions[callee].display_name()
            );
            let help = "write to memory that holds no floats, for example to a structure member of its own instead of a union";
            self.refuse(op, Code::FloatBits, message, help);
        }
    }

    /// Returns the constant length of the written text, or 0 if the length is unknown.
    fn written_bytes(&self, known: ExternalFn, args: &[Value]) -> u64 {
        let length = match known {
            ExternalFn::System(SystemFn::PrintToMemory) => args.get(1),
            ExternalFn::Text(TextFn::Strncpy) => args.get(2),
            _ => None,
        };
        let bytes = length.and_then(|value| self.body.as_int(self.facts.unit, *value));
        bytes.map_or(0, i64::unsigned_abs)
    }
}
