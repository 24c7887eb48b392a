//! Fat objects: an object of `gradus cc -c` carries its module as the front end left it, and how
//! it was compiled, so that the link step can differentiate across files.
//!
//! Section `.gradus.bc` holds the bitcode, `.gradus.cmd` the code generator's arguments; linkers leave both out of
//! programs, and those that optimise do not take the bitcode for the object's code (decision 17).

use crate::files::{self, Scratch};
use crate::plan::Job;
use crate::settings::Settings;
use gradus_ir::Diagnostic;
use gradus_ir::known::differentiation_call;
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol};
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

/// Whether a file is LLVM's bitcode, as compilations leave it for links that optimise (`-flto`).
pub(crate) fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde")
}
