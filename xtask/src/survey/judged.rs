//! Judges the subjects of a survey: builds the reference and the derivatives of each subject, runs the judge,
//! and counts the verdicts: done, refused, wrong.

use super::subject::{self, Collection, Modes, Subject, Units};
use crate::gradus;
use crate::process::{self, Failure, Finished, Outcome};
use crate::table::Table;
use crate::workspace;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const BUILD_LIMIT: Duration = Duration::from_secs(240);
const JUDGE_LIMIT: Duration = Duration::from_secs(300);

/// Codes that report an internal error of Gradus. A diagnostic with such a code is no refusal.
const FAULTS: &[&str] = &["GRD0024", "GRD0025", "GRD0030"];

/// Tool that differentiates.
pub enum Tool {
    /// Gradus, through `gradus cc`; holds the path of the binary.
    Gradus(PathBuf),
    /// Dual numbers in C++, in forward mode only. The comparison measures the judge's own accuracy.
    Dual,
}

/// Verdict on one function.
enum Verdict {
    /// Both modes agree with finite differences. The flag says that the user must add the remedy.
    Done(Vec<Judged>, bool),
    /// At least one mode is refused and none is wrong; holds the reason.
    Refused(String),
    /// A derivative is wrong, or the program fails; holds the observation.
    Wrong(String),
    /// No verdict is possible; holds the reason.
    Skipped(String),
}

/// Line of the judge on one mode.
#[derive(Debug, PartialEq)]
struct Judged {
    mode: String,
    entries: usize,
    wrong: usize,
    unsure: usize,
    /// Points at which the code branches on equality.
    isolated: usize,
    /// Points at which rounding makes the code locally constant.
    flat: usize,
    worst: f64,
    at: String,
}

/// Result of a survey.
pub struct Tally {
    /// One row per function.
    pub table: Table,
    done: usize,
    registered: usize,
    refused: usize,
    wrong: usize,
    skipped: usize,
}

impl Tally {
    /// Returns the counts as text.
    pub fn summary(&self) -> String {
        let judged = self.done + self.refused + self.wrong;
        let registered = match self.registered {
            0 => String::new(),
            n => format!(" ({n} of them registered)"),
        };
        format!(
            "{judged} functions: {} done{registered}, {} refused, {} wrong ({} not judged)",
            self.done, self.refused, self.wrong, self.skipped
        )
    }

    /// Checks that no function is wrong and that at least `least_done` of each hundred are done.
    ///
    /// # Errors
    /// Fails if a function is wrong or if too few are done.
    pub fn check(&self, least_done: usize) -> Outcome<()> {
        let judged = self.done + self.refused + self.wrong;
        if self.wrong > 0 {
            return Err(Failure::new(format!("{} wrong derivatives", self.wrong)));
        }
        if self.done * 100 < judged * least_done {
            return Err(Failure::new(format!(
                "{} of {judged} done, less than {least_done} %",
                self.done
            )));
        }
        Ok(())
    }

    fn count(&mut self, name: &str, verdict: Verdict) {
        let row = match verdict {
            Verdict::Done(judged, registered) => {
                self.done += 1;
                self.registered += usize::from(registered);
                done_row(&judged, registered)
            }
            Verdict::Refused(why) => {
                self.refused += 1;
                told("refused", why)
            }
            Verdict::Wrong(what) => {
                self.wrong += 1;
                told("WRONG", what)
            }
            Verdict::Skipped(why) => {
                self.skipped += 1;
                told("not judged", why)
            }
        };
        self.table.row([vec![name.to_owned()], row].concat());
    }
}

/// Surveys a collection.
///
/// # Errors
/// Fails if the folder cannot be written or if the judge does not compile.
pub fn survey(name: &str, tool: &Tool, collection: &Collection) -> Outcome<Tally> {
    let folder = workspace::target().join("survey").join(name);
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let survey = Survey {
        collection,
        tool,
        folder: &folder,
        judge: build_judge(&folder)?,
    };
    let mut tally = Tally {
        table: Table::new(&[
            "function", "", "forward", "reverse", "entries", "unsure", "isolated", "flat", "note",
        ]),
        done: 0,
        registered: 0,
        refused: 0,
        wrong: 0,
        skipped: 0,
    };
    for (subject, verdict) in collection.subjects.iter().zip(survey.all()) {
        tally.count(&subject.name, verdict);
    }
    Ok(tally)
}

fn told(verdict: &str, note: String) -> Vec<String> {
    let none = String::new;
    vec![
        verdict.into(),
        none(),
        none(),
        none(),
        none(),
        none(),
        none(),
        note,
    ]
}

fn done_row(judged: &[Judged], registered: bool) -> Vec<String> {
    let mode = |name: &str| judged.iter().find(|j| j.mode == name);
    let worst = |name: &str| mode(name).map_or(String::new(), |j| format!("{:.0e}", j.worst));
    let first = judged.first();
    vec![
        "done".into(),
        worst("tangent"),
        worst("adjoint"),
        first.map_or(String::new(), |j| j.entries.to_string()),
        first.map_or(String::new(), |j| j.unsure.to_string()),
        first.map_or(String::new(), |j| j.isolated.to_string()),
        first.map_or(String::new(), |j| j.flat.to_string()),
        if registered {
            "registered".into()
        } else {
            String::new()
        },
    ]
}

/// Inputs of the survey of one function.
struct Survey<'a> {
    collection: &'a Collection,
    tool: &'a Tool,
    folder: &'a Path,
    /// Object file of the judge.
    judge: PathBuf,
}

/// Writes the judge and the headers of the units from the text inside the crate, and compiles the judge.
fn build_judge(folder: &Path) -> Outcome<PathBuf> {
    for (name, text) in [
        ("judge.h", include_str!("judge.h")),
        ("judge.c", include_str!("judge.c")),
        ("dual.hpp", include_str!("erfa/dual.hpp")),
    ] {
        write(&folder.join(name), text)?;
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

fn write(path: &Path, text: &str) -> Outcome<()> {
    std::fs::write(path, text).map_err(|e| Failure::new(format!("{}: {e}", path.display())))
}

impl Survey<'_> {
    /// Computes the verdicts on all cores, in the order of the subjects, and shows the progress.
    fn all(&self) -> Vec<Verdict> {
        let subjects = &self.collection.subjects;
        let next = AtomicUsize::new(0);
        let verdicts: Mutex<Vec<(usize, Verdict)>> = Mutex::new(Vec::new());
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(subject) = subjects.get(i) else {
                            break;
                        };
                        progress(i, subjects.len(), &subject.name);
                        let verdict = self.one(subject);
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

    fn one(&self, subject: &Subject) -> Verdict {
        let units = match &subject.units {
            Ok(units) => units,
            Err(why) => return Verdict::Skipped(why.clone()),
        };
        let folder = self.folder.join(&subject.name);
        let verdict = self.judge(units, &folder);
        verdict.unwrap_or_else(|failure| Verdict::Skipped(failure.to_string()))
    }

    fn judge(&self, units: &Units, folder: &Path) -> Outcome<Verdict> {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
        self.yardstick(units, folder)?;
        let Tool::Gradus(_) = self.tool else {
            let dual = units.dual.as_ref();
            let dual =
                dual.ok_or_else(|| Failure::new("the function has no dual-number program"))?;
            let built = self.built(dual, folder)?;
            return match built.succeeded() {
                true => judged(folder),
                false => Ok(Verdict::Skipped(gradus::reason(&built.stderr))),
            };
        };
        let refused = match self.asked(&units.derived, folder)? {
            refused @ Verdict::Refused(_) => refused,
            verdict => return Ok(verdict),
        };
        let Some(remedy) = &units.remedy else {
            return Ok(refused);
        };
        Ok(
            match self.asked(&(units.derived.clone() + remedy), folder)? {
                Verdict::Done(judged, _) => Verdict::Done(judged, true),
                wrong @ Verdict::Wrong(_) => wrong,
                _ => refused,
            },
        )
    }

    /// Returns the verdict on both modes. If the modes together are refused, judges each mode.
    fn asked(&self, derived: &str, folder: &Path) -> Outcome<Verdict> {
        let unit = |modes: Modes| format!("{derived}{}", subject::requests(modes));
        let built = self.built(&unit(Modes::Both), folder)?;
        if built.succeeded() {
            return judged(folder);
        }
        let reason = match built.status {
            None => "the compiler exceeded the time limit".to_owned(),
            Some(_) => gradus::reason(&built.stderr),
        };
        if !reason.contains("error[GRD") || FAULTS.iter().any(|fault| reason.contains(fault)) {
            return Ok(Verdict::Wrong(reason));
        }
        let mut refused = Vec::new();
        for (modes, word) in [(Modes::Forward, "forward"), (Modes::Reverse, "reverse")] {
            if !self.built(&unit(modes), folder)?.succeeded() {
                refused.push(word);
            } else if let wrong @ Verdict::Wrong(_) = judged(folder)? {
                return Ok(wrong);
            }
        }
        Ok(Verdict::Refused(format!(
            "{}: {reason}",
            refused.join(" and ")
        )))
    }

    /// Compiles `plain.o`: the function as compiled by clang, with the library's code inside and no visible
    /// library symbol.
    fn yardstick(&self, units: &Units, folder: &Path) -> Outcome<()> {
        write(&folder.join("plain.c"), &units.plain)?;
        let mut clang = Command::new(workspace::clang());
        let clang = self.flags(&mut clang, folder);
        process::capture(clang.args(["-c", "plain.c", "-o", "plain.o"]))?;
        let Some(archives) = &self.collection.archives else {
            return Ok(());
        };
        let mut join = Command::new("ld");
        join.args(["-r", "plain.o"]).arg(&archives.plain);
        process::capture(join.args(["-o", "joined.o"]).current_dir(folder))?;
        let mut close = Command::new("objcopy");
        for name in [
            "judge_primal",
            "judge_ny",
            "judge_points",
            "judge_points_count",
        ] {
            close.arg(format!("--keep-global-symbol={name}"));
        }
        process::capture(close.args(["joined.o", "plain.o"]).current_dir(folder))?;
        Ok(())
    }

    fn flags<'c>(&self, compiler: &'c mut Command, folder: &Path) -> &'c mut Command {
        compiler.args(["-w", "-O2", "-I"]).arg(self.folder);
        compiler.args(&self.collection.flags).current_dir(folder)
    }

    /// Links the judge, the reference and the derivatives with the tool.
    fn built(&self, unit: &str, folder: &Path) -> Outcome<Finished> {
        let (name, mut compiler) = match self.tool {
            Tool::Gradus(binary) => {
                let mut gradus = Command::new(binary);
                gradus.arg("cc").args(&self.collection.options);
                ("derived.c", gradus)
            }
            Tool::Dual => {
                let mut clang = Command::new(workspace::clang());
                clang.args(["-std=c++17"]);
                ("derived.cpp", clang)
            }
        };
        write(&folder.join(name), unit)?;
        let compiler = self.flags(&mut compiler, folder);
        compiler.arg(name);
        if let Some(archives) = &self.collection.archives {
            compiler.arg(&archives.carried);
        }
        compiler
            .arg("plain.o")
            .arg(&self.judge)
            .args(["-lm", "-o", "judged"]);
        process::within(compiler, BUILD_LIMIT)
    }
}

fn judged(folder: &Path) -> Outcome<Verdict> {
    let done = process::within(&mut Command::new(folder.join("judged")), JUDGE_LIMIT)?;
    Ok(verdict(&done))
}

/// Parses the output of the judge's program.
fn verdict(done: &Finished) -> Verdict {
    if !done.succeeded() {
        return Verdict::Wrong(format!(
            "the program with the derivative: {}",
            done.ending()
        ));
    }
    if done.stdout.lines().any(|line| line == "moved") {
        return Verdict::Wrong(
            "the primal results of the derivative differ from the function's results".into(),
        );
    }
    let judged: Option<Vec<Judged>> = done.stdout.lines().map(parse).collect();
    let Some(judged) = judged.filter(|all| !all.is_empty()) else {
        return Verdict::Wrong(format!(
            "unexpected output of the judge: `{}`",
            done.stdout.trim()
        ));
    };
    match judged.iter().find(|j| j.wrong > 0) {
        Some(j) => Verdict::Wrong(format!(
            "{}: {} of {} entries; {}",
            j.mode, j.wrong, j.entries, j.at
        )),
        None if judged.iter().all(|j| j.unsure + j.flat == j.entries) => {
            Verdict::Skipped("finite differences are inconclusive for all entries".into())
        }
        None => Verdict::Done(judged, false),
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
        isolated: count("isolated")?,
        flat: count("flat")?,
        worst: after("worst")?.parse().ok()?,
        at: format!(
            "dy[{}]/dx[{}] is {}, finite differences yield {}",
            after("row")?,
            after("column")?,
            after("derivative")?,
            after("difference")?
        ),
    })
}

/// Shows the progress: in a terminal on one overwritten line, elsewhere every twentieth function.
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
        let line = "tangent entries 12 wrong 1 unsure 2 isolated 0 flat 0 worst 1.000e+00 row 2 column 3 derivative 0.5 difference 1";
        let judged = parse(line).unwrap();
        assert_eq!((judged.entries, judged.wrong, judged.unsure), (12, 1, 2));
        assert_eq!(judged.at, "dy[2]/dx[3] is 0.5, finite differences yield 1");
        assert!(parse("nonsense").is_none());
    }

    /// y = (sin(x0) x1, x0²). The derivatives are off by WRONG, the derivative's own result by MOVED.
    const UNIT: &str = "#include \"judge.h\"\n#include <math.h>\n
        const int judge_ny = 2, judge_points_count = 1;
        static const double x0[] = {0.7, 1e6};
        const judge_point judge_points[] = {{2, x0, 0, 0, 0}};
        void judge_primal(const double *x, double *y, const int *fixed, const char *text, int *status)
        { y[0] = sin(x[0]) * x[1]; y[1] = x[0] * x[0]; }
        static void tangent(const double *x, const double *x_tan, double *y, double *y_tan, const int *fixed, const char *text)
        { y[0] = sin(x[0]) * x[1]; y[1] = x[0] * x[0] + MOVED;
          y_tan[0] = cos(x[0]) * x_tan[0] * x[1] + sin(x[0]) * x_tan[1] * (1 + WRONG); y_tan[1] = 2 * x[0] * x_tan[0]; }
        static void adjoint(const double *x, double *x_adj, double *y, double *y_adj, const int *fixed, const char *text)
        { x_adj[0] += cos(x[0]) * x[1] * y_adj[0] + 2 * x[0] * (1 - WRONG) * y_adj[1]; x_adj[1] += sin(x[0]) * y_adj[0]; }
        void (*const judge_tangent)(const double *, const double *, double *, double *, const int *, const char *) = tangent;
        void (*const judge_adjoint)(const double *, double *, double *, double *, const int *, const char *) = adjoint;";

    /// y = 1 + cos(x0) in the form FORM, at π/2. The derivatives pass a root of zero at π/2, and are off by
    /// WRONG elsewhere.
    const FLAT: &str = "#include \"judge.h\"\n#include <math.h>\n
        const int judge_ny = 1, judge_points_count = 2;
        static const double x0[] = {M_PI / 2}, x1[] = {0.7};
        const judge_point judge_points[] = {{1, x0, 0, 0, 0}, {1, x1, 0, 0, 0}};
        static double rounded(double x) { return copysign(sqrt(1 - sin(x) * sin(x)), cos(x)); }
        void judge_primal(const double *x, double *y, const int *fixed, const char *text, int *status)
        { y[0] = 1 + FORM(x[0]); }
        static double slope(double x) { return -sin(x) * cos(x) / rounded(x) * (1 + WRONG); }
        static void tangent(const double *x, const double *x_tan, double *y, double *y_tan, const int *fixed, const char *text)
        { y[0] = 1 + FORM(x[0]); y_tan[0] = slope(x[0]) * x_tan[0]; }
        static void adjoint(const double *x, double *x_adj, double *y, double *y_adj, const int *fixed, const char *text)
        { x_adj[0] += slope(x[0]) * y_adj[0]; }
        void (*const judge_tangent)(const double *, const double *, double *, double *, const int *, const char *) = tangent;
        void (*const judge_adjoint)(const double *, double *, double *, double *, const int *, const char *) = adjoint;";

    fn judged_unit(name: &str, wrong: &str, moved: &str) -> Verdict {
        let words = [format!("-DWRONG={wrong}"), format!("-DMOVED={moved}")];
        judged_text(name, UNIT, &words)
    }

    fn judged_text(name: &str, unit: &str, words: &[String]) -> Verdict {
        let folder = workspace::target().join("judge-test").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let judge = build_judge(&folder).unwrap();
        std::fs::write(folder.join("unit.c"), unit).unwrap();
        let mut clang = Command::new(workspace::clang());
        clang.args(words).args(["-w", "unit.c"]).arg(&judge);
        clang.args(["-lm", "-o", "unit"]).current_dir(&folder);
        process::capture(&mut clang).unwrap();
        verdict(&process::within(&mut Command::new(folder.join("unit")), JUDGE_LIMIT).unwrap())
    }

    #[test]
    fn where_rounding_leaves_a_constant_the_slope_beside_it_counts() {
        let judged = |name: &str, form: &str, wrong: &str| {
            let words = [format!("-DFORM={form}"), format!("-DWRONG={wrong}")];
            judged_text(name, FLAT, &words)
        };
        let Verdict::Done(found, _) = judged("flat", "rounded", "0") else {
            panic!("not done")
        };
        assert!(found.iter().all(|j| j.flat == 1), "{found:?}");
        // The judge must reject an equal slope of a function that is not constant, and a wrong slope next to
        // the point.
        for (name, form, wrong) in [("steep", "cos", "0"), ("off", "rounded", "1e-4")] {
            assert!(
                matches!(judged(name, form, wrong), Verdict::Wrong(_)),
                "{name}"
            );
        }
    }

    #[test]
    fn the_judge_accepts_what_is_right() {
        let Verdict::Done(judged, _) = judged_unit("right", "0", "0") else {
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
