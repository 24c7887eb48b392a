//! Tests of the inclusion-based analysis on programs in the text form of the IR.

use crate::points_to::alias_sets::{AliasSets, CellRef, MemoryOrigin};
use crate::points_to::inclusion::{solve, solve_once};
use crate::{CallGraph, Callee};
use gradus_ir::{FuncId, Op, OpKind, Unit, Value};

/// The analysis of a program with root `@f`.
struct Study {
    unit: Unit,
    memory: AliasSets,
}

impl Study {
    fn of(text: &str) -> Study {
        Study::with_tags(text, false)
    }
    fn with_tags(text: &str, uses_tags: bool) -> Study {
        let unit: Unit = gradus_ir::parse(text, "f.gir").expect("the text is well formed");
        let root = unit.function("f").expect("the function is defined");
        let memory = solve_once(&unit, &CallGraph::of(&unit, &[root]), u32::MAX, uses_tags);
        let memory = memory.expect("no limit");
        Study { unit, memory }
    }
    fn func(&self, name: &str) -> FuncId {
        self.unit.function(name).expect("the function is defined")
    }
    /// Returns the ops of a function, in program order.
    fn ops(&self, name: &str) -> Vec<Op> {
        let body = self.unit.functions[self.func(name)].body.as_deref();
        let body = body.expect("the function has a body");
        body.walk(body.root()).collect()
    }
    /// Returns the first result of op number `index` of a function.
    fn value(&self, name: &str, index: usize) -> Value {
        let body = self.unit.functions[self.func(name)].body.as_deref();
        body.expect("the function has a body")
            .result(self.ops(name)[index])
    }
    fn param(&self, name: &str, index: usize) -> Value {
        let body = self.unit.functions[self.func(name)].body.as_deref();
        body.expect("the function has a body").params()[index]
    }
    /// Describes the targets of a value: origin and normalised offset.
    fn targets(&self, name: &str, value: Value) -> Vec<String> {
        let targets = self.memory.targets(self.func(name), value);
        self.describe(targets)
    }
    fn describe(&self, targets: &[CellRef]) -> Vec<String> {
        let mut list: Vec<String> = targets.iter().map(|at| self.place(at)).collect();
        list.sort();
        list.dedup();
        list
    }
    fn place(&self, at: &CellRef) -> String {
        let set = self.memory.get(at.class);
        let name = match set.origins.first() {
            None => "behind".to_string(),
            Some(MemoryOrigin::Argument(_, index)) => format!("arg{index}"),
            Some(MemoryOrigin::Alloca(func, op)) => self.site("alloca", *func, *op),
            Some(MemoryOrigin::Heap(func, op)) => self.site("heap", *func, *op),
            Some(MemoryOrigin::Global(global)) => self.unit.globals[*global].name.clone(),
            Some(MemoryOrigin::Function(func)) => self.unit.functions[*func].name.clone(),
            Some(MemoryOrigin::External(..)) => "returned".to_string(),
            Some(MemoryOrigin::Unknown) => "external".to_string(),
        };
        format!("{name}+{}", set.normalize_offset(at.offset_bytes))
    }
    /// Names an op by its position in its function.
    fn site(&self, kind: &str, func: FuncId, op: Op) -> String {
        let name = &self.unit.functions[func].name;
        let ops = self.ops(name);
        let index = ops.iter().position(|own| *own == op);
        format!("{kind}.{name}.{}", index.expect("an op of the function"))
    }
    /// Returns the callees of the first indirect call of a function, and whether unknown code is among them.
    fn callees(&self, name: &str) -> (Vec<String>, bool) {
        let (func, ops) = (self.func(name), self.ops(name));
        let body = self.unit.functions[func].body.as_deref();
        let body = body.expect("the function has a body");
        let closure = CallGraph::of(&self.unit, &[self.func("f")]);
        let indirect = |op: &Op| {
            let callee = closure.callee(&self.unit, body, *op);
            matches!(callee, Some(Callee::Indirect(_)))
        };
        let call = ops.into_iter().find(indirect).expect("an indirect call");
        let names = self.memory.callees(func, call).iter();
        let names = names.map(|func| self.unit.functions[*func].name.clone());
        (names.collect(), self.memory.may_call_unknown(func, call))
    }
}

#[test]
fn members_through_one_parameter_stay_separate() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @put(%to: ptr, %what: ptr) {\nstore %what, %to\nreturn\n}\n\
         func @get(%from: ptr) -> ptr {\n%p = load %from -> ptr\nreturn %p\n}\n\
         func @f(%x: ptr, %y: ptr) {\n\
         %r = call @malloc(32)\n%a = addr i8, %r, 8\n%b = addr i8, %r, 16\n\
         call @put(%a, %x)\ncall @put(%b, %y)\n\
         %p = load %a -> ptr\n%q = call @get(%b)\n%n = load %r -> ptr\nreturn\n}\n",
    );
    assert_eq!(study.targets("f", study.value("f", 1)), ["heap.f.0+8"]);
    assert_eq!(study.targets("f", study.value("f", 5)), ["arg0+0"]);
    assert_eq!(study.targets("f", study.value("f", 6)), ["arg1+0"]);
    assert!(study.targets("f", study.value("f", 7)).is_empty());
    assert_eq!(
        study.targets("put", study.param("put", 0)),
        ["heap.f.0+16", "heap.f.0+8"]
    );
}

#[test]
fn index_in_array_member_stays_in_the_member() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @f(%x: ptr, %y: ptr, %n: i64) {\n\
         %r = call @malloc(48)\n\
         store %y, %r\n\
         %at = addr {ptr, [4 x ptr], i64}, %r, 0, i32 1, %n\nstore %x, %at\n\
         %before = addr i8, %at, -8\n%p = load %before -> ptr\n\
         %head = load %r -> ptr\n\
         %tail = addr i8, %r, 40\n%q = load %tail -> ptr\nreturn\n}\n",
    );
    assert_eq!(study.targets("f", study.value("f", 2)), ["heap.f.0+8"]);
    // The element before the first is the member before the array.
    let before = study.targets("f", study.value("f", 5));
    assert_eq!(before, ["arg0+0", "arg1+0"]);
    assert_eq!(study.targets("f", study.value("f", 6)), ["arg1+0"]);
    assert!(study.targets("f", study.value("f", 8)).is_empty());
}

#[test]
fn index_without_known_array_reaches_the_whole_object() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @f(%x: ptr, %n: i64) {\n\
         %r = call @malloc(48)\n%second = addr i8, %r, 8\n\
         %at = addr ptr, %second, %n\nstore %x, %at\n\
         %head = load %r -> ptr\nreturn\n}\n",
    );
    assert_eq!(study.targets("f", study.value("f", 4)), ["arg0+0"]);
}

#[test]
fn copies_have_a_direction() {
    let study = Study::of(
        "declare @memcpy(ptr, ptr, i64) -> ptr\n\
         global @blank: {i64, ptr} internal = zero 16\n\
         func @f(%x: ptr) {\n\
         %a = alloca [16 x i8], 1\n\
         %c = call @memcpy(%a, @blank, 16)\n\
         %at = addr i8, %a, 8\nstore %x, %at\n\
         %other = alloca [16 x i8], 1\n%d = call @memcpy(%other, %a, 16)\n\
         %there = addr i8, %other, 8\n%p = load %there -> ptr\n\
         %same = addr i8, @blank, 8\n%q = load %same -> ptr\nreturn\n}\n",
    );
    assert_eq!(study.targets("f", study.value("f", 7)), ["arg0+0"]);
    assert!(study.targets("f", study.value("f", 9)).is_empty());
}

#[test]
fn list_of_the_caller_has_finitely_many_objects() {
    let study = Study::of(
        "func @f(%list: ptr, %n: i64) -> ptr {\n\
         %end = for %i < %n iter(%at = %list) {\n\
         %link = addr i8, %at, 8\n%next = load %link -> ptr\nyield %next\n}\n\
         return %end\n}\n",
    );
    let end = study.value("f", 0);
    assert_eq!(study.targets("f", end), ["arg0+0", "behind+0"]);
}

#[test]
fn bits_of_addresses_are_no_addresses() {
    let study = Study::of(
        "func @f(%x: ptr, %n: i64) -> i64 {\n\
         %a = ptrtoint %x -> i64\n%low = and %a, 7\n%high = lshr %a, 3\n%next = add %a, 24\n\
         %p = inttoptr %next -> ptr\n%q = inttoptr 64 -> ptr\nreturn %low\n}\n",
    );
    assert!(study.targets("f", study.value("f", 1)).is_empty());
    assert!(study.targets("f", study.value("f", 2)).is_empty());
    assert_eq!(study.targets("f", study.value("f", 4)), ["arg0+24"]);
    assert_eq!(study.targets("f", study.value("f", 5)), ["returned+0"]);
}

/// A program that takes an address apart: the ops of `@f` that end with the pointer.
fn assembled(ops: &str) -> Study {
    Study::of(&format!(
        "declare @malloc(i64) -> ptr\n\
         func @f(%n: i64) {{\n\
         %x = call @malloc(16)\n%y = call @malloc(16)\n%a = ptrtoint %x -> i64\n{ops}return\n}}\n"
    ))
}

#[test]
fn pointers_assembled_from_bits_belong_to_unknown_code() {
    let programs = [
        "%up = shl %a, 16\n%b = ashr %up, 16\n%p = inttoptr %b -> ptr\n",
        "%m = alloca i64, 1\n%up = shl %a, 16\n%tag = or %up, 3\nstore %tag, %m\n%l = load %m -> i64\n\
         %b = ashr %l, 16\n%p = inttoptr %b -> ptr\n",
        "%up = shl %a, 16\n%tag = or %up, 3\n%b = ashr %tag, 16\n%p = inttoptr %b -> ptr\n",
        "%up = mul %a, 16\n%b = udiv %up, 16\n%p = inttoptr %b -> ptr\n",
        "%lo = trunc %a -> i32\n%hi = lshr %a, 32\n%m = alloca i32, 2\n%m1 = addr i8, %m, 4\n\
         %h = trunc %hi -> i32\nstore %lo, %m\nstore %h, %m1\n%p = load %m -> ptr\n",
        "%d = bitcast %a -> f64\n%m = alloca f64, 1\nstore %d, %m\n%e = load %m -> f64\n\
         %b = bitcast %e -> i64\n%p = inttoptr %b -> ptr\n",
    ];
    for program in programs {
        let study = assembled(program);
        let body = study.unit.functions[study.func("f")].body.as_deref();
        let pointer = study.ops("f").into_iter().rev().nth(1);
        let pointer = body
            .expect("the function has a body")
            .result(pointer.expect("an op"));
        assert_eq!(study.targets("f", pointer), ["external+0"], "{program}");
        let escaped = |index: usize| {
            let target = study
                .memory
                .targets(study.func("f"), study.value("f", index))[0];
            study.memory.get(target.class).escaped
        };
        assert!(escaped(0) && !escaped(1), "{program}");
    }
}

#[test]
fn bits_of_addresses_do_not_disturb_other_pointers() {
    let study = assembled(
        "%hash = lshr %a, 4\n%m = alloca [2 x i64], 1\nstore %hash, %m\n\
         %m1 = addr i8, %m, 8\nstore %y, %m1\n%p = load %m1 -> ptr\n",
    );
    assert_eq!(study.targets("f", study.value("f", 8)), ["heap.f.1+0"]);
}

#[test]
fn unknown_code_is_a_flag() {
    let study = Study::of(
        "declare @unknown(ptr)\ndeclare @malloc(i64) -> ptr\n\
         func @f(%x: ptr) {\n\
         %a = call @malloc(16)\n%b = call @malloc(16)\n%c = call @malloc(16)\n\
         store %b, %a\ncall @unknown(%a)\n\
         %p = load %a -> ptr\n%q = load %c -> ptr\nreturn\n}\n",
    );
    assert_eq!(
        study.targets("f", study.value("f", 5)),
        ["external+0", "heap.f.1+0"]
    );
    assert!(study.targets("f", study.value("f", 6)).is_empty());
    let escaped = |index: usize| {
        let target = study
            .memory
            .targets(study.func("f"), study.value("f", index))[0];
        study.memory.escaped(target.class)
    };
    assert_eq!([0, 1, 2].map(escaped), [true, true, false]);
}

#[test]
fn allocation_wrapper_has_an_object_per_call() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @inner(%n: i64) -> ptr {\n%p = call @malloc(%n)\nreturn %p\n}\n\
         func @grab(%n: i64) -> ptr {\n%p = call @inner(%n)\nreturn %p\n}\n\
         func @f(%x: ptr) {\n%a = call @grab(8)\n%b = call @grab(8)\nstore %x, %a\n\
         %p = load %a -> ptr\n%q = load %b -> ptr\nreturn\n}\n",
    );
    assert_eq!(study.targets("f", study.value("f", 3)), ["arg0+0"]);
    assert!(study.targets("f", study.value("f", 4)).is_empty());
}

#[test]
fn callees_come_from_the_called_cell() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @one(%x: ptr) {\nreturn\n}\nfunc @two(%x: ptr) {\nreturn\n}\n\
         func @f(%x: ptr) {\n%t = call @malloc(16)\n%at = addr i8, %t, 8\n\
         store @one, %t\nstore @two, %at\n%g = load %at -> ptr\n\
         call %g(%x) : fn(ptr) -> void\nreturn\n}\n",
    );
    assert_eq!(study.callees("f"), (vec!["two".to_string()], false));
    assert!(study.targets("one", study.param("one", 0)).is_empty());
    assert_eq!(study.targets("two", study.param("two", 0)), ["arg0+0"]);
}

#[test]
fn callee_from_the_caller_is_unknown() {
    let study = Study::of(
        "func @one(%x: ptr) {\nreturn\n}\n\
         global @keep: ptr = zero 8 relocations(0: @one)\n\
         func @f(%x: ptr, %to: ptr) {\ncall %to(%x) : fn(ptr) -> void\n\
         %g = load @keep -> ptr\nreturn\n}\n",
    );
    assert_eq!(study.callees("f"), (vec!["one".to_string()], true));
    let x = study.memory.targets(study.func("f"), study.param("f", 0))[0];
    assert!(study.memory.escaped(x.class));
}

#[test]
fn moved_block_keeps_contents_and_differences() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\ndeclare @realloc(ptr, i64) -> ptr\n\
         func @f(%x: ptr, %n: i64) {\n%a = call @malloc(16)\n%at = addr i8, %a, 8\n\
         store %x, %at\n%b = call @realloc(%a, 32)\n%there = addr i8, %b, 8\n\
         %p = load %there -> ptr\n\
         %u = ptrtoint %at -> i64\n%v = ptrtoint %a -> i64\n%d = sub %u, %v\n\
         %end = addr i8, %x, %d\nreturn\n}\n",
    );
    assert_eq!(study.targets("f", study.value("f", 5)), ["arg0+0"]);
    assert_eq!(
        study.targets("f", study.value("f", 9)),
        ["arg0+0", "arg0+8"]
    );
}

#[test]
fn pointer_before_an_array_reaches_both_neighbours() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @f(%x: ptr, %y: ptr, %n: i64) {\n\
         %r = call @malloc(64)\n\
         %a = addr {[4 x ptr], [4 x ptr]}, %r, 0, i32 0, %n\nstore %y, %a\n\
         %last = addr i8, %r, 24\n\
         %b = addr ptr, %last, %n\nstore %x, %b\n\
         %p = load %r -> ptr\nreturn\n}\n",
    );
    let both = study.value("f", 6);
    assert_eq!(study.targets("f", both), ["arg0+0", "arg1+0"]);
    assert!(matches!(
        study.unit.functions[study.func("f")].body.as_deref(),
        Some(body) if matches!(body.kind(study.ops("f")[6]), OpKind::Load(_))
    ));
}

/// The array member lies in the second structure of an array, and other code folds the array.
#[test]
fn element_of_member_in_a_later_structure_moves_in_the_member() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @f(%x: ptr, %n: i64) {\n\
         %r = call @malloc(80)\n%any = addr {ptr, [4 x ptr]}, %r, %n\n\
         %second = addr {ptr, [4 x ptr]}, %r, 1\n\
         %last = addr {ptr, [4 x ptr]}, %second, 0, i32 1, 3\n\
         %at = addr ptr, %last, %n\n%next = addr ptr, %at, 1\nstore %x, %next\nreturn\n}\n",
    );
    // Another element, or the start of the structure behind.
    let next = study.targets("f", study.value("f", 5));
    assert_eq!(next, ["heap.f.0+0", "heap.f.0+8"]);
}

/// `(second - 1)[2 * n + 1]`, in a structure with two adjacent tables that TBAA alone names.
#[test]
fn pointer_before_a_table_moves_by_several_elements() {
    let study = Study::of(
        "tbaa 0 = \"root\" ()\ntbaa 1 = \"char\" (0: 0)\ntbaa 2 = \"any pointer\" (0: 1)\n\
         tbaa 3 = \"s\" (0: 2, 8: 1, 40: 1, 72: 2)\n\
         declare @malloc(i64) -> ptr\n\
         func @f(%x: ptr, %y: ptr, %n: i64) {\n\
         %r = call @malloc(80)\n%tail = addr i8, %r, 72\nstore %x, %tail !tbaa(3, 2, 72)\n\
         %before = addr i8, %r, 32\n%twice = shl nsw %n, 1\n%index = add nsw %twice, 1\n\
         %at = addr ptr, %before, %index\nstore %y, %at\n\
         %third = addr i8, %r, 56\n%p = load %third -> ptr\nreturn\n}\n",
    );
    let third = study.targets("f", study.value("f", 9));
    assert!(third.contains(&"arg1+0".to_string()), "{third:?}");
}

/// A loop over bytes copies whole addresses.
#[test]
fn single_bytes_carry_addresses() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @f(%x: ptr) {\n\
         %a = call @malloc(16)\n%b = call @malloc(16)\nstore %x, %a\n\
         for %i < 16 {\n%from = addr i8, %a, %i\n%byte = load %from -> i8\n\
         %to = addr i8, %b, %i\nstore %byte, %to\nyield\n}\n\
         %p = load %b -> ptr\nreturn\n}\n",
    );
    assert_eq!(study.targets("f", study.value("f", 9)), ["arg0+0"]);
}

#[test]
fn large_value_reaches_every_pointer() {
    let study = Study::of(
        "declare @malloc(i64) -> ptr\n\
         func @f(%x: ptr) {\n%a = call @malloc(800)\n%b = call @malloc(800)\n\
         %last = addr i8, %a, 792\nstore %x, %last\n\
         %all = load %a -> [100 x ptr]\nstore %all, %b\n\
         %there = addr i8, %b, 792\n%p = load %there -> ptr\nreturn\n}\n",
    );
    assert_eq!(study.targets("f", study.value("f", 7)), ["arg0+0"]);
}

#[test]
fn address_without_constraint_has_targets() {
    let study = Study::of(
        "declare @memset(ptr, i32, i64) -> ptr\nglobal @state: {f64, ptr} internal = zero 16\n\
         func @f() {\n%a = call @memset(@state, i32 0, 16)\nreturn\n}\n",
    );
    let body = study.unit.functions[study.func("f")].body.as_deref();
    let body = body.expect("the function has a body");
    let state = body.operand(study.ops("f")[0], 1);
    assert_eq!(study.targets("f", state), ["state+0"]);
}

#[test]
fn too_many_nodes_fall_back_to_unification() {
    let text = "func @f(%x: ptr) -> ptr {\n%p = load %x -> ptr\nreturn %p\n}\n";
    let unit: Unit = gradus_ir::parse(text, "f.gir").expect("the text is well formed");
    let closure = CallGraph::of(&unit, &[unit.function("f").expect("defined")]);
    assert!(solve(&unit, &closure, 1).is_none());
    assert!(solve(&unit, &closure, u32::MAX).is_some());
}

#[test]
fn numbers_that_other_code_sets_are_no_pointers() {
    let study = Study::of(
        "global @counts: {i32, f64} = zero 16\nglobal @list: {i64, ptr} = zero 16\n\
         func @f(%x: ptr) {\n\
         %n = load @counts -> i64\n%at = addr i8, @list, 8\n%p = load %at -> ptr\nreturn\n}\n",
    );
    assert!(study.targets("f", study.value("f", 0)).is_empty());
    assert_eq!(study.targets("f", study.value("f", 2)), ["behind+0"]);
}

#[test]
fn exclusive_or_of_addresses_is_no_address() {
    let study = assembled(
        "%b = ptrtoint %y -> i64\n%both = xor %a, %b\n%c = xor %both, %b\n%p = inttoptr %c -> ptr\n",
    );
    assert!(study.targets("f", study.value("f", 4)).is_empty());
    assert_eq!(study.targets("f", study.value("f", 6)), ["external+0"]);
}

#[test]
fn products_of_addresses_are_hashes() {
    let study = assembled(
        "%b = ptrtoint %y -> i64\n%s = mul %a, 3344921057\n%t = mul %b, 3344921057\n\
         %hash = xor %s, %t\n%m = alloca i64, 1\nstore %hash, %m\n%p = load %m -> ptr\n",
    );
    assert!(study.targets("f", study.value("f", 9)).is_empty());
    let target = study.memory.targets(study.func("f"), study.value("f", 0))[0];
    assert!(!study.memory.escaped(target.class));
}

/// A loop in which 100 pointers change places, one of them through an integer.
fn rotation(first: &str) -> Study {
    let last = 99;
    let carried: Vec<String> = (1..last).map(|k| format!("%p{k} = %y")).collect();
    let moved: Vec<String> = (1..last).map(|k| format!("%p{k}")).collect();
    let results: Vec<String> = (0..=last).map(|k| format!("%e{k}")).collect();
    Study::of(&format!(
        "func @f(%x: ptr, %y: ptr, %n: i64) {{\n%a = ptrtoint %x -> i64\n%up = shl %a, 16\n\
         {} = for %i < %n iter(%w = {first}, {}, %p{last} = %y) {{\n\
         %next = inttoptr %w -> ptr\n%back = ptrtoint %p{last} -> i64\nyield %back, %next, {}\n}}\nreturn\n}}\n",
        results.join(", "),
        carried.join(", "),
        moved.join(", "),
    ))
}

#[test]
fn nodes_of_a_cycle_of_copies_have_equal_targets() {
    let study = rotation("%a");
    let results = study.ops("f")[2];
    let body = study.unit.functions[study.func("f")].body.as_deref();
    let results = body.expect("the function has a body").results(results);
    for &result in results {
        assert_eq!(study.targets("f", result), ["arg0+0", "arg1+0"]);
    }
}

#[test]
fn bits_in_a_cycle_of_copies_assemble_pointers() {
    let study = rotation("%up");
    let results = study.ops("f")[2];
    let body = study.unit.functions[study.func("f")].body.as_deref();
    let results = body.expect("the function has a body").results(results);
    for &result in results {
        assert_eq!(study.targets("f", result), ["arg1+0", "external+0"]);
    }
}

/// `@put` stores the result of a callback, or the owner if there is no callback.
fn callback(declared: &str, ops: &str) -> Study {
    Study::of(&format!(
        "{declared}func @put(%slot: ptr, %cb: ptr, %owner: ptr, %x: ptr) {{\n\
         %none = icmp eq %cb, null\n\
         %v = if %none -> ptr {{\nyield %owner\n}} else {{\n\
         %r = call %cb(%x) : fn(ptr) -> ptr\nyield %r\n}}\nstore %v, %slot\nreturn\n}}\n\
         func @f(%x: ptr, %owner: ptr) {{\n%s = alloca ptr, 1\n{ops}%p = load %s -> ptr\nreturn\n}}\n"
    ))
}

const SAME: &str = "func @same(%x: ptr) -> ptr {\nreturn %x\n}\n";

#[test]
fn null_tests_of_known_callbacks_are_decided() {
    let study = callback(SAME, "call @put(%s, @same, %owner, %x)\n");
    assert_eq!(study.targets("f", study.value("f", 2)), ["arg0+0"]);
    let study = callback(SAME, "call @put(%s, null, %owner, %x)\n");
    assert_eq!(study.targets("f", study.value("f", 2)), ["arg1+0"]);
    let both =
        "call @put(%s, @same, %owner, %x)\n%t = alloca ptr, 1\ncall @put(%t, null, %owner, %x)\n";
    let study = callback(SAME, both);
    assert_eq!(study.targets("f", study.value("f", 4)), ["arg0+0"]);
}

#[test]
fn null_tests_of_declared_callbacks_stay_open() {
    // A declared function may be weak.
    let study = callback(
        "declare @same(ptr) -> ptr\n",
        "call @put(%s, @same, %owner, %x)\n",
    );
    let targets = study.targets("f", study.value("f", 2));
    assert!(targets.contains(&"arg1+0".to_string()), "{targets:?}");
}

/// Two structures, `a` with a pointer to numbers and `b` with a pointer to a pointer, and the types in their tags.
const TAGS: &str = "tbaa 0 = \"root\" ()\n\
     tbaa 1 = \"char\" (0: 0)\n\
     tbaa 2 = \"p1 double\" (0: 1)\n\
     tbaa 3 = \"p2 double\" (0: 1)\n\
     tbaa 4 = \"a\" (0: 2, 8: 2)\n\
     tbaa 5 = \"b\" (0: 3)\n\
     declare @malloc(i64) -> ptr\n";

#[test]
fn loads_read_stores_of_compatible_type() {
    let text = format!(
        "{TAGS}func @f(%x: ptr, %y: ptr, %z: ptr, %k: i64) {{\n\
         %r = call @malloc(16)\n\
         store %x, %r !tbaa(4, 2, 0)\nstore %y, %r !tbaa(5, 3, 0)\n\
         %a = load %r -> ptr !tbaa(2, 2, 0)\n\
         %b = load %r -> ptr !tbaa(3, 3, 0)\n\
         %c = load %r -> ptr\n\
         store %z, %r\n\
         %d = load %r -> ptr !tbaa(5, 3, 0)\nreturn\n}}\n"
    );
    let (all, exact) = (Study::of(&text), Study::with_tags(&text, true));
    let targets = |study: &Study, index| study.targets("f", study.value("f", index));
    for index in [3, 4, 5, 7] {
        assert_eq!(targets(&all, index), ["arg0+0", "arg1+0", "arg2+0"]);
    }
    assert_eq!(targets(&exact, 3), ["arg0+0", "arg2+0"]);
    assert_eq!(targets(&exact, 4), ["arg1+0", "arg2+0"]);
    assert_eq!(targets(&exact, 5), ["arg0+0", "arg1+0", "arg2+0"]);
    assert_eq!(targets(&exact, 7), ["arg1+0", "arg2+0"]);
    assert!(exact.memory.assumes_aliasing_rules() && !all.memory.assumes_aliasing_rules());
}

/// A program may index the members of one structure like an array: `(&s->first)[i]`.
#[test]
fn members_of_one_structure_may_be_indexed() {
    let text = format!(
        "{TAGS}func @f(%x: ptr, %n: i64) {{\n\
         %r = call @malloc(16)\n\
         %second = addr i8, %r, 8\nstore %x, %second !tbaa(4, 2, 8)\n\
         %at = addr ptr, %r, %n\n%p = load %at -> ptr !tbaa(4, 2, 0)\nreturn\n}}\n"
    );
    let study = Study::with_tags(&text, true);
    assert_eq!(study.targets("f", study.value("f", 4)), ["arg0+0"]);
}

/// Copied memory keeps its type.
#[test]
fn byte_copies_keep_tags() {
    let text = format!(
        "{TAGS}declare @memcpy(ptr, ptr, i64) -> ptr\n\
         func @f(%x: ptr, %y: ptr) {{\n\
         %r = call @malloc(16)\n%s = call @malloc(16)\n\
         store %x, %r !tbaa(4, 2, 0)\nstore %y, %r !tbaa(5, 3, 0)\n\
         %m = call @memcpy(%s, %r, 16)\n\
         %p = load %s -> ptr !tbaa(4, 2, 0)\nreturn\n}}\n"
    );
    let study = Study::with_tags(&text, true);
    assert_eq!(study.targets("f", study.value("f", 5)), ["arg0+0"]);
}

/// The callback data is a structure of the program or the caller's numbers: a load of a member reads no pointer from
/// the numbers. A load that can read nothing else does.
#[test]
fn declared_numbers_hold_pointers_only_if_nothing_else_is_read() {
    let program = |declared: &str, also: &str| {
        Study::of(&format!(
            "attrs 0 = param({declared}) param() param()\n\
             declare @malloc(i64) -> ptr\n\
             func @f(%x: ptr, %k: i1, %z: ptr) #0 {{\n\
             %r = call @malloc(16)\nstore %z, %r\n\
             %data = select %k, %r, %x\n%p = load %data -> ptr\n{also}return\n}}\n"
        ))
    };
    let read = |study: &Study| study.targets("f", study.value("f", 3));
    let floats = "\"gradus-pointee\" = type f64";
    assert_eq!(read(&program("", "")), ["arg2+0", "behind+0"]);
    assert_eq!(read(&program(floats, "")), ["arg2+0"]);
    let both = program(floats, "%q = load %x -> ptr\n");
    assert_eq!(read(&both), ["arg2+0", "behind+0"]);
}

/// A table of nodes behind the second member of a structure: element 1 of a node's own table lies at the same offset as the
/// table in the structure, and is no second occurrence of it.
#[test]
fn elements_of_a_table_are_no_members() {
    let text = format!(
        "{TAGS}tbaa 6 = \"p1 node\" (0: 1)\n\
         tbaa 7 = \"list\" (0: 2, 8: 3)\n\
         func @f(%list: ptr) {{\n\
         %at = addr i8, %list, 8\n%table = load %at -> ptr !tbaa(7, 3, 8)\n\
         %node = load %table -> ptr !tbaa(6, 6, 0)\n\
         %own = addr i8, %node, 16\n%children = load %own -> ptr !tbaa(4, 3, 8)\n\
         %second = addr i8, %children, 8\n%child = load %second -> ptr !tbaa(6, 6, 0)\nreturn\n}}\n"
    );
    let study = Study::of(&text);
    let target = |index| {
        let value = study.value("f", index);
        study.memory.targets(study.func("f"), value)[0].class
    };
    let (table, node, child) = (target(1), target(2), target(6));
    assert_ne!(child, table);
    assert_ne!(child, node);
}
