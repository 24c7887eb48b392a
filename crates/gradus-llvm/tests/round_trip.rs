//! Import and export of C programs: equal results in the JIT, equal operations except branches and phis.
use crate::clang::bitcode;
use gradus_ir::verify;
use gradus_llvm::host::jit::{Arg, Jit};
use gradus_llvm::{Host, OptLevel, Pipeline};

/// A program and calls of it; the module as compiled by clang provides the expected results.
struct Case {
    text: &'static str,
    /// Function and integer arguments, in order: state of the program persists between calls.
    calls: &'static [(&'static str, &'static [i64])],
}

const CASES: &[Case] = &[
    Case {
        text: "int gcd(int a, int b) { while (b) { int t = a % b; a = b; b = t; } return a; }
               int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }",
        calls: &[("gcd", &[84, 36]), ("gcd", &[7, 0]), ("fact", &[6])],
    },
    Case {
        text: "int collatz(int n) { int c = 0; while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; c++; if (c > 500) return -1; } return c; }
               int nest(int n) { int s = 0; for (int i = 0; i < n; i++) for (int j = i; j < n; j++) { if (j % 3 == 0) continue; if (s > 1000) goto out; s += i * j; } out: return s; }",
        calls: &[("collatz", &[27]), ("nest", &[5]), ("nest", &[40]), ("nest", &[0])],
    },
    Case {
        text: "int sw(int x) { switch (x) { case 1: case 5: return 10; case 2: x += 7; case 3: x *= 2; break; case 9: return -1; default: x = 100; } return x; }
               static int day(int d) { switch (d) { case 0: case 6: return 1; case 1: case 2: case 3: case 4: case 5: return 0; } return -1; }
               int days(int n) { int s = 0; for (int i = 0; i < n; i++) s = 3 * s + day(i); return s; }",
        calls: &[("sw", &[1]), ("sw", &[5]), ("sw", &[2]), ("sw", &[3]), ("sw", &[9]), ("sw", &[77]), ("days", &[9])],
    },
    Case {
        text: "int duff(int n) { int c = 0, k = (n + 3) / 4; switch (n % 4) { case 0: do { c += 1; case 3: c += 10; case 2: c += 100; case 1: c += 1000; } while (--k > 0); } return c; }
               int early(int a, int b, int c) { int r = 0; if (a < 0) goto fail; r = 1; if (b < 0) goto fail; r = 2; if (c < 0) goto fail; return 100; fail: return -r - 1; }
               int twice(int x) { int i = 0; if (x & 1) goto b; a: i += 3; if (i > x) return i; b: i += 5; if (i < 100) goto a; return -i; }",
        calls: &[("duff", &[1]), ("duff", &[7]), ("duff", &[8]), ("early", &[-1, 0, 0]), ("early", &[0, -1, 0]), ("early", &[0, 0, -1]), ("early", &[0, 0, 0]), ("twice", &[20]), ("twice", &[1000]), ("twice", &[1001])],
    },
    Case {
        text: "struct p { int a; long b; char c[3]; }; static const struct p table[] = {{1, 2, \"ab\"}, {3, 4, \"cd\"}};
               static int twice(int x) { return 2 * x; } static int thrice(int x) { return 3 * x; }
               static int (*const ops[])(int) = {twice, thrice};
               int look(int i, int x) { struct p q = table[i]; return q.a + q.b + q.c[1] + ops[i](x); }
               static int count; int tick(int by) { static int total = 5; total += by; return total * 10 + ++count; }
               int buf(int n) { int v[n + 1]; for (int i = 0; i <= n; i++) v[i] = i * i; int s = 0; for (int i = n; i >= 0; i -= 2) s += v[i]; return s; }",
        calls: &[("look", &[0, 5]), ("look", &[1, 5]), ("tick", &[1]), ("tick", &[2]), ("buf", &[6])],
    },
    Case {
        text: "#include <string.h>
               #include <stdlib.h>
               int text(int n) { char *p = malloc(n + 1); if (!p) abort(); memset(p, 'a', n); p[n] = 0; int l = strlen(p) + p[n / 2]; free(p); return l; }
               void leave(int n) { if (n > 3) exit(0); text(n); exit(n ? 1 : 2); }
               int bits(int x) { unsigned u = x; u = (u << 3) | (u >> 29); u ^= 0x55; return (int)(u & 0xffff) - __builtin_popcount(x); }
               int flt(int n) { double s = 0; float f = 1; for (int i = 1; i <= n; i++) { s += 1.0 / i; f *= 1.5f; } return (int)(s * 1000 + f); }
               int atom(int n) { static _Atomic int c; for (int i = 0; i < n; i++) c += i; return c; }",
        calls: &[("text", &[9]), ("bits", &[77]), ("flt", &[5]), ("atom", &[4])],
    },
];

fn run(host: Host, case: &Case, what: &str) -> Vec<i32> {
    let mut names: Vec<&str> = case.calls.iter().map(|c| c.0).collect();
    names.dedup();
    let jit = Jit::new(host, &names).unwrap_or_else(|e| panic!("{what}: {e}"));
    let call = |(name, args): &(&str, &[i64])| {
        let mut args: Vec<Arg> = args.iter().map(|a| Arg::Int(*a)).collect();
        jit.call(name, &mut args).expect("runs").i32()
    };
    case.calls.iter().map(call).collect()
}

#[test]
fn programs_keep_their_results() {
    for case in CASES {
        for flags in [
            &["-O0"][..],
            &["-O1"],
            &["-O2"],
            &["-O3"],
            &["-O2", "-g"],
            &["-O0", "-g"],
        ] {
            let bytes = bitcode(case.text, flags);
            let expected = run(
                Host::parse(&bytes, "case.bc").expect("reads"),
                case,
                "original",
            );
            for early in [None, Some(Pipeline::EarlySerial)] {
                let mut host = Host::parse(&bytes, "case.bc").expect("reads");
                if let Some(p) = early {
                    host.run(p).expect("early pipeline");
                }
                let before = host.to_text();
                let operations = host.census(|_| true);
                let imported = host.import_all();
                assert_eq!(imported.refused, [], "{}", case.text);
                assert_eq!(verify(&imported.unit), [], "{}", case.text);
                host.export_all(&imported.unit).expect("exports");
                let what = format!("{flags:?} {early:?}\n{before}\n-->\n{}", host.to_text());
                host.verify().unwrap_or_else(|e| panic!("{e}\n{what}"));
                assert_eq!(
                    host.census(|_| true),
                    operations,
                    "the same operations: {what}"
                );
                host.run(Pipeline::Late(OptLevel::O2))
                    .expect("late pipeline");
                assert_eq!(run(host, case, &what), expected, "{what}");
            }
        }
    }
}
