//! Tables that compilers make: words of tables of functions that are null, so that no call goes through them, and the
//! names of types.

use crate::constraints::Solver;
use crate::memory::Origin;
use crate::unify::Target;
use gradus_ir::{GlobalId, Relocation, Unit};

/// The size of a pointer.
const POINTER_BYTES: usize = 8;

impl Solver<'_> {
    /// Whether a place can only lie in constants that hold null there: what a table of functions has for types with
    /// nothing to drop.
    pub fn holds_null(&mut self, place: Target) -> bool {
        let at = self.classes.find(place);
        let origins = self.classes.content(place).origins.clone();
        let constants = origins.iter().map(|origin| match origin {
            Origin::Global(global) => self.is_null_at(*global, at),
            _ => false,
        });
        let constants: Vec<bool> = constants.collect();
        !constants.is_empty() && constants.into_iter().all(|is_null| is_null)
    }
    /// Whether a constant has null in every word that `at` may be; large ones are not looked through.
    fn is_null_at(&mut self, global: GlobalId, at: Target) -> bool {
        const SIZE_MAX: usize = 4096;
        let variable = &self.unit.globals[global];
        let init = (variable.init.as_ref()).filter(|_| variable.constant && variable.defined);
        let Some(init) = init.filter(|init| init.bytes.len() <= SIZE_MAX) else {
            return false;
        };
        let start = self.global(global);
        let last = (init.bytes.len() + 1).saturating_sub(POINTER_BYTES);
        let mut words = (0..last).filter(|o| self.classes.find(start.plus(*o as i64)) == at);
        let is_null = |offset: usize| {
            let word = offset..offset + POINTER_BYTES;
            let meets = |r: &Relocation| {
                (r.offset_bytes as usize) < word.end
                    && word.start < r.offset_bytes as usize + POINTER_BYTES
            };
            init.bytes[word.clone()].iter().all(|byte| *byte == 0)
                && !init.relocations.iter().any(meets)
        };
        words.all(is_null)
    }
}

/// Whether a global variable tells a type's name at run time (Itanium's `_ZTI`). It holds no numbers and is read by
/// nobody but what throws and catches; a word that may hold its address, as a `std::function`'s that may hold what it
/// calls, says nothing of where such addresses lead.
pub(crate) fn is_type_info(unit: &Unit, global: GlobalId) -> bool {
    let variable = &unit.globals[global];
    variable.constant && variable.name.starts_with("_ZTI")
}
