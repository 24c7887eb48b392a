//! OpenMP in Fortran, compiled by flang.

use crate::support::{folder, shell, succeeds, text};
use std::path::Path;
use std::process::Command;

fn source(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/languages");
    folder.join(name).display().to_string()
}

/// Returns the number of instructions of the longest innermost loop with vector adds, in an assembly file.
fn longest_vector_loop(folder: &Path, file: &str) -> usize {
    let assembly = std::fs::read_to_string(folder.join(file)).expect("assembly");
    let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
    let mut longest = 0;
    for (end, line) in lines.iter().enumerate() {
        let target = line
            .strip_prefix('j')
            .and_then(|l| l.split_whitespace().nth(1));
        let Some(label) = target.map(|t| format!("{t}:")) else {
            continue;
        };
        let Some(begin) = lines[..end].iter().position(|l| l.starts_with(&label)) else {
            continue;
        };
        let inside: Vec<&str> = lines[begin + 1..=end]
            .iter()
            .filter(|l| !l.is_empty() && !l.starts_with(['.', '#']))
            .copied()
            .collect();
        let jumps = inside.iter().filter(|l| l.starts_with('j')).count();
        if jumps == 1 && inside.iter().any(|l| l.starts_with("addpd")) {
            longest = longest.max(inside.len());
        }
    }
    longest
}

/// LLVM strength-reduces the row addresses of a team along the inner loops, as with OpenMP's library, where
/// the computation of a thread's bounds is opaque.
#[test]
fn team_row_addressing_cost() {
    let folder = folder("rows_of_a_team");
    let source = source("resid.f90");
    shell(
        &folder,
        &format!("flang-22 -O3 -fopenmp -S {source} -o flang.s"),
    );
    shell(
        &folder,
        &format!("gradus fc -O3 -fopenmp -S {source} -o gradus.s"),
    );
    let [flang, ours] = ["flang.s", "gradus.s"].map(|f| longest_vector_loop(&folder, f));
    assert!(
        ours > 0 && ours <= flang,
        "{ours} instructions, flang's {flang}"
    );
}

/// A region that does not reference a thread-local variable is raised, whatever its function does outside
/// the region.
#[test]
fn thread_locals_outside_regions() {
    let folder = folder("own_outside");
    let source = source("own.f90");
    for level in ["-O1", "-O3"] {
        let build = format!("gradus fc {level} -fopenmp --par-report {source} -o program");
        let said = text(&shell(&folder, &build).stdout);
        // The function occurs twice in the program, once inlined.
        let count = |what: &str| said.matches(what).count();
        assert_eq!(
            (count("raised to parallel loops"), count("not raised")),
            (3, 1),
            "{said}"
        );
        for workers in ["1", "2", "4"] {
            let mut command = Command::new(folder.join("program"));
            command.env("OMP_NUM_THREADS", workers);
            command.env("GRADUS_FORCE_FORK", "1");
            let printed = text(&succeeds(&mut command).stdout);
            assert_eq!(printed.trim(), "2002000.0 T", "{level}, {workers}");
        }
    }
}

/// Checks that no region is left to OpenMP's library, and that the output is `wanted` for any number of
/// workers.
fn raised_and_prints(name: &str, files: &[&str], wanted: &str) {
    let folder = folder(name);
    let sources: Vec<String> = files.iter().map(|file| source(file)).collect();
    let source = sources.join(" ");
    for level in ["-O1", "-O3"] {
        let build = format!("gradus fc {level} -fopenmp --par-report {source} -o program");
        let said = text(&shell(&folder, &build).stdout);
        assert!(
            said.contains("raised to") && !said.contains("not raised"),
            "{said}"
        );
        for workers in ["1", "2", "4"] {
            let mut command = Command::new(folder.join("program"));
            command.env("OMP_NUM_THREADS", workers);
            command.env("GRADUS_FORCE_FORK", "1");
            let printed = text(&succeeds(&mut command).stdout);
            assert_eq!(printed.trim(), wanted, "{level}, {workers}");
        }
    }
}

/// Without an interface, the library's functions have Fortran names, and take addresses.
#[test]
fn queries_without_interface() {
    raised_and_prints("asked", &["asked.f"], "3  3 T T");
}

/// Outside of teams the team number is 0 of 1.
#[test]
fn numbers_of_teams() {
    raised_and_prints("team_numbers", &["team_numbers.f90"], "0  1000  2000");
}

/// Values assigned by one thread in a `workshare` are copied to the other threads; writes by the library
/// are analysed.
#[test]
fn workshares() {
    raised_and_prints("workshares", &["workshare.f90"], "3200.0 24000.0 T");
}

/// Section bounds computed by one thread are copied to the other threads one by one, as are `copyprivate`
/// variables; also in derivatives.
#[test]
fn workshares_of_sections() {
    raised_and_prints("sections", &["sections.f90"], "16955.140  1540 T T");
}

/// flang's array reductions and atomic updates are raised, and differentiated.
#[test]
fn reduced_arrays_and_atomic_updates() {
    let files = ["reduced.f90", "reduced_main.f90"];
    raised_and_prints("reduced", &files, "T T");
}

/// Default initial values of a derived type are stored to array elements, in derivatives, too.
#[test]
fn initial_values_of_components() {
    raised_and_prints("begun", &["begun.f90"], "190166.823 T T");
}

/// A region with an `if` clause is a team if the condition holds, and a single thread otherwise: numbers,
/// levels, tasks and loops follow OpenMP.
#[test]
fn regions_with_conditions() {
    let wanted = "501500.0     10200.0     610     610    1999
  3  1  1  1  1  1  0  0  1  1  0  0
  2  2  1  1  1  2  1  1
  3";
    raised_and_prints("conditional", &["conditional.f90"], wanted);
}

/// Conditional regions in differentiated functions, in both modes.
#[test]
fn derivatives_of_regions_with_conditions() {
    let files = ["conditional_gradient.f90"];
    raised_and_prints("conditional_gradient", &files, "T T");
}

/// If a region stays with OpenMP's library, the runtime library knows that the running code is inside it: a
/// thread count set there holds only there.
#[test]
fn regions_with_conditions_of_the_library() {
    let folder = folder("conditional_kept");
    let sources = ["conditional_kept.f90", "conditional_counts.f90"].map(source);
    let sources = sources.join(" ");
    for level in ["-O0", "-O2"] {
        let build = format!("gradus fc {level} -fopenmp {sources} -o program");
        shell(&folder, &build);
        for workers in ["1", "2", "4"] {
            let mut command = Command::new(folder.join("program"));
            command.env("OMP_NUM_THREADS", workers);
            let printed = text(&succeeds(&mut command).stdout);
            let last = printed.lines().last().unwrap_or_default();
            let counts: Vec<&str> = last.split_whitespace().collect();
            assert_eq!(counts, [workers; 2], "{level}: {printed}");
        }
    }
}

const EMPTY_LOOPS: &str = "
subroutine plain(z, from, to)
  real(8) :: z(*)
  integer :: from, to, k
  !$omp do
  do k = from, to
    z(k) = z(k) + k
  end do
  !$omp end do
end subroutine
subroutine wide(z, from, to)
  real(8) :: z(*)
  integer(8) :: from, to, k
  !$omp do
  do k = from, to
    z(k) = z(k) + 10 * k
  end do
  !$omp end do
end subroutine
subroutine chunks(z, from, to)
  real(8) :: z(*)
  integer :: from, to, k
  !$omp do schedule(static, 3)
  do k = from, to
    z(k) = z(k) + 100 * k
  end do
  !$omp end do
end subroutine
subroutine handed_out(z, from, to)
  real(8) :: z(*)
  integer :: from, to, k
  !$omp do schedule(dynamic)
  do k = from, to, 2
    z(k) = z(k) + 1000 * k
  end do
  !$omp end do
end subroutine
program p
  real(8) :: z(20)
  integer :: n
  z = 0
  do n = 8, 12
    !$omp parallel
    call plain(z, 11, n)
    call wide(z, 11_8, int(n, 8))
    call chunks(z, 11, n)
    call handed_out(z, 11, n)
    !$omp end parallel
  end do
  print '(4F12.0)', z(11), z(12), sum(z)
end program
";

/// An orphaned worksharing loop may have no iterations: flang then emits the last index `-1`, unsigned.
#[test]
fn empty_orphaned_loops() {
    let folder = folder("empty_shared_loops");
    crate::support::write(&folder, "empty.f90", EMPTY_LOOPS);
    for level in [0, 1, 3] {
        shell(
            &folder,
            &format!("gradus fc -O{level} -fopenmp empty.f90 -o empty"),
        );
        for workers in ["1", "2", "5"] {
            let mut command = Command::new("timeout");
            command.args(["20", "./empty"]).current_dir(&folder);
            command.env("OMP_NUM_THREADS", workers);
            let said = text(&succeeds(&mut command).stdout);
            let numbers: Vec<&str> = said.split_whitespace().collect();
            assert_eq!(
                numbers,
                ["24442.", "1332.", "25774."],
                "-O{level}, {workers}"
            );
        }
    }
}
