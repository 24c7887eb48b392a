//! Rare LLVM constructs: every flag, ordering and unusual instruction survives import and export unchanged,
//! and constructs that cannot be restructured are refused with a reason.
use gradus_ir::{parse, print, verify};
use gradus_llvm::{Host, OptLevel, Pipeline, Refusal};

const ODD: &str = r#"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
%pair = type { i32, { float, [2 x i64] } }
@table = internal constant [2 x ptr] [ptr @callee, ptr getelementptr (i8, ptr @bytes, i64 2)]
@bytes = internal global [4 x i8] c"abc\00", align 1
@alias = alias i64 (i64), ptr @callee
declare i32 @personality(...)
declare void @may_throw(i64)
declare double @llvm.experimental.constrained.fadd.f64(double, double, metadata, metadata)
declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_end.p0(ptr)
declare void @llvm.assume(i1)
define internal i64 @callee(i64 %x) { ret i64 %x }

define i64 @flags(i64 %a, i64 %b, i32 %c, float %f, <4 x float> %v) {
  %1 = add nuw nsw i64 %a, %b
  %2 = udiv exact i64 %1, 3
  %3 = or disjoint i64 %2, 1
  %4 = zext nneg i32 %c to i64
  %5 = trunc nuw nsw i64 %4 to i8
  %6 = icmp samesign ult i64 %3, %4
  %7 = uitofp nneg i32 %c to float
  %8 = fadd nnan ninf nsz arcp contract afn reassoc float %7, %f
  %9 = fcmp fast olt float %8, %f
  %10 = select fast i1 %9, float %8, float %f
  %11 = fneg fast float %10
  %12 = shufflevector <4 x float> %v, <4 x float> poison, <4 x i32> <i32 3, i32 poison, i32 1, i32 0>
  %13 = insertelement <4 x float> %12, float %11, i64 2
  %14 = extractelement <4 x float> %13, i32 %c
  %15 = fptosi float %14 to i64
  %16 = insertvalue %pair poison, i64 %15, 1, 1, 0
  %17 = extractvalue %pair %16, 1, 1, 0
  %18 = freeze i64 %17
  %19 = sext i8 %5 to i64
  %20 = select i1 %6, i64 %18, i64 %19
  ret i64 %20
}

define i64 @memory(ptr %p, ptr addrspace(3) %q, i64 %n) {
  %slot = alloca i64, i64 %n, align 32
  %q2 = alloca ptr, align 8
  %1 = load volatile i32, ptr %p, align 1
  %2 = load atomic i64, ptr %p syncscope("singlethread") acquire, align 8
  store atomic volatile i64 %2, ptr %p release, align 8
  %3 = atomicrmw uinc_wrap ptr %p, i64 7 syncscope("singlethread") monotonic, align 16
  %4 = atomicrmw volatile fadd ptr %p, double 1.0 seq_cst, align 8
  %5 = cmpxchg weak volatile ptr %p, i64 %2, i64 %3 acq_rel monotonic, align 8
  fence syncscope("singlethread") seq_cst
  %6 = extractvalue { i64, i1 } %5, 0
  %7 = getelementptr inbounds nuw %pair, ptr %p, i64 %n, i32 1, i32 1, i64 1
  %8 = load i64, ptr %7, align 4, !range !0, !noundef !1
  %9 = addrspacecast ptr addrspace(3) %q to ptr
  %10 = getelementptr nusw i8, ptr %9, i64 %8
  store i64 %6, ptr %10, align 2, !nontemporal !2
  %11 = call i64 @alias(i64 range(i64 0, 10) %n) #1 [ "tag"(i64 %n, ptr %p) ]
  %12 = call i64 asm sideeffect "mov $1, $0", "=r,r,~{memory}"(i64 %11)
  %13 = ptrtoint ptr %10 to i64
  store ptr @table, ptr %q2
  %14 = xor i64 %13, %12
  ret i64 %14
}

define double @strict(double %a, ...) #2 {
  %list = alloca [24 x i8], align 16
  call void @llvm.va_start.p0(ptr %list)
  %b = va_arg ptr %list, double
  call void @llvm.va_end.p0(ptr %list)
  %c = call double @llvm.experimental.constrained.fadd.f64(double %a, double %b, metadata !"round.upward", metadata !"fpexcept.strict")
  ret double %c
}

define i64 @jumps(i64 %n, i1 %c) personality ptr @personality {
entry:
  switch i64 %n, label %other [ i64 1, label %one  i64 2, label %one  i64 3, label %three ], !prof !3
one:
  %r = musttail call i64 @jumps(i64 %n, i1 %c)
  ret i64 %r
three:
  invoke void @may_throw(i64 %n) [ "tag"(i64 %n) ] to label %other unwind label %pad
other:
  %x = phi i64 [ 0, %entry ], [ 3, %three ]
  invoke void @may_throw(i64 %x) to label %done unwind label %pad
pad:
  %where = phi i64 [ 1, %three ], [ 2, %other ]
  %e = landingpad { ptr, i32 } cleanup catch ptr null filter [1 x ptr] [ptr @bytes]
  %again = icmp eq i64 %where, 1
  br i1 %again, label %done, label %out
out:
  resume { ptr, i32 } %e
done:
  %y = phi i64 [ %x, %other ], [ %where, %pad ]
  br i1 %c, label %loop, label %end
loop:
  %i = phi i64 [ %y, %done ], [ %next, %loop ]
  %next = sub i64 %i, 1
  %stop = icmp sgt i64 %next, 100
  br i1 %stop, label %loop, label %end, !llvm.loop !4
end:
  %z = phi i64 [ %y, %done ], [ %next, %loop ]
  ret i64 %z
}

attributes #1 = { nounwind memory(argmem: read) "own"="text" }
attributes #2 = { strictfp }
!0 = !{i64 0, i64 100}
!1 = !{}
!2 = !{i32 1}
!3 = !{!"branch_weights", i32 10, i32 20, i32 30, i32 40}
!4 = distinct !{!4, !5}
!5 = !{!"llvm.loop.mustprogress"}
"#;

#[test]
fn rare_instructions_survive() {
    let mut host = Host::parse(ODD.as_bytes(), "odd.ll").expect("reads");
    host.verify().expect("the test's own module");
    let operations = host.census(|_| true);
    let imported = host.import_all();
    assert_eq!(imported.refused, []);
    assert_eq!(verify(&imported.unit), []);
    let text = print(&imported.unit);
    let again = parse(&text, "odd.gir").unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(print(&again), text, "the text form holds it all");
    host.export_all(&imported.unit).expect("exports");
    host.verify()
        .unwrap_or_else(|e| panic!("{e}\n{}", host.to_text()));
    let now = host.census(|_| true);
    let changed: Vec<_> = operations
        .keys()
        .chain(now.keys())
        .filter(|k| operations.get(*k) != now.get(*k))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
    let text = host.function_text("jumps").expect("is there");
    assert!(
        text.contains("!prof") && text.contains("!llvm.loop"),
        "{text}"
    );
    assert!(
        text.contains("i64 1, label") && text.contains("i64 2, label"),
        "one switch again: {text}"
    );
    host.run(Pipeline::Late(OptLevel::O2))
        .expect("late pipeline");
}

#[test]
fn initializer_addresses_are_read() {
    let mut host = Host::parse(ODD.as_bytes(), "odd.ll").expect("reads");
    let unit = host.import_all().unit;
    let (_, table) = unit
        .globals
        .iter()
        .find(|(_, g)| g.name == "table")
        .expect("met");
    let init = table.init.as_ref().expect("readable");
    let read: Vec<(u64, i64)> = init
        .relocations
        .iter()
        .map(|r| (r.offset_bytes, r.addend))
        .collect();
    assert_eq!(read, [(0, 0), (8, 2)]);
    let (_, bytes) = unit
        .globals
        .iter()
        .find(|(_, g)| g.name == "bytes")
        .expect("through the table");
    assert_eq!(bytes.init.as_ref().expect("readable").bytes, b"abc\0");
}

#[test]
fn unstructurable_code_is_refused() {
    let cases = [
        (
            "define void @f(ptr %p) { indirectbr ptr %p, [label %a]\na: ret void }",
            Refusal::IndirectBranch,
        ),
        (
            "define void @f() { callbr void asm \"\", \"!i\"() to label %a [label %a]\na: ret void }",
            Refusal::AsmGoto,
        ),
        (
            "@t = global ptr blockaddress(@f, %a)\ndefine void @f() { br label %a\na: ret void }",
            Refusal::BlockAddress,
        ),
        (
            "declare i32 @s(ptr) returns_twice\ndefine void @f() { call i32 @s(ptr null) returns_twice\n ret void }",
            Refusal::ReturnsTwice,
        ),
        (
            "define void @f() presplitcoroutine { ret void }",
            Refusal::Coroutine,
        ),
        ("define void @f() naked { unreachable }", Refusal::Naked),
        (
            "define void @f() { %s = alloca swifterror ptr\n ret void }",
            Refusal::SwiftError,
        ),
        (
            "declare void @g()\ndeclare i32 @__CxxFrameHandler3(...)\ndefine void @f() personality ptr @__CxxFrameHandler3 {\n invoke void @g() to label %a unwind label %b\na: ret void\nb: %p = cleanuppad within none []\n cleanupret from %p unwind to caller }",
            Refusal::Funclet,
        ),
    ];
    for (text, why) in cases {
        let mut host = Host::parse(text.as_bytes(), "case.ll").unwrap_or_else(|e| panic!("{e}"));
        let before = host.to_text();
        let imported = host.import_all();
        let found: Vec<Refusal> = imported.refused.iter().map(|(_, why)| *why).collect();
        assert_eq!(found, [why], "{text}");
        let refused = imported.unit.function("f").expect("is known");
        let diagnostic = imported.refusal(refused).expect("has a reason");
        assert!(diagnostic.to_string().contains("GRD0004"), "{diagnostic}");
        host.export_all(&imported.unit).expect("nothing to do");
        assert_eq!(host.to_text(), before, "it stays as it is");
    }
}

/// Several spellings of an address denote one address.
#[test]
fn nested_constant_addresses_survive() {
    let program = r#"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
%row = type { i64, i64 }
@rows = global [4 x %row] zeroinitializer
define i64 @sum() {
  %a = load i64, ptr getelementptr inbounds (%row, ptr getelementptr inbounds (i8, ptr @rows, i64 32), i64 0, i32 1)
  %b = load i64, ptr getelementptr (i8, ptr @rows, i64 40)
  %s = add i64 %a, %b
  ret i64 %s
}
define i64 @pick(i1 %c) {
  %p = select i1 %c, ptr getelementptr inbounds (i8, ptr getelementptr inbounds ([4 x %row], ptr @rows, i64 0, i64 1, i32 1), i64 8), ptr @rows
  %q = select i1 %c, ptr %p, ptr getelementptr inbounds ([4 x %row], ptr @rows, i64 0, i64 2)
  %n = load i64, ptr %q
  ret i64 %n
}
"#;
    let mut host = Host::parse(program.as_bytes(), "rows.ll").expect("reads");
    let before = host.census(|_| true);
    let imported = host.import_all();
    host.export_all(&imported.unit).expect("exports");
    assert_eq!(host.census(|_| true), before);
    // Another address is another operation.
    let moved = program.replace("@rows, i64 40)", "@rows, i64 48)");
    let moved = Host::parse(moved.as_bytes(), "moved.ll").expect("reads");
    assert_ne!(moved.census(|_| true), before);
}
