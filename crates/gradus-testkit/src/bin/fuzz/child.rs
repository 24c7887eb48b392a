//! A child process that checks some programs, and its outcome.

use crate::{PARALLEL_BATCH, ProgramKind, Settings};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The processor time of a child before it counts as hanging. With a seeded fault in the compiler, hangs
/// are frequent.
const TIME_LIMIT: Duration = Duration::from_secs(400);
const TIME_LIMIT_WITH_FAULT: Duration = Duration::from_secs(100);
/// A factor for waiting children: a deadlock uses no processor time, and any child waits on a loaded
/// machine.
const WALL_TIME_FACTOR: u32 = 10;
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Runs a child on `count` seeds from `first` on. Returns its lines, or the kind of failure.
pub fn run(settings: &Settings, first: u64, count: u64) -> Result<Vec<String>, &'static str> {
    let own = std::env::current_exe().map_err(|_| "crash: unknown path of the fuzz program")?;
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
    if let Some(mutant) = settings.mutant {
        command.arg("--mutant").arg(mutant.name());
    }
    if settings.sanitizes {
        command.arg("--tsan").arg("--linker").arg(&settings.linker);
    }
    if settings.race {
        command.arg("--race");
    }
    match settings.sort {
        ProgramKind::C => {}
        ProgramKind::Kernels => drop(command.arg("--kernels")),
        ProgramKind::Shares => {
            command.args(["--shares", "--linker"]).arg(&settings.linker);
        }
        ProgramKind::Wide => drop(command.arg("--ir")),
        ProgramKind::PointsTo => drop(command.arg("--points-to")),
        ProgramKind::Parallel => {
            command.arg("--parallel");
            // The pool has the maximum number of workers of the programs; every second batch forks all
            // loops.
            command.env("OMP_NUM_THREADS", "4");
            let forced = first / PARALLEL_BATCH % 2;
            command.env("GRADUS_FORCE_FORK", forced.to_string());
        }
        ProgramKind::Gradients => {
            command.arg("--gradients");
            command.env("OMP_NUM_THREADS", "3");
            command.env("GRADUS_FORCE_FORK", "1");
        }
    }
    let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|_| "crash: the child process does not start")?;
    let stdout = child
        .stdout
        .take()
        .ok_or("crash: no output of the child process")?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let patience = match settings.mutant {
        None => TIME_LIMIT,
        Some(_) => TIME_LIMIT_WITH_FAULT,
    };
    let since = Instant::now();
    let mut lines = Vec::new();
    let end = loop {
        match receive.recv_timeout(POLL_INTERVAL) {
            Ok(line) if line == "done" => break Ok(()),
            Ok(line) => lines.push(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => break Err("crash"),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let waited = since.elapsed();
                let worked = processor_time(child.id()).unwrap_or(waited);
                if worked > patience || waited > patience * WALL_TIME_FACTOR {
                    break Err("hang");
                }
            }
        }
    };
    if end.is_err() {
        let _ = child.kill();
    }
    let _ = child.wait();
    end.map(|()| lines)
}

/// Returns the processor time of a process, if the system provides `/proc/ID/stat` (in hundredths of a
/// second, user and system).
fn processor_time(process: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before the fields may hold any character.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks()? + ticks()?)))
}
