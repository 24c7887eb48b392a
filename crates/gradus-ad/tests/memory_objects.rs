//! Programs in which several objects share a parameter, a link or an out-parameter, and programs in which a pointer
//! leaves the array in which it seems to stay. Each is right at several optimisation levels, checked three ways.
//!
//! A program defines `double g(double *x, int n)`.

use crate::support::{check_three_ways, derive};
use gradus_ad::{ArgActivity, ResultActivity};
use gradus_ir::Code;

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
