//! Output to streams that may be closed, full or limited.
//!
//! A reader that closes the pipe (`gradus explain GRD0007 | head -1`) ends the output silently. A failed
//! write to standard output is an error that ends the program. A failed write to standard error cannot be
//! reported; the exit status remains.

use crate::FAILED;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stderr, stdout};

/// Writes to standard output.
pub fn out(text: Arguments) {
    crate::progress::erase();
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
    crate::progress::erase();
    let _ = stderr().lock().write_fmt(text);
}

/// Like [`println!`], but a failing stream does not panic.
macro_rules! outln {
    ($($words:tt)*) => {
        $crate::said::out(format_args!("{}\n", format_args!($($words)*)))
    };
}

/// Like [`eprintln!`], but a failing stream does not panic.
macro_rules! errln {
    ($($words:tt)*) => {
        $crate::said::err(format_args!("{}\n", format_args!($($words)*)))
    };
}

pub(crate) use {errln, outln};
