//! Fat objects: an object of `gradus cc -c` carries its module as the front end left it, and how
//! it was compiled, so that the link step can differentiate across files.
//!
//! Section `.gradus.bc` holds the bitcode, `.gradus.cmd` the code generator's arguments; linkers leave both out of
//! programs, and those that optimise do not take the bitcode for the object's code (decision 17).

use crate::files::{self, Scratch};
use crate::plan::Job;
use crate::settings::Settings;
use gradus_ir::Diagnostic;
use gradus_ir::known::{Use, WORDS, differentiation_call, registration_named};
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationTarget};
use std::collections::BTreeSet;
use std::path::Path;

const BITCODE: &str = ".gradus.bc";
const COMMAND: &str = ".gradus.cmd";

/// What an object carries beside its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The module as the front end left it.
    pub bitcode: Vec<u8>,
    /// The arguments of the back half.
    pub back: Vec<String>,
}

/// What the link step knows of an object.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What it carries; `None` for an object of another compiler.
    pub carried: Option<Carried>,
    /// The symbols that it defines for others.
    pub defines: BTreeSet<String>,
    /// The symbols that it needs from others.
    pub needs: BTreeSet<String>,
    /// Whether code of it runs before `main`.
    pub constructors: bool,
    /// The registrations of the call interface, each with the functions of other files that it names.
    pub registers: Vec<(String, BTreeSet<String>)>,
}

impl Facts {
    /// Whether it calls the differentiation interface.
    pub fn has_calls(&self) -> bool {
        self.needs
            .iter()
            .any(|name| differentiation_call(name).is_some())
    }
}

/// Adds what an object carries; an object stays as it is where there is no tool for that.
///
/// # Errors
/// `FileAccess`.
pub fn attach(
    settings: &Settings,
    scratch: &Scratch,
    object: &Path,
    carried: &Carried,
    compiler: &Path,
) -> Result<(), Diagnostic> {
    let beside = compiler.with_file_name("llvm-objcopy");
    let tool = match beside.is_file() {
        true => Some(beside),
        false => settings
            .find("llvm-objcopy-22")
            .or_else(|| settings.find("llvm-objcopy")),
    };
    let Some(tool) = tool else {
        // Not an error: the object stays as it is, and a link that needs its source says so.
        return Ok(());
    };
    let (bitcode, command, result) = (
        scratch.file("carried.bc"),
        scratch.file("carried.cmd"),
        scratch.file("carried.o"),
    );
    files::write(&bitcode, &carried.bitcode)?;
    files::write(&command, carried.back.join("\0").as_bytes())?;
    let mut args = Vec::new();
    for (section, file) in [(BITCODE, &bitcode), (COMMAND, &command)] {
        args.push(format!("--add-section={section}={}", file.display()));
        args.push(format!("--set-section-flags={section}=exclude"));
    }
    args.extend([object.display().to_string(), result.display().to_string()]);
    let job = Job {
        program: tool,
        args,
    };
    if crate::source::quiet(&job).is_ok() {
        files::write(object, &files::read(&result)?)?;
    }
    Ok(())
}

/// What an object's bytes tell; `None` where they are no object, or a program or a shared library.
pub fn facts(bytes: &[u8]) -> Option<Facts> {
    let file = object::File::parse(bytes).ok()?;
    if file.kind() != ObjectKind::Relocatable {
        return None;
    }
    let section = |name: &str| file.section_by_name(name)?.data().ok();
    let carried = section(BITCODE)
        .zip(section(COMMAND))
        .map(|(bitcode, back)| Carried {
            bitcode: bitcode.to_vec(),
            back: String::from_utf8_lossy(back)
                .split('\0')
                .map(String::from)
                .collect(),
        });
    let named = |symbol: &object::Symbol<'_, '_>| symbol.name().ok().map(String::from);
    let starts = [".init_array", ".ctors", "__mod_init_func"];
    Some(Facts {
        registers: registrations(&file),
        carried,
        defines: (file
            .symbols()
            .filter(|s| s.is_definition() && s.is_global()))
        .filter_map(|s| named(&s))
        .collect(),
        needs: (file.symbols().filter(object::Symbol::is_undefined))
            .filter_map(|s| named(&s))
            .filter(|name| !name.is_empty())
            .collect(),
        constructors: file.sections().any(|s| {
            s.name()
                .is_ok_and(|name| starts.iter().any(|start| name.starts_with(start)))
        }),
    })
}

/// Returns the registrations that an object defines, and the names of other files in them.
fn registrations(file: &object::File<'_>) -> Vec<(String, BTreeSet<String>)> {
    let registers = |symbol: &object::Symbol<'_, '_>| {
        let name = symbol.name().ok().filter(|_| symbol.is_definition())?;
        let known = registration_named(name).is_some() && differentiation_call(name).is_none();
        known.then(|| name.to_string())
    };
    let targets = |symbol: &object::Symbol<'_, '_>| {
        let section = symbol
            .section_index()
            .and_then(|at| file.section_by_index(at).ok());
        let range = symbol.address()..symbol.address() + symbol.size();
        let relocations = section.iter().flat_map(|section| section.relocations());
        let inside = relocations.filter(|(at, _)| range.contains(at));
        let target = inside.filter_map(|(_, relocation)| match relocation.target() {
            RelocationTarget::Symbol(at) => file.symbol_by_index(at).ok(),
            _ => None,
        });
        let names = target.filter(object::Symbol::is_undefined);
        names
            .filter_map(|target| target.name().ok().map(String::from))
            .collect()
    };
    let found = file
        .symbols()
        .filter_map(|symbol| Some((registers(&symbol)?, targets(&symbol))));
    found.collect()
}

/// Returns true if a module's table of symbols holds a differentiation call.
pub(crate) fn asks_for_derivatives(bitcode: &[u8]) -> bool {
    WORDS.iter().any(|row| match row.means {
        Use::Call(_) => crate::drive::holds(bitcode, row.word.as_bytes()),
        _ => false,
    })
}

/// Returns the facts of an LTO bitcode file, from the symbols that `llvm-nm` lists: it carries itself.
pub(crate) fn bitcode_facts(settings: &Settings, path: &Path, bytes: Vec<u8>) -> Option<Facts> {
    let tool = settings
        .find("llvm-nm-22")
        .or_else(|| settings.find("llvm-nm"))?;
    let job = Job {
        program: tool,
        args: vec!["--format=posix".into(), path.display().to_string()],
    };
    let output = crate::source::start(&job)
        .ok()
        .filter(|output| output.status.success())?;
    let mut facts = Facts {
        carried: Some(Carried {
            bitcode: bytes,
            back: Vec::new(),
        }),
        ..Facts::default()
    };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(kind)) = (words.next(), words.next()) else {
            continue;
        };
        match kind {
            "U" => facts.needs.insert(name.to_string()),
            kind if kind.chars().all(char::is_uppercase) => facts.defines.insert(name.to_string()),
            _ => false,
        };
        if kind != "U" && registration_named(name).is_some() && differentiation_call(name).is_none()
        {
            facts.registers.push((name.to_string(), BTreeSet::new()));
        }
    }
    Some(facts)
}

/// Whether a file is LLVM's bitcode, as compilations leave it for links that optimise (`-flto`).
pub(crate) fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde")
}
