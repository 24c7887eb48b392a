//! Every row is walked: names are found, unique, and their effects hang together.

use super::*;
use crate::{AttrSet, Unit};

#[test]
fn every_name_leads_to_its_row() {
    for row in rows() {
        for name in row.names {
            assert_eq!(lookup(name), Some(row.known), "{name}");
        }
    }
    for &id in MathFn::ALL {
        for name in [
            id.c_name().map(String::from),
            id.intrinsic().map(|s| format!("llvm.{s}.f64")),
        ]
        .into_iter()
        .flatten()
        {
            assert_eq!(lookup(&name), Some(Known::Math(id)), "{name}");
        }
    }
}

#[test]
fn no_name_stands_twice() {
    let mut seen = std::collections::HashSet::new();
    for row in rows() {
        for name in row.names {
            assert!(seen.insert(*name), "{name} stands in two rows");
            let math = name.strip_prefix("llvm.").unwrap_or(name);
            assert!(
                !MathFn::ALL
                    .iter()
                    .any(|m| m.c_name() == Some(math) && math == *name),
                "{name} is a math function too"
            );
        }
    }
}

#[test]
fn what_is_inactive_writes_nothing_wide() {
    for row in rows().filter(|row| row.effects.inactive) {
        assert!(
            !row.effects.writes.any || row.effects.may_throw,
            "{:?}",
            row.names
        );
        assert!(!row.effects.allocates, "{:?}", row.names);
    }
}

#[test]
fn variants_of_a_name_are_found() {
    for (name, id) in [
        ("sinf", MathFn::Sin),
        ("powl", MathFn::Pow),
        ("__exp_finite", MathFn::Exp),
        ("__expf_finite", MathFn::Exp),
        ("llvm.sin.v4f32", MathFn::Sin),
        ("llvm.powi.f64.i32", MathFn::Powi),
        ("llvm.pow.nxv2f64", MathFn::Pow),
        ("__nv_tanh", MathFn::Tanh),
        ("llvm.maxnum.f32", MathFn::Maxnum),
    ] {
        assert_eq!(lookup(name), Some(Known::Math(id)), "{name}");
    }
    for (name, known) in [
        (
            "llvm.memcpy.p0.p0.i64",
            Known::Memory(MemoryFn::MemcpyIntrinsic),
        ),
        (
            "llvm.vector.reduce.fadd.v4f64",
            Known::Reduce(ReduceFn::Fadd),
        ),
        (
            "llvm.sadd.with.overflow.i32",
            Known::Integer(IntFn::SaddOverflow),
        ),
        (
            "_RNvCs691rhTbG0Ee_7___rustc12___rust_alloc",
            Known::Memory(MemoryFn::RustAlloc),
        ),
        ("__kmpc_fork_call", Known::OpenMp(OpenMpFn::Fork)),
        ("__kmpc_fork_call_if", Known::OpenMp(OpenMpFn::ForkIf)),
        ("MPI_Send", Known::Mpi),
        ("cudaMalloc", Known::Gpu),
        (
            "_ZSt20__throw_length_errorPKc",
            Known::Exception(ExceptionFn::LibraryThrow),
        ),
    ] {
        assert_eq!(lookup(name), Some(known), "{name}");
    }
    for name in [
        "mine",
        "llvm.experimental.constrained.sin.f64",
        "llvm.sin.extra",
        "sinx",
    ] {
        assert_eq!(lookup(name), None, "{name}");
    }
}

#[test]
fn only_the_c_function_sets_errno() {
    assert!(effects("sin").is_some_and(|e| e.writes.errno));
    assert!(effects("llvm.sin.f64").is_some_and(|e| e.is_pure()));
    assert!(Known::Math(MathFn::Sin).effects().writes.errno);
    assert!(Known::Mpi.effects().writes.any);
}

#[test]
fn a_function_of_the_same_name_but_another_signature_is_unknown() {
    let mut unit = Unit::default();
    let (f64, i64) = (unit.types.f64(), unit.types.int(64));
    let right = unit.types.func(f64, vec![f64]);
    let wrong = unit.types.func(i64, vec![f64, i64]);
    let y1 = unit.declare("y1", right, AttrSet::default());
    assert_eq!(unit.known(y1), Some(Known::Math(MathFn::Y1)));
    let y0 = unit.declare("y0", wrong, AttrSet::default());
    assert_eq!(unit.known(y0), None);
    unit.functions[y1].defined = true;
    assert_eq!(unit.known(y1), None);
}

#[test]
fn derivative_requests_are_found_by_substring() {
    let mode = |name| differentiation_call(name).map(|e| e.mode);
    assert_eq!(mode("__enzyme_autodiff_f32"), Some(EntryMode::Reverse));
    assert_eq!(mode("_Z17__enzyme_fwddiffIdEvPv"), Some(EntryMode::Forward));
    assert_eq!(mode("__gradus_vjp"), Some(EntryMode::Reverse));
    assert_eq!(mode("gradus_vjp_"), Some(EntryMode::Reverse));
    assert_eq!(mode("autodiff"), None);
    assert_eq!(mode("my_gradus_vjp_"), None);
}
