//! Random OpenMP programs: gradients equal the serial programs', on one worker and on three, without races.
//!
//! `cargo xtask fuzz --gradients --count N` does long runs.

use gradus_testkit::{PARALLEL_C_FEATURES, parallel_c_program};
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn random_gradients_equal_serial() {
    let run = Command::new(env!("CARGO_BIN_EXE_fuzz"))
        .args(["--gradients", "--count", "40"])
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{told}");
    let right = told.lines().find_map(|l| l.trim().strip_suffix("  ok"));
    let right: u32 = right.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
    assert!(right >= 26, "{right} of 40 are right\n{told}");
}

#[test]
fn all_features_occur() {
    let mut met: BTreeMap<&str, u32> = PARALLEL_C_FEATURES.iter().map(|f| (*f, 0)).collect();
    for seed in 0..200 {
        for feature in parallel_c_program(seed).features {
            *met.entry(feature).or_default() += 1;
        }
    }
    assert_eq!(met.len(), PARALLEL_C_FEATURES.len(), "{met:?}");
    assert!(met.values().all(|count| *count > 0), "{met:?}");
}
