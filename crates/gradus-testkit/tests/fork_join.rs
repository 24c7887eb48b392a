//! Random fork-join programs: results on one to four workers equal the serial projection's.
//!
//! `cargo xtask fuzz --parallel --count N` does long runs.

use gradus_testkit::{
    FORK_JOIN_FEATURES, ForkJoinWay, Pool, Verdict, check_fork_join, fork_join_program,
    fork_join_unit,
};
use std::collections::BTreeMap;

/// The number of programs per module.
const BATCH: u64 = 40;

#[test]
fn parallel_results_are_right() {
    Pool::always_fork();
    let mut wrong = Vec::new();
    for batch in 0..8 {
        let seeds = batch * BATCH..(batch + 1) * BATCH;
        let programs: Vec<_> = seeds.clone().map(fork_join_program).collect();
        let unit = fork_join_unit(&programs).expect("the programs follow the rules");
        let way = ForkJoinWay::of(batch);
        let verdicts =
            check_fork_join(&unit, &programs, &way).expect("they are lowered and loaded");
        for (seed, verdict) in std::iter::zip(seeds, verdicts) {
            if verdict != Verdict::Right {
                wrong.push(format!("seed {seed}, {way:?}: {verdict:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_features_occur() {
    let mut met: BTreeMap<&str, u32> = FORK_JOIN_FEATURES.iter().map(|f| (*f, 0)).collect();
    for seed in 0..200 {
        for feature in fork_join_program(seed).features {
            *met.entry(feature).or_default() += 1;
        }
    }
    assert_eq!(met.len(), FORK_JOIN_FEATURES.len(), "{met:?}");
    assert!(met.values().all(|count| *count > 0), "{met:?}");
}

/// After a lock acquire, as in critical regions lowered to intrinsics, other strands may have changed
/// memory that does not escape otherwise: earlier stores must not be forwarded.
#[test]
fn lock_acquire_clobbers() {
    Pool::always_fork();
    let found = [
        (
            32_004_395,
            ForkJoinWay {
                serial_projection: false,
                simplified: true,
                fused: true,
                through_intrinsics: true,
                small_loops_serial: false,
                optimised: true,
            },
        ),
        (
            61_002_587,
            ForkJoinWay {
                serial_projection: false,
                simplified: false,
                fused: true,
                through_intrinsics: true,
                small_loops_serial: true,
                optimised: false,
            },
        ),
        (
            32_013_799,
            ForkJoinWay {
                serial_projection: false,
                simplified: false,
                fused: true,
                through_intrinsics: true,
                small_loops_serial: false,
                optimised: false,
            },
        ),
    ];
    for (seed, way) in found {
        let programs = [fork_join_program(seed)];
        let unit = fork_join_unit(&programs).expect("the program follows the rules");
        let verdicts = check_fork_join(&unit, &programs, &way).expect("it is lowered and loaded");
        assert_eq!(verdicts, [Verdict::Right], "seed {seed}");
    }
}
