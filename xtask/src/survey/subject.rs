//! Subjects of a survey: a function as y = f(x) with points, in the form of C units for the judge.
//!
//! # Invariants
//! The two units share no symbol of the library: clang compiles and closes the reference before the
//! derivative's unit is linked.

use super::archives::Archives;
use std::fmt::Write;

/// Functions of a library, and the options of their units.
pub struct Collection {
    /// Functions.
    pub subjects: Vec<Subject>,
    /// Flags of the compiler; most flags name folders.
    pub flags: Vec<String>,
    /// Additional options of Gradus.
    pub options: Vec<String>,
    /// Compiled library; `None` if the units include the library's sources.
    pub archives: Option<Archives>,
}

/// Function under survey.
pub struct Subject {
    /// Name.
    pub name: String,
    /// Units, or the reason why no verdict is possible.
    pub units: Result<Units, String>,
}

/// C text of a subject.
pub struct Units {
    /// Reference unit: defines `judge_primal`, `judge_ny` and the points.
    pub plain: String,
    /// Differentiated unit: defines `primal` with the judge's signature.
    pub derived: String,
    /// Complete C++ unit over dual numbers.
    pub dual: Option<String>,
    /// Text that a user may add if `derived` is refused.
    pub remedy: Option<String>,
}

/// Point of differentiation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    /// Real arguments, as C expressions.
    pub x: Vec<String>,
    /// Integer arguments.
    pub fixed: Vec<String>,
    /// String argument.
    pub text: Option<String>,
    /// True if the point replaces its predecessor when the predecessor has no finite value.
    pub spare: bool,
}

/// Returns the C text of the points, `judge_points`, and of the number of results.
pub fn points(places: &[Place], ny: &str) -> String {
    let (mut text, mut list) = (String::new(), String::new());
    for (k, place) in places.iter().enumerate() {
        // C has no empty arrays.
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

/// Derivatives that a unit requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// Tangents only.
    Forward,
    /// Adjoints only.
    Reverse,
    /// Tangents and adjoints.
    Both,
}

/// Returns the requests for the derivatives of `primal`: `judge_tangent`, `judge_adjoint`.
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
