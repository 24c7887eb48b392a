//! Diagnostics as a SARIF 2.1.0 log (`--sarif FILE`), for code-scanning services and editors.
//!
//! One run per log; a rule per code that occurs, with the page of `gradus explain`. The first label of a diagnostic is
//! the location of the result, further labels are related locations. Columns count characters from 1.

use crate::explain;
use crate::render::{Sources, label_range};
use gradus::{Diagnostic, Label, Severity};
use serde_json::{Value, json};

/// Returns the log of a run.
pub fn log(diagnostics: &[Diagnostic]) -> String {
    let mut codes: Vec<&str> = diagnostics.iter().map(|d| d.code.number()).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut sources = Sources::default();
    let results = diagnostics
        .iter()
        .map(|one| result(one, &codes, &mut sources));
    let results: Vec<Value> = results.collect();
    let rules: Vec<Value> = codes.iter().map(|code| rule(code)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "gradus",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn rule(code: &str) -> Value {
    let page = explain::page(code).unwrap_or_default();
    json!({
        "id": code,
        "shortDescription": { "text": explain::title(page) },
        "help": { "text": page, "markdown": page },
    })
}

fn result(one: &Diagnostic, codes: &[&str], sources: &mut Sources) -> Value {
    let code = one.code.number();
    let level = match one.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let function = one.function.as_ref();
    let function = function.map(|name| format!("in function `{name}`"));
    let help = one.help.as_ref().map(|help| format!("help: {help}"));
    let lines = [one.message.clone()].into_iter().chain(function);
    let lines = lines.chain(one.notes.iter().cloned()).chain(help);
    let mut labels = one.labels.iter().map(|label| location(label, sources));
    let first: Vec<Value> = labels.by_ref().take(1).collect();
    let related: Vec<Value> = labels.collect();
    json!({
        "ruleId": code,
        "ruleIndex": codes.iter().position(|known| *known == code),
        "level": level,
        "message": { "text": lines.collect::<Vec<_>>().join("\n") },
        "locations": first,
        "relatedLocations": related,
    })
}

fn location(label: &Label, sources: &mut Sources) -> Value {
    let mut region = json!({ "startLine": label.span.line.max(1) });
    if label.span.column > 0
        && let Some(text) = sources.text(&label.span.file)
        && let Some(found) = label_range(text, label)
    {
        let start = text[..found.start].rfind('\n').map_or(0, |at| at + 1);
        let column = |at: usize| text[start..at].chars().count() + 1;
        region["startColumn"] = column(found.start).into();
        region["endColumn"] = column(found.end).into();
    }
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&label.span.file) },
            "region": region,
        },
        "message": { "text": label.text },
    })
}

/// Returns the URI of a file: relative for a relative path.
fn uri(file: &str) -> String {
    let mut uri = match file.starts_with('/') {
        true => "file://".to_string(),
        false => String::new(),
    };
    for byte in file.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => {
                uri.push(char::from(byte));
            }
            other => uri += &format!("%{other:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::{Code, SourceSpan};

    #[test]
    fn a_log_has_rules_results_and_places() {
        let at = |file: &str, line, column| {
            Some(SourceSpan {
                file: file.into(),
                line,
                column,
                called_at: None,
            })
        };
        let findings = [
            Diagnostic::warning(Code::ZeroDerivative, "zero").at(at("a b.c", 3, 0), "here"),
            Diagnostic::error(Code::UnknownCallee, "unknown")
                .in_function("f")
                .at(at("/p/x.c", 9, 2), "called")
                .at(at("y.c", 1, 0), "declared")
                .help("do"),
            Diagnostic::error(Code::BadOption, "option"),
        ];
        let log: Value = serde_json::from_str(&log(&findings)).expect("JSON");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
        assert_eq!(rules.len(), 3);
        let results = run["results"].as_array().expect("results");
        for (result, level) in results.iter().zip(["warning", "error", "error"]) {
            assert_eq!(result["level"], level);
            let index = result["ruleIndex"].as_u64().expect("an index") as usize;
            assert_eq!(rules[index]["id"], result["ruleId"]);
        }
        let place =
            |result: usize, kind: &str| results[result][kind][0]["physicalLocation"].clone();
        let found = place(0, "locations");
        assert_eq!(found["artifactLocation"]["uri"], "a%20b.c");
        assert_eq!(found["region"], json!({ "startLine": 3 }));
        assert_eq!(
            place(1, "locations")["artifactLocation"]["uri"],
            "file:///p/x.c"
        );
        assert_eq!(
            place(1, "relatedLocations")["artifactLocation"]["uri"],
            "y.c"
        );
        assert_eq!(
            results[1]["message"]["text"],
            "unknown\nin function `f`\nhelp: do"
        );
        assert_eq!(results[2]["locations"], json!([]));
    }
}
