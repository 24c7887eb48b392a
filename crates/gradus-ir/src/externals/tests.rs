//! Tests over all table rows: names resolve, are unique, and have consistent effects.

use super::*;

#[test]
fn every_name_resolves_to_its_row() {
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
            assert_eq!(lookup(&name), Some(ExternalFn::Math(id)), "{name}");
        }
    }
}

#[test]
fn names_are_unique() {
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
fn inactive_functions_do_not_write_any() {
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
fn programs_may_define_names_that_c17_does_not_reserve() {
    for name in [
        "j0", "gamma", "drem", "rsqrtf", "sinpi", "atan2pi", "log2p1f", "logp1",
    ] {
        assert!(may_be_user_defined(name), "{name}");
    }
    for name in [
        "sin",
        "lgamma",
        "remainder",
        "log1p",
        "__nv_sinpi",
        "malloc",
    ] {
        assert!(!may_be_user_defined(name), "{name}");
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
        assert_eq!(lookup(name), Some(ExternalFn::Math(id)), "{name}");
    }
    for (name, known) in [
        (
            "llvm.memcpy.p0.p0.i64",
            ExternalFn::Memory(MemoryFn::MemcpyIntrinsic),
        ),
        (
            "llvm.vector.reduce.fadd.v4f64",
            ExternalFn::Reduce(ReduceFn::Fadd),
        ),
        (
            "llvm.sadd.with.overflow.i32",
            ExternalFn::Integer(IntFn::SaddOverflow),
        ),
        (
            "_RNvCs691rhTbG0Ee_7___rustc12___rust_alloc",
            ExternalFn::Memory(MemoryFn::RustAlloc),
        ),
        ("__kmpc_fork_call", ExternalFn::OpenMp(OpenMpFn::Fork)),
        ("__kmpc_fork_call_if", ExternalFn::OpenMp(OpenMpFn::ForkIf)),
        ("MPI_Send", ExternalFn::Mpi),
        ("cudaMalloc", ExternalFn::Gpu),
        (
            "_ZSt20__throw_length_errorPKc",
            ExternalFn::Exception(ExceptionFn::LibraryThrow),
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
    assert!(ExternalFn::Math(MathFn::Sin).effects().writes.errno);
    assert!(ExternalFn::Mpi.effects().writes.any);
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
    assert_eq!(mode("__enzyme_autodif"), None);
    assert_eq!(mode("__enzyme_register_gradient_f"), None);
    assert_eq!(mode("__gradus1_opaque_f"), None);
}

#[test]
fn keywords_resolve_in_mangled_names() {
    assert_eq!(marker_named("enzyme_dup"), Some(Marker::Dup));
    assert_eq!(marker_named("_ZN1a2bc10enzyme_dupE"), Some(Marker::Dup));
    assert_eq!(marker_named("_ZNL10enzyme_dupE"), Some(Marker::Dup));
    assert_eq!(marker_named("enzyme_rate"), None);
    for name in [
        "__enzyme_register_gradient_f",
        "_ZN1R28__gradus_register_gradient_xE",
    ] {
        let gradient = Some(Some(Registration::Gradient));
        assert_eq!(registration_named(name), gradient, "{name}");
    }
    assert_eq!(
        registration_named("__enzyme_register_gradeint_f"),
        Some(None)
    );
    assert_eq!(
        registration_named("_ZGV28__enzyme_register_gradient_x"),
        None
    );
    assert_eq!(registration_named("enzyme_dup"), None);
    assert!(
        is_hook("enzymeLogGrad") && is_hook("_Z13enzymeLogGradddPKcS0_") && !is_hook("enzymeLog")
    );
}

/// Returns the manual's page of interface keywords.
fn keyword_page() -> String {
    let mut text = String::from(
        "# Keywords of the call interface\n\n\
         Gradus knows these keywords. A *supported* keyword has the described effect. A *hint* is accepted, and no \
         derivative depends on the hint. A *refused* keyword is an error at the user's line (GRD0039, GRD0014 or \
         GRD0017). Interface names without a row are refused, too. Calls, markers, registrations and attributes \
         exist with both prefixes, `enzyme_` and `gradus_`, unless the table states the prefix.\n",
    );
    let kinds: [(&str, fn(KeywordKind) -> bool, &str); 6] = [
        (
            "Calls",
            |u| matches!(u, KeywordKind::Call(_) | KeywordKind::Rewrite(_)),
            "",
        ),
        (
            "Markers",
            |u| matches!(u, KeywordKind::Marker(_)),
            "enzyme_",
        ),
        (
            "Registrations",
            |u| matches!(u, KeywordKind::Registration(_)),
            "__enzyme_",
        ),
        (
            "Attributes",
            |u| matches!(u, KeywordKind::Attribute(_)),
            "enzyme_",
        ),
        (
            "LLVM metadata",
            |u| matches!(u, KeywordKind::Metadata(_)),
            "!enzyme_",
        ),
        (
            "Hooks, headers, options",
            |u| {
                matches!(
                    u,
                    KeywordKind::Hook
                        | KeywordKind::Header
                        | KeywordKind::Macro
                        | KeywordKind::Option
                )
            },
            "",
        ),
    ];
    for (title, is_kind, prefix) in kinds {
        text.push_str(&format!(
            "\n## {title}\n\n| keyword | treatment | description |\n|---|---|---|\n"
        ));
        for row in KEYWORDS.iter().filter(|row| is_kind(row.kind)) {
            let answer = match row.support() {
                Support::Honoured => "supported",
                Support::Hint => "hint",
                Support::Refused => "refused",
            };
            text.push_str(&format!(
                "| `{prefix}{}` | {answer} | {} |\n",
                row.keyword, row.description
            ));
        }
    }
    text
}

#[test]
fn interface_words_page_is_current() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/interface-words.md"
    );
    let now = keyword_page();
    if std::env::var_os("GRADUS_BLESS").is_some() {
        std::fs::write(file, &now).expect("the page can be written");
    }
    let then = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(
        then, now,
        "cargo xtask bless writes docs/reference/interface-words.md anew"
    );
}
