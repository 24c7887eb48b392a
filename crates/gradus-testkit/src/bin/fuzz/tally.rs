//! Outcomes and coverage of a run of many programs.

use crate::{C_BATCH, MEMORY_BATCH, PARALLEL_BATCH, ProgramKind, Settings, WIDE_BATCH, child};
use gradus_testkit::{Coverage, wide_unit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// The number of programs from which on the generator's coverage is judged.
const COVERAGE_MIN_PROGRAMS: u64 = 2000;

/// The number of programs whose contents are counted.
const CONTENTS_MAX_PROGRAMS: u64 = 20_000;

/// The outcomes of a run.
pub struct Tally<'s> {
    settings: &'s Settings,
    /// The seeds by outcome.
    outcomes: BTreeMap<String, Vec<u64>>,
    /// An example of each refusal, and of each isolated point.
    examples: BTreeMap<String, String>,
    bad: Vec<String>,
    /// The coverage cells without a program.
    empty: Vec<String>,
    seconds: f64,
}

/// The outcome of a program.
enum ProgramOutcome {
    /// The child's output line.
    Line(String),
    /// The failure of the child that checked only this program.
    Failed(u64, &'static str),
}

/// Returns first seed and number of programs for each child. The programs of a module belong to a batch,
/// which has a route.
fn batches(settings: &Settings) -> Vec<(u64, u64)> {
    let (mut found, mut first) = (Vec::new(), settings.seed);
    let end = settings.seed + settings.count;
    while first < end {
        let count = match settings.sort {
            ProgramKind::Wide => WIDE_BATCH - first % WIDE_BATCH,
            ProgramKind::Parallel => PARALLEL_BATCH - first % PARALLEL_BATCH,
            ProgramKind::Gradients | ProgramKind::Shares => C_BATCH - first % C_BATCH,
            ProgramKind::C | ProgramKind::Kernels => C_BATCH,
            ProgramKind::PointsTo => MEMORY_BATCH,
        };
        let count = count.min(end - first);
        found.push((first, count));
        first += count;
    }
    found
}

/// Runs a child. If the child fails, its programs are bisected, down to the failing program.
fn run_or_bisect(settings: &Settings, first: u64, count: u64, ends: &mut Vec<ProgramOutcome>) {
    match child::run(settings, first, count) {
        Ok(lines) => ends.extend(lines.into_iter().map(ProgramOutcome::Line)),
        Err(_) if count > 1 => {
            run_or_bisect(settings, first, count / 2, ends);
            run_or_bisect(settings, first + count / 2, count - count / 2, ends);
        }
        Err(kind) => ends.push(ProgramOutcome::Failed(first, kind)),
    }
}

impl<'s> Tally<'s> {
    /// Runs all programs of the settings, with the given number of concurrent children.
    pub fn run(settings: &'s Settings) -> Tally<'s> {
        let mut tally = Tally {
            settings,
            outcomes: BTreeMap::new(),
            examples: BTreeMap::new(),
            bad: Vec::new(),
            empty: Vec::new(),
            seconds: 0.0,
        };
        let (batches, next) = (batches(settings), AtomicUsize::new(0));
        let (send, receive) = mpsc::channel();
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..settings.jobs {
                let send = send.clone();
                scope.spawn(|| {
                    let send = send;
                    while let Some(&(first, count)) =
                        batches.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let mut ends = Vec::new();
                        run_or_bisect(settings, first, count, &mut ends);
                        if send.send((ends, count)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            let mut done = 0;
            for (ends, count) in receive {
                ends.iter().for_each(|end| tally.end(end));
                done += count;
                eprintln!("progress: {done} of {} programs", settings.count);
            }
        });
        tally.seconds = started.elapsed().as_secs_f64();
        tally
    }

    fn end(&mut self, end: &ProgramOutcome) {
        match end {
            ProgramOutcome::Line(line) => self.line(line),
            ProgramOutcome::Failed(seed, kind) => {
                self.outcomes
                    .entry(kind.to_string())
                    .or_default()
                    .push(*seed);
                self.report_failure(format!("seed {seed}: {kind}"));
            }
        }
    }

    /// Reports a failure at once, and again at the end.
    fn report_failure(&mut self, told: String) {
        eprintln!("{told}");
        self.bad.push(told);
    }

    fn line(&mut self, line: &str) {
        let parts: Vec<&str> = line.splitn(4, '\t').collect();
        let [seed, route, kind, text] = parts.as_slice() else {
            return self.report_failure(format!("unexpected output of a child process: {line}"));
        };
        let number = seed.parse().unwrap_or(0);
        self.outcomes
            .entry(kind.to_string())
            .or_default()
            .push(number);
        let told = format!("seed {seed} {route}: {kind}: {text}");
        let is_example = ["refused", "wider"]
            .iter()
            .any(|start| kind.starts_with(start));
        match is_example || matches!(*kind, "isolated" | "steep") {
            true => drop(self.examples.entry(kind.to_string()).or_insert(told)),
            false if !kind.starts_with("ok") => self.report_failure(told),
            false => {}
        }
    }

    /// Prints coverage and outcomes.
    pub fn print(&mut self) {
        match self.settings.sort {
            ProgramKind::Wide => self.print_coverage(),
            ProgramKind::Parallel => {
                self.print_contents(&|seed| self.settings.fork_join_program(seed).features)
            }
            ProgramKind::Gradients => {
                self.print_contents(&|seed| self.settings.parallel_c_program(seed).features)
            }
            ProgramKind::Shares => {
                self.print_contents(&|seed| self.settings.shares_program(seed).features)
            }
            ProgramKind::Kernels => {
                self.print_contents(&|seed| self.settings.kernel_program(seed).features)
            }
            ProgramKind::PointsTo => {
                self.print_contents(&|seed| self.settings.memory_program(seed).features)
            }
            ProgramKind::C => self.print_contents(&|seed| self.settings.c_program(seed).contents),
        }
        println!("Outcomes (programs × routes):");
        for (kind, seeds) in &self.outcomes {
            println!("  {:6}  {kind}", seeds.len());
        }
        let count = self.settings.count;
        println!(
            "{count} programs in {:.1} s, {} processes: {:.1} programs/s",
            self.seconds,
            self.settings.jobs,
            count as f64 / self.seconds
        );
        for told in self.examples.values().chain(&self.bad) {
            println!("{told}");
        }
        for cell in &self.empty {
            println!("not covered: {cell}");
        }
    }

    fn print_coverage(&mut self) {
        let mut coverage = Coverage::default();
        let seeds: Vec<u64> = self
            .settings
            .seeds()
            .take(COVERAGE_MIN_PROGRAMS as usize)
            .collect();
        for batch in seeds.chunks(WIDE_BATCH as usize) {
            let programs: Vec<_> = batch
                .iter()
                .map(|s| self.settings.wide_program(*s))
                .collect();
            if let Ok(unit) = wide_unit(&programs) {
                coverage.count(&unit, &programs);
            }
        }
        println!(
            "Coverage of the first {} programs:\n{}",
            seeds.len(),
            coverage.table()
        );
        // A short run shows little of the generator's coverage.
        if self.settings.count >= COVERAGE_MIN_PROGRAMS {
            self.empty = coverage
                .empty_cells()
                .into_iter()
                .map(String::from)
                .collect();
        }
    }

    fn print_contents(&self, of_seed: &dyn Fn(u64) -> BTreeSet<&'static str>) {
        let mut contents: BTreeMap<&str, u32> = BTreeMap::new();
        let count = self.settings.count.min(CONTENTS_MAX_PROGRAMS);
        for seed in self.settings.seeds().take(CONTENTS_MAX_PROGRAMS as usize) {
            for what in of_seed(seed) {
                *contents.entry(what).or_default() += 1;
            }
        }
        println!("Features of {count} programs:");
        for (what, count) in contents {
            println!("  {count:6}  {what}");
        }
    }

    /// Returns true if no program was wrong, crashed or hung, and every cell was covered.
    pub fn is_clean(&self) -> bool {
        self.bad.is_empty() && self.empty.is_empty()
    }
}
