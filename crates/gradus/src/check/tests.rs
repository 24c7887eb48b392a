//! Tests of the check: hand-written derivatives, right and wrong, must be distinguished.

use super::*;
use gradus_pipeline::{Argument, Derivative, ResultPart, Role};

/// y[i] = s · x[i]², returns Σ s·x[i]³; three placeholders stand for parts of the derivatives.
const PROGRAM: &str = "
double cubes(const double *x, double s, double *y, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) { y[i] = s * x[i] * x[i]; sum += y[i] * x[i]; }
    return sum;
}
double gr_check_jvp(const double *x, const double *xt, double s, double st, double *y, double *yt, int n) {
    double t = 0;
    for (int i = 0; i < n; i++) {
        y[i] = s * x[i] * x[i];
        yt[i] = st * x[i] * x[i] + 2 * s * x[i] * xt[i];
        t += FORWARD * (yt[i] * x[i] + y[i] * xt[i]);
    }
    return t;
}
double gr_check_vjp(const double *x, double *xa, double s, double *y, double *ya, int n, double c) {
    double sa = 0;
    for (int i = 0; i < n; i++) {
        y[i] = s * x[i] * x[i];
        const double a = ya[i] + c * x[i];
        ya[i] = 0;
        if (i != SKIP) xa[i] += c * y[i] + a * 2 * s * x[i];
        sa += SCALE * a * x[i] * x[i];
    }
    TAIL
    return sa;
}
";

fn argument(name: &str, c_type: &str, role: Role) -> Argument {
    Argument {
        name: name.into(),
        source_name: name.into(),
        c_type: c_type.into(),
        role,
        descriptor: None,
        elements: None,
        shape: None,
        is_written: false,
    }
}

/// Describes the hand-written derivatives in the pipeline's format.
fn derivative(mode: Mode) -> Derivative {
    let primal = vec![
        argument("x", "const double *", Role::Active(0)),
        argument("s", "double", Role::Active(1)),
        argument("y", "double *", Role::Active(2)),
        argument("n", "int", Role::Inactive(3)),
    ];
    let shadow = |i| argument("", "double *", Role::Shadow(i, 0));
    let [x, s, y, n] = [0, 1, 2, 3].map(|i| primal[i].clone());
    let (name, arguments, role) = match mode {
        Mode::Forward => (
            "gr_check_jvp",
            vec![x, shadow(0), s, shadow(1), y, shadow(2), n],
            Role::ResultTangent(0),
        ),
        Mode::Dependencies => unreachable!("the check has no dependency sets"),
        Mode::Reverse => (
            "gr_check_vjp",
            vec![
                x,
                shadow(0),
                s,
                y,
                shadow(2),
                n,
                argument("c", "double", Role::Cotangent(0)),
            ],
            Role::Adjoint(1, 0),
        ),
    };
    Derivative {
        name: name.into(),
        function: "cubes".into(),
        source_name: "cubes".into(),
        mode,
        width: 1,
        primal,
        arguments,
        results: vec![ResultPart {
            name: "s_adj".into(),
            c_type: "double".into(),
            role,
        }],
        prototype: String::new(),
        primal_prototype: "double cubes(const double *x, double s, double *y, int n)".into(),
        primal_result: "double".into(),
        result: "double".into(),
        descriptors: Vec::new(),
        structures: Vec::new(),
        is_zero: false,
        computes_single: false,
    }
}

fn settings() -> Settings {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Settings {
        clang: None,
        flang: None,
        environment: Vec::new(),
        include: None,
        store: std::env::temp_dir(),
        path: std::env::split_paths(&path).collect(),
        temp: std::env::temp_dir(),
        program: PathBuf::new(),
        child: PathBuf::new(),
        limits: Default::default(),
        progress: Default::default(),
        leftovers: Default::default(),
        command: Vec::new(),
        record: None,
    }
}

fn asked(values: &[(&str, &str)]) -> Check {
    Check {
        files: vec!["cubes.c".into()],
        function: "cubes".into(),
        wrt: Vec::new(),
        inactive: Vec::new(),
        values: values
            .iter()
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect(),
        single: false,
        driver: None,
        flags: Vec::new(),
        limit_seconds: 2,
        limit_memory_bytes: 1 << 30,
        options: Options::default(),
    }
}

const VALUES: &[(&str, &str)] = &[
    ("n", "40"),
    ("x", "rand(n)"),
    ("y", "zeros(n)"),
    ("s", "1.5"),
];

/// Checks the program with substituted placeholders.
fn judged(forward: &str, skip: &str, scale: &str, tail: &str) -> Result<Checked, Diagnostic> {
    let scratch = settings().scratch()?;
    let what = asked(VALUES);
    let text = PROGRAM
        .replace("FORWARD", forward)
        .replace("SKIP", skip)
        .replace("SCALE", scale)
        .replace("TAIL", tail);
    let (source, object) = (scratch.file("cubes.c"), scratch.file("cubes.o"));
    files::write(&source, text.as_bytes())?;
    run_compiler(&Job {
        program: settings().compiler(Language::C)?,
        args: vec![
            "-O1".into(),
            "-g".into(),
            "-c".into(),
            source.display().to_string(),
            "-o".into(),
            object.display().to_string(),
        ],
    })?;
    let (jvp, vjp) = (derivative(Mode::Forward), derivative(Mode::Reverse));
    let header = "double gr_check_jvp(const double *, const double *, double, double, double *, double *, int);
        double gr_check_vjp(const double *, double *, double, double *, double *, int, double);";
    let driver = driver::write(&what, &jvp, &vjp)?;
    let program = build(
        &settings(),
        &what,
        &scratch,
        (&object, None),
        (header.as_bytes(), &driver, "cubes"),
    )?;
    let mut checked = Checked::default();
    let place = |frames: &[&str]| trace::source_line(&settings(), &program, frames);
    let setting = CheckContext {
        what: &what,
        derivative: &jvp,
        location: None,
        registrations: &[],
        place: &place,
        function: &|_| None,
    };
    decide(&setting, &program, &scratch, &mut checked)?;
    Ok(checked)
}

#[test]
fn right_derivatives_pass() {
    let checked = judged("1", "-1", "1", "").expect("runs");
    assert!(checked.is_right, "{}", checked.text);
    for part in ["dot product", "x ", "s ", "y ", "agree"] {
        assert!(
            checked.text.contains(part),
            "{part} is not in\n{}",
            checked.text
        );
    }
}

#[test]
fn wrong_derivatives_are_told_with_their_place() {
    let entry = judged("1", "7", "1", "").expect("runs");
    assert!(
        !entry.is_right && entry.text.contains("first at x[7]"),
        "{}",
        entry.text
    );
    let scalar = judged("1", "-1", "1.001", "").expect("runs");
    assert!(
        !scalar.is_right && scalar.text.contains("MISMATCH: reverse"),
        "{}",
        scalar.text
    );
    let forward = judged("1.0001", "-1", "1", "").expect("runs");
    assert!(
        !forward.is_right && forward.text.contains("forward          MISMATCH"),
        "{}",
        forward.text
    );
    assert_eq!(entry.diagnostics[0].code, Code::CheckFailed);
}

#[test]
fn a_derivative_that_dies_or_hangs_is_a_finding() {
    let died = judged("1", "-1", "1", "*(volatile int *)0 = 1;").expect_err("it dies");
    assert_eq!(died.code, Code::CheckFailed);
    assert!(
        died.message.contains("the reverse derivative was killed"),
        "{died}"
    );
    let hung =
        judged("1", "-1", "1", "for (volatile int i = 0; i < 1; ) {}").expect_err("it hangs");
    assert_eq!(hung.code, Code::LimitReached);
}

#[test]
fn values_that_are_missing_are_asked_for_and_not_guessed() {
    let (jvp, vjp) = (derivative(Mode::Forward), derivative(Mode::Reverse));
    let finding =
        driver::write(&asked(&[("n", "4")]), &jvp, &vjp).expect_err("x and y are missing");
    assert_eq!(finding.code, Code::MissingCheckInput);
    assert_eq!(finding.notes.len(), 2, "{finding:?}");
    let finding = driver::write(&asked(&[("m", "4")]), &jvp, &vjp).expect_err("no such argument");
    assert_eq!(finding.code, Code::NoSuchArgument);
}
