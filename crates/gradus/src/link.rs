//! The link step across files, for differentiation calls whose functions are defined in other objects.
//!
//! Exactly the objects reached by such calls are merged as bitcode in command-line order, differentiated
//! and compiled. The result replaces the first object. Members of archives are merged if a merged object
//! needs them; the archive itself stays.

use crate::clang_jobs::Job;
use crate::compilation;
use crate::files::{self, Scratch};
use crate::job_execution::run_compiler;
use crate::module_scan::is_parallel;
use crate::objects::archive;
use crate::objects::fat_objects::{self, CarriedModule, ObjectFacts};
use crate::objects::kind::{is_archive, is_bitcode};
use crate::objects::linker_inputs::inputs;
use crate::objects::outside_symbols;
use crate::{Settings, child};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{CallsTask, Input, Options, Outcome, OutputKind, Reply, Request, Task};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// An object on the linker's command line, or a member of an archive on it.
struct Candidate {
    /// The position of the argument on the command line.
    word: usize,
    /// True for a member of an archive.
    member: bool,
    name: String,
    facts: ObjectFacts,
}

/// The outcome of the link step.
pub(crate) struct Linked {
    /// The linker's job, with objects replaced.
    pub job: Job,
    /// The passes' reply, if they ran.
    pub reply: Option<Reply>,
}

/// Prepares a linker's job. `options` are the passes' options; `compiled` are the objects of this run, which carry no sections yet.
pub(crate) fn prepare(
    settings: &Settings,
    options: &Options,
    scratch: &Scratch,
    job: &Job,
    compiled: &HashMap<PathBuf, CarriedModule>,
) -> Result<Linked, Diagnostic> {
    let mut candidates = candidates(settings, job, compiled)?;
    let merged = objects_to_merge(&candidates);
    compile_again(settings, scratch, &mut candidates, &merged)?;
    let untouched = Linked {
        job: job.clone(),
        reply: None,
    };
    let Some(&first) = merged.first() else {
        return Ok(untouched);
    };
    check_constructor_order(&candidates, &merged)?;
    let carried = |&i: &usize| candidates[i].facts.carried.as_ref().map(|c| (i, c));
    let parts: Vec<(usize, &CarriedModule)> = merged.iter().filter_map(carried).collect();
    let Some(leader) = first_back_arguments(&parts) else {
        return Ok(untouched);
    };
    let needed_outside = symbols_outside(job, &candidates, &merged);
    let reply = derive(settings, options, &candidates, &parts, needed_outside);
    let bitcode = reply.output(OutputKind::Bitcode);
    let Some(bitcode) = bitcode.filter(|_| reply.outcome == Outcome::Ok) else {
        return Ok(Linked {
            reply: Some(reply),
            ..untouched
        });
    };
    let (derived, object) = (scratch.file("linked.bc"), scratch.file("linked.o"));
    files::write(&derived, bitcode)?;
    run_compiler(&Job {
        program: settings.compiler(compilation::language(leader))?,
        args: compilation::with_input_and_output(leader, &derived, &object),
    })?;
    Ok(Linked {
        job: with_merged_object(job, &candidates, &merged, first, &object),
        reply: Some(reply),
    })
}

/// Compiles the modules of merged objects that carry a record only.
fn compile_again(
    settings: &Settings,
    scratch: &Scratch,
    candidates: &mut [Candidate],
    merged: &[usize],
) -> Result<(), Diagnostic> {
    for &i in merged {
        let Candidate { name, facts, .. } = &mut candidates[i];
        if let (None, Some(source)) = (&facts.carried, &facts.source) {
            let bitcode = scratch.file(&format!("again{i}.bc"));
            facts.carried = Some(source.module(settings, name, &bitcode)?);
        }
    }
    Ok(())
}

/// Returns the back half's arguments of the first part that has any; LTO bitcode has none.
fn first_back_arguments<'p>(parts: &[(usize, &'p CarriedModule)]) -> Option<&'p [String]> {
    let mut all = parts.iter().map(|(_, carried)| &carried.back[..]);
    all.find(|back| !back.is_empty())
}

/// Returns the objects of a linker's command line, in order; empty if no object has differentiation calls.
fn candidates(
    settings: &Settings,
    job: &Job,
    compiled: &HashMap<PathBuf, CarriedModule>,
) -> Result<Vec<Candidate>, Diagnostic> {
    let inputs: Vec<(usize, PathBuf)> = inputs(job).collect();
    let (archives, objects): (Vec<_>, Vec<_>) =
        inputs.into_iter().partition(|(_, path)| is_archive(path));
    let object = |(word, path): (usize, PathBuf)| {
        let bytes = files::read(&path).ok()?;
        let mut facts = match is_bitcode(&bytes) {
            true => fat_objects::bitcode_facts(settings, &path, bytes)?,
            false => fat_objects::object_facts(&bytes)?,
        };
        facts.carried = facts.carried.or_else(|| compiled.get(&path).cloned());
        Some(Candidate {
            word,
            member: false,
            name: path.display().to_string(),
            facts,
        })
    };
    let mut found: Vec<Candidate> = objects.into_iter().filter_map(object).collect();
    reject_late_registrations(&found)?;
    if !found.iter().any(|c| c.facts.has_calls()) {
        return Ok(Vec::new());
    }
    for (word, path) in archives {
        let members = archive::members(&path);
        let members = members
            .iter()
            .filter_map(|member| fat_objects::object_facts(member));
        found.extend(members.map(|facts| Candidate {
            word,
            member: true,
            name: path.display().to_string(),
            facts,
        }));
    }
    found.sort_by_key(|candidate| candidate.word);
    Ok(found)
}

/// Refuses registrations of functions whose files were differentiated before the link.
fn reject_late_registrations(candidates: &[Candidate]) -> Result<(), Diagnostic> {
    let done = |candidate: &&Candidate| {
        let carried = candidate.facts.carried.as_ref();
        !candidate.facts.has_calls()
            && carried.is_some_and(|c| fat_objects::asks_for_derivatives(&c.bitcode))
    };
    let done: Vec<&Candidate> = candidates.iter().filter(done).collect();
    for candidate in candidates {
        for (registration, functions) in &candidate.facts.registers {
            let defines =
                |other: &&&Candidate| functions.iter().any(|f| other.facts.defines.contains(f));
            let Some(other) = done.iter().find(defines) else {
                continue;
            };
            let message = format!(
                "the registration `{registration}` in {} is too late: {} is already differentiated",
                candidate.name, other.name
            );
            return Err(Diagnostic::error(Code::UnsupportedKeyword, message).help(
                "write the registration into the file that defines the function, or into a header of that file",
            ));
        }
    }
    Ok(())
}

/// Returns the objects with calls and the objects needed by them, transitively, in command-line order; only
/// objects that carry bitcode.
fn objects_to_merge(candidates: &[Candidate]) -> Vec<usize> {
    let mut definer: HashMap<&str, usize> = HashMap::new();
    for (i, candidate) in candidates.iter().enumerate() {
        for name in &candidate.facts.defines {
            definer.entry(name).or_insert(i);
        }
    }
    let carries = |i: &usize| candidates[*i].facts.has_module();
    let start = (0..candidates.len()).filter(carries);
    let mut pending: Vec<usize> = start
        .filter(|&i| !candidates[i].member && candidates[i].facts.has_calls())
        .collect();
    if !pending.is_empty() {
        let registers =
            |i: &usize| !candidates[*i].member && !candidates[*i].facts.registers.is_empty();
        pending.extend((0..candidates.len()).filter(carries).filter(registers));
    }
    let mut merged = vec![false; candidates.len()];
    while let Some(i) = pending.pop() {
        if std::mem::replace(&mut merged[i], true) {
            continue;
        }
        let needs = candidates[i].facts.needs.iter();
        let next = needs.filter_map(|name| definer.get(name.as_str()).copied());
        pending.extend(next.filter(carries));
    }
    (0..candidates.len()).filter(|&i| merged[i]).collect()
}

/// Refuses a merge that changes the order of objects with constructors.
fn check_constructor_order(candidates: &[Candidate], merged: &[usize]) -> Result<(), Diagnostic> {
    let (Some(first), Some(last)) = (merged.first(), merged.last()) else {
        // Not an error: no objects are merged.
        return Ok(());
    };
    let early = |i: &usize| candidates[*i].facts.constructors;
    let moved: Vec<usize> = merged[1..].iter().copied().filter(early).collect();
    let passed = (*first..*last).filter(|i| !merged.contains(i) && !candidates[*i].member);
    let passed: Vec<usize> = passed.filter(early).collect();
    let clash = moved
        .iter()
        .find_map(|&m| Some((m, *passed.iter().find(|&&p| p < m)?)));
    let Some((one, other)) = clash else {
        // Not an error: no constructors change their order.
        return Ok(());
    };
    let message = format!(
        "derivatives across files require a merge that runs the constructors of {} before the constructors of {}",
        candidates[one].name, candidates[other].name
    );
    Err(Diagnostic::error(Code::StaticState, message).help(
        "list the files that are differentiated together next to each other in the link command",
    ))
}

fn derive(
    settings: &Settings,
    options: &Options,
    candidates: &[Candidate],
    parts: &[(usize, &CarriedModule)],
    needed_outside: Option<Vec<String>>,
) -> Reply {
    let leader = first_back_arguments(parts).unwrap_or_default();
    let input = |(i, carried): &(usize, &CarriedModule)| {
        Input::new(candidates[*i].name.clone(), carried.bitcode.clone())
    };
    let request = Request {
        inputs: parts.iter().map(input).collect(),
        task: Task::Calls(CallsTask {
            partial: false,
            elsewhere: symbols_of_unmerged_objects(candidates, parts),
            needed_outside,
        }),
        level: compilation::level(leader),
        emit: vec![OutputKind::Bitcode],
        report: true,
        options: Options {
            parallel: parts.iter().any(|(_, part)| is_parallel(&part.bitcode)),
            skip_late: true,
            strip_debug: !compilation::has_debug(leader),
            ..options.clone()
        },
    };
    child::compile(settings, &request)
}

/// Returns the symbols defined by unmerged objects and needed by merged objects: functions with such names
/// belong to the program, even if the C library has a function of equal name.
fn symbols_of_unmerged_objects(
    candidates: &[Candidate],
    parts: &[(usize, &CarriedModule)],
) -> Vec<String> {
    let merged = |at: &usize| parts.iter().any(|(part, _)| part == at);
    let needs = parts
        .iter()
        .flat_map(|(at, _)| &candidates[*at].facts.needs);
    let needs: HashSet<&String> = needs.collect();
    let others = (0..candidates.len()).filter(|at| !merged(at));
    let defined = others.flat_map(|at| &candidates[at].facts.defines);
    defined
        .filter(|name| needs.contains(name))
        .cloned()
        .collect()
}

/// Returns the symbols in the inputs of an executable's link that are not merged; `None` if the link is of another kind
/// or names further symbols.
fn symbols_outside(job: &Job, candidates: &[Candidate], merged: &[usize]) -> Option<Vec<String>> {
    // Archives have members of unknown format at times; the reader of the libraries checks them.
    let is_object = |word: usize| {
        let mut here = candidates.iter();
        here.any(|candidate| candidate.word == word && !candidate.member)
    };
    let mut found = outside_symbols::of_executable(job, is_object)?;
    let left = (0..candidates.len()).filter(|i| !merged.contains(i));
    for candidate in left.map(|i| &candidates[i]) {
        found.extend(candidate.facts.needs.iter().cloned());
        found.extend(candidate.facts.defines.iter().cloned());
    }
    Some(found.into_iter().collect())
}

/// Returns the linker's job with the merged object in place of the first, and without the others.
fn with_merged_object(
    job: &Job,
    candidates: &[Candidate],
    merged: &[usize],
    first: usize,
    object: &Path,
) -> Job {
    let mut job = job.clone();
    let whole = merged.iter().filter(|&&i| !candidates[i].member);
    let mut gone: Vec<usize> = whole.map(|&i| candidates[i].word).collect();
    let place = candidates[first].word;
    match candidates[first].member {
        // An archive stays; the merged object precedes it.
        true => job.args.insert(place, object.display().to_string()),
        false => job.args[place] = object.display().to_string(),
    }
    gone.retain(|&word| word != place);
    if candidates[first].member {
        gone.iter_mut()
            .filter(|word| **word >= place)
            .for_each(|word| *word += 1);
    }
    gone.sort_unstable();
    for word in gone.into_iter().rev() {
        job.args.remove(word);
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, word: usize, needs: &[&str], defines: &[&str]) -> Candidate {
        Candidate {
            word,
            member: name.ends_with(".a"),
            name: name.into(),
            facts: ObjectFacts {
                carried: Some(CarriedModule {
                    bitcode: Vec::new(),
                    back: Vec::new(),
                }),
                needs: needs.iter().map(|n| n.to_string()).collect(),
                defines: defines.iter().map(|n| n.to_string()).collect(),
                constructors: false,
                registers: Vec::new(),
                source: None,
            },
        }
    }

    fn program() -> Vec<Candidate> {
        vec![
            object("other.o", 1, &["printf"], &["other"]),
            object("main.o", 2, &["__enzyme_autodiff", "f"], &["main"]),
            object("f.o", 3, &["g", "sin"], &["f"]),
            object("lib.a", 4, &[], &["g"]),
            object("lib.a", 4, &[], &["unused"]),
        ]
    }

    #[test]
    fn only_what_the_calls_reach_is_merged() {
        assert_eq!(objects_to_merge(&program()), [1, 2, 3]);
        let mut quiet = program();
        quiet[1].facts.needs.remove("__enzyme_autodiff");
        assert!(objects_to_merge(&quiet).is_empty());
        let mut registering = program();
        registering[0].facts.registers = vec![("__enzyme_inactivefn".into(), Default::default())];
        assert_eq!(objects_to_merge(&registering), [0, 1, 2, 3]);
    }

    #[test]
    fn the_merged_object_takes_the_first_place_and_archives_stay() {
        let job = Job {
            program: "ld".into(),
            args: ["-x", "other.o", "main.o", "f.o", "lib.a", "-lm"]
                .map(String::from)
                .to_vec(),
        };
        let candidates = program();
        let job = with_merged_object(&job, &candidates, &[1, 2, 3], 1, Path::new("new.o"));
        assert_eq!(job.args, ["-x", "other.o", "new.o", "lib.a", "-lm"]);
    }

    #[test]
    fn constructors_do_not_pass_each_other() {
        let mut candidates = program();
        candidates.insert(2, object("between.o", 9, &[], &[]));
        candidates[2].facts.constructors = true;
        assert!(check_constructor_order(&candidates, &[1, 3]).is_ok());
        candidates[3].facts.constructors = true;
        assert!(check_constructor_order(&candidates, &[1, 3]).is_err());
        assert!(check_constructor_order(&candidates, &[2, 3]).is_ok());
    }
}
