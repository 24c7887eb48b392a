//! `cargo xtask bench --drivers`: time of `gradus cc` on code without derivatives, compared with clang in one run.
//!
//! The two compilers run in turn, and the smallest time of each counts. A ratio above the limit is a failure.

use crate::gradus;
use crate::process::{self, Failure, Outcome};
use crate::table::Table;
use crate::workspace;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs of each compiler, for a small and a large source.
const RUNS_SMALL: usize = 20;
const RUNS_LARGE: usize = 3;
/// Functions of the large source: 12,006 lines.
const FUNCTIONS: usize = 1715;

/// Command line and limit.
struct Row {
    source: &'static str,
    options: &'static [&'static str],
    runs: usize,
    /// Largest ratio; `None` for a figure without a limit.
    limit: Option<f64>,
}

// table
const ROWS: &[Row] = &[
    Row {
        source: "small.c",
        options: &["-c", "-O0"],
        runs: RUNS_SMALL,
        limit: Some(1.5),
    },
    Row {
        source: "small.c",
        options: &["-c", "-O2"],
        runs: RUNS_SMALL,
        limit: Some(1.2),
    },
    Row {
        source: "small.c",
        options: &["-O2"],
        runs: RUNS_SMALL,
        limit: None,
    },
    Row {
        source: "large.c",
        options: &["-c", "-O0"],
        runs: RUNS_LARGE,
        limit: Some(1.5),
    },
    Row {
        source: "large.c",
        options: &["-c", "-O2"],
        runs: RUNS_LARGE,
        limit: Some(1.2),
    },
];

/// Runs the comparison.
///
/// # Errors
/// Fails if a compilation fails or a ratio exceeds the limit.
pub fn run() -> Outcome<()> {
    let Some(gradus) = gradus::binary()? else {
        return Err(Failure::new(gradus::NOT_THERE_YET));
    };
    let folder = workspace::target().join("driver-overhead");
    write_sources(&folder)?;
    let head = [
        "source",
        "options",
        "clang (ms)",
        "gradus cc (ms)",
        "ratio",
        "limit",
    ];
    let mut table = Table::new(&head);
    let mut above = Vec::new();
    for row in ROWS {
        let mut best = [Duration::MAX; 2];
        for _ in 0..row.runs {
            let commands = [Command::new(workspace::clang()), Command::new(&gradus)];
            for (at, mut command) in commands.into_iter().enumerate() {
                if at == 1 {
                    command.arg("cc");
                }
                command.args(row.options).args([row.source, "-o", "out"]);
                command.current_dir(&folder);
                let start = Instant::now();
                process::show(&mut command)?;
                best[at] = best[at].min(start.elapsed());
            }
        }
        let [clang, ours] = best.map(|time| time.as_secs_f64() * 1e3);
        let ratio = ours / clang;
        let options = row.options.join(" ");
        if row.limit.is_some_and(|limit| ratio > limit) {
            above.push(format!("{} {options}", row.source));
        }
        table.row(vec![
            row.source.into(),
            options,
            format!("{clang:.1}"),
            format!("{ours:.1}"),
            format!("{ratio:.2}"),
            row.limit.map_or(String::new(), |limit| limit.to_string()),
        ]);
    }
    println!("{table}");
    match above.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "above the limit: {}",
            above.join(", ")
        ))),
    }
}

/// Writes a small and a large source.
fn write_sources(folder: &Path) -> Outcome<()> {
    let small = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n";
    let function = |i: usize| {
        format!(
            "double f{i}(const double *x, int n)\n{{\n    double s = {i};\n    for (int k = 0; k < n; k++)\n        \
             s += sin(x[k]) * x[(k + {i}) % n] - sqrt(s * s + {i});\n    return s;\n}}\n"
        )
    };
    let functions: String = (0..FUNCTIONS).map(function).collect();
    let large = format!("#include <math.h>\n{functions}");
    let cannot = |e| Failure::new(format!("cannot write below {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(cannot)?;
    std::fs::write(folder.join("small.c"), small).map_err(cannot)?;
    std::fs::write(folder.join("large.c"), large).map_err(cannot)
}
