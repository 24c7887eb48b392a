//! Random programs, differentiated by the whole compiler and checked.
//!
//! `fuzz [--count N] [--seed S] [--statements K]` checks the C programs of N seeds from S on, by every
//! route. `fuzz --ir …` checks IR programs, a hundred per module. `fuzz --parallel …` checks fork-join
//! programs, forty per module, on the pool, or with `--tsan` under ThreadSanitizer, linked by the `gradus`
//! of `--linker` (with `--race` each atomic update becomes a race). `--gradients …` compares gradients of
//! OpenMP programs with the serial programs' gradients. `--kernels …` checks kernels and launches.
//! `--shares …` checks call graphs of regions and worksharing functions, linked by the `gradus` of
//! `--linker`. `--points-to …` checks the points-to analyses on memory programs, in the interpreter. `--show` prints the program of the seed. `--reduce` prints a page with the reduced program
//! that still shows the failure; `--file F` reads the program from a file. `--mutants [--count N]` seeds
//! each fault of [`Mutant`] in turn and counts the programs until its detection. Child processes of the
//! program (`--batch`) do the work, `--jobs J` at a time: a crash or a hang is an outcome with its seed.
//! The summary lists contents, outcomes and speed. The exit status is 1 if a program is wrong, crashes or
//! hangs, if a cell of the coverage table is empty, or if a seeded fault survives.
#![forbid(unsafe_code)]

mod child;
mod mutants;
mod smaller;
mod tally;

use gradus_ir::Unit;
use gradus_ir::mutant::Mutant;
use gradus_testkit::{
    C_INCLUDES, CProgram, ForkJoinProgram, ForkJoinWay, KernelProgram, MemoryFindings,
    MemoryProgram, ParallelCProgram, ParallelCWay, ROUTES, SharesProgram, SharesWay, Verdict,
    WideProgram, WideRoute, c_program, check_c, check_fork_join, check_kernel,
    check_memory_program, check_parallel_c, check_sanitized, check_shares, check_unit,
    fork_join_program, fork_join_unit, kernel_program, memory_program, parallel_c_program,
    seed_races, shares_program, wide_program, wide_unit,
};
use std::path::PathBuf;
use std::process::ExitCode;
use tally::Tally;

/// IR programs per module and route.
const WIDE_BATCH: u64 = 100;
/// Fork-join programs per module and route.
const PARALLEL_BATCH: u64 = 40;
/// C programs per module.
const C_BATCH: u64 = 20;
/// Memory programs per child.
const MEMORY_BATCH: u64 = 1000;

/// The kind of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramKind {
    C,
    Wide,
    Parallel,
    /// Gradients of OpenMP programs.
    Gradients,
    Kernels,
    /// Call graphs of regions and worksharing functions.
    Shares,
    /// Memory programs, for the points-to analyses.
    PointsTo,
}

/// The parsed command line.
#[derive(Clone, Debug)]
struct Settings {
    count: u64,
    seed: u64,
    statements: u32,
    /// The number of concurrent children.
    jobs: usize,
    route: Option<usize>,
    child: bool,
    show: bool,
    reduce: bool,
    sort: ProgramKind,
    /// True to detect each seeded fault, and the fault of this process.
    mutants: bool,
    mutant: Option<Mutant>,
    /// True to run fork-join programs under ThreadSanitizer, and the `gradus` that links them.
    sanitizes: bool,
    linker: PathBuf,
    /// True to make their atomic updates plain, for the sanitizer to detect.
    race: bool,
    file: Option<String>,
}

const USAGE: &str = "the options are --ir, --parallel, --gradients, --kernels, --shares, --points-to, --mutants, --mutant NAME, --tsan, --linker GRADUS, --race, --show, --reduce, --count, --seed, --statements, --jobs, --route, --file";

fn settings() -> Result<Settings, String> {
    let mut settings = Settings {
        count: 200,
        seed: 0,
        statements: 14,
        jobs: 1,
        route: None,
        child: false,
        show: false,
        reduce: false,
        sort: ProgramKind::C,
        mutants: false,
        mutant: None,
        sanitizes: false,
        linker: "gradus".into(),
        race: false,
        file: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--batch" => settings.child = true,
            "--ir" => settings.sort = ProgramKind::Wide,
            "--parallel" => settings.sort = ProgramKind::Parallel,
            "--gradients" => settings.sort = ProgramKind::Gradients,
            "--kernels" => settings.sort = ProgramKind::Kernels,
            "--shares" => settings.sort = ProgramKind::Shares,
            "--points-to" => settings.sort = ProgramKind::PointsTo,
            "--tsan" => settings.sanitizes = true,
            "--linker" => {
                let path = words.next().ok_or("--linker needs a compiler")?;
                settings.linker = path.into();
            }
            "--race" => settings.race = true,
            "--show" => settings.show = true,
            "--reduce" => settings.reduce = true,
            "--mutants" => settings.mutants = true,
            "--mutant" => {
                let name = words.next().ok_or("--mutant needs a name")?;
                settings.mutant = Mutant::ALL.iter().copied().find(|m| m.name() == name);
                settings.mutant.ok_or(format!("unknown mutant `{name}`"))?;
            }
            "--file" => settings.file = Some(words.next().ok_or("--file needs a name")?),
            "--count" | "--seed" | "--statements" | "--jobs" | "--route" => {
                let value = words.next().ok_or(format!("{word} needs a number"))?;
                let number: u64 = value
                    .parse()
                    .map_err(|_| format!("`{value}` is not a number"))?;
                match word.as_str() {
                    "--count" => settings.count = number,
                    "--seed" => settings.seed = number,
                    "--statements" => settings.statements = number as u32,
                    "--jobs" => settings.jobs = (number as usize).max(1),
                    _ => settings.route = Some(number as usize),
                }
            }
            _ => return Err(format!("{word}? {USAGE}")),
        }
    }
    if settings.file.is_some() {
        settings.count = 1;
    }
    Ok(settings)
}

impl Settings {
    fn seeds(&self) -> impl Iterator<Item = u64> {
        self.seed..self.seed + self.count
    }

    /// Returns the C program of a seed, or of the file.
    fn c_program(&self, seed: u64) -> CProgram {
        let mut program = c_program(seed, self.statements);
        if let Some(text) = self.text() {
            program.single = text.contains("float");
            program.source = text;
        }
        program
    }

    /// Returns the IR program of a seed, or of the file.
    fn wide_program(&self, seed: u64) -> WideProgram {
        let mut program = wide_program(seed);
        if let Some(text) = self.text() {
            program.single = text.contains("f32");
            program.text = text;
        }
        program
    }

    /// Returns the route of the seed's batch, or the requested route.
    fn way(&self) -> WideRoute {
        WideRoute::of(match self.route {
            Some(route) => route as u64,
            None => self.seed / WIDE_BATCH,
        })
    }

    /// Returns the fork-join program of a seed, or of the file.
    fn fork_join_program(&self, seed: u64) -> ForkJoinProgram {
        let mut program = fork_join_program(seed);
        program.text = self.text().unwrap_or(program.text);
        program
    }

    /// Returns the route of the seed's fork-join batch, or the requested route.
    fn fork_join_way(&self) -> ForkJoinWay {
        let batch = self.route.map(|route| route as u64);
        ForkJoinWay::of(batch.unwrap_or(self.seed / PARALLEL_BATCH))
    }

    /// Returns the kernel of a seed, or of the file.
    fn kernel_program(&self, seed: u64) -> KernelProgram {
        let mut program = kernel_program(seed, 12 + (seed % 4) as u32 * 8);
        program.text = self.text().unwrap_or(program.text);
        program
    }

    /// Returns the memory program of a seed, or of the file.
    fn memory_program(&self, seed: u64) -> MemoryProgram {
        let mut program = memory_program(seed);
        program.text = self.text().unwrap_or(program.text);
        program
    }

    /// Returns the OpenMP program of a seed, or of the file.
    fn parallel_c_program(&self, seed: u64) -> ParallelCProgram {
        let mut program = parallel_c_program(seed);
        program.source = self.text().unwrap_or(program.source);
        program
    }

    /// Returns the route of the seed's batch of OpenMP programs, or the requested route.
    fn parallel_c_way(&self) -> ParallelCWay {
        let batch = self.route.map(|route| route as u64);
        ParallelCWay::of(batch.unwrap_or(self.seed / C_BATCH))
    }

    /// Returns the call graph of a seed. With a file, the text of that file is the first file, alone.
    fn shares_program(&self, seed: u64) -> SharesProgram {
        let mut program = shares_program(seed);
        if let Some(text) = self.text() {
            program.files = [text, String::new()];
        }
        program
    }

    /// Returns the route of the seed's batch of call graphs, or the requested route.
    fn shares_way(&self) -> SharesWay {
        let batch = self.route.map(|route| route as u64);
        SharesWay::of(batch.unwrap_or(self.seed / C_BATCH))
    }

    fn text(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(std::fs::read_to_string(file).unwrap_or_default())
    }
}

fn main() -> ExitCode {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    if settings.show {
        match settings.sort {
            ProgramKind::Wide => print!("{}", settings.wide_program(settings.seed).text),
            ProgramKind::Parallel => print!("{}", settings.fork_join_program(settings.seed).text),
            ProgramKind::C => print!("{C_INCLUDES}{}", settings.c_program(settings.seed).source),
            ProgramKind::Kernels => print!("{}", settings.kernel_program(settings.seed).text),
            ProgramKind::PointsTo => print!("{}", settings.memory_program(settings.seed).text),
            ProgramKind::Shares => {
                print!("{}", settings.shares_program(settings.seed).joined_files());
            }
            ProgramKind::Gradients => {
                let program = settings.parallel_c_program(settings.seed);
                print!("{C_INCLUDES}{}", program.source);
            }
        }
        return ExitCode::SUCCESS;
    }
    if settings.reduce {
        std::panic::set_hook(Box::new(|_| ()));
        return match smaller::page(&settings) {
            Some(page) => {
                print!("{page}");
                ExitCode::from(1)
            }
            None => ExitCode::SUCCESS,
        };
    }
    if settings.mutants {
        return mutants::run(&settings);
    }
    if settings.child {
        seed_fault(settings.mutant);
        batch(&settings);
        return ExitCode::SUCCESS;
    }
    let mut tally = Tally::run(&settings);
    tally.print();
    match tally.is_clean() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    }
}

/// Seeds a fault in the compiler of this process.
#[cfg(debug_assertions)]
fn seed_fault(mutant: Option<Mutant>) {
    gradus_ir::mutant::plant(mutant);
}

/// A release build has no faults to seed.
#[cfg(not(debug_assertions))]
fn seed_fault(_: Option<Mutant>) {}

/// Checks the programs of a child, and prints a line per outcome.
fn batch(settings: &Settings) {
    std::panic::set_hook(Box::new(|_| ()));
    match settings.sort {
        ProgramKind::Wide => wide_batch(settings),
        ProgramKind::Parallel => parallel_batch(settings),
        ProgramKind::Gradients => gradient_batch(settings),
        ProgramKind::C => c_batch(settings),
        ProgramKind::Kernels => kernel_batch(settings),
        ProgramKind::Shares => shares_batch(settings),
        ProgramKind::PointsTo => memory_batch(settings),
    }
    println!("done");
}

fn c_batch(settings: &Settings) {
    let programs: Vec<CProgram> = settings.seeds().map(|s| settings.c_program(s)).collect();
    for (route, flags) in ROUTES.iter().enumerate() {
        if settings
            .route
            .is_some_and(|own| own % ROUTES.len() != route)
        {
            continue;
        }
        let verdicts = check_c(&programs, flags)
            .unwrap_or_else(|why| vec![Verdict::Crash(why); programs.len()]);
        print_verdicts(settings, &format!("{flags:?}"), verdicts);
    }
}

fn wide_batch(settings: &Settings) {
    let programs: Vec<WideProgram> = settings.seeds().map(|s| settings.wide_program(s)).collect();
    let way = settings.way();
    let verdicts = wide_unit(&programs)
        .and_then(|unit| check_unit(&unit, &programs, &way))
        .unwrap_or_else(|why| vec![Verdict::Crash(why); programs.len()]);
    print_verdicts(settings, &format!("{way:?}"), verdicts);
}

fn parallel_batch(settings: &Settings) {
    let seeds = settings.seeds();
    let programs: Vec<ForkJoinProgram> = seeds.map(|s| settings.fork_join_program(s)).collect();
    let way = settings.fork_join_way();
    let checked = |mut unit: Unit| {
        if !settings.sanitizes {
            return check_fork_join(&unit, &programs, &way);
        }
        if settings.race {
            seed_races(&mut unit);
        }
        let folder = std::env::temp_dir().join(format!("gradus-tsan-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let verdicts = check_sanitized(&unit, &programs, &way, &settings.linker, &folder);
        let _ = std::fs::remove_dir_all(&folder);
        verdicts
    };
    let verdicts = fork_join_unit(&programs)
        .and_then(checked)
        .unwrap_or_else(|why| vec![Verdict::Crash(why); programs.len()]);
    print_verdicts(settings, &format!("{way:?}"), verdicts);
}

fn gradient_batch(settings: &Settings) {
    let seeds = settings.seeds();
    let programs: Vec<ParallelCProgram> = seeds.map(|s| settings.parallel_c_program(s)).collect();
    let way = settings.parallel_c_way();
    let verdicts = check_parallel_c(&programs, &way)
        .unwrap_or_else(|why| vec![Verdict::Crash(why); programs.len()]);
    print_verdicts(settings, &format!("{way:?}"), verdicts);
}

fn kernel_batch(settings: &Settings) {
    let judge = |seed| {
        let text = settings.kernel_program(seed).text;
        match std::panic::catch_unwind(|| check_kernel(&text, seed % 8 == 0)) {
            Ok(Ok(_)) => Verdict::Right,
            Ok(Err(why)) => Verdict::Wrong(why.lines().next().unwrap_or_default().into()),
            Err(_) => Verdict::Crash("the check panics".into()),
        }
    };
    print_verdicts(settings, "kernels", settings.seeds().map(judge).collect());
}

/// Parses and checks a memory program.
fn memory_findings(program: &MemoryProgram) -> Result<MemoryFindings, String> {
    let unit = gradus_ir::parse(&program.text, "memory").map_err(|error| error.to_string())?;
    check_memory_program(unit, program.assembles_addresses)
}

/// Checks memory programs. A program in which the analysis by inclusion is the wider one has a line per class of
/// differences.
fn memory_batch(settings: &Settings) {
    for seed in settings.seeds() {
        let program = settings.memory_program(seed);
        let found = std::panic::catch_unwind(|| memory_findings(&program))
            .unwrap_or_else(|_| Err("the check panics".into()));
        let lines = match found {
            Err(why) => vec![("crash".to_string(), why)],
            Ok(found) if !found.unsound.is_empty() => {
                let texts = found.unsound.into_iter();
                texts
                    .map(|text| ("WRONG".to_string(), text))
                    .take(1)
                    .collect()
            }
            Ok(found) if !found.wider.is_empty() => {
                let classes = found.wider.into_iter();
                classes
                    .map(|(class, text)| (format!("wider: {class}"), text))
                    .collect()
            }
            Ok(found) => match found.trap {
                Some(kind) => vec![(format!("ok, traps: {kind}"), String::new())],
                None => vec![("ok".to_string(), String::new())],
            },
        };
        for (kind, text) in lines {
            let text: String = text.replace(['\n', '\t'], " ").chars().take(400).collect();
            println!("{seed}\tpoints-to\t{kind}\t{text}");
        }
    }
}

fn shares_batch(settings: &Settings) {
    let seeds = settings.seeds();
    let programs: Vec<SharesProgram> = seeds.map(|s| settings.shares_program(s)).collect();
    let verdicts = shares_verdicts(settings, &programs)
        .unwrap_or_else(|why| vec![Verdict::Crash(why); programs.len()]);
    print_verdicts(settings, &format!("{:?}", settings.shares_way()), verdicts);
}

/// Checks call graphs in a folder of this process.
fn shares_verdicts(
    settings: &Settings,
    programs: &[SharesProgram],
) -> Result<Vec<Verdict>, String> {
    let folder = std::env::temp_dir().join(format!("gradus-shares-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let way = settings.shares_way();
    let verdicts = check_shares(programs, &way, &settings.linker, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    verdicts
}

/// Prints seed, route, kind and text in a line.
fn print_verdicts(settings: &Settings, route: &str, verdicts: Vec<Verdict>) {
    for (seed, verdict) in std::iter::zip(settings.seeds(), verdicts) {
        let (kind, text) = match verdict {
            Verdict::Right => ("ok".into(), String::new()),
            Verdict::Isolated(what) => ("isolated".into(), what),
            Verdict::Oscillating(what) => ("steep".into(), what),
            Verdict::Refused { code, place } => (format!("refused {code}"), place),
            Verdict::Wrong(why) => ("WRONG".into(), why),
            Verdict::Crash(why) => ("crash".into(), why),
        };
        let text: String = text.replace(['\n', '\t'], " ").chars().take(300).collect();
        println!("{seed}\t{route}\t{kind}\t{text}");
    }
}
