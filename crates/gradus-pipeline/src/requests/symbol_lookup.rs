//! Symbol lookup: resolves names given by the user to symbols of the program.

use crate::GradRequest;
use gradus_ir::{Code, Diagnostic};
use gradus_llvm::Host;
use gradus_llvm::host::symbols::demangle;

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
        [] => Err(unknown(name, &all)),
        several => {
            let list: Vec<String> = several.iter().map(|s| with_source_name(s)).collect();
            let message = format!("{} functions are named `{name}`", list.len());
            let help = format!("use one of the symbols {}", list.join(", "));
            Err(Diagnostic::error(Code::BadRequest, message).help(help))
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

/// Returns a symbol with the source name.
fn with_source_name(symbol: &str) -> String {
    match demangle(symbol) {
        same if same == symbol => same,
        source => format!("{symbol} ({source})"),
    }
}

/// Returns true if `name` denotes a function with the qualified name `full`: `a::f`, `f(double)` and
/// `a::f(double)` denote `a::f(double)`. Spaces are ignored.
fn matches_qualified_name(full: &str, name: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
    let (head, parameters) = split_parameters(full);
    let ends = |whole: &str| {
        let (whole, name) = (plain(whole), plain(name));
        let before = whole.strip_suffix(name.as_str());
        !name.is_empty() && before.is_some_and(|b| b.is_empty() || b.ends_with("::"))
    };
    ends(head) || ends(&format!("{head}{parameters}"))
}

/// Splits a qualified name from the parameters. The result type of a function template's instance is left
/// out.
fn split_parameters(full: &str) -> (&str, &str) {
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in full.char_indices() {
        let is_operator = full[..at].trim_end().ends_with("operator");
        match c {
            '<' if !is_operator => depth += 1,
            '>' if depth > 0 => depth -= 1,
            ' ' if depth == 0 && !is_operator => begin = at + 1,
            '(' if depth == 0 && !is_operator => return (&full[begin..at], &full[at..]),
            _ => {}
        }
    }
    (&full[begin..], "")
}

fn unknown(name: &str, all: &[String]) -> Diagnostic {
    let message = format!("no function `{name}` is defined in this program");
    let finding = Diagnostic::error(Code::NoSuchFunction, message);
    let mut near: Vec<(usize, &String)> = all.iter().map(|f| (edit_distance(name, f), f)).collect();
    near.sort();
    match near.first() {
        Some((steps, best)) if *steps <= name.len().div_ceil(3) => {
            finding.help(format!("did you mean `{best}`?"))
        }
        Some(_) if all.len() <= 12 => {
            let list: Vec<String> = all.iter().map(|s| with_source_name(s)).collect();
            finding.help(format!("the program defines {}", list.join(", ")))
        }
        Some(_) => finding.help(format!("the program defines {} other functions", all.len())),
        None => finding.help("the program defines no functions"),
    }
}

/// Returns the number of letters to insert, drop or replace to turn a word into another (Levenshtein
/// distance).
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{edit_distance, matches_qualified_name};

    #[test]
    fn names_with_scopes_and_types_mean_functions() {
        let full = "double a::P<int>::e(double, int) const";
        for name in [
            "a::P<int>::e",
            "P<int>::e",
            "e",
            "e(double,int) const",
            "a::P<int>::e(double, int) const",
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
    fn distance_counts_letters() {
        assert_eq!(edit_distance("energy", "energy"), 0);
        assert_eq!(edit_distance("energy", "enrgy"), 1);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
