//! What the program says, on streams that may be closed, full or limited.
//!
//! Whoever stops reading (`gradus explain GRD0007 | head -1`) does not want the rest. Standard output that
//! cannot be written is an error, after which nothing more is said. Of standard error nothing can be said
//! where it cannot be written; the exit status tells.

use crate::FAILED;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stderr, stdout};

/// Writes to standard output.
pub fn out(text: Arguments) {
    let mut to = stdout().lock();
    match to.write_fmt(text).and_then(|()| to.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            err(format_args!(
                "error[GRD0023]: cannot write to standard output: {error}\n"
            ));
            std::process::exit(i32::from(FAILED));
        }
        _ => {}
    }
}

/// Writes to standard error.
pub fn err(text: Arguments) {
    let _ = stderr().lock().write_fmt(text);
}

/// As [`println!`], where a stream that fails is no fault of the program.
macro_rules! outln {
    ($($words:tt)*) => {
        $crate::said::out(format_args!("{}\n", format_args!($($words)*)))
    };
}

/// As [`eprintln!`], likewise.
macro_rules! errln {
    ($($words:tt)*) => {
        $crate::said::err(format_args!("{}\n", format_args!($($words)*)))
    };
}

pub(crate) use {errln, outln};
