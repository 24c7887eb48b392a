//! Reduces a wrong or refused program to a page: the failure, the command to reproduce it, the reduced
//! program.

use crate::{ProgramKind, Settings, memory_findings, shares_verdicts};
use gradus_ir::Unit;
use gradus_testkit::{
    C_INCLUDES, ROUTES, Verdict, check_c, check_fork_join, check_kernel, check_memory_program,
    check_parallel_c, check_unit, fork_join_unit, reduce, reduce_text, wide_unit,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the page of the settings' program; `None` if the program is right.
pub fn page(settings: &Settings) -> Option<String> {
    match settings.sort {
        ProgramKind::Wide => wide_page(settings),
        ProgramKind::Parallel => parallel_page(settings),
        ProgramKind::C => c_page(settings),
        ProgramKind::Gradients => gradient_page(settings),
        ProgramKind::Kernels => kernel_page(settings),
        ProgramKind::Shares => shares_page(settings),
        ProgramKind::PointsTo => memory_page(settings),
    }
}

/// Returns the page of a memory program: of an access outside the targets, or else of a difference between the
/// analyses.
fn memory_page(settings: &Settings) -> Option<String> {
    let program = settings.memory_program(settings.seed);
    let found = memory_findings(&program).ok()?;
    let is_unsound = !found.unsound.is_empty();
    let wanted = found.wider.first().map(|(class, _)| class.clone());
    let unit = gradus_ir::parse(&program.text, "memory").ok()?;
    unit_page(settings, &unit, "points-to", |unit| {
        let judge = || {
            let found = check_memory_program(unit.clone(), program.assembles_addresses)?;
            let mut unsound = found.unsound.into_iter();
            if is_unsound {
                return Ok(vec![unsound.next().map_or(Verdict::Right, |text| {
                    let analysis = text.split(':').next().unwrap_or_default();
                    Verdict::Refused {
                        code: analysis.into(),
                        place: "an access outside the targets".into(),
                    }
                })]);
            }
            let mut wider = found.wider.into_iter();
            let own = wider.find(|(class, _)| Some(class) == wanted.as_ref());
            Ok(vec![own.map_or(Verdict::Right, |(class, _)| {
                Verdict::Refused {
                    code: "wider".into(),
                    place: class,
                }
            })])
        };
        first_verdict(judge)
    })
}

/// Returns the page of a call graph, not reduced.
fn shares_page(settings: &Settings) -> Option<String> {
    let program = settings.shares_program(settings.seed);
    let verdict = match shares_verdicts(settings, std::slice::from_ref(&program)) {
        Ok(verdicts) => verdicts.into_iter().next()?,
        Err(why) => Verdict::Crash(why),
    };
    let what = failure_kind(&verdict)?;
    Some(format!("// {what}\n{}", program.joined_files()))
}

/// Returns the failure without numbers that change at every reduction step. The end of a function's name
/// stays: it distinguishes the program from its derivatives.
fn failure_kind(verdict: &Verdict) -> Option<String> {
    let text = match verdict {
        Verdict::Wrong(text) | Verdict::Crash(text) => text.clone(),
        Verdict::Refused { code, place } => format!("{code}: {place}"),
        Verdict::Right | Verdict::Isolated(_) | Verdict::Oscillating(_) => return None,
    };
    let words = text.split_whitespace();
    let plain = words.filter_map(|word| match word.rfind(|c: char| c.is_ascii_digit()) {
        Some(last) if word.starts_with("f_") => Some(&word[last + 1..]),
        None if !word.contains('`') => Some(word),
        _ => None,
    });
    Some(plain.take(6).collect::<Vec<_>>().join(" "))
}

/// Returns the first verdict of a check that may panic.
fn first_verdict(check: impl FnOnce() -> Result<Vec<Verdict>, String>) -> Option<Verdict> {
    let found = catch_unwind(AssertUnwindSafe(check)).ok()?;
    found.ok()?.into_iter().next()
}

fn wide_page(settings: &Settings) -> Option<String> {
    let programs = [settings.wide_program(settings.seed)];
    let way = settings.way();
    let unit = wide_unit(&programs).ok()?;
    unit_page(settings, &unit, &format!("{way:?}"), |unit| {
        first_verdict(|| check_unit(unit, &programs, &way))
    })
}

fn parallel_page(settings: &Settings) -> Option<String> {
    let programs = [settings.fork_join_program(settings.seed)];
    let way = settings.fork_join_way();
    let unit = fork_join_unit(&programs).ok()?;
    unit_page(settings, &unit, &format!("{way:?}"), |unit| {
        first_verdict(|| check_fork_join(unit, &programs, &way))
    })
}

fn kernel_page(settings: &Settings) -> Option<String> {
    let text = settings.kernel_program(settings.seed).text;
    let unit = gradus_ir::parse(&text, "kernel").ok()?;
    unit_page(settings, &unit, "kernels", |unit| {
        let judge = || match check_kernel(&gradus_ir::print(unit), false) {
            Ok(_) => Ok(vec![Verdict::Right]),
            Err(why) => {
                let first = why.lines().next().unwrap_or_default();
                Ok(vec![Verdict::Wrong(first.into())])
            }
        };
        first_verdict(judge)
    })
}

/// Returns the page of an IR program.
fn unit_page(
    settings: &Settings,
    unit: &Unit,
    way: &str,
    judge: impl Fn(&Unit) -> Option<Verdict>,
) -> Option<String> {
    let wanted = failure_kind(&judge(unit)?)?;
    let small = reduce(unit, |candidate| {
        judge(candidate).and_then(|v| failure_kind(&v)).as_ref() == Some(&wanted)
    });
    let last = judge(&small)?;
    Some(format!(
        "# {wanted}\n\nProgram {} in configuration {way}: {last:?}\n\n```\n{}```\n",
        settings.seed,
        gradus_testkit::without_unused(&small)
    ))
}

fn c_page(settings: &Settings) -> Option<String> {
    let mut program = settings.c_program(settings.seed);
    let flags = ROUTES[settings.route.unwrap_or(0) % ROUTES.len()];
    let source = program.source.clone();
    source_page(settings, &source, &format!("{flags:?}"), |source| {
        program.source = source.to_string();
        first_verdict(|| check_c(std::slice::from_ref(&program), flags))
    })
}

fn gradient_page(settings: &Settings) -> Option<String> {
    let mut program = settings.parallel_c_program(settings.seed);
    let way = settings.parallel_c_way();
    let source = program.source.clone();
    source_page(settings, &source, &format!("{way:?}"), |source| {
        program.source = source.to_string();
        first_verdict(|| check_parallel_c(std::slice::from_ref(&program), &way))
    })
}

/// Returns the page of a C program.
fn source_page(
    settings: &Settings,
    source: &str,
    way: &str,
    mut judge: impl FnMut(&str) -> Option<Verdict>,
) -> Option<String> {
    let wanted = failure_kind(&judge(source)?)?;
    let small = reduce_text(source, |candidate| {
        judge(candidate).and_then(|v| failure_kind(&v)).as_ref() == Some(&wanted)
    });
    let last = judge(&small)?;
    Some(format!(
        "# {wanted}\n\nProgram {} compiled with {way}: {last:?}\n\n```c\n{C_INCLUDES}{small}```\n",
        settings.seed
    ))
}
