//! Pointers with several targets: types, flows, frees and shadows. The solver gives each pointer of these programs
//! one target; the tests add the second.

use super::{Program, Study};
use crate::{Activity, CopyBytes, ShadowPresence, ShadowState};
use gradus_ir::{AttrSet, Entity, FloatKind, FuncId, Value};
use std::collections::HashSet;

use Activity::{Const, Dup, Out};

/// Returns true if the memory at the start of an object holds doubles.
fn is_double(study: &Study<'_>, func: FuncId, object: Value) -> bool {
    let at = study.target(func, object);
    study.words.type_at(&study.memory, at).float_kind() == Some(FloatKind::F64)
}

#[test]
fn loaded_integer_joins_the_types_of_all_targets() {
    let mut program = Program::default();
    let (double, ptr, word, void) = program.types();
    let mut seen = Vec::new();
    let f = program.define("f", &[ptr, ptr, ptr], void, |b, p| {
        let number = b.load(double, p[1]);
        b.store(number, p[1]);
        let eight = b.i64(8);
        let from = b.byte_addr(p[0], eight);
        let bits = b.load(word, from);
        b.store(bits, p[2]);
        seen = vec![from, bits, p[1], p[2]];
        None
    });
    let args = [Const, Const, Const];
    let [from, bits, double_at, to] = seen[..] else {
        panic!("four values");
    };
    let study = program.study(f, &args, false);
    assert!(!study.words.carries_float(f, bits));
    let study = program.study_with(f, &args, false, |memory| {
        memory.add_targets(f, from, double_at);
    });
    assert!(study.words.carries_float(f, bits));
    // The accesses through the pointer are evidence for both targets, and the copy for the destination.
    let [first, second] = *study.memory.targets(f, from) else {
        panic!("two targets");
    };
    for at in [first, second] {
        assert!(study.words.type_at(&study.memory, at).has_float());
    }
    assert!(is_double(&study, f, to));
}

#[test]
fn derivatives_flow_to_and_from_all_targets() {
    let mut program = Program::default();
    let (double, ..) = program.types();
    for shared in ["store", "load"] {
        let mut seen = Vec::new();
        let f = program.define(shared, &[double], double, |b, p| {
            // The target that the test adds is the second one in the list.
            let allocas = [b.alloca(double), b.alloca(double)];
            let [first, second] = match shared {
                "store" => allocas,
                _ => [allocas[1], allocas[0]],
            };
            let zero = b.i64(0);
            let to = b.byte_addr(first, zero);
            let from = b.byte_addr(second, zero);
            b.store(p[0], to);
            let result = b.load(double, from);
            seen = vec![first, second, to, from, result];
            Some(result)
        });
        let study = program.study(f, &[Out], true);
        assert!(!study.root.active(seen[4]), "{shared}");
        let study = program.study_with(f, &[Out], true, |memory| match shared {
            "store" => memory.add_targets(f, seen[2], seen[1]),
            _ => memory.add_targets(f, seen[3], seen[0]),
        });
        let stored = study.memory.alias_sets_of(f, seen[2]);
        assert!(stored.iter().all(|set| study.classes.is_varied(*set)));
        assert!(study.root.active(seen[4]), "{shared}");
    }
}

/// Both members of a group have a shadow if one carries derivatives, and a test at run time decides if one has none.
#[test]
fn targets_of_one_pointer_share_a_shadow_state() {
    let mut program = Program::default();
    let (double, ptr, word, void) = program.types();
    let mut seen = Vec::new();
    let f = program.define("f", &[ptr, ptr], void, |b, p| {
        let (active, idle) = (b.alloca(double), b.alloca(word));
        let number = b.load(double, p[0]);
        b.store(number, active);
        let number = b.load(double, active);
        b.store(number, p[0]);
        let zero = b.i64(0);
        b.store(zero, idle);
        let shared = b.byte_addr(idle, zero);
        let constant = b.load(double, p[1]);
        b.store(constant, p[0]);
        seen = vec![active, idle, shared, p[0], p[1]];
        None
    });
    let [active, idle, shared, dup, constant] = seen[..] else {
        panic!("five values");
    };
    let state = |study: &Study<'_>, object| study.state(f, object);
    let study = program.study(f, &[Dup, Const], false);
    assert_eq!(state(&study, active), ShadowPresence::Active);
    assert_eq!(state(&study, idle), ShadowPresence::Inactive);
    assert_eq!(state(&study, dup), ShadowPresence::Active);
    assert_eq!(state(&study, constant), ShadowPresence::Inactive);
    let study = program.study_with(f, &[Dup, Const], false, |memory| {
        memory.add_targets(f, shared, active);
    });
    assert_eq!(state(&study, active), ShadowPresence::Active);
    assert_eq!(state(&study, idle), ShadowPresence::Active);
    assert_eq!(study.root.shadow(idle), ShadowState::Real);
    assert!(!study.classes.holds_active_floats(study.alias_set(f, idle)));
    // One pointer links all three objects; the const argument's memory has no shadow.
    let study = program.study_with(f, &[Dup, Const], false, |memory| {
        memory.add_targets(f, shared, active);
        memory.add_targets(f, shared, constant);
    });
    for object in [active, idle, constant] {
        assert_eq!(state(&study, object), ShadowPresence::Maybe);
    }
    assert_eq!(state(&study, dup), ShadowPresence::Active);
    assert_eq!(study.root.shadow(active), ShadowState::Real);
    assert_eq!(study.root.shadow(constant), ShadowState::None);
}

/// A free of one of two blocks proves the free of neither.
#[test]
fn free_of_two_targets_is_no_proof() {
    let mut program = Program::default();
    let (_, ptr, word, void) = program.types();
    let malloc = program.unit.types.func(ptr, vec![word]);
    let malloc = program.unit.declare("malloc", malloc, AttrSet::default());
    let free = program.unit.types.func(void, vec![ptr]);
    let free = program.unit.declare("free", free, AttrSet::default());
    let mut seen = Vec::new();
    let f = program.define("f", &[], void, |b, _| {
        let size = b.i64(8);
        let blocks = [b.call(malloc, &[size]), b.call(malloc, &[size])];
        seen = blocks.map(|op| b.body.result(op)).to_vec();
        let zero = b.i64(0);
        for &block in &seen.clone() {
            let freed = b.byte_addr(block, zero);
            b.call(free, &[freed]);
            seen.push(freed);
        }
        None
    });
    let [first, second, freed, _] = seen[..] else {
        panic!("four values");
    };
    let frees = |study: &Study<'_>| {
        [first, second].map(|block| {
            let set = study.alias_set(f, block);
            (
                study.classes.frees(set).len(),
                study.classes.is_always_freed(set),
            )
        })
    };
    let study = program.study(f, &[], false);
    assert_eq!(frees(&study), [(1, true), (1, true)]);
    let study = program.study_with(f, &[], false, |memory| {
        memory.add_targets(f, freed, second);
    });
    assert_eq!(frees(&study), [(1, false), (2, true)]);
}

/// The destination's types reach only the source without types of its own, if copies have a direction.
#[test]
fn types_of_directed_copies_flow_to_destinations() {
    let mut program = Program::default();
    let (double, ptr, _, void) = program.types();
    let mut seen = Vec::new();
    let f = program.define("f", &[ptr, ptr, ptr, ptr], void, |b, p| {
        let link = b.load(ptr, p[0]);
        b.store(link, p[0]);
        let number = b.load(double, p[2]);
        b.store(number, p[2]);
        seen = p.to_vec();
        None
    });
    let op = {
        let body = program.unit.functions[f].body.as_deref().expect("a body");
        body.last(body.root()).expect("the return")
    };
    let args = [Const; 4];
    for directed in [true, false] {
        let study = program.study_with(f, &args, false, |memory| {
            let ends = |values: &[Value]| {
                let targets = values.iter().flat_map(|value| memory.targets(f, *value));
                targets.copied().collect()
            };
            let copy = CopyBytes {
                at: (f, op),
                to: ends(&seen[2..]),
                from: ends(&seen[..2]),
                size_bytes: Some(8),
            };
            memory.copies.push(copy);
            memory.copies_are_directed = directed;
        });
        let kinds = seen.iter().map(|object| {
            let at = study.target(f, *object);
            let seen = study.words.type_at(&study.memory, at);
            (seen.has_pointer(), seen.has_float())
        });
        let [links, untyped, doubles, other] = kinds.collect::<Vec<_>>()[..] else {
            panic!("four objects");
        };
        assert_eq!(links, (true, !directed));
        assert_eq!(untyped, (true, true));
        assert_eq!((doubles, other), ((true, true), (true, true)));
    }
}

/// Every pointer in memory with two targets leads to both.
#[test]
fn stored_pointers_lead_to_all_targets() {
    let mut program = Program::default();
    let (double, ptr, _, _) = program.types();
    let mut seen = Vec::new();
    let f = program.define("f", &[ptr], double, |b, p| {
        let (table, other) = (b.alloca(ptr), b.alloca(double));
        b.store(p[0], table);
        let link = b.load(ptr, table);
        let x = b.load(double, link);
        seen = vec![table, other];
        Some(x)
    });
    let study = program.study_with(f, &[Dup], true, |memory| {
        let added = memory.targets(f, seen[1]).to_vec();
        let table = memory.targets(f, seen[0])[0];
        let word = memory.classes[table.class.index()].words.get_mut(&0);
        word.expect("a pointer is stored").targets.extend(added);
    });
    let params = program.unit.functions[f]
        .body
        .as_deref()
        .map(|b| b.params()[0]);
    let objects = [params.expect("a parameter"), seen[1]].map(|p| study.alias_set(f, p));
    let table = study.alias_set(f, seen[0]);
    let led: HashSet<_> = study.memory.pointees(table).into_iter().collect();
    assert_eq!(led, HashSet::from(objects));
    assert_eq!(study.state(f, seen[1]), ShadowPresence::Active);
}
