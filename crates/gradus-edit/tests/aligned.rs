//! Rewriting of `posix_memalign` to `aligned_alloc`.

use gradus_edit::return_aligned;
use gradus_ir::{Unit, parse, print, verify_function};

fn asking(alignment: &str) -> String {
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

fn rewritten(unit: &mut Unit) -> usize {
    let func = unit.function("f").expect("is there");
    let mut body = unit.functions[func].body.take().expect("a body");
    let count = return_aligned(unit, &mut body);
    unit.functions[func].body = Some(body);
    let findings = verify_function(unit, func);
    assert!(findings.is_empty(), "{findings:?}");
    count
}

#[test]
fn blocks_of_a_known_alignment_are_returned() {
    let mut unit = parse(&asking("64"), "aligned.gir").expect("parses");
    assert_eq!(rewritten(&mut unit), 1);
    let text = print(&unit);
    assert!(text.contains("call @aligned_alloc(64, %n)"), "{text}");
    assert!(!text.contains("call @posix_memalign"), "{text}");
    assert!(text.contains("i32 12, i32 0"), "{text}");
    assert_eq!(rewritten(&mut unit), 0);
}

/// POSIX rejects alignments smaller than a pointer or not a power of two; `aligned_alloc` may accept them.
#[test]
fn alignments_that_may_be_refused_stay() {
    for alignment in ["4", "24", "0", "%n"] {
        let mut unit = parse(&asking(alignment), "aligned.gir").expect("parses");
        assert_eq!(rewritten(&mut unit), 0, "{alignment}");
    }
}

#[test]
fn an_own_function_of_that_name_is_none_of_the_librarys() {
    let own = format!("{}declare @aligned_alloc(ptr) -> i32\n", asking("64"));
    let mut unit = parse(&own, "aligned.gir").expect("parses");
    assert_eq!(rewritten(&mut unit), 0);
}
