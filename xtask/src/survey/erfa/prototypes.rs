//! Parses ERFA's functions: prototypes from `erfa.h`, and the roles of parameters (given or returned) from the
//! comment at the top of each source.
//!
//! The parser covers the header's types only: doubles, arrays of doubles, the library's two structs, integers,
//! characters. Any further type is an error that names the declaration.

use crate::process::{Failure, Outcome};

/// Function of the library.
#[derive(Debug)]
pub struct Function {
    /// Name, `eraAb`.
    pub name: String,
    /// Result.
    pub returns: Returns,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// Result of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// Nothing.
    Nothing,
    /// Integer status.
    Status,
    /// Number with a derivative.
    Number,
}

/// Parameter of a function.
#[derive(Debug)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Type.
    pub shape: Shape,
    /// Role: filled by the caller, by the function, or by both.
    pub role: Role,
}

/// Type of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// `double`.
    Scalar,
    /// `double *` (no extents) or `double [2][3]`.
    Doubles(Vec<usize>),
    /// `eraASTROM *`: only doubles.
    Astrom,
    /// `eraLDBODY []`: only doubles; the parameter `n` holds the number of bodies.
    Bodies,
    /// `int` or `char` by value.
    Whole,
    /// `const char *`.
    Text,
    /// `int *`, `char *` (no extents) or `int [4]`: results without a derivative.
    Aside(&'static str, Vec<usize>),
}

impl Shape {
    /// Returns the declaration of the parameter.
    pub fn declare(&self, name: &str) -> String {
        let array = |kind: &str, extents: &[usize]| match extents {
            [] => format!("{kind} *{name}"),
            _ => format!(
                "{kind} {name}{}",
                extents.iter().map(|e| format!("[{e}]")).collect::<String>()
            ),
        };
        match self {
            Shape::Scalar => format!("double {name}"),
            Shape::Doubles(extents) => array("double", extents),
            Shape::Astrom => format!("eraASTROM *{name}"),
            Shape::Bodies => format!("eraLDBODY {name}[]"),
            Shape::Whole => format!("int {name}"),
            Shape::Text => format!("const char *{name}"),
            Shape::Aside(kind, extents) => array(kind, extents),
        }
    }

    /// Returns the number of doubles as a C expression inside the survey's function.
    pub fn count(&self) -> String {
        match self {
            Shape::Scalar => "1".into(),
            Shape::Doubles(extents) => extents.iter().product::<usize>().to_string(),
            Shape::Astrom => "(sizeof(eraASTROM) / sizeof(double))".into(),
            Shape::Bodies => "(unsigned long)n_ * (sizeof(eraLDBODY) / sizeof(double))".into(),
            Shape::Whole | Shape::Text | Shape::Aside(..) => "0".into(),
        }
    }
}

/// Role of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The caller fills the parameter.
    Given,
    /// The function fills the parameter.
    Returned,
    /// The function updates the parameter in place.
    Both,
}

impl Role {
    /// Returns whether the caller fills the parameter.
    pub fn is_given(self) -> bool {
        self != Role::Returned
    }

    /// Returns whether the function fills the parameter.
    pub fn is_returned(self) -> bool {
        self != Role::Given
    }
}

impl Parameter {
    /// Returns whether the parameter holds numbers with a derivative.
    pub fn is_real(&self) -> bool {
        matches!(
            self.shape,
            Shape::Scalar | Shape::Doubles(_) | Shape::Astrom | Shape::Bodies
        )
    }
}

impl Function {
    /// Returns whether the function has a real parameter and a real result.
    pub fn is_differentiable(&self) -> bool {
        let any = |wanted: fn(Role) -> bool| {
            self.parameters
                .iter()
                .any(|p| p.is_real() && wanted(p.role))
        };
        any(Role::is_given) && (self.returns == Returns::Number || any(Role::is_returned))
    }
}

/// Returns all functions that the header declares. `source` returns the text that defines a function, with its
/// comment.
///
/// # Errors
/// Fails at a declaration or a comment that the parser does not cover.
pub fn parse(header: &str, source: impl Fn(&str) -> Outcome<String>) -> Outcome<Vec<Function>> {
    let text = without_comments(header);
    let mut functions = Vec::new();
    for statement in text.split(';') {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some((head, parameters)) = statement.strip_suffix(')').and_then(|s| s.split_once('('))
        else {
            continue;
        };
        let Some((result, name)) = head
            .rsplit_once(' ')
            .filter(|(_, name)| name.starts_with("era"))
        else {
            continue;
        };
        let returns = match result.rsplit(' ').next() {
            Some("void") => Returns::Nothing,
            Some("int") => Returns::Status,
            Some("double") => Returns::Number,
            _ => return Err(Failure::new(format!("{name} returns `{result}`"))),
        };
        let source = source(name)?;
        let roles = Roles::read(&source);
        // The comment uses the names of the definition; some names in the header differ.
        let parameters = definition(&source, name).unwrap_or_else(|| parameters.to_owned());
        let parameters = parameters
            .split(',')
            .map(|p| parameter(name, p, &roles))
            .collect::<Outcome<_>>()?;
        functions.push(Function {
            name: name.to_owned(),
            returns,
            parameters,
        });
    }
    Ok(functions)
}

/// Returns the parameters of a function in the text that defines the function.
fn definition(source: &str, name: &str) -> Option<String> {
    let code = without_comments(source);
    let heads = code
        .match_indices(name)
        .map(|(at, _)| code[at + name.len()..].trim_start());
    let defined = heads.filter_map(|rest| rest.strip_prefix('(')?.split_once(')'));
    let parameters = defined
        .filter(|(_, after)| after.trim_start().starts_with('{'))
        .map(|(p, _)| p)
        .next()?;
    Some(parameters.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns a text without C comments.
pub fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("/*") {
        kept += before;
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    kept += rest;
    kept
}

fn parameter(function: &str, text: &str, roles: &Roles) -> Outcome<Parameter> {
    let beyond = || Failure::new(format!("{function}: unsupported parameter `{text}`"));
    let (declarator, extents) = match text.find('[') {
        Some(at) => (&text[..at], &text[at..]),
        None => (text, ""),
    };
    let mut words: Vec<&str> = declarator.split_whitespace().collect();
    let last = words.pop().ok_or_else(beyond)?;
    let pointer = last.starts_with('*');
    let name = last.trim_start_matches('*');
    let sizes = extents.split(['[', ']']).filter(|s| !s.is_empty());
    let sizes: Vec<usize> = sizes
        .map(|s| s.parse().map_err(|_| beyond()))
        .collect::<Outcome<_>>()?;
    let by_value = !pointer && extents.is_empty();
    let shape = match (words.as_slice(), by_value) {
        (["double"], true) => Shape::Scalar,
        (["double"], false) => Shape::Doubles(sizes),
        (["int" | "char"], true) => Shape::Whole,
        (["int"], false) => Shape::Aside("int", sizes),
        (["char"], false) => Shape::Aside("char", sizes),
        (["const", "char"], false) => Shape::Text,
        (["eraASTROM"], false) => Shape::Astrom,
        (["eraLDBODY"], false) => Shape::Bodies,
        _ => return Err(beyond()),
    };
    let role = match shape {
        Shape::Scalar | Shape::Whole | Shape::Text => Role::Given,
        Shape::Aside(..) => Role::Returned,
        _ => roles.of(name).ok_or_else(|| {
            Failure::new(format!(
                "{function}: the comment does not list `{name}` as given or returned"
            ))
        })?,
    };
    Ok(Parameter {
        name: name.to_owned(),
        shape,
        role,
    })
}

/// Parameter names that a comment lists as given and as returned.
#[derive(Default)]
struct Roles {
    given: Vec<String>,
    returned: Vec<String>,
}

impl Roles {
    /// Parses a comment. Sections open with two blanks (`**  Given:`). Entries (`**     date1,date2  double`)
    /// have the indentation of the first entry; fields of a struct are indented deeper.
    fn read(comment: &str) -> Roles {
        let mut roles = Roles::default();
        let (mut given, mut returned, mut depth) = (false, false, None);
        for line in comment.lines().filter_map(|l| l.strip_prefix("**")) {
            let indent = line.len() - line.trim_start().len();
            if indent == 2 {
                given = line.contains("Given");
                returned = line.to_lowercase().contains("returned");
                depth = None;
            } else if (given || returned)
                && !line.trim().is_empty()
                && *depth.get_or_insert(indent) == indent
            {
                let names = line
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .split(',')
                    .map(|n| n.trim_start_matches('*').to_owned());
                let names: Vec<String> = names.collect();
                if given {
                    roles.given.extend_from_slice(&names);
                }
                if returned {
                    roles.returned.extend(names);
                }
            }
        }
        roles
    }

    fn of(&self, name: &str) -> Option<Role> {
        let among = |names: &[String]| names.iter().any(|n| n == name);
        match (among(&self.given), among(&self.returned)) {
            (true, true) => Some(Role::Both),
            (true, false) => Some(Role::Given),
            (false, true) => Some(Role::Returned),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMENT: &str = "/*\n**  Turns.\n**\n**  Given:\n**     phi  double  angle\n**     a,b  double[3]  ends\n\
        **\n**  Given and returned:\n**     r  double[3][3]  r-matrix\n**\n**  Returned:\n\
        **     s  eraASTROM*  parameters\n**      a  double  a field\n**     z  double  last\n**\n**  Notes:\n*/";

    fn read(header: &str) -> Outcome<Vec<Function>> {
        parse(header, |_| Ok(COMMENT.into()))
    }

    #[test]
    fn a_prototype_and_its_comment_are_read() {
        let header = "/* all (of) them; */\nint eraTurn(int n, double phi, double a[3],\n  double r[3][3], \
                      eraASTROM *s, double *z, int ihmsf[4], const char *type);";
        let functions = read(header).unwrap();
        let turn = &functions[0];
        assert_eq!(
            (turn.name.as_str(), turn.returns),
            ("eraTurn", Returns::Status)
        );
        let seen: Vec<_> = turn
            .parameters
            .iter()
            .map(|p| (p.name.as_str(), p.shape.clone(), p.role))
            .collect();
        assert_eq!(
            seen,
            [
                ("n", Shape::Whole, Role::Given),
                ("phi", Shape::Scalar, Role::Given),
                ("a", Shape::Doubles(vec![3]), Role::Given),
                ("r", Shape::Doubles(vec![3, 3]), Role::Both),
                ("s", Shape::Astrom, Role::Returned),
                ("z", Shape::Doubles(vec![]), Role::Returned),
                ("ihmsf", Shape::Aside("int", vec![4]), Role::Returned),
                ("type", Shape::Text, Role::Given),
            ]
        );
        assert!(turn.is_differentiable());
    }

    #[test]
    fn a_function_without_a_real_result_has_no_derivative() {
        let functions =
            read("void eraA2af(int ndp, double phi, char *sign, int idmsf[4]);").unwrap();
        assert!(!functions[0].is_differentiable());
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(read("void eraX(double q[3]);").is_err(), "no role");
        assert!(
            read("void eraX(float f);").is_err(),
            "a type of another kind"
        );
        assert!(
            read("double *eraX(double phi);").is_err()
                || read("double *eraX(double phi);").unwrap().is_empty()
        );
    }
}
