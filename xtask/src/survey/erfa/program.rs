//! C units of a function of ERFA: the function as y = f(x), and its points.
//!
//! # Invariants
//! The two units share no symbol of the library: the first unit renames every function of the library.

use super::library::Library;
use super::points::Point;
use super::prototypes::{Function, Returns, Shape};
use crate::survey::subject::{self, Place, Units};
use std::fmt::Write;

/// Returns the units of a function at some points.
pub fn units(library: &Library, function: &Function, points: &[Point]) -> Units {
    let derived = |before: &str| {
        let primal = primal(function, "static void primal", "double");
        format!(
            "#include \"judge.h\"\n{before}{}{primal}",
            includes(library, function)
        )
    };
    Units {
        plain: plain(library, function, points),
        derived: derived(""),
        dual: Some(derived("#include \"dual.hpp\"\n") + DUAL),
        remedy: None,
    }
}

/// Returns the function with its points: `judge_primal`, `judge_ny`, `judge_points`.
fn plain(library: &Library, function: &Function, points: &[Point]) -> String {
    let files = library.closure(&function.name);
    let mut text = String::from("#include \"judge.h\"\n");
    for name in library.defined_by(&files) {
        let _ = writeln!(text, "#define {name} plain_{name}");
    }
    text += &includes(library, function);
    text += &primal(function, "void judge_primal", "double");
    let places: Vec<Place> = points.iter().map(place).collect();
    text + &subject::points(&places, &results(function).join(" + "))
}

fn place(point: &Point) -> Place {
    Place {
        x: point.x.iter().map(|v| format!("{v:e}")).collect(),
        fixed: point.fixed.iter().map(i64::to_string).collect(),
        text: point.text.clone(),
        spare: false,
    }
}

const DUAL: &str = "
static void tangent(const real *x, const real *x_tan, real *y, real *y_tan, const int *fixed,
                    const char *text)
{
    static dual xs[4096], ys[4096];
    int status = 0, nx = 0, ny = judge_ny;
    for (int k = 0; k < judge_points_count; k++)
        if (judge_points[k].x == x)
            nx = judge_points[k].nx;
    for (int i = 0; i < nx; i++)
        xs[i] = dual(x[i], x_tan[i]);
    primal(xs, ys, fixed, text, &status);
    for (int j = 0; j < ny; j++) {
        y[j] = ys[j].v;
        y_tan[j] = ys[j].t;
    }
}
void (*const judge_tangent)(const real *, const real *, real *, real *, const int *, const char *) = tangent;
void (*const judge_adjoint)(const real *, real *, real *, real *, const int *, const char *) = 0;
";

fn includes(library: &Library, function: &Function) -> String {
    let mut text = String::from(
        "#include <string.h>\n#include \"erfa.h\"\n#include \"erfam.h\"\n#include \"erfaextra.h\"\n",
    );
    for file in library.closure(&function.name) {
        let _ = writeln!(text, "#include \"{file}\"");
    }
    text
}

/// Returns the sizes of the results in doubles, as C expressions.
fn results(function: &Function) -> Vec<String> {
    let own = (function.returns == Returns::Number).then(|| "1".to_owned());
    let returned = function
        .parameters
        .iter()
        .filter(|p| p.is_real() && p.role.is_returned());
    own.into_iter()
        .chain(returned.map(|p| p.shape.count()))
        .collect()
}

/// Returns the function as y = f(x): unpacks x, calls the function, packs y.
fn primal(function: &Function, head: &str, real: &str) -> String {
    let mut text = format!(
        "\n{head}(const {real} *x, {real} *y, const int *fixed, const char *text, int *status)\n{{\n"
    );
    let mut arguments = Vec::new();
    for p in &function.parameters {
        let n = &p.name;
        let local = format!("{n}_");
        let take = if p.role.is_given() {
            format!(
                "    memcpy(&{local}, x, {} * sizeof *x);\n    x += {};\n",
                p.shape.count(),
                p.shape.count()
            )
        } else {
            String::new()
        };
        let (declared, argument) = match &p.shape {
            Shape::Scalar => (format!("    {real} {local} = *x++;\n"), local),
            Shape::Whole => (format!("    int {local} = *fixed++;\n"), local),
            Shape::Text => (String::new(), "text".to_owned()),
            Shape::Doubles(extents) | Shape::Aside(_, extents) => {
                let kind = if let Shape::Aside(kind, _) = &p.shape {
                    kind
                } else {
                    real
                };
                let brackets: String = extents.iter().map(|e| format!("[{e}]")).collect();
                let argument = if extents.is_empty() {
                    format!("&{local}")
                } else {
                    local.clone()
                };
                (
                    format!(
                        "    {kind} {local}{brackets};\n    memset(&{local}, 0, sizeof {local});\n{take}"
                    ),
                    argument,
                )
            }
            Shape::Astrom => (
                format!("    eraASTROM {local};\n    memset(&{local}, 0, sizeof {local});\n{take}"),
                format!("&{local}"),
            ),
            // The test program has no call with more bodies.
            Shape::Bodies => (format!("    eraLDBODY {local}[16];\n{take}"), local),
        };
        text += &declared;
        arguments.push(argument);
    }
    let call = format!("{}({})", function.name, arguments.join(", "));
    text += &match function.returns {
        Returns::Nothing => format!("    *status = 0;\n    {call};\n"),
        Returns::Status => format!("    *status = {call};\n"),
        Returns::Number => format!("    *status = 0;\n    *y++ = {call};\n"),
    };
    for p in function
        .parameters
        .iter()
        .filter(|p| p.is_real() && p.role.is_returned())
    {
        let count = p.shape.count();
        let _ = write!(
            text,
            "    memcpy(y, &{}_, {count} * sizeof *y);\n    y += {count};\n",
            p.name
        );
    }
    text + "}\n\n"
}
