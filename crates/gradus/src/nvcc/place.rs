//! Where things are, in the words of nvcc's `-v` that build systems read.

use crate::{Settings, runtime};
use gradus_ir::Diagnostic;
use std::path::Path;

/// The toolkit's folder, its headers, the GPU that code is written for, and who links programs: we do, as only we know
/// our run-time library. For links by other compilers the library lies in a folder under the names of CUDA's. The lines of
/// the link are such by form; nothing runs them.
///
/// # Errors
/// Where the library cannot be written.
pub(super) fn told(settings: &Settings) -> Result<String, Diagnostic> {
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
        // What links, and who has it linked: the last is who is called.
        format!(" ld -o a.out {named}\n"),
        format!("#$ \"{}\" -o a.out {named}\n", linker(settings)),
    ]
    .concat())
}

/// The command that links a program: the word that we were called by.
fn linker(settings: &Settings) -> String {
    let called = settings
        .command
        .first()
        .map(String::as_str)
        .unwrap_or("gradus-nvcc");
    match called.contains('/') {
        true => called.to_string(),
        false => settings
            .find(called)
            .map_or(called.to_string(), |file| file.display().to_string()),
    }
}
