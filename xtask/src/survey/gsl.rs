//! GSL's special functions: every function of GSL's headers with a real parameter and a real result.
//!
//! The points come from GSL's own tests, which call `NAME_e` with equal arguments. A further point replaces one
//! argument by a number with which the function's code compares the argument.

use super::archives::{self, Sources};
use super::scalar::{self, Function, Parameter};
use super::subject::{Collection, Place, Subject};
use crate::process::{self, Failure, Outcome};
use crate::sources::GSL;
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns GSL's special functions.
///
/// # Errors
/// Fails if GSL cannot be fetched or does not compile.
pub fn collection(binary: &Path) -> Outcome<Collection> {
    let gsl = GSL.locate()?;
    let include = configure(&gsl)?;
    let texts = Texts::read(&gsl)?;
    let functions = texts
        .headers
        .iter()
        .flat_map(|header| scalar::functions(header));
    let subjects: Vec<Subject> = functions
        .map(|function| Subject {
            name: function.name.clone(),
            units: match places(&function, &texts) {
                places if places.is_empty() => Err("GSL's tests do not call the function".into()),
                places => Ok(scalar::units(&function, BEFORE, &places, None)),
            },
        })
        .collect();
    let flags = [&include, &gsl]
        .map(|folder| format!("-I{}", folder.display()))
        .to_vec();
    let sources = Sources {
        files: files(&gsl)?,
        flags: [flags.as_slice(), &["-DHAVE_CONFIG_H".into()]].concat(),
    };
    let folder = workspace::target().join("survey/gsl/library");
    Ok(Collection {
        subjects,
        flags,
        // The iterations begin at zero, a point without a slope for a root.
        options: vec!["--strong-zero".into()],
        archives: Some(archives::build(binary, &folder, &sources)?),
    })
}

/// Turns off GSL's error handler, which ends the program at a point without a value.
const BEFORE: &str = "#include <gsl/gsl_errno.h>\n#include <gsl/gsl_machine.h>\n#include <gsl/gsl_math.h>\n\
#include \"specfunc/gsl_sf.h\"\n\
__attribute__((constructor)) static void quiet(void) { gsl_set_error_handler_off(); }\n";

/// Writes GSL's configuration and returns a folder with the headers as `gsl/…`.
fn configure(gsl: &Path) -> Outcome<PathBuf> {
    if !gsl.join("config.h").is_file() {
        let mut configure = Command::new("sh");
        configure.args(["./configure", "--disable-shared"]);
        process::capture(configure.current_dir(gsl))?;
    }
    let include = gsl.join("headers");
    let folder = include.join("gsl");
    let failed = |path: &Path, e: std::io::Error| Failure::new(format!("{}: {e}", path.display()));
    std::fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
    let parts = std::fs::read_dir(gsl).map_err(|e| failed(gsl, e))?;
    let own = std::iter::once(gsl.to_path_buf());
    for part in own.chain(
        parts
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.is_dir() && *p != include),
    ) {
        for entry in std::fs::read_dir(&part)
            .map_err(|e| failed(&part, e))?
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let to = folder.join(&name);
            if name.starts_with("gsl_") && name.ends_with(".h") && !to.exists() {
                std::fs::copy(entry.path(), &to).map_err(|e| failed(&to, e))?;
            }
        }
    }
    Ok(include)
}

/// Returns the sources of the special functions and of the code that GSL links to their tests.
fn files(gsl: &Path) -> Outcome<Vec<PathBuf>> {
    let makefile = |folder: &str| {
        let path = gsl.join(folder).join("Makefile.am");
        let text = std::fs::read_to_string(&path);
        text.map(|text| text.replace("\\\n", " "))
            .map_err(|e| Failure::new(format!("{}: {e}", path.display())))
    };
    let own = makefile("specfunc")?;
    let linked = own
        .lines()
        .find(|l| l.starts_with("test_LDADD"))
        .unwrap_or_default();
    let beside = linked
        .split_whitespace()
        .filter_map(|w| w.strip_prefix("../")?.split('/').next());
    let mut files = Vec::new();
    for folder in ["specfunc"]
        .into_iter()
        .chain(beside)
        .filter(|f| *f != "test")
    {
        let text = makefile(folder)?;
        let lists = text
            .lines()
            .filter(|l| l.starts_with("lib") && l.contains("_SOURCES"));
        let sources = lists
            .flat_map(str::split_whitespace)
            .filter(|w| w.ends_with(".c"));
        files.extend(sources.map(|name| gsl.join(folder).join(name)));
    }
    Ok(files)
}

/// Texts of GSL's sources.
struct Texts {
    headers: Vec<String>,
    sources: String,
    tests: String,
}

impl Texts {
    fn read(gsl: &Path) -> Outcome<Texts> {
        let folder = gsl.join("specfunc");
        let mut texts = Texts {
            headers: Vec::new(),
            sources: String::new(),
            tests: String::new(),
        };
        let failed = |e: std::io::Error| Failure::new(format!("{}: {e}", folder.display()));
        let entries = std::fs::read_dir(&folder).map_err(failed)?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let text = || std::fs::read_to_string(&path).map_err(failed);
            match (name.starts_with("gsl_sf_"), name.starts_with("test_")) {
                (true, _) if name.ends_with(".h") => texts.headers.push(text()?),
                (_, true) if name.ends_with(".c") => texts.tests += &text()?,
                _ if name.ends_with(".c") => texts.sources += &text()?,
                _ => {}
            }
        }
        Ok(texts)
    }
}

/// Returns the points at branches, then the points of the tests. The first branch point and the first point of
/// each half of the tests are points; all later points of a group are substitutes.
fn places(function: &Function, texts: &Texts) -> Vec<Place> {
    let tested = tested(function, &texts.tests);
    let Some(first) = tested.first() else {
        return Vec::new();
    };
    let mut places: Vec<Place> = branches(function, &texts.sources)
        .into_iter()
        .map(|(argument, at)| {
            let mut place = first.clone();
            place.x[argument] = at;
            place
        })
        .collect();
    let half = tested.len() / 2;
    let groups = [places.len(), places.len() + half];
    places.extend(tested[..half].iter().cloned());
    places.extend(tested[half..].iter().cloned());
    for (i, place) in places.iter_mut().enumerate() {
        place.spare = i > 0 && !groups.contains(&i);
    }
    places
}

/// Returns the arguments of the tests' calls of a function, as far as the arguments are constants.
fn tested(function: &Function, tests: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let name = format!("{}_e", function.name);
    for (at, _) in tests.match_indices(&name) {
        let rest = tests[at + name.len()..].trim_start_matches([',', ' ']);
        let Some(list) = rest.strip_prefix('(').and_then(arguments) else {
            continue;
        };
        if list.len() != function.parameters.len() + 1
            || !list[..list.len() - 1].iter().all(|a| is_constant(a))
        {
            continue;
        }
        let of = |kinds: &[Parameter]| {
            let both = function.parameters.iter().zip(&list);
            both.filter(|(p, _)| kinds.contains(p))
                .map(|(_, a)| a.clone())
                .collect()
        };
        let place = Place {
            x: of(&[Parameter::Real]),
            fixed: of(&[Parameter::Whole, Parameter::Long]),
            ..Place::default()
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Returns the arguments of a call. The text begins behind the opening parenthesis.
fn arguments(text: &str) -> Option<Vec<String>> {
    let (mut depth, mut list, mut argument) = (0, Vec::new(), String::new());
    for letter in text.chars() {
        match letter {
            ')' if depth == 0 => {
                list.push(argument.trim().to_owned());
                return Some(list);
            }
            ',' if depth == 0 => list.push(std::mem::take(&mut argument).trim().to_owned()),
            _ => {
                depth += i32::from(letter == '(') - i32::from(letter == ')');
                argument.push(letter);
            }
        }
    }
    None
}

/// Returns whether an expression consists of numbers and GSL's constants. The accuracy mode is ignored.
fn is_constant(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    text == "m"
        || text == "mode"
        || words.all(|w| !w.starts_with(|c: char| c.is_lowercase() || c == '_'))
}

/// Returns the comparisons of a real parameter with a number in the code of `NAME_e`: the parameter's index
/// among the real parameters, and the number.
fn branches(function: &Function, sources: &str) -> Vec<(usize, String)> {
    let Some((names, body)) = definition(&format!("{}_e", function.name), sources) else {
        return Vec::new();
    };
    let both = function.parameters.iter().zip(&names);
    let real: Vec<&String> = both
        .filter(|(p, _)| **p == Parameter::Real)
        .map(|(_, n)| n)
        .collect();
    let mut found: Vec<(usize, String)> = Vec::new();
    for (at, sign) in body.match_indices(['<', '>']) {
        let before = body[..at].trim_end().trim_end_matches(')');
        let after = body[at + sign.len()..].trim_start_matches(['=', ' ']);
        let number: String = after
            .chars()
            .take_while(|c| c.is_ascii_digit() || ".eE+-".contains(*c))
            .collect();
        let word = before
            .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
            .next();
        let argument = real.iter().position(|name| Some(name.as_str()) == word);
        if let (Some(argument), Ok(_)) = (argument, number.parse::<f64>()) {
            found.push((argument, number));
        }
    }
    // The first comparisons often guard errors; later ones are tried first.
    found.reverse();
    found.dedup();
    found
}

/// Returns the parameter names and the body of a function.
fn definition<'a>(name: &str, sources: &'a str) -> Option<(Vec<String>, &'a str)> {
    for (at, _) in sources.match_indices(name) {
        let Some(list) = sources[at + name.len()..]
            .trim_start()
            .strip_prefix('(')
            .and_then(arguments)
        else {
            continue;
        };
        let rest = &sources[at..];
        let (Some(end), Some(open)) = (rest.find(')'), rest.find('{')) else {
            continue;
        };
        if open > end && rest[end + 1..open].trim().is_empty() {
            let last = |text: &String| {
                let word = text
                    .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
                    .next();
                word.unwrap_or_default().to_owned()
            };
            let close = rest.find("\n}").unwrap_or(rest.len());
            return Some((list.iter().map(last).collect(), &rest[open..close]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_branches_give_places() {
        let function =
            scalar::functions("double f(const double a, int n, gsl_mode_t m);").remove(0);
        let texts = Texts {
            headers: Vec::new(),
            sources: "int f_e(const double a, int n, gsl_mode_t m, gsl_sf_result * r)\n{\n  if(a < -2.5 || fabs(a) >= 1.0) g(a);\n}\n".into(),
            tests: "TEST(s, f_e, (M_PI/2.0, 3, m, &r), 0.5); f_e(x, 3, m, &r); f_e(7.0, 4, m, &r);".into(),
        };
        let places = places(&function, &texts);
        let x: Vec<(&str, bool)> = places.iter().map(|p| (p.x[0].as_str(), p.spare)).collect();
        assert_eq!(
            x,
            [
                ("1.0", false),
                ("-2.5", true),
                ("M_PI/2.0", false),
                ("7.0", false)
            ]
        );
        assert_eq!(places[3].fixed, ["4"]);
    }
}
