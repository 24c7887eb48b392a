//! Programs in which several objects share a parameter, a link or an out-parameter, and programs in which a pointer
//! leaves the array in which it seems to stay. Each is right at several optimisation levels, checked three ways.
//!
//! A program defines `double g(double *x, int n)`.

use crate::support::{check_single_precision, check_three_ways, derive};
use gradus_ad::{ArgActivity, ResultActivity};
use gradus_ir::Code;
use gradus_ir::mutant::{Mutant, plant};

macro_rules! programs {
    ($($name:ident: $n:literal;)*) => { $(
        #[test]
        fn $name() {
            let program = include_str!(concat!("memory_objects/", stringify!($name), ".c"));
            let caller = "double f(int n, double *x, double s) { return s * g(x, n); }";
            check_three_ways(&format!("{program}\n{caller}\n"), $n);
        }
    )* };
}

programs! {
    first_member_array: 4;
    container_of_element: 4;
    offset_table: 4;
    offset_table_of_scalars: 4;
    neighbour_array: 4;
    element_before: 4;
    members_as_array: 4;
    out_parameter: 4;
    two_members_one_parameter: 4;
    permutations_beside_matrix: 4;
    expression_operands: 4;
    masked_address: 4;
    allocation_wrapper: 4;
    function_beside_block: 4;
    table_variable: 4;
    rotated_integers: 4;
    hash_of_address: 4;
    copy_by_bytes: 4;
}

const SHARED_BYTES: [&str; 3] = [
    include_str!("memory_objects/floats_over_far_pointers.c"),
    include_str!("memory_objects/float_over_pointer.c"),
    include_str!("memory_objects/arena.c"),
];

fn check_shared_bytes(program: &str) {
    let caller = "REAL f(int n, REAL *x, REAL s) { return s * g(x, n); }";
    check_single_precision(&format!("{program}\n{caller}\n"), 4);
}

/// The bytes of a pointer hold a float later, also a short one.
#[test]
fn floats_over_pointers() {
    SHARED_BYTES.into_iter().for_each(check_shared_bytes);
}

/// Memory of the caller has the caller's adjoints: nothing there tells a shadow pointer from the adjoint of a float.
#[test]
fn floats_over_pointers_of_the_caller_are_refused() {
    let program = "typedef union { float number; const double *link; } Slot;
        double f(Slot *slot, const double *x) {
            double y = *slot->link * x[0];
            slot->number = x[1] * x[1];
            return y;
        }";
    for level in ["-O0", "-O2"] {
        let args = [ArgActivity::Dup, ArgActivity::Dup];
        let derived = derive(program, &[level], "f", &args, ResultActivity::Active);
        let refused = derived.err().unwrap_or_default();
        let codes: Vec<Code> = refused.iter().map(|d| d.code).collect();
        assert_eq!(codes, [Code::UnknownMemoryType], "{level}");
    }
}

/// The test programs detect a shadow pointer that becomes an adjoint.
#[test]
fn kept_shadow_pointers_are_detected() {
    plant(Some(Mutant::ShadowPointerNotCleared));
    let outcome = std::panic::catch_unwind(|| check_shared_bytes(SHARED_BYTES[0]));
    plant(None);
    assert!(outcome.is_err());
}

/// A function reads pointers to active memory from its variadic arguments, called by name or by address: refused,
/// although no argument of the differentiated function is such a pointer.
#[test]
fn variadic_pointers_to_local_memory_are_refused() {
    let program = |call: &str| {
        format!(
            "#include <stdarg.h>
             static double sum(int n, ...) {{
                 va_list list, copy;
                 double s = 0;
                 va_start(list, n);
                 va_copy(copy, list);
                 for (int i = 0; i < n; i++) {{
                     const double *p = va_arg(copy, const double *);
                     s += *p * *p;
                 }}
                 va_end(copy);
                 va_end(list);
                 return s;
             }}
             double f(double *x, int n) {{
                 double (*by_address)(int, ...) = n > 2 ? sum : 0;
                 double a = x[0], b = x[1] * x[2];
                 (void)by_address;
                 return {call}(2, &a, &b) + x[0] * x[1];
             }}"
        )
    };
    for call in ["sum", "by_address"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let args = [ArgActivity::Dup, ArgActivity::Const];
            let active = ResultActivity::Active;
            let derived = derive(&program(call), &[level], "f", &args, active);
            let refused = derived.err().unwrap_or_default();
            let codes: Vec<Code> = refused.iter().map(|d| d.code).collect();
            let is_named = codes.contains(&Code::Variadic);
            // The derivative of a call by address has no place for further arguments.
            let is_indirect = call != "sum" && codes.contains(&Code::UnknownIndirectTarget);
            assert!(is_named || is_indirect, "{call} at {level}: {codes:?}");
        }
    }
}

/// A pointer that the program assembles from parts has no shadow: the program is refused at every level.
#[test]
fn assembled_pointers_are_refused() {
    let programs = [
        (
            include_str!("memory_objects/tag_in_upper_bits.c"),
            Code::NoDerivative,
        ),
        (
            include_str!("memory_objects/pointer_in_halves.c"),
            Code::NoDerivative,
        ),
        (
            include_str!("memory_objects/halves_in_union.c"),
            Code::NoDerivative,
        ),
        (
            include_str!("memory_objects/volatile_bytes.c"),
            Code::AtomicAccess,
        ),
    ];
    for (program, code) in programs {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let args = [ArgActivity::Dup, ArgActivity::Const];
            let derived = derive(program, &[level], "f", &args, ResultActivity::Active);
            let refused = derived.err().unwrap_or_default();
            let codes: Vec<Code> = refused.iter().map(|d| d.code).collect();
            assert!(codes.contains(&code), "{level}: {codes:?}\n{program}");
        }
    }
}
