//! Adds LLVM's loop-vectorizer remarks to the reports on kernels.
//!
//! Clang prints remarks by source line. Remarks on the lines of a kernel's code are added as text: the vector width,
//! or the reason against vectorisation.

use gradus_pipeline::report::{KernelReport, VectorizerRemark};
use std::collections::BTreeSet;

/// The options that enable clang's remarks.
pub(super) const REMARK_OPTIONS: [&str; 3] = [
    "-Rpass=loop-vectorize",
    "-Rpass-missed=loop-vectorize",
    "-Rpass-analysis=loop-vectorize",
];

/// Adds the remarks on each kernel's lines to the kernel's report.
pub(super) fn add_remarks(kernels: &mut [KernelReport], said: &str) {
    let remarks: Vec<Remark> = said.lines().filter_map(remark).collect();
    for kernel in kernels {
        kernel.vectorizer = remarks_in_range(kernel, &remarks).into_iter().collect();
    }
}

struct Remark<'a> {
    file: &'a str,
    line: u32,
    words: String,
    /// True if the remark gives the reason against vectorisation.
    is_reason: bool,
}

/// Returns the remarks on the lines of a kernel, without duplicates. The remark that a loop was
/// not vectorised is dropped if the reason is also given.
fn remarks_in_range(kernel: &KernelReport, remarks: &[Remark]) -> BTreeSet<VectorizerRemark> {
    let lines = kernel.first_line..=kernel.last_line;
    let inside = |r: &&Remark| kernel.file.as_deref() == Some(r.file) && lines.contains(&r.line);
    let inside: Vec<&Remark> = remarks.iter().filter(inside).collect();
    let has_reason = |line: u32| inside.iter().any(|r| r.line == line && r.is_reason);
    let plain = |r: &&&Remark| r.words != NOT_VECTORISED || !has_reason(r.line);
    let told = inside.iter().filter(plain).map(|r| VectorizerRemark {
        line: r.line,
        text: r.words.clone(),
    });
    told.collect()
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
    use super::*;

    #[test]
    fn remarks_join_their_kernel() {
        let kernel = |file: &str, lines: (u32, u32)| KernelReport {
            launches: Vec::new(),
            file: Some(file.into()),
            first_line: lines.0,
            last_line: lines.1,
            fused_launches: Vec::new(),
            removed_barriers: Vec::new(),
            barriers: Vec::new(),
            private_array_bytes: 0,
            divergent_lines: Vec::new(),
            interchanged_loops: Vec::new(),
            vectorizer: Vec::new(),
        };
        let mut kernels = [kernel("a.cu", (1, 4)), kernel("b.cu", (1, 9))];
        let said = "remark: a.cu:3:5: vectorized loop (vectorization width: 8, interleaved count: 2) [-Rpass=loop-vectorize]\n\
                    remark: a.cu:3:5: vectorized loop (vectorization width: 8, interleaved count: 2) [-Rpass=loop-vectorize]\n\
                    remark: a.cu:3:5: the cost-model indicates that interleaving is not beneficial [-Rpass-analysis=loop-vectorize]\n\
                    remark: b.cu:9:1: loop not vectorized [-Rpass-missed=loop-vectorize]\n\
                    remark: b.cu:9:1: loop not vectorized: call instruction cannot be vectorized [-Rpass-analysis=loop-vectorize]\n\
                    remark: b.cu:8:1: loop not vectorized [-Rpass-missed=loop-vectorize]\n\
                    remark: b.cu:10:1: loop not vectorized [-Rpass-missed=loop-vectorize]\n";
        add_remarks(&mut kernels, said);
        let told = |kernel: &KernelReport| {
            let remarks = kernel.vectorizer.iter();
            let remarks = remarks.map(|one| format!("{}: {}", one.line, one.text));
            remarks.collect::<Vec<_>>()
        };
        assert_eq!(
            told(&kernels[0]),
            ["3: loop vectorised, width 8, 2 times interleaved"]
        );
        assert_eq!(
            told(&kernels[1]),
            [
                "8: loop not vectorised",
                "9: loop not vectorised: call instruction cannot be vectorized"
            ]
        );
    }
}
