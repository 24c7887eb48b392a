//! Random C programs, differentiated through the whole compiler and checked.
//!
//! `fuzz [--count N] [--seed S] [--statements K]` checks the programs of N seeds from S on, at every
//! route; `fuzz --show SEED` prints one; `fuzz --file F.c --seed S` checks `f_S` of a file, such as a
//! program that was made smaller by hand. The work is done in child processes of the same program
//! (`--batch`), so that a crash or a hang is an outcome with its seed. It ends with what the
//! programs contained and how they fared; its exit status is 1 where one is wrong, crashes, or hangs.
#![forbid(unsafe_code)]

use gradus_testkit::{C_INCLUDES, CProgram, ROUTES, Verdict, c_program, check_c};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Programs per module.
const BATCH: u64 = 20;
/// What a child may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(240);

struct Settings {
    count: u64,
    seed: u64,
    statements: u32,
    route: Option<usize>,
    child: bool,
    show: bool,
    file: Option<String>,
}

fn settings() -> Result<Settings, String> {
    let mut settings = Settings {
        count: 200,
        seed: 0,
        statements: 14,
        route: None,
        child: false,
        show: false,
        file: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--batch" {
            settings.child = true;
            continue;
        }
        let value = words.next().ok_or(format!("{word} needs a number"))?;
        if word == "--file" {
            (settings.file, settings.count) = (Some(value), 1);
            continue;
        }
        let number: u64 = value.parse().map_err(|_| format!("{value} is no number"))?;
        match word.as_str() {
            "--count" => settings.count = number,
            "--seed" => settings.seed = number,
            "--statements" => settings.statements = number as u32,
            "--route" => settings.route = Some(number as usize % ROUTES.len()),
            "--show" => (settings.seed, settings.show) = (number, true),
            _ => {
                return Err(format!(
                    "{word}? There are --count, --seed, --statements, --route, --show, --file"
                ));
            }
        }
    }
    Ok(settings)
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
        println!(
            "{C_INCLUDES}{}",
            c_program(settings.seed, settings.statements).source
        );
        return ExitCode::SUCCESS;
    }
    if settings.child {
        batch(&settings);
        return ExitCode::SUCCESS;
    }
    let mut tally = Tally::default();
    let mut first = settings.seed;
    let end = settings.seed + settings.count;
    while first < end {
        let count = BATCH.min(end - first);
        tally.take(&settings, first, count);
        first += count;
        eprintln!("{} of {} programs", first - settings.seed, settings.count);
    }
    tally.print(&settings);
    match tally.bad.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    }
}

/// What a child does: checks its programs at each route, a line for each outcome.
fn batch(settings: &Settings) {
    std::panic::set_hook(Box::new(|_| ()));
    let seeds: Vec<u64> = (settings.seed..settings.seed + settings.count).collect();
    let mut programs: Vec<CProgram> = seeds
        .iter()
        .map(|s| c_program(*s, settings.statements))
        .collect();
    if let (Some(file), Some(program)) = (&settings.file, programs.first_mut()) {
        program.source = std::fs::read_to_string(file).unwrap_or_default();
        program.single = program.source.contains("float");
    }
    for (route, flags) in ROUTES.iter().enumerate() {
        if settings.route.is_some_and(|own| own != route) {
            continue;
        }
        let verdicts = check_c(&programs, flags)
            .unwrap_or_else(|why| vec![Verdict::Crash(why); programs.len()]);
        for (seed, verdict) in std::iter::zip(&seeds, verdicts) {
            let (kind, text) = match verdict {
                Verdict::Right => ("ok".into(), String::new()),
                Verdict::Refused { code, place } => (format!("refused {code}"), place),
                Verdict::Wrong(why) => ("WRONG".into(), why),
                Verdict::Crash(why) => ("crash".into(), why),
            };
            let text: String = text.replace(['\n', '\t'], " ").chars().take(300).collect();
            println!("{seed}\t{route}\t{kind}\t{text}");
        }
    }
    println!("done");
}

#[derive(Default)]
struct Tally {
    /// Runs by outcome.
    outcomes: BTreeMap<String, Vec<u64>>,
    /// An example of each refusal.
    examples: BTreeMap<String, String>,
    bad: Vec<String>,
}

impl Tally {
    fn take(&mut self, settings: &Settings, first: u64, count: u64) {
        match child(settings, first, count) {
            Ok(lines) => lines.iter().for_each(|line| self.line(line)),
            Err(_) if count > 1 => {
                for seed in first..first + count {
                    self.take(settings, seed, 1);
                }
            }
            Err(kind) => {
                self.outcomes.entry(kind.into()).or_default().push(first);
                self.fault(format!("seed {first}: {kind}"));
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
            return;
        };
        let number = seed.parse().unwrap_or(0);
        self.outcomes
            .entry(kind.to_string())
            .or_default()
            .push(number);
        let flags = route.parse().ok().and_then(|r: usize| ROUTES.get(r));
        let told = format!("seed {seed} {flags:?}: {kind}: {text}");
        match kind.starts_with("refused") {
            true => drop(self.examples.entry(kind.to_string()).or_insert(told)),
            false if *kind != "ok" => self.fault(told),
            false => {}
        }
    }

    fn print(&self, settings: &Settings) {
        let mut contents: BTreeMap<&str, u32> = BTreeMap::new();
        for seed in settings.seed..settings.seed + settings.count {
            for what in c_program(seed, settings.statements).contents {
                *contents.entry(what).or_default() += 1;
            }
        }
        println!("Of {} programs contain:", settings.count);
        for (what, count) in contents {
            println!("  {count:6}  {what}");
        }
        println!("Outcomes (programs × routes):");
        for (kind, seeds) in &self.outcomes {
            println!("  {:6}  {kind}", seeds.len());
        }
        for example in self.examples.values() {
            println!("{example}");
        }
        for bad in &self.bad {
            println!("{bad}");
        }
    }
}

/// Runs a child on some seeds: its lines, or how it failed.
fn child(settings: &Settings, first: u64, count: u64) -> Result<Vec<String>, &'static str> {
    let own = std::env::current_exe().map_err(|_| "crash: no program of its own")?;
    let mut command = Command::new(own);
    command.arg("--batch");
    for (name, value) in [
        ("--seed", first),
        ("--count", count),
        ("--statements", u64::from(settings.statements)),
    ] {
        command.arg(name).arg(value.to_string());
    }
    if let Some(file) = &settings.file {
        command.arg("--file").arg(file);
    }
    if let Some(route) = settings.route {
        command.arg("--route").arg(route.to_string());
    }
    let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|_| "crash: it does not start")?;
    let stdout = child.stdout.take().ok_or("crash: no output")?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let deadline = Instant::now() + PATIENCE;
    let mut lines = Vec::new();
    let end = loop {
        match receive.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if line == "done" => break Ok(()),
            Ok(line) => lines.push(line),
            Err(mpsc::RecvTimeoutError::Timeout) => break Err("hang"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break Err("crash"),
        }
    };
    if end.is_err() {
        let _ = child.kill();
    }
    let _ = child.wait();
    end.map(|()| lines)
}
