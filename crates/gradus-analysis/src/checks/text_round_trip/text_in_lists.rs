//! Variadic argument lists with active numbers: the program's own wrappers of `vsprintf` and `vsscanf`.
//!
//! A list (`va_list`) carries the variadic arguments of every call of the function that begins the list.
//! Step 1 visits the calls. Step 2 marks the alias sets of the lists that the callees begin. Step 3 follows
//! copies of lists. A function that reads numbers from a list itself is refused by GRD0034.

use crate::call_graph::Callee;
use crate::points_to::alias_sets::AliasSetId;
use crate::view::View;
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn};
use gradus_ir::{FuncId, Value};
use std::collections::HashSet;

/// Returns the alias sets of the lists with an argument for which `has` holds.
pub(crate) fn lists_with_argument(
    facts: View<'_>,
    has: impl Fn(FuncId, Value) -> bool,
) -> HashSet<AliasSetId> {
    let unit = facts.unit;
    let mut begun: HashSet<FuncId> = HashSet::new();
    for (func, body) in facts.closure.bodies(unit) {
        for site in facts.closure.calls_in(func) {
            let direct = match site.callee {
                Callee::Inside(callee) => Some(callee),
                _ => None,
            };
            let callees = (facts.memory.callees(func, site.op).iter().copied()).chain(direct);
            for callee in callees {
                let ty = unit.functions[callee].ty;
                if !unit.types.is_variadic(ty) {
                    continue;
                }
                let named = unit.param_types(ty).len();
                let args = unit.call_args(body, site.op);
                if args.iter().skip(named).any(|arg| has(func, *arg)) {
                    begun.insert(callee);
                }
            }
        }
    }
    let mut lists = HashSet::new();
    for &func in &begun {
        lists.extend(lists_of(facts, func, CompilerIntrinsic::VaStart).map(|(first, _)| first));
    }
    follow_copies(facts, &mut lists);
    lists
}

/// Returns the pairs of an alias set of the first and an alias set of the last list argument of each call of
/// `marker` in a function.
fn lists_of<'a>(
    facts: View<'a>,
    func: FuncId,
    marker: CompilerIntrinsic,
) -> impl Iterator<Item = (AliasSetId, AliasSetId)> + 'a {
    let unit = facts.unit;
    let sites = facts.closure.calls_in(func).iter();
    let calls = sites.filter_map(move |site| {
        let body = unit.functions[func].body.as_deref()?;
        let known = unit.known_callee(body, site.op);
        if known != Some(ExternalFn::Marker(marker)) {
            return None;
        }
        let args = unit.call_args(body, site.op);
        let sets = |arg: &Value| facts.memory.alias_sets_of(func, *arg);
        Some((sets(args.first()?), sets(args.last()?)))
    });
    calls.flat_map(|(first, last)| {
        let pairs = move |first| last.clone().into_iter().map(move |last| (first, last));
        first.into_iter().flat_map(pairs)
    })
}

fn follow_copies(facts: View<'_>, lists: &mut HashSet<AliasSetId>) {
    if lists.is_empty() {
        return;
    }
    let functions = facts.closure.functions().iter();
    let copied = functions.flat_map(|func| lists_of(facts, *func, CompilerIntrinsic::VaCopy));
    let bytes = facts.memory.copies().iter();
    let bytes = bytes.flat_map(|copy| copy.flows().map(|(from, to)| (to, from)));
    let copies: Vec<(AliasSetId, AliasSetId)> = copied.chain(bytes).collect();
    loop {
        let before = lists.len();
        for (to, from) in &copies {
            if lists.contains(from) {
                lists.insert(*to);
            }
        }
        if lists.len() == before {
            return;
        }
    }
}
