//! Attributes, metadata and annotations with names of the call interface. Each is honoured, taken as a
//! hint, or refused by name.
//!
//! Flow: [`crate::registrations::read`] calls this module before the early pipeline. Inactive instructions
//! and accesses of inactive variables are outlined here, into functions then registered as inactive.

use crate::registrations::Registrations;
use gradus_ir::externals::{AttributeMeaning, attribute_named, interface_keyword, metadata_named};
use gradus_ir::{Code, Diagnostic, SourceSpan};
use gradus_llvm::{
    Bearer, Host, InitCell, MarkForm, Marked, MarkedInstructions, annotation_location,
};
use std::collections::{BTreeMap, BTreeSet};

/// The words of an annotation: bearer, text, file, line, further arguments.
pub(crate) const WORDS_PER_ANNOTATION: usize = 5;

/// The meaning of marks not yet turned into registrations.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Inactive variables.
    pub inactive_variables: BTreeSet<String>,
    /// Inactive instructions: number, word of the interface, source location.
    inactive_instructions: Vec<(usize, String, Option<SourceSpan>)>,
    /// Augmented primals and reverse functions named by metadata, by function.
    gradients: BTreeMap<String, [Option<String>; 2]>,
    /// The refusals.
    pub findings: Vec<Diagnostic>,
}

/// Refuses a word by name.
pub(crate) fn refuse_word(word: &str, why: &str, span: Option<SourceSpan>) -> Diagnostic {
    Diagnostic::error(Code::UnsupportedKeyword, format!("`{word}` {why}"))
        .at(span, "here")
        .help("remove the name; `docs/reference/interface-words.md` lists the supported names")
}

const NOT_SUPPORTED: &str = "is an unsupported name of the call interface";
const NOT_HERE: &str = "is supported on functions, variables of file scope and calls only";

impl Marks {
    /// Reads an entry of the table of annotations.
    pub(crate) fn annotation(&mut self, words: &[InitCell], into: &mut Registrations) {
        let [bearer, InitCell::Text(text), file, line, ..] = words else {
            // Not an error: the annotation is not a word of the interface.
            return;
        };
        let Some(rest) = interface_keyword(text) else {
            // Not an error: the annotation is not a word of the interface.
            return;
        };
        let bearer = match bearer {
            InitCell::Function(name) => Bearer::Function(name.clone()),
            InitCell::Variable(name) => Bearer::Variable(name.clone()),
            // A constant string is a variable, too.
            _ => Bearer::Component,
        };
        let (word, value) = rest.split_once('=').unwrap_or((rest, ""));
        let mark = Marked {
            form: MarkForm::Annotation,
            word: word.to_string(),
            text: value.to_string(),
            operands: Vec::new(),
            bearer,
            span: annotation_location(file, line),
        };
        self.record(mark, into);
    }

    /// Records a mark of any form.
    pub(crate) fn record(&mut self, mark: Marked, into: &mut Registrations) {
        let (word, meaning) = match mark.form {
            MarkForm::Metadata => (format!("!enzyme_{}", mark.word), metadata_named(&mark.word)),
            _ => (format!("enzyme_{}", mark.word), attribute_named(&mark.word)),
        };
        let Some(meaning) = meaning else {
            let why = "is not a name of the call interface";
            self.findings.push(refuse_word(&word, why, mark.span));
            return;
        };
        let mut functions = mark.operands.iter().filter_map(|operand| match operand {
            InitCell::Function(name) => Some(name.clone()),
            _ => None,
        });
        let named = functions.next_back();
        let why = match (meaning, mark.bearer, named) {
            (AttributeMeaning::Hint, ..) => return,
            (AttributeMeaning::Unsupported, ..) => NOT_SUPPORTED,
            (AttributeMeaning::Inactive, Bearer::Function(name), _) => {
                into.add_inactive(name);
                return;
            }
            (AttributeMeaning::Inactive, Bearer::Variable(name), _) => {
                self.inactive_variables.insert(name);
                return;
            }
            (
                AttributeMeaning::Inactive | AttributeMeaning::InactiveInstruction,
                Bearer::Instruction(number),
                _,
            ) => {
                self.inactive_instructions.push((number, word, mark.span));
                return;
            }
            (AttributeMeaning::Like, Bearer::Function(name), _) => {
                into.add_like(name, mark.text);
                return;
            }
            (AttributeMeaning::Augmented, Bearer::Function(name), Some(sweep)) => {
                self.gradients.entry(name).or_default()[0] = Some(sweep);
                return;
            }
            (AttributeMeaning::Gradient, Bearer::Function(name), Some(sweep)) => {
                self.gradients.entry(name).or_default()[1] = Some(sweep);
                return;
            }
            (AttributeMeaning::Derivative, Bearer::Function(name), Some(derivative)) => {
                into.add_derivative(name, derivative);
                return;
            }
            (
                AttributeMeaning::Augmented
                | AttributeMeaning::Gradient
                | AttributeMeaning::Derivative,
                Bearer::Function(_),
                None,
            ) => "does not name a function",
            _ => NOT_HERE,
        };
        self.findings.push(refuse_word(&word, why, mark.span));
    }

    /// Completes the marks after all were read: pairs the two halves of a gradient, outlines instructions
    /// and accesses.
    pub(crate) fn complete(
        &mut self,
        host: &mut Host,
        instructions: &MarkedInstructions,
        into: &mut Registrations,
    ) {
        for (function, sweeps) in std::mem::take(&mut self.gradients) {
            match sweeps {
                [Some(augmented), Some(reverse)] => into.add_gradient(function, augmented, reverse),
                _ => {
                    let why = format!(
                        "of `{function}` is incomplete: `!enzyme_augment` and `!enzyme_gradient` form a pair"
                    );
                    let word = if sweeps[0].is_some() {
                        "!enzyme_augment"
                    } else {
                        "!enzyme_gradient"
                    };
                    self.findings.push(refuse_word(word, &why, None));
                }
            }
        }
        let variables: Vec<String> = self.inactive_variables.iter().cloned().collect();
        let (accesses, elsewhere) = host.accesses_of(&variables);
        for (name, span) in elsewhere {
            let message = format!("the address of the inactive variable `{name}` escapes");
            let help = "mark the function that accesses the variable instead: `enzyme_inactive` covers direct loads and \
                        stores of a variable only";
            let finding = Diagnostic::error(Code::UnsupportedKeyword, message);
            self.findings.push(finding.at(span, "here").help(help));
        }
        let (mut wanted, mut bad) = (Vec::new(), Vec::new());
        for (number, word, span) in std::mem::take(&mut self.inactive_instructions) {
            let of_call = word == "!enzyme_inactive" || word == "enzyme_inactive";
            let fits = match of_call {
                true => host.is_call(instructions, number),
                false => !host.writes_or_points(instructions, number),
            };
            match fits {
                true if !wanted.contains(&number) => wanted.push(number),
                true => {}
                false => bad.push((word, span)),
            }
        }
        let refuse = |(word, span): (String, _)| {
            refuse_word(
                &word,
                "is not supported on an instruction of this kind",
                span,
            )
        };
        self.findings.extend(bad.into_iter().map(refuse));
        if !self.findings.is_empty() {
            return;
        }
        let (names, stayed) = host.outline_inactive(instructions, &wanted, &accesses);
        names.into_iter().for_each(|name| into.add_inactive(name));
        for _ in stayed {
            let word = "enzyme_inactive".to_string();
            self.findings.push(refuse((word, None)));
        }
    }
}
