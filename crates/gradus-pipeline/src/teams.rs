//! Teams of what is differentiated as parallel loops over their ranks, cut at barriers.
//!
//! A team that stays one has one rank in a derivative, whose program is told of one thread. What ranks left must have
//! been left by as many as the program counts: so either all teams that have as many ranks as there are workers become
//! loops, and the program is told the true number, or none does. Other parallel loops that may have to do with the number
//! of ranks are serial where that is one ([`gradus_par::guard`]): they may be right on one thread only, and there may be
//! another number of threads when the return sweep comes.

use gradus_analysis::{Closure, Effects};
use gradus_edit::inline_call;
use gradus_ir::{Body, FuncId, Op, Unit};
use std::collections::HashSet;

/// One call after another, and so many ops at most of a function.
const MOST_LEVELS: usize = 3;
const MOST_OPS: usize = 6000;

/// What became of the teams of some functions.
pub(crate) struct Teams {
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// Whether no team is left that has as many ranks as there are workers.
    pub all: bool,
}

/// Makes loops of the teams of `functions` whose number of ranks the program states, where they can be, and with
/// `open` of the others, if all can. None does of the functions `nested`, to which regions come: a team there has
/// one rank.
pub(crate) fn to_loops(
    unit: &mut Unit,
    functions: &[FuncId],
    nested: &HashSet<FuncId>,
    open: bool,
) -> Teams {
    let asking = match open {
        true => gradus_par::loops_asking_teams(unit, functions),
        false => None,
    };
    let open = asking.is_some();
    let effects = Effects::of(unit, &Closure::of(unit, functions));
    let waiting = gradus_par::waiting(unit);
    let mut changed = Vec::new();
    for &func in functions.iter().filter(|func| !nested.contains(func)) {
        if let Some(body) = unit.functions[func].body.take() {
            let made = cut(unit, func, &body, &waiting, &effects, true);
            changed.extend(made.loops.then_some(func));
            unit.functions[func].body = Some(Box::new(made.body));
        }
    }
    let mut others: Vec<(FuncId, Body)> = Vec::new();
    let mut all = true;
    for &func in functions {
        let Some(body) = unit.functions[func].body.take() else {
            continue;
        };
        if gradus_par::teams(unit, &body, false).is_empty() {
            unit.functions[func].body = Some(body);
            continue;
        }
        if open && all && !nested.contains(&func) {
            let made = cut(unit, func, &body, &waiting, &effects, false);
            all &= made.all;
            others.push((func, made.body));
        }
        all &= open && !nested.contains(&func);
        unit.functions[func].body = Some(body);
    }
    if all && !others.is_empty() {
        for (func, body) in others {
            unit.functions[func].body = Some(Box::new(body));
            changed.push(func);
        }
        for (func, op) in asking.into_iter().flatten() {
            if let Some(mut body) = unit.functions[func].body.take() {
                gradus_par::guard(unit, &mut body, op);
                unit.functions[func].body = Some(body);
            }
            changed.push(func);
        }
        changed.sort_unstable();
        changed.dedup();
    }
    Teams { changed, all }
}

/// A body in which teams became loops.
struct Cut {
    body: Body,
    /// Whether any has, and whether all have.
    loops: bool,
    all: bool,
}

/// Makes loops of the teams of a body with a stated number of ranks, or of the others, where they can be.
fn cut(
    unit: &mut Unit,
    func: FuncId,
    body: &Body,
    waiting: &HashSet<FuncId>,
    effects: &Effects,
    stated: bool,
) -> Cut {
    let mut made = Cut {
        body: body.clone(),
        loops: false,
        all: true,
    };
    for team in gradus_par::teams(unit, body, stated) {
        let before = made.body.clone();
        let body = &mut made.body;
        take_in(unit, body, func, team, waiting);
        let is_cut = gradus_par::deal(unit, body, team, waiting)
            && gradus_gpu::team_to_loops(unit, body, func, team, effects);
        if !is_cut {
            made.body = before;
        }
        made.loops |= is_cut;
        made.all &= is_cut;
    }
    made
}

/// Takes the functions into a team that its ranks call and in which they may meet, share work or ask who they are.
fn take_in(unit: &mut Unit, body: &mut Body, func: FuncId, team: Op, waiting: &HashSet<FuncId>) {
    for _ in 0..MOST_LEVELS {
        let calls = body.walk(body.op_regions(team)[0]).filter_map(|op| {
            let callee = unit.callee(body, op)?;
            (callee != func && waiting.contains(&callee)).then_some((op, callee))
        });
        let calls: Vec<(Op, FuncId)> = calls.collect();
        let taken = calls.into_iter().filter(|&(call, callee)| {
            let code = unit.functions[callee].body.as_deref().cloned();
            let short = code.filter(|code| code.walk(code.root()).nth(MOST_OPS).is_none());
            short.is_some_and(|code| inline_call(unit, body, call, callee, &code).is_ok())
        });
        if taken.count() == 0 {
            return;
        }
    }
}
