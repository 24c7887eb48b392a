//! IR programs: random programs in the text form with everything that differentiation must handle.
//!
//! This file emits a program's frame and the statements on values; `pointers` emits addresses and memory,
//! `aliasing` aliasing accesses, `math` calls of math functions. The program of seed 7 has the function
//! `@f_7(%n: i64, %x: ptr, %s: f64) -> f64`, which sets its globals first, and hence depends on its
//! arguments only.
//!
//! Numbers pass through `sin` or `tanh` before they grow. If a quotient or a root is undefined, a `select`
//! takes another value; the points of the checks include such cases.

use super::math::{declarations, math_call};
use super::{Random, Style, Writer};
use std::collections::BTreeSet;

/// A program, and its contents.
#[derive(Clone, Debug)]
pub struct WideProgram {
    /// Globals and functions, without [`wide_declarations`].
    pub text: String,
    /// The function to differentiate.
    pub function: String,
    /// The contents, of [`FEATURES`].
    pub contents: BTreeSet<&'static str>,
    /// True if numbers pass through binary32, with seven digits.
    pub single: bool,
}

/// The features known from the emission; ops and nested structured ops are counted in the program itself.
// table
pub const FEATURES: &[&str] = &[
    "excluded point: quotient",
    "excluded point: square root",
    "excluded point: logarithm",
    "excluded point: power",
    "excluded point: lanes",
    "overwritten after it was read",
    "pointer phi: select",
    "pointer phi: if",
    "pointers swapped in a loop",
    "pointers swapped in memory",
    "aliasing arguments",
    "different arguments of two arrays",
    "pointer to pointers as an argument",
    "pointer in a global",
    "exit from two levels",
    "number copied as an integer",
    "integer of two numbers chosen",
    "sign by integer arithmetic",
    "float lanes in an integer",
    "float lanes through a call",
    "single precision",
    "structure by value",
    "recursion",
    "call that only reads, overwritten after it",
    "loop with scratch memory",
    "scratch memory: filled, then read",
    "scratch memory: written after it was read",
    "scratch memory: filled in part",
    "scratch memory: filled under a condition",
    "scratch memory: used in a branch",
    "realloc",
    "calloc",
    "memmove onto itself",
    "part of a block copied",
    "constant table",
    "mutable global",
    "lanes under a mask",
    "reduction of lanes",
    "arm that never runs",
    "atomic counter",
    "difference of addresses",
    "read before the next iteration's write",
    "arguments that meet in a cell",
    "local array behind a global",
    "array behind a global",
    "pair stored over one number",
    "numbers moved down onto themselves",
    "array that may be inactive",
    "two parts of an array",
    "array read by a loop and its rest",
    "variable set in one arm",
    "loop with two counters",
    "number read for the next iteration",
    "number read for the next iteration, overwritten",
    "array read through a list",
    "list that its loop changes",
    "floats over pointers under a mask",
];

/// Returns the declarations of external functions called by IR programs, for the top of a module.
pub(crate) fn wide_declarations() -> String {
    let mut text = String::from(
        "declare @malloc(i64) -> ptr\ndeclare @calloc(i64, i64) -> ptr\n\
         declare @realloc(ptr, i64) -> ptr\ndeclare @free(ptr) -> void\n\
         declare @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1) -> void\n\
         declare @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1) -> void\n\
         declare @llvm.memset.p0.i64(ptr, i8, i64, i1) -> void\n\
         declare @llvm.masked.load.v2f64.p0(ptr, <2 x i1>, <2 x f64>) -> <2 x f64>\n\
         declare @llvm.masked.store.v2f64.p0(<2 x f64>, ptr, <2 x i1>) -> void\n\
         declare @llvm.masked.load.v2f32.p0(ptr, <2 x i1>, <2 x f32>) -> <2 x f32>\n\
         declare @llvm.masked.store.v2f32.p0(<2 x f32>, ptr, <2 x i1>) -> void\n\
         declare @llvm.masked.store.v2p0.p0(<2 x ptr>, ptr, <2 x i1>) -> void\n\
         declare @llvm.vector.reduce.fadd.v2f64(f64, <2 x f64>) -> f64\n",
    );
    text.push_str(&declarations());
    text
}

/// Returns the IR program of a seed.
pub fn wide_program(seed: u64) -> WideProgram {
    let mut random = Random::new(seed ^ 0x0057_1de0);
    let style = Style {
        statements: 8 + random.below(22),
        depth: 1 + random.below(3),
        promises: false,
        copies: random.below(4) > 0,
    };
    let retyped_memory = (seed % 16 == 14).then_some(seed / 16);
    let (helpers, single) = (random.below(3), random.below(6) == 0);
    let single = single || retyped_memory.is_some();
    let mut writer = Writer::new(&mut random, style, 0);
    writer.name_suffix = format!("_{seed}");
    writer.wide = true;
    writer.single = single;
    writer.globals();
    writer.style.statements = 3 + style.statements / 3;
    writer.style.depth = 1;
    writer.fixed_functions();
    for helper in 0..helpers {
        writer.function(&format!("h{helper}"), &["%x"]);
        writer.helpers += 1;
    }
    writer.style = style;
    // Derived from the seed without a random number: other programs do not change.
    writer.two_counters = (seed % 16 == 3).then_some(seed / 16);
    writer.neighbours = (seed % 16 == 11).then_some(seed / 16);
    writer.index_array_loop = (seed % 16 == 7).then_some(seed / 16);
    writer.retyped_memory = retyped_memory;
    writer.index_array_function();
    writer.function("f", &["%x"]);
    WideProgram {
        function: format!("f{}", writer.name_suffix),
        text: writer.out,
        contents: writer.contents,
        single,
    }
}

impl Writer<'_> {
    pub(super) fn note(&mut self, feature: &'static str) {
        self.contents.insert(feature);
    }

    fn globals(&mut self) {
        let tag = self.name_suffix.clone();
        self.line(format!(
            "global @state{tag}: [8 x f64] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]\n\
             global @weights{tag}: [8 x f64] const = [0.5, -0.25, 1.0, 0.75, -1.0, 0.125, 0.0, 0.3]\n\
             global @slot{tag}: [1 x ptr] = zero 8"
        ));
    }

    /// Emits the functions of every program: of two arrays, of a table of addresses, of structures.
    fn fixed_functions(&mut self) {
        let tag = self.name_suffix.clone();
        self.aliasing_function();
        self.function("two", &["%x", "%y"]);
        self.fixed = 1;
        self.line(format!(
            "func @table{tag}(%n: i64, %t: ptr, %s: f64) -> f64 {{"
        ));
        self.begin_function(&[]);
        self.through_argument_table();
        self.body();
        self.line("}");
        self.fixed = 2;
        self.line(format!(
            "func @pair{tag}(%q: {{f64, f64}}, %s: f64) -> {{f64, f64}} {{\n\
             %a = extractvalue [0] %q\n%b = extractvalue [1] %q\n\
             %c = fmul %a, %b\n%d = call @sin(%c)\n%e = fadd %d, %s\n\
             %r = insertvalue [0] {{f64, f64}} undef, %e\n%r2 = insertvalue [1] %r, %a\nreturn %r2\n}}\n\
             func @energy{tag}(%x: ptr, %s: f64) -> f64 {{\n\
             %r = for %i < 8 iter(%sum = %s) {{\n%p = addr inbounds f64, %x, %i\n\
             %v = load %p -> f64\n%w = fmul %v, %v\n%h = fmul %w, 0.1\n\
             %next = fadd %sum, %h\nyield %next\n}}\nreturn %r\n}}\n\
             func @mixed{tag}(%q: i64, %s: f64) -> i64 {{\n\
             %lo = trunc %q -> i32\n%a = bitcast %lo -> f32\n%t = fptrunc %s -> f32\n\
             %b = fmul %a, %t\n%bits = bitcast %b -> i32\n%low = zext %bits -> i64\n\
             %high = and %q, -4294967296\n%r = or %high, %low\nreturn %r\n}}"
        ));
    }

    /// Emits the initialisation of globals at the start of `@f`.
    pub(super) fn set_globals(&mut self) {
        let tag = self.name_suffix.clone();
        let (i, p, v, w) = (self.name(), self.name(), self.name(), self.name());
        self.line(format!(
            "for {i} < 8 {{\n{v} = sitofp {i} -> f64\n{w} = fmul {v}, 0.1\n\
             {p} = addr inbounds f64, @state{tag}, {i}\nstore {w}, {p}\nyield\n}}\n\
             store %x, @slot{tag}"
        ));
        self.note("mutable global");
    }

    /// Emits a loop with an iteration counter and a separate index.
    pub(super) fn two_counters(&mut self) {
        let Some(number) = self.two_counters else {
            // Not an error: the program has no such loop.
            return;
        };
        self.note("loop with two counters");
        let (start, step) = (1 + number % 5, 1 + number / 5 % 3);
        let (r, a, i, j) = (self.name(), self.name(), self.name(), self.name());
        self.line(format!(
            "{r} = loop iter({a} = 0.25, {i} = 0, {j} = {start}) -> f64 {{"
        ));
        let place = self.value(format!("and {j}, 7"));
        let cell = self.value(format!("addr inbounds f64, %x, {place}"));
        let old = self.value(format!("load {cell} -> f64"));
        let part = self.value(format!("fmul {old}, {a}"));
        let next = self.value(format!("fadd {part}, 0.5"));
        let next_i = self.value(format!("add {i}, 1"));
        let next_j = self.value(format!("add {j}, {step}"));
        let again = self.value(format!("icmp ult {next_i}, 3"));
        self.line(format!(
            "repeat {again}, {next}, {next_i}, {next_j}, {next}\n}}"
        ));
        self.line(format!("store {r}, %x"));
    }

    /// Emits a loop over neighbours that loads each float once and carries it on, as optimisers do. The
    /// array is private without further writes, or overwritten by the loop on the way, or overwritten
    /// afterwards.
    pub(super) fn neighbours(&mut self) {
        let Some(number) = self.neighbours else {
            // Not an error: the program has no such loop.
            return;
        };
        self.note("number read for the next iteration");
        let array = match number % 4 {
            1 | 3 => "%x".into(),
            _ => self.local_copy(),
        };
        let first = self.value(format!("load {array} -> f64"));
        let (r, i, a, left) = (self.name(), self.name(), self.name(), self.name());
        let end = self.name();
        let trips = 2 + number / 4 % 6;
        self.line(format!(
            "{r}, {end} = for {i} < {trips} iter({a} = 0.25, {left} = {first}) {{"
        ));
        let after = self.value(format!("add {i}, 1"));
        let cell = self.value(format!("addr inbounds f64, {array}, {after}"));
        let right = self.value(format!("load {cell} -> f64"));
        let flux = self.value(format!("fmul {left}, {right}"));
        let half = self.value(format!("fmul {left}, 0.5"));
        let part = self.value(format!("fmul {half}, {a}"));
        let sum = self.value(format!("fadd {flux}, {part}"));
        if number % 4 == 1 {
            let behind = self.value(format!("addr inbounds f64, %x, {i}"));
            let new = self.bounded(&sum);
            self.line(format!("store {new}, {behind}"));
            self.note("number read for the next iteration, overwritten");
        }
        self.line(format!("yield {sum}, {right}\n}}"));
        if number % 4 == 3 {
            self.line(format!("store {r}, %x"));
            self.note("number read for the next iteration, overwritten");
        }
        let value = self.bounded(&r);
        self.floats.extend([value, end]);
    }

    /// Emits a local array with the contents of `x`.
    pub(super) fn local_copy(&mut self) -> String {
        let array = self.value("alloca [8 x f64], 1");
        let (i, from, old, to) = (self.name(), self.name(), self.name(), self.name());
        self.line(format!(
            "for {i} < 8 {{\n{from} = addr inbounds f64, %x, {i}\n{old} = load {from} -> f64\n\
             {to} = addr inbounds f64, {array}, {i}\nstore {old}, {to}\nyield\n}}"
        ));
        array
    }

    pub(super) fn wide_statement(&mut self, depth: u32) {
        if self.single && self.random.below(4) == 0 {
            return match self.random.below(2) {
                0 => self.float_lanes(),
                _ => self.float_lanes_through_call(),
            };
        }
        match self.random.below(if depth == 0 { 28 } else { 32 }) {
            0..=2 => self.excluded_point(),
            3 => self.excluded_lanes(),
            4 => match self.random.below(6) {
                0 | 1 => self.scratch_loop(),
                2..=4 => self.nonrecomputable_scratch_loop(),
                _ => self.overwrite(),
            },
            5 | 6 => math_call(self),
            7 => self.integers(),
            8 => self.conversions(),
            9 => self.sign_bits(),
            10 => self.structure_by_value(),
            11 if self.single => self.float_lanes(),
            12 if self.single => self.float_lanes_through_call(),
            13 if self.single => self.single_precision(),
            11..=13 => self.chosen_integer(),
            14 => self.masked_accesses(),
            15 => self.dead_branch(),
            16 => self.atomic(),
            17 | 18 => self.reading_call(),
            19 | 20 => self.aliasing_statement(),
            21 => self.loop_and_rest(),
            22 => self.variable_set_in_one_arm(),
            _ => self.pointer_statement(depth),
        }
    }

    /// Returns a float that may be zero at the points of the checks.
    fn perhaps_zero(&mut self) -> String {
        if self.random.below(3) > 0 {
            let cell = self.cell();
            return self.value(format!("load {cell} -> f64"));
        }
        let (k, b) = (self.int(), self.float());
        let odd = self.value(format!("and {k}, 1"));
        let some = self.value(format!("icmp ne {odd}, 0"));
        let square = self.value(format!("fmul {b}, {b}"));
        let above = self.value(format!("fadd {square}, 0.75"));
        self.value(format!("select {some}, {above}, 0.0"))
    }

    /// Emits the if-converted form of `z > 0.2 ? a / z : 0`: the quotient is always computed.
    fn excluded_point(&mut self) {
        let (z, a) = (self.perhaps_zero(), self.float());
        let (feature, raw, guard) = match self.random.below(4) {
            0 => {
                let raw = self.value(format!("fdiv {a}, {z}"));
                ("excluded point: quotient", raw, "quotient")
            }
            1 => {
                let raw = self.value(format!("call @llvm.sqrt.f64({z})"));
                ("excluded point: square root", raw, "positive")
            }
            2 => {
                let raw = self.value(format!("call @log({z})"));
                ("excluded point: logarithm", raw, "positive")
            }
            _ => {
                let raw = self.value(format!("call @pow({z}, 0.5)"));
                ("excluded point: power", raw, "positive")
            }
        };
        self.note(feature);
        let size = match guard {
            "positive" => z.clone(),
            _ => self.value(format!("call @llvm.fabs.f64({z})")),
        };
        let raw = match self.random.below(2) {
            0 => raw,
            _ => self.value(format!("fmul {raw}, {a}")),
        };
        let other = self.float();
        let value = match self.random.below(2) {
            0 => {
                let inside = self.value(format!("fcmp ogt {size}, 0.2"));
                self.value(format!("select {inside}, {raw}, {other}"))
            }
            _ => {
                let outside = self.value(format!("fcmp ule {size}, 0.2"));
                self.value(format!("select {outside}, {other}, {raw}"))
            }
        };
        let value = self.bounded(&value);
        self.floats.push(value);
    }

    fn excluded_lanes(&mut self) {
        self.note("excluded point: lanes");
        let from = self.pair_address();
        let z = self.value(format!("load align 8 {from} -> <2 x f64>"));
        let a = self.float();
        let half = self.value(format!("insertelement <2 x f64> poison, {a}, 0"));
        let both = self.value(format!("shuffle [0, 0] {half}, {half}"));
        let raw = self.value(format!("fdiv {both}, {z}"));
        let inside = self.value(format!("fcmp ogt {z}, <2 x f64> splat 2 0.2"));
        let mut value = self.value(format!("select {inside}, {raw}, {z}"));
        if self.random.below(2) == 0 {
            let (other, lane) = (self.float(), self.int());
            let lane = self.value(format!("and {lane}, 1"));
            value = self.value(format!("insertelement {value}, {other}, {lane}"));
        }
        let sum = self.value(format!("call @llvm.vector.reduce.fadd.v2f64(0.0, {value})"));
        self.note("reduction of lanes");
        let sum = self.bounded(&sum);
        self.floats.push(sum);
    }

    /// Emits a cell whose old contents are required after an overwrite.
    fn overwrite(&mut self) {
        self.note("overwritten after it was read");
        let (cell, factor) = (self.cell(), self.float());
        let old = self.value(format!("load {cell} -> f64"));
        let square = self.value(format!("fmul {old}, {old}"));
        let used = self.value(format!("fmul {square}, {factor}"));
        let new = self.bounded(&used);
        self.line(format!("store {new}, {cell}"));
        self.floats.extend([old, new]);
    }

    /// Emits a call whose derivative could run in the reverse pass, except that its memory is overwritten.
    fn reading_call(&mut self) {
        self.note("call that only reads, overwritten after it");
        let (array, s, tag) = (
            self.random.pick(&self.arrays).clone(),
            self.float(),
            self.name_suffix.clone(),
        );
        let value = self.value(format!("call @energy{tag}({array}, {s})"));
        let new = self.bounded(&value);
        let at = self.random.below(8);
        let cell = self.value(format!("addr inbounds f64, {array}, {at}"));
        self.line(format!("store {new}, {cell}"));
        self.floats.push(value);
    }

    fn integers(&mut self) {
        let (a, by) = (self.int(), 1 + self.random.below(5));
        let low = self.value(format!("and {a}, 63"));
        let op = *self.random.pick(&["udiv", "sdiv", "urem", "srem"]);
        let part = self.value(format!("{op} {low}, {by}"));
        let small = self.value(format!("trunc {part} -> i32"));
        let shift = *self.random.pick(&["shl", "lshr", "ashr"]);
        let places = self.random.below(3);
        let moved = self.value(format!("{shift} {small}, i32 {places}"));
        let cast = *self.random.pick(&["sext", "zext"]);
        let wide = self.value(format!("{cast} {moved} -> i64"));
        let fixed = self.value(format!("freeze {wide}"));
        self.ints.push(fixed);
    }

    /// Emits conversions of floats to integers and back, and the remainder of a division.
    fn conversions(&mut self) {
        let (a, k) = (self.float(), self.int());
        let tame = self.bounded(&a);
        let scaled = self.value(format!("fmul {tame}, 3.3"));
        let int = match self.random.below(2) {
            0 => self.value(format!("fptosi {scaled} -> i64")),
            _ => {
                let size = self.value(format!("call @llvm.fabs.f64({scaled})"));
                self.value(format!("fptoui {size} -> i64"))
            }
        };
        self.ints.push(int);
        let low = self.value(format!("and {k}, 7"));
        let cast = *self.random.pick(&["uitofp", "sitofp"]);
        let number = self.value(format!("{cast} {low} -> f64"));
        let part = self.value(format!("fmul {number}, 0.1"));
        let fixed = self.value(format!("freeze {a}"));
        let sum = self.value(format!("fadd {fixed}, {part}"));
        let rest = self.value(format!("frem {sum}, 1.7"));
        self.floats.push(rest);
    }

    /// Emits absolute value or sign of a float by integer arithmetic.
    fn sign_bits(&mut self) {
        self.note("sign by integer arithmetic");
        let a = self.float();
        let bits = self.value(format!("bitcast {a} -> i64"));
        let changed = match self.random.below(2) {
            0 => self.value(format!("and {bits}, 9223372036854775807")),
            _ => self.value(format!("xor {bits}, -9223372036854775808")),
        };
        let value = self.value(format!("bitcast {changed} -> f64"));
        self.floats.push(value);
    }

    fn structure_by_value(&mut self) {
        self.note("structure by value");
        let (a, b, s, tag) = (
            self.float(),
            self.float(),
            self.float(),
            self.name_suffix.clone(),
        );
        let b = self.bounded(&b);
        let half = self.value(format!("insertvalue [0] {{f64, f64}} undef, {a}"));
        let whole = self.value(format!("insertvalue [1] {half}, {b}"));
        let made = self.value(format!("call @pair{tag}({whole}, {s})"));
        let which = self.random.below(2);
        let value = self.value(format!("extractvalue [{which}] {made}"));
        self.floats.push(value);
    }

    /// Emits a copy of one of two floats as an integer.
    fn chosen_integer(&mut self) {
        self.note("number copied as an integer");
        self.note("integer of two numbers chosen");
        let (from, other) = (self.cell(), self.cell());
        let a = self.value(format!("load {from} -> i64"));
        let b = self.value(format!("load {other} -> i64"));
        let condition = self.condition();
        let bits = self.value(format!("select {condition}, {a}, {b}"));
        let to = self.cell();
        self.line(format!("store {bits}, {to}"));
    }

    /// Emits two single-precision floats in an integer.
    fn packed(&mut self) -> String {
        let halves = [0, 1].map(|_| {
            let number = self.float();
            let number = self.bounded(&number);
            let short = self.value(format!("fptrunc {number} -> f32"));
            let bits = self.value(format!("bitcast {short} -> i32"));
            self.value(format!("zext {bits} -> i64"))
        });
        let high = self.value(format!("shl {}, 32", halves[1]));
        self.value(format!("or {high}, {}", halves[0]))
    }
    fn unpacked(&mut self, both: &str) {
        let low = self.value(format!("trunc {both} -> i32"));
        let up = self.value(format!("lshr {both}, 32"));
        let high = self.value(format!("trunc {up} -> i32"));
        for half in [low, high] {
            let short = self.value(format!("bitcast {half} -> f32"));
            let number = self.value(format!("fpext {short} -> f64"));
            self.floats.push(number);
        }
    }

    fn float_lanes(&mut self) {
        self.note("float lanes in an integer");
        let mut both = self.packed();
        if self.random.below(2) == 0 {
            let memory = self.value("alloca i64, 1");
            self.line(format!("store {both}, {memory}"));
            both = self.value(format!("load {memory} -> i64"));
        }
        self.unpacked(&both);
    }

    fn float_lanes_through_call(&mut self) {
        self.note("float lanes through a call");
        let (both, s, tag) = (self.packed(), self.float(), self.name_suffix.clone());
        let made = self.value(format!("call @mixed{tag}({both}, {s})"));
        self.unpacked(&made);
    }

    fn single_precision(&mut self) {
        self.note("single precision");
        let (a, b) = (self.float(), self.float());
        let a = self.bounded(&a);
        let (a, b) = (
            self.value(format!("fptrunc {a} -> f32")),
            self.value(format!("fptrunc {b} -> f32")),
        );
        let product = self.value(format!("fmul {a}, {b}"));
        let sum = self.value(format!("fadd {product}, f32 0.25"));
        let number = self.value(format!("fpext {sum} -> f64"));
        self.floats.push(number);
    }

    /// Emits masked loads and stores.
    fn masked_accesses(&mut self) {
        self.note("lanes under a mask");
        let (from, to) = (self.pair_address(), self.pair_address());
        let all = self.value(format!("load align 8 {to} -> <2 x f64>"));
        let mask = self.value(format!("fcmp olt {all}, <2 x f64> splat 2 0.4"));
        let some = self.value(format!(
            "call @llvm.masked.load.v2f64.p0({from}, {mask}, {all})"
        ));
        let product = self.value(format!("fmul {some}, {all}"));
        let scaled = self.value(format!("fmul {product}, <2 x f64> splat 2 0.5"));
        if self.random.below(2) == 0 {
            self.line(format!(
                "call @llvm.masked.store.v2f64.p0({scaled}, {to}, {mask})"
            ));
        }
        let lane = self.random.below(2);
        let value = self.value(format!("extractelement {scaled}, {lane}"));
        self.floats.push(value);
    }

    fn dead_branch(&mut self) {
        self.note("arm that never runs");
        let k = self.int();
        let low = self.value(format!("and {k}, 7"));
        let high = self.value(format!("icmp ugt {low}, 9"));
        self.line(format!("if {high} {{\nunreachable\n}} else {{\nyield\n}}"));
    }

    /// Emits an atomic counter.
    fn atomic(&mut self) {
        self.note("atomic counter");
        let (memory, k) = (self.value("alloca i64, 1"), self.int());
        let low = self.value(format!("and {k}, 3"));
        self.line(format!("store {low}, {memory}"));
        let old = self.value(format!("atomicrmw add monotonic align 8 {memory}, 1"));
        self.line("fence acq_rel");
        let swapped = self.value(format!(
            "cmpxchg monotonic align 8 failure monotonic {memory}, {old}, 2"
        ));
        let seen = self.value(format!("extractvalue [0] {swapped}"));
        self.ints.push(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coverage, wide_unit};

    #[test]
    fn every_cell_of_the_table_is_met() {
        let mut coverage = Coverage::default();
        for batch in 0..16 {
            let programs: Vec<WideProgram> =
                (100 * batch..100 * (batch + 1)).map(wide_program).collect();
            let unit = wide_unit(&programs).unwrap();
            coverage.count(&unit, &programs);
        }
        println!("{}", coverage.table());
        // Structured ops nested three deep with a switch are rare: long runs cover all of them.
        let rare = |cell: &&str| cell.starts_with("nest ") && cell.contains("switch");
        let missing: Vec<&str> = coverage
            .empty_cells()
            .into_iter()
            .filter(|c| !rare(c))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
