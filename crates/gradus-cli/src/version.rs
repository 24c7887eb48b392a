//! `gradus --version`: the versions of Gradus, of LLVM and of the compilers.

use crate::said::outln;
use gradus::{Language, Settings};
use std::path::Path;
use std::process::{Command, Stdio};

/// Gradus's own version with the commit; `build.rs` determines the commit.
pub const OWN: &str = concat!(
    "gradus ",
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("GRADUS_COMMIT"),
    ")"
);

/// Prints the versions. Returns the exit status.
pub fn run(settings: &Settings) -> u8 {
    outln!("{OWN}");
    outln!("LLVM {}", env!("GRADUS_LLVM_VERSION"));
    for (name, language) in [("clang", Language::C), ("flang", Language::Fortran)] {
        let compiler = settings.compiler(language);
        let line = compiler.ok().and_then(|path| first_line(&path));
        outln!("{name}: {}", line.as_deref().unwrap_or("not found"));
    }
    outln!("host: {}", env!("GRADUS_HOST"));
    0
}

/// Returns the first line that a compiler prints about its version, with the path.
fn first_line(compiler: &Path) -> Option<String> {
    let mut asked = Command::new(compiler);
    asked
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = asked
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(format!("{} ({})", text.lines().next()?, compiler.display()))
}
