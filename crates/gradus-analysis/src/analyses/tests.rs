//! Tests of the cache: an answer is reused exactly as long as nothing that it depends on changes.

use super::{Aliasing, Analyses, Verification};
use crate::{AliasSets, CallGraph, Extent, FunctionEffects};
use gradus_ir::{Attr, AttrValue, Body, Builder, FuncId, Type, Unit, parse};
use std::rc::Rc;

const TEXT: &str = "
    declare @outside(ptr)
    func @leaf(%p: ptr) internal { store 1.0, %p return }
    func @root(%p: ptr) { call @leaf(%p) call @outside(%p) return }
    func @target(%p: ptr) internal { return }
    func @table(%p: ptr) { store @target, %p return }
    func @indirect(%f: ptr, %p: ptr) { call %f(%p) : fn(ptr) -> void return }
    func @other(%p: ptr) { return }";

fn unit() -> Unit {
    parse(TEXT, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels))
}

fn func(unit: &Unit, name: &str) -> FuncId {
    unit.function(name).expect("the function is there")
}

/// Adds a store to a body, before all other ops.
fn edit(unit: &mut Unit, name: &str) {
    let func = func(unit, name);
    let mut body = unit.functions[func].body.take().expect("a body");
    let first = body.first(body.root()).expect("an op");
    let mut build = Builder::new(unit, &mut body);
    build.set_insertion_before(first);
    let f64 = build.unit.types.f64();
    let one = build.float(f64, 1.0);
    let place = build.body.params()[0];
    build.store(one, place);
    unit.functions[func].body = Some(body);
}

/// Returns whether two questions for call graph and effects of `root`, around `change`, have one answer each.
fn reuses(root: &str, change: impl FnOnce(&mut Unit)) -> (bool, bool) {
    let mut unit = unit();
    let roots = [func(&unit, root)];
    let mut analyses = Analyses::new(Verification::Recompute, Aliasing::Any);
    let graph = analyses.call_graph(&unit, &roots);
    let effects = analyses.effects(&unit, &roots);
    change(&mut unit);
    let (graph_after, effects_after) = (
        analyses.call_graph(&unit, &roots),
        analyses.effects(&unit, &roots),
    );
    assert_eq!(analyses.take_findings(), []);
    (
        Rc::ptr_eq(&graph, &graph_after),
        Rc::ptr_eq(&effects, &effects_after),
    )
}

#[test]
fn an_answer_is_reused_without_an_edit() {
    assert_eq!(reuses("root", |_| ()), (true, true));
    assert_eq!(reuses("indirect", |_| ()), (true, true));
}

#[test]
fn an_edit_of_a_reached_body_outdates_the_answer() {
    assert_eq!(reuses("root", |unit| edit(unit, "leaf")), (false, false));
    assert_eq!(reuses("root", |unit| edit(unit, "root")), (false, false));
}

#[test]
fn an_edit_of_an_unreached_body_counts_only_with_an_indirect_call() {
    assert_eq!(reuses("root", |unit| edit(unit, "other")), (true, true));
    assert_eq!(
        reuses("indirect", |unit| edit(unit, "other")),
        (false, false)
    );
}

#[test]
fn a_new_function_counts_only_with_an_indirect_call() {
    let add = |unit: &mut Unit| {
        let ty = unit.functions[func(unit, "other")].ty;
        let ptr = unit.types.ptr();
        let mut body = Body::new(&[ptr]);
        Builder::new(unit, &mut body).return_(None);
        unit.define("fresh".into(), ty, gradus_ir::Linkage::Internal, body);
    };
    assert_eq!(reuses("root", add), (true, true));
    assert_eq!(reuses("indirect", add), (false, false));
}

#[test]
fn attributes_and_linkage_are_dependencies() {
    let set_attrs = |name: &'static str| {
        move |unit: &mut Unit| {
            let func = func(unit, name);
            let mut attrs = unit.attrs(unit.functions[func].attrs).clone();
            attrs.function.push(Attr {
                name: "nofree".into(),
                value: AttrValue::Flag,
            });
            unit.functions[func].attrs = unit.intern_attrs(attrs);
        }
    };
    assert_eq!(reuses("root", set_attrs("outside")), (false, false));
    assert_eq!(reuses("root", set_attrs("other")), (true, true));
    let export = |unit: &mut Unit| {
        let leaf = func(unit, "leaf");
        unit.functions[leaf].linkage = gradus_ir::Linkage::Interposable;
    };
    assert_eq!(reuses("root", export), (false, false));
}

#[test]
fn statements_of_the_program_are_dependencies() {
    let state = |unit: &mut Unit| {
        let outside = func(unit, "outside");
        unit.declare_inactive(outside);
    };
    assert_eq!(reuses("root", state), (false, false));
}

#[test]
fn an_answer_without_a_body_is_not_reused_with_it() {
    let mut unit = unit();
    let (root, leaf) = (func(&unit, "root"), func(&unit, "leaf"));
    let mut analyses = Analyses::new(Verification::Recompute, Aliasing::Any);
    let body = unit.functions[leaf].body.take();
    let without = analyses.call_graph(&unit, &[root]);
    assert!(!without.contains(leaf));
    let again = analyses.call_graph(&unit, &[root]);
    assert!(Rc::ptr_eq(&without, &again));
    unit.functions[leaf].body = body;
    let with = analyses.call_graph(&unit, &[root]);
    assert!(with.contains(leaf));
    assert_eq!(analyses.take_findings(), []);
}

#[test]
fn effects_over_an_old_graph_follow_the_bodies() {
    let mut unit = unit();
    let other = func(&unit, "other");
    let mut analyses = Analyses::new(Verification::Recompute, Aliasing::Any);
    let graph = analyses.call_graph(&unit, &[other]);
    let writes = |analyses: &mut Analyses, unit: &Unit| {
        let effects = analyses.effects_over(unit, &graph);
        effects
            .of_function(other)
            .map(|found| found.param(0).writes)
    };
    assert_eq!(writes(&mut analyses, &unit), Some(Extent::Nothing));
    edit(&mut unit, "other");
    assert_eq!(writes(&mut analyses, &unit), Some(Extent::Bytes(0, 8)));
    assert_eq!(analyses.take_findings(), []);
}

const CALLS: &str = "
    declare @outside(ptr)
    func @leaf(%p: ptr) internal { return }
    func @middle(%p: ptr) internal { call @leaf(%p) return }
    func @beside(%p: ptr) internal { call @outside(%p) return }
    func @even(%p: ptr) internal { call @odd(%p) return }
    func @odd(%p: ptr) internal { call @even(%p) return }
    func @root(%p: ptr, %q: ptr, %r: ptr) {
        call @middle(%p) call @beside(%q) call @even(%r) return
    }";

/// Returns the writes of `root` through each parameter before and after `change`, with effects compared with new ones.
fn writes_of_root(change: impl FnOnce(&mut Unit)) -> [Vec<bool>; 2] {
    let mut unit = parse(CALLS, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    let root = func(&unit, "root");
    let mut analyses = Analyses::new(Verification::Recompute, Aliasing::Any);
    let mut writes = |unit: &Unit| {
        let effects = analyses.effects(unit, &[root]);
        let all = effects.of_function(root).expect("a summary");
        let params = all.params.iter();
        let list = params.map(|param| !param.writes.is_nothing()).collect();
        assert_eq!(analyses.take_findings(), []);
        list
    };
    let before = writes(&unit);
    change(&mut unit);
    [before, writes(&unit)]
}

#[test]
fn an_edit_outdates_the_summaries_of_callers() {
    let none = || vec![false, true, false];
    for name in ["leaf", "middle"] {
        let after = vec![true, true, false];
        assert_eq!(writes_of_root(|unit| edit(unit, name)), [none(), after]);
    }
    for name in ["even", "odd"] {
        let after = vec![false, true, true];
        assert_eq!(writes_of_root(|unit| edit(unit, name)), [none(), after]);
    }
    let state = |unit: &mut Unit| {
        let outside = func(unit, "outside");
        let mut attrs = unit.attrs(unit.functions[outside].attrs).clone();
        attrs.function.push(Attr {
            name: "memory".into(),
            value: AttrValue::Int(0),
        });
        unit.functions[outside].attrs = unit.intern_attrs(attrs);
    };
    assert_eq!(writes_of_root(state), [none(), vec![false; 3]]);
}

/// The summary of a function is taken over from an answer before an edit: the answer is made to be wrong.
#[test]
fn an_unchanged_function_keeps_its_summary() {
    let mut unit = parse(CALLS, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    let (root, beside) = (func(&unit, "root"), func(&unit, "beside"));
    let mut analyses = Analyses::new(Verification::Recompute, Aliasing::Any);
    analyses.effects(&unit, &[root]);
    for entry in &mut analyses.effects {
        let mut wrong = (*entry.answer).clone();
        wrong.set(beside, FunctionEffects::default());
        entry.answer = Rc::new(wrong);
    }
    edit(&mut unit, "leaf");
    analyses.effects(&unit, &[root]);
    let findings = analyses.take_findings();
    assert_eq!(findings.len(), 1);
    let message = &findings[0].message;
    assert!(
        message.contains("the cached summaries of root"),
        "{message}"
    );
}

#[test]
fn alias_sets_are_reused_until_a_reached_body_changes() {
    let mut unit = unit();
    let roots = [func(&unit, "root")];
    let mut analyses = Analyses::new(Verification::Recompute, Aliasing::Any);
    let graph = analyses.call_graph(&unit, &roots);
    let first = analyses.alias_sets(&unit, &graph);
    edit(&mut unit, "other");
    assert!(Rc::ptr_eq(&first, &analyses.alias_sets(&unit, &graph)));
    edit(&mut unit, "leaf");
    assert!(!Rc::ptr_eq(&first, &analyses.alias_sets(&unit, &graph)));
    assert_eq!(analyses.take_findings(), []);
}

/// Alias sets by unification are a fallback of both analyses: the aliasing rules change nothing.
#[test]
fn only_alias_sets_by_inclusion_may_assume_more() {
    let unit = unit();
    let roots = [func(&unit, "root")];
    let graph = CallGraph::of(&unit, &roots);
    assert!(AliasSets::of(&unit, &graph).may_assume_more());
    assert!(!AliasSets::by_aliasing_rules(&unit, &graph).may_assume_more());
    assert!(!AliasSets::by_unification(&unit, &graph).may_assume_more());
    for (aliasing, may_assume_more) in [(Aliasing::Any, true), (Aliasing::Rules, false)] {
        let mut analyses = Analyses::new(Verification::Off, aliasing);
        let graph = analyses.call_graph(&unit, &roots);
        analyses.alias_sets(&unit, &graph);
        assert_eq!(analyses.may_assume_more(), may_assume_more);
    }
}

#[test]
fn reused_alias_sets_have_the_leaves_of_new_types() {
    let mut unit = unit();
    let roots = [func(&unit, "root")];
    let mut analyses = Analyses::new(Verification::Recompute, Aliasing::Any);
    let graph = analyses.call_graph(&unit, &roots);
    let first = analyses.alias_sets(&unit, &graph);
    let f64 = unit.types.f64();
    let fresh = unit.types.intern(Type::Array { elem: f64, len: 3 });
    assert_eq!(first.leaves_of(fresh).len(), 0);
    let second = analyses.alias_sets(&unit, &graph);
    assert_eq!(second.leaves_of(fresh).len(), 3);
    assert_eq!(analyses.take_findings(), []);
}

/// The verification detects a missing dependency: the entry is made to depend on nothing.
#[test]
fn an_outdated_answer_is_an_internal_error() {
    let mut unit = unit();
    let roots = [func(&unit, "other")];
    let mut analyses = Analyses::new(Verification::Recompute, Aliasing::Any);
    analyses.effects(&unit, &roots);
    for entry in &mut analyses.effects {
        entry.dependencies.functions.clear();
    }
    for entry in &mut analyses.call_graphs {
        entry.dependencies.functions.clear();
    }
    edit(&mut unit, "other");
    analyses.effects(&unit, &roots);
    let findings = analyses.take_findings();
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.contains("the cached effects of other"));
}
