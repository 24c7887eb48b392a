//! Serialises requests and replies, for the transfer to a child process and back.
//!
//! The format is postcard's; both ends are a single program, so the format needs no version. Diagnostics
//! are types of gradus-ir, which has no serialisation: mirror types are transferred instead.

use gradus_ir::{Code, Diagnostic, Label, Severity, SourceSpan};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The error for bytes that hold no request or reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a message of this program: {}", self.0)
    }
}

impl std::error::Error for WireError {}

/// Serialises a request or reply.
///
/// # Errors
/// None for the types of this crate.
pub fn to_bytes<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    postcard::to_stdvec(message).map_err(|e| WireError(e.to_string()))
}

/// Deserialises a request or reply.
///
/// # Errors
/// Bytes that hold neither.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    postcard::from_bytes(bytes).map_err(|e| WireError(e.to_string()))
}

#[derive(Serialize, Deserialize)]
struct Span {
    file: String,
    line: u32,
    column: u32,
}

#[derive(Serialize, Deserialize)]
struct Finding {
    code: String,
    severity: u8,
    message: String,
    function: Option<String>,
    labels: Vec<(Span, String)>,
    notes: Vec<String>,
    help: Option<String>,
}

impl From<&Diagnostic> for Finding {
    fn from(d: &Diagnostic) -> Self {
        let label = |l: &Label| {
            let span = Span {
                file: l.span.file.clone(),
                line: l.span.line,
                column: l.span.column,
            };
            (span, l.text.clone())
        };
        Finding {
            code: d.code.number().to_string(),
            severity: match d.severity {
                Severity::Note => 0,
                Severity::Warning => 1,
                Severity::Error => 2,
            },
            message: d.message.clone(),
            function: d.function.clone(),
            labels: d.labels.iter().map(label).collect(),
            notes: d.notes.clone(),
            help: d.help.clone(),
        }
    }
}

impl TryFrom<Finding> for Diagnostic {
    type Error = String;
    fn try_from(f: Finding) -> Result<Self, String> {
        let known = Code::ALL.iter().find(|c| c.number() == f.code);
        let code = *known.ok_or_else(|| format!("no code {}", f.code))?;
        let label = |(span, text): (Span, String)| Label {
            span: SourceSpan {
                file: span.file,
                line: span.line,
                column: span.column,
                called_at: None,
            },
            text,
        };
        Ok(Diagnostic {
            code,
            severity: match f.severity {
                0 => Severity::Note,
                1 => Severity::Warning,
                _ => Severity::Error,
            },
            message: f.message,
            function: f.function,
            labels: f.labels.into_iter().map(label).collect(),
            notes: f.notes,
            help: f.help,
        })
    }
}

/// Serialisation of diagnostics in a message.
pub(crate) mod diagnostics {
    use super::{Diagnostic, Finding};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(list: &[Diagnostic], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(Finding::from))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Diagnostic>, D::Error> {
        let list = Vec::<Finding>::deserialize(from)?;
        let list = list.into_iter().map(Diagnostic::try_from);
        list.collect::<Result<_, _>>()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GradRequest, GradTask, Input, Reply, Request, Task};

    #[test]
    fn messages_come_back_as_they_were() {
        let request = Request {
            inputs: vec![Input::new("a.c", *b"BC\xc0\xde\x00\xff")],
            task: Task::Grad(GradTask {
                derivatives: vec![GradRequest {
                    function: "energy".into(),
                    wrt: vec!["x".into(), "1".into()],
                    ..GradRequest::default()
                }],
                beside: true,
            }),
            ..Request::default()
        };
        let bytes = to_bytes(&request).expect("writes");
        assert_eq!(from_bytes::<Request>(&bytes), Ok(request));
        assert!(from_bytes::<Request>(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn diagnostics_keep_code_place_and_help() {
        for &code in Code::ALL {
            let span = SourceSpan {
                file: "a.c".into(),
                line: 7,
                column: 3,
                called_at: None,
            };
            let finding = Diagnostic::warning(code, "message")
                .in_function("f")
                .at(Some(span), "here")
                .note("a fact")
                .help("do this");
            let reply = Reply {
                diagnostics: vec![finding],
                ..Reply::default()
            };
            let bytes = to_bytes(&reply).expect("writes");
            assert_eq!(from_bytes::<Reply>(&bytes), Ok(reply));
        }
    }
}
