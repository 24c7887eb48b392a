//! C++ with exceptions, destructors and virtual calls is unchanged by import and export.
use gradus_ir::verify;
use gradus_llvm::{Emit, Host, OptLevel, Pipeline};
use std::process::Command;

const PROGRAM: &str = r#"
#include <cstdio>
struct Guard { int v; Guard(int v) : v(v) {} ~Guard() { std::printf("~%d ", v); } };
struct Problem { int what; };
static int g(int n) { Guard a(n); if (n % 3 == 0) throw Problem{n}; if (n % 5 == 0) throw n; return 2 * n; }
int f(int n) {
  int s = 0;
  for (int i = 0; i < n; i++) {
    Guard b(100 + i);
    try { s += g(i); if (s > 60) break; }
    catch (Problem &p) { s += p.what; }
    catch (int k) { s -= k; if (k == 10) { try { throw 1.5; } catch (...) { s++; } } }
  }
  return s;
}
struct Base { virtual int m(int) = 0; virtual ~Base() {} };
struct One : Base { int m(int x) override { return x + 1; } };
struct Two : Base { int m(int x) override { if (x > 3) throw x; return 2 * x; } };
int main() {
  std::printf("%d\n", f(20));
  Base *both[] = {new One, new Two};
  int t = 0;
  for (int i = 0; i < 6; i++) for (Base *b : both) try { t += b->m(i); } catch (int e) { t += 1000 * e; }
  std::printf("%d\n", t);
  for (Base *b : both) delete b;
}
"#;

/// Returns the output of the linked program.
fn output(object: &[u8], name: &str) -> String {
    let folder =
        std::env::temp_dir().join(format!("gradus-llvm-exceptions-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let (object_path, program) = (folder.join(format!("{name}.o")), folder.join(name));
    std::fs::write(&object_path, object).expect("writes");
    let linked = Command::new("clang++-22")
        .arg(&object_path)
        .arg("-o")
        .arg(&program)
        .status()
        .expect("links");
    assert!(linked.success());
    let out = Command::new(&program).output().expect("runs");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    String::from_utf8(out.stdout).expect("text")
}

#[test]
fn exceptions_survive_round_trip() {
    let expected = output(&crate::clang::cpp(PROGRAM, &["-O1"]), "original");
    assert!(expected.lines().count() == 2, "{expected}");
    for flags in [
        &["-emit-llvm", "-O0"][..],
        &["-emit-llvm", "-O2", "-g"],
        &["-emit-llvm", "-O3"],
    ] {
        let mut host = Host::parse(&crate::clang::cpp(PROGRAM, flags), "p.bc").expect("reads");
        host.run(Pipeline::EarlySerial).expect("early pipeline");
        let before = host.census(|_| true);
        let imported = host.import_all();
        assert_eq!(imported.refused, []);
        assert_eq!(verify(&imported.unit), []);
        host.export_all(&imported.unit).expect("exports");
        host.verify().expect("LLVM's rules");
        assert_eq!(host.census(|_| true), before, "the same operations");
        host.run(Pipeline::Late(OptLevel::O2))
            .expect("late pipeline");
        let object = host.emit(Emit::Object, OptLevel::O2).expect("emits");
        assert_eq!(output(&object, "round"), expected, "{flags:?}");
    }
}
