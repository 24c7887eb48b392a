//! System functions: input, output, process, clock, random numbers, environment.

use super::{Effects, ExternalFn, ExternalInfo, Row};

/// A system function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SystemFn {
    /// Writes text to a stream: `printf`, `puts`, `fprintf`, `fwrite` …
    Print,
    /// Formats text into memory: `snprintf`, `sprintf`. Memory behind value arguments is only read.
    PrintToMemory,
    /// Flushes, opens, closes or seeks a stream.
    Stream,
    /// Writes raw memory to a file descriptor: a file, a pipe, a socket.
    WriteDescriptor,
    /// Reads a stream or file descriptor into memory.
    Read,
    /// Maps a file or shared memory.
    Map,
    /// Opens a stream with the text in the program's memory.
    MemoryStream,
    /// Ends the program.
    Exit,
    /// A failed assertion: ends the program.
    AssertFail,
    /// Sorts with a comparison callback.
    Qsort,
    /// Searches with a comparison callback.
    Bsearch,
    /// Random numbers and seeds.
    Random,
    /// The clock.
    Clock,
    /// The environment.
    Environment,
    /// `→ ptr` to errno.
    Errno,
    /// Saves an execution context.
    Setjmp,
    /// Jumps to a saved context.
    Longjmp,
    /// Registers a callback for the end of the program.
    AtExit,
    /// Sleeps or yields.
    Sleep,
    /// The id of the process or thread, or the address of a constant table of the thread.
    Identity,
    /// Character operations of flang's runtime, on memory of the program.
    Text,
    /// Type and association queries of flang's runtime.
    Query,
}

/// The symbol of runtime functions that only query and may end the program.
pub const QUERY_SYMBOL: &str = "__gr_question";

pub(super) const INACTIVE_IO: Effects = Effects::PURE.inaccessible().errno().inactive();
pub(super) const NO_RETURN: Effects = Effects::PURE.inaccessible().no_return().inactive();
/// Returns whether a variable of the C library holds a standard output stream.
pub fn is_stream_variable(name: &str) -> bool {
    matches!(name, "stdout" | "stderr" | "__stdoutp" | "__stderrp")
}

/// Returns whether an I/O function follows addresses stored in the argument memory: buffer lists, Fortran
/// descriptors.
pub fn reads_address_lists(name: &str) -> bool {
    // table
    const LISTS: &[&str] = &[
        "writev",
        "pwritev",
        "pwritev64",
        "sendmsg",
        "readv",
        "preadv",
        "preadv64",
        "recvmsg",
    ];
    LISTS.contains(&name) || name.starts_with("_FortranAio")
}

/// Returns whether a function belongs to a C++ stream with the text in the program's memory.
pub fn is_string_stream(name: &str) -> bool {
    // table
    const TYPES: &[&str] = &[
        "basic_stringstreamI",
        "basic_ostringstreamI",
        "basic_stringbufI",
        "St12strstreambuf",
        "St10ostrstream",
        "St9strstream",
    ];
    name.starts_with("_ZN") && TYPES.iter().any(|part| name.contains(part))
}

/// Reads through all arguments: `printf` may read memory for `%s`.
pub(super) const READS_ARGUMENTS: Effects =
    INACTIVE_IO.reading(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);

/// Recognises the handlers of UndefinedBehaviorSanitizer. Handlers report; handlers named `…_abort` end the
/// program.
pub(super) fn ubsan_handler(name: &str) -> Option<ExternalInfo> {
    let rest = name.strip_prefix("__ubsan_handle_")?;
    let (known, effects) = match rest.ends_with("_abort") || rest == "builtin_unreachable" {
        true => (SystemFn::AssertFail, NO_RETURN),
        false => (SystemFn::Print, INACTIVE_IO),
    };
    Some(ExternalInfo {
        known: ExternalFn::System(known),
        effects,
        shape: None,
    })
}

/// Functions that return the address of `errno`, by C library.
pub(crate) const ERRNO: &[&str] = &["__errno_location", "__error", "_errno"];

// table
pub(super) const ROWS: &[Row] = &[
    row(
        &[
            "printf",
            "__printf_chk",
            "puts",
            "putchar",
            "putchar_unlocked",
            "vprintf",
            "perror",
        ],
        SystemFn::Print,
        READS_ARGUMENTS,
    ),
    row(
        &[
            "fprintf",
            "__fprintf_chk",
            "vfprintf",
            "__vfprintf_chk",
            "dprintf",
            "vdprintf",
            "__dprintf_chk",
            "__vdprintf_chk",
        ],
        SystemFn::Print,
        READS_ARGUMENTS.writing(&[0]),
    ),
    row(
        &["fputs", "fputs_unlocked", "fputc", "putc", "_IO_putc"],
        SystemFn::Print,
        READS_ARGUMENTS.writing(&[1]),
    ),
    row(
        &["fwrite", "fwrite_unlocked"],
        SystemFn::Print,
        READS_ARGUMENTS.writing(&[3]),
    ),
    row(
        &[
            "write",
            "pwrite",
            "pwrite64",
            "send",
            "sendto",
            "writev",
            "pwritev",
            "pwritev64",
            "sendmsg",
            "mq_send",
            "msgsnd",
        ],
        SystemFn::WriteDescriptor,
        READS_ARGUMENTS.blocking(),
    ),
    row(
        &[
            "snprintf",
            "__snprintf_chk",
            "sprintf",
            "__sprintf_chk",
            "vsnprintf",
            "__vsnprintf_chk",
            "vsprintf",
            "__vsprintf_chk",
        ],
        SystemFn::PrintToMemory,
        FORMATS,
    ),
    row(
        &["fflush", "fopen", "fopen64", "fclose"],
        SystemFn::Stream,
        READS_ARGUMENTS.writing(&[0]).capturing(&[1]).blocking(),
    ),
    row(
        &[
            "fseek", "ftell", "rewind", "feof", "ferror", "fileno", "setvbuf", "setbuf", "unlink",
        ],
        SystemFn::Stream,
        READS_ARGUMENTS.writing(&[0]).capturing(&[1]),
    ),
    row(
        &[
            "fread",
            "fgets",
            "fgetc",
            "getc",
            "getchar",
            "scanf",
            "fscanf",
            "__isoc99_scanf",
            "__isoc99_fscanf",
            "__isoc23_scanf",
            "__isoc23_fscanf",
            "getline",
            "read",
            "pread",
            "pread64",
            "recv",
            "recvfrom",
            "readv",
            "preadv",
            "preadv64",
            "recvmsg",
            "mq_receive",
            "msgrcv",
            "fread_unlocked",
            "fgets_unlocked",
            "fgetc_unlocked",
            "getc_unlocked",
            "getchar_unlocked",
            "_IO_getc",
            "getdelim",
            "__getdelim",
            "vscanf",
            "vfscanf",
            "__isoc99_vscanf",
            "__isoc99_vfscanf",
            "__isoc23_vscanf",
            "__isoc23_vfscanf",
            "__read_chk",
            "__pread_chk",
            "__pread64_chk",
            "__recv_chk",
            "__recvfrom_chk",
            "__fread_chk",
            "__fread_unlocked_chk",
            "__fgets_chk",
            "__fgets_unlocked_chk",
        ],
        SystemFn::Read,
        READING.blocking(),
    ),
    row(
        &[
            "sscanf",
            "__isoc99_sscanf",
            "__isoc23_sscanf",
            "vsscanf",
            "__isoc99_vsscanf",
            "__isoc23_vsscanf",
            "ungetc",
        ],
        SystemFn::Read,
        READING,
    ),
    row(&["mmap", "mmap64", "shmat"], SystemFn::Map, READING),
    row(
        &["fmemopen", "open_memstream", "open_wmemstream"],
        SystemFn::MemoryStream,
        READING.capturing(&[0, 1]),
    ),
    row(
        &[
            "exit",
            "_exit",
            "_Exit",
            "abort",
            "quick_exit",
            "__stack_chk_fail",
            "__chk_fail",
        ],
        SystemFn::Exit,
        NO_RETURN,
    ),
    row(
        &[
            "__assert_fail",
            "__assert_rtn",
            "__assert",
            "__assert_perror_fail",
        ],
        SystemFn::AssertFail,
        NO_RETURN,
    ),
    row(
        &["qsort", "qsort_r"],
        SystemFn::Qsort,
        Effects {
            captures: 0,
            may_block: false,
            ..Effects::UNKNOWN
        },
    ),
    row(
        &["bsearch"],
        SystemFn::Bsearch,
        Effects {
            captures: 0,
            may_block: false,
            ..Effects::UNKNOWN
        },
    ),
    row(
        &[
            "rand",
            "srand",
            "random",
            "srandom",
            "drand48",
            "srand48",
            "lrand48",
            "mrand48",
            "arc4random",
        ],
        SystemFn::Random,
        Effects::PURE.inaccessible().inactive(),
    ),
    row(
        &["rand_r", "erand48", "nrand48"],
        SystemFn::Random,
        Effects::PURE.reading(&[0]).writing(&[0]).inactive(),
    ),
    row(
        &["clock", "time", "ftime", "difftime"],
        SystemFn::Clock,
        INACTIVE_IO.writing(&[0]),
    ),
    row(
        &[
            "gettimeofday",
            "clock_gettime",
            "clock_getres",
            "getrusage",
            "timespec_get",
        ],
        SystemFn::Clock,
        INACTIVE_IO.writing(&[0, 1]),
    ),
    row(
        &["getenv", "secure_getenv", "sysconf", "isatty"],
        SystemFn::Environment,
        INACTIVE_IO.reading(&[0]),
    ),
    row(
        &["sigemptyset", "sigfillset", "sigaddset", "sigdelset"],
        SystemFn::Environment,
        INACTIVE_IO.writing(&[0]),
    ),
    // The handler runs at any time: it is captured, as if unknown code called it.
    row(
        &["sigaction"],
        SystemFn::Environment,
        INACTIVE_IO.reading(&[1]).writing(&[2]).capturing(&[1]),
    ),
    // Each thread has a separate errno: a call must not move to another thread.
    row(
        ERRNO,
        SystemFn::Errno,
        Effects::PURE.inaccessible().inactive(),
    ),
    row(
        &[
            "setjmp",
            "_setjmp",
            "__sigsetjmp",
            "sigsetjmp",
            "llvm.eh.sjlj.setjmp",
        ],
        SystemFn::Setjmp,
        Effects {
            returns_twice: true,
            ..Effects::UNKNOWN
        },
    ),
    row(
        &["longjmp", "_longjmp", "siglongjmp", "llvm.eh.sjlj.longjmp"],
        SystemFn::Longjmp,
        Effects::UNKNOWN,
    ),
    row(
        &["atexit", "__cxa_atexit", "on_exit"],
        SystemFn::AtExit,
        INACTIVE_IO.capturing(&[0, 1]),
    ),
    row(
        &["sleep", "usleep", "nanosleep", "sched_yield"],
        SystemFn::Sleep,
        INACTIVE_IO.reading(&[0]).writing(&[1]).blocking(),
    ),
    row(
        &[
            "getpid",
            "pthread_self",
            "thrd_current",
            "gettid",
            "getppid",
            "__h_errno_location",
        ],
        SystemFn::Identity,
        INACTIVE_IO,
    ),
    row(
        &[
            "__ctype_b_loc",
            "__ctype_tolower_loc",
            "__ctype_toupper_loc",
        ],
        SystemFn::Identity,
        Effects::PURE.inactive(),
    ),
    row(
        &[
            "_FortranAPointerIsAssociatedWith",
            "_FortranAClassIs",
            "_FortranASameTypeAs",
            "_FortranAExtendsTypeOf",
            QUERY_SYMBOL,
        ],
        SystemFn::Query,
        INACTIVE_IO.reading(&[0, 1]),
    ),
    row(
        &[
            "_FortranATrim",
            "_FortranAAdjustl",
            "_FortranAAdjustr",
            "_FortranARepeat",
            "_FortranACharacterConcatenate",
        ],
        SystemFn::Text,
        INACTIVE_IO.reading(&[0, 1, 2, 3]).writing(&[0]),
    ),
];

const READING: Effects = Effects {
    writes: ALL_REACHABLE,
    inactive: false,
    ..READS_ARGUMENTS
};

/// Reads through all arguments but the first, where the text goes.
const FORMATS: Effects = Effects {
    reads: super::MemoryClasses {
        arguments: READS_ARGUMENTS.reads.arguments & !1,
        ..READS_ARGUMENTS.reads
    },
    ..READS_ARGUMENTS.writing(&[0])
};

/// Any reachable memory, errno and inaccessible memory.
const ALL_REACHABLE: super::MemoryClasses = super::MemoryClasses::ALL;

const fn row(names: &'static [&'static str], id: SystemFn, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::System(id),
        effects,
    }
}

/// Recognises C++ streams and strings in the manglings of libstdc++ and libc++, and the reports of
/// sanitizers.
pub(super) fn by_pattern(name: &str) -> Option<super::ExternalInfo> {
    // table
    const STREAMS: &[&str] = &[
        "_ZNSolsE",
        "_ZNSo9_M_insertI",
        "_ZNSo3put",
        "_ZNSo5flush",
        "_ZNSo5write",
        "_ZStlsISt11char_traitsIcEERSt13basic_ostream",
        "_ZStlsIcSt11char_traitsIcE",
        "_ZSt16__ostream_insertI",
        "_ZSt4endlI",
        "_ZSt5flushI",
        "_ZNSt3__113basic_ostreamI",
        "_ZNSt3__14endlI",
    ];
    // table
    const READERS: &[&str] = &[
        "_ZNSi10_M_extractI",
        "_ZNSirsE",
        "_ZNSi4readE",
        "_ZNSi7getlineE",
        "_ZSt7getlineIcSt11char_traitsIcE",
        "_ZStrsIcSt11char_traitsIcE",
        "_ZNSt3__113basic_istreamIcNS_11char_traitsIcEEErsE",
        "_ZNSt3__113basic_istreamIcNS_11char_traitsIcEEE4readE",
    ];
    let known = |id, effects| {
        Some(super::ExternalInfo {
            known: ExternalFn::System(id),
            effects,
            shape: None,
        })
    };
    if READERS.iter().any(|prefix| name.starts_with(prefix)) {
        let effects = Effects {
            may_throw: true,
            ..READING.returning_argument(0)
        };
        return known(SystemFn::Read, effects);
    }
    let found = |effects| known(SystemFn::Print, effects);
    // Writes reach the stream object and the text behind the object.
    let talk = Effects {
        reads: ALL_REACHABLE,
        may_throw: true,
        ..INACTIVE_IO.writing(&[0])
    };
    // table
    const CHECKS: &[&str] = &["__ubsan_handle_", "__asan_", "__sanitizer_"];
    if CHECKS.iter().any(|prefix| name.starts_with(prefix)) {
        return found(Effects {
            reads: ALL_REACHABLE,
            ..INACTIVE_IO
        });
    }
    if STREAMS.iter().any(|prefix| name.starts_with(prefix)) {
        return found(talk.returning_argument(0));
    }
    is_cpp_text_function(name)
        .then(|| found(talk.writing(&[0, 1])))
        .flatten()
}

/// Returns whether a function is a C++ text function: members of `std::string` and of string streams, and
/// conversions of numbers to strings. Such functions are recognised even with a visible body.
pub fn is_cpp_text_function(name: &str) -> bool {
    // table
    const PREFIXES: &[&str] = &[
        "_ZNSt7__cxx1112basic_stringIc",
        "_ZNKSt7__cxx1112basic_stringIc",
        "_ZNSt7__cxx1118basic_stringstreamIc",
        "_ZNSt7__cxx1119basic_ostringstreamIc",
        "_ZNSt7__cxx119to_stringE",
        "_ZStplIcSt11char_traitsIcESaIcEE",
        "_ZNSt3__112basic_stringIc",
        "_ZNKSt3__112basic_stringIc",
        "_ZNSt3__19to_stringE",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
