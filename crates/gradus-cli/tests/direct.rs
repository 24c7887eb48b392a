//! Files without derivative calls: one run of the compiler, and an object without a module. A link still
//! differentiates functions of such objects.

use crate::support::{accepts, folder, gradus, refuses, succeeds, text, write};
use std::path::Path;
use std::process::Command;

const CUBE: &str = "#include \"part.h\"\ndouble cube(double x) { return part(x) * x * x; }\n";
const PART: &str = "static inline double part(double x) { return x; }\n";
const MAIN: &str = "#include <gradus.h>\n#include <stdio.h>\ndouble cube(double);\n\
    int main(void) { printf(\"%g\\n\", gradus_vjp_double(cube, gradus_out, 2.0)); }\n";

fn program(at: &Path) {
    std::fs::create_dir_all(at.join("inc")).expect("a folder");
    write(at, "cube.c", CUBE);
    write(at, "inc/part.h", PART);
    write(at, "main.c", MAIN);
}

fn prints(at: &Path, program: &str, expected: &str) {
    let output = succeeds(&mut Command::new(at.join(program)));
    assert_eq!(text(&output.stdout), expected);
}

fn sections(at: &Path, object: &str) -> String {
    let mut command = Command::new("llvm-readelf-22");
    text(&succeeds(command.args(["-S", object]).current_dir(at)).stdout)
}

#[test]
fn a_link_differentiates_functions_of_plain_objects() {
    let at = folder("direct-link");
    program(&at);
    accepts(&at, "cc -O2 -Iinc -c cube.c");
    let listed = sections(&at, "cube.o");
    assert!(listed.contains(".gradus.src") && !listed.contains(".gradus.bc"));
    accepts(&at, "cc -O2 -c main.c");
    accepts(&at, "cc main.o cube.o -o whole");
    prints(&at, "whole", "12\n");
    succeeds(
        Command::new("ar")
            .args(["rcs", "libcube.a", "cube.o"])
            .current_dir(&at),
    );
    accepts(&at, "cc main.o libcube.a -o archived");
    prints(&at, "archived", "12\n");
    // Relative paths are those of the compilation.
    std::fs::create_dir_all(at.join("below")).expect("a folder");
    accepts(
        &at.join("below"),
        "cc ../main.o ../cube.o -o ../below/whole",
    );
    prints(&at, "below/whole", "12\n");
    accepts(&at, "grad cube.o -f cube -o derivative.o");
    assert!(at.join("derivative.h").is_file());
}

#[test]
fn changed_sources_are_refused() {
    let at = folder("direct-changed");
    program(&at);
    accepts(&at, "cc -O2 -Iinc -c cube.c");
    accepts(&at, "cc -O2 -c main.c");
    write(
        &at,
        "inc/part.h",
        "static inline double part(double x) { return 2 * x; }\n",
    );
    let said = refuses(&at, "cc main.o cube.o -o whole", "GRD0023");
    assert!(said.contains("part.h has changed"), "{said}");
    std::fs::remove_file(at.join("inc/part.h")).expect("removed");
    let said = refuses(&at, "cc main.o cube.o -o whole", "GRD0023");
    assert!(said.contains("part.h is gone"), "{said}");
    // Another header of the name, found first.
    write(&at, "inc/part.h", PART);
    write(
        &at,
        "part.h",
        "static inline double part(double x) { return 3 * x; }\n",
    );
    let said = refuses(&at, "cc main.o cube.o -o whole", "GRD0023");
    assert!(said.contains("part.h was not read before"), "{said}");
}

/// A header may hold calls and words that the compiler drops.
#[test]
fn work_in_headers_is_found() {
    let at = folder("direct-headers");
    let call = "#include <gradus.h>\nstatic double cube(double x) { return x * x * x; }\n\
        static double slope(double x) { return gradus_vjp_double(cube, gradus_out, x); }\n";
    write(&at, "slope.h", call);
    let user = "#include \"slope.h\"\n#include <stdio.h>\nint main(void) { printf(\"%g\\n\", slope(3)); }\n";
    write(&at, "user.c", user);
    accepts(&at, "cc -O1 -c user.c");
    accepts(&at, "cc user.o -o user");
    prints(&at, "user", "27\n");
    let word = "__attribute__((enzyme_inactive)) static void trace(double x) { (void)x; }\n";
    write(&at, "word.h", word);
    write(
        &at,
        "word.c",
        "#include \"word.h\"\ndouble g(double x) { trace(x); return x; }\n",
    );
    let output = gradus(&at, "cc -O1 -c word.c");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(sections(&at, "word.o").contains(".gradus.bc"));
}

#[test]
fn lists_of_files_and_messages_are_clangs() {
    let at = folder("direct-lists");
    program(&at);
    for options in [
        "-MD",
        "-MMD",
        "-MD -MF x.d",
        "-MMD -MP -MF x.d -MT name",
        "-MD -o out.obj",
    ] {
        let run = |program: &mut Command| {
            program.args(["-O2", "-Iinc", "-c", "cube.c"]);
            succeeds(program.args(options.split(' ')).current_dir(&at));
            let lists = ["cube.d", "x.d", "out.d"];
            let list = lists.iter().find_map(|list| {
                let text = std::fs::read_to_string(at.join(list)).ok()?;
                std::fs::remove_file(at.join(list)).ok()?;
                Some((*list, text))
            });
            list.expect("a list")
        };
        let ours = run(Command::new(env!("CARGO_BIN_EXE_gradus")).arg("cc"));
        assert_eq!(ours, run(&mut Command::new("clang-22")), "{options}");
    }
    write(&at, "warned.c", "int f(void) { int unused; return 1; }\n");
    let output = gradus(&at, "cc -Wall -c warned.c");
    assert_eq!(text(&output.stderr).matches("unused variable").count(), 1);
    std::fs::remove_file(at.join("warned.o")).expect("removed");
    let output = gradus(&at, "cc -Wall -Werror -c warned.c");
    assert_eq!(text(&output.stderr).matches("unused variable").count(), 1);
    assert!(!output.status.success() && !at.join("warned.o").exists());
}

/// The code is clang's, and the record is small.
#[test]
fn the_object_has_clangs_code() {
    let at = folder("direct-size");
    let functions: String = (0..300)
        .map(|i| {
            format!(
                "double f{i}(double x) {{ return x * {i} + f{}(x); }}\n",
                i.max(1) - 1
            )
        })
        .collect();
    write(&at, "many.c", &format!("double f0(double);\n{functions}"));
    accepts(&at, "cc -O1 -g -c many.c -o ours.o");
    succeeds(
        Command::new("clang-22")
            .args([
                "-D__GRADUS__=1",
                "-O1",
                "-g",
                "-c",
                "many.c",
                "-o",
                "clangs.o",
            ])
            .current_dir(&at),
    );
    let code = |object: &str| {
        let mut command = Command::new("llvm-objdump-22");
        let output = succeeds(command.args(["-d", "-r", object]).current_dir(&at));
        text(&output.stdout).replace(object, "")
    };
    assert_eq!(code("ours.o"), code("clangs.o"));
    let size = |object: &str| std::fs::metadata(at.join(object)).expect("an object").len();
    assert!(size("ours.o") < size("clangs.o") * 3 / 2);
}
