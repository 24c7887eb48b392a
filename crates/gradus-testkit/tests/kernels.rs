//! Random kernels: lowering to loops preserves their result for any order of threads, as does compiled code
//! on the pool.
//!
//! `GRADUS_FUZZ` is the number of programs, `GRADUS_FUZZ_SEED` the first seed.

use gradus_testkit::{KERNEL_FEATURES, check_kernel, effective_passes, kernel_program};
use std::collections::{BTreeMap, BTreeSet};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let first = number("GRADUS_FUZZ_SEED").unwrap_or(0);
    first..first + number("GRADUS_FUZZ").unwrap_or(usual)
}

#[test]
fn lowered_kernels_keep_their_meaning() {
    let (mut wrong, mut removed, mut fused) = (Vec::new(), 0, 0);
    let mut met: BTreeMap<&str, u64> = KERNEL_FEATURES.iter().map(|f| (*f, 0)).collect();
    for seed in seeds(150) {
        let program = kernel_program(seed, 12 + (seed % 4) as u32 * 8);
        for feature in program.features {
            *met.entry(feature).or_default() += 1;
        }
        let outcome = std::panic::catch_unwind(|| check_kernel(&program.text, seed % 8 == 0));
        match outcome {
            Ok(Ok([barriers, launches])) => {
                removed += barriers;
                fused += launches;
            }
            Ok(Err(message)) => wrong.push(format!("seed {seed}: {message}\n{}", program.text)),
            Err(_) => wrong.push(format!("seed {seed}: it panics\n{}", program.text)),
        }
        if wrong.len() >= 2 {
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let never: Vec<&&str> = met
        .iter()
        .filter(|(_, n)| **n == 0)
        .map(|(f, _)| f)
        .collect();
    assert!(never.is_empty(), "no program held {never:?}");
    assert!(removed > 0, "no barrier was removed");
    assert!(fused > 0, "no launches became one");
}

/// Every pass changes some random kernel.
#[test]
fn every_pass_is_exercised() {
    let mut at_work = BTreeSet::new();
    for seed in 0..150 {
        let program = kernel_program(seed, 12 + (seed % 4) as u32 * 8);
        at_work.extend(effective_passes(&program.text).unwrap_or_default());
    }
    // No generated thread waits in a loop for another: `waits.cu` and the pass's cases cover such loops.
    at_work.insert("cooperative-threads");
    let idle = gradus_gpu::PASSES.iter().map(|pass| pass.name);
    let idle: Vec<&str> = idle.filter(|name| !at_work.contains(name)).collect();
    assert!(idle.is_empty(), "nothing to do for {idle:?}");
}
