//! Kernel output: `printf` from clang's packed arguments, failed assertions, and clocks.

use super::Status;
use super::error::Error;
use crate::kernel_faults;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::time::Instant;

unsafe extern "C" {
    #[cfg_attr(target_os = "macos", link_name = "__stdoutp")]
    static stdout: *mut libc::FILE;
}

/// The arguments of a `printf`, each aligned to its own size.
struct Packed {
    at: *const u8,
    offset: usize,
}

impl Packed {
    /// The next argument.
    ///
    /// # Safety
    /// A next argument of type `T` exists.
    unsafe fn next<T: Copy>(&mut self) -> T {
        let start = self.offset.next_multiple_of(size_of::<T>());
        self.offset = start + size_of::<T>();
        // SAFETY: promised by the caller.
        unsafe { self.at.add(start).cast::<T>().read() }
    }
}

/// A conversion of a format: the text from `%` on, the conversion letter, and the argument's width.
struct Conversion<'a> {
    text: &'a [u8],
    letter: u8,
    /// An integer argument has 64 bits.
    long: bool,
}

/// Parses the conversion at the start of `format`, including its `%`; `None` if incomplete.
fn parse_conversion(format: &[u8]) -> Option<Conversion<'_>> {
    let letter_at = format[1..]
        .iter()
        .position(|c| !b"-+ #0123456789.*hlLqjzt".contains(c))?
        + 1;
    let text = &format[..=letter_at];
    let long = text.iter().any(|c| b"lqjzt".contains(c));
    Some(Conversion {
        text,
        letter: format[letter_at],
        long,
    })
}

/// Formats a single conversion.
///
/// # Safety
/// The packed arguments match the format.
unsafe fn format_conversion(conversion: &Conversion<'_>, packed: &mut Packed, out: &mut Vec<u8>) {
    // Each star is replaced by its number, and one argument remains; length modifiers are normalised.
    let mut format = Vec::new();
    for &c in &conversion.text[..conversion.text.len() - 1] {
        match c {
            // SAFETY: promised by the caller.
            b'*' => format.extend(unsafe { packed.next::<c_int>() }.to_string().bytes()),
            b'l' | b'L' | b'q' | b'j' | b'z' | b't' => {}
            _ => format.push(c),
        }
    }
    if conversion.long && b"diouxX".contains(&conversion.letter) {
        format.extend(b"ll");
    }
    format.extend([conversion.letter, 0]);
    // SAFETY: promised by the caller; the format has one conversion of the matching type.
    unsafe {
        match conversion.letter {
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' if conversion.long => {
                let value = packed.next::<i64>();
                append_snprintf(out, |to, size| {
                    libc::snprintf(to, size, format.as_ptr().cast(), value)
                });
            }
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' => {
                let value = packed.next::<c_int>();
                append_snprintf(out, |to, size| {
                    libc::snprintf(to, size, format.as_ptr().cast(), value)
                });
            }
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => {
                let value = packed.next::<f64>();
                append_snprintf(out, |to, size| {
                    libc::snprintf(to, size, format.as_ptr().cast(), value)
                });
            }
            b's' | b'p' => {
                let value = packed.next::<*const c_void>();
                append_snprintf(out, |to, size| {
                    libc::snprintf(to, size, format.as_ptr().cast(), value)
                });
            }
            _ => out.extend(conversion.text),
        }
    }
}

/// Appends the output of `write`, which takes a buffer with its size and returns the length.
fn append_snprintf(out: &mut Vec<u8>, write: impl Fn(*mut c_char, usize) -> c_int) {
    let length = usize::try_from(write(std::ptr::null_mut(), 0)).unwrap_or(0);
    let start = out.len();
    out.resize(start + length + 1, 0);
    write(out[start..].as_mut_ptr().cast(), length + 1);
    out.truncate(start + length);
}

/// The formatted text, and the number of conversions.
///
/// # Safety
/// The packed arguments match the format.
unsafe fn format_packed(mut format: &[u8], arguments: *const c_void) -> (Vec<u8>, c_int) {
    let mut packed = Packed {
        at: arguments.cast(),
        offset: 0,
    };
    let (mut out, mut count) = (Vec::new(), 0);
    while let Some(at) = format.iter().position(|&c| c == b'%') {
        out.extend(&format[..at]);
        format = &format[at..];
        let Some(found) = parse_conversion(format) else {
            break;
        };
        if found.letter == b'%' {
            out.push(b'%');
        } else {
            // SAFETY: promised by the caller.
            unsafe { format_conversion(&found, &mut packed, &mut out) };
            count += 1;
        }
        format = &format[found.text.len()..];
    }
    out.extend(format);
    (out, count)
}

/// Writes to standard error.
pub(super) fn write_stderr(text: &str) {
    // SAFETY: the text has the stated length.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

/// `printf` in a kernel, with a format and a structure of arguments. Returns the number of arguments.
///
/// # Safety
/// Both come from a single call of `printf`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __gr_vprintf(format: *const c_char, arguments: *const c_void) -> c_int {
    if format.is_null() {
        return -1;
    }
    // SAFETY: promised by the caller.
    let (text, count) = unsafe { format_packed(CStr::from_ptr(format).to_bytes(), arguments) };
    // SAFETY: C's own stream, with its own lock.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
    count
}

/// Reports a failed assertion of a kernel; every later call of the runtime fails.
///
/// # Safety
/// The texts are C strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn __gr_assertfail(
    message: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
    _width: usize,
) {
    // SAFETY: promised by the caller.
    let text = |text: *const c_char| unsafe { CStr::from_ptr(text).to_string_lossy() };
    let (message, file, function) = (text(message), text(file), text(function));
    write_stderr(&format!(
        "{file}:{line}: {function}: Assertion `{message}` failed.\n"
    ));
    kernel_faults::set_kernel_failure(Error::Assert as Status);
}

/// Nanoseconds since the first call.
#[unsafe(no_mangle)]
extern "C" fn __gr_clock64() -> i64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let passed = START.get_or_init(Instant::now).elapsed();
    i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX)
}

/// The lower half of [`__gr_clock64`].
#[unsafe(no_mangle)]
extern "C" fn __gr_clock() -> i32 {
    __gr_clock64() as i32
}

/// Nanoseconds since the Unix epoch.
#[unsafe(no_mangle)]
extern "C" fn __gr_globaltimer() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |passed| {
        i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Yields to other threads, in place of a sleep.
#[unsafe(no_mangle)]
extern "C" fn __gr_nanosleep(_nanoseconds: i32) {
    std::thread::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Arguments {
        a: c_int,
        b: f64,
        c: i64,
        d: *const c_char,
        e: c_int,
        width: c_int,
        f: c_int,
    }

    #[test]
    fn formats_packed_arguments() {
        let arguments = Arguments {
            a: -5,
            b: 2.5,
            c: 1 << 40,
            d: c"text".as_ptr(),
            e: 'x' as c_int,
            width: 6,
            f: 255,
        };
        let format = b"a=%03d b=%.2f c=%llu 100%% %s [%c] %*x|";
        let (text, count) = unsafe { format_packed(format, (&raw const arguments).cast()) };
        assert_eq!(text, b"a=-05 b=2.50 c=1099511627776 100% text [x]     ff|");
        assert_eq!(count, 6);
    }

    #[test]
    fn incomplete_conversion_is_copied() {
        let (text, count) = unsafe { format_packed(b"50%", std::ptr::null()) };
        assert_eq!((text.as_slice(), count), (&b"50%"[..], 0));
    }
}
