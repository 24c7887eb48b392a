//! Stage 1: real code that nobody here wrote. Three functions of ERFA, each in a small C program that asks
//! for the derivative (`__enzyme_fwddiff`, `__enzyme_autodiff`) and checks it.

use super::Kitchen;
use crate::erfa::Library;
use crate::process::Outcome;

/// A program: its name, its text, the function of ERFA, and what to say before it.
struct Program {
    name: &'static str,
    text: &'static str,
    function: &'static str,
    says: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "earth",
        text: include_str!("earth.c"),
        function: "eraEpv00",
        says: "Earth's position by time (forward): the velocity that the same function returns.",
    },
    Program {
        name: "moon",
        text: include_str!("moon.c"),
        function: "eraMoon98",
        says: "The Moon's position by time (forward): not quite the velocity that the function returns.",
    },
    Program {
        name: "star",
        text: include_str!("star.c"),
        function: "eraAtco13",
        says: "Where a star is seen, by eighteen numbers (one return sweep).",
    },
];

/// Builds and runs the programs.
///
/// # Errors
/// Where ERFA cannot be had, Gradus refuses, or a check does not hold.
pub fn run(kitchen: &Kitchen) -> Outcome<()> {
    let library = Library::open()?;
    let erfa = format!("-I{}", library.folder.display());
    kitchen.write("erfa_demo.h", include_str!("erfa_demo.h"))?;
    for program in PROGRAMS {
        let files = library.closure(program.function);
        println!(
            "  {} {} ({} of ERFA's files)",
            program.function,
            program.says,
            files.len()
        );
        let folder = kitchen.folder.join(program.name);
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let includes: String = files
            .iter()
            .map(|f| format!("#include \"{f}\"\n"))
            .collect();
        kitchen.write(&format!("{}/erfa_sources.h", program.name), &includes)?;
        let source = format!("{}.c", program.name);
        kitchen.write(&format!("{0}/{0}.c", program.name), program.text)?;
        let include = ["-I.", "-I..", erfa.as_str()];
        let cc = ["cc", "-O2"];
        kitchen.gradus(
            &[
                &cc[..],
                &include,
                &[source.as_str(), "-lm", "-o", program.name],
            ]
            .concat(),
            &folder,
        )?;
        kitchen.show(&folder.join(program.name))?;
        println!();
    }
    Ok(())
}
