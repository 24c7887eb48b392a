; A failed search leaves its index where a successful one leaves a number: `Result<[f64; 2], usize>` after inlining.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
declare void @abort() noreturn
define double @merged(ptr %x, ptr %keys, i64 %n) {
entry:
  %pair = alloca [16 x i8], align 8
  %end = add i64 %n, -1
  %x1 = getelementptr i8, ptr %x, i64 8
  %number = load i64, ptr %x1, align 8
  br label %search
search:
  %i = phi i64 [ 1, %entry ], [ %next, %step ]
  %is_last = icmp eq i64 %i, %end
  br i1 %is_last, label %join, label %step
step:
  %next = add nuw nsw i64 %i, 1
  %at = getelementptr inbounds double, ptr %keys, i64 %i
  %key = load double, ptr %at, align 8
  %is_found = fcmp olt double %key, 0.0
  br i1 %is_found, label %found, label %search
found:
  %is_inside = icmp ult i64 %i, 4
  br label %join
join:
  %is_error = phi i1 [ %is_inside, %found ], [ false, %search ]
  %word = phi i64 [ %i, %found ], [ %number, %search ]
  %is_failure = or i1 %is_error, false
  br i1 %is_failure, label %fail, label %go
fail:
  call void @abort()
  unreachable
go:
  %second = getelementptr i8, ptr %pair, i64 8
  store i64 %word, ptr %second, align 8
  %k = add i64 %n, -4
  %place = getelementptr double, ptr %pair, i64 %k
  %value = load double, ptr %place, align 8
  %square = fmul double %value, %value
  ret double %square
}
