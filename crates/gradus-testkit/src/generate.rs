//! Random structured programs in the text form: every structured op, overwritten memory, calls, and values
//! of moderate size.
//!
//! A program has a function `@f(%n: i64, %x: ptr, %s: f64) -> f64` that reads and writes [`CELLS`] binary64
//! numbers behind `%x`, and some functions called by `@f`. Accesses are in bounds, divisors are not zero,
//! and the program ends. Equal seeds give equal programs.
//!
//! [`wide_program`] returns an IR program with everything else too; its statements are in `wide`. Many
//! programs share a module, hence their global names end in the seed.
//!
//! Steps: a budget of statements is spent on a tree of regions; each statement takes visible operands;
//! values stored or carried across iterations pass through `sin` or `tanh`, to stay bounded.

mod aliasing;
pub(crate) mod c;
mod c_address_words;
mod c_kept;
mod c_limits;
mod c_memory;
mod c_retyped;
mod c_statements;
mod c_values;
mod fork_join;
mod gpu;
mod indirect_access;
mod ir_programs;
mod kernels;
mod launches;
mod math;
mod memory_graphs;
mod parallel_c;
mod pointers;
mod registered;
mod retyped_memory;
mod scratch_memory;
mod shares;
mod x86_intrinsics;

pub(crate) use crate::generate::ir_programs::wide_declarations;
pub use crate::generate::ir_programs::{FEATURES, WideProgram, wide_program};
pub use fork_join::{FORK_JOIN_FEATURES, ForkJoinProgram, fork_join_program};
pub use gpu::{KERNEL_FEATURES, KernelProgram, kernel_program};
pub(crate) use math::math_names;
pub use memory_graphs::{MemoryProgram, memory_program};
pub use parallel_c::{PARALLEL_C_FEATURES, ParallelCProgram, parallel_c_program};
pub use shares::{SHARES_FEATURES, SHARES_INCLUDES, SharesProgram, shares_program};

use std::collections::BTreeSet;
use std::fmt::Write;

/// The number of cells behind `%x`, and in each local array.
pub const CELLS: usize = 8;

/// The contents of a program.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The approximate number of statements.
    pub statements: u32,
    /// The maximum depth of regions.
    pub depth: u32,
    /// Integer arithmetic with flags that may be violated, shifts and casts.
    pub promises: bool,
    /// Copies of blocks and of floats as integers, and tables of addresses.
    pub copies: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            statements: 30,
            depth: 3,
            promises: false,
            copies: true,
        }
    }
}

/// Returns the text of a seed's program.
pub fn program(seed: u64, style: Style) -> String {
    let mut text = String::from(
        "declare @sin(f64) -> f64\ndeclare @exp(f64) -> f64\ndeclare @tanh(f64) -> f64\n\
         declare @llvm.sqrt.f64(f64) -> f64\ndeclare @llvm.fabs.f64(f64) -> f64\n\
         declare @malloc(i64) -> ptr\ndeclare @free(ptr) -> void\n\
         declare @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1) -> void\n\
         declare @llvm.memset.p0.i64(ptr, i8, i64, i1) -> void\n\
         global @state: [8 x f64] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]\n",
    );
    let mut random = Random::new(seed);
    let helpers = random.below(3);
    for helper in 0..helpers {
        let share = Style {
            statements: style.statements / 3,
            depth: style.depth.saturating_sub(1),
            ..style
        };
        text.push_str(&function(&format!("h{helper}"), helper, share, &mut random));
    }
    text.push_str(&function("f", helpers, style, &mut random));
    text
}

/// `@NAME(%n: i64, %x: ptr, %s: f64) -> f64`.
fn function(name: &str, helpers: u32, style: Style, random: &mut Random) -> String {
    let mut writer = Writer::new(random, style, helpers);
    writer.function(name, &["%x"]);
    writer.out
}

/// Pseudo-random numbers: xorshift (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        let mut random =
            Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u32) -> u32 {
        ((self.next() >> 33) % u64::from(n.max(1))) as u32
    }
    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u32) as usize]
    }
}

/// The numbers of visible floats, integers, arrays and heap blocks.
type Mark = (usize, usize, usize, usize);

struct Writer<'r> {
    random: &'r mut Random,
    style: Style,
    out: String,
    names: u32,
    floats: Vec<String>,
    ints: Vec<String>,
    /// Addresses of arrays of [`CELLS`] floats.
    arrays: Vec<String>,
    /// Heap blocks not yet freed.
    heap: Vec<String>,
    /// The number of callable functions.
    helpers: u32,
    budget: u32,
    /// The suffix of every global name.
    name_suffix: String,
    /// True to emit the statements of [`ir_programs`], and (`single`) those in single precision.
    wide: bool,
    /// The number of the loop with two counters at the start of `@f`.
    two_counters: Option<u64>,
    /// The number of the loop over neighbours at the start of `@f`.
    neighbours: Option<u64>,
    /// The number of the loop with an index array at the start of `@f`.
    index_array_loop: Option<u64>,
    /// The number of the memory with floats and pointers at the start of `@f`.
    retyped_memory: Option<u64>,
    single: bool,
    /// The number of callable functions among `@two` and `@table`.
    fixed: u32,
    /// The emitted features.
    contents: BTreeSet<&'static str>,
}

impl<'r> Writer<'r> {
    fn new(random: &'r mut Random, style: Style, helpers: u32) -> Self {
        Writer {
            random,
            style,
            out: String::new(),
            names: 0,
            floats: Vec::new(),
            ints: Vec::new(),
            arrays: Vec::new(),
            heap: Vec::new(),
            helpers,
            budget: 0,
            name_suffix: String::new(),
            wide: false,
            two_counters: None,
            neighbours: None,
            index_array_loop: None,
            retyped_memory: None,
            single: false,
            fixed: 0,
            contents: BTreeSet::new(),
        }
    }

    /// Emits a function of `%n`, some arrays and `%s`.
    fn function(&mut self, name: &str, arrays: &[&str]) {
        let parameters: String = arrays.iter().map(|a| format!("{a}: ptr, ")).collect();
        let tag = self.name_suffix.clone();
        self.line(format!(
            "func @{name}{tag}(%n: i64, {parameters}%s: f64) -> f64 {{"
        ));
        self.begin_function(arrays);
        if self.wide && name == "f" {
            self.set_globals();
            self.two_counters();
            self.neighbours();
            self.retyped_memory();
            self.call_index_array_function();
        }
        self.local_array();
        if name != "f" && arrays.len() == 1 && self.random.below(3) == 0 {
            self.recursion(name);
        }
        self.body();
        self.line("}");
    }

    /// Sets the visible values at a function's start.
    fn begin_function(&mut self, arrays: &[&str]) {
        self.names = 0;
        self.floats = vec!["%s".into()];
        self.ints = vec!["%n".into()];
        self.arrays = arrays.iter().map(|a| a.to_string()).collect();
        self.arrays.push(format!("@state{}", self.name_suffix));
        self.budget = self.style.statements;
    }

    /// Emits statements, and a result computed from their values.
    fn body(&mut self) {
        self.block(self.style.depth);
        while self.budget > 0 {
            self.block(self.style.depth);
        }
        let mut result = String::from("%s");
        let visible = self.floats.clone();
        for value in visible.iter().rev().take(6) {
            result = self.value(format!("fadd {result}, {value}"));
        }
        let result = self.bounded(&result);
        self.free(0);
        self.line(format!("return {result}"));
    }
}

impl Writer<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }
    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }
    /// Emits an op with one result. Returns its name.
    fn value(&mut self, op: impl AsRef<str>) -> String {
        let name = self.name();
        let _ = writeln!(self.out, "{name} = {}", op.as_ref());
        name
    }
    /// Returns a visible float, usually the latest.
    fn float(&mut self) -> String {
        match self.random.below(8) {
            0 => format!("{:?}", f64::from(self.random.below(40)) * 0.1 - 2.0),
            1..=3 => self.floats[self.floats.len() - 1].clone(),
            _ => self.random.pick(&self.floats).clone(),
        }
    }
    fn int(&mut self) -> String {
        match self.random.below(4) {
            0 => format!("{}", i64::from(self.random.below(20)) - 5),
            _ => self.random.pick(&self.ints).clone(),
        }
    }
    /// Returns a number between −1 and 1.
    fn bounded(&mut self, value: &str) -> String {
        let function = *self.random.pick(&["sin", "tanh"]);
        self.value(format!("call @{function}({value})"))
    }
    fn condition(&mut self) -> String {
        if self.random.below(2) == 0 {
            let (a, b) = (self.float(), self.float());
            let test = *self.random.pick(&["olt", "ogt", "ule", "une"]);
            return self.value(format!("fcmp {test} {a}, {b}"));
        }
        let (a, b) = (self.int(), self.int());
        let test = *self.random.pick(&["slt", "eq", "ugt", "sge", "ne"]);
        self.value(format!("icmp {test} {a}, {b}"))
    }
    /// Returns an in-bounds address of a cell.
    fn cell(&mut self) -> String {
        let index = self.int();
        let index = self.value(format!("and {index}, 7"));
        let array = self.random.pick(&self.arrays).clone();
        self.value(format!("addr inbounds f64, {array}, {index}"))
    }
    fn local_array(&mut self) {
        let array = self.value("alloca [8 x f64], 1");
        self.fill(array);
    }
    fn heap_array(&mut self) {
        let array = self.value("call @malloc(64)");
        self.heap.push(array.clone());
        self.fill(array);
    }
    /// Frees the heap blocks after the first `keep`.
    fn free(&mut self, keep: usize) {
        for block in self.heap.split_off(keep) {
            self.line(format!("call @free({block})"));
        }
    }
    fn fill(&mut self, array: String) {
        let (i, p) = (self.name(), self.name());
        let value = self.float();
        self.line(format!(
            "for {i} < 8 {{\n{p} = addr inbounds f64, {array}, {i}\nstore {value}, {p}\nyield\n}}"
        ));
        self.arrays.push(array);
    }

    // ---- statements ------------------------------------------------------------------------

    fn block(&mut self, depth: u32) {
        for _ in 0..=self.random.below(5) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        if self.wide && self.random.below(2) == 0 {
            return self.wide_statement(depth);
        }
        match self.random.below(if depth == 0 { 14 } else { 22 }) {
            0..=3 => self.arithmetic(),
            4 => self.integer(),
            5 | 6 => {
                let cell = self.cell();
                let value = self.value(format!("load {cell} -> f64"));
                self.floats.push(value);
            }
            7 => {
                let cell = self.cell();
                let value = self.float();
                let value = self.bounded(&value);
                self.line(format!("store {value}, {cell}"));
            }
            8 => self.call(),
            9..=11 if !self.style.copies => self.arithmetic(),
            9 => self.move_bits(),
            10 => self.move_block(),
            11 => self.through_table(),
            12 => self.vector_statement(),
            13 => self.members(),
            14 | 15 => self.branch(depth),
            16 => self.choice(depth),
            17 | 18 => self.counted(depth),
            19 => self.early_exit(depth),
            20 => self.heap_array(),
            _ => self.copy(),
        }
    }

    fn arithmetic(&mut self) {
        let (a, b) = (self.float(), self.float());
        let value = match self.random.below(9) {
            0 => self.value(format!("fadd {a}, {b}")),
            1 => self.value(format!("fsub {a}, {b}")),
            2 => {
                let b = self.bounded(&b);
                self.value(format!("fmul {a}, {b}"))
            }
            3 => {
                let square = self.value(format!("fmul {b}, {b}"));
                let above = self.value(format!("fadd {square}, 1.0"));
                self.value(format!("fdiv {a}, {above}"))
            }
            4 => self.value(format!("fneg {a}")),
            5 => {
                let tame = self.bounded(&a);
                self.value(format!("call @exp({tame})"))
            }
            6 => {
                let square = self.value(format!("fmul {a}, {a}"));
                let above = self.value(format!("fadd {square}, 0.5"));
                self.value(format!("call @llvm.sqrt.f64({above})"))
            }
            7 => {
                let c = self.condition();
                self.value(format!("select {c}, {a}, {b}"))
            }
            _ => self.bounded(&a),
        };
        self.floats.push(value);
    }

    fn integer(&mut self) {
        let (a, b) = (self.int(), self.int());
        let op = *self.random.pick(&["add", "sub", "mul", "and", "or", "xor"]);
        let promise = match self.style.promises && self.random.below(2) == 0 {
            true => *self.random.pick(&["nsw ", "nuw "]),
            false => "",
        };
        let flag = if matches!(op, "add" | "sub" | "mul") {
            promise
        } else {
            ""
        };
        let mut value = self.value(format!("{op} {flag}{a}, {b}"));
        if self.style.promises && self.random.below(3) == 0 {
            let small = self.value(format!("trunc {value} -> i32"));
            let by = self.random.below(31);
            let shift = *self.random.pick(&["shl", "lshr", "ashr"]);
            let shifted = self.value(format!("{shift} {small}, i32 {by}"));
            let cast = *self.random.pick(&["sext", "zext"]);
            value = self.value(format!("{cast} {shifted} -> i64"));
        }
        self.ints.push(value);
    }

    fn call(&mut self) {
        if self.helpers == 0 {
            return self.arithmetic();
        }
        let helper = self.random.below(self.helpers);
        let (n, s) = (self.int(), self.float());
        let array = self.random.pick(&self.arrays).clone();
        let tag = self.name_suffix.clone();
        let value = self.value(format!("call @h{helper}{tag}({n}, {array}, {s})"));
        self.floats.push(value);
    }

    /// Emits a recursive call with decreasing depth, nested at most three times.
    fn recursion(&mut self, name: &str) {
        self.note("recursion");
        let depth = self.value("and %n, 3");
        let none = self.value(format!("icmp eq {depth}, 0"));
        let value = self.name();
        self.line(format!(
            "{value} = if {none} -> f64 {{\nyield %s\n}} else {{"
        ));
        let less = self.value(format!("sub {depth}, 1"));
        let own = self.bounded("%s");
        let tag = self.name_suffix.clone();
        let deeper = self.value(format!("call @{name}{tag}({less}, %x, {own})"));
        self.line(format!("yield {deeper}\n}}"));
        self.floats.push(value);
    }

    /// Emits arithmetic on vectors of two: built from floats or loaded, and decomposed or stored.
    fn vector_statement(&mut self) {
        let (a, b) = (self.float(), self.float());
        let half = self.value(format!("insertelement <2 x f64> poison, {a}, 0"));
        let made = self.value(format!("insertelement {half}, {b}, 1"));
        let from = self.pair_address();
        let loaded = self.value(format!("load align 8 {from} -> <2 x f64>"));
        let op = *self.random.pick(&["fadd", "fsub"]);
        let sum = self.value(format!("{op} {made}, {loaded}"));
        let order = *self.random.pick(&["[1, 0]", "[0, 2]", "[3, 1]"]);
        let mixed = self.value(format!("shuffle {order} {sum}, {loaded}"));
        let condition = self.value(format!("fcmp olt {mixed}, {made}"));
        let chosen = self.value(format!("select {condition}, {mixed}, {sum}"));
        if self.random.below(2) == 0 {
            let scaled = self.value(format!("fmul {chosen}, <2 x f64> {{0.5, -0.25}}"));
            let to = self.pair_address();
            self.line(format!("store align 8 {scaled}, {to}"));
        }
        let index = self.int();
        let index = self.value(format!("and {index}, 1"));
        let value = self.value(format!("extractelement {chosen}, {index}"));
        self.floats.push(value);
    }
    /// Returns an in-bounds address of two cells.
    fn pair_address(&mut self) -> String {
        let index = self.int();
        let index = self.value(format!("and {index}, 6"));
        let array = self.random.pick(&self.arrays).clone();
        self.value(format!("addr inbounds f64, {array}, {index}"))
    }

    /// Emits floats in a structure, possibly passed through memory.
    fn members(&mut self) {
        let (a, b, n) = (self.float(), self.float(), self.int());
        let first = self.value(format!("insertvalue [0] {{f64, i64, {{f64}}}} undef, {a}"));
        let second = self.value(format!("insertvalue [1] {first}, {n}"));
        let mut whole = self.value(format!("insertvalue [2, 0] {second}, {b}"));
        if self.random.below(2) == 0 {
            let memory = self.value("alloca {f64, i64, {f64}}, 1");
            self.line(format!("store {whole}, {memory}"));
            whole = self.value(format!("load {memory} -> {{f64, i64, {{f64}}}}"));
        }
        let path = *self.random.pick(&["[0]", "[2, 0]"]);
        let value = self.value(format!("extractvalue {path} {whole}"));
        let int = self.value(format!("extractvalue [1] {whole}"));
        self.floats.push(value);
        self.ints.push(int);
    }

    /// Emits a copy of a float as an integer.
    fn move_bits(&mut self) {
        let from = self.cell();
        let bits = self.value(format!("load {from} -> i64"));
        let to = self.cell();
        self.line(format!("store {bits}, {to}"));
    }

    /// Emits a copy of a whole array, or sets it to zero.
    fn move_block(&mut self) {
        let to = self.random.pick(&self.arrays).clone();
        if self.random.below(3) == 0 {
            self.line(format!("call @llvm.memset.p0.i64({to}, i8 0, 64, false)"));
            return;
        }
        let from = self.random.pick(&self.arrays).clone();
        self.line(format!(
            "call @llvm.memcpy.p0.p0.i64({to}, {from}, 64, false)"
        ));
    }

    /// Emits an access to an array through a table of addresses.
    fn through_table(&mut self) {
        let table = self.value("alloca [2 x ptr], 1");
        for slot in 0..2 {
            let array = self.random.pick(&self.arrays).clone();
            let at = self.value(format!("addr inbounds ptr, {table}, {slot}"));
            self.line(format!("store {array}, {at}"));
        }
        let index = self.int();
        let index = self.value(format!("and {index}, 1"));
        let at = self.value(format!("addr inbounds ptr, {table}, {index}"));
        let array = self.value(format!("load {at} -> ptr"));
        self.arrays.push(array);
    }

    /// Emits a copy between arrays, cell by cell.
    fn copy(&mut self) {
        let (to, from) = (
            self.random.pick(&self.arrays).clone(),
            self.random.pick(&self.arrays).clone(),
        );
        let (i, p, q, v) = (self.name(), self.name(), self.name(), self.name());
        let scale = self.float();
        let scale = self.bounded(&scale);
        let w = self.name();
        self.line(format!(
            "for {i} < 8 {{\n{p} = addr inbounds f64, {from}, {i}\n{v} = load {p} -> f64\n\
             {w} = fmul {v}, {scale}\n{q} = addr inbounds f64, {to}, {i}\nstore {w}, {q}\nyield\n}}"
        ));
    }

    // ---- structures ------------------------------------------------------------------------

    /// Returns the numbers of visible values, for restoring after a region.
    fn visible_counts(&self) -> Mark {
        let visible = (self.floats.len(), self.ints.len(), self.arrays.len());
        (visible.0, visible.1, visible.2, self.heap.len())
    }
    fn restore_visible(&mut self, mark: Mark) {
        self.floats.truncate(mark.0);
        self.ints.truncate(mark.1);
        self.arrays.truncate(mark.2);
    }
    /// Emits the statements of a region that yields a bounded float and a small integer.
    fn arm(&mut self, depth: u32) {
        let mark = self.visible_counts();
        self.block(depth - 1);
        let value = self.float();
        let value = self.bounded(&value);
        let int = self.int();
        let int = self.value(format!("and {int}, 15"));
        self.free(mark.3);
        self.line(format!("yield {value}, {int}"));
        self.restore_visible(mark);
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.condition();
        let (value, int) = (self.name(), self.name());
        self.line(format!("{value}, {int} = if {condition} -> f64, i64 {{"));
        self.arm(depth);
        self.line("} else {");
        self.arm(depth);
        self.line("}");
        self.floats.push(value);
        self.ints.push(int);
    }

    fn choice(&mut self, depth: u32) {
        let key = self.int();
        let key = self.value(format!("and {key}, 3"));
        let (value, int) = (self.name(), self.name());
        self.line(format!(
            "{value}, {int} = switch {key} -> f64, i64 case 0 {{"
        ));
        self.arm(depth);
        self.line("} case 2 {");
        self.arm(depth);
        self.line("} default {");
        self.arm(depth);
        self.line("}");
        self.floats.push(value);
        self.ints.push(int);
    }

    /// Returns a trip count: constant or variable, possibly zero.
    fn trip_count(&mut self) -> String {
        match self.random.below(3) {
            0 => format!("{}", self.random.below(5)),
            _ => {
                let int = self.int();
                self.value(format!("and {int}, 3"))
            }
        }
    }

    fn counted(&mut self, depth: u32) {
        let trips = self.trip_count();
        let (value, int, i, a, k) = (
            self.name(),
            self.name(),
            self.name(),
            self.name(),
            self.name(),
        );
        let (start, first) = (self.float(), self.int());
        self.line(format!(
            "{value}, {int} = for {i} < {trips} iter({a} = {start}, {k} = {first}) {{"
        ));
        let mark = self.visible_counts();
        self.floats.push(a);
        self.ints.extend([i, k]);
        self.arm(depth);
        self.restore_visible(mark);
        self.line("}");
        self.floats.push(value);
        self.ints.push(int);
    }

    /// Emits a loop that exits early on a condition, and after five iterations in any case.
    fn early_exit(&mut self, depth: u32) {
        let (result, left, count, a) = (self.name(), self.name(), self.name(), self.name());
        let start = self.float();
        self.line(format!(
            "{result}, {left} = loop iter({a} = {start}, {count} = 0) -> f64, i64 {{"
        ));
        let mark = self.visible_counts();
        self.floats.push(a);
        self.ints.push(count.clone());
        self.block(depth - 1);
        let next = self.float();
        let next = self.bounded(&next);
        let more = self.value(format!("add {count}, 1"));
        let few = self.value(format!("icmp ult {more}, 5"));
        let wanted = self.condition();
        self.free(mark.3);
        self.arrays.truncate(mark.2);
        if self.random.below(2) == 0 {
            let again = self.value(format!("and {wanted}, {few}"));
            self.line(format!("repeat {again}, {next}, {more}, {next}, {more}"));
        } else {
            // The rest of the iteration runs only if the loop continues.
            let (go, kept) = (self.name(), self.name());
            self.line(format!("{go}, {kept} = if {wanted} -> i1, f64 {{"));
            let inner = self.visible_counts();
            self.block(depth - 1);
            let own = self.float();
            let own = self.bounded(&own);
            self.free(inner.3);
            self.line(format!(
                "yield true, {own}\n}} else {{\nyield false, {next}\n}}"
            ));
            self.restore_visible(inner);
            let both = self.value(format!("and {go}, {few}"));
            self.line(format!("repeat {both}, {kept}, {more}, {kept}, {more}"));
        }
        self.line("}");
        self.restore_visible(mark);
        let sum = self.value(format!("sitofp {left} -> f64"));
        self.floats.extend([sum, result]);
        self.ints.push(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_interp::{Machine, Value};
    use gradus_ir::{parse, verify};

    #[test]
    fn programs_are_sound_run_and_differ() {
        let mut results = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let text = program(seed, Style::default());
            assert_eq!(text, program(seed, Style::default()));
            let unit =
                parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}\n{text}", e.labels));
            assert_eq!(verify(&unit), [], "{text}");
            let mut machine = Machine::new(&unit);
            let x = machine.alloc_f64(&[0.5; CELLS]).unwrap();
            let args = [Value::i64(5), Value::ptr(x), Value::f64(0.3)];
            let value = machine
                .call("f", &args)
                .unwrap_or_else(|t| panic!("{t}\n{text}"));
            let value = value.and_then(|v| v.as_f64()).unwrap();
            assert!(value.abs() <= 1.0);
            results.insert(value.to_bits());
        }
        assert!(results.len() > 90, "{}", results.len());
    }
}
