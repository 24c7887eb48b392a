//! Rewriting of `posix_memalign` to `declare_aligned_alloc`.

use gradus_edit::memalign_to_aligned_alloc;
use gradus_ir::{Unit, parse, print, verify_function};

fn memalign_program(alignment: &str) -> String {
    format!(
        "declare @posix_memalign(ptr, i64, i64) -> i32
func @f(%n: i64) -> i32 {{
  %slot = alloca ptr, 1
  %code = call @posix_memalign(%slot, {alignment}, %n)
  return %code
}}
"
    )
}

fn rewrite_count(unit: &mut Unit) -> usize {
    let func = unit.function("f").expect("is there");
    let mut body = unit.functions[func].body.take().expect("a body");
    let count = memalign_to_aligned_alloc(unit, &mut body);
    unit.functions[func].body = Some(body);
    let findings = verify_function(unit, func);
    assert!(findings.is_empty(), "{findings:?}");
    count
}

#[test]
fn constant_alignments_are_rewritten() {
    let mut unit = parse(&memalign_program("64"), "aligned.gir").expect("parses");
    assert_eq!(rewrite_count(&mut unit), 1);
    let text = print(&unit);
    assert!(text.contains("call @aligned_alloc(64, %n)"), "{text}");
    assert!(!text.contains("call @posix_memalign"), "{text}");
    assert!(text.contains("i32 12, i32 0"), "{text}");
    assert_eq!(rewrite_count(&mut unit), 0);
}

/// POSIX rejects alignments smaller than a pointer or not a power of two; `declare_aligned_alloc` may accept them.
#[test]
fn invalid_alignments_are_unchanged() {
    for alignment in ["4", "24", "0", "%n"] {
        let mut unit = parse(&memalign_program(alignment), "aligned.gir").expect("parses");
        assert_eq!(rewrite_count(&mut unit), 0, "{alignment}");
    }
}

#[test]
fn other_aligned_alloc_is_not_called() {
    let own = format!(
        "{}declare @aligned_alloc(ptr) -> i32\n",
        memalign_program("64")
    );
    let mut unit = parse(&own, "aligned.gir").expect("parses");
    assert_eq!(rewrite_count(&mut unit), 0);
}
