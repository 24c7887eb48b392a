//! Tests of the access trace: sites, offsets, operands and indirect calls.

use super::{HEAD, unit};
use crate::{AllocationSite, Machine, Options, Value};
use gradus_ir::OpPrinter;

/// Returns the records of a run of `@f` with a block of two numbers, each as op, pointer, site and offset.
fn records(text: &str) -> Vec<String> {
    let text = format!("{HEAD}{text}");
    let unit = unit(&text);
    let options = Options {
        trace_accesses: true,
        ..Options::default()
    };
    let mut machine = Machine::with_options(&unit, options);
    let block = machine.alloc_f64(&[1.0, 2.0]).expect("memory is left");
    let result = machine.call("f", &[Value::ptr(block)]);
    assert!(result.is_ok(), "{result:?}");
    let trace = machine.access_trace().expect("the trace is on");
    let line = |func: gradus_ir::FuncId, op| {
        let function = &unit.functions[func];
        let body = function.body.as_ref().expect("the function ran");
        let printer = OpPrinter::new(&unit, body, &function.param_names);
        let line = printer.line(op).trim().to_string();
        line.split(" -> ").next().unwrap_or_default().to_string()
    };
    let mut lines = Vec::new();
    for access in trace.accesses() {
        let site = match access.site {
            AllocationSite::Alloca(func, op) | AllocationSite::Heap(func, op) => line(func, op),
            AllocationSite::ByValue(_, index) => format!("byval {index}"),
            AllocationSite::Global(global) => unit.globals[global].name.clone(),
            AllocationSite::Function(func) => unit.functions[func].name.clone(),
            AllocationSite::External => "external".into(),
            AllocationSite::User => "user".into(),
        };
        let function = &unit.functions[access.func];
        let body = function.body.as_ref().expect("the function ran");
        let pointer = OpPrinter::new(&unit, body, &function.param_names).value(access.pointer);
        lines.push(format!("{pointer} is {site} + {}", access.offset_bytes));
    }
    for &(func, op, callee) in trace.indirect_calls() {
        let name = &unit.functions[callee].name;
        lines.push(format!("{} calls {name}", line(func, op)));
    }
    lines
}

#[test]
fn accesses_name_object_and_offset() {
    let found = records(
        "func @f(%x: ptr) -> void {
           %p = alloca [4 x f64], 1
           %q = addr f64, %p, 2
           store 1.0, %q
           %h = call @malloc(16)
           call @llvm.memcpy.p0.p0.i64(%h, %x, 16, false)
           call @llvm.memcpy.p0.p0.i64(%q, %x, 0, false)
           %t = addr f64, @table, 1
           %a = load %t -> f64
           call @free(%h)
           return
         }",
    );
    let wanted = [
        "%q is %p = alloca [4 x f64], 1 + 16",
        "%x is user + 0",
        "%h is %h = call @malloc(16) + 0",
        "%t is table + 8",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for line in wanted {
        assert!(found.iter().any(|own| own == line), "{line}: {found:#?}");
    }
}

#[test]
fn equal_accesses_are_recorded_once() {
    let found = records(
        "func @g(%y: ptr) -> void { %a = load %y -> f64 return }
         func @f(%x: ptr) -> void {
           for %i < 5 { call @g(%x) yield }
           %s = alloca ptr, 1
           store @g, %s
           %c = load %s -> ptr
           %z = addr f64, %x, 1
           call %c(%z) : fn(ptr) -> void
           return
         }",
    );
    let of_user: Vec<&String> = found.iter().filter(|line| line.contains("user")).collect();
    assert_eq!(of_user, ["%y is user + 0", "%y is user + 8"]);
    assert!(
        found.iter().any(|line| line.ends_with("calls g")),
        "{found:#?}"
    );
}

#[test]
fn trace_is_off_by_default() {
    let unit = unit(HEAD);
    assert!(Machine::new(&unit).access_trace().is_none());
}
