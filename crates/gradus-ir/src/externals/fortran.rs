//! flang's runtime: input and output statements, and program termination.
//!
//! An I/O statement is a `Begin…` call with a handle as result, one call per item, and `EndIoStatement`. Text
//! written to a character variable (an internal unit) may reach the variable in any of the calls. The handle
//! therefore counts as an address of the variable.

use super::system::{INACTIVE_IO, NO_RETURN, READS_ARGUMENTS, SystemFn};
use super::{Effects, ExternalFn, ExternalInfo, MemoryClasses};

/// Recognises a function of the runtime by name.
pub(super) fn by_pattern(name: &str) -> Option<ExternalInfo> {
    let rest = name.strip_prefix("_FortranA")?;
    let (known, effects) = match rest.strip_prefix("io") {
        Some(call) => statement(call),
        None => program(rest)?,
    };
    Some(ExternalInfo {
        known: ExternalFn::System(known),
        effects,
        shape: None,
    })
}

fn statement(call: &str) -> (SystemFn, Effects) {
    let handle = READS_ARGUMENTS.writing(&[0]);
    if call.starts_with("BeginInternal") {
        return (SystemFn::Stream, READS_ARGUMENTS.returning_argument(0));
    }
    if call.starts_with("Begin") {
        return (SystemFn::Stream, READS_ARGUMENTS);
    }
    if call.starts_with("Input") {
        let read = Effects {
            writes: MemoryClasses::ALL,
            inactive: false,
            ..READS_ARGUMENTS
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
            Some((SystemFn::Clock, INACTIVE_IO))
        }
        _ if ENDS.contains(&rest) => Some((SystemFn::Exit, NO_RETURN.reading(&[0]))),
        _ => None,
    }
}
