//! The table of nvcc's options, with the treatment of each.
//!
//! Every option used by build systems has a row. Options for a GPU's code generator only, or for nvcc's own
//! stages, are ignored.

/// The treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionTreatment {
    /// Ignored.
    Ignored,
    /// Ignored, with a value.
    IgnoredWithValue,
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

use OptionTreatment::{
    Common, CommonFlag, CommonWhere, HostFlag, HostParts, Ignored, IgnoredWithValue, LinkFlag,
    LinkOf, LinkParts, Refused,
};

const NO_GPU_CODE: &str = "remove the option: `gradus nvcc` emits no GPU code";

// table
pub(super) const OPTIONS: &[(&[&str], OptionTreatment)] = &[
    (&["-o", "--output-file"], OptionTreatment::Output),
    (&["-odir", "--output-directory"], OptionTreatment::Folder),
    (
        &["-c", "--compile", "-dw", "--device-w"],
        OptionTreatment::Object,
    ),
    (&["-dc", "--device-c"], OptionTreatment::SeparateObject),
    (
        &["-rdc", "--relocatable-device-code"],
        OptionTreatment::Separate,
    ),
    (&["-dlink", "--device-link"], OptionTreatment::DeviceLink),
    (&["-lib", "--lib"], OptionTreatment::Archive),
    (&["-E", "--preprocess"], OptionTreatment::Preprocess("-E")),
    (
        &["-M", "--generate-dependencies"],
        OptionTreatment::Preprocess("-M"),
    ),
    (
        &["-MM", "--generate-nonsystem-dependencies"],
        OptionTreatment::Preprocess("-MM"),
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
    (&["--cuda-path"], OptionTreatment::Toolkit),
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
    (&["-x", "--x"], OptionTreatment::Language),
    (&["-O", "--optimize"], OptionTreatment::Level),
    (&["-g", "--debug"], CommonFlag("-g")),
    (&["-G", "--device-debug"], OptionTreatment::DeviceDebug),
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
    (&["-optf", "--options-file"], OptionTreatment::File),
    (&["--version", "-V"], OptionTreatment::Version),
    (&["-v", "--verbose"], OptionTreatment::Verbose),
    (
        &[
            "-forward-unknown-to-host-compiler",
            "-forward-unknown-to-host-linker",
            "-forward-unknown-opts",
        ],
        OptionTreatment::Forward,
    ),
    (&["-m", "--machine"], OptionTreatment::Bits),
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
        OptionTreatment::Architecture,
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
        Ignored,
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
        IgnoredWithValue,
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
        Ignored,
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
        Ignored,
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
        IgnoredWithValue,
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
const JOINED_VALUE: &[&str] = &["-I", "-D", "-U", "-L", "-l", "-O", "-isystem"];
/// Options whose numeric value may follow without a separator.
const JOINED_NUMBER: &[&str] = &["-t", "-m"];

/// Returns the row of an option, the option's name in the row, and the value in the same word.
pub(super) fn find(word: &str) -> Option<(&'static str, OptionTreatment, Option<String>)> {
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
    let joined = JOINED_NUMBER.iter().find(counted);
    let joined = joined.or_else(|| JOINED_VALUE.iter().find(|start| word.starts_with(**start)))?;
    let (name, fate) = row(joined)?;
    Some((name, fate, Some(word[joined.len()..].to_string())))
}

/// Returns the row of a name. Names of several letters are accepted with one dash and with two, like in
/// nvcc.
fn row(name: &str) -> Option<(&'static str, OptionTreatment)> {
    let bare = name.trim_start_matches('-');
    let is = |known: &&str| {
        let several = bare.len() > 1 && !bare.contains('=');
        *known == name || several && name.starts_with('-') && known.trim_start_matches('-') == bare
    };
    let exact = |(names, fate): &(&[&'static str], OptionTreatment)| {
        let found = names.iter().find(|known| **known == name)?;
        Some((*found, *fate))
    };
    let near = |(names, fate): &(&[&'static str], OptionTreatment)| {
        let found = names.iter().find(|known| is(known))?;
        Some((*found, *fate))
    };
    OPTIONS
        .iter()
        .find_map(exact)
        .or_else(|| OPTIONS.iter().find_map(near))
}

pub(super) fn takes_value(fate: OptionTreatment) -> bool {
    match fate {
        IgnoredWithValue | Common(_) | CommonWhere(..) | LinkOf(_) | HostParts | LinkParts => true,
        OptionTreatment::Output
        | OptionTreatment::Folder
        | OptionTreatment::Level
        | OptionTreatment::Language
        | OptionTreatment::File => true,
        OptionTreatment::Architecture
        | OptionTreatment::Separate
        | OptionTreatment::Toolkit
        | OptionTreatment::Bits => true,
        HostFlag(word) => word.ends_with('='),
        _ => false,
    }
}
