//! `cargo xtask demo`: checked examples of Gradus on real code.
//!
//! The stages run in order. Each stage runs the binary `gradus` and programs that check the derivatives. A
//! stage that cannot run reports the reason, and the demo fails.
//!
//! # Invariants
//! Every printed result was computed in the present run.

mod astronomy;
mod kernels;
mod objectives;
mod optimised;
mod readme;

use crate::gradus;
use crate::process::{self, Failure, Outcome};
use crate::{setup, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Stage of the demo.
struct Stage {
    title: &'static str,
    run: fn(&Kitchen) -> Outcome<()>,
}

const STAGES: &[Stage] = &[
    Stage {
        title: "ERFA, a library of astronomers",
        run: astronomy::run,
    },
    Stage {
        title: "Three objectives of ADBench, compared with hand-written gradients",
        run: objectives::run,
    },
    Stage {
        title: "The README's example",
        run: readme::run,
    },
    Stage {
        title: "Differentiation of optimised code",
        run: optimised::run,
    },
    Stage {
        title: "The gradient of a CUDA program, without a GPU",
        run: kernels::run,
    },
];

/// Environment of the stages.
struct Kitchen {
    /// Path of the binary `gradus`.
    gradus: PathBuf,
    /// Folder for built programs.
    folder: PathBuf,
}

const BUILD_LIMIT: Duration = Duration::from_secs(180);
const RUN_LIMIT: Duration = Duration::from_secs(300);

/// Runs the demo, or the stages with the given numbers.
///
/// # Errors
/// Fails if a stage cannot run or if one of its checks fails.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let chosen: Vec<usize> = arguments
        .iter()
        .map(|a| a.parse().ok().filter(|n| (1..=STAGES.len()).contains(n)))
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::new("usage: cargo xtask demo [STAGE …], with stage numbers"))?;
    setup::run(&[])?;
    let folder = workspace::target().join("demo");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let Some(gradus) = gradus::binary()? else {
        for (i, stage) in STAGES.iter().enumerate() {
            println!(
                "{}. {}\n   skipped: this clone has no command line (`gradus`)",
                i + 1,
                stage.title
            );
        }
        return Err(Failure::new(
            "no stage can run without `gradus`; README.md lists the available parts",
        ));
    };
    let kitchen = Kitchen { gradus, folder };
    let mut failed = Vec::new();
    for (i, stage) in STAGES.iter().enumerate() {
        if !chosen.is_empty() && !chosen.contains(&(i + 1)) {
            continue;
        }
        println!("\n{}. {}\n", i + 1, stage.title);
        let start = Instant::now();
        if let Err(failure) = (stage.run)(&kitchen) {
            println!("  FAILED: {failure}");
            failed.push(stage.title);
        }
        println!("  ({:.1} s)", start.elapsed().as_secs_f64());
    }
    if failed.is_empty() {
        println!("{}", next(&kitchen));
        Ok(())
    } else {
        Err(Failure::new(format!("failed: {}", failed.join("; "))))
    }
}

/// Returns suggestions for further commands.
fn next(kitchen: &Kitchen) -> String {
    let gradus = kitchen.gradus.display();
    format!(
        "\nType next:\n  {gradus} grad FILE.c -f FUNCTION --wrt ARGUMENT -o FILE.o     your own function's gradient\n  \
         {gradus} check FILE.c -f FUNCTION --arg n=100 --arg 'x=rand(n)'   is it right?\n  \
         cargo xtask survey erfa                                    all of ERFA, function by function\n  \
         cargo xtask bench                                          ten programs, beside gradients by hand"
    )
}

impl Kitchen {
    /// Runs `gradus` with arguments in `folder` and returns the standard output.
    ///
    /// # Errors
    /// Fails if `gradus` refuses the program or fails; the failure holds the output.
    fn gradus(&self, arguments: &[&str], folder: &Path) -> Outcome<String> {
        let mut command = Command::new(&self.gradus);
        command.args(arguments).current_dir(folder);
        let done = process::within(&mut command, BUILD_LIMIT)?;
        if done.succeeded() {
            Ok(done.stdout)
        } else {
            let line = process::line(&command);
            Err(Failure::new(format!(
                "`{line}`: {}\n{}",
                done.ending(),
                done.stderr.trim_end()
            )))
        }
    }

    /// Runs a program that prints its results and returns status 0 if all checks pass.
    ///
    /// # Errors
    /// Fails if a check fails.
    fn show(&self, program: &Path) -> Outcome<()> {
        let done = process::within(&mut Command::new(program), RUN_LIMIT)?;
        print!("{}", done.stdout);
        if done.succeeded() {
            Ok(())
        } else {
            Err(Failure::new(format!(
                "{}: {} {}",
                program.display(),
                done.ending(),
                done.stderr.trim_end()
            )))
        }
    }

    /// Writes a file into the demo's folder.
    fn write(&self, name: &str, text: &str) -> Outcome<()> {
        std::fs::write(self.folder.join(name), text)
            .map_err(|e| Failure::new(format!("{name}: {e}")))
    }
}
