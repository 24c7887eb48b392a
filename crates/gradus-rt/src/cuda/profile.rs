//! Profile with `GRADUS_PROFILE=1`: at program end, a table like nvprof's with the number of runs and the
//! time of each kernel and kind of copy.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Timed activities besides kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    Fill,
}

impl Activity {
    pub(super) fn name(self) -> &'static CStr {
        match self {
            Activity::HostToDevice => c"[CUDA memcpy HtoD]",
            Activity::DeviceToHost => c"[CUDA memcpy DtoH]",
            Activity::DeviceToDevice => c"[CUDA memcpy DtoD]",
            Activity::Fill => c"[CUDA memset]",
        }
    }
}

/// The runs of a kernel or activity.
#[derive(Clone, Copy, Debug)]
struct Row {
    calls: u32,
    total: Duration,
    least: Duration,
    most: Duration,
}

type Rows = BTreeMap<&'static CStr, Row>;

static ROWS: Mutex<Rows> = Mutex::new(BTreeMap::new());

/// Returns whether profiling is enabled.
pub(super) fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os("GRADUS_PROFILE").is_some_and(|value| value == "1"))
}

/// Runs and times an activity.
pub(super) fn run_timed_activity(activity: Activity, work: impl FnOnce()) {
    run_timed_kernel(activity.name(), work);
}

/// Runs and times a kernel.
#[inline]
pub(super) fn run_timed_kernel(name: &'static CStr, work: impl FnOnce()) {
    match is_on() {
        false => work(),
        true => {
            let start = Instant::now();
            work();
            add(name, start.elapsed());
        }
    }
}

thread_local! {
    /// Running kernels, between [`begin`] and [`end`].
    static RUNNING: RefCell<Vec<(&'static CStr, Instant)>> = const { RefCell::new(Vec::new()) };
}

/// Records the start of a kernel.
#[inline]
pub(super) fn begin(name: &'static CStr) {
    if is_on() {
        RUNNING.with_borrow_mut(|running| running.push((name, Instant::now())));
    }
}

/// Records the end of the kernel begun last.
#[inline]
pub(super) fn end() {
    if is_on()
        && let Some((name, start)) = RUNNING.with_borrow_mut(Vec::pop)
    {
        add(name, start.elapsed());
    }
}

/// Adds a run to its row. The table is printed at program end.
fn add(name: &'static CStr, time: Duration) {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function takes no argument and lives until program end.
        unsafe { libc::atexit(print) };
    });
    let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    let row = rows.entry(name).or_insert(Row {
        calls: 0,
        total: Duration::ZERO,
        least: Duration::MAX,
        most: Duration::ZERO,
    });
    row.calls += 1;
    row.total += time;
    row.least = row.least.min(time);
    row.most = row.most.max(time);
}

extern "C" fn print() {
    let rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    crate::cuda::printf::write_stderr(&format_table(&rows));
}

/// The table, longest total time first.
fn format_table(rows: &Rows) -> String {
    let mut sorted: Vec<_> = rows.iter().collect();
    sorted.sort_by_key(|(name, row)| (std::cmp::Reverse(row.total), *name));
    let whole: Duration = rows.values().map(|row| row.total).sum();
    let mut text = String::from("==gradus== Profiling result:\n");
    let _ = writeln!(
        text,
        "{:>8} {:>10} {:>8} {:>10} {:>10} {:>10}  Name",
        "Time(%)", "Time", "Calls", "Avg", "Min", "Max"
    );
    for (name, row) in sorted {
        let share = 100.0 * row.total.as_secs_f64() / whole.as_secs_f64().max(1e-12);
        let _ = writeln!(
            text,
            "{share:>7.2}% {:>10} {:>8} {:>10} {:>10} {:>10}  {}",
            format_duration(row.total),
            row.calls,
            format_duration(row.total / row.calls),
            format_duration(row.least),
            format_duration(row.most),
            demangled(name)
        );
    }
    text
}

/// A time with five digits and its unit.
fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "us"),
        s => (s * 1e9, "ns"),
    };
    let digits = if value >= 100.0 {
        2
    } else if value >= 10.0 {
        3
    } else {
        4
    };
    format!("{value:.digits$}{unit}")
}

/// The demangled name, if the program contains the C++ run time.
fn demangled(name: &CStr) -> String {
    type Demangle =
        unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    let plain = || name.to_string_lossy().into_owned();
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_demangle".as_ptr()) };
    if found.is_null() {
        return plain();
    }
    let mut status = 0;
    // SAFETY: the function of the C++ ABI has the given type, and allocates with `malloc`.
    unsafe {
        let demangle = std::mem::transmute::<*mut c_void, Demangle>(found);
        let null = std::ptr::null_mut();
        let text = demangle(name.as_ptr(), null, null.cast(), &mut status);
        if text.is_null() {
            return plain();
        }
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_time() {
        let row = |calls, ms| Row {
            calls,
            total: Duration::from_millis(ms),
            least: Duration::from_micros(10),
            most: Duration::from_millis(ms),
        };
        let rows = BTreeMap::from([(c"short", row(1, 25)), (c"long", row(3, 75))]);
        let text = format_table(&rows);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "  75.00%   75.000ms        3   25.000ms   10.000us   75.000ms  long",
                "  25.00%   25.000ms        1   25.000ms   10.000us   25.000ms  short",
            ]
        );
    }
}
