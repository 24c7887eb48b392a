//! The program `gradus-compiler`: the compiling process of `gradus`. Bytes in, bytes out, in a thread with a large
//! stack for LLVM's recursions. The process sets its own limits before reading anything.
//!
//! Only this program links LLVM: to load LLVM costs as much time as the compilation of a small file, and most
//! compilations by a driver request no derivative.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use gradus::pipeline::{Progress, compile_bytes};
use rlimit::Resource;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Instant;

/// LLVM recurses over the depth of its input; Gradus does not.
const STACK_BYTES: usize = 1 << 30;

/// The memory used by the program and its libraries at start, besides the stack.
const BASE_MEMORY_BYTES: u64 = 64 << 20;

/// Serves a request, within the limits stated by the arguments.
fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((memory_bytes, seconds)) = gradus::child_limits(&args) {
        set_limits(memory_bytes, seconds);
        end_with_parent();
    }
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || serve(gradus::child_tells_progress(&args)));
    let served = thread.ok().and_then(|t| t.join().ok());
    match served {
        Some(Ok(())) => ExitCode::SUCCESS,
        // The parent reports the missing reply.
        _ => ExitCode::FAILURE,
    }
}

/// Ends the process when its parent ends: a parent that a signal kills does not leave a compilation behind. Without this
/// feature of the system, the limit of processor time ends the process.
fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// Sets the limits. An unsupported limit is skipped: the parent still watches.
fn set_limits(memory_bytes: u64, seconds: u64) {
    let room = memory_bytes.saturating_add(STACK_BYTES as u64 + BASE_MEMORY_BYTES);
    // At the soft time limit the process gets a signal that identifies the cause; at the hard limit it is
    // killed.
    for (resource, soft, hard) in [
        (Resource::DATA, room, room),
        (Resource::CPU, seconds, seconds.saturating_add(5)),
        (Resource::CORE, 0, 0),
    ] {
        let Ok((_, most)) = resource.get() else {
            continue;
        };
        let _ = resource.set(soft.min(most), hard.min(most));
    }
}

fn serve(tells_progress: bool) -> std::io::Result<()> {
    let mut request = Vec::new();
    std::io::stdin().lock().read_to_end(&mut request)?;
    let start = Instant::now();
    let mut clock = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut tell = |step: &Progress| {
        if tells_progress {
            // A parent that no longer reads is no reason to stop.
            let _ = std::io::stderr().lock().write_all(step.line().as_bytes());
        }
    };
    let reply = compile_bytes(&request, &mut clock, &mut tell);
    let reply = reply.map_err(|e| std::io::Error::other(e.to_string()))?;
    let mut out = std::io::stdout().lock();
    out.write_all(&reply)?;
    out.flush()
}
