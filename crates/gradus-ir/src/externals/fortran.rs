//! flang's runtime: input and output statements, and program termination.
//!
//! An I/O statement is a `Begin…` call with a handle as result, one call per item, and `EndIoStatement`. Text
//! written to a character variable (an internal unit) may reach the variable in any of the calls. The handle
//! therefore counts as an address of the variable.

use super::system::{DIE, SystemFn, TALK, TELL};
use super::{Effects, Found, Known, Places};

/// Recognises a function of the runtime by name.
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
