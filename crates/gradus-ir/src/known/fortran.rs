//! flang's runtime: input and output statement by statement, and the ends of programs.
//!
//! A statement is a `Begin…` that gives a handle, a call for each item, and `EndIoStatement`. What is
//! written to a character variable (an internal unit) may reach it at any of these calls, so that its
//! handle counts as the address of the variable.

use super::system::{DIE, SystemFn, TALK, TELL};
use super::{Effects, Found, Known, Places};

/// A function of the runtime by its name.
pub(super) fn by_pattern(name: &str) -> Option<Found> {
    let rest = name.strip_prefix("_FortranA")?;
    let (known, effects) = match rest.strip_prefix("io") {
        Some(call) => statement(call),
        None => program(rest)?,
    };
    Some(Found {
        known: Known::System(known),
        effects,
        shape: None,
    })
}

fn statement(call: &str) -> (SystemFn, Effects) {
    let handle = TELL.writing(&[0]);
    if call.starts_with("BeginInternal") {
        return (SystemFn::Stream, TELL.giving(0));
    }
    if call.starts_with("Begin") {
        return (SystemFn::Stream, TELL);
    }
    if call.starts_with("Input") {
        let read = Effects {
            writes: Places::ALL,
            inactive: false,
            ..TELL
        };
        return (SystemFn::Read, read);
    }
    if call.starts_with("Get") || call.starts_with("Inquire") {
        return (SystemFn::Stream, handle.writing(&[1, 2]));
    }
    (SystemFn::Print, handle)
}

fn program(rest: &str) -> Option<(SystemFn, Effects)> {
    // table
    const ENDS: &[&str] = &[
        "StopStatement",
        "StopStatementText",
        "FailImageStatement",
        "ProgramEndStatement",
        "ReportFatalUserError",
        "Exit",
        "Abort",
    ];
    match rest {
        "CpuTime" | "SystemClockCount" | "SystemClockCountRate" | "SystemClockCountMax" => {
            Some((SystemFn::Clock, TALK))
        }
        _ if ENDS.contains(&rest) => Some((SystemFn::Exit, DIE.reading(&[0]))),
        _ => None,
    }
}
