//! `cargo gradus`: derivatives of Rust crates by attributes and of closures. Nothing is downloaded: the dependencies of
//! the crate `gradus` are those of the tested command.

use crate::support::{folder, succeeds, text, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A package, below a folder with a blank in its name, with the crate `gradus` as a dependency.
struct Package {
    folder: PathBuf,
    bin: PathBuf,
}

impl Package {
    fn new(name: &str, manifest: &str, files: &[(&str, &str)]) -> Package {
        let at = folder(&format!("cargo gradus {name}"));
        let package = Package {
            folder: at.join("package"),
            bin: at.join("bin"),
        };
        std::fs::create_dir_all(&package.bin).expect("a folder");
        let link = package.bin.join("cargo-gradus");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gradus"), link).expect("a link");
        package.write("Cargo.toml", manifest);
        files
            .iter()
            .for_each(|(file, text)| package.write(file, text));
        package
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.folder.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rust");
        write(
            &self.folder,
            file,
            &text.replace("CRATES", &crates.display().to_string()),
        );
    }

    /// Returns Cargo, with `cargo-gradus` on the path. The packages share compiled dependencies.
    fn cargo(&self, line: &str) -> Command {
        let mut command = Command::new("cargo");
        command.args(line.split_whitespace()).arg("--offline");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.bin.display()));
        command.env("CARGO_TARGET_DIR", target());
        for name in ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTDOC", "CARGO"] {
            command.env_remove(name);
        }
        command.current_dir(&self.folder);
        command
    }

    fn succeeds(&self, line: &str) -> Output {
        succeeds(&mut self.cargo(line))
    }

    /// Runs Cargo, which must fail. Returns the standard error.
    fn fails(&self, line: &str) -> String {
        let output = self.cargo(line).output().expect("cargo runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(101), "cargo {line}\n{said}");
        said
    }
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo gradus target")
}

/// Returns the manifest of a package of its own workspace.
fn manifest(name: &str, more: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\ngradus = {{ path = \"CRATES/gradus\" }}\n{more}\n"
    )
}

#[test]
fn profiles_give_equal_derivatives_of_two_crates() {
    let laws = include_str!("cargo_gradus/laws.rs");
    let package = Package::new(
        "laws",
        &manifest("program", "laws = { path = \"laws\" }\n[workspace]"),
        &[
            ("laws/Cargo.toml", &manifest("laws", "")),
            ("laws/src/lib.rs", laws),
            ("src/main.rs", include_str!("cargo_gradus/program.rs")),
        ],
    );
    let debug = package.succeeds("gradus run");
    let release = package.succeeds("gradus run --release");
    assert!(text(&debug.stdout).lines().count() > 20);
    assert_eq!(text(&debug.stdout), text(&release.stdout));
    // Nothing has changed: no crate is compiled, and no program is linked.
    let again = package.succeeds("gradus build -v");
    assert!(
        !text(&again.stderr).contains("Running"),
        "{}",
        text(&again.stderr)
    );
    // A changed library changes the derivatives of the program.
    package.write(
        "laws/src/lib.rs",
        &laws.replace("0.5 * self.stiffness", "self.stiffness"),
    );
    let changed = package.succeeds("gradus run");
    assert_ne!(text(&changed.stdout), text(&debug.stdout));
}

#[test]
fn uncommon_functions() {
    let package = Package::new(
        "edges",
        &manifest("edges", "[workspace]"),
        &[("src/main.rs", include_str!("cargo_gradus/edges.rs"))],
    );
    let debug = package.succeeds("gradus run");
    let release = package.succeeds("gradus run --release");
    assert_eq!(text(&debug.stdout), text(&release.stdout));
}

const SQUARE: &str = "#[gradus::reverse(d_square, Active, Active)]\npub fn square(x: f64) -> f64 { x * x }\n\
     #[gradus::reverse(d_cube, Active, Active)]\npub fn cube(x: f64) -> f64 { x * x * x }\n";

#[test]
fn other_builds_name_the_command() {
    let package = Package::new(
        "plain",
        &manifest("plain", "[features]\nstub = [\"gradus/stub\"]\n[workspace]"),
        &[
            ("src/lib.rs", SQUARE),
            (
                "src/bin/closure.rs",
                "fn main() { gradus::grad(&|x: &[f64]| x[0], &[1.0]); }\n",
            ),
            (
                "tests/stub.rs",
                "#[test]\n#[should_panic = \"run `cargo gradus build`\"]\nfn stub() { plain::d_square(3.0, 1.0); }\n",
            ),
        ],
    );
    let said = package.fails("build --lib");
    let remedy =
        "error: derivatives require Gradus: run `cargo gradus build` in place of `cargo build`";
    assert!(
        said.contains(remedy) && said.contains("--> src/lib.rs:1:"),
        "{said}"
    );
    assert_eq!(
        said.matches("error:").count(),
        2,
        "one, and Cargo's: {said}"
    );
    write(&package.folder, "src/lib.rs", "");
    let said = package.fails("build --bin closure");
    let remedy = "error[E0277]: derivatives require Gradus: run `cargo gradus build`";
    assert!(
        said.contains(remedy) && said.contains("--> src/bin/closure.rs:1:"),
        "{said}"
    );
    write(&package.folder, "src/lib.rs", SQUARE);
    package.succeeds("test --features stub --test stub");
}

/// Functions with a mistake, and the beginning of the message.
const MISTAKES: [(&str, &str); 27] = [
    (
        "#[gradus::reverse] fn f(x: f64) -> f64 { x }",
        "the first argument is the name of the derivative",
    ),
    (
        "#[gradus::reverse(3)] fn f(x: f64) -> f64 { x }",
        "the first argument is the name of the derivative",
    ),
    (
        "#[gradus::reverse(df, Active)] fn f(x: f64) -> f64 { x }",
        "`f` has 1 parameter and a result: expected 2 activities after the name, found 1",
    ),
    (
        "#[gradus::reverse(df, Active, Active, Active)] fn f(x: f64) -> f64 { x }",
        "`f` has 1 parameter and a result: expected 2 activities after the name, found 3",
    ),
    (
        "#[gradus::reverse(df, Duplicated, Active)] fn f(x: &mut f64) { *x *= 2.0 }",
        "`f` has 1 parameter and no result: expected 1 activity after the name, found 2",
    ),
    (
        "#[gradus::reverse(df, Duplicate, Active)] fn f(x: &f64) -> f64 { *x }",
        "unknown activity `Duplicate`: did you mean `Duplicated`?",
    ),
    (
        "#[gradus::reverse(df, Shadow, Active)] fn f(x: &f64) -> f64 { *x }",
        "unknown activity `Shadow`: the activities are `Const`, `Active`",
    ),
    (
        "#[gradus::reverse(df, Dual, Active)] fn f(x: &f64) -> f64 { *x }",
        "`Dual` is no activity of `gradus::reverse`: use `Active` for a float by value, `Duplicated` for memory",
    ),
    (
        "#[gradus::forward(df, Active, Dual)] fn f(x: f64) -> f64 { x }",
        "`Active` is no activity of `gradus::forward`: use `Dual`",
    ),
    (
        "#[gradus::reverse(df, Active, Active)] fn f(x: &[f64]) -> f64 { x[0] }",
        "`Active` is for `f32` and `f64` by value: use `Duplicated` for `&[f64]`",
    ),
    (
        "#[gradus::reverse(df, Duplicated, Active)] fn f(x: f64) -> f64 { x }",
        "`Duplicated` is for memory behind a reference: use `Active` for `f64`",
    ),
    (
        "#[gradus::reverse(df, Duplicated, Active)] fn f(x: Vec<f64>) -> f64 { x[0] }",
        "`Vec<f64>` is passed by value: pass a reference to it",
    ),
    (
        "#[derive(Clone, Copy)] struct P(f64); #[gradus::reverse(df, Active, Active)] fn f(p: P) -> f64 { p.0 }",
        "`P` is not a floating-point type",
    ),
    (
        "#[gradus::reverse(df, Active, Active)] fn f(x: [f64; 2]) -> f64 { x[0] }",
        "`[f64; 2]` is passed by value: pass a reference to it",
    ),
    (
        "#[gradus::reverse(df, Active, Active)] fn f(n: usize) -> f64 { n as f64 }",
        "`usize` is passed by value",
    ),
    (
        "#[gradus::reverse(df, Const, Active)] fn f(x: f64) -> f64 { x }",
        "no parameter of `f` has a derivative",
    ),
    (
        "#[gradus::reverse(df, ActiveOnly, Active)] fn f(x: f64) -> f64 { x }",
        "`ActiveOnly` belongs to a result: use `Active`",
    ),
    (
        "#[gradus::reverse(df, Active, Active)] async fn f(x: f64) -> f64 { x }",
        "an `async` function has no derivative",
    ),
    (
        "#[gradus::reverse(df, Active, Active)] unsafe fn f(x: f64) -> f64 { x }",
        "an `unsafe` function has no derivative",
    ),
    (
        "#[gradus::reverse(df, Active, Active)] fn f(x: f64) -> (f64, f64) { (x, x) }",
        "the result of a differentiated function is `f32`, `f64` or nothing",
    ),
    (
        "#[gradus::reverse(df, Active, Active)] fn f(x: f64) -> i32 { x as i32 }",
        "the result of a differentiated function is `f32`, `f64` or nothing",
    ),
    (
        "#[gradus::reverse(df, 4, Active, Active)] fn f(x: f64) -> f64 { x }",
        "`gradus::reverse` has no width",
    ),
    (
        "#[gradus::forward(df, 99, Dual, Dual)] fn f(x: f64) -> f64 { x }",
        "the width is a number from 1 to 64",
    ),
    (
        "#[gradus::forward(df, Dualv, Dual)] fn f(x: &[f64]) -> f64 { x[0] }",
        "`Dualv` requires a width",
    ),
    (
        "#[gradus::forward(df, 4, Dual, Dual)] fn f(x: &[f64]) -> f64 { x[0] }",
        "with a width, `&[f64]` is `Dualv`",
    ),
    (
        "trait T { fn g(&self) -> f64; } #[gradus::reverse(df, Duplicated, Active)] fn f(x: &dyn T) -> f64 { x.g() }",
        "a trait object cannot have a shadow",
    ),
    (
        "#[gradus::reverse(df)] struct S;",
        "`gradus::reverse` belongs to a function",
    ),
];

#[test]
fn each_mistake_is_one_error_with_a_remedy() {
    let name = |at: usize| format!("mistake{at:02}");
    let files: Vec<(String, String)> = (MISTAKES.iter().enumerate())
        .map(|(at, (code, _))| {
            let text = format!("#![allow(dead_code)]\nfn main() {{}}\n{code}\n");
            (format!("src/bin/{}.rs", name(at)), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = (files.iter())
        .map(|(file, text)| (file.as_str(), text.as_str()))
        .collect();
    let package = Package::new("mistakes", &manifest("mistakes", "[workspace]"), &files);
    let output = package.cargo("gradus check --bins --keep-going --message-format short");
    let output = { output }.output().expect("cargo runs");
    let said = text(&output.stderr);
    for (at, (code, message)) in MISTAKES.iter().enumerate() {
        let file = format!("src/bin/{}.rs:3:", name(at));
        let of_file: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with(&file))
            .collect();
        let [only] = of_file[..] else {
            panic!("{code}\n{of_file:#?}\n{said}");
        };
        assert!(only.contains(message), "{code}\n{only}");
    }
}

#[test]
fn a_refusal_names_the_line_and_the_code() {
    let package = Package::new(
        "refused",
        &manifest("refused", "[workspace]"),
        &[(
            "src/main.rs",
            "unsafe extern \"C\" { fn unknown_law(x: f64) -> f64; }\n\
             #[gradus::reverse(df, Active, Active)]\n\
             fn f(x: f64) -> f64 {\n    2.0 * unsafe { unknown_law(x) }\n}\n\
             fn main() { println!(\"{:?}\", df(1.0, 1.0)); }\n",
        )],
    );
    for profile in ["", " --release"] {
        let said = package.fails(&format!("gradus build{profile}"));
        assert!(
            said.contains("error[GRD0005]") && said.contains("unknown_law"),
            "{said}"
        );
        assert!(said.contains("src/main.rs:4:20"), "{said}");
        assert!(!said.contains("linking with"), "{said}");
    }
    let json = package.cargo("gradus build --message-format json");
    let json = { json }.output().expect("cargo runs");
    assert!(
        text(&json.stdout).contains("\"code\":\"GRD0005\""),
        "{}",
        text(&json.stdout)
    );
    let said = succeeds_not(package.cargo("gradus frobnicate"));
    assert!(
        said.contains("`cargo gradus` has no command `frobnicate`"),
        "{said}"
    );
}

fn succeeds_not(mut command: Command) -> String {
    let output = command.output().expect("cargo runs");
    assert!(!output.status.success());
    text(&output.stderr)
}

#[test]
fn unit_tests_doc_tests_and_libraries_of_a_workspace() {
    let library = "//! ```\n//! assert_eq!(member::d_square(3.0, 1.0), (9.0, 6.0));\n//! ```\n";
    let tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn unit() { assert_eq!(super::d_cube(2.0, 1.0).1, 12.0); }\n}\n";
    let member = manifest(
        "member",
        "[build-dependencies]\ngradus-macros = { path = \"CRATES/gradus-macros\" }",
    );
    let export = manifest(
        "export",
        "member = { path = \"../member\" }\n[lib]\ncrate-type = [\"cdylib\", \"staticlib\"]",
    );
    let package = Package::new(
        "workspace",
        "[workspace]\nresolver = \"3\"\nmembers = [\"member\", \"export\"]\n",
        &[
            ("member/Cargo.toml", &member),
            ("member/src/lib.rs", &format!("{library}{SQUARE}{tests}")),
            ("member/build.rs", "fn main() { assert!(!cfg!(gradus)); }\n"),
            (
                "member/tests/integration.rs",
                "#[test]\nfn integration() { assert_eq!(member::d_square(3.0, 1.0), (9.0, 6.0)); }\n",
            ),
            ("export/Cargo.toml", &export),
            (
                "export/src/lib.rs",
                "#[unsafe(no_mangle)]\npub extern \"C\" fn slope(x: f64) -> f64 { member::d_square(x, 1.0).1 }\n",
            ),
        ],
    );
    let said = text(&package.succeeds("gradus test").stdout);
    for name in ["tests::unit", "integration", "src/lib.rs - (line 1)"] {
        assert!(
            said.contains(&format!("test {name} ... ok")) || said.contains(name),
            "{said}"
        );
    }
    assert_eq!(said.matches("1 passed").count(), 3, "{said}");
    package.succeeds("gradus build --release");
    let libraries = target().join("gradus/x86_64-unknown-linux-gnu/release");
    write(
        &package.folder,
        "main.c",
        "#include <stdio.h>\ndouble slope(double);\nint main(void) { printf(\"%g\\n\", slope(3.0)); }\n",
    );
    for library in ["libexport.a", "libexport.so"] {
        let program = package.folder.join("main");
        let mut compile = Command::new("clang-22");
        compile
            .arg("main.c")
            .arg(libraries.join(library))
            .arg("-o")
            .arg(&program);
        succeeds(
            compile
                .args(["-lm", "-lpthread", "-ldl"])
                .current_dir(&package.folder),
        );
        let mut run = Command::new(&program);
        let run = succeeds(run.env("LD_LIBRARY_PATH", &libraries));
        assert_eq!(text(&run.stdout), "6\n", "{library}");
    }
}

#[test]
fn the_example_converges() {
    let file = |name: &str| {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rust");
        std::fs::read_to_string(example.join(name)).expect("the example")
    };
    let manifest = file("Cargo.toml").replace("../../rust", "CRATES");
    let package = Package::new(
        "example",
        &manifest,
        &[("src/main.rs", &file("src/main.rs"))],
    );
    let said = text(&package.succeeds("gradus run --release").stdout);
    assert!(said.contains("converged"), "{said}");
    // With springs harder than the fourth power, dE/dk = stretch² / 2 is positive.
    let last = said.lines().last().expect("a line");
    let sensitivity = last
        .rsplit(' ')
        .next()
        .and_then(|number| number.parse::<f64>().ok());
    assert!(sensitivity.is_some_and(|s| s > 0.0), "{last}");
}
