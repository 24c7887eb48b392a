//! `cargo xtask survey`: differentiates the functions of unmodified libraries in both modes and compares the
//! derivatives with finite differences. Each function is done, refused with a code, or wrong; wrong is a
//! failure.
//!
//! Flow: a package registry provides the sources of a library (`crate::sources`), and the headers list the
//! functions with a real parameter and a real result. Each function becomes a `Subject`, y = f(x) with at least
//! three points (`erfa`; `scalar` for libm and GSL; `objectives` for NLopt). `judged` builds both derivatives,
//! and the judge (`judge.c`) compares the derivatives with finite differences. No library becomes part of this
//! project.

mod archives;
mod erfa;
mod gsl;
mod judged;
mod musl;
mod objectives;
mod scalar;
mod subject;

pub use erfa::Library;

use crate::gradus;
use crate::process::{Failure, Outcome};
use judged::{Tally, Tool};
use std::path::Path;
use subject::Collection;

/// Library: name, required percentage of done functions, and reader.
struct Known {
    name: &'static str,
    says: &'static str,
    least_done: usize,
    open: fn(&Path) -> Outcome<Collection>,
}

const LIBRARIES: &[Known] = &[
    Known {
        name: "erfa",
        says: "a library of astronomers",
        least_done: 95,
        open: |_| erfa::collection(),
    },
    Known {
        name: "libm",
        says: "musl's libm; Gradus knows the functions by name",
        least_done: 90,
        open: musl::own_names,
    },
    Known {
        name: "musl",
        says: "the same code under other names; refused functions are registered with `__enzyme_function_like`",
        least_done: 90,
        open: musl::code,
    },
    Known {
        name: "gsl",
        says: "GSL's special functions, with --strong-zero",
        least_done: 90,
        open: gsl::collection,
    },
    Known {
        name: "nlopt",
        says: "NLopt's test objectives",
        least_done: 90,
        open: objectives::collection,
    },
];

/// Surveys all libraries, the named library, or the named functions of a library. `--tool dual` selects dual
/// numbers.
///
/// # Errors
/// Fails if a derivative is wrong or if fewer functions than required are done.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let (tool, words) = match arguments {
        [words @ .., option, value] if option == "--tool" && value == "dual" => (Tool::Dual, words),
        words => match gradus::binary()? {
            Some(binary) => (Tool::Gradus(binary), words),
            None => {
                return Err(Failure::new(
                    "this clone does not build `gradus`; --tool dual surveys dual numbers",
                ));
            }
        },
    };
    let (library, names) = match words.split_first() {
        Some((library, names)) => (Some(library), names),
        None => (None, words),
    };
    let chosen: Vec<&Known> = LIBRARIES
        .iter()
        .filter(|known| library.is_none_or(|name| name == known.name))
        .collect();
    if chosen.is_empty() {
        let all: Vec<&str> = LIBRARIES.iter().map(|known| known.name).collect();
        return Err(Failure::new(format!(
            "unknown library, expected one of: {}",
            all.join(", ")
        )));
    }
    let mut failed = Vec::new();
    for known in chosen {
        println!("\n{}: {}\n", known.name, known.says);
        match one(known, &tool, names) {
            Ok(tally) => {
                println!("{}\n{}: {}", tally.table, known.name, tally.summary());
                if let Err(failure) = tally.check(known.least_done) {
                    failed.push(format!("{}: {failure}", known.name));
                }
            }
            Err(failure) => failed.push(format!("{}: {failure}", known.name)),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(failed.join("; "))),
    }
}

fn one(known: &Known, tool: &Tool, names: &[String]) -> Outcome<Tally> {
    let binary = match tool {
        Tool::Gradus(binary) => binary.as_path(),
        Tool::Dual if known.name == "erfa" => Path::new(""),
        Tool::Dual => return Err(Failure::new("--tool dual supports erfa only")),
    };
    let mut collection = (known.open)(binary)?;
    if let Some(name) = names
        .iter()
        .find(|name| !collection.subjects.iter().any(|s| s.name == **name))
    {
        return Err(Failure::new(format!("unknown function {name}")));
    }
    collection
        .subjects
        .retain(|subject| names.is_empty() || names.contains(&subject.name));
    judged::survey(known.name, tool, &collection)
}
