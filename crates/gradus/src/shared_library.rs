//! `gradus grad --emit shared`: links the object of the derivatives into a shared library that exports only the
//! functions, their derivatives and the uniform entries of both.
//!
//! A uniform entry `void NAME__u(void **args)` has one C type for all functions, so that a caller needs neither a C
//! compiler nor a library of call conventions. `args[i]` is the address of the value of argument `i`; the last
//! address, behind those of all arguments, receives the result. A Fortran array with a descriptor is given as
//! `struct { void *data; size_t extents[rank]; }`; the entry builds the descriptor of a contiguous array.

use crate::clang_jobs::Job;
use crate::files::{self, Scratch};
use crate::job_execution::run_compiler;
use crate::linker_flags::is_for_the_linker;
use crate::settings::{Language, Settings};
use crate::{fortran_descriptor, runtime};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{Argument, Derivative, Descriptor, DescriptorKind, Role};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The suffix of a uniform entry's symbol.
pub(crate) const ENTRY_SUFFIX: &str = "__u";

/// The calling convention of additional symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entry {
    /// Only the C prototypes.
    #[default]
    C,
    /// A uniform entry for each function and derivative.
    Uniform,
}

/// Parts of the library.
pub(crate) struct Parts<'a> {
    /// The object of the program and the derivatives.
    pub object: &'a Path,
    /// The library for symbols undefined in the object.
    pub library: Option<&'a Path>,
    /// The C header of the derivatives.
    pub header: &'a [u8],
    /// The derivatives.
    pub derivatives: &'a [Derivative],
    /// The sources, which select the linker's language.
    pub sources: &'a [PathBuf],
    /// Flags of the user's compiler.
    pub flags: &'a [String],
    /// The additional symbols.
    pub entry: Entry,
}

/// Links the shared library `output`.
///
/// # Errors
/// `ToolFailed` if a compiler or the linker fails, `BadRequest` for a function without a uniform entry.
pub(crate) fn link(
    settings: &Settings,
    parts: &Parts<'_>,
    scratch: &Scratch,
    output: &Path,
) -> Result<(), Diagnostic> {
    let mut args = vec!["-shared".to_string(), parts.object.display().to_string()];
    if parts.entry == Entry::Uniform {
        let object = compile_entries(settings, parts, scratch)?;
        args.push(object.display().to_string());
    }
    let exports = scratch.file("exports.map");
    files::write(&exports, export_list(parts).as_bytes())?;
    args.extend(parts.library.map(|library| library.display().to_string()));
    let is_linked = |flag: &&String| is_for_the_linker(flag) || flag.starts_with("-fopenmp");
    args.extend(parts.flags.iter().filter(is_linked).cloned());
    let c = settings.compiler(Language::C)?;
    args.extend(runtime::fortran_library(&c, parts.object));
    args.extend([
        format!("-Wl,--version-script={}", exports.display()),
        // The program's functions take precedence over equal names of the loading process: glibc defines `step`.
        "-Wl,-Bsymbolic".to_string(),
        // A symbol that no library defines is an error of the link, not of the program that loads the library.
        "-Wl,-z,defs".to_string(),
        "-Wl,--as-needed".to_string(),
        "-lm".to_string(),
        "-o".to_string(),
        output.display().to_string(),
    ]);
    let is_c = |file: &PathBuf| file.extension().is_some_and(|e| e == "c");
    let program = match parts.sources.iter().all(is_c) {
        true => c,
        false => settings.compiler(Language::PlusPlus)?,
    };
    let job = runtime::with_runtime_by_compiler(&Job { program, args }, scratch)?;
    run_compiler(&job).map_err(|finding| {
        let help = "add the files or libraries that define missing symbols: `gradus grad a.c b.c … -- -lNAME`";
        finding.help(help)
    })
}

/// Returns the linker's list of exported symbols.
fn export_list(parts: &Parts<'_>) -> String {
    let mut names = BTreeSet::new();
    for derivative in parts.derivatives {
        for name in [&derivative.function, &derivative.name] {
            names.insert(name.clone());
            if parts.entry == Entry::Uniform {
                names.insert(entry_name(name));
            }
        }
    }
    let names = names.iter().map(|name| format!("\"{name}\";"));
    format!("{{ global: {} local: *; }};\n", names.collect::<String>())
}

/// Returns the symbol of the uniform entry of `symbol`.
pub(crate) fn entry_name(symbol: &str) -> String {
    format!("{symbol}{ENTRY_SUFFIX}")
}

/// Compiles the uniform entries. Returns the object.
fn compile_entries(
    settings: &Settings,
    parts: &Parts<'_>,
    scratch: &Scratch,
) -> Result<PathBuf, Diagnostic> {
    let (source, object) = (scratch.file("entries.c"), scratch.file("entries.o"));
    files::write(&scratch.file("derivatives.h"), parts.header)?;
    files::write(&source, entries(parts.derivatives)?.as_bytes())?;
    run_compiler(&Job {
        program: settings.compiler(Language::C)?,
        args: vec![
            "-std=gnu11".into(),
            "-O1".into(),
            "-w".into(),
            "-fPIC".into(),
            "-c".into(),
            source.display().to_string(),
            "-o".into(),
            object.display().to_string(),
        ],
    })?;
    Ok(object)
}

/// Returns the C source of the uniform entries.
fn entries(derivatives: &[Derivative]) -> Result<String, Diagnostic> {
    let mut text = String::from("#include \"derivatives.h\"\n");
    text.push_str(fortran_descriptor::HEADER);
    text.push_str("typedef struct { void *data; size_t extents[15]; } gr_array;\n");
    let mut primals = BTreeSet::new();
    for (number, derivative) in derivatives.iter().enumerate() {
        let primal = &derivative.primal;
        if primals.insert(&derivative.function) {
            check_result(derivative)?;
            let types: Vec<&str> = primal.iter().map(|a| a.c_type.as_str()).collect();
            let types = match types.is_empty() {
                true => "void".to_string(),
                false => types.join(", "),
            };
            let (result, symbol) = (&derivative.primal_result, &derivative.function);
            let _ = writeln!(
                text,
                "extern {result} gr_primal{number}({types}) __asm__(\"{symbol}\");"
            );
            let owners: Vec<Owned<'_>> = primal.iter().map(|a| (a, a)).collect();
            let names = (format!("gr_primal{number}"), entry_name(symbol));
            text += &entry(derivative, &names, result, &owners)?;
        }
        let owner = |argument: &Argument| match argument.role {
            Role::Inactive(i) | Role::Active(i) | Role::Shadow(i, _) => primal.get(i),
            Role::Cotangent(_)
            | Role::PrimalResult
            | Role::ResultTangent(_)
            | Role::Adjoint(..) => None,
        };
        let arguments = derivative.arguments.iter();
        let owners: Vec<Owned<'_>> = arguments.map(|a| (a, owner(a).unwrap_or(a))).collect();
        let names = (derivative.name.clone(), entry_name(&derivative.name));
        text += &entry(derivative, &names, &derivative.result, &owners)?;
    }
    Ok(text)
}

/// Refuses a primal that returns a structure: the header does not define the structures of the source.
fn check_result(derivative: &Derivative) -> Result<(), Diagnostic> {
    let result = &derivative.primal_result;
    if !result.starts_with("struct ") || result.contains('*') {
        return Ok(());
    }
    let function = &derivative.source_name;
    let message = format!("{function} returns {result}, which uniform entries do not support");
    Err(Diagnostic::error(Code::BadRequest, message)
        .help("write a function that returns a number or writes into arrays, and calls this one"))
}

/// An argument of a function, and the primal's argument with the descriptor.
type Owned<'a> = (&'a Argument, &'a Argument);

/// Returns the entry `names.1` of the function `names.0`.
fn entry(
    derivative: &Derivative,
    names: &(String, String),
    result: &str,
    arguments: &[Owned<'_>],
) -> Result<String, Diagnostic> {
    let mut values = Vec::new();
    for (number, (argument, owner)) in arguments.iter().enumerate() {
        let c_type = &argument.c_type;
        let is_structure = c_type.starts_with("struct ") && !c_type.contains('*');
        if is_structure || c_type.contains("__attribute__") {
            return Err(no_entry(derivative, owner, &format!("has type {c_type}")));
        }
        values.push(match &owner.descriptor {
            Some(Descriptor { elem, kind, .. })
                if elem.is_empty() || *kind != DescriptorKind::AssumedShape =>
            {
                let why = "is not an assumed-shape array of numbers";
                return Err(no_entry(derivative, owner, why));
            }
            Some(Descriptor { elem, rank, .. }) => {
                let array = format!("((gr_array *)args[{number}])");
                let code = fortran_descriptor::type_code(elem);
                format!(
                    "gr_describe(&(gr_descriptor){{0}}, {array}->data, sizeof({elem}), {code}, {rank}, {array}->extents)"
                )
            }
            None => format!("*({} *)args[{number}]", c_type.trim_start_matches("const ")),
        });
    }
    let call = format!("{}({})", names.0, values.join(", "));
    let body = match result {
        "void" => call,
        _ => format!("*({result} *)args[{}] = {call}", arguments.len()),
    };
    Ok(format!(
        "void gr_entry_{}(void **args) __asm__(\"{}\");\nvoid gr_entry_{}(void **args) {{ {body}; }}\n",
        names.0, names.1, names.0
    ))
}

/// Returns the refusal of a uniform entry.
fn no_entry(derivative: &Derivative, argument: &Argument, why: &str) -> Diagnostic {
    let (name, function) = (&argument.source_name, &derivative.source_name);
    let message = format!("`{name}` of {function} {why}, which uniform entries do not support");
    Diagnostic::error(Code::BadRequest, message)
        .help("write a function that takes numbers and arrays, and calls this one")
}
