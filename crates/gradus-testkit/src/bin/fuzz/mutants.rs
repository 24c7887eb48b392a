//! Mutation testing: seeds each fault, and counts the programs until its detection.

use crate::{ProgramKind, Settings, WIDE_BATCH, child};
use gradus_ir::mutant::{DetectedBy, Mutant};
use std::process::ExitCode;

/// The first batch has no switch off.
const FIRST_SEED: u64 = WIDE_BATCH;
/// Programs per child: most faults are detected early.
const PROGRAMS_PER_CHILD: u64 = 25;

/// Seeds one fault after another (or the fault of the settings), with a limit on the programs for each.
pub fn run(settings: &Settings) -> ExitCode {
    if !cfg!(debug_assertions) {
        eprintln!("a release build has no mutants: build with --profile fuzz");
        return ExitCode::from(2);
    }
    let (mut alive, mut tried) = (0, 0);
    for &mutant in Mutant::ALL {
        if settings.mutant.is_some_and(|own| own != mutant) {
            continue;
        }
        let sort = match mutant.detected_by() {
            DetectedBy::Wide => ProgramKind::Wide,
            DetectedBy::C => ProgramKind::C,
            DetectedBy::Kernels => ProgramKind::Kernels,
            DetectedBy::ForkJoin => ProgramKind::Parallel,
            DetectedBy::Shares => ProgramKind::Shares,
            DetectedBy::Gradients => ProgramKind::Gradients,
            DetectedBy::PointsTo => ProgramKind::PointsTo,
            // Tests of the command or of the pipeline detect the fault.
            DetectedBy::Tests => continue,
        };
        tried += 1;
        let settings = Settings {
            mutant: Some(mutant),
            sort,
            ..settings.clone()
        };
        let died = match programs_until_detection(&settings) {
            Some((count, how)) => format!("dead after {count:5} programs  {how}"),
            None => {
                alive += 1;
                format!("ALIVE after {:4} programs", settings.count)
            }
        };
        println!(
            "{:24} {died}\n{:24}   {}",
            mutant.name(),
            "",
            mutant.fault()
        );
    }
    println!("survivors: {alive} of {tried} mutants");
    match alive {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}

/// Returns the number of programs until detection, and the failure.
fn programs_until_detection(settings: &Settings) -> Option<(u64, String)> {
    let mut done = 0;
    while done < settings.count {
        let lines = match child::run(settings, FIRST_SEED + done, PROGRAMS_PER_CHILD) {
            Ok(lines) => lines,
            Err(kind) => return Some((done + PROGRAMS_PER_CHILD, kind.into())),
        };
        for (at, line) in lines.iter().enumerate() {
            let mut parts = line.split('\t').skip(2);
            let kind = parts.next().unwrap_or_default();
            // Without a compiler to link them, no fault is found.
            let is_told =
                kind == "WRONG" || kind == "crash" && settings.sort != ProgramKind::Shares;
            if is_told {
                let text: String = parts.next().unwrap_or_default().chars().take(60).collect();
                return Some((done + at as u64 + 1, format!("{kind}: {text}")));
            }
        }
        done += PROGRAMS_PER_CHILD;
    }
    None
}
