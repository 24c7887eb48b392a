//! The report on kernels. Copies of a kernel with equal outcomes share an entry.

use crate::wire::report::{BarrierReport, KernelReport};
use gradus_gpu::{BarrierRecord, KernelRecord};

/// Returns the report on kernels.
pub(crate) fn reports(kernels: &[KernelRecord]) -> Vec<KernelReport> {
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
    // Code without lines is the entry for unknown launches. The entry is reported only if its outcome
    // differs from that of every launch.
    let has_twin = |kernel: &KernelRecord| {
        let is_alike = |(other, _): &(KernelRecord, _)| {
            other.lines.is_some() && without_lines(other) == without_lines(kernel)
        };
        groups.iter().any(is_alike)
    };
    let told = (groups.iter()).filter(|(kernel, _)| kernel.lines.is_some() || !has_twin(kernel));
    told.map(|(kernel, names)| report(kernel, names)).collect()
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

fn report(kernel: &KernelRecord, launches: &[String]) -> KernelReport {
    let (file, first_line, last_line) = match &kernel.lines {
        Some((file, first, last)) => (Some(file.clone()), *first, *last),
        None => (None, 0, 0),
    };
    let barrier = |barrier: &BarrierRecord| BarrierReport {
        line: barrier.line,
        warp: barrier.is_warp_scope,
        saved: barrier.stored,
        bytes: barrier.bytes,
        recomputed: barrier.recomputed,
    };
    KernelReport {
        launches: launches.to_vec(),
        file,
        first_line,
        last_line,
        fused_launches: kernel.fused_lines.clone(),
        removed_barriers: kernel.removed_barriers.clone(),
        barriers: kernel.barriers.iter().map(barrier).collect(),
        private_array_bytes: kernel.array_bytes,
        divergent_lines: kernel.divergent.clone(),
        interchanged_loops: kernel.interchanged_loops.clone(),
        vectorizer: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_became_the_same_share_an_entry() {
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
        let told = reports(&[
            kernel("main", 1),
            kernel("f", 1),
            kernel("main", 0),
            entry,
            other,
        ]);
        let launches: Vec<_> = told.iter().map(|one| one.launches.join(", ")).collect();
        let expected = [
            "launched by main, launched by f",
            "launched by main",
            "k for launches in other files",
        ];
        assert_eq!(launches, expected);
        let saved: Vec<_> = told.iter().map(|one| one.barriers[0].saved).collect();
        assert_eq!(saved, [1, 0, 0]);
    }
}
