//! `gradus cc` and `gradus c++`: clang's command line, and a few words of our own.

use crate::options::words;
use crate::session::Session;
use gradus::drive::{DriveOptions, drive};
use std::ffi::OsString;

/// Runs a driver; gives the exit status.
pub fn run(session: &Session, args: &[OsString], plus_plus: bool) -> u8 {
    let args = match words(args) {
        Ok(args) => args,
        Err(diagnostic) => return session.fail(diagnostic),
    };
    let mut how = DriveOptions {
        plus_plus,
        ..DriveOptions::default()
    };
    let mut rest = Vec::new();
    let (mut report, mut regions) = (false, false);
    for arg in args {
        match arg.as_str() {
            "--restructure-all" => how.restructure_all = true,
            "--strong-zero" => how.options.strong_zero = true,
            "--gradus-report" => report = true,
            "--par-report" => regions = true,
            _ => match arg.strip_prefix("--gradus-without=") {
                Some(names) => how.options.off.extend(crate::options::list(names)),
                None => rest.push(arg),
            },
        }
    }
    let driven = drive(&session.settings, &how, &rest);
    for remark in &driven.remarks {
        eprint!("{remark}");
    }
    session.show(&driven.diagnostics);
    if report {
        driven.reports.iter().for_each(|text| print!("{text}"));
    }
    if regions {
        driven.regions.iter().for_each(|text| print!("{text}"));
    }
    u8::try_from(driven.status).unwrap_or(crate::FAILED)
}
