//! The table of nvcc's options, with the treatment of each.
//!
//! Every option used by build systems has a row. Options for a GPU's code generator only, or for nvcc's own
//! stages, are ignored.

/// The treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Ignored.
    Nothing,
    /// Ignored, with a value.
    NothingOf,
    /// Passed to both halves in this form, followed by the value.
    Common(&'static str),
    /// Adds these words to both halves.
    CommonFlag(&'static str),
    /// Adds this word to both halves if the value equals the named value.
    CommonWhere(&'static str, &'static str),
    /// Adds this word to the host half.
    HostFlag(&'static str),
    /// Passed to the linker in this form, followed by the value.
    LinkOf(&'static str),
    /// Adds this word to the link.
    LinkFlag(&'static str),
    /// Forwards the value's parts to the host compiler.
    HostParts,
    /// Forwards the value's parts to the linker.
    LinkParts,
    Output,
    /// The folder of the outputs.
    Folder,
    Level,
    Language,
    /// The target GPU of device code.
    Architecture,
    /// The number of bits of pointers.
    Bits,
    Object,
    /// Emits an object whose device code may be used by other objects.
    SeparateObject,
    /// Selects whether device code may be used by other objects.
    Separate,
    /// Links the device code of objects.
    DeviceLink,
    Archive,
    Preprocess(&'static str),
    DeviceDebug,
    /// The folder of an installed toolkit.
    Toolkit,
    Version,
    /// Prints paths.
    Verbose,
    /// Forwards unknown options to the host compiler, or to the linker.
    Forward,
    /// Reads options from a file.
    File,
    /// Requests output that requires a GPU's tools.
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
    // A product and a sum are contracted by default.
    (
        &["-fmad", "--fmad"],
        CommonWhere("false", "-ffp-contract=off"),
    ),
    // Streams synchronise equally under both; sources may query the mode.
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
    // GPU code generation.
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
    // Always on here.
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
    // nvcc's own stages, files and diagnostics.
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

/// Options whose value may follow without a separator.
const JOINED: &[&str] = &["-I", "-D", "-U", "-L", "-l", "-O", "-isystem"];
/// Options whose numeric value may follow without a separator.
const COUNTED: &[&str] = &["-t", "-m"];

/// Returns the row of an option, the option's name in the row, and the value in the same word.
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

/// Returns the row of a name. Names of several letters are accepted with one dash and with two, like in
/// nvcc.
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
