//! Functions of 20,000 regions, nested or in sequence: no stack overflow, and time nearly linear.
use gradus_ir::verify;
use gradus_llvm::Host;
use gradus_llvm::host::jit::{Arg, Jit};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// `n` checks that branch to one block, each with a different value.
fn early_exits(n: usize) -> String {
    let mut text = String::from("define i64 @f(i64 %x) {\n  br label %b0\n");
    for k in 0..n {
        let next = k + 1;
        write!(
            text,
            "b{k}:\n  %r{k} = mul i64 %x, {next}\n  %c{k} = icmp eq i64 %x, {k}\n"
        )
        .expect("writes");
        writeln!(text, "  br i1 %c{k}, label %fail, label %b{next}").expect("writes");
    }
    write!(text, "b{n}:\n  ret i64 -1\nfail:\n  %r = phi i64 ").expect("writes");
    let incoming: Vec<String> = (0..n).map(|k| format!("[ %r{k}, %b{k} ]")).collect();
    text + &incoming.join(", ") + "\n  ret i64 %r\n}\n"
}

/// `n` nested conditions, with a sum on the path out.
fn nested(n: usize) -> String {
    let mut text = String::from("define i64 @f(i64 %x) {\n  br label %b0\n");
    for k in 0..n {
        let next = k + 1;
        writeln!(
            text,
            "b{k}:\n  %c{k} = icmp sgt i64 %x, {k}\n  br i1 %c{k}, label %b{next}, label %j{k}"
        )
        .expect("writes");
    }
    writeln!(
        text,
        "b{n}:\n  %s{n} = add i64 %x, 1\n  br label %j{}",
        n - 1
    )
    .expect("writes");
    for k in (0..n).rev() {
        let from = if k + 1 == n {
            format!("b{n}")
        } else {
            format!("j{}", k + 1)
        };
        let value = if k + 1 == n {
            format!("%s{n}")
        } else {
            format!("%s{}", k + 1)
        };
        writeln!(text, "j{k}:\n  %p{k} = phi i64 [ {value}, %{from} ], [ 0, %b{k} ]\n  %s{k} = add i64 %p{k}, 1").expect("writes");
        let to = if k == 0 {
            "  ret i64 %s0\n}\n".to_string()
        } else {
            format!("  br label %j{}\n", k - 1)
        };
        text += &to;
    }
    text
}

fn round_trip(text: &str) -> (Host, Duration) {
    let mut host = Host::parse(text.as_bytes(), "deep.ll").expect("reads");
    let start = Instant::now();
    let imported = host.import_all();
    assert_eq!(imported.refused, []);
    assert_eq!(verify(&imported.unit), []);
    host.export_all(&imported.unit).expect("exports");
    let took = start.elapsed();
    drop(imported);
    host.verify().expect("LLVM's rules");
    (host, took)
}

#[test]
fn twenty_thousand_regions_round_trip() {
    for (make, expected) in [
        (early_exits as fn(usize) -> String, [(7, 56), (50_000, -1)]),
        (nested, [(3, 4), (50_000, 51_001)]),
    ] {
        let (host, _) = round_trip(&make(1_000));
        let jit = Jit::new(host, &["f"]).expect("compiles");
        for (x, result) in expected {
            assert_eq!(
                jit.call("f", &mut [Arg::Int(x)]).expect("runs").i64(),
                result
            );
        }
        // A busy machine may be slow in any attempt, but not in every attempt.
        let near_linear = (0..4).any(|_| {
            let (_, small) = round_trip(&make(5_000));
            let (_, large) = round_trip(&make(20_000));
            large < 10 * small + Duration::from_millis(300)
        });
        assert!(
            near_linear,
            "four times the size takes more than ten times as long"
        );
    }
}
