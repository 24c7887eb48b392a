//! C++ programs: each file under `cplusplus/` is differentiated in both modes at every level and compares
//! itself with finite differences.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cplusplus")
        .join(name)
}

fn compile(name: &str, flags: &[&str]) -> (PathBuf, Output) {
    let folder = format!("cplusplus-{name}{}", flags.concat());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("program");
    let output = Command::new(env!("CARGO_BIN_EXE_gradus"))
        .arg("c++")
        .args(flags)
        .arg(source(name))
        .arg("-o")
        .arg(&program)
        .arg("-lm")
        .output()
        .expect("gradus runs");
    (program, output)
}

fn is_right(name: &str) {
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        is_right_with(name, &[level]);
    }
}

fn is_right_with(name: &str, flags: &[&str]) {
    let (program, output) = compile(name, flags);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {flags:?}\n{said}");
    let run = Command::new(&program).output().expect("it runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success(),
        "{name} {flags:?}: {}\n{said}",
        run.status
    );
}

fn is_refused(name: &str, code: &str, line: u32) {
    let (_, output) = compile(name, &["-O1"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{name}");
    assert!(said.contains(&format!("error[{code}]")), "{said}");
    assert!(said.contains(&format!("{name}:{line}:")), "{said}");
}

#[test]
fn every_form_of_new_and_delete_has_shadows() {
    is_right("allocation.cpp");
}

#[test]
fn vectors_grow_and_are_sorted() {
    is_right("vectors.cpp");
}

#[test]
fn vectors_of_structures_are_filled() {
    is_right("records.cpp");
}

#[test]
fn containers_of_structures_grow_and_are_sorted() {
    is_right("containers.cpp");
}

/// Library operations on two vectors of a structure do not merge the alias sets of its other vectors.
#[test]
fn structures_have_several_vectors() {
    is_right("several_vectors.cpp");
}

#[test]
fn lists_are_spliced_and_sorted() {
    is_right("lists.cpp");
}

#[test]
fn trees_are_inserted_into_and_erased_from() {
    is_right("maps.cpp");
}

#[test]
fn hashed_containers_keep_their_order() {
    is_right("hashed.cpp");
}

#[test]
fn nested_containers() {
    is_right("nested.cpp");
}

#[test]
fn private_containers_per_iteration() {
    is_right("own_containers.cpp");
    is_right_with("own_containers.cpp", &["-O2", "-fopenmp"]);
}

#[test]
fn float_bits_in_nodes_are_refused() {
    is_refused("bits_in_nodes.cpp", "GRD0008", 10);
}

#[test]
fn function_object_targets() {
    is_right("callables.cpp");
}

#[test]
fn exceptions_are_caught_inside() {
    is_right("caught.cpp");
}

#[test]
fn exceptions_leave_the_derivative() {
    is_right("leaving.cpp");
}

#[test]
fn exceptions_after_active_writes_are_refused() {
    is_refused("torn.cpp", "GRD0020", 18);
}

#[test]
fn exceptions_that_carry_no_derivative_are_caught() {
    is_right("failing.cpp");
    is_right("alone.cpp");
}

#[test]
fn exceptions_that_handlers_change_are_refused() {
    is_refused("changed.cpp", "GRD0020", 12);
}

#[test]
fn noreturn_paths() {
    is_right("stopping.cpp");
}

const EIGEN: [&str; 4] = ["-O2", "-w", "-isystem", "/usr/include/eigen3"];

#[test]
fn eigens_vectors_and_matrices() {
    is_right_with("eigen.cpp", &EIGEN);
}

#[test]
fn eigens_solvers() {
    is_right_with("solvers.cpp", &EIGEN);
}

#[test]
fn pools_count_their_slots() {
    is_right("free_list.cpp");
}

#[test]
fn closures_capture_vectors() {
    is_right("closures.cpp");
}

#[test]
fn persistent_vectors_are_refused() {
    is_refused("workspace.cpp", "GRD0033", 10);
}

#[test]
fn dynamic_casts() {
    is_right("casts.cpp");
}

/// A refusal inside the standard library's headers also names the calling line of the program.
#[test]
fn refusals_in_headers_name_the_programs_line() {
    is_refused("threads.cpp", "GRD0005", 8);
}

#[test]
fn virtual_functions_of_second_and_virtual_bases_are_found() {
    is_right("second_bases.cpp");
}

#[test]
fn virtual_functions_are_called() {
    is_right("virtual.cpp");
    // Pointers to an object constructed in place of another are laundered.
    is_right_with("virtual.cpp", &["-O2", "-fstrict-vtable-pointers"]);
}

#[test]
fn shared_objects_are_counted() {
    is_right("shared.cpp");
}

#[test]
fn functions_are_passed_by_address() {
    is_right("callbacks.cpp");
}

#[test]
fn static_state_has_shadows() {
    is_right("globals.cpp");
}

#[test]
fn real_and_complex_numbers() {
    is_right("numbers.cpp");
}

#[test]
fn text_carries_no_derivative() {
    is_right("text.cpp");
}

/// Function objects escape to other files, which may query the target.
#[test]
fn function_targets_queried_elsewhere() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cplusplus-asked-elsewhere");
    std::fs::create_dir_all(&folder).expect("a folder");
    let asked = "#include <functional>
        double square(double a);
        bool is_square(const std::function<double(double)> &g) {
            auto p = g.target<double (*)(double)>();
            return p && *p == square;
        }\n";
    let main = "#include <functional>
        extern int enzyme_out;
        double __enzyme_autodiff(void *, ...);
        bool is_square(const std::function<double(double)> &g);
        double square(double a) { return a * a; }
        std::function<double(double)> kept = square;
        static double f(double x) { std::function<double(double)> g = square; return g(x); }
        int main() {
            return __enzyme_autodiff((void *)f, enzyme_out, 3.0) != 6 || !is_square(kept);
        }\n";
    std::fs::write(folder.join("asked.cpp"), asked).expect("written");
    std::fs::write(folder.join("main.cpp"), main).expect("written");
    for level in ["-O0", "-O2"] {
        let built = Command::new(env!("CARGO_BIN_EXE_gradus"))
            .args(["c++", level, "main.cpp", "asked.cpp", "-o", "program"])
            .current_dir(&folder)
            .status();
        assert!(built.expect("gradus runs").success(), "{level}");
        let run = Command::new(folder.join("program")).status();
        assert!(run.expect("it runs").success(), "{level}");
    }
}
