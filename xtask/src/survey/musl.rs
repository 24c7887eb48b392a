//! musl's libm: every function of `math.h` with a real parameter and a real result. `own_names` surveys the
//! function under its own name, whose derivative Gradus knows; `code` surveys the source under another name.
//!
//! Some functions (`exp`, `log`, `pow`) compute with the bits of numbers and are refused. A second attempt
//! registers the function as equivalent to the function of its name, as the diagnostic's page advises users.

use super::archives::{self, Sources};
use super::scalar::{self, Function, Parameter};
use super::subject::{Collection, Place, Subject};
use crate::process::{self, Failure, Outcome};
use crate::sources::MUSL;
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Branch points in the code of some functions. The remaining functions branch at one half or at one.
// table
const BRANCHES: &[(&str, &str)] = &[
    ("acosh", "2"),
    ("asinh", "2"),
    ("atan", "0.4375"),
    ("ceil", "3"),
    ("cos", "0.78539816339744828"),
    ("cosh", "0.69314718055994529"),
    ("erf", "0.84375"),
    ("erfc", "1.25"),
    ("exp", "0.34657359027997264"),
    ("expm1", "0.34657359027997264"),
    ("fabs", "0"),
    ("floor", "3"),
    ("j0", "2"),
    ("j1", "2"),
    ("lgamma", "2"),
    ("log", "1"),
    ("log10", "1"),
    ("log1p", "0.41421356237309515"),
    ("log2", "1"),
    ("modf", "1"),
    ("round", "2.5"),
    ("sin", "0.78539816339744828"),
    ("sqrt", "0"),
    ("tan", "0.6744"),
    ("tanh", "0.54930614433405489"),
    ("trunc", "3"),
    ("y0", "2"),
    ("y1", "2"),
];

/// Redefinition of musl's macro for a second name. The first name is expanded, hence a renamed function is
/// found.
const ALIASES: &str = "#include <features.h>\n#undef weak_alias\n#define text_of(name) #name\n\
#define weak_alias(old, new) extern __typeof(old) new __attribute__((__weak__, __alias__(text_of(old))))\n";

/// Returns the functions of musl's libm under their own names.
///
/// # Errors
/// Fails if musl cannot be fetched or does not compile.
pub fn own_names(binary: &Path) -> Outcome<Collection> {
    collection(binary, "libm", "")
}

/// Returns the code of musl's libm under names without a known derivative.
///
/// # Errors
/// Fails if musl cannot be fetched or does not compile.
pub fn code(binary: &Path) -> Outcome<Collection> {
    collection(binary, "musl", "code_of_")
}

fn collection(binary: &Path, name: &str, prefix: &str) -> Outcome<Collection> {
    let musl = MUSL.locate()?;
    configure(&musl)?;
    let header = musl.join("include/math.h");
    let text = std::fs::read_to_string(&header)
        .map_err(|e| Failure::new(format!("{}: {e}", header.display())))?;
    let functions = scalar::functions(&text);
    let folder = workspace::target()
        .join("survey")
        .join(name)
        .join("library");
    let names = folder.join("names.h");
    let defines = functions
        .iter()
        .map(|f| format!("#define {0} {prefix}{0}\n", f.name));
    let defines: String = defines.filter(|_| !prefix.is_empty()).collect();
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&names, defines))
        .map_err(|e| Failure::new(format!("{}: {e}", names.display())))?;
    let aliases = folder.join("aliases.h");
    std::fs::write(&aliases, ALIASES)
        .map_err(|e| Failure::new(format!("{}: {e}", aliases.display())))?;
    let aliased = ["-include".to_owned(), aliases.display().to_string()];
    let renamed = ["-include".to_owned(), names.display().to_string()];
    let subjects = functions.iter().map(|function| Subject {
        name: function.name.clone(),
        // The header defines macros of its own; the units declare functions by name.
        units: Ok(scalar::units(
            function,
            &declaration(function),
            &places(function),
            Some(remedy(&function.name)),
        )),
    });
    let sources = Sources {
        files: files(&musl)?,
        flags: [flags(&musl).as_slice(), &aliased, &renamed].concat(),
    };
    // The compiler may also know a function by its name.
    let own = ["-fno-builtin".to_owned()];
    Ok(Collection {
        subjects: subjects.collect(),
        flags: [own.as_slice(), &renamed].concat(),
        options: Vec::new(),
        archives: Some(archives::build(binary, &folder, &sources)?),
    })
}

/// Writes the headers that musl's build generates.
fn configure(musl: &Path) -> Outcome<()> {
    const MADE: [&str; 3] = [
        "obj/include/bits/alltypes.h",
        "obj/include/bits/syscall.h",
        "obj/src/internal/version.h",
    ];
    if MADE.iter().all(|made| musl.join(made).is_file()) {
        return Ok(());
    }
    process::capture(Command::new("sh").arg("./configure").current_dir(musl))?;
    process::capture(Command::new("make").args(MADE).current_dir(musl))?;
    Ok(())
}

/// Returns the portable sources; the sources for one machine are assembly.
fn files(musl: &Path) -> Outcome<Vec<PathBuf>> {
    let folder = musl.join("src/math");
    let entries = std::fs::read_dir(&folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    files.sort();
    Ok(files)
}

fn flags(musl: &Path) -> Vec<String> {
    let mut flags: Vec<String> = [
        "-std=c99",
        "-nostdinc",
        "-ffreestanding",
        "-D_XOPEN_SOURCE=700",
    ]
    .map(String::from)
    .to_vec();
    for folder in [
        "arch/x86_64",
        "arch/generic",
        "obj/src/internal",
        "src/include",
        "src/internal",
        "obj/include",
        "include",
    ] {
        flags.push(format!("-I{}", musl.join(folder).display()));
    }
    flags
}

/// Returns the declaration of a function.
fn declaration(function: &Function) -> String {
    let types: Vec<&str> = function
        .parameters
        .iter()
        .map(|p| match p {
            Parameter::Real => "double",
            Parameter::Extended => "long double",
            Parameter::Whole | Parameter::Mode => "int",
            Parameter::Long => "long",
            Parameter::RealOut => "double *",
            Parameter::WholeOut => "int *",
        })
        .collect();
    format!("double {}({});\n", function.name, types.join(", "))
}

/// Returns the registration. The quoted name is not renamed.
fn remedy(name: &str) -> String {
    format!("void *__enzyme_function_like_this[] = {{(void *){name}, (void *)\"{name}\"}};\n")
}

/// Returns a branch point, then two further points, with substitutes for points without a value.
fn places(function: &Function) -> Vec<Place> {
    let branch = BRANCHES.iter().find(|(name, _)| *name == function.name);
    let branch = branch.map_or("0.5", |(_, at)| at);
    let place = |x: [&str; 3], spare: bool| Place {
        x: x[..function.real()].iter().map(|v| v.to_string()).collect(),
        fixed: vec!["3".into(); function.count(Parameter::Whole) + function.count(Parameter::Long)],
        text: None,
        spare,
    };
    vec![
        place([branch, "0.5", "1"], false),
        place(["1", "1", "1"], true),
        place(["0.7", "1.9", "-0.4"], false),
        place(["1.9", "0.7", "0.3"], true),
        place(["2.6", "0.8", "5.5"], false),
        place(["-0.3", "0.8", "5.5"], true),
        place(["0.3", "0.8", "5.5"], true),
    ]
}
