//! `cargo xtask survey erfa`: every function of the library with a real argument and a real result,
//! differentiated both ways and judged by differences; the table of done, refused and wrong.

use super::library::Library;
use super::points::{self, Point};
use super::program::{self, Modes};
use super::prototypes::Function;
use crate::gradus;
use crate::process::{self, Failure, Finished, Outcome};
use crate::table::Table;
use crate::workspace;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const BUILD_LIMIT: Duration = Duration::from_secs(120);
const JUDGE_LIMIT: Duration = Duration::from_secs(300);

/// Who differentiates.
pub enum Tool {
    /// Gradus, through `gradus cc`; the binary.
    Gradus(PathBuf),
    /// Dual numbers in C++: forward only; they show what the judge itself can tell.
    Dual,
}

/// What became of one function.
enum Verdict {
    /// Both modes agree with the differences.
    Done(Vec<Judged>),
    /// One mode is refused at least, none is wrong; with the reason.
    Refused(String),
    /// A derivative is wrong, or the program with it fails; with what was seen.
    Wrong(String),
    /// Nothing can be said; with the reason.
    Skipped(String),
}

/// The judge's line on one mode.
#[derive(Debug, PartialEq)]
struct Judged {
    mode: String,
    entries: usize,
    wrong: usize,
    unsure: usize,
    worst: f64,
    at: String,
}

/// Runs the survey: `erfa`, then functions (all, if none is named); `--tool dual` for dual numbers.
///
/// # Errors
/// Where a derivative is wrong, or fewer than 95 % are done.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let usage = || Failure::new("usage: cargo xtask survey erfa [--tool dual] [FUNCTION …]");
    let Some(([library], names)) = arguments.split_at_checked(1).map(|(a, b)| (a, b.to_vec()))
    else {
        return Err(usage());
    };
    if library != "erfa" {
        return Err(usage());
    }
    let (tool, names) = match names.split_first() {
        Some((option, rest)) if option == "--tool" => match rest.split_first() {
            Some((name, rest)) if name == "dual" => (Some(Tool::Dual), rest.to_vec()),
            _ => return Err(usage()),
        },
        _ => (gradus::binary()?.map(Tool::Gradus), names),
    };
    let Some(tool) = tool else {
        return Err(Failure::new(
            "gradus is not there yet; --tool dual surveys dual numbers",
        ));
    };
    let tally = survey(&tool, &names)?;
    println!("{}", tally.table);
    println!("{}", tally.summary());
    tally.check()
}

/// What a survey found.
pub struct Tally {
    /// A row for each function.
    pub table: Table,
    done: usize,
    refused: usize,
    wrong: usize,
    skipped: usize,
}

impl Tally {
    /// The counts, in words.
    pub fn summary(&self) -> String {
        let judged = self.done + self.refused + self.wrong;
        format!(
            "{judged} functions: {} done, {} refused, {} wrong ({} not judged)",
            self.done, self.refused, self.wrong, self.skipped
        )
    }

    fn check(&self) -> Outcome<()> {
        let judged = self.done + self.refused + self.wrong;
        if self.wrong > 0 {
            return Err(Failure::new(format!("{} wrong derivatives", self.wrong)));
        }
        if self.done * 100 < judged * 95 {
            return Err(Failure::new(format!(
                "{} of {judged} done: fewer than 95 %",
                self.done
            )));
        }
        Ok(())
    }
}

/// Surveys the named functions, or all.
///
/// # Errors
/// Where the library cannot be had, or a name is not one of its functions.
pub fn survey(tool: &Tool, names: &[String]) -> Outcome<Tally> {
    let library = Library::open()?;
    let folder = workspace::target().join("survey");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let points = points::record(&library, &folder)?;
    let judge = Survey {
        library: &library,
        tool,
        folder: &folder,
        judge: build_judge(&folder)?,
    };
    let mut functions: Vec<&Function> = library
        .functions
        .iter()
        .filter(|f| f.is_differentiable())
        .collect();
    if !names.is_empty() {
        functions = names
            .iter()
            .map(|n| library.function(n))
            .collect::<Outcome<_>>()?;
    }
    let verdicts = judge.all(&functions, &points);
    let mut tally = Tally {
        table: Table::new(&[
            "function", "", "forward", "reverse", "entries", "unsure", "note",
        ]),
        done: 0,
        refused: 0,
        wrong: 0,
        skipped: 0,
    };
    for (function, verdict) in functions.iter().zip(verdicts) {
        let row = match verdict {
            Verdict::Done(judged) => {
                tally.done += 1;
                done_row(&judged)
            }
            Verdict::Refused(why) => {
                tally.refused += 1;
                told("refused", why)
            }
            Verdict::Wrong(what) => {
                tally.wrong += 1;
                told("WRONG", what)
            }
            Verdict::Skipped(why) => {
                tally.skipped += 1;
                told("not judged", why)
            }
        };
        tally.table.row([vec![function.name.clone()], row].concat());
    }
    Ok(tally)
}

fn told(verdict: &str, note: String) -> Vec<String> {
    let none = String::new;
    vec![verdict.into(), none(), none(), none(), none(), note]
}

fn done_row(judged: &[Judged]) -> Vec<String> {
    let mode = |name: &str| judged.iter().find(|j| j.mode == name);
    let worst = |name: &str| mode(name).map_or(String::new(), |j| format!("{:.0e}", j.worst));
    let first = judged.first();
    vec![
        "done".into(),
        worst("tangent"),
        worst("adjoint"),
        first.map_or(String::new(), |j| j.entries.to_string()),
        first.map_or(String::new(), |j| j.unsure.to_string()),
    ]
}

/// What the survey of a function needs.
struct Survey<'a> {
    library: &'a Library,
    tool: &'a Tool,
    folder: &'a Path,
    /// The judge's object.
    judge: PathBuf,
}

/// The judge, and the headers that the units take in, from this crate's own text.
fn build_judge(folder: &Path) -> Outcome<PathBuf> {
    for (name, text) in [
        ("judge.h", include_str!("judge.h")),
        ("judge.c", include_str!("judge.c")),
        ("dual.hpp", include_str!("dual.hpp")),
    ] {
        std::fs::write(folder.join(name), text)
            .map_err(|e| Failure::new(format!("{name}: {e}")))?;
    }
    let object = folder.join("judge.o");
    let mut clang = Command::new(workspace::clang());
    clang
        .args(["-O2", "-c", "judge.c", "-o"])
        .arg(&object)
        .current_dir(folder);
    process::capture(&mut clang)?;
    Ok(object)
}

impl Survey<'_> {
    /// The verdicts, in the functions' order; on all cores, with progress shown.
    fn all(&self, functions: &[&Function], points: &BTreeMap<String, Vec<Point>>) -> Vec<Verdict> {
        let next = AtomicUsize::new(0);
        let verdicts: Mutex<Vec<(usize, Verdict)>> = Mutex::new(Vec::new());
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(function) = functions.get(i) else {
                            break;
                        };
                        progress(i, functions.len(), &function.name);
                        let verdict = self.one(function, points.get(&function.name));
                        if let Ok(mut all) = verdicts.lock() {
                            all.push((i, verdict));
                        }
                    }
                });
            }
        });
        let mut all = verdicts.into_inner().unwrap_or_default();
        all.sort_by_key(|(i, _)| *i);
        all.into_iter().map(|(_, verdict)| verdict).collect()
    }

    fn one(&self, function: &Function, points: Option<&Vec<Point>>) -> Verdict {
        let Some(points) = points else {
            return Verdict::Skipped("ERFA's test program does not call it".into());
        };
        let folder = self.folder.join(&function.name);
        match self.judge(function, points, &folder) {
            Ok(verdict) => verdict,
            Err(failure) => Verdict::Skipped(failure.to_string()),
        }
    }

    fn judge(&self, function: &Function, points: &[Point], folder: &Path) -> Outcome<Verdict> {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
        let write = |name: &str, text: String| {
            std::fs::write(folder.join(name), text)
                .map_err(|e| Failure::new(format!("{name}: {e}")))
        };
        write(
            "primal.c",
            program::primal_unit(self.library, function, points),
        )?;
        let mut clang = Command::new(workspace::clang());
        process::capture(
            self.units(&mut clang, folder)
                .args(["-c", "primal.c", "-o", "primal.o"]),
        )?;
        let modes = if matches!(self.tool, Tool::Dual) {
            Modes::Dual
        } else {
            Modes::Both
        };
        let name = if modes == Modes::Dual {
            "derivative.cpp"
        } else {
            "derivative.c"
        };
        write(
            name,
            program::derivative_unit(self.library, function, modes),
        )?;
        let built = self.derivative(name, folder)?;
        if built.succeeded() {
            return self.judged(folder);
        }
        let reason = match built.status {
            None => "the compiler was stopped at its time limit".to_owned(),
            Some(_) => gradus::reason(&built.stderr),
        };
        // Which mode is it?
        let mut refused = Vec::new();
        for (modes, word) in [(Modes::Forward, "forward"), (Modes::Reverse, "reverse")] {
            if self.tool.is_gradus() {
                write(
                    name,
                    program::derivative_unit(self.library, function, modes),
                )?;
                if !self.derivative(name, folder)?.succeeded() {
                    refused.push(word);
                } else if let wrong @ Verdict::Wrong(_) = self.judged(folder)? {
                    return Ok(wrong);
                }
            }
        }
        Ok(Verdict::Refused(format!(
            "{}: {reason}",
            refused.join(" and ")
        )))
    }

    fn units<'c>(&self, compiler: &'c mut Command, folder: &Path) -> &'c mut Command {
        compiler
            .args(["-w", "-O2", "-I"])
            .arg(self.folder)
            .arg("-I")
            .arg(&self.library.folder)
            .current_dir(folder)
    }

    fn derivative(&self, name: &str, folder: &Path) -> Outcome<Finished> {
        let mut compiler = match self.tool {
            Tool::Gradus(binary) => {
                let mut gradus = Command::new(binary);
                gradus.arg("cc");
                gradus
            }
            Tool::Dual => {
                let mut clang = Command::new(workspace::clang());
                clang.args(["-x", "c++", "-std=c++17"]);
                clang
            }
        };
        process::within(
            self.units(&mut compiler, folder)
                .args(["-c", name, "-o", "derivative.o"]),
            BUILD_LIMIT,
        )
    }

    fn judged(&self, folder: &Path) -> Outcome<Verdict> {
        let mut link = Command::new(workspace::clang());
        link.args(["primal.o", "derivative.o"])
            .arg(&self.judge)
            .args(["-lm", "-o", "judged"])
            .current_dir(folder);
        let linked = process::within(&mut link, BUILD_LIMIT)?;
        if !linked.succeeded() {
            return Ok(Verdict::Wrong(format!(
                "does not link: {}",
                gradus::reason(&linked.stderr)
            )));
        }
        let done = process::within(&mut Command::new(folder.join("judged")), JUDGE_LIMIT)?;
        Ok(verdict(&done))
    }
}

impl Tool {
    fn is_gradus(&self) -> bool {
        matches!(self, Tool::Gradus(_))
    }
}

/// What the judge's program says.
fn verdict(done: &Finished) -> Verdict {
    if !done.succeeded() {
        return Verdict::Wrong(format!(
            "the program with the derivative: {}",
            done.ending()
        ));
    }
    if done.stdout.lines().any(|line| line == "moved") {
        return Verdict::Wrong("the derivative's own results differ from the function's".into());
    }
    let judged: Option<Vec<Judged>> = done.stdout.lines().map(parse).collect();
    let Some(judged) = judged.filter(|all| !all.is_empty()) else {
        return Verdict::Wrong(format!("the judge says `{}`", done.stdout.trim()));
    };
    match judged.iter().find(|j| j.wrong > 0) {
        Some(j) => Verdict::Wrong(format!(
            "{}: {} of {} entries; {}",
            j.mode, j.wrong, j.entries, j.at
        )),
        None if judged.iter().all(|j| j.unsure == j.entries) => {
            Verdict::Skipped("differences cannot tell any entry".into())
        }
        None => Verdict::Done(judged),
    }
}

fn parse(line: &str) -> Option<Judged> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |label: &str| {
        words
            .iter()
            .position(|w| *w == label)
            .and_then(|i| words.get(i + 1))
            .copied()
    };
    let count = |label: &str| after(label)?.parse().ok();
    Some(Judged {
        mode: words.first()?.to_string(),
        entries: count("entries")?,
        wrong: count("wrong")?,
        unsure: count("unsure")?,
        worst: after("worst")?.parse().ok()?,
        at: format!(
            "y[{}] by x[{}] is {}, differences say {}",
            after("row")?,
            after("column")?,
            after("derivative")?,
            after("difference")?
        ),
    })
}

/// One line that is overwritten in a terminal; every twentieth elsewhere.
fn progress(i: usize, n: usize, name: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{}/{n} {name:<20}", i + 1);
        if i + 1 == n {
            eprintln!();
        }
    } else if i.is_multiple_of(20) {
        eprintln!("{}/{n} {name}", i + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judges_lines_are_read() {
        let line = "tangent entries 12 wrong 1 unsure 2 worst 1.000e+00 row 2 column 3 derivative 0.5 difference 1";
        let judged = parse(line).unwrap();
        assert_eq!((judged.entries, judged.wrong, judged.unsure), (12, 1, 2));
        assert_eq!(judged.at, "y[2] by x[3] is 0.5, differences say 1");
        assert!(parse("nonsense").is_none());
    }

    /// y = (sin(x0) x1, x0²); its derivatives are off by WRONG, their own result by MOVED.
    const UNIT: &str = "#include \"judge.h\"\n#include <math.h>\n
        const char judge_name[] = \"test\";
        const int judge_ny = 2, judge_points_count = 1;
        static const double x0[] = {0.7, 1e6};
        const judge_point judge_points[] = {{2, x0, 0, 0}};
        void judge_primal(const double *x, double *y, const int *fixed, const char *text, int *status)
        { y[0] = sin(x[0]) * x[1]; y[1] = x[0] * x[0]; }
        static void tangent(const double *x, const double *x_tan, double *y, double *y_tan, const int *fixed, const char *text)
        { y[0] = sin(x[0]) * x[1]; y[1] = x[0] * x[0] + MOVED;
          y_tan[0] = cos(x[0]) * x_tan[0] * x[1] + sin(x[0]) * x_tan[1] * (1 + WRONG); y_tan[1] = 2 * x[0] * x_tan[0]; }
        static void adjoint(const double *x, double *x_adj, double *y, double *y_adj, const int *fixed, const char *text)
        { x_adj[0] += cos(x[0]) * x[1] * y_adj[0] + 2 * x[0] * (1 - WRONG) * y_adj[1]; x_adj[1] += sin(x[0]) * y_adj[0]; }
        void (*const judge_tangent)(const double *, const double *, double *, double *, const int *, const char *) = tangent;
        void (*const judge_adjoint)(const double *, double *, double *, double *, const int *, const char *) = adjoint;";

    fn judged_unit(name: &str, wrong: &str, moved: &str) -> Verdict {
        let folder = workspace::target().join("judge-test").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let judge = build_judge(&folder).unwrap();
        std::fs::write(folder.join("unit.c"), UNIT).unwrap();
        let mut clang = Command::new(workspace::clang());
        clang.args([
            &format!("-DWRONG={wrong}"),
            &format!("-DMOVED={moved}"),
            "-w",
            "unit.c",
        ]);
        process::capture(
            clang
                .arg(&judge)
                .args(["-lm", "-o", "unit"])
                .current_dir(&folder),
        )
        .unwrap();
        verdict(&process::within(&mut Command::new(folder.join("unit")), JUDGE_LIMIT).unwrap())
    }

    #[test]
    fn the_judge_accepts_what_is_right() {
        let Verdict::Done(judged) = judged_unit("right", "0", "0") else {
            panic!("not done")
        };
        assert_eq!(judged.len(), 2);
        assert!(
            judged
                .iter()
                .all(|j| j.entries == 4 && j.unsure == 0 && j.worst < 1e-9),
            "{judged:?}"
        );
    }

    #[test]
    fn the_judge_rejects_what_is_wrong() {
        for (name, wrong) in [
            ("little", "1e-5"),
            ("sign", "-2"),
            ("nan", "NAN"),
            ("much", "1e9"),
        ] {
            assert!(
                matches!(judged_unit(name, wrong, "0"), Verdict::Wrong(_)),
                "{wrong}"
            );
        }
        assert!(matches!(
            judged_unit("moved", "0", "1e-9"),
            Verdict::Wrong(_)
        ));
    }

    #[test]
    fn a_program_that_fails_is_wrong() {
        let done = process::within(
            Command::new("sh").args(["-c", "kill -SEGV $$"]),
            JUDGE_LIMIT,
        )
        .unwrap();
        assert!(matches!(verdict(&done), Verdict::Wrong(_)));
    }
}
