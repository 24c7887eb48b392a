//! Points of differentiation: the arguments of the calls in ERFA's own test program.
//!
//! The test program is compiled with each function renamed to a recorder. A recorder prints the arguments and
//! calls the function. Values that the test leaves unset are garbage and become zero.

use super::library::Library;
use super::prototypes::{Function, Returns, Shape};
use crate::process::{self, Failure, Outcome};
use crate::workspace;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Arguments of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Real arguments that the caller fills, in order.
    pub x: Vec<f64>,
    /// Integers and characters, in order.
    pub fixed: Vec<i64>,
    /// String argument.
    pub text: Option<String>,
}

/// Largest number of distinct calls per function.
const POINTS_EACH: usize = 3;
const LIMIT: Duration = Duration::from_secs(120);

/// Records the test program's calls, by function.
///
/// # Errors
/// Fails if the test program does not compile or run.
pub fn record(library: &Library, folder: &Path) -> Outcome<BTreeMap<String, Vec<Point>>> {
    let source = folder.join("record.c");
    let program = folder.join("record");
    std::fs::write(&source, recorder(library))
        .map_err(|e| Failure::new(format!("{}: {e}", source.display())))?;
    let mut clang = Command::new(workspace::clang());
    clang
        .args(["-w", "-O0", "-I"])
        .arg(&library.folder)
        .arg(&source)
        .args(["-lm", "-o"])
        .arg(&program);
    process::capture(&mut clang)?;
    let done = process::within(&mut Command::new(&program), LIMIT)?;
    if !done.succeeded() {
        return Err(Failure::new(format!(
            "ERFA's own test program: {}",
            done.ending()
        )));
    }
    let mut points: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for line in done.stdout.lines().filter_map(|l| l.strip_prefix("@ ")) {
        let (name, point) =
            parse(line).ok_or_else(|| Failure::new(format!("recorder: `{line}`")))?;
        let all = points.entry(name).or_default();
        if all.len() < POINTS_EACH && !all.contains(&point) {
            all.push(point);
        }
    }
    Ok(points)
}

fn parse(line: &str) -> Option<(String, Point)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let mut point = Point {
        x: Vec::new(),
        fixed: Vec::new(),
        text: None,
    };
    for word in words {
        let (kind, value) = word.split_at_checked(2)?;
        match kind {
            "r:" => point.x.push(sensible(value.parse().ok()?)),
            "i:" => point.fixed.push(value.parse().ok()?),
            "t:" => point.text = Some(value.to_owned()),
            _ => return None,
        }
    }
    Some((name, point))
}

/// Returns the value, or zero for a value that no test would choose: an unset variable.
fn sensible(value: f64) -> f64 {
    let size = value.abs();
    if size < 1e15 && size > 1e-60 {
        value
    } else {
        0.0
    }
}

fn recorder(library: &Library) -> String {
    let mut text = String::from(
        "/* ERFA's test program, with every call's arguments printed. */\n\
         #include <stdio.h>\n#include \"erfa.h\"\n#include \"erfam.h\"\n#include \"erfaextra.h\"\n\n\
         static void reals(const void *p, long n)\n\
         {\n    for (long i = 0; i < n; i++)\n        printf(\" r:%.17e\", ((const double *)p)[i]);\n}\n\n",
    );
    let recorded: Vec<&Function> = library
        .functions
        .iter()
        .filter(|f| f.is_differentiable())
        .collect();
    for function in &recorded {
        text += &wrapper(function);
    }
    for name in recorded.iter().map(|f| &f.name) {
        text += &format!("#define {name} record_{name}\n");
    }
    text += "#include \"t_erfa_c.c\"\n";
    for name in recorded.iter().map(|f| &f.name) {
        text += &format!("#undef {name}\n");
    }
    let sources: std::collections::BTreeSet<&str> = library
        .functions
        .iter()
        .flat_map(|f| library.closure(&f.name))
        .collect();
    for file in sources {
        text += &format!("#include \"{file}\"\n");
    }
    text
}

fn wrapper(function: &Function) -> String {
    let result = match function.returns {
        Returns::Nothing => "void",
        Returns::Status => "int",
        Returns::Number => "double",
    };
    let name = &function.name;
    let declared: Vec<String> = function
        .parameters
        .iter()
        .map(|p| p.shape.declare(&p.name))
        .collect();
    let passed: Vec<&str> = function
        .parameters
        .iter()
        .map(|p| p.name.as_str())
        .collect();
    let mut text = format!(
        "static {result} record_{name}({})\n{{\n    printf(\"@ {name}\");\n",
        declared.join(", ")
    );
    for p in function.parameters.iter().filter(|p| p.role.is_given()) {
        let n = &p.name;
        text += &match &p.shape {
            Shape::Scalar => format!("    reals(&{n}, 1);\n"),
            Shape::Doubles(extents) => {
                format!("    reals({n}, {});\n", extents.iter().product::<usize>())
            }
            Shape::Astrom => format!("    reals({n}, sizeof *{n} / sizeof(double));\n"),
            Shape::Bodies => format!("    reals({n}, n * (long)(sizeof *{n} / sizeof(double)));\n"),
            Shape::Whole => format!("    printf(\" i:%d\", {n});\n"),
            Shape::Text => format!("    printf(\" t:%s\", {n});\n"),
            Shape::Aside(..) => String::new(),
        };
    }
    let call = format!("{name}({})", passed.join(", "));
    let call = if function.returns == Returns::Nothing {
        call
    } else {
        format!("return {call}")
    };
    text + &format!("    putchar('\\n');\n    {call};\n}}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_call_is_read() {
        let (name, point) = parse("eraX r:1.5e0 i:3 r:-2e3 t:UTC r:1e300").unwrap();
        assert_eq!(name, "eraX");
        assert_eq!(
            point,
            Point {
                x: vec![1.5, -2e3, 0.0],
                fixed: vec![3],
                text: Some("UTC".into())
            }
        );
        assert!(parse("eraX q:1").is_none() && parse("eraX r:abc").is_none());
    }
}
