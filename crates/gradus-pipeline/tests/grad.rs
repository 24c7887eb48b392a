//! Derivatives by name, called from C code that clang compiles against the emitted header.

use crate::support::{CHECK, LEVELS, bitcode, findings, grad, link_and_run, run};
use gradus_ir::Code;
use gradus_ir::mutant::{Mutant, plant};
use gradus_pipeline::{GradRequest, GradTask, Level, Mode, OutputKind, Reply, Role, Task};

const EMIT: &[OutputKind] = &[
    OutputKind::Object,
    OutputKind::Header,
    OutputKind::LlvmText,
    OutputKind::Gir,
];

fn wish(function: &str) -> GradRequest {
    GradRequest {
        function: function.into(),
        ..GradRequest::default()
    }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| s.to_string()).collect()
}

/// Emits derivatives at every level and runs `main` with them.
fn check(source: &str, wishes: &[GradRequest], main: &str) -> Reply {
    let mut last = None;
    for (flags, level) in LEVELS {
        let reply = run(bitcode(source, flags), grad(wishes), *level, EMIT);
        let Some(object) = reply.output(OutputKind::Object) else {
            panic!("{flags:?}: refused\n{}", findings(&reply));
        };
        let header = reply.text(OutputKind::Header).expect("a header");
        let main = format!("{CHECK}\n#include \"made.h\"\n{main}");
        let files = [("made.h", header), ("main.c", main.as_str())];
        if let Err(why) = link_and_run(object, &files, &["-Wall", "-Werror"]) {
            panic!(
                "{flags:?}: {why}\n{header}\n{}",
                reply.text(OutputKind::LlvmText).unwrap_or("")
            );
        }
        last = Some(reply);
    }
    last.expect("levels")
}

#[test]
fn an_array_and_its_adjoint() {
    let reply = check(
        "double energy(const double *x, int n) { double e = 0; for (int i = 1; i < n; i++) { double d = x[i] - x[i - 1]; e += d * d * d; } return e; }",
        &[wish("energy"), GradRequest { mode: Mode::Forward, with_primal: true, ..wish("energy") }],
        "extern double energy(const double *, int);
        int main(void) {
            double x[4] = {1, 3, 2, 5}, g[4] = {0}, v[4] = {1, -1, 2, 0};
            energy_vjp(x, g, 4, 1.0);
            for (int i = 0; i < 4; i++) { double at = x[i]; NEAR(g[i], SLOPE(t, at, (x[i] = t, energy(x, 4)))); x[i] = at; }
            struct energy_tan t = energy_jvp(x, v, 4);
            NEAR(t.value, energy(x, 4)); NEAR(t.value_tan, g[0] - g[1] + 2 * g[2]);
        }",
    );
    let made = &reply.derivatives[0];
    assert_eq!(
        (made.name.as_str(), made.function.as_str()),
        ("energy_vjp", "energy")
    );
    assert_eq!(made.arguments.len(), 4);
    let report = &reply.report.derivatives[0];
    assert_eq!(report.derivative.as_deref(), Some("energy_vjp"));
    assert_eq!(report.parameters.len(), 4);
    let tape = report.tape.as_ref().expect("a tape");
    assert!(tape.rows.is_empty() && tape.size().is_zero(), "{tape:?}");
    assert!(
        reply
            .text(OutputKind::Gir)
            .is_some_and(|t| t.contains("func")),
        "no text form"
    );
}

#[test]
fn several_numbers_come_back_as_a_structure() {
    check(
        "double two(double x, double y) { return x * y * y; }
        double three(double x, double y, double z) { return x * y * z; }
        float four(float a, float b, float c, float d) { return a * b * c * d; }
        double mixed(float a, double b) { return a * b; }
        long double one_long(long double x, int n) { return x * n; }
",
        &[
            wish("two"),
            wish("three"),
            wish("four"),
            wish("mixed"),
            GradRequest { wrt: names(&["y"]), name: Some("two_by_y".into()), ..wish("two") },
            GradRequest { wrt: names(&["0"]), with_primal: true, name: Some("two_by_x".into()), ..wish("two") },
        ],
        "int main(void) {
            struct two_adj a = two_vjp(2, 3, 1); NEAR(a.x, 9); NEAR(a.y, 12);
            struct three_adj b = three_vjp(2, 3, 5, 10); NEAR(b.x, 150); NEAR(b.y, 100); NEAR(b.z, 60);
            struct four_adj c = four_vjp(2, 3, 5, 7, 1); NEAR(c.a, 105); NEAR(c.b, 70); NEAR(c.c, 42); NEAR(c.d, 30);
            struct mixed_adj d = mixed_vjp(2, 3, 1); NEAR(d.a, 3); NEAR(d.b, 2);
            NEAR(two_by_y(2, 3, 1), 12);
            struct two_by_x_adj e = two_by_x(2, 3, 1); NEAR(e.value, 18); NEAR(e.x, 9);
        }",
    );
}

#[test]
fn a_function_that_nobody_else_could_name() {
    let source = "static double hidden(double x) { return x * x; }
        double user(double x) { return hidden(x) + 1; }";
    for (flags, level) in [LEVELS[0], LEVELS[4]] {
        let reply = run(bitcode(source, flags), grad(&[wish("hidden")]), level, EMIT);
        let object = reply.output(OutputKind::Object).expect("made");
        let main = format!(
            "{CHECK}double hidden_vjp(double, double), user(double);
            int main(void) {{ NEAR(hidden_vjp(3, 1), 6); NEAR(user(2), 5); }}"
        );
        assert_eq!(
            link_and_run(object, &[("main.c", &main)], &[]),
            Ok(String::new())
        );
    }
}

#[test]
fn prototypes_have_the_types_of_the_source() {
    let source = "#include <stddef.h>
        typedef double real; struct point { real x, y; }; struct big { double v[4]; };
        real f(const struct point *p, size_t n, const real *const w, _Bool b, struct big s, struct point q, float *restrict out) {
            *out = 0; return b ? p[n].x * w[0] * s.v[1] + q.x : 0; }";
    let reply = run(
        bitcode(source, &["-O0", "-g"]),
        grad(&[wish("f")]),
        Level::O1,
        EMIT,
    );
    let made = reply
        .derivatives
        .first()
        .unwrap_or_else(|| panic!("{}", findings(&reply)));
    assert_eq!(
        made.primal_prototype,
        "double f(const struct point *p, unsigned long n, const double *w, bool b, struct big s, \
         double q_0, double q_1, float *out)"
    );
    assert_eq!(
        made.prototype,
        "struct f_adj f_vjp(const struct point *p, struct point *p_adj, unsigned long n, \
         const double *w, double *w_adj, bool b, struct big s, struct big *s_adj, double q_0, \
         double q_1, float *out, float *out_adj, double result_adj)"
    );
}

#[test]
fn outputs_behind_pointers_get_shadows() {
    let source = "void polar(double r, double phi, double *out, int unused) { double c = __builtin_cos(phi), s = __builtin_sin(phi); out[0] = r * c; out[1] = r * s; }";
    let reply = check(
        source,
        &[
            wish("polar"),
            GradRequest {
                wrt: names(&["r"]),
                name: Some("polar_r".into()),
                ..wish("polar")
            },
            GradRequest {
                mode: Mode::Forward,
                width: 2,
                ..wish("polar")
            },
        ],
        "int main(void) {
            double out[2], out_adj[2] = {1, 10};
            struct polar_adj a = polar_vjp(2, 0.5, out, out_adj, 0);
            NEAR(a.r, cos(0.5) + 10 * sin(0.5)); NEAR(a.phi, -2 * sin(0.5) + 20 * cos(0.5));
            double again[2] = {1, 10};
            NEAR(polar_r(2, 0.5, out, again, 0), a.r);
            double t0[2], t1[2];
            polar_jvp(2, 1, 0, 0.5, 0, 1, out, t0, t1, 0);
            NEAR(t0[0], cos(0.5)); NEAR(t1[1], 2 * cos(0.5)); NEAR(out[1], 2 * sin(0.5));
        }",
    );
    let note = reply
        .diagnostics
        .iter()
        .find(|d| d.message.contains("`out`"));
    assert!(note.is_some(), "{}", findings(&reply));
}

#[test]
fn structures_by_value_keep_their_abi() {
    check(
        "struct small { double a, b; }; struct large { double a, b, c; int k; };
        double f(struct small s, double x) { return s.a * x + s.b * x * x; }
        double g(struct large s, double x) { s.a *= 2; return s.a * x + s.b * s.c + s.k; }",
        &[
            GradRequest {
                inactive: names(&["s"]),
                ..wish("f")
            },
            GradRequest {
                wrt: names(&["s"]),
                name: Some("f_by_s".into()),
                ..wish("f")
            },
            wish("g"),
        ],
        "struct large { double a, b, c; int k; };
        int main(void) {
            NEAR(f_vjp(2, 3, 2.0, 1), 14);
            struct f_by_s_adj a = f_by_s(2, 3, 2.0, 1); NEAR(a.s_0, 2); NEAR(a.s_1, 4);
            double (*by_value)(struct large, struct large *, double, double) = (void *)g_vjp;
            struct large l = {2, 3, 4, 5}, l_adj = {0};
            NEAR(by_value(l, &l_adj, 3.0, 1), 4); NEAR(l.a, 2);
            NEAR(l_adj.a, 6); NEAR(l_adj.b, 4); NEAR(l_adj.c, 3);
        }",
    );
}

#[test]
fn beside_the_programs_own_object() {
    let program = "static const double table[3] = {1, 2, 3}; double scale = 2; int unrelated;
        static double square(double x) { return x * x; } double other(double x) { unrelated++; return x; }
        __attribute__((constructor)) static void begin(void) { scale = 5; }
        __attribute__((noinline)) double shared(double x) { return x * scale; }
        double f(const double *x) { double r = 0; for (int i = 0; i < 3; i++) r += table[i] * square(shared(x[i])); return r; }";
    let task = |source: &str, flags: &[&str]| {
        let task = Task::Grad(GradTask {
            derivatives: vec![wish("f")],
            beside: true,
        });
        run(bitcode(source, flags), task, Level::O1, EMIT)
    };
    for (flags, _) in LEVELS {
        let reply = task(program, flags);
        let Some(object) = reply.output(OutputKind::Object) else {
            panic!("{flags:?}: {}", findings(&reply));
        };
        let main = format!(
            "{CHECK}{}
            int main(void) {{
                double x[3] = {{1, 2, 3}}, g[3] = {{0}}; f_vjp(x, g, 1);
                for (int i = 0; i < 3; i++) {{ NEAR(g[i], 2 * 25 * x[i] * (i + 1)); }}
                return unrelated;
            }}",
            "void f_vjp(const double *, double *, double); extern int unrelated;"
        );
        let files = [("main.c", main.as_str()), ("own.c", program)];
        if let Err(why) = link_and_run(object, &files, &[]) {
            panic!(
                "{flags:?}: {why}\n{}",
                reply.text(OutputKind::LlvmText).unwrap_or("")
            );
        }
    }
    for state in [
        "double f(double x) { static double calls; calls += x; return x * calls; }",
        "static int n; void more(void) { n++; } double f(double x) { return x * n; }",
    ] {
        let reply = task(state, &["-O1"]);
        assert!(
            reply
                .diagnostics
                .iter()
                .any(|d| d.code == Code::StaticState),
            "{}",
            findings(&reply)
        );
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_together() {
    let source = "double f(double x, int n) { return x * n; }\nint g(int n) { return n; }\ndouble f_vjp(double x) { return x; }";
    let module = || bitcode(source, &["-O1", "-g"]);
    let refuse = |wishes: &[GradRequest]| {
        let reply = run(module(), grad(wishes), Level::O1, EMIT);
        assert!(reply.has_errors() && reply.outputs.is_empty());
        reply.diagnostics
    };
    let codes =
        |wishes: &[GradRequest]| -> Vec<Code> { refuse(wishes).iter().map(|d| d.code).collect() };
    assert_eq!(
        codes(&[wish("ff"), wish("energy")]),
        [Code::NoSuchFunction, Code::NoSuchFunction]
    );
    let near = refuse(&[wish("ff")]);
    assert!(
        near[0].help.as_ref().is_some_and(|h| h.contains("`f`")),
        "{:?}",
        near[0].help
    );
    let wrong = GradRequest {
        wrt: names(&["y", "7"]),
        ..wish("f")
    };
    assert_eq!(
        codes(&[wrong]),
        [Code::NoSuchArgument, Code::NoSuchArgument]
    );
    let integer = GradRequest {
        wrt: names(&["n"]),
        ..wish("f")
    };
    assert_eq!(codes(&[integer]), [Code::NoSuchArgument]);
    assert_eq!(codes(&[wish("g")]), [Code::ZeroDerivative]);
    assert_eq!(
        codes(&[wish("f")]),
        [Code::BadRequest],
        "the symbol is taken"
    );
}

#[test]
fn what_was_differentiated_can_be_differentiated_again() {
    let source = "double f(const double *x, int n) { double r = 1; for (int i = 0; i < n; i++) r *= x[i] * x[i]; return r; }";
    for (flags, level) in [LEVELS[0], LEVELS[4]] {
        let first = run(
            bitcode(source, flags),
            grad(&[wish("f")]),
            level,
            &[OutputKind::Bitcode],
        );
        let module = first
            .output(OutputKind::Bitcode)
            .unwrap_or_else(|| panic!("{}", findings(&first)));
        let again = [
            GradRequest {
                mode: Mode::Forward,
                ..wish("f_vjp")
            },
            GradRequest {
                name: Some("f_vjp2".into()),
                ..wish("f")
            },
        ];
        let reply = run(module.to_vec(), grad(&again), level, EMIT);
        let Some(object) = reply.output(OutputKind::Object) else {
            panic!("{flags:?}: {}", findings(&reply));
        };
        let header = reply.text(OutputKind::Header).expect("a header");
        let main = format!(
            "{CHECK}\n#include \"made.h\"
            int main(void) {{
                double x[2] = {{2, 3}}, v[2] = {{1, 0}}, g[2] = {{0}}, h[2] = {{0}};
                f_vjp_jvp(x, v, g, h, 2, 1, 0);
                NEAR(g[0], 36); NEAR(g[1], 24); NEAR(h[0], 18); NEAR(h[1], 24);
                double again[2] = {{0}};
                f_vjp2(x, again, 2, 1); NEAR(again[0], 36); NEAR(again[1], 24);
            }}"
        );
        let files = [("made.h", header), ("main.c", main.as_str())];
        if let Err(why) = link_and_run(object, &files, &[]) {
            panic!("{flags:?}: {why}\n{header}");
        }
    }
}

#[test]
fn the_same_request_gives_the_same_bytes() {
    let source = "double f(const double *x, int n) { double r = 1; for (int i = 0; i < n; i++) r *= x[i]; return r; }";
    let module = bitcode(source, &["-O2", "-g"]);
    let once = || run(module.clone(), grad(&[wish("f")]), Level::O2, EMIT);
    assert_eq!(once(), once());
}

/// An output of an argument is written through a pointer that the argument's memory holds.
const INDIRECT_OUTPUT: &str = "struct vector { int n; double *at; };
    void squares(const double *x, struct vector *y) { for (int i = 0; i < y->n; i++) y->at[i] = x[i] * x[i]; }";

/// Without the seeded fault the output has a shadow. With the fault the derivative is zero, hence refused.
#[test]
fn seeded_fault_of_indirect_outputs_is_detected() {
    let wishes = [GradRequest {
        wrt: names(&["x"]),
        ..wish("squares")
    }];
    let shadows = |mutant| {
        plant(mutant);
        let reply = run(
            bitcode(INDIRECT_OUTPUT, &["-O1"]),
            grad(&wishes),
            Level::O1,
            EMIT,
        );
        plant(None);
        let made = reply.derivatives.first()?;
        Some(
            made.arguments
                .iter()
                .filter(|a| matches!(a.role, Role::Shadow(..)))
                .count(),
        )
    };
    assert_eq!(shadows(None), Some(2));
    assert_ne!(shadows(Some(Mutant::IndirectOutputsWithoutShadow)), Some(2));
}
