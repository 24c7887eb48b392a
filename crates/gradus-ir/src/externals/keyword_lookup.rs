//! Recognition of the interface's names: markers, registrations, attributes, metadata and hooks.
//!
//! A name is looked up in the table [`KEYWORDS`], with or without C++ mangling.

use super::words::{
    AttributeMeaning, KEYWORDS, Keyword, KeywordKind, Marker, PREFIXES, Registration,
};

fn find(word: &str, wanted: impl Fn(KeywordKind) -> bool) -> Option<KeywordKind> {
    let row = (KEYWORDS.iter()).find(|row| row.keyword == word && wanted(row.kind))?;
    Some(row.kind)
}

/// Returns the keyword after an interface prefix, in a name or in the last component of a C++ name.
pub fn interface_keyword(name: &str) -> Option<&str> {
    // Variables of device code have a prefix in the host module.
    let name = last_part(name.strip_prefix(super::VARIABLE_PREFIX).unwrap_or(name));
    let mut words = PREFIXES
        .iter()
        .filter_map(|prefix| name.strip_prefix(prefix));
    words.find(|word| !word.is_empty())
}

/// Returns the last component of a namespaced C++ symbol; any other name unchanged.
fn last_part(symbol: &str) -> &str {
    let Some(mut rest) = symbol.strip_prefix("_ZN") else {
        return symbol;
    };
    rest = rest.strip_prefix('L').unwrap_or(rest);
    let mut last = symbol;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let length = rest[..digits].parse::<usize>();
        let Some(part) = length
            .ok()
            .and_then(|length| rest.get(digits..digits + length))
        else {
            return last;
        };
        (last, rest) = (part, &rest[digits + part.len()..]);
    }
}

/// Returns the marker called `name`, under either prefix.
pub fn marker_named(name: &str) -> Option<Marker> {
    match find(interface_keyword(name)?, |means| {
        matches!(means, KeywordKind::Marker(_))
    })? {
        KeywordKind::Marker(marker) => Some(marker),
        _ => None,
    }
}

/// Returns the meaning of an attribute, by the keyword after the prefix.
pub fn attribute_named(word: &str) -> Option<AttributeMeaning> {
    match find(word, |means| matches!(means, KeywordKind::Attribute(_)))? {
        KeywordKind::Attribute(mark) => Some(mark),
        _ => None,
    }
}

/// Returns the meaning of metadata, by the keyword after the prefix.
pub fn metadata_named(word: &str) -> Option<AttributeMeaning> {
    match find(word, |means| matches!(means, KeywordKind::Metadata(_)))? {
        KeywordKind::Metadata(mark) => Some(mark),
        _ => None,
    }
}

/// Returns the part of a variable's name, mangled or not, after the registration prefix of either interface.
/// A variable with such a name is a registration, even with an unknown keyword.
pub fn registration_part(variable: &str) -> Option<&str> {
    let starts = PREFIXES.iter().filter_map(|prefix| {
        let at = variable.find(&format!("__{prefix}"))?;
        Some(&variable[at + 2 + prefix.len()..])
    });
    // The guard of a variable's initialisation contains the variable's name.
    let guard = variable.starts_with("_ZGV");
    starts
        .min_by_key(|rest| variable.len() - rest.len())
        .filter(|_| !guard)
}

/// Returns the registration of a variable: `None` for other variables, `Some(None)` for an unknown keyword.
pub fn registration_named(variable: &str) -> Option<Option<Registration>> {
    let part = registration_part(variable)?;
    let row = KEYWORDS.iter().find_map(|row| match row.kind {
        KeywordKind::Registration(meaning) if part.starts_with(row.keyword) => Some(meaning),
        _ => None,
    });
    Some(row)
}

/// Returns whether a symbol belongs to the interface by name alone, even with an unknown keyword.
pub fn is_reserved(name: &str) -> bool {
    name.contains("__enzyme_") || is_gradus_call(name)
}

/// Returns whether a symbol is a call of the table under the prefix `__gradus_`, alone or with a suffix. The
/// runtime library also has symbols with the prefix.
fn is_gradus_call(symbol: &str) -> bool {
    let Some((_, rest)) = symbol.split_once("__gradus_") else {
        // Not an error: the symbol has no prefix of the interface.
        return false;
    };
    let is_word = |row: &Keyword| {
        let word = row.keyword.strip_prefix("__enzyme_");
        let tail = word.and_then(|word| rest.strip_prefix(word));
        let ends = tail.is_some_and(|tail| !tail.starts_with(char::is_lowercase));
        matches!(row.kind, KeywordKind::Call(_) | KeywordKind::Rewrite(_)) && ends
    };
    KEYWORDS.iter().any(is_word)
}

/// Returns whether a function of the program is a hook called by Enzyme.
pub fn is_hook(name: &str) -> bool {
    let hooks = KEYWORDS.iter().filter(|row| row.kind == KeywordKind::Hook);
    hooks
        .clone()
        .any(|row| row.keyword == name || is_mangled(name, row.keyword))
}

/// Returns whether a C++ symbol is the mangled name of a file-scope function `name`.
fn is_mangled(symbol: &str, name: &str) -> bool {
    let rest = symbol.strip_prefix(&format!("_Z{}", name.len()));
    rest.is_some_and(|rest| rest.starts_with(name))
}
