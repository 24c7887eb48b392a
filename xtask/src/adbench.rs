//! `cargo xtask adbench DIR`: compares the derivatives of ADBench's three objectives with the suite's reference
//! results. The measure is ADBench's: rho(x, y) = |x - y| / max(1, |x| + |y|), at most 1e-8 in every entry.
//!
//! The data is not part of this project. DIR, else `GRADUS_DATA`, names the folder; without both, the command
//! reports the missing data. All observations of a bundle-adjustment file are equal. A reference therefore
//! holds for every file with equal numbers, and the command compares every entry of the Jacobian.

use crate::course::{self, Program, Purpose, Tool};
use crate::process::{self, Failure, Outcome};
use crate::table::Table;
use crate::workspace;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// ADBench's limit on rho.
const LIMIT: f64 = 1e-8;
/// Bundle adjustments with more observations run only on request.
const MANY_OBSERVATIONS: usize = 300_000;
/// Entries of the Jacobian per observation: two rows of 15 entries, then the weight's derivative.
const BLOCK: usize = 31;

struct Options {
    folder: Option<PathBuf>,
    tool: String,
    all: bool,
}

/// Runs ADBench's objectives and prints the table.
///
/// # Errors
/// Fails if an entry is beyond the limit, or if the named folder does not hold the data.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let options = options(arguments)?;
    let Some(folder) = options.folder else {
        println!("missing ADBench data: run `cargo xtask adbench DIR`, or set GRADUS_DATA");
        return Ok(());
    };
    let root = [folder.clone(), folder.join("adbench")]
        .into_iter()
        .find(|f| f.join("gmm").is_dir());
    let root = root.ok_or_else(|| {
        Failure::new(format!(
            "no ADBench data (folders gmm, ba, lstm) in {}",
            folder.display()
        ))
    })?;
    let Some(tool) = Tool::named(&options.tool)? else {
        return Err(Failure::new(
            "this clone does not build `gradus`; --tool hand runs the hand-written gradients",
        ));
    };
    let mut table = Table::new(&["data", "entries", "worst rho", ""]);
    let mut failed = 0;
    for objective in ["gmm", "ba", "lstm"] {
        let program = course::build(
            objective,
            &tool,
            Purpose::Run,
            &workspace::target().join("course"),
        );
        for file in data_files(&root.join(objective))? {
            let name = format!("{objective}/{}", stem(&file));
            if !options.all && objective == "ba" && observations(&file)? > MANY_OBSERVATIONS {
                table.row(vec![
                    name,
                    String::new(),
                    String::new(),
                    "skipped; --all includes the file".into(),
                ]);
                continue;
            }
            eprintln!("{name}");
            let outcome = match &program {
                Ok(program) => compare(program, objective, &file),
                Err(refusal) => Err(Failure::new(refusal.to_string())),
            };
            failed += usize::from(!outcome.as_ref().is_ok_and(Comparison::holds));
            table.row(row(name, outcome));
        }
    }
    println!("{table}");
    match failed {
        0 => {
            println!(
                "{}: every entry within {LIMIT:e} of the suite's reference",
                tool.name()
            );
            Ok(())
        }
        n => Err(Failure::new(format!("{n} files failed"))),
    }
}

fn options(arguments: &[String]) -> Outcome<Options> {
    let environment = std::env::var_os("GRADUS_DATA").map(PathBuf::from);
    let mut options = Options {
        folder: environment,
        tool: "gradus".into(),
        all: false,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--all" => options.all = true,
            "--tool" => {
                options.tool = rest
                    .next()
                    .ok_or_else(|| Failure::new("--tool needs a name"))?
                    .clone();
            }
            folder if !folder.starts_with('-') => options.folder = Some(PathBuf::from(folder)),
            other => return Err(Failure::new(format!("unknown option {other}"))),
        }
    }
    Ok(options)
}

fn row(name: String, outcome: Outcome<Comparison>) -> Vec<String> {
    match outcome {
        Ok(c) => {
            let verdict = if c.holds() {
                "ok".into()
            } else {
                format!("WRONG at {}", c.worst_at)
            };
            vec![
                name,
                c.entries.to_string(),
                format!("{:.1e}", c.worst),
                verdict,
            ]
        }
        Err(why) => vec![name, String::new(), String::new(), why.to_string()],
    }
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns the data files of a folder in order of size.
fn data_files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .map_err(|e| Failure::new(format!("cannot read {}: {e}", folder.display())))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort_by_cached_key(|f| (observations(f).unwrap_or(0), stem(f)));
    Ok(files)
}

fn read(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file)
        .map_err(|e| Failure::new(format!("cannot read {}: {e}", file.display())))
}

/// Returns the third number in the head of a data file: the number of observations.
fn observations(file: &Path) -> Outcome<usize> {
    let text = read(file)?;
    let third = text.split_whitespace().nth(2).and_then(|w| w.parse().ok());
    third.ok_or_else(|| {
        Failure::new(format!(
            "{}: expected a header of three numbers",
            file.display()
        ))
    })
}

/// Reference file: named lists of numbers.
struct Reference(Vec<(String, Vec<f64>)>);

impl Reference {
    fn parse(text: &str) -> Outcome<Reference> {
        let mut words = text.split_whitespace();
        let mut lists = Vec::new();
        while let (Some(name), Some(count)) = (words.next(), words.next()) {
            let count: usize = count
                .parse()
                .map_err(|_| Failure::new(format!("reference: no count after {name}")))?;
            let numbers: Vec<f64> = words
                .by_ref()
                .take(count)
                .filter_map(|w| w.parse().ok())
                .collect();
            if numbers.len() != count {
                return Err(Failure::new(format!(
                    "reference: {name} has {} of {count} numbers",
                    numbers.len()
                )));
            }
            lists.push((name.to_owned(), numbers));
        }
        Ok(Reference(lists))
    }

    fn list(&self, name: &str) -> Outcome<&[f64]> {
        let found = self
            .0
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, numbers)| numbers.as_slice());
        found.ok_or_else(|| Failure::new(format!("the reference has no {name}")))
    }
}

/// Returns the reference of a data file. A bundle adjustment without a reference file takes the reference of a
/// file with an equal observation.
fn reference(objective: &str, file: &Path) -> Outcome<Reference> {
    let own = file.with_extension("reference");
    if own.is_file() {
        return Reference::parse(&read(&own)?);
    }
    if objective == "ba" {
        let observation = |f: &Path| {
            read(f).map(|t| {
                t.split_whitespace()
                    .skip(3)
                    .map(String::from)
                    .collect::<Vec<_>>()
            })
        };
        for other in data_files(file.parent().unwrap_or(Path::new(".")))? {
            let beside = other.with_extension("reference");
            if beside.is_file() && observation(&other)? == observation(file)? {
                return Reference::parse(&read(&beside)?);
            }
        }
    }
    Err(Failure::new("missing reference file next to the data"))
}

/// Result of comparing a run with a reference.
#[derive(Default)]
struct Comparison {
    entries: usize,
    worst: f64,
    worst_at: usize,
}

impl Comparison {
    fn holds(&self) -> bool {
        self.entries > 0 && self.worst <= LIMIT
    }

    fn add(&mut self, value: f64, reference: f64) {
        let rho = (value - reference).abs() / f64::max(1.0, value.abs() + reference.abs());
        // NaN counts as an infinite error.
        let rho = if rho.is_nan() { f64::INFINITY } else { rho };
        if rho > self.worst {
            self.worst = rho;
            self.worst_at = self.entries;
        }
        self.entries += 1;
    }
}

/// Runs the program on a data file and compares the value and every derivative.
fn compare(program: &Program, objective: &str, file: &Path) -> Outcome<Comparison> {
    let reference = reference(objective, file)?;
    let path = file
        .to_str()
        .ok_or_else(|| Failure::new("the path is not valid UTF-8"))?;
    let mut command = program.command(&["--dump", path]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|e| format!("cannot start `{}`: {e}", process::line(&command)))?;
    let outcome = compare_dump(&mut child, objective, &reference);
    if outcome.is_err() {
        // The child may block on a full pipe. The exit status has no meaning any more.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| Failure::new(e.to_string()))?;
    match outcome {
        Ok(_) if !status.success() => Err(Failure::new(format!("the program ended with {status}"))),
        other => other,
    }
}

fn compare_dump(child: &mut Child, objective: &str, reference: &Reference) -> Outcome<Comparison> {
    let stdout = child
        .stdout
        .take()
        .ok_or_else(|| Failure::new("the program has no output pipe"))?;
    let mut lines = BufReader::with_capacity(1 << 16, stdout).lines();
    let mut next = || -> Outcome<String> {
        let line = lines
            .next()
            .ok_or_else(|| Failure::new("the program's output ends early"))?;
        line.map_err(|e| Failure::new(e.to_string()))
    };
    next()?; // "value 1"
    let value = parsed(&next()?)?;
    let head = next()?;
    let count = head
        .strip_prefix("gradient ")
        .and_then(|n| n.parse::<usize>().ok());
    let count =
        count.ok_or_else(|| Failure::new(format!("expected `gradient COUNT`, got `{head}`")))?;
    let (expected_value, wanted) = expected(objective, reference, count)?;
    if objective != "ba" && count != wanted.len() || !count.is_multiple_of(wanted.len().max(1)) {
        return Err(Failure::new(format!(
            "{count} derivatives, expected {}",
            wanted.len()
        )));
    }
    let mut comparison = Comparison::default();
    comparison.add(value, expected_value);
    for i in 0..count {
        comparison.add(parsed(&next()?)?, wanted[i % wanted.len()]);
    }
    Ok(comparison)
}

fn parsed(line: &str) -> Outcome<f64> {
    line.trim()
        .parse()
        .map_err(|_| Failure::new(format!("expected a number, got `{line}`")))
}

/// Returns the expected value and one period of the expected derivatives, for a run with `count` derivatives.
fn expected(objective: &str, reference: &Reference, count: usize) -> Outcome<(f64, Vec<f64>)> {
    let value = match objective {
        "ba" => {
            // The workload's value is half the sum of squares over all observations.
            let mut wanted = reference.list("block_2x15")?.to_vec();
            wanted.extend_from_slice(reference.list("weight_derivative")?);
            let residuals = [
                reference.list("reprojection_error")?,
                reference.list("weight_error")?,
            ]
            .concat();
            let squares: f64 = residuals.iter().map(|r| r * r).sum();
            return Ok((0.5 * squares * (count / BLOCK) as f64, wanted));
        }
        "lstm" => "loss",
        _ => "value",
    };
    let list = reference.list(value)?;
    let value = list
        .first()
        .ok_or_else(|| Failure::new("the reference has no value"))?;
    Ok((*value, reference.list("gradient")?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_and_a_short_one_refused() {
        let reference = Reference::parse("loss 1\n0.5\ngradient 2\n1\n-2e-3\n").unwrap();
        assert_eq!(reference.list("gradient").unwrap(), [1.0, -2e-3]);
        assert!(reference.list("value").is_err());
        assert!(Reference::parse("gradient 3\n1\n2\n").is_err());
    }

    #[test]
    fn the_measure_is_the_suites() {
        let mut small = Comparison::default();
        small.add(0.25, 0.25 + 1e-9);
        assert!(small.holds() && (small.worst - 1e-9).abs() < 1e-15);
        let mut large = Comparison::default();
        large.add(1e6, 1e6 + 1.0);
        assert!(!large.holds() && (large.worst - 1.0 / (2e6 + 1.0)).abs() < 1e-12);
        let mut broken = Comparison::default();
        broken.add(1.0, 1.0);
        broken.add(f64::NAN, 1.0);
        assert!(!broken.holds() && broken.worst_at == 1);
        assert!(
            !Comparison::default().holds(),
            "an empty comparison does not hold"
        );
    }

    #[test]
    fn a_folder_without_the_data_is_refused() {
        let folder = workspace::root().join("docs").display().to_string();
        assert!(run(&[folder, "--tool".into(), "hand".into()]).is_err());
    }

    /// Reports missing data if `GRADUS_DATA` does not name the suite's data.
    #[test]
    fn the_hand_adjoints_agree_with_the_references() {
        if std::env::var_os("GRADUS_DATA").is_none() {
            println!("GRADUS_DATA is not set: ADBench's references are not compared");
            return;
        }
        run(&["--tool".into(), "hand".into()]).unwrap();
    }
}
