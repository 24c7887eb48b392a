//! Fat objects: an object of `gradus cc -c` carries its unoptimised module and its compilation options, for
//! differentiation across files at the link.
//!
//! Section `.gradus.bc` holds the bitcode, `.gradus.cmd` the code generator's arguments. Linkers exclude
//! both sections from programs, and LTO does not take the bitcode for the object's code (decision 17).

use crate::clang_jobs::Job;
use crate::files::{self, Scratch};
use crate::job_execution::{run_captured, run_compiler};
use crate::module_scan::holds;
use crate::objects::elf_sections::with_excluded_section;
use crate::objects::source_record::SourceRecord;
use crate::settings::Settings;
use gradus_ir::Diagnostic;
use gradus_ir::externals::{KEYWORDS, KeywordKind, differentiation_call, registration_named};
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationTarget};
use std::collections::BTreeSet;
use std::path::Path;

const BITCODE: &str = ".gradus.bc";
const COMMAND: &str = ".gradus.cmd";

/// The data carried by an object besides code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedModule {
    /// The module before optimisation.
    pub bitcode: Vec<u8>,
    /// The arguments of the back half.
    pub back: Vec<String>,
}

/// Facts of an object for the link step.
#[derive(Clone, Debug, Default)]
pub struct ObjectFacts {
    /// The carried data; `None` for an object of another compiler.
    pub carried: Option<CarriedModule>,
    /// The record of the compilation, if no module is carried.
    pub source: Option<SourceRecord>,
    /// The defined global symbols.
    pub defines: BTreeSet<String>,
    /// The undefined symbols.
    pub needs: BTreeSet<String>,
    /// True if the object has constructors that run before `main`.
    pub constructors: bool,
    /// The registrations of the call interface, each with the functions of other files named there.
    pub registers: Vec<(String, BTreeSet<String>)>,
}

impl ObjectFacts {
    /// Returns true if the object's module is carried, or can be compiled again.
    pub fn has_module(&self) -> bool {
        self.carried.is_some() || self.source.is_some()
    }
    /// Returns true if the object calls the differentiation interface.
    pub fn has_calls(&self) -> bool {
        self.needs
            .iter()
            .any(|name| differentiation_call(name).is_some())
    }
}

/// Attaches the carried data to an object. `llvm-objcopy` attaches to other formats than ELF of 64 bits; without the
/// tool, such an object stays unchanged.
///
/// # Errors
/// `FileAccess`.
pub fn attach(
    settings: &Settings,
    scratch: &Scratch,
    object: &Path,
    carried: &CarriedModule,
    compiler: &Path,
) -> Result<(), Diagnostic> {
    let command = carried.back.join("\0");
    let sections = [
        (BITCODE, &carried.bitcode[..]),
        (COMMAND, command.as_bytes()),
    ];
    let with_all = sections
        .iter()
        .try_fold(files::read(object)?, |bytes, (name, contents)| {
            with_excluded_section(&bytes, name, contents)
        });
    if let Some(bytes) = with_all {
        return files::write(object, &bytes);
    }
    let beside = compiler.with_file_name("llvm-objcopy");
    let tool = match beside.is_file() {
        true => Some(beside),
        false => settings
            .find("llvm-objcopy-22")
            .or_else(|| settings.find("llvm-objcopy")),
    };
    let Some(tool) = tool else {
        // Not an error: the object stays unchanged, and a link that needs its module reports that.
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
    if run_compiler(&job).is_ok() {
        files::write(object, &files::read(&result)?)?;
    }
    Ok(())
}

/// Returns the facts of an object; `None` for other files, programs and shared libraries.
pub fn object_facts(bytes: &[u8]) -> Option<ObjectFacts> {
    let file = object::File::parse(bytes).ok()?;
    if file.kind() != ObjectKind::Relocatable {
        return None;
    }
    let section = |name: &str| file.section_by_name(name)?.data().ok();
    let carried = section(BITCODE)
        .zip(section(COMMAND))
        .map(|(bitcode, back)| CarriedModule {
            bitcode: bitcode.to_vec(),
            back: String::from_utf8_lossy(back)
                .split('\0')
                .map(String::from)
                .collect(),
        });
    let named = |symbol: &object::Symbol<'_, '_>| symbol.name().ok().map(String::from);
    let starts = [".init_array", ".ctors", "__mod_init_func"];
    Some(ObjectFacts {
        registers: registrations(&file),
        source: SourceRecord::of(&file).filter(|_| carried.is_none()),
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

/// Returns the registrations defined by an object, with the referenced names of other files.
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

/// Returns true if a module's symbol table has a call of the interface.
pub(crate) fn asks_for_derivatives(bitcode: &[u8]) -> bool {
    KEYWORDS.iter().any(|row| match row.kind {
        KeywordKind::Call(_) | KeywordKind::Rewrite(_) => holds(bitcode, row.keyword.as_bytes()),
        _ => false,
    })
}

/// Returns the facts of an LTO bitcode file, from the symbols listed by `llvm-nm`; the file carries itself.
pub(crate) fn bitcode_facts(
    settings: &Settings,
    path: &Path,
    bytes: Vec<u8>,
) -> Option<ObjectFacts> {
    let tool = settings
        .find("llvm-nm-22")
        .or_else(|| settings.find("llvm-nm"))?;
    let job = Job {
        program: tool,
        args: vec!["--format=posix".into(), path.display().to_string()],
    };
    let output = run_captured(&job)
        .ok()
        .filter(|output| output.status.success())?;
    let mut facts = ObjectFacts {
        carried: Some(CarriedModule {
            bitcode: bytes,
            back: Vec::new(),
        }),
        ..ObjectFacts::default()
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
