//! Adds LLVM's loop-vectorizer remarks to the kernel report.
//!
//! Clang prints remarks by source line. A kernel's paragraph begins with the lines of its code; remarks on
//! lines in the range are appended in words: the vector width, or the reason against vectorisation.

use std::collections::BTreeSet;

/// The options that enable clang's remarks.
pub(super) const REMARK_OPTIONS: [&str; 3] = [
    "-Rpass=loop-vectorize",
    "-Rpass-missed=loop-vectorize",
    "-Rpass-analysis=loop-vectorize",
];

/// Returns the report with each kernel's remarks below its paragraph.
pub(super) fn with_remarks(report: &str, said: &str) -> String {
    let remarks: Vec<Remark> = said.lines().filter_map(remark).collect();
    let mut text = String::new();
    let mut paragraphs = report.lines().peekable();
    while let Some(head) = paragraphs.next() {
        text.push_str(head);
        text.push('\n');
        while let Some(line) = paragraphs.next_if(|line| line.starts_with(' ')) {
            text.push_str(line);
            text.push('\n');
        }
        for (line, words) in remarks_in_range(head, &remarks) {
            text.push_str(&format!("    line {line}: {words}\n"));
        }
    }
    text
}

struct Remark<'a> {
    file: &'a str,
    line: u32,
    words: String,
    /// True if the remark gives the reason against vectorisation.
    is_reason: bool,
}

/// Returns the remarks on the lines in a paragraph's head, without duplicates. The remark that a loop was
/// not vectorised is dropped if the reason is also given.
fn remarks_in_range(head: &str, remarks: &[Remark]) -> BTreeSet<(u32, String)> {
    let Some((file, first, last)) = lines(head) else {
        return BTreeSet::new();
    };
    let inside = |r: &&Remark| r.file == file && (first..=last).contains(&r.line);
    let inside: Vec<&Remark> = remarks.iter().filter(inside).collect();
    let has_reason = |line: u32| inside.iter().any(|r| r.line == line && r.is_reason);
    let plain = |r: &&&Remark| r.words != NOT_VECTORISED || !has_reason(r.line);
    let told = inside.iter().filter(plain);
    told.map(|r| (r.line, r.words.clone())).collect()
}

/// Parses `FILE:FIRST-LAST_ERROR: …`.
fn lines(head: &str) -> Option<(&str, u32, u32)> {
    let (place, _) = head.split_once(": ")?;
    let (file, range) = place.rsplit_once(':')?;
    let (first, last) = range.split_once('-')?;
    Some((file, first.parse().ok()?, last.parse().ok()?))
}

const NOT_VECTORISED: &str = "loop not vectorised";

/// Parses `remark: FILE:LINE:COLUMN: WORDS [-Rpass…]`; `None` for remarks on other subjects.
fn remark(line: &str) -> Option<Remark<'_>> {
    let (place, words) = line.strip_prefix("remark: ")?.split_once(": ")?;
    let mut parts = place.rsplitn(3, ':');
    let (_, number, file) = (parts.next()?, parts.next()?, parts.next()?);
    let words = words.split(" [-Rpass").next().unwrap_or(words).trim();
    let reason = words.strip_prefix("loop not vectorized: ");
    let of_cost = words.contains("vectorization is not beneficial");
    let (words, is_reason) = match reason.or(of_cost.then_some(words)) {
        Some(reason) => (format!("{NOT_VECTORISED}: {reason}"), true),
        None if words.starts_with("vectorized loop") => (vectorised(words), false),
        None if words == "loop not vectorized" => (NOT_VECTORISED.into(), false),
        None => return None,
    };
    Some(Remark {
        file,
        line: number.parse().ok()?,
        words,
        is_reason,
    })
}

/// Parses `vectorized loop (vectorization width: 8, interleaved count: 4)`.
fn vectorised(words: &str) -> String {
    let number = |behind: &str| {
        let (_, rest) = words.split_once(behind)?;
        let end = rest.find([',', ')'])?;
        Some(rest[..end].trim().to_string())
    };
    let width = number("width:").unwrap_or_else(|| "?".into());
    match number("interleaved count:").filter(|count| count != "1") {
        Some(count) => format!("loop vectorised, width {width}, {count} times interleaved"),
        None => format!("loop vectorised, width {width}"),
    }
}

#[cfg(test)]
mod tests {
    use super::with_remarks;

    #[test]
    fn remarks_go_below_their_kernel() {
        let report = "a.cu:1-4: kernel\n    line 2: barrier\nb.cu:1-9: kernel\n    no barrier\n";
        let said = "remark: a.cu:3:5: vectorized loop (vectorization width: 8, interleaved count: 2) [-Rpass=loop-vectorize]\n\
                    remark: a.cu:3:5: vectorized loop (vectorization width: 8, interleaved count: 2) [-Rpass=loop-vectorize]\n\
                    remark: a.cu:3:5: the cost-model indicates that interleaving is not beneficial [-Rpass-analysis=loop-vectorize]\n\
                    remark: b.cu:9:1: loop not vectorized [-Rpass-missed=loop-vectorize]\n\
                    remark: b.cu:9:1: loop not vectorized: call instruction cannot be vectorized [-Rpass-analysis=loop-vectorize]\n\
                    remark: b.cu:8:1: loop not vectorized [-Rpass-missed=loop-vectorize]\n\
                    remark: b.cu:10:1: loop not vectorized [-Rpass-missed=loop-vectorize]\n";
        assert_eq!(
            with_remarks(report, said),
            "a.cu:1-4: kernel\n    line 2: barrier\n    line 3: loop vectorised, width 8, 2 times interleaved\n\
             b.cu:1-9: kernel\n    no barrier\n    line 8: loop not vectorised\n    \
             line 9: loop not vectorised: call instruction cannot be vectorized\n"
        );
    }
}
