//! The host as a whole: reading, linking, pipelines, emission, the JIT, symbols.
use crate::clang::{bitcode, compile};
use gradus_llvm::host::jit::{Arg, Jit};
use gradus_llvm::{Emit, Host, OptLevel, Pipeline};

const SUM: &str = "double scale; static double sq(double v) { return v * v; }
double sum(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += sq(x[i]); return s; }
struct two { double a, b; }; struct two both(double p, double q) { struct two t = {p + q, p - q}; return t; }
typedef double (*fun)(double); static fun table[] = {sq}; double pick(int i, double x) { return table[i](x); }";

const EARLY: [&str; 4] = [
    "-O2",
    "-Xclang",
    "-disable-llvm-passes",
    "-fno-discard-value-names",
];

#[test]
fn bitcode_runs_after_every_pipeline() {
    for flags in [&["-O0"][..], &EARLY, &["-O3"]] {
        for pipeline in [
            None,
            Some(Pipeline::EarlySerial),
            Some(Pipeline::EarlyPlain),
        ] {
            for late in [OptLevel::O0, OptLevel::O3] {
                let mut host = Host::parse(&bitcode(SUM, flags), "sum.bc").expect("reads");
                if let Some(p) = pipeline {
                    host.run(p).expect("early pipeline");
                }
                host.run(Pipeline::Late(late)).expect("late pipeline");
                let jit = Jit::new(host, &["sum", "both"]).expect("compiles");
                let mut x = [1.0, 2.0, 3.0];
                let s = jit
                    .call("sum", &mut [Arg::F64s(&mut x), Arg::Int(3)])
                    .expect("runs");
                assert_eq!(s.f64(), 14.0);
                let t = jit
                    .call("both", &mut [Arg::F64(5.0), Arg::F64(3.0)])
                    .expect("runs");
                assert_eq!((t.f64_at(0), t.f64_at(1)), (8.0, 2.0));
                assert!(
                    jit.call("sum", &mut []).is_err(),
                    "wrong number of arguments"
                );
            }
        }
    }
}

/// A loop with a long body that fills a small stack array is unrolled if the array can be promoted, and
/// stays otherwise; later passes receive no unroll request.
#[test]
fn loops_that_index_small_arrays_are_unrolled() {
    const MODES: &str = "void away(double *); double modes(const double *x, const double *w, int n, int k) {
        double m[4][8], r = 0;
        for (int e = 0; e < n; e++) {
            for (int i = 0; i < RUNS; i++) {
                double a = x[e] * w[i] + x[e + 1] * w[i + 1] + x[e + 2] * w[i + 2] + x[e + 3] * w[i + 3];
                double b = x[e] * w[i + 4] + x[e + 1] * w[i + 5] + x[e + 2] * w[i + 6] + x[e + 3] * w[i + 7];
                double c = x[e] * w[i + 8] + x[e + 1] * w[i + 9] + x[e + 2] * w[i + 10] + x[e + 3] * w[i + 11];
                for (int j = 0; j < 8; j++) m[i][j] = w[j] - a * w[j + 1] - b * w[j + 2] - c * w[j + 3];
            }
            AWAY
            for (int j = 0; j < 8; j++) r += m[0][j] * m[1][j] + m[PLACE][j] * m[3][j];
        }
        return r; }";
    let early = |runs: &str, place: &str, away: &str| {
        let source = MODES.replace("RUNS", runs).replace("PLACE", place);
        let source = source.replace("AWAY", away);
        let mut host = Host::parse(&bitcode(&source, &EARLY), "modes.bc").expect("reads");
        host.mark_differentiated("modes");
        host.run(Pipeline::EarlySerial).expect("early pipeline");
        host.to_text()
    };
    assert!(!early("4", "2", "").contains("alloca"));
    for (runs, place, away) in [("4", "k", ""), ("4", "2", "away(m[0]);"), ("n", "2", "")] {
        let text = early(runs, place, away);
        assert!(text.contains("alloca"), "{runs} {place} {away}: {text}");
        assert!(!text.contains("unroll.full"), "{text}");
        assert!(!text.contains("gradus.local-array"), "{text}");
    }
}

#[test]
fn text_and_bitcode_read_back() {
    let host = Host::parse(&bitcode(SUM, &EARLY), "sum.bc").expect("reads");
    let text = host.to_text();
    let again = Host::parse(text.as_bytes(), "sum.ll").expect("reads text");
    let third = Host::parse(&again.to_bitcode(), "sum.bc").expect("reads bitcode");
    let body = |t: &str| {
        t.split_once("target datalayout")
            .map(|(_, rest)| rest.to_string())
    };
    assert_eq!(body(&third.to_text()), body(&text));
}

#[test]
fn objects_with_embedded_bitcode_are_read() {
    let object = compile(SUM, &["-O2", "-fembed-bitcode=all"]);
    let host = Host::parse(&object, "sum.o").expect("finds the bitcode");
    assert!(host.defines("sum"));
    let bare = compile(SUM, &["-O2"]);
    let error = Host::parse(&bare, "bare.o")
        .err()
        .expect("no bitcode inside");
    assert!(error.message.contains("no LLVM bitcode"), "{error}");
}

#[test]
fn hostile_input_is_an_error() {
    for bytes in [
        &b"BC\xc0\xde garbage"[..],
        b"define i32 @f( {",
        b"\x7fELF\x02\x01",
        b"\x00\x01\x02",
    ] {
        let error = Host::parse(bytes, "hostile").err().expect("refused");
        assert!(error.message.contains("hostile"), "{error}");
    }
}

#[test]
fn links_and_names_the_clash() {
    let mut host = Host::parse(
        &bitcode(
            "double g(double); double f(double x) { return g(x); }",
            &EARLY,
        ),
        "f",
    )
    .expect("reads");
    host.link(
        &bitcode("double g(double x) { return 2 * x; }", &EARLY),
        "g",
    )
    .expect("links");
    assert_eq!(host.closure(&["f"]), ["f", "g"]);
    let error = host
        .link(
            &bitcode("double g(double x) { return x; }", &EARLY),
            "again",
        )
        .expect_err("clash");
    assert!(error.message.contains("multiply defined"), "{error}");
}

#[test]
fn emits_objects_and_assembly() {
    let mut host = Host::parse(&bitcode(SUM, &EARLY), "sum.bc").expect("reads");
    let object = host.emit(Emit::Object, OptLevel::O2).expect("emits");
    assert!(object.starts_with(b"\x7fELF"));
    let assembly = host.emit(Emit::Assembly, OptLevel::O2).expect("emits");
    assert!(String::from_utf8(assembly).expect("text").contains("sum:"));
}

#[test]
fn knows_names_lines_and_closures() {
    for flags in [&["-O0", "-g"][..], &["-O3", "-g"], &EARLY] {
        let host = Host::parse(&bitcode(SUM, flags), "sum.bc").expect("reads");
        assert_eq!(host.argument_names("sum"), ["x", "n"], "{flags:?}");
        if flags.contains(&"-g") {
            assert_eq!(host.source_line("pick").expect("has debug info").line, 4);
        }
    }
    let host = Host::parse(&bitcode(SUM, &EARLY), "sum.bc").expect("reads");
    assert_eq!(
        host.closure(&["pick"]),
        ["pick", "sq"],
        "through the table's initialiser"
    );
    let plain = Host::parse(&bitcode(SUM, &["-O1"]), "sum.bc").expect("reads");
    assert_eq!(plain.argument_names("sum"), ["arg0", "arg1"]);
}

/// Returns a module in which `f` calls `stop` before its block ends, and uses `shown` on the path to it.
fn no_return_module(handler: &str, unwinds: &str) -> Host {
    let text = format!(
        "define void @stop(ptr %p) noreturn {unwinds} {{\n call void @deep()\n unreachable\n}}
        define void @deep() {{\n ret void\n}}
        define i1 @shown(ptr %p) {{\n ret i1 true\n}}
        declare i32 @personality(...)
        define void @f(i1 %c, ptr %p) personality ptr @personality {{
            br i1 %c, label %bad, label %good
        bad:
            store ptr @shown, ptr %p
            invoke void @stop(ptr %p) to label %never unwind label %pad
        never:
            unreachable
        good:
            ret void
        pad:
            %e = landingpad {{ ptr, i32 }} {handler}
            br label %on
        on:
            {}
        }}",
        match handler {
            "cleanup" => "resume { ptr, i32 } %e",
            _ => "ret void",
        }
    );
    Host::parse(text.as_bytes(), "stop.ll").expect("reads")
}

#[test]
fn closure_ends_at_no_return_calls() {
    assert_eq!(no_return_module("cleanup", "").closure(&["f"]), ["f"]);
    assert_eq!(
        no_return_module("catch ptr null", "").closure(&["f"]),
        ["f", "shown", "stop", "deep"],
        "the handler goes on"
    );
    assert_eq!(
        no_return_module("catch ptr null", "nounwind").closure(&["f"]),
        ["f"],
        "there is nothing to catch"
    );
    let roots = no_return_module("cleanup", "").closure(&["stop"]);
    assert_eq!(roots, ["stop", "deep"], "what is asked for is there");
}

#[test]
fn verifier_reports_broken_modules() {
    let good = Host::parse(b"define i32 @f() { ret i32 1 }", "t.ll").expect("reads");
    good.verify().expect("holds");
    let wrong = "define i32 @f(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %x = add i32 1, 2\n br label %b\nb:\n ret i32 %x\n}";
    let error = Host::parse(wrong.as_bytes(), "t.ll")
        .err()
        .map(|e| e.message);
    let error = error.or_else(|| {
        Host::parse(wrong.as_bytes(), "t.ll")
            .ok()
            .and_then(|h| h.verify().err())
            .map(|e| e.message)
    });
    assert!(
        error.expect("caught").contains("does not dominate"),
        "names the rule"
    );
}

/// The first iteration differs from the others and is not peeled, because peeling would double the
/// differentiated code. Small constant loops are still unrolled.
#[test]
fn loops_are_not_peeled_early() {
    const WRAP: &str =
        "void wrap(double *y, const double *x, int n) {
            for (int j = 0; j < n; j++) { int left = j > 0 ? j - 1 : n - 1; y[j] = x[left] * x[j]; } }
        double three(const double *x) { double p = 1; for (int k = 0; k < 3; k++) p *= x[k]; return p; }";
    let mut host = Host::parse(&bitcode(WRAP, &EARLY), "wrap.bc").expect("reads");
    host.run(Pipeline::EarlySerial).expect("early pipeline");
    let products = |host: &Host, name: &str| -> usize {
        let census = host.census(|f| f == name);
        let products = census.iter().filter(|(kind, _)| kind.contains("fmul"));
        products.map(|(_, count)| count).sum()
    };
    assert_eq!(products(&host, "wrap"), 1);
    assert!(products(&host, "three") >= 2);
}

/// The early pipeline sets attributes for its own passes. A failure, and functions with these attributes, leave
/// the module's attributes unchanged.
#[test]
fn temporary_attributes_are_undone() {
    const REGION: &str = "
        define double @f(double %x) { call void @__kmpc_barrier(ptr null, i32 0) ret double %x }
        define internal double @kept(double %x) alwaysinline { ret double %x }
        define double @g(double %x) { %y = call double @kept(double %x) ret double %y }
        declare void @__kmpc_barrier(ptr, i32)
        declare void @__kmpc_flush(ptr) noduplicate";
    let of = |triple: &str| {
        let text = format!("target triple = \"{triple}\"\n{REGION}");
        Host::parse(text.as_bytes(), "region.ll").expect("reads")
    };
    let attributes = |host: &Host, function: &str| {
        let text = host.to_text();
        let line = text
            .lines()
            .find(|line| line.contains(&format!("@{function}(")) && !line.contains("call"));
        let group = line
            .and_then(|line| line.rsplit_once(") #"))
            .map(|(_, group)| {
                let number: String = group.chars().take_while(char::is_ascii_digit).collect();
                let head = format!("attributes #{number} = ");
                let found = text.lines().find(|line| line.starts_with(&head));
                found.unwrap_or_default().to_string()
            });
        group.unwrap_or_default()
    };
    let mut failed = of("nonsense-none-none");
    assert!(failed.run(Pipeline::EarlyOpenMp).is_err());
    let mut passed = of("x86_64-unknown-linux-gnu");
    let held = passed.hold(&["kept".into()]);
    assert!(!attributes(&passed, "kept").contains("alwaysinline"));
    passed.run(Pipeline::EarlyOpenMp).expect("early pipeline");
    passed.release(held);
    let kept = attributes(&passed, "kept");
    assert!(
        kept.contains("alwaysinline") && !kept.contains("noinline"),
        "{kept}"
    );
    for host in [&failed, &passed] {
        let text = host.to_text();
        assert!(
            !attributes(host, "__kmpc_barrier").contains("noduplicate"),
            "{text}"
        );
        assert!(
            attributes(host, "__kmpc_flush").contains("noduplicate"),
            "{text}"
        );
    }
}

/// A zero array or struct in a table has a cell for each scalar.
#[test]
fn zero_aggregates_in_tables_keep_positions() {
    use gradus_llvm::InitCell::{Function, Number, Other};
    const TABLE: &str = "
        declare ptr @made(i64)
        %size = type { i64, [2 x i32] }
        @table = global { ptr, %size, {}, i64, double } { ptr @made, %size zeroinitializer, {} zeroinitializer, i64 3, double 0.0 }
        @none = global [2 x ptr] zeroinitializer
        @huge = global [1000000 x [1000000 x i8]] zeroinitializer";
    let host = Host::parse(TABLE.as_bytes(), "table.ll").expect("reads");
    let cells = |name: &str| host.initializer_cells(name).expect("it is defined");
    let made = Function("made".into());
    let zero = || Number(0);
    assert_eq!(
        cells("table"),
        [made, zero(), zero(), zero(), Number(3), Other]
    );
    assert_eq!(cells("none"), [zero(), zero()]);
    assert_eq!(cells("huge"), [Other]);
}
