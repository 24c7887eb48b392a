//! nvcc's options: what becomes of each.
//!
//! Every option that build systems use has a row. Options that only mean something to a GPU's code generator, or to
//! nvcc's own work, change nothing here.

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It changes nothing here.
    Nothing,
    /// The same, with a value.
    NothingOf,
    /// Both halves get it, in this form, with its value behind.
    Common(&'static str),
    /// Both halves get these words.
    CommonFlag(&'static str),
    /// Both halves get this word where the value is the one named.
    CommonWhere(&'static str, &'static str),
    /// The host's half gets this word.
    HostFlag(&'static str),
    /// The linker gets this form with its value behind.
    LinkOf(&'static str),
    /// The linker gets this word.
    LinkFlag(&'static str),
    /// The value's parts go to the host's compiler.
    HostParts,
    /// The value's parts go to the linker.
    LinkParts,
    Output,
    /// The folder of the outputs.
    Folder,
    Level,
    Language,
    /// The GPU that device code is written for.
    Architecture,
    /// How many bits pointers have.
    Bits,
    Object,
    /// An object whose device code others may use.
    SeparateObject,
    /// Whether they may.
    Separate,
    /// What links the device code of objects.
    DeviceLink,
    Archive,
    Preprocess(&'static str),
    DeviceDebug,
    /// The folder of an installed toolkit.
    Toolkit,
    Version,
    /// Where things are is told.
    Verbose,
    /// Options that are not known go to the host's compiler, or to the linker.
    Forward,
    /// Options stand in a file.
    File,
    /// What it asks for cannot be made without a GPU's tools.
    Refused(&'static str),
}

use Fate::{
    Common, CommonFlag, CommonWhere, HostFlag, HostParts, LinkFlag, LinkOf, LinkParts, Nothing,
    NothingOf, Refused,
};

const NO_GPU_CODE: &str = "no code for a GPU is made here";

// table
pub(super) const ROWS: &[(&[&str], Fate)] = &[
    (&["-o", "--output-file"], Fate::Output),
    (&["-odir", "--output-directory"], Fate::Folder),
    (&["-c", "--compile", "-dw", "--device-w"], Fate::Object),
    (&["-dc", "--device-c"], Fate::SeparateObject),
    (&["-rdc", "--relocatable-device-code"], Fate::Separate),
    (&["-dlink", "--device-link"], Fate::DeviceLink),
    (&["-lib", "--lib"], Fate::Archive),
    (&["-E", "--preprocess"], Fate::Preprocess("-E")),
    (&["-M", "--generate-dependencies"], Fate::Preprocess("-M")),
    (
        &["-MM", "--generate-nonsystem-dependencies"],
        Fate::Preprocess("-MM"),
    ),
    (
        &["-MD", "--generate-dependencies-with-compile"],
        HostFlag("-MD"),
    ),
    (
        &["-MMD", "--generate-nonsystem-dependencies-with-compile"],
        HostFlag("-MMD"),
    ),
    (&["-MP", "--generate-dependency-targets"], HostFlag("-MP")),
    (&["-MF", "--dependency-output"], HostFlag("-MF=")),
    (&["-MT", "--dependency-target-name"], HostFlag("-MT=")),
    (&["-MQ"], HostFlag("-MQ=")),
    (&["-I", "--include-path"], Common("-I")),
    (&["-isystem", "--system-include"], Common("-isystem")),
    (&["-idirafter"], Common("-idirafter")),
    (&["--cuda-path"], Fate::Toolkit),
    (&["-include", "--pre-include"], Common("-include")),
    (&["-D", "--define-macro"], Common("-D")),
    (&["-U", "--undefine-macro"], Common("-U")),
    (&["-std", "--std"], Common("-std=")),
    (
        &["-ftemplate-depth", "--ftemplate-depth"],
        Common("-ftemplate-depth="),
    ),
    (
        &["-ftemplate-backtrace-limit", "--ftemplate-backtrace-limit"],
        Common("-ftemplate-backtrace-limit="),
    ),
    (&["-x", "--x"], Fate::Language),
    (&["-O", "--optimize"], Fate::Level),
    (&["-g", "--debug"], CommonFlag("-g")),
    (&["-G", "--device-debug"], Fate::DeviceDebug),
    (&["-w", "--disable-warnings"], CommonFlag("-w")),
    (&["-pg", "--profile"], HostFlag("-pg")),
    (&["-fopenmp"], HostFlag("-fopenmp")),
    (&["-pthread"], HostFlag("-pthread")),
    (&["-fPIC"], HostFlag("-fPIC")),
    (&["-fpermissive"], CommonFlag("-fpermissive")),
    (&["-ansi"], HostFlag("-ansi")),
    (&["-noeh", "--no-exceptions"], HostFlag("-fno-exceptions")),
    (&["-L", "--library-path"], LinkOf("-L")),
    (&["-l", "--library"], LinkOf("-l")),
    (&["-shared", "--shared"], LinkFlag("-shared")),
    (&["-static"], LinkFlag("-static")),
    (&["-rdynamic"], LinkFlag("-rdynamic")),
    (&["-Xcompiler", "--compiler-options"], HostParts),
    (&["-Xlinker", "--linker-options"], LinkParts),
    (
        &["-use_fast_math", "--use_fast_math"],
        CommonFlag("-D__USE_FAST_MATH__=1"),
    ),
    // A product and a sum become one operation unless this says otherwise.
    (
        &["-fmad", "--fmad"],
        CommonWhere("false", "-ffp-contract=off"),
    ),
    // Streams wait for each other the same way under both; sources may ask which it is.
    (
        &["-default-stream", "--default-stream"],
        CommonWhere("per-thread", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"),
    ),
    (&["-optf", "--options-file"], Fate::File),
    (&["--version", "-V"], Fate::Version),
    (&["-v", "--verbose"], Fate::Verbose),
    (
        &[
            "-forward-unknown-to-host-compiler",
            "-forward-unknown-to-host-linker",
            "-forward-unknown-opts",
        ],
        Fate::Forward,
    ),
    (&["-m", "--machine"], Fate::Bits),
    (
        &[
            "-arch",
            "--gpu-architecture",
            "-code",
            "--gpu-code",
            "-gencode",
            "--generate-code",
            "--gpu-name",
            "--cuda-gpu-arch",
            "--offload-arch",
        ],
        Fate::Architecture,
    ),
    // About a GPU's code.
    (
        &[
            "-m64",
            "-lineinfo",
            "--generate-line-info",
            "-src-in-ptx",
            "--source-in-ptx",
            "-extra-device-vectorization",
            "-restrict",
            "-dlto",
            "--dlink-time-opt",
            "-lto",
            "-gen-opt-lto",
            "-res-usage",
            "--resource-usage",
            "-ewp",
            "-cuda",
            "-deviceemu",
            "-Wno-deprecated-gpu-targets",
            "-Wmissing-launch-bounds",
        ],
        Nothing,
    ),
    (
        &[
            "-Xptxas",
            "--ptxas-options",
            "-Xnvlink",
            "--nvlink-options",
            "-Xcicc",
            "-Xfatbin",
            "-maxrregcount",
            "-ftz",
            "-prec-div",
            "-prec-sqrt",
            "-e",
            "--entries",
            "-dopt",
            "-Ofc",
            "--Ofast-compile",
            "-opt-info",
            "--optimization-info",
            "-compress-mode",
            "-jump-table-density",
        ],
        NothingOf,
    ),
    // What is so here in any case.
    (
        &[
            "-expt-relaxed-constexpr",
            "-expt-extended-lambda",
            "-extended-lambda",
            "-noprof",
            "-nohdinitlist",
            "-allow-unsupported-compiler",
            "-link",
        ],
        Nothing,
    ),
    // About nvcc's own work, its files and its words.
    (
        &[
            "-keep",
            "-save-temps",
            "-clean",
            "--clean-targets",
            "-objtemp",
            "--objdir-as-tempdir",
            "-Wreorder",
            "-Wdefault-stream-launch",
            "-Wext-lambda-captures-this",
            "-err-no",
            "--display-error-number",
            "-no-err-no",
            "--no-display-error-number",
            "-brief-diagnostics",
            "-use-local-env",
        ],
        Nothing,
    ),
    (
        &[
            "-keep-dir",
            "-time",
            "-t",
            "--threads",
            "-split-compile",
            "-fdevice-time-trace",
            "-Xcudafe",
            "-Xarchive",
            "--archive-options",
            "-ccbin",
            "--compiler-bindir",
            "-arbin",
            "--archiver-binary",
            "-cudart",
            "-cudadevrt",
            "-ldir",
            "--libdevice-directory",
            "-target-dir",
            "--target-directory",
            "-diag-suppress",
            "-diag-error",
            "-diag-warn",
            "-Werror",
            "-static-global-template-stub",
        ],
        NothingOf,
    ),
    (
        &["-ptx", "-cubin", "-fatbin", "-optix-ir", "-ltoir"],
        Refused(NO_GPU_CODE),
    ),
    (
        &["-dryrun", "-run", "--run"],
        Refused("run the commands by hand"),
    ),
];

/// Options in whose place a value may follow directly.
const JOINED: &[&str] = &["-I", "-D", "-U", "-L", "-l", "-O", "-isystem"];
/// The same, where the value is a number.
const COUNTED: &[&str] = &["-t", "-m"];

/// The row of an option, its name as the row has it, and the value that stands in the same word.
pub(super) fn find(word: &str) -> Option<(&'static str, Fate, Option<String>)> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_string())),
        None => (word, None),
    };
    if let Some((name, fate)) = row(word) {
        return Some((name, fate, None));
    }
    if let Some((name, fate)) = row(name).filter(|(_, fate)| takes_value(*fate)) {
        return Some((name, fate, value));
    }
    let number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let counted = |start: &&&str| word.strip_prefix(**start).is_some_and(number);
    let joined = COUNTED.iter().find(counted);
    let joined = joined.or_else(|| JOINED.iter().find(|start| word.starts_with(**start)))?;
    let (name, fate) = row(joined)?;
    Some((name, fate, Some(word[joined.len()..].to_string())))
}

/// The row of a name. Names of several letters are taken with one dash and with two, as by nvcc.
fn row(name: &str) -> Option<(&'static str, Fate)> {
    let bare = name.trim_start_matches('-');
    let is = |known: &&str| {
        let several = bare.len() > 1 && !bare.contains('=');
        *known == name || several && name.starts_with('-') && known.trim_start_matches('-') == bare
    };
    let exact = |(names, fate): &(&[&'static str], Fate)| {
        let found = names.iter().find(|known| **known == name)?;
        Some((*found, *fate))
    };
    let near = |(names, fate): &(&[&'static str], Fate)| {
        let found = names.iter().find(|known| is(known))?;
        Some((*found, *fate))
    };
    ROWS.iter()
        .find_map(exact)
        .or_else(|| ROWS.iter().find_map(near))
}

pub(super) fn takes_value(fate: Fate) -> bool {
    match fate {
        NothingOf | Common(_) | CommonWhere(..) | LinkOf(_) | HostParts | LinkParts => true,
        Fate::Output | Fate::Folder | Fate::Level | Fate::Language | Fate::File => true,
        Fate::Architecture | Fate::Separate | Fate::Toolkit | Fate::Bits => true,
        HostFlag(word) => word.ends_with('='),
        _ => false,
    }
}
