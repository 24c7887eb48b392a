//! Stops of a derivative at run time: the derivative prints a message with a code, and ends the program. The message
//! names the cause, which is no fault of the derivative.

use gradus_ir::{Code, SourceSpan};

/// The start of the line that a derivative prints before it ends the program.
const START: &str = "gradus: error[";

/// A message of a derivative that ended the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// The code.
    pub(super) code: Code,
    /// The text, without code and place.
    pub(super) text: String,
    /// The place in the message, if the message has one.
    pub(super) place: Option<SourceSpan>,
}

/// Returns the stop that the last line with a code on standard error describes.
pub(super) fn stop(stderr: &str) -> Option<Stop> {
    let mut lines = stderr.lines().rev();
    let line = lines.find_map(|line| Some(&line[line.find(START)? + START.len()..]))?;
    let (number, text) = line.split_once("]: ")?;
    let code = *Code::ALL.iter().find(|code| code.number() == number)?;
    let (place, text) = match split_place(text) {
        Some((place, text)) => (Some(place), text),
        None => (None, text),
    };
    Some(Stop {
        code,
        text: text.trim_end().to_string(),
        place,
    })
}

/// Splits `file:line: text`.
fn split_place(text: &str) -> Option<(SourceSpan, &str)> {
    let (place, rest) = text.split_once(": ")?;
    let (file, line) = place.rsplit_once(':')?;
    let place = SourceSpan {
        file: file.to_string(),
        line: line.parse().ok()?,
        column: 0,
        called_at: None,
    };
    Some((place, rest))
}

/// Returns the change of the program that avoids a stop; `None` if the page of the code says more than a line can.
pub(super) fn remedy(code: Code) -> Option<&'static str> {
    match code {
        Code::FloatBits => {
            Some("keep integers and numbers in members of their own instead of a union")
        }
        Code::UnknownMemoryType => Some("copy whole numbers, addresses and structures"),
        Code::UnknownIndirectTarget => {
            Some("compile the file that defines the called function together with this file")
        }
        Code::LimitReached => {
            Some("pass smaller values, or checkpoint the loop with `gradus/steps.h`")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_with_a_code_counts() {
        let stderr = "step 1\ngradus: error[GRD0007]: first\nnoise gradus: error[GRD0018]: a/b.c:7: the target\nafter\n";
        let found = stop(stderr).expect("a stop");
        assert_eq!(
            (found.code, found.text.as_str()),
            (Code::UnknownIndirectTarget, "the target")
        );
        let place = found.place.expect("a place");
        assert_eq!((place.file.as_str(), place.line), ("a/b.c", 7));
        let found = stop("gradus: error[GRD0008]: the program: reads\n").expect("a stop");
        assert_eq!(
            (found.text.as_str(), found.place),
            ("the program: reads", None)
        );
        for other in [
            "",
            "gradus: error[GRD9999]: x",
            "error[GRD0008]: x",
            "gradus: a message",
        ] {
            assert_eq!(stop(other), None, "{other}");
        }
    }
}
