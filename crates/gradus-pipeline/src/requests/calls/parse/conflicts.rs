//! Words of a call that contradict each other, do not fit the function, or come too late.

use super::{Marker, Parser, Token};
use gradus_ad::carries_float;
use gradus_ir::{Diagnostic, TypeId};
use std::ops::Range;

/// Pairs of contradictory result words.
const CONTRADICTIONS: [(Marker, Marker); 4] = [
    (Marker::NoReturn, Marker::PrimalReturn),
    (Marker::ConstReturn, Marker::ActiveReturn),
    (Marker::ConstReturn, Marker::DupReturn),
    (Marker::ActiveReturn, Marker::DupReturn),
];

/// Returns the name of a result word, or of a word with a value.
fn name(marker: Marker) -> Option<&'static str> {
    Some(match marker {
        Marker::NoReturn => "noret",
        Marker::PrimalReturn => "primal_return",
        Marker::ConstReturn => "const_return",
        Marker::ActiveReturn => "active_return",
        Marker::DupReturn => "dup_return",
        Marker::Width => "width",
        Marker::Tape => "tape",
        Marker::Allocated => "allocated",
        Marker::ByReference => "byref",
        // Not an error: other words neither concern the result nor have a value.
        _ => return None,
    })
}

impl Token {
    /// Returns the word if a value belongs to it.
    pub(super) fn with_value(&self) -> Option<Marker> {
        match self {
            Token::Marker(marker @ (Marker::Width | Marker::Tape | Marker::Allocated)) => {
                Some(*marker)
            }
            Token::Marker(_) | Token::Value(..) => None,
        }
    }
}

impl Parser<'_> {
    /// Records a word of the call.
    ///
    /// # Errors
    /// GRD0017: a word that contradicts an earlier word, and a second value for a word.
    pub(super) fn record_word(&mut self, marker: Marker) -> Result<(), Diagnostic> {
        let Some(word) = name(marker) else {
            // Not an error: the word does not concern the result.
            return Ok(());
        };
        if Token::Marker(marker).with_value().is_some() {
            if self.with_value.contains(&marker) {
                let message = format!("`{word}` appears twice in the call");
                return Err(self.error(message).help("remove one of the two"));
            }
            self.with_value.push(marker);
            return Ok(());
        }
        let other = |earlier: &&Marker| {
            let pairs = [(**earlier, marker), (marker, **earlier)];
            pairs.iter().any(|pair| CONTRADICTIONS.contains(pair))
        };
        if let Some(earlier) = self.on_result.iter().find(other).and_then(|m| name(*m)) {
            let message = format!("`{earlier}` and `{word}` contradict each other");
            return Err(self.error(message).help("remove one of the two"));
        }
        self.on_result.push(marker);
        Ok(())
    }

    /// Records the result words after the arguments.
    pub(super) fn record_trailing_words(&mut self) -> Result<(), Diagnostic> {
        let behind = self.tokens[self.next.min(self.tokens.len())..].to_vec();
        let words = behind.iter().filter_map(|token| match token {
            Token::Marker(marker) if token.with_value().is_none() => Some(*marker),
            Token::Marker(_) | Token::Value(..) => None,
        });
        words
            .into_iter()
            .try_for_each(|marker| self.record_word(marker))
    }

    /// Checks that the result words fit a result of type `ty`.
    ///
    /// # Errors
    /// GRD0017: `dup_return` without a pointer, `active_return` without a float.
    pub(super) fn words_fit_result(&self, ty: TypeId) -> Result<(), Diagnostic> {
        let unit = self.call.unit;
        if self.param_type_attr(0, "sret").is_some() {
            return Ok(());
        }
        let parts = crate::requests::abi::leaves(unit, ty);
        let has_pointer = parts.iter().any(|(_, part)| unit.types.is_ptr(*part));
        let misfit = |word: &str, wanted: &str| {
            let message = format!(
                "the call has `{word}`, but `{}` does not return {wanted}",
                self.name()
            );
            Err(self.error(message).help("remove the marker"))
        };
        if self.on_result.contains(&Marker::DupReturn) && !has_pointer {
            return misfit("dup_return", "a pointer");
        }
        if self.on_result.contains(&Marker::ActiveReturn) && !carries_float(unit, ty) {
            return misfit("active_return", "a float");
        }
        Ok(())
    }

    /// Checks that `byref` states the size of a structure taken by value.
    ///
    /// # Errors
    /// GRD0017: a wrong size, and a parameter that is a pointer or a number.
    pub(super) fn check_byref_size(
        &self,
        given: u64,
        group: &Range<usize>,
        in_memory: Option<TypeId>,
    ) -> Result<(), Diagnostic> {
        let (unit, types) = (self.call.unit, self.params());
        let param = self.param_name(group.start);
        let taken = match in_memory {
            Some(ty) => self.size_bytes(ty),
            None if unit.types.is_ptr(types[group.start]) && group.len() == 1 => {
                let message = format!(
                    "`byref` precedes `{param}` of `{}`, which is a pointer",
                    self.name()
                );
                let help = "remove `byref`, which marks the address of a structure that the function takes by value";
                return Err(self.error(message).help(help));
            }
            // Registers take eight bytes each. The last may be filled in part.
            None => {
                let last = self.size_bytes(types[group.end - 1]);
                let least = 8 * (group.len() as u64 - 1) + last;
                match given.div_ceil(8) == group.len() as u64 && given >= least {
                    true => given,
                    false => least,
                }
            }
        };
        if given == taken {
            return Ok(());
        }
        let message = format!(
            "`byref` states {given} bytes for `{param}` of `{}`, which has {taken} bytes",
            self.name()
        );
        Err(self
            .error(message)
            .help(format!("pass the size of the structure: `sizeof({param})`")))
    }

    /// Refuses a word after the arguments on which the arguments depend.
    pub(super) fn late_word_error(&self, marker: Marker) -> Diagnostic {
        let word = name(marker).unwrap_or_default();
        let message = format!("`enzyme_{word}` follows the arguments of `{}`", self.name());
        self.error(message)
            .help("pass the marker and the value before the first argument")
    }
}
