//! Symbol lookup: resolves names given by the user to symbols of the program.

use crate::GradRequest;
use gradus_ir::{Code, Diagnostic};
use gradus_llvm::Host;
use gradus_llvm::host::symbols::{demangle, split_parameters};
use std::collections::HashSet;

/// Returns the symbols of the functions named by the requests, in order.
///
/// # Errors
/// Names of no function or of several functions.
pub(crate) fn resolve(host: &Host, named: &[GradRequest]) -> Result<Vec<String>, Vec<Diagnostic>> {
    let (mut symbols, mut findings) = (Vec::new(), Vec::new());
    for wish in named {
        match resolve_one(host, &wish.function) {
            Ok(symbol) => symbols.push(symbol),
            Err(finding) => findings.push(finding),
        }
    }
    match findings.is_empty() {
        true => Ok(symbols),
        false => Err(findings),
    }
}

fn resolve_one(host: &Host, name: &str) -> Result<String, Diagnostic> {
    let all = host.defined_functions();
    for symbol in [name.to_string(), format!("{name}_")] {
        if host.defines(&symbol) {
            return reject_ambiguous(host, symbol, &all);
        }
    }
    let by_source = |f: &&String| host.source_name(f).is_some_and(|s| s == name);
    let hits: Vec<&String> = all.iter().filter(by_source).collect();
    let qualified = |f: &&String| matches_qualified_name(&demangle(f), name);
    let hits: Vec<&String> = match hits.is_empty() {
        true => all.iter().filter(qualified).collect(),
        false => hits,
    };
    match hits.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(unknown(host, name, &all)),
        several => {
            let message = format!("{} functions are named `{name}`", several.len());
            let finding = Diagnostic::error(Code::BadRequest, message);
            let list = several.iter().map(|symbol| candidate(host, symbol));
            let finding = list.fold(finding, |finding, text| finding.note(text));
            let names: HashSet<String> = several.iter().map(|symbol| demangle(symbol)).collect();
            Err(finding.help(match names.len() == several.len() {
                true => "use the full name of one of these functions",
                false => "use the symbol of one of these functions",
            }))
        }
    }
}

/// Returns the symbol. A function with internal linkage is refused if another file has a function of equal
/// name: linking numbers the later functions (`f.1`).
fn reject_ambiguous(host: &Host, symbol: String, all: &[String]) -> Result<String, Diagnostic> {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let renamed = |other: &&String| {
        let rest = other
            .strip_prefix(symbol.as_str())
            .and_then(|r| r.strip_prefix('.'));
        rest.is_some_and(is_number) && host.has_local_linkage(other)
    };
    let others: Vec<&String> = all.iter().filter(renamed).collect();
    if others.is_empty() || !host.has_local_linkage(&symbol) {
        return Ok(symbol);
    }
    let places = std::iter::once(&symbol).chain(others.iter().copied());
    let places: Vec<String> = (places.filter_map(|f| host.source_line(f)))
        .map(|place| format!("{}:{}", place.file, place.line))
        .collect();
    let message = format!(
        "{} static functions in different files are named `{symbol}`",
        others.len() + 1
    );
    let finding = Diagnostic::error(Code::BadRequest, message);
    let finding = match places.is_empty() {
        true => finding,
        false => finding.note(format!(
            "the functions are defined at {}",
            places.join(", ")
        )),
    };
    Err(finding
        .help("rename one of the functions, or make the intended function visible to other files"))
}

/// Describes a function that a name may denote: full name, symbol and line.
fn candidate(host: &Host, symbol: &str) -> String {
    let place = host.source_line(symbol);
    let place = place.map_or(String::new(), |at| format!(" at {}:{}", at.file, at.line));
    match demangle(symbol) {
        same if same == symbol => format!("`{symbol}`{place}"),
        full => format!("`{full}`{place}, symbol `{symbol}`"),
    }
}

/// Returns a symbol with the source name.
fn with_source_name(host: &Host, symbol: &str) -> String {
    match (demangle(symbol), host.source_name(symbol)) {
        (same, Some(source)) if same == symbol => source,
        (same, None) if same == symbol => same,
        (source, _) => source,
    }
}

/// Returns true if `name` denotes a function with the qualified name `full`: `a::f`, `f(double)` and
/// `a::f(double)` denote `a::f(double) const`. Spaces are ignored.
fn matches_qualified_name(full: &str, name: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
    let (head, parameters) = split_parameters(full);
    let types = parameters.rfind(')').map_or("", |end| &parameters[..=end]);
    let ends = |whole: &str| {
        let (whole, name) = (plain(whole), plain(name));
        let before = whole.strip_suffix(name.as_str());
        !name.is_empty() && before.is_some_and(|b| b.is_empty() || b.ends_with("::"))
    };
    ends(head) || ends(&format!("{head}{types}")) || ends(&format!("{head}{parameters}"))
}

fn unknown(host: &Host, name: &str, all: &[String]) -> Diagnostic {
    let message = format!("no function `{name}` is defined in this program");
    let finding = Diagnostic::error(Code::NoSuchFunction, message);
    let nearest = |symbol: &String| {
        let source = host.source_name(symbol);
        nearest_name(name, symbol, source.as_deref())
    };
    let mut near: Vec<(usize, String)> = all.iter().map(nearest).collect();
    near.sort();
    near.dedup();
    match near.first() {
        Some((steps, best)) if *steps <= name.len().div_ceil(3) => {
            finding.help(format!("did you mean `{best}`?"))
        }
        Some(_) if all.len() <= LISTED_MAX => {
            let list: Vec<String> = all.iter().map(|s| with_source_name(host, s)).collect();
            finding.help(format!("the program defines {}", list.join(", ")))
        }
        Some(_) => {
            let list = near.iter().take(LISTED_MAX).map(|(_, name)| name.as_str());
            let list: Vec<&str> = list.collect();
            let (others, list) = (all.len(), list.join(", "));
            finding.help(format!("the program defines {others} other functions, among them {list}"))
        }
        None => finding.help("the program defines no functions").note(
            "clang omits templates and inline functions without a use; rustc keeps functions with C linkage only (`#[unsafe(no_mangle)] pub extern \"C\" fn`), and `cargo gradus` differentiates the others",
        ),
    }
}

/// Maximal number of functions that a message lists.
const LISTED_MAX: usize = 12;

/// Returns the name of a function that is nearest to `name`, with the distance: the symbol, the name in the source, the
/// full name, or the full name without scopes or without parameters. Fortran's names have no case.
fn nearest_name(name: &str, symbol: &str, source: Option<&str>) -> (usize, String) {
    if let Some(source) = source
        && source.eq_ignore_ascii_case(name)
    {
        return (0, source.to_string());
    }
    let full = demangle(symbol);
    let (head, parameters) = split_parameters(&full);
    let last = |text: &str| text.rsplit("::").next().unwrap_or_default().to_string();
    let names = [
        symbol.to_string(),
        head.to_string(),
        last(head),
        format!("{head}{parameters}"),
        last(head) + parameters,
    ];
    let distances = source
        .map(String::from)
        .into_iter()
        .chain(names)
        .map(|one| (strsim::levenshtein(name, &one), one));
    distances.min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{matches_qualified_name, nearest_name};

    #[test]
    fn names_with_scopes_and_types_mean_functions() {
        let full = "double a::P<int>::e(double, int) const";
        for name in [
            "a::P<int>::e",
            "P<int>::e",
            "e",
            "e(double,int) const",
            "a::P<int>::e(double, int) const",
            "P<int>::e(double,int)",
        ] {
            assert!(matches_qualified_name(full, name), "{name}");
        }
        for name in ["", "P::e", "::e", "e(double)", "de", "double"] {
            assert!(!matches_qualified_name(full, name), "{name}");
        }
        assert!(matches_qualified_name(
            "std::pair<int, int> g<int, 2>(double)",
            "g<int, 2>"
        ));
        assert!(matches_qualified_name("a::f(float (*)(float))", "a::f"));
        assert!(matches_qualified_name(
            "a::operator()(double)",
            "a::operator()"
        ));
    }

    #[test]
    fn the_nearest_form_of_a_name_is_suggested() {
        let near = |name: &str| nearest_name(name, "_ZN1a6energyEd", None);
        assert_eq!(near("a::enrgy"), (1, "a::energy".to_string()));
        assert_eq!(near("energi"), (1, "energy".to_string()));
        assert_eq!(near("energy(duble)"), (1, "energy(double)".to_string()));
        let near = |name: &str| nearest_name(name, "_QMspringsPenergy", Some("energy"));
        assert_eq!(near("enegy"), (1, "energy".to_string()));
        assert_eq!(near("ENERGY"), (0, "energy".to_string()));
    }
}
