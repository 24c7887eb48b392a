//! The link of a Rust program: merges the bitcode of all crates, replaces the requests by derivatives, and calls the real
//! linker with one object in place of the bitcode.
//!
//! # Invariants
//! - The allocator's shim stays a separate object: calls of `__rust_alloc` are allocations to the passes, but a body
//!   would be unknown code.
//! - The standard library stays compiled, except for the generic functions, which are in the crates that use them.

use crate::files::{self, Scratch};
use crate::module_scan::holds;
use crate::objects::archive;
use crate::objects::kind::is_bitcode;
use crate::{Settings, child, response_files};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{
    CallsTask, Input, Level, Options, Outcome, OutputKind, Reply, Request, Task,
};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A link.
#[derive(Clone, Debug)]
pub struct RustLink {
    /// The real linker.
    pub linker: PathBuf,
    /// The level of the passes.
    pub level: Level,
    /// The linker's arguments.
    pub args: Vec<String>,
}

/// The outcome of a link.
#[derive(Clone, Debug, Default)]
pub struct RustLinked {
    /// The exit status.
    pub status: i32,
    /// Gradus's diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

/// Links a program.
pub fn link(settings: &Settings, link: &RustLink) -> RustLinked {
    let mut linked = RustLinked::default();
    match run(settings, link, &mut linked) {
        Ok(status) => linked.status = status,
        Err(finding) => {
            linked.diagnostics.push(finding);
            linked.status = 1;
        }
    }
    linked
}

fn run(settings: &Settings, link: &RustLink, linked: &mut RustLinked) -> Result<i32, Diagnostic> {
    let scratch = settings.scratch()?;
    let args = response_files::expand(&link.args)?;
    let mut program = Program::read(&args, &scratch)?;
    if let Some(place) = program.place {
        let used = program.used_symbols();
        let modules = std::mem::take(&mut program.modules);
        let reply = derive(settings, link.level, modules, Some(used));
        linked.diagnostics.extend(reply.diagnostics.iter().cloned());
        let Some(object) = object_of(&reply) else {
            return Ok(1);
        };
        let file = scratch.file("program.o");
        files::write(&file, object)?;
        program.args[place] = file.display().to_string();
    }
    for (at, shim) in program.shims.iter().enumerate() {
        let reply = derive(settings, link.level, vec![shim.clone()], None);
        let object = object_of(&reply).ok_or_else(|| {
            let message = "the allocator's object cannot be compiled";
            Diagnostic::error(Code::CompilerDied, message)
        })?;
        let file = scratch.file(&format!("allocator{at}.o"));
        files::write(&file, object)?;
        program.args.push(file.display().to_string());
    }
    let status = Command::new(&link.linker).args(&program.args).status();
    let status = status.map_err(|e| {
        let message = format!("cannot run the linker {}: {e}", link.linker.display());
        Diagnostic::error(Code::ToolFailed, message)
            .help("install a C compiler, or name the linker in Cargo's configuration")
    })?;
    Ok(status.code().unwrap_or(1))
}

/// Merges the bitcode members of a static library into one object.
///
/// # Errors
/// `FileAccess`; the diagnostics of the passes are in the second part.
pub fn merge_static_library(
    settings: &Settings,
    level: Level,
    library: &Path,
) -> Result<Vec<Diagnostic>, Diagnostic> {
    let (mut modules, mut shims, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (name, bytes) in members(library)? {
        match is_bitcode(&bytes) {
            true if is_allocator_shim(&bytes) => shims.push(Input::new(name, bytes)),
            true => modules.push(Input::new(name, bytes)),
            false => others.push((name, bytes)),
        }
    }
    if modules.is_empty() {
        return Ok(Vec::new());
    }
    let natives = others.iter().map(|(_, bytes)| bytes.as_slice());
    let shim_bytes = shims.iter().map(|shim| shim.bytes.as_slice());
    let used = used_symbols(natives.chain(shim_bytes));
    let mut parts = vec![("program.o", modules, Some(used))];
    parts.extend((!shims.is_empty()).then_some(("allocator.o", shims, None)));
    let (mut findings, mut made) = (Vec::new(), Vec::new());
    for (name, modules, used) in parts {
        let reply = derive(settings, level, modules, used);
        findings.extend(reply.diagnostics.iter().cloned());
        match object_of(&reply) {
            Some(object) => made.push((name.to_string(), object.to_vec())),
            None => return Ok(findings),
        }
    }
    made.extend(others);
    files::write(library, &archive::create(&made))?;
    Ok(findings)
}

/// The inputs of a link.
#[derive(Default)]
struct Program {
    /// The modules of all crates.
    modules: Vec<Input>,
    /// The allocator's shims.
    shims: Vec<Input>,
    /// The linker's arguments.
    args: Vec<String>,
    /// The argument that the program's object replaces.
    place: Option<usize>,
    /// The objects and libraries without bitcode.
    natives: Vec<PathBuf>,
    /// The names in the lists of exported symbols.
    exports: Vec<String>,
}

impl Program {
    fn read(args: &[String], scratch: &Scratch) -> Result<Program, Diagnostic> {
        let mut program = Program::default();
        for (at, arg) in args.iter().enumerate() {
            let path = Path::new(arg);
            let ends_in = |end: &str| path.extension().is_some_and(|e| e == end);
            let is_output = at > 0 && args[at - 1] == "-o";
            let lists = ["-Wl,--version-script=", "-Wl,--dynamic-list="];
            if let Some(list) = lists.iter().find_map(|option| arg.strip_prefix(option)) {
                let text = String::from_utf8_lossy(&files::read(Path::new(list))?).into_owned();
                let names = text.split(|c: char| c.is_whitespace() || "{};".contains(c));
                program.exports.extend(names.map(String::from));
            }
            // Options of a linker that reads bitcode itself.
            if arg.starts_with("-Wl,-plugin-opt") || arg.starts_with("-Wl,-plugin,") {
                continue;
            }
            if is_output || !path.is_file() || !(ends_in("o") || ends_in("rlib")) {
                program.args.push(arg.clone());
                program
                    .natives
                    .extend(ends_in("a").then(|| path.to_path_buf()));
                continue;
            }
            match ends_in("rlib") {
                true => program.add_library(arg, at, scratch)?,
                false => program.add_object(arg)?,
            }
        }
        Ok(program)
    }

    fn add_object(&mut self, arg: &str) -> Result<(), Diagnostic> {
        let bytes = files::read(Path::new(arg))?;
        match is_bitcode(&bytes) {
            true => self.add_module(arg, bytes),
            false => {
                self.args.push(arg.to_string());
                self.natives.push(arg.into());
            }
        }
        Ok(())
    }

    /// Returns the symbols that the shims and the code without bitcode use.
    fn used_symbols(&self) -> Vec<String> {
        let mut parts: Vec<Vec<u8>> = self.shims.iter().map(|shim| shim.bytes.clone()).collect();
        for path in &self.natives {
            match archive::members(path) {
                members if members.is_empty() => parts.extend(files::read(path).ok()),
                members => parts.extend(members),
            }
        }
        let mut used = used_symbols(parts.iter().map(Vec::as_slice));
        used.extend(self.exports.iter().cloned());
        used
    }

    fn add_module(&mut self, name: &str, bytes: Vec<u8>) {
        let input = Input::new(name, bytes);
        if is_allocator_shim(&input.bytes) {
            self.shims.push(input);
            return;
        }
        self.modules.push(input);
        if self.place.is_none() {
            self.place = Some(self.args.len());
            self.args.push(String::new());
        }
    }

    /// Adds the modules of a library. The other members (code of C, for instance) stay in a library of their own.
    fn add_library(&mut self, arg: &str, at: usize, scratch: &Scratch) -> Result<(), Diagnostic> {
        let members = members(Path::new(arg))?;
        if !members.iter().any(|(_, bytes)| is_bitcode(bytes)) {
            self.args.push(arg.to_string());
            self.natives.push(arg.into());
            return Ok(());
        }
        let (modules, others): (Vec<_>, Vec<_>) = members
            .into_iter()
            .partition(|(_, bytes)| is_bitcode(bytes));
        for (name, bytes) in modules {
            self.add_module(&format!("{arg}({name})"), bytes);
        }
        let others: Vec<_> = others
            .into_iter()
            .filter(|(name, _)| !name.ends_with(".rmeta"))
            .collect();
        if !others.is_empty() {
            let file = scratch.file(&format!("rest{at}.a"));
            files::write(&file, &archive::create(&others))?;
            self.args.push(file.display().to_string());
            self.natives.push(file);
        }
        Ok(())
    }
}

/// Returns the symbols that objects use and do not define, and the names in bitcode of Rust's allocator.
fn used_symbols<'b>(parts: impl Iterator<Item = &'b [u8]>) -> Vec<String> {
    let mut used = HashSet::new();
    let mut shims = Vec::new();
    for bytes in parts {
        if is_bitcode(bytes) {
            shims.push(bytes);
            continue;
        }
        let Ok(file) = object::File::parse(bytes) else {
            continue;
        };
        let undefined = file.symbols().filter(object::Symbol::is_undefined);
        used.extend(undefined.filter_map(|symbol| symbol.name().ok().map(String::from)));
    }
    used.extend(shims.into_iter().flat_map(allocator_symbols));
    let mut used: Vec<String> = used.into_iter().collect();
    used.sort();
    used
}

/// Returns the program's allocation functions that a shim calls: `_RNvCs…_7___rustc10___rg_alloc` and others.
fn allocator_symbols(shim: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(shim);
    let names = text.split("_RNvCs").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        name.contains("___rg_").then(|| format!("_RNvCs{name}"))
    });
    names.collect()
}

/// Returns the members of a library, by name.
fn members(path: &Path) -> Result<Vec<(String, Vec<u8>)>, Diagnostic> {
    let bytes = files::read(path)?;
    let unreadable = |e: object::Error| {
        let message = format!("cannot read the library {}: {e}", path.display());
        Diagnostic::error(Code::UnreadableInput, message)
    };
    let archive = ArchiveFile::parse(&*bytes).map_err(unreadable)?;
    let mut found = Vec::new();
    for member in archive.members() {
        let member = member.map_err(unreadable)?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        found.push((name, member.data(&*bytes).map_err(unreadable)?.to_vec()));
    }
    Ok(found)
}

/// Returns true for the module that defines `__rust_alloc` by calls of the program's allocator. The module has no other
/// function.
fn is_allocator_shim(bitcode: &[u8]) -> bool {
    let has = |name: &str| holds(bitcode, name.as_bytes());
    let forwards = has("__rdl_alloc") || has("__rg_alloc") && !has("_ZN");
    forwards && has("__rust_no_alloc_shim_is_unstable")
}

/// Runs the passes on a program.
fn derive(
    settings: &Settings,
    level: Level,
    inputs: Vec<Input>,
    whole_program: Option<Vec<String>>,
) -> Reply {
    let request = Request {
        inputs,
        task: Task::Calls(CallsTask::default()),
        level,
        report: false,
        emit: vec![OutputKind::Object],
        options: Options {
            whole_program,
            ..Options::default()
        },
    };
    child::compile(settings, &request)
}

fn object_of(reply: &Reply) -> Option<&[u8]> {
    let object = reply.output(OutputKind::Object);
    object.filter(|_| reply.outcome == Outcome::Ok)
}
