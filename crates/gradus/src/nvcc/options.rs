//! Parses nvcc's command line into arguments for clang and the passes.
//!
//! The table [`OPTIONS`] gives the treatment of each option. An option without a row is an error that suggests
//! the nearest row's name, unless unknown options are forwarded to the host compiler.

use crate::nvcc::option_table::{OPTIONS, OptionTreatment, find, takes_value};
use gradus_ir::{Code, Diagnostic};
use std::collections::VecDeque;
use std::path::Path;

use OptionTreatment::{
    Common, CommonFlag, CommonWhere, HostFlag, HostParts, Ignored, IgnoredWithValue, LinkFlag,
    LinkOf, LinkParts, Refused,
};

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Invocation {
    /// The files, in order.
    pub files: Vec<Source>,
    /// The output path.
    pub output: Option<String>,
    /// The last stage of the run.
    pub stop: LastStage,
    /// Options for both halves of a source: search paths, macros, language version.
    pub common: Vec<String>,
    /// Further options for the host half.
    pub host: Vec<String>,
    /// Options for the linker besides the files.
    pub link: Vec<String>,
    /// The optimisation level, as written by the user.
    pub level: Option<String>,
    /// The highest architecture named (80 for `sm_80`), queried by device code.
    pub architecture: u32,
    /// True if device code of a source may use that of other sources.
    pub separate: bool,
    /// True if device code is compiled for a debugger.
    pub device_debug: bool,
    /// True if the version is requested.
    pub version: bool,
    /// True if paths are to be printed.
    pub verbose: bool,
    /// The folder of the outputs.
    pub folder: Option<String>,
}

/// The last stage of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LastStage {
    /// Emits a program or shared library.
    #[default]
    Link,
    /// Emits objects.
    Object,
    /// Emits the device-link object.
    DeviceLink,
    /// Emits an archive of objects.
    Archive,
    /// Emits preprocessed text, or a list of dependences.
    Preprocess,
}

/// A file on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The path.
    pub path: String,
    /// True for a source with device code.
    pub cuda: bool,
    /// True for an object or a library.
    pub linked: bool,
}

/// Parses a command line.
///
/// # Errors
/// `BadOption`.
pub(super) fn read(args: &[String]) -> Result<Invocation, Diagnostic> {
    let mut reader = Reader {
        words: args.iter().cloned().collect(),
        found: Invocation::default(),
        language: None,
        forward: false,
        unknown: Vec::new(),
    };
    while let Some(word) = reader.words.pop_front() {
        reader.word(&word)?;
    }
    match reader.unknown.first().filter(|_| !reader.forward) {
        Some(word) => Err(unknown(word)),
        None => Ok(reader.found),
    }
}

struct Reader {
    words: VecDeque<String>,
    found: Invocation,
    /// The language stated by `-x`.
    language: Option<bool>,
    /// True if unknown options are forwarded to the host compiler, including options before the switch.
    forward: bool,
    unknown: Vec<String>,
}

impl Reader {
    fn word(&mut self, word: &str) -> Result<(), Diagnostic> {
        if let Some(path) = word.strip_prefix('@') {
            return self.options_file(path);
        }
        if !word.starts_with('-') || word == "-" {
            self.file(word);
            return Ok(());
        }
        let Some((name, fate, value)) = find(word) else {
            self.host_option(word);
            return Ok(());
        };
        let value = match (takes_value(fate), value) {
            (true, Some(value)) => value,
            (true, None) => {
                let next = self.words.pop_front();
                next.ok_or_else(|| wrong(format!("`{name}` requires a value")))?
            }
            (false, _) => String::new(),
        };
        self.apply(name, fate, &value)
    }

    /// Forwards options of warnings and code generation shared by GCC and clang.
    fn host_option(&mut self, word: &str) {
        let starts = ["-W", "-f", "-march=", "-mtune="];
        if !starts.iter().any(|start| word.starts_with(start)) {
            self.unknown.push(word.to_string());
        }
        self.found.host.push(word.to_string());
    }

    fn file(&mut self, path: &str) {
        let extension = Path::new(path).extension().and_then(|e| e.to_str());
        let linked =
            matches!(extension, Some("o" | "a" | "so" | "obj" | "lib")) || path.contains(".so.");
        let cuda = !linked && self.language.unwrap_or(extension == Some("cu"));
        self.found.files.push(Source {
            path: path.to_string(),
            cuda,
            linked,
        });
    }

    fn apply(&mut self, name: &str, fate: OptionTreatment, value: &str) -> Result<(), Diagnostic> {
        let found = &mut self.found;
        match fate {
            Ignored | IgnoredWithValue => {}
            Common(form) if form.ends_with('=') => {
                found.common.push(format!("{form}{}", gnu(value)));
            }
            Common(form) => {
                // A macro's value may hold commas; in a list of folders, commas separate.
                let parts = match form {
                    "-D" => vec![value],
                    _ => value.split(',').collect(),
                };
                for part in parts {
                    found.common.extend([form.to_string(), part.to_string()]);
                }
            }
            CommonFlag(word) => found.common.push(word.into()),
            CommonWhere(named, word) => {
                found
                    .common
                    .extend((value == named).then(|| word.to_string()));
            }
            HostFlag(word) => match word.strip_suffix('=') {
                Some(option) => found.host.extend([option.to_string(), value.to_string()]),
                None => found.host.push(word.into()),
            },
            LinkOf(form) => found.link.push(format!("{form}{value}")),
            LinkFlag(word) => found.link.push(word.into()),
            HostParts => found.host.extend(option_parts(value)),
            LinkParts => {
                let parts = option_parts(value).into_iter();
                found.link.extend(parts.map(|part| format!("-Wl,{part}")));
            }
            OptionTreatment::Output => found.output = Some(value.to_string()),
            OptionTreatment::Folder => found.folder = Some(value.to_string()),
            OptionTreatment::Bits if value == "64" => {}
            OptionTreatment::Bits => {
                let message = format!("pointers of {value} bits are not supported");
                return Err(wrong(message).help("remove `-m`, or use `-m64`"));
            }
            OptionTreatment::Level => found.level = Some(format!("-O{value}")),
            OptionTreatment::Language => self.language = language(value)?,
            OptionTreatment::Architecture => {
                found.architecture = architecture(value).max(found.architecture);
            }
            OptionTreatment::Object => found.stop = LastStage::Object,
            OptionTreatment::SeparateObject => {
                found.stop = LastStage::Object;
                found.separate = true;
            }
            OptionTreatment::Separate => found.separate = value == "true",
            OptionTreatment::DeviceLink => found.stop = LastStage::DeviceLink,
            OptionTreatment::Archive => found.stop = LastStage::Archive,
            OptionTreatment::Preprocess(word) => {
                found.stop = LastStage::Preprocess;
                found.host.push(word.into());
            }
            OptionTreatment::DeviceDebug => {
                found.device_debug = true;
                found.common.push("-g".into());
            }
            OptionTreatment::Toolkit => {
                let headers = Path::new(value).join("include");
                if !headers.is_dir() {
                    let message = format!("no CUDA toolkit headers are in `{value}`");
                    let help = "pass the folder that contains the toolkit's `include` folder";
                    return Err(wrong(message).help(help));
                }
                // Gradus's headers come first: they are made for the host.
                let headers = headers.display().to_string();
                found.common.extend(["-idirafter".to_string(), headers]);
            }
            OptionTreatment::Version => found.version = true,
            OptionTreatment::Verbose => found.verbose = true,
            OptionTreatment::Forward => self.forward = true,
            OptionTreatment::File => self.options_file(value)?,
            Refused(why) => {
                return Err(wrong(format!("`{name}` is not supported")).help(why));
            }
        }
        Ok(())
    }

    fn options_file(&mut self, paths: &str) -> Result<(), Diagnostic> {
        for path in paths.split(',').rev() {
            let bytes = crate::files::read(Path::new(path))?;
            for word in words(&String::from_utf8_lossy(&bytes)).into_iter().rev() {
                self.words.push_front(word);
            }
        }
        Ok(())
    }
}

/// Splits a text into words like a shell: at blanks, unless quoted or escaped.
fn words(text: &str) -> Vec<String> {
    split(text, char::is_whitespace, true)
}

/// Splits a value that lists options, at commas or spaces. Quoted text stays unchanged, except for quotes
/// around the whole value; an escaped comma does not separate.
fn option_parts(value: &str) -> Vec<String> {
    let round = |quote: char| {
        let within = value.strip_prefix(quote)?.strip_suffix(quote)?;
        (!within.contains(quote)).then_some(within)
    };
    let value = round('"').or_else(|| round('\'')).unwrap_or(value);
    split(value, |c| matches!(c, ',' | ' '), false)
}

/// Splits a text at separators. Quotes protect separators, and are removed if `unquote`.
fn split(text: &str, separates: impl Fn(char) -> bool, unquote: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let escapes = |next: &char| match unquote {
            true => quote != Some('\''),
            false => *next == ',',
        };
        match letter {
            '\\' if letters.peek().is_some_and(escapes) => {
                word.get_or_insert_default().extend(letters.next());
            }
            _ if quote == Some(letter) || quote.is_none() && matches!(letter, '"' | '\'') => {
                quote = quote.xor(Some(letter));
                let word = word.get_or_insert_default();
                word.extend((!unquote).then_some(letter));
            }
            _ if quote.is_none() && separates(letter) => found.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    found.extend(word);
    found
}

/// Returns the language version with GNU extensions, used by system headers and old programs.
fn gnu(version: &str) -> String {
    match version.strip_prefix("c++") {
        Some(year) => format!("gnu++{year}"),
        None => version.to_string(),
    }
}

/// Returns the highest number after `sm_`, `compute_` or `lto_` in a value; 0 without a number (`describe_gpu_intrinsic`).
fn architecture(value: &str) -> u32 {
    let words = value.split([',', '=', '[', ']', '"', ' ']);
    let numbers = words.filter_map(|word| {
        let number = word
            .strip_prefix("sm_")
            .or_else(|| word.strip_prefix("compute_"))
            .or_else(|| word.strip_prefix("lto_"))?;
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
        _ => Err(wrong(format!("`-x {name}` is not supported")).help("use cu, c++, c or none")),
    }
}

fn unknown(word: &str) -> Diagnostic {
    let name = word.split('=').next().unwrap_or(word);
    let names = OPTIONS.iter().flat_map(|(names, _)| names.iter());
    let near = gradus_ir::nearest_name(name, names.copied());
    let finding = wrong(format!("unknown option `{word}`"));
    match near {
        Some(known) => finding.help(format!("did you mean `{known}`?")),
        None => finding.help("pass options of the host compiler with `-Xcompiler`"),
    }
}

fn wrong(message: String) -> Diagnostic {
    Diagnostic::error(Code::BadOption, message)
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
        assert_eq!(found.stop, LastStage::Link);
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
        assert_eq!(found.stop, LastStage::Object);
    }

    #[test]
    fn what_is_not_known_has_a_near_match() {
        for (word, near) in [
            ("--linenfo", "-lineinfo"),
            ("-maxregcount=32", "-maxrregcount"),
            ("--use_fast_maths", "--use_fast_math"),
        ] {
            let finding = line(word).expect_err(word);
            assert_eq!(finding.code, Code::BadOption);
            assert!(finding.help.expect("a help").contains(near), "{word}");
        }
        assert!(line("-ptx").is_err() && line("-o").is_err() && line("-m32 a.cu").is_err());
    }

    /// Command lines written by CMake, Makefiles and setup scripts, with the arguments for both halves, the
    /// host compiler and the linker.
    const LINES: &[(&str, &str, &str, &str)] = &[
        ("-fmad=false --fmad true", "-ffp-contract=off", "", ""),
        (
            "--default-stream per-thread",
            "-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1",
            "",
            "",
        ),
        (
            "--default-stream=legacy -ftemplate-depth 900",
            "-ftemplate-depth=900",
            "",
            "",
        ),
        (
            "-Xcompiler=-fPIC --compiler-options \"-O3 -Wall\"",
            "",
            "-fPIC -O3 -Wall",
            "",
        ),
        (
            r#"-Xcompiler -DN=\"a,b\",-DM=1\,2"#,
            "",
            r#"-DN=\"a,b\" -DM=1,2"#,
            "",
        ),
        (
            "-Xlinker=-rpath,/x -Xlinker -z",
            "",
            "",
            "-Wl,-rpath -Wl,/x -Wl,-z",
        ),
        (
            "-forward-unknown-to-host-compiler -pipe -msse4.2",
            "",
            "-pipe -msse4.2",
            "",
        ),
        (
            "-ggdb3 --forward-unknown-to-host-compiler",
            "",
            "-ggdb3",
            "",
        ),
        (
            "--lineinfo --gencode arch=compute_80,code=lto_80 --gpu-architecture sm_70",
            "",
            "",
            "",
        ),
        (
            "-t0 -t=4 --threads 2 -split-compile=0 -res-usage -keep -keep-dir tmp",
            "",
            "",
            "",
        ),
        (
            "-ccbin g++-12 -cudart static --cudadevrt=none -Xnvlink -v -Xptxas=-O3,-v",
            "",
            "",
            "",
        ),
        (
            "-diag-suppress 177,550 --Werror all-warnings -Xcudafe --diag_suppress=2 -err-no",
            "",
            "",
            "",
        ),
        (
            "-noeh -m 64 -m64 -dlto -arch=all-major -Wno-deprecated-gpu-targets",
            "",
            "-fno-exceptions",
            "",
        ),
        (
            "--expt-relaxed-constexpr --extended-lambda -std c++20",
            "-std=gnu++20",
            "",
            "",
        ),
        ("-MD -MT a.o -MF a.d", "", "-MD -MT a.o -MF a.d", ""),
    ];

    #[test]
    fn options_of_build_systems_are_known() {
        for &(text, common, host, link) in LINES {
            let mut words = words(text);
            if text.contains('\\') {
                words = text.split(' ').map(String::from).collect();
            }
            let found = read(&words).unwrap_or_else(|finding| panic!("{text}: {finding:?}"));
            assert_eq!(found.common.join(" "), common, "{text}");
            assert_eq!(found.host.join(" "), host, "{text}");
            assert_eq!(found.link.join(" "), link, "{text}");
        }
        assert!(line("a.cu -pipe").is_err());
    }

    #[test]
    fn quotes_keep_words_together() {
        let text = r#"-I"a b" -DX="\"y z\"" 'c d.cu' e\ f"#;
        assert_eq!(words(text), ["-Ia b", "-DX=\"y z\"", "c d.cu", "e f"]);
    }
}
