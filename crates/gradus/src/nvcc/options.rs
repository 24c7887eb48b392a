//! nvcc's command line, read into what clang and the passes are told.
//!
//! Every option of nvcc that build systems use has a row in [`ROWS`], with what becomes of it. Options
//! that only mean something to a GPU's code generator change nothing. One that has no row is an error
//! with the nearest row's name.

use gradus_ir::{Code, Diagnostic};
use std::collections::VecDeque;
use std::path::Path;

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Invocation {
    /// The files, in order.
    pub files: Vec<Source>,
    /// Where the result goes.
    pub output: Option<String>,
    /// How far to go.
    pub stop: Stop,
    /// What both halves of a source are told: search paths, macros, the language's version.
    pub common: Vec<String>,
    /// What the host's half is told beside that.
    pub host: Vec<String>,
    /// What the linker is told beside the files.
    pub link: Vec<String>,
    /// The level of optimisation, as the user wrote it.
    pub level: Option<String>,
    /// The highest architecture that was named (80 for `sm_80`), which device code asks for.
    pub architecture: u32,
    /// Whether device code of one source may use that of others.
    pub separate: bool,
    /// Whether device code is for a debugger.
    pub device_debug: bool,
    /// Whether commands are shown.
    pub version: bool,
}

/// How far a run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stop {
    /// To a program or shared library.
    #[default]
    Link,
    /// To objects.
    Object,
    /// To preprocessed text, or a list of dependences.
    Preprocess,
}

/// A file on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// Its path.
    pub path: String,
    /// Whether it holds device code.
    pub cuda: bool,
    /// The folder of the file that it is a copy of.
    pub folder: Option<String>,
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It changes nothing here.
    Nothing,
    /// The same, with a value.
    NothingOf,
    /// Both halves get it, in this form, with its value behind.
    Common(&'static str),
    /// Both halves get these words.
    CommonFlag(&'static str),
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
    Level,
    Language,
    /// The GPU that device code is written for.
    Architecture,
    Object,
    /// An object whose device code others may use.
    SeparateObject,
    /// Whether they may.
    Separate,
    Preprocess(&'static str),
    DeviceDebug,
    /// The folder of an installed toolkit.
    Toolkit,
    Version,
    /// Options stand in a file.
    File,
    /// What it asks for cannot be made without a GPU's tools.
    Refused(&'static str),
}

use Fate::{
    Common, CommonFlag, HostFlag, HostParts, LinkFlag, LinkOf, LinkParts, Nothing, NothingOf,
    Refused,
};

const NO_GPU_CODE: &str = "no code for a GPU is made here";

// table
const ROWS: &[(&[&str], Fate)] = &[
    (&["-o", "--output-file"], Fate::Output),
    (&["-c", "--compile", "-dw", "--device-w"], Fate::Object),
    (&["-dc", "--device-c"], Fate::SeparateObject),
    (&["-rdc", "--relocatable-device-code"], Fate::Separate),
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
    (&["-MF", "--dependency-output"], Fate::HostFlag("-MF=")),
    (&["-MT", "--dependency-target-name"], Fate::HostFlag("-MT=")),
    (&["-MQ"], Fate::HostFlag("-MQ=")),
    (&["-I", "--include-path"], Common("-I")),
    (&["-isystem", "--system-include"], Common("-isystem")),
    (&["-idirafter"], Common("-idirafter")),
    (&["--cuda-path"], Fate::Toolkit),
    (&["-include", "--pre-include"], Common("-include")),
    (&["-D", "--define-macro"], Common("-D")),
    (&["-U", "--undefine-macro"], Common("-U")),
    (&["-std", "--std"], Common("-std=")),
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
    (&["-optf", "--options-file"], Fate::File),
    (&["--version", "-V"], Fate::Version),
    (
        &[
            "-m64",
            "-lineinfo",
            "--generate-line-info",
            "-src-in-ptx",
            "--source-in-ptx",
        ],
        Nothing,
    ),
    (
        &["--expt-relaxed-constexpr", "-expt-relaxed-constexpr"],
        Nothing,
    ),
    (
        &["--expt-extended-lambda", "-expt-extended-lambda"],
        Nothing,
    ),
    (&["--extended-lambda", "-extended-lambda"], Nothing),
    (
        &[
            "-extra-device-vectorization",
            "--extra-device-vectorization",
        ],
        Nothing,
    ),
    (
        &[
            "-restrict",
            "--restrict",
            "-deviceemu",
            "-keep",
            "--keep",
            "-save-temps",
            "--save-temps",
        ],
        Nothing,
    ),
    (
        &[
            "-v",
            "--verbose",
            "-dlto",
            "--dlink-time-opt",
            "-link",
            "--link",
            "-res-usage",
            "--resource-usage",
        ],
        Nothing,
    ),
    (
        &[
            "-Wno-deprecated-gpu-targets",
            "-Wreorder",
            "-clean",
            "--clean-targets",
            "-cuda",
        ],
        Nothing,
    ),
    (
        &[
            "-forward-unknown-to-host-compiler",
            "--forward-unknown-to-host-compiler",
        ],
        Nothing,
    ),
    (
        &[
            "-noprof",
            "-nohdinitlist",
            "-ewp",
            "-allow-unsupported-compiler",
            "--allow-unsupported-compiler",
        ],
        Nothing,
    ),
    (
        &[
            "-time",
            "--time",
            "-t",
            "--threads",
            "-split-compile",
            "--split-compile",
        ],
        NothingOf,
    ),
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
    (&["-m", "--machine"], NothingOf),
    (
        &[
            "-Xptxas",
            "--ptxas-options",
            "-Xnvlink",
            "--nvlink-options",
            "-Xcudafe",
            "-Xfatbin",
        ],
        NothingOf,
    ),
    (
        &[
            "-Xarchive",
            "--archive-options",
            "-maxrregcount",
            "--maxrregcount",
        ],
        NothingOf,
    ),
    (
        &[
            "-ccbin",
            "--compiler-bindir",
            "-cudart",
            "--cudart",
            "-cudadevrt",
            "--cudadevrt",
        ],
        NothingOf,
    ),
    (
        &[
            "-default-stream",
            "--default-stream",
            "-keep-dir",
            "--keep-dir",
            "-objtemp",
        ],
        NothingOf,
    ),
    (
        &[
            "-ftz",
            "--ftz",
            "-prec-div",
            "--prec-div",
            "-prec-sqrt",
            "--prec-sqrt",
            "-fmad",
            "--fmad",
        ],
        NothingOf,
    ),
    (&["-e", "--entries"], NothingOf),
    (
        &[
            "-diag-suppress",
            "--diag-suppress",
            "-diag-error",
            "--diag-error",
            "-diag-warn",
            "--diag-warn",
        ],
        NothingOf,
    ),
    (
        &[
            "-Werror",
            "--Werror",
            "-opt-info",
            "--optimization-info",
            "-target-dir",
            "--target-directory",
        ],
        NothingOf,
    ),
    (
        &[
            "-ptx",
            "--ptx",
            "-cubin",
            "--cubin",
            "-fatbin",
            "--fatbin",
            "-optix-ir",
        ],
        Refused(NO_GPU_CODE),
    ),
    (
        &["-lib", "--lib"],
        Refused("make the archive with `ar` from objects of `-c`"),
    ),
    (
        &["-dryrun", "--dryrun", "-run", "--run"],
        Refused("run the commands by hand"),
    ),
];

/// Options in whose place a value may follow directly.
const JOINED: &[&str] = &["-I", "-D", "-U", "-L", "-l", "-O", "-isystem"];

/// Reads a command line.
///
/// # Errors
/// `BadOption`.
pub(super) fn read(args: &[String]) -> Result<Invocation, Diagnostic> {
    let mut reader = Reader {
        words: args.iter().cloned().collect(),
        found: Invocation::default(),
        language: None,
    };
    while let Some(word) = reader.words.pop_front() {
        reader.word(&word)?;
    }
    Ok(reader.found)
}

struct Reader {
    words: VecDeque<String>,
    found: Invocation,
    /// The language that `-x` states.
    language: Option<bool>,
}

impl Reader {
    fn word(&mut self, word: &str) -> Result<(), Diagnostic> {
        if !word.starts_with('-') || word == "-" {
            self.file(word);
            return Ok(());
        }
        let Some((name, fate, value)) = find(word) else {
            return self.host_option(word);
        };
        let value = match (takes_value(fate), value) {
            (true, Some(value)) => value,
            (true, None) => {
                let next = self.words.pop_front();
                next.ok_or_else(|| wrong(format!("`{name}` has no value")))?
            }
            (false, _) => String::new(),
        };
        self.apply(name, fate, &value)
    }

    /// Options of warnings and code generation that GCC and clang share may stand for themselves.
    fn host_option(&mut self, word: &str) -> Result<(), Diagnostic> {
        if ["-W", "-f", "-march=", "-mtune="]
            .iter()
            .any(|start| word.starts_with(start))
        {
            self.found.host.push(word.to_string());
            return Ok(());
        }
        Err(unknown(word))
    }

    fn file(&mut self, path: &str) {
        let extension = Path::new(path).extension().and_then(|e| e.to_str());
        let linked =
            matches!(extension, Some("o" | "a" | "so" | "obj" | "lib")) || path.contains(".so.");
        let cuda = !linked && self.language.unwrap_or(extension == Some("cu"));
        self.found.files.push(Source {
            path: path.to_string(),
            cuda,
            folder: None,
        });
    }

    fn apply(&mut self, name: &str, fate: Fate, value: &str) -> Result<(), Diagnostic> {
        let found = &mut self.found;
        match fate {
            Nothing | NothingOf => {}
            Common("-std=") => found.common.push(format!("-std={}", gnu(value))),
            Common(form) => {
                // A macro's value may hold commas, a list of folders does between them.
                let parts = match form {
                    "-D" => vec![value],
                    _ => value.split(',').collect(),
                };
                for part in parts {
                    found.common.extend([form.to_string(), part.to_string()]);
                }
            }
            CommonFlag(word) => found.common.push(word.into()),
            HostFlag(word) => match word.strip_suffix('=') {
                Some(option) => found.host.extend([option.to_string(), value.to_string()]),
                None => found.host.push(word.into()),
            },
            LinkOf(form) => found.link.push(format!("{form}{value}")),
            LinkFlag(word) => found.link.push(word.into()),
            HostParts => found.host.extend(parts(value)),
            LinkParts => found
                .link
                .extend(parts(value).map(|part| format!("-Wl,{part}"))),
            Fate::Output => found.output = Some(value.to_string()),
            Fate::Level => found.level = Some(format!("-O{value}")),
            Fate::Language => self.language = language(value)?,
            Fate::Architecture => {
                found.architecture = architecture(value).max(found.architecture);
            }
            Fate::Object => found.stop = Stop::Object,
            Fate::SeparateObject => {
                found.stop = Stop::Object;
                found.separate = true;
            }
            Fate::Separate => found.separate = value == "true",
            Fate::Preprocess(word) => {
                found.stop = Stop::Preprocess;
                found.host.push(word.into());
            }
            Fate::DeviceDebug => {
                found.device_debug = true;
                found.common.push("-g".into());
            }
            Fate::Toolkit => {
                let headers = Path::new(value).join("include");
                if !headers.is_dir() {
                    let message = format!("there are no headers of a CUDA toolkit in `{value}`");
                    let help = "name the folder in which the toolkit's `include` stands";
                    return Err(wrong(message).help(help));
                }
                // Ours come first: they are made for this machine.
                let headers = headers.display().to_string();
                found.common.extend(["-idirafter".to_string(), headers]);
            }
            Fate::Version => found.version = true,
            Fate::File => self.options_file(value)?,
            Refused(why) => {
                return Err(wrong(format!("`{name}` is not supported")).help(why));
            }
        }
        Ok(())
    }

    fn options_file(&mut self, path: &str) -> Result<(), Diagnostic> {
        let bytes = crate::files::read(Path::new(path))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for word in text.split_whitespace().rev() {
            self.words.push_front(word.trim_matches('"').to_string());
        }
        Ok(())
    }
}

/// The row of an option, its name as the row has it, and the value that stands in the same word.
fn find(word: &str) -> Option<(&'static str, Fate, Option<String>)> {
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
    let joined = JOINED.iter().find(|start| word.starts_with(**start))?;
    let (name, fate) = row(joined)?;
    Some((name, fate, Some(word[joined.len()..].to_string())))
}

fn row(name: &str) -> Option<(&'static str, Fate)> {
    ROWS.iter().find_map(|(names, fate)| {
        let found = names.iter().find(|known| **known == name)?;
        Some((*found, *fate))
    })
}

fn takes_value(fate: Fate) -> bool {
    match fate {
        NothingOf | Common(_) | LinkOf(_) | HostParts | LinkParts => true,
        Fate::Output | Fate::Level | Fate::Language | Fate::File => true,
        Fate::Architecture | Fate::Separate | Fate::Toolkit => true,
        HostFlag(word) => word.ends_with('='),
        _ => false,
    }
}

/// The parts of a value that lists options: between commas or spaces.
fn parts(value: &str) -> impl Iterator<Item = String> + '_ {
    let value = value.trim_matches(['"', '\'']);
    let parts = value.split([',', ' ']).filter(|part| !part.is_empty());
    parts.map(String::from)
}

/// A version of the language with GNU's extensions, which system headers and old programs use.
fn gnu(version: &str) -> String {
    match version.strip_prefix("c++") {
        Some(year) => format!("gnu++{year}"),
        None => version.to_string(),
    }
}

/// The highest number behind `sm_` or `compute_` in a value; none where it names no number (`native`).
fn architecture(value: &str) -> u32 {
    let words = value.split([',', '=', '[', ']', '"', ' ']);
    let numbers = words.filter_map(|word| {
        let number = word
            .strip_prefix("sm_")
            .or_else(|| word.strip_prefix("compute_"))?;
        let end = number.find(|c: char| !c.is_ascii_digit());
        number[..end.unwrap_or(number.len())].parse().ok()
    });
    numbers.max().unwrap_or(0)
}

fn language(name: &str) -> Result<Option<bool>, Diagnostic> {
    match name {
        "cu" | "cuda" => Ok(Some(true)),
        "c" | "c++" => Ok(Some(false)),
        "none" => Ok(None),
        _ => Err(wrong(format!("`-x {name}` is not supported")).help("cu, c++, c and none are")),
    }
}

fn unknown(word: &str) -> Diagnostic {
    let name = word.split('=').next().unwrap_or(word);
    let names = ROWS.iter().flat_map(|(names, _)| names.iter());
    let near = names.min_by_key(|known| distance(known, name));
    let near = near.filter(|known| distance(known, name) <= name.len() / 3 + 1);
    let finding = wrong(format!("there is no option `{word}`"));
    match near {
        Some(known) => finding.help(format!("did you mean `{known}`?")),
        None => finding.help("options of the host's compiler go behind `-Xcompiler`"),
    }
}

fn wrong(message: String) -> Diagnostic {
    Diagnostic::error(Code::BadOption, message)
}

/// How many letters must change, come or go to make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut left_above = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = left_above + usize::from(x != y);
            left_above = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(left_above + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Invocation, Diagnostic> {
        read(&text.split(' ').map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn lines_of_build_files_are_read() {
        let found = line("-O3 -arch=sm_60 a.cu b.cpp k.o -I inc -DX=1,2 -Xcompiler -Wall,-fPIC -lcudart -o out -gencode arch=compute_70,code=sm_70 -std=c++11 --use_fast_math").expect("read");
        let paths: Vec<(&str, bool)> = found.files.iter().map(|f| (&*f.path, f.cuda)).collect();
        assert_eq!(paths, [("a.cu", true), ("b.cpp", false), ("k.o", false)]);
        assert_eq!(found.output.as_deref(), Some("out"));
        assert_eq!(found.level.as_deref(), Some("-O3"));
        assert_eq!(
            found.common,
            [
                "-I",
                "inc",
                "-D",
                "X=1,2",
                "-std=gnu++11",
                "-D__USE_FAST_MATH__=1"
            ]
        );
        assert_eq!(found.host, ["-Wall", "-fPIC"]);
        assert_eq!(found.link, ["-lcudart"]);
        assert_eq!(found.stop, Stop::Link);
        assert_eq!(found.architecture, 70);
    }

    #[test]
    fn the_highest_architecture_counts() {
        for (words, highest) in [
            (
                "--generate-code=arch=compute_80,code=[compute_80,sm_80]",
                80,
            ),
            ("-gencode arch=compute_90a,code=sm_90a -arch sm_60", 90),
            ("-arch=native", 0),
            ("a.cu", 0),
        ] {
            assert_eq!(line(words).expect("read").architecture, highest, "{words}");
        }
    }

    #[test]
    fn a_language_holds_for_what_follows() {
        let found = line("a.cpp -x cu b.cpp -c -dc").expect("read");
        assert_eq!(
            found.files.iter().map(|f| f.cuda).collect::<Vec<_>>(),
            [false, true]
        );
        assert_eq!(found.stop, Stop::Object);
    }

    #[test]
    fn what_is_not_known_has_a_near_match() {
        for (word, near) in [
            ("--lineinfo", "-lineinfo"),
            ("-maxregcount=32", "-maxrregcount"),
            ("--use_fast_maths", "--use_fast_math"),
        ] {
            let finding = line(word).expect_err(word);
            assert_eq!(finding.code, Code::BadOption);
            assert!(finding.help.expect("a help").contains(near), "{word}");
        }
        assert!(line("-ptx").is_err() && line("-o").is_err());
    }
}
