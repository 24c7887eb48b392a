//! Names of the source in messages, in place of the symbols of C++, Rust and Fortran.

use gradus_ir::Diagnostic;
use gradus_llvm::host::symbols::demangle;

/// Replaces the symbols between backquotes in message, labels and help. A symbol inside longer code, such as
/// `GRADUS_INACTIVE(symbol)`, stays; so do notes, which state symbols on purpose.
pub(crate) fn with_source_names(mut finding: Diagnostic) -> Diagnostic {
    finding.message = replace_symbols(&finding.message);
    finding.help = finding.help.as_deref().map(replace_symbols);
    for label in &mut finding.labels {
        label.text = replace_symbols(&label.text);
    }
    finding
}

fn replace_symbols(text: &str) -> String {
    let parts: Vec<String> = text
        .split('`')
        .enumerate()
        .map(|(number, part)| match number % 2 {
            0 => part.to_string(),
            _ => source_name(part),
        })
        .collect();
    parts.join("`")
}

/// Returns the name of a symbol in the source; other texts unchanged.
fn source_name(symbol: &str) -> String {
    if symbol.starts_with("_Z") || symbol.starts_with("_R") {
        return demangle(symbol);
    }
    fortran_name(symbol).unwrap_or_else(|| symbol.to_string())
}

/// Returns `module::variable` for flang's symbol of a module variable, and `variable` for a variable of a procedure. flang
/// writes names in lower case behind a letter for the kind: M for a module, F for a procedure, E for an entity.
fn fortran_name(symbol: &str) -> Option<String> {
    let scopes = symbol.strip_prefix("_Q")?;
    let (scopes, variable) = scopes.rsplit_once('E')?;
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let module = scopes.strip_prefix('M');
    match module {
        _ if !is_name(variable) => None,
        Some(module) if is_name(module) => Some(format!("{module}::{variable}")),
        _ => Some(variable.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::replace_symbols;

    #[test]
    fn symbols_become_names_of_the_source() {
        for (symbol, name) in [
            (
                "`_ZZ1fPKdiE7scratch` is kept",
                "`f(double const*, int)::scratch` is kept",
            ),
            ("`_QMlistsEhead`", "`lists::head`"),
            ("`_QFsolveEwork`", "`work`"),
            ("`_QMm` and `f.buffer`", "`_QMm` and `f.buffer`"),
        ] {
            assert_eq!(replace_symbols(symbol), name);
        }
    }
}
