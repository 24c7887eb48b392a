//! Programs in other languages than C: the bitcode of their compilers is differentiated unchanged, at each
//! level, and agrees with finite differences.

use crate::support::{accepts, folder, gradus, refuses, shell, succeeds, text, write};
use std::path::{Path, PathBuf};
use std::process::Command;

fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/languages");
    folder.join(name)
}

/// Runs the program with every loop forked; the program compares with finite differences. Returns the
/// gradient's norm.
fn norm(folder: &Path, workers: u32) -> f64 {
    let mut command = Command::new(folder.join("program"));
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", "1");
    let output = succeeds(&mut command);
    text(&output.stdout).trim().parse().expect("a number")
}

fn same(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-10 * b.abs(), "{what}: {a} and {b}");
}

#[test]
fn fortran() {
    let folder = folder("fortran");
    let (plane, main) = (source("plane.f90"), source("main.c"));
    let library = fortran_library(&folder);
    let mut first = None;
    for level in ["-O1", "-O2", "-O3"] {
        for openmp in ["", "-fopenmp"] {
            let plane = plane.display();
            shell(
                &folder,
                &format!("flang-22 {level} {openmp} -g -emit-llvm -c {plane} -o plane.bc"),
            );
            let said = shell(&folder, "gradus grad plane.bc -f energy --wrt 0 -o plane.o");
            let forked = !text(&said.stderr).contains("GRD0036");
            let main = main.display();
            shell(
                &folder,
                &format!(
                    "gradus cc -O2 {openmp} -DPLANE {main} plane.o {library} -lm -lpthread -o program"
                ),
            );
            for workers in [1, 2] {
                let norm = norm(&folder, workers);
                same(norm, *first.get_or_insert(norm), level);
            }
            // Higher levels unroll loops before import; unrolled loops stay teams.
            assert!(forked || level != "-O1", "{level} {openmp}");
        }
    }
}

/// Returns the path of flang's runtime library.
fn fortran_library(folder: &Path) -> String {
    let path = shell(folder, "clang-22 -print-file-name=libflang_rt.runtime.a");
    text(&path.stdout).trim().to_string()
}

/// Fortran 77: arguments by reference, characters with hidden lengths, `NINT`, `WRITE` of active values. C
/// code includes the header.
#[test]
fn fortran_77() {
    let folder = folder("fortran_77");
    let (cholesky, main) = (source("cholesky.f"), source("cholesky.c"));
    let library = fortran_library(&folder);
    for level in ["-O1", "-O2", "-O3"] {
        let cholesky = cholesky.display();
        shell(
            &folder,
            &format!("flang-22 {level} -g -emit-llvm -c {cholesky} -o cholesky.bc"),
        );
        shell(
            &folder,
            "gradus grad cholesky.bc -f solve_ --wrt a,b --emit header -o solve.h",
        );
        shell(
            &folder,
            "gradus grad cholesky.bc -f solve_ --wrt a,b -o solve.o",
        );
        shell(
            &folder,
            &format!(
                "clang-22 -O1 -Werror -I. {} solve.o {library} -lm -lpthread -o program",
                main.display()
            ),
        );
        let output = succeeds(&mut Command::new(folder.join("program")));
        assert!(text(&output.stdout).ends_with("right\n"), "{level}");
    }
}

/// Fortran 2003: derived types with allocatable components, inheritance, dynamic dispatch, and finalisation
/// at the end of a scope, in flang's bitcode of every level.
#[test]
fn fortran_types() {
    let folder = folder("fortran_types");
    let (types, main) = (source("types.f90"), source("types.c"));
    let library = fortran_library(&folder);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let (types, main) = (types.display(), main.display());
        shell(
            &folder,
            &format!("flang-22 {level} -g -emit-llvm -c {types} -o types.bc"),
        );
        shell(
            &folder,
            &format!("gradus cc {level} types.bc {main} {library} -lm -lpthread -o program"),
        );
        let mut checked = Command::new("valgrind");
        checked.args(["-q", "--leak-check=full", "--error-exitcode=9", "./program"]);
        let output = succeeds(checked.current_dir(&folder));
        assert_eq!(text(&output.stdout), "right\n", "{level}");
    }
}

/// Differentiates functions of a Fortran source from flang's bitcode of several levels, and runs a program
/// that checks the derivatives.
fn checks_fortran(file: &str, functions: &[&str], levels: &[&str]) {
    let folder = folder(&format!("fortran_{}", file.trim_end_matches(".f90")));
    let (fortran, main) = (source(file), source("checked.c"));
    let (fortran, main) = (fortran.display(), main.display());
    let library = fortran_library(&folder);
    let named: String = (functions.iter())
        .map(|name| format!("X({name})"))
        .collect();
    for level in levels {
        shell(
            &folder,
            &format!("flang-22 {level} -g -emit-llvm -c {fortran} -o fortran.bc"),
        );
        let compile = format!(
            "gradus cc {level} -DFUNCTIONS(X)={named} fortran.bc {main} {library} -lm -lpthread -o program"
        );
        shell(&folder, &compile);
        let mut checked = Command::new("valgrind");
        checked.args(["-q", "--leak-check=full", "--error-exitcode=9", "./program"]);
        let output = succeeds(checked.current_dir(&folder));
        assert_eq!(text(&output.stdout), "right\n", "{level}");
    }
}

/// Fortran 90 and later: arrays allocated by assignment, moved, and assigned to overlapping sections, norms
/// and remainders, in flang's bitcode of every optimised level.
#[test]
fn fortran_arrays() {
    let functions = [
        "shapes", "overlaps", "grown", "cells", "waves", "bounds", "sources", "strides", "rests",
    ];
    checks_fortran("arrays.f90", &functions, &["-O1", "-O2", "-O3"]);
}

/// Transformational functions, reductions and parts of numbers, called in flang's library: at `-O0` all of
/// them, at other levels those without an inline form.
#[test]
fn fortran_library_functions() {
    let functions = [
        "masked",
        "reshaped",
        "shifted",
        "reduced",
        "multiplied",
        "models",
    ];
    checks_fortran("library.f90", &functions, &["-O0", "-O1", "-O2", "-O3"]);
}

/// Fortran 90 pointers: allocated and freed, also in components of structures, lists and trees; swapped,
/// associated with array sections, and compared.
#[test]
fn fortran_pointers() {
    let functions = [
        "tree", "list", "grid", "buffers", "points", "jagged", "parts",
    ];
    checks_fortran("pointers.f90", &functions, &["-O1", "-O2", "-O3"]);
}

/// Internal procedures passed as arguments with their host's variables, also with a recursive host; array
/// constructors, also of growing arrays; and queries of dynamic types.
#[test]
fn fortran_procedures() {
    let functions = ["inside", "constructed", "asked"];
    checks_fortran("procedures.f90", &functions, &["-O1", "-O2", "-O3"]);
}

/// A procedure pointer component is in another list of the type information than other components.
#[test]
fn fortran_procedure_components() {
    let folder = folder("fortran_held_beside_procedures");
    let source = "module m
       implicit none
       abstract interface
        real(8) function g(x)
         real(8), intent(in) :: x
        end function
       end interface
       type law
        real(8) :: a = 1
        procedure(g), pointer, nopass :: f => null()
        real(8), allocatable :: c(:)
       end type
      contains
       real(8) function sq(x)
        real(8), intent(in) :: x
        sq = x*x
       end function
      end module
      real(8) function f(x)
       use m
       real(8), intent(in) :: x(3)
       type(law) :: p, q
       p%a = x(1)
       p%f => sq
       p%c = x
       q = p
       f = q%f(x(2))*q%a + sum(q%c)
      end function\n";
    write(&folder, "law.f90", source);
    refuses(&folder, "grad law.f90 -f f -o law.o", "GRD0005");
}

/// Variables with allocatable components, returned by functions and assigned as a whole, also to themselves
/// and to other variables, and arrays of such variables.
#[test]
fn fortran_allocatable_components() {
    checks_fortran("held.f90", &["held", "several"], &["-O1", "-O2", "-O3"]);
}

/// A library frees memory that it allocated itself: pointers are passed between both.
#[test]
fn fortran_pointers_across_files() {
    let folder = folder("fortran_pointers_of_others");
    let made = "module made
      contains
        subroutine make(p, n)
          real(8), pointer, intent(inout) :: p(:)
          integer, intent(in) :: n
          allocate(p(n))
          p = 1
        end subroutine
        subroutine take(p, state)
          real(8), pointer, intent(inout) :: p(:)
          integer, intent(out) :: state
          deallocate(p, stat=state)
        end subroutine
        real(8) function f(x)
          real(8), intent(in) :: x
          real(8), pointer :: p(:)
          call make(p, 3)
          p = p * x
          f = sum(p * p)
          deallocate(p)
        end function
      end module\n";
    let main = "program main
        use made
        real(8), pointer :: p(:), q(:)
        integer :: state, n
        do n = 1, 9
          call make(p, n)
          deallocate(p, stat=state)
          if (state /= 0) stop 1
          allocate(q(n))
          call take(q, state)
          if (state /= 0) stop 2
          call take(q, state)
          if (state == 0) stop 3
        end do
        if (f(2d0) /= 12) stop 4
      end program\n";
    write(&folder, "made.f90", made);
    write(&folder, "main.f90", main);
    accepts(&folder, "grad made.f90 -f _QMmadePf -o made.o");
    shell(&folder, "flang-22 main.f90 made.o -o program");
    succeeds(Command::new("./program").current_dir(&folder));
}

/// Allocatable arrays of derived types, with initial values and allocatable components: allocated by
/// bounds, with `source`, `match_mold` or `stat`, moved, and freed at the end of their scope.
#[test]
fn fortran_allocated_types() {
    let folder = folder("fortran_allocated");
    let source = source("allocated.f90");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let build = format!("gradus fc {level} {} -o program", source.display());
        shell(&folder, &build);
        let mut checked = Command::new("valgrind");
        checked.args(["-q", "--leak-check=full", "--error-exitcode=9", "./program"]);
        let printed = text(&succeeds(checked.current_dir(&folder)).stdout);
        let right = printed.lines().filter(|line| line.ends_with(" T T"));
        assert_eq!(right.count(), 7, "{level}: {printed}");
    }
}

/// A check links flang's library, called by the rest of the file.
#[test]
fn fortran_is_checked_with_its_library() {
    let folder = folder("fortran_checked");
    let source = "module m
      contains
        real(8) function f(x, n)
          integer, value :: n
          real(8), intent(in) :: x(n)
          real(8), allocatable :: a(:)
          a = x * x
          f = norm2(a)
        end function
        subroutine tell(x)
          real(8), intent(in) :: x(:)
          print *, pack(x, x > 0)
        end subroutine
      end module\n";
    write(&folder, "m.f90", source);
    shell(&folder, "flang-22 -O1 -g -emit-llvm -c m.f90 -o m.bc");
    let told = shell(
        &folder,
        "gradus check m.bc -f _QMmPf --arg x=rand(5) --arg n=5",
    );
    assert!(text(&told.stdout).contains("the derivative is right"));
}

/// An unsupported library call is refused by name, without consequential diagnostics.
#[test]
fn fortran_library_calls() {
    let folder = folder("fortran_library_calls");
    let source = "real(8) function f(x, n)
        integer, intent(in) :: n
        real(8), intent(in) :: x(n)
        real(8), allocatable :: a(:)
        a = bessel_jn(0, 2, x(1))
        f = sum(a * a)
      end function\n";
    write(&folder, "m.f90", source);
    shell(&folder, "flang-22 -O1 -g -emit-llvm -c m.f90 -o m.bc");
    let said = refuses(&folder, "grad m.bc -f f_ --wrt 0 -o m.o", "GRD0005");
    assert!(said.contains("`_FortranABesselJn_8`"), "{said}");
    // The help suggests a remedy in Fortran, not the compilation of an unavailable file.
    assert!(
        said.contains("element by element") && !said.contains("compile the file"),
        "{said}"
    );
    assert!(
        !said.contains("GRD0008") && !said.contains("GRD0007"),
        "{said}"
    );
}

/// The memory freed by finalising a polymorphic component is known at run time only: it is refused.
#[test]
fn fortran_polymorphic_components() {
    let folder = folder("fortran_polymorphic");
    let source = "module m
        type :: base
          real(8) :: by
        end type
        type :: holder
          real(8), allocatable :: c(:)
          class(base), allocatable :: what
        end type
      contains
        real(8) function f(x, n)
          integer, intent(in) :: n
          real(8), intent(in) :: x(n)
          type(holder) :: h
          allocate(h%c(n))
          h%c = x * x
          f = h%c(1) + h%c(n)
        end function
      end module\n";
    write(&folder, "m.f90", source);
    shell(&folder, "flang-22 -O1 -g -emit-llvm -c m.f90 -o m.bc");
    let said = refuses(&folder, "grad m.bc -f _QMmPf --wrt 0 -o m.o", "GRD0005");
    assert!(said.contains("`_FortranADestroy`"), "{said}");
}

#[test]
fn rust() {
    let folder = folder("rust");
    let options = [
        "opt-level=0",
        "opt-level=1",
        "opt-level=2",
        "opt-level=3",
        "opt-level=3 -C panic=abort",
        // The standard library is included, and its use by panics and their messages is skipped.
        "opt-level=2 -C lto=fat",
        "opt-level=3 -C panic=abort -C lto=fat",
    ];
    rust_program(&folder, "springs", &options);
}

#[test]
fn rust_memory() {
    let folder = folder("rust_memory");
    let options = ["opt-level=1", "opt-level=2", "opt-level=3"].map(|o| format!("{o} -C lto=fat"));
    rust_program(&folder, "lines", &options.each_ref().map(String::as_str));
}

#[test]
fn rust_growing_vectors() {
    let folder = folder("rust_growing");
    let options = ["opt-level=2", "opt-level=3"];
    rust_program(&folder, "growing", &options);
}

#[test]
fn rust_lists() {
    let folder = folder("rust_lists");
    let options = ["opt-level=1", "opt-level=2", "opt-level=3"];
    rust_program(&folder, "lists", &options);
}

/// The result of a closure and the address of a caught panic share an integer: either a diagnostic or a
/// right gradient, never zero.
#[test]
fn rust_catch_unwind() {
    let folder = folder("rust_catches");
    let program = source("caught.rs");
    let kind = "--edition 2024 --crate-type staticlib -g --emit=llvm-bc";
    let made = format!("rustc {kind} -C opt-level=1 {}", program.display());
    shell(&folder, &made);
    let line = "grad caught.bc -f energy --wrt x -o energy.o";
    let said = crate::support::refuses(&folder, line, "GRD0008");
    assert!(
        said.contains("caught.rs") || said.contains("panic"),
        "{said}"
    );
    rust_program(&folder, "caught", &["opt-level=2", "opt-level=3"]);
}

/// Checks the gradient of a crate's `energy` with several options: equal to finite differences, and equal
/// for all options.
fn rust_program(folder: &Path, name: &str, options: &[&str]) {
    let (program, main) = (source(&format!("{name}.rs")), source("main.c"));
    let (program, main) = (program.display(), main.display());
    let mut first = None;
    for options in options {
        let kind = "--edition 2024 --crate-type staticlib -g --emit=llvm-bc,link";
        shell(folder, &format!("rustc {kind} -C {options} {program}"));
        let ask = "-f energy --wrt x -o energy.o";
        shell(folder, &format!("gradus grad {name}.bc {ask}"));
        let link = "-lm -lpthread -ldl -o program";
        shell(
            folder,
            &format!("gradus cc -O2 {main} energy.o lib{name}.a {link}"),
        );
        let norm = norm(folder, 1);
        same(norm, *first.get_or_insert(norm), options);
    }
}

/// A source is compiled directly, with rustc's flags or an optimisation level; the required part of Rust's
/// library is written next to the object.
#[test]
fn rust_sources() {
    let folder = folder("rust_sources");
    let (program, main) = (source("springs.rs"), source("main.c"));
    let (program, main) = (program.display(), main.display());
    let mut first = None;
    for flags in [
        "",
        "-- -O0",
        "-- -O3",
        "-- -C opt-level=1 -C panic=abort",
        "-- --edition 2024 -g",
    ] {
        shell(
            &folder,
            &format!("gradus grad {program} -f energy --wrt x -o energy.o {flags}"),
        );
        let link = "-lm -lpthread -ldl -o program";
        shell(
            &folder,
            &format!("gradus cc -O2 {main} energy.o libsprings.a {link}"),
        );
        let norm = norm(&folder, 1);
        same(norm, *first.get_or_insert(norm), flags);
        let values = "--arg n=10 --arg x=rand(n)";
        let line = format!("check {program} -f energy --wrt x {values} {flags}");
        let checked = gradus(&folder, &line);
        assert!(
            checked.status.success(),
            "{flags}\n{}",
            text(&checked.stderr)
        );
    }
    let named = gradus(&folder, &format!("grad {program} -f energy"));
    assert!(named.status.success() && folder.join("springs.o").is_file());
    write(
        &folder,
        "wrong.rs",
        "pub fn energy(x: &[f64]) -> f64 { x.summ() }\n",
    );
    let said = refuses(&folder, "grad wrong.rs -f energy", "GRD0022");
    assert!(
        said.contains("wrong.rs:1") && said.contains("summ"),
        "{said}"
    );
}

/// Vtables are followed through references and boxes, for types with and without a destructor: the vtable's
/// destructor slot is null without one, and never called.
#[test]
fn rust_trait_objects() {
    let folder = folder("rust_tables");
    let (program, main) = (source("tables.rs"), source("main.c"));
    let (program, main) = (program.display(), main.display());
    let mut first = None;
    for flags in ["-O2", "-O3", "-C panic=abort"] {
        let ask = "-f energy --wrt x -o energy.o";
        shell(&folder, &format!("gradus grad {program} {ask} -- {flags}"));
        let link = "-lm -lpthread -ldl -o program";
        shell(
            &folder,
            &format!("gradus cc -O2 {main} energy.o libtables.a {link}"),
        );
        let norm = norm(&folder, 1);
        same(norm, *first.get_or_insert(norm), flags);
    }
}

/// A crate is compiled by its manifest, with all dependences.
#[test]
fn rust_crates() {
    let folder = folder("rust_crates");
    let main = source("main.c");
    for part in ["chain/src", "chain/law/src"] {
        std::fs::create_dir_all(folder.join(part)).expect("a folder");
    }
    let head = |name: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n")
    };
    let manifest = format!(
        "{}[dependencies]\nlaw = {{ path = \"law\" }}\n[workspace]\n",
        head("chain")
    );
    write(&folder, "chain/Cargo.toml", &manifest);
    write(&folder, "chain/law/Cargo.toml", &head("law"));
    let law = "#[inline(never)]
    pub fn energies(stretches: &[f64]) -> Vec<f64> {
        stretches.iter().map(|s| s * s + s.powi(4)).collect()
    }\n";
    write(&folder, "chain/law/src/lib.rs", law);
    let chain = "#[unsafe(no_mangle)]
    pub extern \"C\" fn energy(x: *const f64, n: usize) -> f64 {
        let x = unsafe { std::slice::from_raw_parts(x, n) };
        let stretches: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
        law::energies(&stretches).iter().sum::<f64>() + x[0] * x[0]
    }\n";
    write(&folder, "chain/src/lib.rs", chain);
    shell(&folder, "gradus grad chain/Cargo.toml -f energy --wrt x");
    let link = "-lm -lpthread -ldl -o program";
    let main = main.display();
    shell(
        &folder,
        &format!("gradus cc -O2 {main} chain.o libchain.a {link}"),
    );
    norm(&folder, 1);
    // An unchanged crate is not compiled again, and its output is found.
    let values = "--arg n=10 --arg x=rand(n)";
    let checked = gradus(
        &folder,
        &format!("check chain/Cargo.toml -f energy --wrt x {values}"),
    );
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    std::fs::rename(
        folder.join("chain/src/lib.rs"),
        folder.join("chain/src/main.rs"),
    )
    .expect("renamed");
    let said = refuses(&folder, "grad chain/Cargo.toml -f energy", "GRD0022");
    assert!(said.contains("no library"), "{said}");
}

/// flang stores the bounds of a task loop elsewhere than clang, in the program's own steps, and without the
/// word for the last part.
#[test]
fn fortran_tasks() {
    let folder = folder("fortran_tasks");
    let (source, library) = (source("tasks.f90"), fortran_library(&folder));
    let source = source.display();
    for level in ["-O1", "-O2", "-O3"] {
        shell(
            &folder,
            &format!("flang-22 {level} -g -fopenmp -emit-llvm -c {source} -o tasks.bc"),
        );
        shell(
            &folder,
            &format!("gradus cc {level} -fopenmp tasks.bc {library} -lm -lpthread -o program"),
        );
        for threads in ["1", "2", "4"] {
            let mut command = Command::new(folder.join("program"));
            command.env("OMP_NUM_THREADS", threads);
            command.env("GRADUS_FORCE_FORK", "1");
            let printed = text(&succeeds(&mut command).stdout);
            assert_eq!(
                printed.trim(),
                "60300 18496.0 8 16650",
                "{level}, {threads}"
            );
        }
    }
}

/// The code of an undeferred task is inlined at its creation by flang's passes; parallel intrinsics from
/// Fortran are compiled again.
#[test]
fn fortran_recursion_of_tasks() {
    let folder = folder("fortran_tree");
    let source = source("tree.f90");
    let source = source.display();
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let build = format!("gradus fc {level} -fopenmp");
        let said = shell(&folder, &format!("{build} {source} -o program"));
        assert!(!text(&said.stderr).contains("GRD0036"), "{said:?}");
        let words = "-c -emit-llvm --par-target=intrinsics";
        shell(&folder, &format!("{build} {words} {source} -o words.bc"));
        shell(&folder, &format!("{build} words.bc -o again"));
        for program in ["program", "again"] {
            for threads in ["1", "2", "4"] {
                let mut command = Command::new(folder.join(program));
                command.env("OMP_NUM_THREADS", threads);
                command.env("GRADUS_FORCE_FORK", "1");
                let printed = text(&succeeds(&mut command).stdout);
                let what = format!("{program}, {level}, {threads}");
                assert_eq!(printed.trim(), "6765 500500.0", "{what}");
            }
        }
    }
}

/// `gradus fc` compiles a program completely: OpenMP, differentiation calls with arguments by address and
/// by descriptor, flang's options, separate compilation and link.
#[test]
fn fortran_driver() {
    let folder = folder("fortran_driver");
    let (source, parallel) = (source("driver.F90"), "-fopenmp --par-report");
    let source = source.display();
    let build = |options: &str| {
        let whole = format!("gradus fc {options} -DPOWER=3 {source} -o program");
        let apart = format!("gradus fc {options} -DPOWER=3 -module-dir . -c {source} -o driver.o");
        let link = format!("gradus fc {options} driver.o -o program");
        for commands in [vec![whole], vec![apart, link]] {
            let said: String = commands
                .iter()
                .map(|c| text(&shell(&folder, c).stdout))
                .collect();
            assert_eq!(
                said.matches("raised to parallel loops").count() >= 2,
                options.contains("par-report"),
                "{said}"
            );
            for threads in ["1", "2", "4"] {
                let mut command = Command::new(folder.join("program"));
                command.env("OMP_NUM_THREADS", threads);
                command.env("GRADUS_FORCE_FORK", "1");
                let printed = text(&succeeds(&mut command).stdout);
                assert_eq!(printed.trim(), "right", "{options}, {threads}");
            }
        }
    };
    build("-O0");
    build("-O2 -g");
    build(&format!("-O1 {parallel}"));
    build(&format!("-O3 {parallel}"));
}

/// A Fortran source is differentiated directly: read-only memory of a loop gets no shadow, and iterations
/// with private adjoints use plain adds.
#[test]
fn fortran_sources() {
    let folder = folder("fortran_sources");
    let told =
        "gradus grad SOURCE -f energy --report=full --wrt x -o energy.o -- -O2 -fopenmp -DPOWER=2";
    let told = told.replace("SOURCE", &source("driver.F90").display().to_string());
    let said = shell(&folder, &told);
    let said = text(&said.stdout) + &text(&said.stderr);
    assert!(
        said.contains("arguments: arg0 inactive, arg1 with shadow")
            || said.contains("arguments: n inactive, x with shadow"),
        "{said}"
    );
    assert!(
        said.contains("adjoint additions: 1 plain (line 13), 1 by reduction"),
        "{said}"
    );
}

/// The shadow has the array's strides, other strides, too few elements, or a single element whose stride is
/// irrelevant.
const OTHER_STRIDES: &str = "include 'gradus.f90'
module work
contains
  real(8) function squares(x)
    real(8), intent(in) :: x(:)
    integer :: i
    squares = 0
    do i = 1, size(x)
      squares = squares + x(i)**2
    end do
  end function
end module
program apart
  use work
  use gradus
  interface
    subroutine vjp(f, x, dx) bind(c, name='__gradus_vjp_of_squares')
      external :: f
      real(8) :: x(:), dx(:)
    end subroutine
  end interface
  real(8) :: x(8), dx(8)
  x = 1
  dx = 0
#if CASE == 1
  call vjp(squares, x(::2), dx(::2))
#elif CASE == 2
  call vjp(squares, x(::2), dx(:4))
#elif CASE == 3
  call vjp(squares, x, dx(:4))
#else
  call vjp(squares, x(1:2:2), dx(1:1))
#endif
  if (abs(dx(1) - 2) < 1d-12) print '(a)', 'right'
end program
";

/// Checks assumed-shape arrays of one and two dimensions in functions and subroutines, also as sections
/// with strides. Forward mode, reverse mode and finite differences agree.
#[test]
fn fortran_assumed_shape() {
    let folder = folder("fortran_assumed_shape");
    let source = source("assumed_shape.f90");
    for options in ["-O0", "-O1 -g", "-O2", "-O3 -g"] {
        shell(
            &folder,
            &format!("gradus fc {options} {} -o program", source.display()),
        );
        let output = succeeds(&mut Command::new(folder.join("program")));
        assert_eq!(text(&output.stdout).trim(), "right", "{options}");
    }
    // A derivative indexes a shadow like its array; a section with other strides ends the program.
    write(&folder, "apart.f90", OTHER_STRIDES);
    for options in ["-O0", "-O2 -g"] {
        for (define, ends) in [("1", false), ("2", true), ("3", true), ("4", false)] {
            let line = format!("fc {options} -cpp -DCASE={define} apart.f90 -o apart");
            accepts(&folder, &line);
            let output = Command::new(folder.join("apart")).output().expect("starts");
            let said = text(&output.stderr);
            let told = said.contains("the shadow of") && !output.status.success();
            assert_eq!(told, ends, "{options}, case {define}: {said}");
            assert!(ends || text(&output.stdout).contains("right"), "{said}");
        }
    }
    // Requests by name work outside of modules, too.
    write(
        &folder,
        "bare.f90",
        "subroutine squares(x, y)
          real(4), intent(in) :: x(:)
          real(4), intent(inout) :: y
          integer :: i
          y = 0
          do i = 1, size(x)
            y = y + x(i)**2
          end do
        end subroutine\n",
    );
    let driver = source.display();
    for mode in ["reverse", "forward"] {
        for flags in ["-O0", "-O2 -g"] {
            accepts(
                &folder,
                &format!("grad bare.f90 -f squares --mode {mode} -o out.o -- {flags}"),
            );
        }
        accepts(
            &folder,
            &format!("grad {driver} -f counted --mode {mode} -o out.o"),
        );
    }
}
