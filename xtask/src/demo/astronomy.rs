//! Stage 1: functions of ERFA, an unmodified library. A small C program requests the derivative of each
//! function (`__enzyme_fwddiff`, `__enzyme_autodiff`) and checks the result.

use super::Kitchen;
use crate::process::{Failure, Outcome};
use crate::survey::Library;
use std::collections::BTreeSet;

/// Program: name, text, differentiated function of ERFA, called functions, and introduction.
struct Program {
    name: &'static str,
    text: &'static str,
    function: &'static str,
    calls: &'static [&'static str],
    says: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "earth",
        text: include_str!("earth.c"),
        function: "eraEpv00",
        calls: &[],
        says: "d(position of Earth)/dt (forward mode) equals the velocity that the function returns.",
    },
    Program {
        name: "moon",
        text: include_str!("moon.c"),
        function: "eraMoon98",
        calls: &["eraTrxp", "eraPpp"],
        says: "d(position of the Moon)/dt (forward mode) deviates from the velocity that the function returns.",
    },
    Program {
        name: "pull",
        text: include_str!("pull.c"),
        function: "eraEpv00",
        calls: &[],
        says: "d²(distance Earth-Sun)/dt²: forward over reverse, and the other orders.",
    },
    Program {
        name: "star",
        text: include_str!("star.c"),
        function: "eraAtco13",
        calls: &[],
        says: "Observed position of a star by eighteen inputs (one reverse pass).",
    },
];

/// Builds and runs the programs.
///
/// # Errors
/// Fails if ERFA is not available, if Gradus refuses a function, or if a check fails.
pub fn run(kitchen: &Kitchen) -> Outcome<()> {
    let library = Library::open()?;
    kitchen.write("erfa_demo.h", include_str!("erfa_demo.h"))?;
    let mut failed = Vec::new();
    for program in PROGRAMS {
        if let Err(failure) = one(kitchen, &library, program) {
            println!("  FAILED: {failure}");
            failed.push(program.function);
        }
        println!();
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(failed.join(", ")))
    }
}

fn one(kitchen: &Kitchen, library: &Library, program: &Program) -> Outcome<()> {
    let erfa = format!("-I{}", library.folder.display());
    let files = library.closure(program.function);
    println!(
        "  {}, {} of ERFA's files: {}",
        program.function,
        files.len(),
        program.says
    );
    let folder = kitchen.folder.join(program.name);
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let called = program.calls.iter().flat_map(|name| library.closure(name));
    let all: BTreeSet<&str> = files.iter().copied().chain(called).collect();
    let includes: String = all.iter().map(|f| format!("#include \"{f}\"\n")).collect();
    kitchen.write(&format!("{}/erfa_sources.h", program.name), &includes)?;
    let source = format!("{}.c", program.name);
    kitchen.write(&format!("{0}/{0}.c", program.name), program.text)?;
    let arguments = [
        "cc",
        "-O2",
        "-I.",
        "-I..",
        &erfa,
        &source,
        "-lm",
        "-o",
        program.name,
    ];
    kitchen.gradus(&arguments, &folder)?;
    kitchen.show(&folder.join(program.name))
}
