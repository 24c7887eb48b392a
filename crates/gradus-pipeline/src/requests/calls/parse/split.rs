//! Split mode: parses the result's cotangents, the tape and its memory, after the arguments; and tape-size
//! queries, which may give activities alone.

use super::{ArgumentSource, Marker, Parser, Token, conversion};
use crate::requests::source_arguments;
use gradus_ad::{Mode, TapeOwner};
use gradus_ir::{Code, Diagnostic, Value};

impl Parser<'_> {
    /// Returns true if the call has only markers.
    pub(super) fn has_no_values(&self) -> bool {
        (self.tokens.iter()).all(|token| matches!(token, Token::Marker(_)))
    }

    /// Reads activities without arguments, as a size query may give them: an activity per argument, or
    /// none.
    pub(super) fn read_bare_activities(&mut self) -> Result<(), Diagnostic> {
        let is_activity = |token: &Token| matches!(token, Token::Marker(m) if m.is_activity());
        let stated: Vec<Marker> = (self.tokens.iter().filter(|t| is_activity(t)))
            .filter_map(|token| match token {
                Token::Marker(marker) => Some(*marker),
                Token::Value(..) => None,
            })
            .collect();
        self.tokens.retain(|token| !is_activity(token));
        self.markers()?;
        let arguments = source_arguments(self.call.unit, self.primal);
        if !stated.is_empty() && stated.len() != arguments.len() {
            let (given, taken) = (stated.len(), arguments.len());
            let message = format!(
                "the call states {given} activities for the {taken} arguments of `{}`",
                self.name()
            );
            return Err(self.error(message));
        }
        for (number, argument) in arguments.into_iter().enumerate() {
            let marker = match stated.get(number) {
                Some(marker) => *marker,
                None => self.default_marker(&argument.params)?,
            };
            let activities = self.activities(&argument.params, marker)?;
            self.variant.args.extend(activities);
        }
        let params = self.variant.args.len();
        self.variant.overwritten = vec![true; params];
        Ok(())
    }

    /// Reads the words after the arguments: flags, the result's cotangents, the tape.
    pub(super) fn read_after_arguments(&mut self) -> Result<(), Diagnostic> {
        let marker = self.markers()?;
        if marker.is_some() {
            let message = match self.next < self.tokens.len() {
                true => format!(
                    "the derivative call passes more arguments than `{}` has",
                    self.name()
                ),
                false => "no argument follows the last word of the derivative call".to_string(),
            };
            let help = format!(
                "the arguments of `{}` are {}",
                self.name(),
                self.param_list()
            );
            return Err(self.error(message).help(help));
        }
        match self.asks.mode {
            Mode::Forward | Mode::Combined => self.variant.overwritten.clear(),
            Mode::Augmented => {}
            Mode::Reverse => self.cotangents_and_tape()?,
        }
        self.check_split_arguments()?;
        let left = self.tokens.len() - self.next;
        let late = self.tokens.get(self.next..).unwrap_or_default();
        if let Some(marker) = late.iter().find_map(Token::with_value) {
            return Err(self.late_word_error(marker));
        }
        if left > 0 {
            let message = format!(
                "too many arguments in the derivative call of `{}` ({left} extra)",
                self.name()
            );
            let help = "pass the argument and the shadow for each `dup`, and one value for any further argument";
            return Err(self.error(message).help(help));
        }
        Ok(())
    }

    fn cotangents_and_tape(&mut self) -> Result<(), Diagnostic> {
        if self.variant.result.is_active() {
            let unit = self.call.unit;
            let ty = unit.result_type(unit.functions[self.primal].ty);
            for _ in 0..self.variant.width {
                let given = match self.tokens.get(self.next) {
                    Some(Token::Value(value, None)) => Some(*value),
                    _ => None,
                };
                let fits = |v: &Value| {
                    let from = self.call.body.ty(*v);
                    ty.is_some_and(|to| conversion(unit, from, to).is_some())
                };
                let Some(value) = given.filter(fits) else {
                    let message = format!(
                        "the cotangent of the result of `{}` is missing",
                        self.name()
                    );
                    return Err(self.error(message).help(
                        "pass the cotangent of the result (1.0 for a gradient) and the tape after the arguments",
                    ));
                };
                self.next += 1;
                self.cotangents.push(ArgumentSource::Direct(value));
            }
            self.markers()?;
        }
        if self.tape.is_none() {
            self.tape = Some(self.tape_value()?);
        }
        self.markers()?;
        Ok(())
    }

    /// Checks the split interface's arguments, which other modes refuse.
    fn check_split_arguments(&mut self) -> Result<(), Diagnostic> {
        let split = matches!(self.asks.mode, Mode::Augmented | Mode::Reverse);
        let given = self.tape.is_some() || self.allocated.is_some();
        if !split && given {
            let message = "`tape` and `allocated` are valid in split mode only";
            return Err(self.call.error(Code::SplitMode, message).help(
                "call `__enzyme_augmentfwd`, `__enzyme_reverse` or `__enzyme_augmentsize`, or remove the markers",
            ));
        }
        if !split {
            return Ok(());
        }
        if self.asks.mode == Mode::Augmented && self.tape.is_some() != self.allocated.is_some() {
            let message = "the augmented primal requires `tape` and `allocated` together";
            return Err(self.call.error(Code::SplitMode, message).help(
                "pass the memory of the tape and the size in bytes, `__enzyme_augmentsize(f, …)`, or neither",
            ));
        }
        self.variant.tape = match self.allocated.is_some() || self.asks.size_only {
            true => TapeOwner::UserMemory,
            false => TapeOwner::Program,
        };
        Ok(())
    }

    /// Reads the next value, a tape.
    pub(super) fn tape_value(&mut self) -> Result<Value, Diagnostic> {
        let token = self.tokens.get(self.next).copied();
        self.next += 1;
        match token {
            Some(Token::Value(value, _))
                if self.call.unit.types.is_ptr(self.call.body.ty(value)) =>
            {
                Ok(value)
            }
            _ => Err(self
                .call
                .error(Code::SplitMode, "the tape is missing")
                .help("pass the tape that `__enzyme_augmentfwd` returned, as the last argument or after `tape`")),
        }
    }
}
