//! Contradictory registrations of a function: two gradients, or a gradient of a function registered as
//! inactive.

use super::Registrations;
use gradus_ir::{Code, Diagnostic, SourceSpan};
use gradus_llvm::Host;
use std::collections::BTreeMap;

/// The mutually exclusive kinds of registrations of a function. Gradients and forward-mode derivatives are
/// a single kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Derived,
    Inactive,
    Like,
    Allocation,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Derived => "with a custom derivative",
            Kind::Inactive => "as inactive",
            Kind::Like => "like a known function",
            Kind::Allocation => "as an allocator",
        }
    }
}

/// Returns a diagnostic for each function with contradictory registrations. Equal registrations count once:
/// each file that includes a header may hold a copy.
pub(super) fn of(host: &Host, found: &Registrations) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut twice = |what: &str, names: Vec<(&String, String)>| {
        let mut first: BTreeMap<&String, String> = BTreeMap::new();
        let mut told: Vec<&String> = Vec::new();
        for (function, text) in names {
            let earlier = first.entry(function).or_insert_with(|| text.clone());
            if *earlier != text && !told.contains(&function) {
                told.push(function);
                let message =
                    format!("`{function}` is registered with {what} twice: {earlier}, and {text}");
                findings.push(finding(host, function, message));
            }
        }
    };
    let gradients = found.gradients.iter();
    let gradients = gradients.map(|[f, a, r]| (f, format!("`{a}` and `{r}`")));
    twice("a gradient", gradients.collect());
    let derivatives = found.derivatives.iter();
    let derivatives = derivatives.map(|[f, d]| (f, format!("`{d}`")));
    twice("a forward-mode derivative", derivatives.collect());
    let like = found.like.iter().map(|(f, name)| (f, format!("`{name}`")));
    twice("a known function", like.collect());
    let sizes = found.allocations.iter();
    let sizes = sizes.map(|(f, size, _)| (f, format!("argument {size}")));
    twice("a size", sizes.collect());

    let mut kinds: BTreeMap<&String, Vec<Kind>> = BTreeMap::new();
    let derived = found.gradients.iter().map(|[f, ..]| f);
    let derived = derived.chain(found.derivatives.iter().map(|[f, _]| f));
    let all = (derived.map(|f| (f, Kind::Derived)))
        .chain(found.inactive.iter().map(|f| (f, Kind::Inactive)))
        .chain(found.like.iter().map(|(f, _)| (f, Kind::Like)))
        .chain(
            found
                .allocations
                .iter()
                .map(|(f, ..)| (f, Kind::Allocation)),
        );
    for (function, kind) in all {
        let list = kinds.entry(function).or_default();
        if !list.contains(&kind) {
            list.push(kind);
        }
    }
    for (function, list) in kinds {
        if list.len() > 1 {
            let words: Vec<&str> = list.iter().map(|kind| kind.word()).collect();
            let message = format!("`{function}` is registered {}", words.join(" and "));
            findings.push(finding(host, function, message));
        }
    }
    findings
}

fn finding(host: &Host, function: &str, message: String) -> Diagnostic {
    let span = host.source_line(function).map(|line| SourceSpan {
        file: line.file,
        line: line.line,
        column: 0,
        called_at: None,
    });
    Diagnostic::error(Code::BadRequest, message)
        .at(span, "defined here")
        .help("keep one of the registrations")
}
