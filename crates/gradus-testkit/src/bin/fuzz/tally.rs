//! How a run of many programs fared, and what they held.

use crate::{C_BATCH, PARALLEL_BATCH, Settings, Sort, WIDE_BATCH, child};
use gradus_testkit::{Coverage, wide_unit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// So many programs are enough to judge what the generator makes.
const COVERED: u64 = 2000;

/// Outcomes so far.
pub struct Tally<'s> {
    settings: &'s Settings,
    /// Seeds by outcome.
    outcomes: BTreeMap<String, Vec<u64>>,
    /// An example of each refusal, and of what is isolated.
    examples: BTreeMap<String, String>,
    bad: Vec<String>,
    /// The cells that no program filled.
    empty: Vec<String>,
    seconds: f64,
}

/// What came of a program.
enum End {
    /// A child's line on it.
    Line(String),
    /// The child that checked it and nothing else failed so.
    Failed(u64, &'static str),
}

/// First seed and number of the programs of each child: those of a module are of one batch, which has one
/// way.
fn batches(settings: &Settings) -> Vec<(u64, u64)> {
    let (mut found, mut first) = (Vec::new(), settings.seed);
    let end = settings.seed + settings.count;
    while first < end {
        let count = match settings.sort {
            Sort::Wide => WIDE_BATCH - first % WIDE_BATCH,
            Sort::Parallel => PARALLEL_BATCH - first % PARALLEL_BATCH,
            Sort::Gradients | Sort::Shares => C_BATCH - first % C_BATCH,
            Sort::C | Sort::Kernels => C_BATCH,
        };
        let count = count.min(end - first);
        found.push((first, count));
        first += count;
    }
    found
}

/// Where a child fails, its programs are tried in two halves, down to the one that fails.
fn take(settings: &Settings, first: u64, count: u64, ends: &mut Vec<End>) {
    match child::run(settings, first, count) {
        Ok(lines) => ends.extend(lines.into_iter().map(End::Line)),
        Err(_) if count > 1 => {
            take(settings, first, count / 2, ends);
            take(settings, first + count / 2, count - count / 2, ends);
        }
        Err(kind) => ends.push(End::Failed(first, kind)),
    }
}

impl<'s> Tally<'s> {
    /// Runs all programs of the settings, so many children at a time as they say.
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
                        take(settings, first, count, &mut ends);
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
                eprintln!("{done} of {} programs", settings.count);
            }
        });
        tally.seconds = started.elapsed().as_secs_f64();
        tally
    }

    fn end(&mut self, end: &End) {
        match end {
            End::Line(line) => self.line(line),
            End::Failed(seed, kind) => {
                self.outcomes
                    .entry(kind.to_string())
                    .or_default()
                    .push(*seed);
                self.fault(format!("seed {seed}: {kind}"));
            }
        }
    }

    /// Told at once, and again at the end.
    fn fault(&mut self, told: String) {
        eprintln!("{told}");
        self.bad.push(told);
    }

    fn line(&mut self, line: &str) {
        let parts: Vec<&str> = line.splitn(4, '\t').collect();
        let [seed, route, kind, text] = parts.as_slice() else {
            return self.fault(format!("a child says what no check says: {line}"));
        };
        let number = seed.parse().unwrap_or(0);
        self.outcomes
            .entry(kind.to_string())
            .or_default()
            .push(number);
        let told = format!("seed {seed} {route}: {kind}: {text}");
        match kind.starts_with("refused") || matches!(*kind, "isolated" | "steep") {
            true => drop(self.examples.entry(kind.to_string()).or_insert(told)),
            false if *kind != "ok" => self.fault(told),
            false => {}
        }
    }

    /// Prints what the programs contained, and how they fared.
    pub fn print(&mut self) {
        match self.settings.sort {
            Sort::Wide => self.print_coverage(),
            Sort::Parallel => {
                self.print_contents(&|seed| self.settings.fork_join_program(seed).features)
            }
            Sort::Gradients => {
                self.print_contents(&|seed| self.settings.parallel_c_program(seed).features)
            }
            Sort::Shares => {
                self.print_contents(&|seed| self.settings.shares_program(seed).features)
            }
            Sort::Kernels => {
                self.print_contents(&|seed| self.settings.kernel_program(seed).features)
            }
            Sort::C => self.print_contents(&|seed| self.settings.c_program(seed).contents),
        }
        println!("Outcomes (programs × routes):");
        for (kind, seeds) in &self.outcomes {
            println!("  {:6}  {kind}", seeds.len());
        }
        let count = self.settings.count;
        println!(
            "{count} programs in {:.1} s, {} at a time: {:.1} a second",
            self.seconds,
            self.settings.jobs,
            count as f64 / self.seconds
        );
        for told in self.examples.values().chain(&self.bad) {
            println!("{told}");
        }
        for cell in &self.empty {
            println!("no program: {cell}");
        }
    }

    fn print_coverage(&mut self) {
        let mut coverage = Coverage::default();
        let seeds: Vec<u64> = self.settings.seeds().take(COVERED as usize).collect();
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
            "The first {} programs contain:\n{}",
            seeds.len(),
            coverage.table()
        );
        // A short run shows little of what the generator makes.
        if self.settings.count >= COVERED {
            self.empty = coverage.missing().into_iter().map(String::from).collect();
        }
    }

    fn print_contents(&self, of_seed: &dyn Fn(u64) -> BTreeSet<&'static str>) {
        let mut contents: BTreeMap<&str, u32> = BTreeMap::new();
        for seed in self.settings.seeds() {
            for what in of_seed(seed) {
                *contents.entry(what).or_default() += 1;
            }
        }
        println!("Of {} programs contain:", self.settings.count);
        for (what, count) in contents {
            println!("  {count:6}  {what}");
        }
    }

    /// Whether nothing is wrong, crashed or hung, and every cell was met.
    pub fn is_clean(&self) -> bool {
        self.bad.is_empty() && self.empty.is_empty()
    }
}
