//! NLopt's test objectives: functions of an array, with starting bounds and the minimum of each function.

use super::erfa::without_comments;
use super::subject::{self, Collection, Place, Subject, Units};
use crate::process::{Failure, Outcome};
use crate::sources::NLOPT;
use crate::workspace;
use std::path::Path;

/// Returns NLopt's objectives: every row of NLopt's table.
///
/// # Errors
/// Fails if NLopt cannot be fetched or parsed.
pub fn collection(_: &Path) -> Outcome<Collection> {
    let nlopt = NLOPT.locate()?;
    let (tests, api) = (nlopt.join("test"), nlopt.join("src/api"));
    let path = tests.join("testfuncs.c");
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
    // NLopt's build generates the header; the objectives use none of its contents.
    let made = workspace::target().join("survey/nlopt/nlopt_config.h");
    let folder = made.parent().unwrap_or(&made).to_path_buf();
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&made, ""));
    written.map_err(|e| Failure::new(format!("{}: {e}", made.display())))?;
    let rows = rows(&without_comments(&text));
    let subjects = rows.iter().enumerate().map(|(i, row)| {
        let again = rows[..i]
            .iter()
            .filter(|r| r.function == row.function)
            .count();
        Subject {
            name: match again {
                0 => row.function.clone(),
                n => format!("{}-{}", row.function, n + 1),
            },
            units: Ok(row.units()),
        }
    });
    Ok(Collection {
        subjects: subjects.collect(),
        flags: [tests, api, folder]
            .map(|f| format!("-I{}", f.display()))
            .to_vec(),
        options: Vec::new(),
        archives: None,
    })
}

/// Row of NLopt's table.
#[derive(Debug)]
struct Row {
    function: String,
    /// Second argument of the function besides the array, as a C expression.
    data: String,
    low: Vec<f64>,
    high: Vec<f64>,
    least: Vec<f64>,
}

impl Row {
    fn units(&self) -> Units {
        let n = self.least.len();
        let primal = |head: &str| {
            format!(
                "\n{head}(const double *x, double *y, const int *fixed, const char *text, int *status)\n\
                 {{\n    y[0] = {}({n}, x, 0, (void *)({}));\n    *status = 0;\n}}\n\n",
                self.function, self.data
            )
        };
        let between = |part: f64| -> Vec<f64> {
            let both = self.low.iter().zip(&self.high);
            both.enumerate()
                .map(|(i, (low, high))| low + (part + 0.01 * i as f64) * (high - low))
                .collect()
        };
        let places = [between(0.3), between(0.6), self.least.clone()].map(|x| Place {
            x: x.iter().map(|v| format!("{v:e}")).collect(),
            ..Place::default()
        });
        let shared = ["testfuncs", "testfuncs_verbose", "testfuncs_counter"];
        let renamed: String = shared
            .iter()
            .map(|name| format!("#define {name} plain_{name}\n"))
            .collect();
        let source = "#include \"testfuncs.c\"\n";
        Units {
            plain: format!(
                "#include \"judge.h\"\n{renamed}{source}{}{}",
                primal("void judge_primal"),
                subject::points(&places, "1")
            ),
            derived: format!(
                "#include \"judge.h\"\n{source}{}",
                primal("static void primal")
            ),
            dual: None,
            remedy: None,
        }
    }
}

/// Returns the rows of the table at the end of the file: function, data, presence of a gradient, length,
/// bounds, minimum.
fn rows(text: &str) -> Vec<Row> {
    let Some((before, table)) = text.split_once("testfuncs[NTESTFUNCS] = {") else {
        return Vec::new();
    };
    let cells = table
        .split('{')
        .skip(1)
        .filter_map(|row| row.split('}').next());
    cells.filter_map(|cells| row(cells, before)).collect()
}

fn row(cells: &str, before: &str) -> Option<Row> {
    let cells: Vec<&str> = cells.split(',').map(str::trim).collect();
    let [function, data, _, n, low, high, least, ..] = cells.as_slice() else {
        return None;
    };
    let n: usize = n.parse().ok()?;
    Some(Row {
        function: function.to_string(),
        data: data.to_string(),
        low: values(low, n, before)?,
        high: values(high, n, before)?,
        least: values(least, n, before)?,
    })
}

/// Returns the `n` numbers at `NAME` or `NAME + SKIP`, an array that the text defines.
fn values(place: &str, n: usize, text: &str) -> Option<Vec<f64>> {
    let (name, skip) = place.split_once('+').unwrap_or((place, "0"));
    let skip: usize = skip.trim().parse().ok()?;
    let (_, array) = text.split_once(&format!(" {}[", name.trim()))?;
    let (_, list) = array.split_once('{')?;
    let numbers = list.split('}').next()?.split(',');
    let numbers: Option<Vec<f64>> = numbers.map(|number| number.trim().parse().ok()).collect();
    Some(numbers?.get(skip..skip + n)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let text = "static const double f_lb[2] = { -2, -2 };\nstatic const double f_ub[2] = { 2, 2 };\n\
                    static const double f_xmin[3] = { 9, 1, 0.5 };\n\
                    const testfunc testfuncs[NTESTFUNCS] = {\n {f, NULL, 1, 2,\n f_lb, f_ub, f_xmin + 1, 0.0, \"F\"},\n};";
        let rows = rows(text);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].function.as_str(), rows[0].least.as_slice()),
            ("f", [1.0, 0.5].as_slice())
        );
        assert!(
            rows[0]
                .units()
                .derived
                .contains("y[0] = f(2, x, 0, (void *)(NULL));")
        );
    }
}
