//! The kernel report (`--gpu-report`) as text.
//!
//! The report has a paragraph for each kernel. The first line begins with the file and the lines of the
//! kernel's code; a compiler's loop remarks can later be added below by line. Copies of a kernel with equal
//! outcomes share a paragraph.

use gradus_gpu::{BarrierRecord, KernelRecord};
use std::fmt::Write;

/// Returns the report's text.
pub(crate) fn text(kernels: &[KernelRecord]) -> String {
    let mut groups: Vec<(KernelRecord, Vec<String>)> = Vec::new();
    for kernel in kernels {
        let shared = KernelRecord {
            function: String::new(),
            ..kernel.clone()
        };
        let name = launch_label(&kernel.function);
        match groups.iter_mut().find(|(known, _)| *known == shared) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => groups.push((shared, vec![name])),
        }
    }
    let mut text = String::new();
    for (kernel, names) in &groups {
        // Code without lines is the entry for unknown launches. The entry is reported only if its outcome
        // differs from that of every launch.
        let is_alike = |(other, _): &(KernelRecord, _)| {
            other.lines.is_some() && without_lines(other) == without_lines(kernel)
        };
        if kernel.lines.is_some() || !groups.iter().any(is_alike) {
            paragraph(&mut text, kernel, names);
        }
    }
    text
}

fn without_lines(kernel: &KernelRecord) -> KernelRecord {
    let mut kernel = kernel.clone();
    kernel.lines = None;
    kernel.barriers.iter_mut().for_each(|m| m.line = 0);
    kernel
        .removed_barriers
        .iter_mut()
        .for_each(|line| *line = 0);
    kernel.fused_lines.iter_mut().for_each(|line| *line = 0);
    kernel.divergent.iter_mut().for_each(|line| *line = 0);
    kernel
        .interchanged_loops
        .iter_mut()
        .for_each(|line| *line = 0);
    kernel
}

/// Describes the launches of a copy of a kernel.
fn launch_label(function: &str) -> String {
    match function
        .strip_prefix("__gr_")
        .and_then(|f| f.split_once('.'))
    {
        Some((_, kernel)) => format!("{kernel} for launches in other files"),
        None => format!("launched by {function}"),
    }
}

fn paragraph(text: &mut String, kernel: &KernelRecord, names: &[String]) {
    let place = match &kernel.lines {
        Some((file, first, last)) => format!("{file}:{first}-{last}"),
        None => "?:0-0".into(),
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "{place}: kernel, {}", names.join(", "));
    for line in &kernel.fused_lines {
        let _ = writeln!(
            text,
            "    fused with the launch in line {line} if the checks at run time pass"
        );
    }
    for line in &kernel.removed_barriers {
        let _ = writeln!(
            text,
            "    line {line}: barrier, removed: no accesses to order"
        );
    }
    if kernel.barriers.is_empty() {
        let _ = writeln!(text, "    no barrier: one thread loop");
    }
    for meeting in &kernel.barriers {
        let _ = writeln!(text, "    {}", barrier_text(meeting));
    }
    if kernel.array_bytes > 0 {
        let bytes = kernel.array_bytes;
        let _ = writeln!(
            text,
            "    private arrays across barriers: {bytes} bytes per thread"
        );
    }
    for line in &kernel.divergent {
        let _ = writeln!(
            text,
            "    line {line}: divergent control flow around a barrier: one flag per thread"
        );
    }
    for line in &kernel.interchanged_loops {
        let _ = writeln!(text, "    line {line}: interchanged with the thread loop");
    }
}

fn barrier_text(meeting: &BarrierRecord) -> String {
    let what = match meeting.is_warp_scope {
        true => "warp synchronisation",
        false => "barrier",
    };
    let values = |n: usize| match n {
        1 => "1 value".to_string(),
        n => format!("{n} values"),
    };
    let stored = match meeting.stored {
        0 => "no values saved".to_string(),
        n => format!("{} saved per thread ({} bytes)", values(n), meeting.bytes),
    };
    let again = match meeting.recomputed {
        0 => String::new(),
        n => format!(", {} recomputed", values(n)),
    };
    format!("line {}: {what}, split: {stored}{again}", meeting.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_became_the_same_share_a_paragraph() {
        let kernel = |function: &str, stored| KernelRecord {
            function: function.into(),
            lines: Some(("k.cu".into(), 3, 9)),
            barriers: vec![BarrierRecord {
                line: 5,
                is_warp_scope: false,
                stored,
                bytes: 4 * stored as u64,
                recomputed: 2,
            }],
            interchanged_loops: vec![7],
            ..KernelRecord::default()
        };
        let mut entry = kernel("__gr_entry.k", 0);
        entry.lines = None;
        entry.barriers[0].line = 0;
        entry.interchanged_loops[0] = 0;
        let mut other = entry.clone();
        other.barriers[0].recomputed = 0;
        let said = text(&[
            kernel("main", 1),
            kernel("f", 1),
            kernel("main", 0),
            entry,
            other,
        ]);
        assert_eq!(
            said,
            "k.cu:3-9: kernel, launched by main, launched by f\n    \
             line 5: barrier, split: 1 value saved per thread (4 bytes), 2 values recomputed\n    \
             line 7: interchanged with the thread loop\n\
             k.cu:3-9: kernel, launched by main\n    \
             line 5: barrier, split: no values saved, 2 values recomputed\n    \
             line 7: interchanged with the thread loop\n\
             ?:0-0: kernel, k for launches in other files\n    \
             line 0: barrier, split: no values saved\n    \
             line 0: interchanged with the thread loop\n"
        );
    }
}
