//! Checks random call graphs of regions and worksharing functions: each construct has the right count on a
//! single thread and on several.
//!
//! The process compiles the files separately, at a level of LLVM's optimiser, or one of the files by clang.
//! `gradus cc` links the objects with the runtime library.

use crate::generate::{SHARES_INCLUDES, SharesProgram};
use crate::run::verdict::Verdict;
use gradus_pipeline::{CallsTask, Input, Level, Options, OutputKind, Request, Task, compile};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};

/// The number of threads that the program requests, the default number, and whether every loop forks.
const THREADS: [(&str, &str, &str); 3] = [("1", "1", "0"), ("3", "3", "1"), ("4", "2", "0")];
/// The time limit of a module's programs, in seconds.
const TIME_LIMIT_SECONDS: &str = "300";

/// The route of a batch of call graphs through the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharesWay {
    /// The level of the optimiser.
    pub level: Level,
    /// True if the files carry debug information.
    pub debug: bool,
    /// The file that clang compiles alone.
    pub foreign: Option<usize>,
    /// True if clang's optimiser runs before Gradus.
    pub optimised: bool,
    /// True if results must be bitwise independent of the number of threads.
    pub deterministic: bool,
}

impl SharesWay {
    /// Returns the route of a batch.
    pub fn of(batch: u64) -> SharesWay {
        let levels = [Level::O2, Level::O0, Level::O3, Level::O1];
        SharesWay {
            level: levels[(batch % 4) as usize],
            debug: batch / 4 % 2 == 1,
            foreign: match batch % 3 {
                0 => None,
                1 => Some((batch / 3 % 2) as usize),
                _ => None,
            },
            optimised: batch % 5 == 3,
            deterministic: batch % 7 == 6,
        }
    }

    fn flag(&self) -> &'static str {
        match self.level {
            Level::O0 => "-O0",
            Level::O1 => "-O1",
            Level::O2 => "-O2",
            Level::O3 => "-O3",
        }
    }
}

/// Checks programs, compiled together in `folder`, with one verdict for each. `gradus` links them.
///
/// # Errors
/// A compiler refuses the programs.
pub fn check_shares(
    programs: &[SharesProgram],
    way: &SharesWay,
    gradus: &Path,
    folder: &Path,
) -> Result<Vec<Verdict>, String> {
    let mut objects = Vec::new();
    for file in 0..2 {
        let mut source = String::from(SHARES_INCLUDES);
        programs
            .iter()
            .for_each(|p| source.push_str(&p.files[file]));
        let name = format!("part{file}");
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes).map_err(|e| format!("{name}: {e}"))
        };
        write(&format!("{name}.c"), source.as_bytes())?;
        let object = format!("{name}.o");
        match way.foreign == Some(file) {
            true => clang(folder, way, &["-c", &format!("{name}.c"), "-o", &object])?,
            false => {
                let unoptimised: &[&str] = match way.level {
                    _ if way.optimised => &[],
                    Level::O0 => &["-Xclang", "-disable-O0-optnone"],
                    _ => &["-Xclang", "-disable-llvm-passes"],
                };
                let bitcode = format!("{name}.bc");
                let source = format!("{name}.c");
                let to = ["-c", "-emit-llvm", &source, "-o", &bitcode];
                clang(folder, way, &[unoptimised, &to].concat())?;
                let bytes = std::fs::read(folder.join(&bitcode)).map_err(|e| e.to_string())?;
                write(&object, &compiled(&name, &bytes, way)?)?;
            }
        }
        objects.push(object);
    }
    std::fs::write(folder.join("main.c"), main_of(programs)).map_err(|e| e.to_string())?;
    let mut link = Command::new(gradus);
    link.args(["cc", "-O1", "-w", "-fopenmp", "main.c"])
        .args(&objects);
    done(link.args(["-o", "program"]).current_dir(folder))?;
    let mut verdicts = vec![Verdict::Right; programs.len()];
    for (threads, default, forced) in THREADS {
        let mut run = Command::new("timeout");
        run.args([TIME_LIMIT_SECONDS, "./program", threads]);
        run.env("OMP_NUM_THREADS", default);
        run.env("GRADUS_FORCE_FORK", forced);
        let output = run
            .current_dir(folder)
            .stderr(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = told.lines();
        for verdict in &mut verdicts {
            let why = match lines.next() {
                Some("0") => continue,
                Some(wrong) => {
                    format!("on {threads} threads {wrong} constructs have a wrong count")
                }
                None => format!(
                    "on {threads} threads the program does not finish: {}",
                    output.status
                ),
            };
            if *verdict == Verdict::Right {
                *verdict = Verdict::Wrong(why);
            }
        }
    }
    Ok(verdicts)
}

/// Returns the object of a part.
fn compiled(name: &str, bitcode: &[u8], way: &SharesWay) -> Result<Vec<u8>, String> {
    let request = Request {
        inputs: vec![Input::new(name, bitcode)],
        task: Task::Calls(CallsTask::default()),
        report: false,
        emit: vec![OutputKind::Object],
        level: way.level,
        options: Options {
            parallel: true,
            deterministic: way.deterministic,
            ..Options::default()
        },
    };
    let reply = catch_unwind(AssertUnwindSafe(|| compile(&request)));
    let reply = reply.map_err(|_| format!("{name}: the pipeline panics"))?;
    let object = reply.outputs.into_iter().next();
    object.map(|output| output.bytes).ok_or_else(|| {
        let first = reply.diagnostics.first();
        format!(
            "{name}: {}",
            first.map_or("the compiler produced no output", |d| &d.message)
        )
    })
}

fn clang(folder: &Path, way: &SharesWay, arguments: &[&str]) -> Result<(), String> {
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let mut command = Command::new(clang);
    command.args([way.flag(), "-fopenmp", "-w"]).args(arguments);
    if way.debug {
        command.arg("-g");
    }
    done(command.current_dir(folder))
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// Returns a `main` that calls one program after the other, with a line for each.
fn main_of(programs: &[SharesProgram]) -> String {
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n");
    for program in programs {
        let _ = writeln!(text, "long {}(int);", program.function);
    }
    text.push_str("int main(int count, char **words) {\n  int threads = atoi(words[1]);\n");
    for SharesProgram { function, .. } in programs {
        let _ = writeln!(text, "  long {function}_wrong = 0;");
        let _ = writeln!(
            text,
            "  for (int k = 0; k < 3; k++) {function}_wrong += {function}(threads);"
        );
        let _ = writeln!(
            text,
            "  printf(\"%ld\\n\", {function}_wrong); fflush(stdout);"
        );
    }
    text.push_str("}\n");
    text
}
