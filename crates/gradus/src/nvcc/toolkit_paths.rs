//! Toolkit paths, in the format of nvcc's `-v` output parsed by build systems.

use crate::{Settings, files, runtime};
use gradus_ir::Diagnostic;
use std::path::Path;

/// Returns toolkit folder, headers, target GPU and link command. The driver is named as the linker,
/// since only the driver knows the runtime library. For links by foreign compilers the library is written
/// to a folder under the names of CUDA's libraries. The link lines are printed only; nothing runs the
/// lines.
///
/// # Errors
/// The library or the link cannot be written.
pub(super) fn toolkit_paths(settings: &Settings) -> Result<String, Diagnostic> {
    let lib = settings.store.join("lib");
    runtime::write_libraries(&lib)?;
    let headers = settings.include.clone().unwrap_or_default();
    let root = headers
        .parent()
        .unwrap_or(Path::new("/"))
        .display()
        .to_string();
    let folders = settings
        .path
        .iter()
        .map(|folder| folder.display().to_string());
    let path = folders.collect::<Vec<_>>().join(":");
    let libraries = format!("\"-L{}\"", lib.display());
    let named = format!("{libraries} -lcudadevrt -lcudart_static -lrt -lpthread -ldl");
    Ok([
        format!("#$ _HERE_={root}/bin\n"),
        format!("#$ TOP={root}\n"),
        format!("#$ NVVMIR_LIBRARY_DIR={root}/nvvm/libdevice\n"),
        format!("#$ PATH={path}\n"),
        format!("#$ INCLUDES=\"-I{}\"\n", headers.join("cuda").display()),
        format!("#$ LIBRARIES= {libraries}\n"),
        "#$ device -arch compute_70\n".to_string(),
        // The linker, and the driver that runs it: build systems call the last.
        format!(" ld -o a.out {named}\n"),
        format!("#$ \"{}\" -o a.out {named}\n", linker(settings)?),
    ]
    .concat())
}

/// The names under which the command acts as nvcc.
const DRIVER_NAMES: [&str; 2] = ["gradus-nvcc", "nvcc"];

/// Returns the command that links a program: one word, since build systems call the word with the arguments of a
/// link. Called as `gradus nvcc`, the command is a link in the folder of kept files.
///
/// # Errors
/// The link cannot be made.
fn linker(settings: &Settings) -> Result<String, Diagnostic> {
    let called = settings.command.first().map_or("", String::as_str);
    let (folder, name) = called.rsplit_once('/').unwrap_or(("", called));
    if DRIVER_NAMES.contains(&name) {
        let found = settings.find(name).filter(|_| folder.is_empty());
        return Ok(found.map_or(called.to_string(), |file| file.display().to_string()));
    }
    let beside = settings.program.with_file_name(DRIVER_NAMES[0]);
    if beside.is_file() {
        return Ok(beside.display().to_string());
    }
    let link = settings.store.join("bin").join(DRIVER_NAMES[0]);
    files::link_to(&settings.program, &link)?;
    Ok(link.display().to_string())
}
