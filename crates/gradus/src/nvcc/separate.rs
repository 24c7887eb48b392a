//! Refuses calls of device functions across sources if the function must be inlined into its kernel.
//!
//! A function that queries its thread index, synchronises or uses shared memory becomes part of its kernel,
//! and must be in the kernel's source. Objects record the names of inlined-only functions (`gradus-llvm`'s
//! merge). A link with a call of a recorded function is refused before the linker reports an undefined
//! symbol.

use crate::files;
use crate::objects::archive;
use crate::objects::kind::is_archive;
use gradus_ir::externals::{CALL_SITE_PREFIX, DEVICE_PREFIX, LOCAL_DEVICE_PREFIX};
use gradus_ir::{Code, Diagnostic, SourceSpan};
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// The records in a link's objects.
#[derive(Default)]
struct LinkRecords {
    /// The functions called but not defined by an object.
    missing: HashSet<String>,
    /// The records of functions that must be inlined into kernels.
    inlined_into_kernels: HashMap<String, String>,
    /// The records of calls.
    called: HashMap<String, String>,
}

/// Refuses calls of recorded functions across sources.
///
/// # Errors
/// The called function, with the line of the call.
pub(super) fn check(paths: &[PathBuf]) -> Result<(), Diagnostic> {
    let mut said = LinkRecords::default();
    for path in paths {
        match is_archive(path) {
            true => archive::members(path)
                .iter()
                .for_each(|member| said.add_object(member)),
            false => said.add_object(&files::read(path).unwrap_or_default()),
        }
    }
    let mut names: Vec<&String> = said
        .missing
        .iter()
        .filter(|name| said.inlined_into_kernels.contains_key(*name))
        .collect();
    names.sort();
    let Some(name) = names.first() else {
        // Not an error: no kernel calls a recorded function of another source.
        return Ok(());
    };
    let (defined, spelled) = span(&said.inlined_into_kernels[*name]);
    let name = if spelled.is_empty() { name } else { spelled };
    let message = format!(
        "the device function `{name}` uses thread indices, barriers or shared memory, and is called by a kernel in another source file"
    );
    let called = said.called.get(names[0]).and_then(|text| span(text).0);
    let finding = Diagnostic::error(Code::KernelRefused, message)
        .at(called, "called here")
        .at(defined, "defined here")
        .help("define the function in a header that both source files include, as `static` or `inline`");
    Err(finding)
}

/// Parses a location and a name, as recorded in objects.
fn span(text: &str) -> (Option<SourceSpan>, &str) {
    let mut parts = text.rsplitn(3, ':');
    let name = parts.next().unwrap_or_default();
    let line = parts.next().and_then(|line| line.parse().ok());
    let span = match (parts.next(), line) {
        (Some(file), Some(line)) if line > 0 => Some(SourceSpan {
            file: file.to_string(),
            line,
            column: 0,
            called_at: None,
        }),
        _ => None,
    };
    (span, name)
}

impl LinkRecords {
    fn add_object(&mut self, bytes: &[u8]) {
        let Ok(file) = object::File::parse(bytes) else {
            // Not an error: the file is not an object, and the linker reports it.
            return;
        };
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else {
                continue;
            };
            if let Some(name) = name
                .strip_prefix(DEVICE_PREFIX)
                .filter(|_| symbol.is_undefined())
            {
                self.missing.insert(name.to_string());
            }
            let text = || {
                let section = file.section_by_index(symbol.section_index()?).ok()?;
                let bytes = section.data_range(symbol.address(), symbol.size()).ok()??;
                Some(
                    String::from_utf8_lossy(bytes)
                        .trim_end_matches('\0')
                        .to_string(),
                )
            };
            if let Some(name) = name.strip_prefix(LOCAL_DEVICE_PREFIX) {
                self.inlined_into_kernels
                    .insert(name.to_string(), text().unwrap_or_default());
            } else if let Some(name) = name.strip_prefix(CALL_SITE_PREFIX) {
                self.called
                    .insert(name.to_string(), text().unwrap_or_default());
            }
        }
    }
}
