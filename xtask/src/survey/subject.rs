//! What is surveyed: a function as y = f(x) at some points, as the C units that judge it.
//!
//! Invariant: the two units share no symbol of the library: the yardstick is compiled by clang and closed
//! before the derivative's unit is linked to it.

use super::archives::Archives;
use std::fmt::Write;

/// A library's functions, and what their units are compiled with.
pub struct Collection {
    /// The functions.
    pub subjects: Vec<Subject>,
    /// The compiler's flags, of which most name folders.
    pub flags: Vec<String>,
    /// What Gradus is told beside them.
    pub options: Vec<String>,
    /// The compiled library; none where units take its sources in.
    pub archives: Option<Archives>,
}

/// A function under survey.
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its units, or why nothing can be said of it.
    pub units: Result<Units, String>,
}

/// The C text of a subject.
pub struct Units {
    /// The yardstick: defines `judge_primal`, `judge_ny` and the points.
    pub plain: String,
    /// What is differentiated: defines `primal`, of the judge's shape.
    pub derived: String,
    /// The same as C++ over dual numbers, complete.
    pub dual: Option<String>,
    /// What a user may add where `derived` is refused.
    pub remedy: Option<String>,
}

/// A place where a function is differentiated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    /// The real arguments, as C expressions.
    pub x: Vec<String>,
    /// The whole ones.
    pub fixed: Vec<String>,
    /// The string.
    pub text: Option<String>,
    /// Whether it stands in for the place before it, where that has no finite value.
    pub spare: bool,
}

/// The points of a unit: `judge_points`, and how many results there are.
pub fn points(places: &[Place], ny: &str) -> String {
    let (mut text, mut list) = (String::new(), String::new());
    for (k, place) in places.iter().enumerate() {
        // An empty array is no C.
        let row = |values: &[String]| [values, &["0".to_owned()]].concat().join(", ");
        let _ = writeln!(text, "static const double x{k}[] = {{{}}};", row(&place.x));
        let _ = writeln!(
            text,
            "static const int fixed{k}[] = {{{}}};",
            row(&place.fixed)
        );
        let string = place
            .text
            .as_ref()
            .map_or("0".into(), |t| format!("\"{t}\""));
        let spare = u8::from(place.spare);
        let _ = write!(
            list,
            "{{{}, x{k}, fixed{k}, {string}, {spare}}}, ",
            place.x.len()
        );
    }
    let _ = writeln!(text, "const judge_point judge_points[] = {{{list}}};");
    let _ = writeln!(text, "const int judge_points_count = {};", places.len());
    let _ = writeln!(text, "const int judge_ny = (int)({ny});");
    text
}

/// Which derivatives a unit asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// Tangents alone.
    Forward,
    /// Adjoints alone.
    Reverse,
    /// Both.
    Both,
}

/// The calls that ask for the derivatives of `primal`: `judge_tangent`, `judge_adjoint`.
pub fn requests(modes: Modes) -> String {
    let (forward, reverse) = (modes != Modes::Reverse, modes != Modes::Forward);
    let mut text = String::from(MARKERS);
    if forward {
        text += TANGENT;
    }
    if reverse {
        text += ADJOINT;
    }
    let or_null = |there: bool, name: &'static str| if there { name } else { "0" };
    let _ = writeln!(
        text,
        "void (*const judge_tangent)({TANGENT_PARAMETERS}) = {};",
        or_null(forward, "tangent")
    );
    let _ = writeln!(
        text,
        "void (*const judge_adjoint)({ADJOINT_PARAMETERS}) = {};",
        or_null(reverse, "adjoint")
    );
    text
}

const TANGENT_PARAMETERS: &str = "const double *x, const double *x_tan, double *y, double *y_tan, const int *fixed, const char *text";
const ADJOINT_PARAMETERS: &str =
    "const double *x, double *x_adj, double *y, double *y_adj, const int *fixed, const char *text";

const MARKERS: &str = "
extern int enzyme_dup, enzyme_const;
void __enzyme_fwddiff(void *, ...);
void __enzyme_autodiff(void *, ...);
";

const TANGENT: &str = "
static void tangent(const double *x, const double *x_tan, double *y, double *y_tan, const int *fixed,
                    const char *text)
{
    int status = 0;
    __enzyme_fwddiff((void *)primal, enzyme_dup, x, x_tan, enzyme_dup, y, y_tan, enzyme_const, fixed,
                     enzyme_const, text, enzyme_const, &status);
}
";

const ADJOINT: &str = "
static void adjoint(const double *x, double *x_adj, double *y, double *y_adj, const int *fixed,
                    const char *text)
{
    int status = 0;
    __enzyme_autodiff((void *)primal, enzyme_dup, x, x_adj, enzyme_dup, y, y_adj, enzyme_const, fixed,
                      enzyme_const, text, enzyme_const, &status);
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_c() {
        let place = Place {
            x: vec!["1.5".into(), "M_PI".into()],
            spare: true,
            ..Place::default()
        };
        let text = points(&[place], "1");
        assert!(
            text.contains("x0[] = {1.5, M_PI, 0};") && text.contains("{2, x0, fixed0, 0, 1}, "),
            "{text}"
        );
    }
}
