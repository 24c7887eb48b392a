//! Functions of numbers: reads `double f(double, int, …)` from a header as y = f(x).
//!
//! The file holds a small parser for prototypes. A function with an unknown parameter type, or without a real
//! parameter, is left out.

use super::erfa::without_comments;
use super::subject::{self, Place, Units};
use std::fmt::Write;

/// Function with a real result.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// Kind of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// `double`.
    Real,
    /// `long double`.
    Extended,
    /// An integer.
    Whole,
    /// `long`.
    Long,
    /// GSL's accuracy mode; the units pass the most accurate mode.
    Mode,
    /// `double *`: an additional result.
    RealOut,
    /// `int *`: a result without a derivative.
    WholeOut,
}

impl Function {
    /// Returns the number of parameters of a kind.
    pub fn count(&self, kind: Parameter) -> usize {
        self.parameters.iter().filter(|p| **p == kind).count()
    }

    /// Returns the number of real arguments.
    pub fn real(&self) -> usize {
        self.count(Parameter::Real) + self.count(Parameter::Extended)
    }
}

/// Returns the functions of a header with a real parameter and a real result.
pub fn functions(header: &str) -> Vec<Function> {
    let text = without_comments(header);
    let lines = text.lines().filter(|l| !l.trim_start().starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut found: Vec<Function> = text.split(';').filter_map(function).collect();
    found.dedup();
    found
}

fn function(statement: &str) -> Option<Function> {
    let (head, parameters) = statement.trim().strip_suffix(')')?.rsplit_once('(')?;
    let mut words = head.split_whitespace().rev();
    let name = words.next()?;
    if words.next()? != "double" || words.next() == Some("long") {
        return None;
    }
    let parameters: Option<Vec<Parameter>> = parameters.split(',').map(parameter).collect();
    let function = Function {
        name: name.to_owned(),
        parameters: parameters?,
    };
    (function.real() > 0).then_some(function)
}

fn parameter(text: &str) -> Option<Parameter> {
    let spaced = text.replace('*', " * ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    match words.as_slice() {
        ["double", "*", ..] => return Some(Parameter::RealOut),
        ["int", "*", ..] => return Some(Parameter::WholeOut),
        words if words.contains(&"*") || text.contains('[') => return None,
        _ => {}
    }
    let mut words = words.into_iter().filter(|w| *w != "const");
    match words.next()? {
        "double" => Some(Parameter::Real),
        "long" if words.next() == Some("double") => Some(Parameter::Extended),
        "long" => Some(Parameter::Long),
        "int" | "unsigned" => Some(Parameter::Whole),
        "gsl_mode_t" => Some(Parameter::Mode),
        _ => None,
    }
}

/// Returns the units of a function. The text `before` precedes the code of each unit.
pub fn units(function: &Function, before: &str, places: &[Place], remedy: Option<String>) -> Units {
    let ny = 1 + function.count(Parameter::RealOut);
    let head = format!("#include \"judge.h\"\n{before}");
    let plain = format!(
        "{head}{}{}",
        primal(function, "void judge_primal"),
        subject::points(places, &ny.to_string())
    );
    Units {
        plain,
        derived: head + &primal(function, "static void primal"),
        dual: None,
        remedy,
    }
}

/// Returns the function as y = f(x). Integer results become part of the status.
fn primal(function: &Function, head: &str) -> String {
    let (mut arguments, mut real, mut whole, mut results) = (Vec::new(), 0, 0, 1);
    let mut before = String::new();
    for parameter in &function.parameters {
        let number = arguments.len();
        arguments.push(match parameter {
            Parameter::Real | Parameter::Extended => {
                real += 1;
                format!("x[{}]", real - 1)
            }
            Parameter::Whole | Parameter::Long => {
                whole += 1;
                format!("fixed[{}]", whole - 1)
            }
            Parameter::Mode => "GSL_PREC_DOUBLE".into(),
            Parameter::RealOut => {
                results += 1;
                format!("&y[{}]", results - 1)
            }
            Parameter::WholeOut => {
                let _ = writeln!(before, "    int said{number} = 0;");
                format!("&said{number}")
            }
        });
    }
    let mut text = format!(
        "\n{head}(const double *x, double *y, const int *fixed, const char *text, int *status)\n{{\n{before}"
    );
    let _ = writeln!(
        text,
        "    y[0] = {}({});",
        function.name,
        arguments.join(", ")
    );
    let said = arguments.iter().filter_map(|a| a.strip_prefix("&said"));
    let said: String = said.map(|number| format!(" + said{number}")).collect();
    text + &format!("    *status = 0{said};\n}}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prototypes_are_read() {
        let header = "#define A(x) 1\n/* double no(double); */\n__BEGIN\ndouble ab(const double x, int n);\n\
                      long double b(double);\nint c(double);\ndouble d(int, unsigned int k);\n\
                      double e (double, int *);\ndouble f(double x, gsl_mode_t m);\ndouble g(const double * a, double x);\n\
                      double h(double, double *);\ndouble i(double, long double);\n";
        let found = functions(header);
        let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["ab", "e", "f", "h", "i"]);
        assert_eq!(found[0].parameters, [Parameter::Real, Parameter::Whole]);
        assert_eq!(found[4].parameters, [Parameter::Real, Parameter::Extended]);
    }

    #[test]
    fn a_function_becomes_y_of_x() {
        let function = functions("double f(double, int, double *, int *);").remove(0);
        let text = primal(&function, "static void primal");
        assert!(
            text.contains("y[0] = f(x[0], fixed[0], &y[1], &said3);"),
            "{text}"
        );
        assert!(text.contains("*status = 0 + said3;"), "{text}");
    }
}
