//! Random kernels in the text form: shared memory, barriers in nested and divergent control flow, atomics,
//! private arrays; free of races and of divergent barriers.
//!
//! A program has `@f() -> i64`, which fills memory, launches a kernel, and sums the contents. Equal seeds
//! give equal programs.
//!
//! Race freedom is by construction. Between two barriers every shared array has a *mode* with access
//! rights; a barrier selects new modes, and a branch or loop with inner barriers ends with a barrier that
//! restores the initial modes. Threads exit only if no barrier of other threads follows.

mod idioms;

use super::Random;
use super::gpu::KernelProgram;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The access rights to a shared array between two barriers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Every thread accesses its own cell.
    Own,
    /// All threads may read all cells.
    Open,
    /// All threads may add to all cells.
    Adds,
}

const MODES: &[Mode] = &[Mode::Own, Mode::Open, Mode::Adds];
/// The number of cells of `%in`.
const INPUT_CELLS: u32 = 16;
/// The number of cells of `%key`: cell `i` holds `3 * i ^ 32`, ascending in parts.
const KEY_CELLS: u32 = 128;
/// The number of cells of `%ups`: each is changed by a single kind of atomic operation.
const ATOMIC_CELLS: u32 = 16;
/// The number of cells of each thread in `%out`, and in its private array.
const CELLS: u32 = 4;

struct Writer {
    random: Random,
    out: String,
    names: u32,
    /// Thread-dependent values.
    own: Vec<String>,
    /// The number of dimensions of a block.
    dims: usize,
    /// Block-uniform values.
    common: Vec<String>,
    modes: [Mode; 2],
    /// The number of threads, as an operand.
    size: String,
    budget: u32,
    deep: u32,
    features: BTreeSet<&'static str>,
}

/// Returns the program of a seed with a single kernel of about `statements` statements.
pub(super) fn kernel(seed: u64, statements: u32) -> KernelProgram {
    let mut random = Random::new(seed ^ 0x6b65_726e);
    let dims = 1 + random.below(3) as usize;
    let most = [40, 7, 4][dims - 1];
    let extents: Vec<u32> = (0..dims).map(|_| 1 + random.below(most)).collect();
    let blocks = 1 + random.below(3);
    let threads: u32 = extents.iter().product();
    let apart = random.below(2) == 0;
    let known = !apart || random.below(2) == 0;
    let mut writer = Writer {
        random,
        out: String::new(),
        names: 0,
        own: Vec::new(),
        dims,
        common: Vec::new(),
        modes: [Mode::Own; 2],
        size: threads.to_string(),
        budget: statements,
        deep: 0,
        features: BTreeSet::new(),
    };
    writer.met(dims == 2, "two dimensions");
    writer.met(dims == 3, "three dimensions");
    writer.met(!known, "sizes not known");
    writer.met(apart, "kernel in a function");
    writer.met(threads > 32, "more than a warp");
    let sizes: Vec<String> = match known {
        true => extents.iter().map(u32::to_string).collect(),
        false => (0..dims).map(|d| format!("%e{d}")).collect(),
    };
    writer.kernel(blocks, threads, &sizes);
    let (kernel, features) = (writer.out, writer.features);
    let given: Vec<String> = extents.iter().map(u32::to_string).collect();
    let text = program(&kernel, [blocks, threads], apart, &given);
    KernelProgram { text, features }
}

/// Returns the program around a kernel.
fn program(kernel: &str, [blocks, threads]: [u32; 2], apart: bool, extents: &[String]) -> String {
    let cells = blocks * threads * CELLS;
    let fill = |name: &str, count: u32, value: &str, bits: u32| {
        format!(
            "  %{name} = alloca align 128 [{count} x i64], 1\n  for %{name}i < {count} {{\n    \
             %{name}f = mul %{name}i, {value}\n    %{name}v = xor %{name}f, {bits}\n    %{name}p = addr i64, %{name}, %{name}i\n    \
             store %{name}v, %{name}p\n    yield\n  }}\n"
        )
    };
    let sum = |name: &str, count: u32| {
        format!(
            "  %{name}s = for %{name}k < {count} iter(%{name}a = 0) {{\n    \
             %{name}q = addr i64, %{name}, %{name}k\n    %{name}w = load %{name}q -> i64\n    \
             %{name}m = mul %{name}a, 31\n    %{name}n = add %{name}m, %{name}w\n    \
             yield %{name}n\n  }}\n"
        )
    };
    let mut text = String::from(
        "declare @llvm.smax.i64(i64, i64) -> i64\ndeclare @llvm.smin.i64(i64, i64) -> i64\n\n",
    );
    let dims: Vec<String> = (0..extents.len()).map(|d| format!("%e{d}: i64")).collect();
    if apart {
        let _ = write!(
            text,
            "func @k(%in: ptr, %key: ptr, %out: ptr, %acc: ptr, %ups: ptr, %m: i64, %z: i64, {}) {{\n{kernel}  return\n}}\n\n",
            dims.join(", ")
        );
    }
    text.push_str("func @f() -> i64 {\n");
    text.push_str(&fill("in", INPUT_CELLS, "7", 0));
    text.push_str(&fill("key", KEY_CELLS, "3", 32));
    text.push_str(&fill("out", cells, "3", 0));
    text.push_str(&fill("acc", 8, "0", 0));
    text.push_str(&fill("ups", ATOMIC_CELLS, "5", 0));
    match apart {
        true => {
            let _ = writeln!(
                text,
                "  call @k(%in, %key, %out, %acc, %ups, 2, {threads}, {})",
                extents.join(", ")
            );
        }
        false => {
            text.push_str("  %m = add 1, 1\n");
            text.push_str(kernel);
        }
    }
    text.push_str(&sum("out", cells));
    text.push_str(&sum("acc", 8));
    text.push_str(&sum("ups", ATOMIC_CELLS));
    text.push_str("  %both = xor %outs, %accs\n  %all = xor %both, %upss\n  return %all\n}\n");
    text
}

impl Writer {
    fn met(&mut self, holds: bool, feature: &'static str) {
        if holds {
            self.features.insert(feature);
        }
    }
    fn line(&mut self, text: &str) {
        let depth = 2 + self.deep as usize;
        let _ = writeln!(self.out, "{:width$}{text}", "", width = 2 * depth);
    }
    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }
    fn define(&mut self, text: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} = {text}"));
        name
    }
    /// Returns any visible value.
    fn value(&mut self) -> String {
        let all = self.own.len() + self.common.len();
        match self.random.below(all as u32 + 2) as usize {
            n if n < self.own.len() => self.own[n].clone(),
            n if n < all => self.common[n - self.own.len()].clone(),
            _ => self.random.below(9).to_string(),
        }
    }
    fn uniform_value(&mut self) -> String {
        match self.random.below(self.common.len() as u32 + 1) as usize {
            n if n < self.common.len() => self.common[n].clone(),
            _ => self.random.below(9).to_string(),
        }
    }
    /// Returns the name of a number: an op with constants only has no type here.
    fn named(&mut self, value: String) -> String {
        match value.starts_with('%') {
            true => value,
            false => self.define(&format!("add %m, {value}")),
        }
    }

    // ---- the kernel ------------------------------------------------------------------------

    fn kernel(&mut self, blocks: u32, threads: u32, extents: &[String]) {
        let dims = extents.len();
        let params = |prefix: &str| {
            let names: Vec<String> = (0..dims).map(|d| format!("%{prefix}{d}: i64")).collect();
            names.join(", ")
        };
        self.out
            .push_str(&format!("  spmd grid {blocks} {{ |%b: i64, %g: i64|\n"));
        let _ = writeln!(
            self.out,
            "    spmd block {} {{ |{}, {}|",
            extents.join(", "),
            params("t"),
            params("n")
        );
        self.deep = 1;
        let mut number = format!("%t{}", dims - 1);
        for d in (0..dims - 1).rev() {
            let above = self.define(&format!("mul {number}, %n{d}"));
            number = self.define(&format!("add {above}, %t{d}"));
        }
        self.line(&format!("%t = add {number}, 0"));
        for array in 0..2 {
            // The launch gives the sizes: one array has a size that the kernel does not know.
            let is_dynamic = array == 0 && extents[0].starts_with('%');
            self.met(is_dynamic, "size of shared memory not known");
            match is_dynamic {
                true => self.line("%s0 = alloca shared i64, %z"),
                false => self.line(&format!("%s{array} = alloca shared [{threads} x i64], 1")),
            }
            self.line(&format!("%c{array} = addr i64, %s{array}, %t"));
            self.line(&format!("store %t, %c{array}"));
        }
        for array in ["steps", "lanes"] {
            self.line(&format!("%{array} = alloca shared [{threads} x i64], 1"));
            self.line(&format!("%own{array} = addr i64, %{array}, %t"));
            self.line(&format!("store %t, %own{array}"));
        }
        self.line(&format!("%local = alloca [{CELLS} x i64], 1"));
        for cell in 0..CELLS {
            let at = self.define(&format!("addr i64, %local, {cell}"));
            self.line(&format!("store %b, {at}"));
        }
        let first = self.define(&format!("mul %b, {threads}"));
        let global = self.define(&format!("add {first}, %t"));
        self.line(&format!("%cells = mul {global}, {CELLS}"));
        self.line("%mine = addr i64, %out, %cells");
        self.own = vec!["%t".into(), global];
        self.common = vec!["%b".into(), "%m".into()];
        self.uniform_statements(0);
        self.exiting_statement();
        self.store_all_values();
        self.out.push_str("      yield\n    }\n    yield\n  }\n");
    }

    /// Stores all visible values of a thread.
    fn store_all_values(&mut self) {
        let values: Vec<String> = self.own.iter().chain(&self.common).cloned().collect();
        let mut sum = "%t".to_string();
        for value in values {
            let mixed = self.define(&format!("mul {sum}, 17"));
            sum = self.define(&format!("add {mixed}, {value}"));
        }
        self.line(&format!("store {sum}, %mine"));
    }

    /// Emits uniform statements, reached by all remaining threads.
    fn uniform_statements(&mut self, depth: u32) {
        let count = 2 + self.random.below(6);
        for _ in 0..count {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            match self.random.below(13) {
                0..=1 => self.barrier(),
                2..=4 if depth < 3 => self.structure(depth),
                5 => self.lockstep(),
                6 => self.shuffle(),
                7 => self.sparse_threads(),
                _ => self.thread_statement(0),
            }
        }
    }

    fn barrier(&mut self) {
        self.met(true, "barrier");
        self.line("barrier block");
        for mode in &mut self.modes {
            *mode = *self.random.pick(MODES);
        }
    }

    /// Ends a structured op with inner barriers.
    fn restore_modes(&mut self, modes: [Mode; 2]) {
        self.line("barrier block");
        self.modes = modes;
    }

    /// Runs `fill` inside a region; definitions of the region are dropped after it.
    fn region<T>(&mut self, fill: impl FnOnce(&mut Self) -> T) -> T {
        let (own, common) = (self.own.len(), self.common.len());
        self.deep += 1;
        let given = fill(self);
        self.deep -= 1;
        self.own.truncate(own);
        self.common.truncate(common);
        given
    }

    /// Emits a uniform branch or loop, with inner barriers.
    fn structure(&mut self, depth: u32) {
        self.met(depth > 0, "barrier two deep");
        match self.random.below(4) {
            0 => self.uniform_branch(depth),
            1 => self.uniform_switch(depth),
            2 => self.uniform_loop(depth),
            _ => self.counted(depth),
        }
    }

    /// Emits an arm that yields a thread-dependent and a uniform value.
    fn arm(&mut self, depth: u32) {
        let modes = self.modes;
        self.region(|w| {
            w.uniform_statements(depth + 1);
            w.restore_modes(modes);
            let (own, common) = (w.value(), w.uniform_value());
            w.line(&format!("yield {own}, {common}"));
        });
    }

    fn uniform_branch(&mut self, depth: u32) {
        self.met(true, "common branch with barrier");
        let value = self.uniform_value();
        let value = self.named(value);
        let bit = self.define(&format!("and {value}, 1"));
        let condition = self.define(&format!("icmp eq {bit}, 0"));
        let (a, b) = (self.name(), self.name());
        self.line(&format!("{a}, {b} = if {condition} -> i64, i64 {{"));
        self.arm(depth);
        self.line("} else {");
        match self.random.below(2) {
            0 => self.arm(depth),
            _ => {
                let (own, common) = (self.value(), self.uniform_value());
                self.line(&format!("  yield {own}, {common}"));
            }
        }
        self.line("}");
        self.own.push(a);
        self.common.push(b);
    }

    fn uniform_switch(&mut self, depth: u32) {
        self.met(true, "common switch with barrier");
        let value = self.uniform_value();
        let value = self.named(value);
        let choice = self.define(&format!("and {value}, 3"));
        let (a, b) = (self.name(), self.name());
        self.line(&format!("{a}, {b} = switch {choice} -> i64, i64 case 0 {{"));
        self.arm(depth);
        self.line("} case 2 {");
        let (own, common) = (self.value(), self.uniform_value());
        self.line(&format!("  yield {own}, {common}"));
        self.line("} default {");
        self.arm(depth);
        self.line("}");
        self.own.push(a);
        self.common.push(b);
    }

    fn uniform_loop(&mut self, depth: u32) {
        self.met(true, "common loop with barrier");
        let (left, own, a, b) = (self.name(), self.name(), self.name(), self.name());
        let (initial, start) = (self.value(), 1 + self.random.below(6));
        self.line(&format!(
            "{a}, {b} = loop iter({left} = {start}, {own} = {initial}) -> i64, i64 {{"
        ));
        let modes = self.modes;
        self.region(|w| {
            w.own.push(own);
            w.common.push(left.clone());
            w.uniform_statements(depth + 1);
            w.restore_modes(modes);
            let (next, result) = (w.value(), w.value());
            let half = w.define(&format!("lshr {left}, 1"));
            let again = w.define(&format!("icmp ne {half}, 0"));
            let common = w.uniform_value();
            w.line(&format!(
                "repeat {again}, {half}, {next}, {result}, {common}"
            ));
        });
        self.line("}");
        self.own.push(a);
        self.common.push(b);
    }

    fn counted(&mut self, depth: u32) {
        self.met(true, "counted loop with barrier");
        let value = self.uniform_value();
        let value = self.named(value);
        let trips = self.define(&format!("and {value}, 3"));
        let (index, own, common) = (self.name(), self.name(), self.name());
        let (a, b) = (self.name(), self.name());
        let (first, second) = (self.value(), self.uniform_value());
        self.line(&format!(
            "{a}, {b} = for {index} < {trips} iter({own} = {first}, {common} = {second}) {{"
        ));
        let modes = self.modes;
        self.region(|w| {
            w.own.push(own);
            w.common.extend([index, common]);
            w.uniform_statements(depth + 1);
            w.restore_modes(modes);
            let (x, y) = (w.value(), w.uniform_value());
            w.line(&format!("yield {x}, {y}"));
        });
        self.line("}");
        self.own.push(a);
        self.common.push(b);
    }

    // ---- exits of threads -----------------------------------------------------------------

    /// Emits the last statement: some threads exit, the others continue to barriers.
    fn exiting_statement(&mut self) {
        match self.random.below(5) {
            0 => self.early_exit(),
            1 => self.loop_with_thread_exits(),
            2 => self.thread_dependent_trips(),
            _ => {}
        }
    }

    fn condition(&mut self) -> String {
        let value = self.value();
        let value = self.named(value);
        let low = self.define(&format!("and {value}, 7"));
        let bound = self.random.below(8);
        self.define(&format!("icmp ult {low}, {bound}"))
    }

    fn early_exit(&mut self) {
        self.met(true, "early exit");
        self.budget += 6;
        let condition = self.condition();
        let result = self.name();
        let swapped = self.random.below(2) == 0;
        self.line(&format!("{result} = if {condition} -> i64 {{"));
        let before = self.modes;
        for arm in [true, false] {
            self.region(|w| {
                match arm != swapped {
                    true => {
                        w.uniform_statements(2);
                        w.exiting_statement();
                    }
                    false => w.before_exit(before, |w| w.thread_statement(1)),
                }
                let value = w.value();
                w.line(&format!("yield {value}"));
            });
            if arm {
                self.line("} else {");
            }
        }
        self.line("}");
        self.own.push(result);
    }

    /// Emits statements of an exiting thread: they precede the next barrier of the remaining threads.
    fn before_exit(&mut self, before: [Mode; 2], fill: impl FnOnce(&mut Self)) {
        let modes = std::mem::replace(&mut self.modes, before);
        let budget = std::mem::replace(&mut self.budget, 0);
        fill(self);
        (self.modes, self.budget) = (modes, budget);
    }

    fn loop_with_thread_exits(&mut self) {
        self.met(true, "threads leave a loop");
        self.budget += 6;
        let (index, own, a, b) = (self.name(), self.name(), self.name(), self.name());
        let initial = self.value();
        self.line(&format!(
            "{a}, {b} = loop iter({index} = 0, {own} = {initial}) -> i64, i64 {{"
        ));
        let modes = self.modes;
        self.region(|w| {
            w.own.push(own);
            w.common.push(index.clone());
            w.uniform_statements(2);
            w.restore_modes(modes);
            let next = w.define(&format!("add {index}, 1"));
            let value = w.value();
            let value = w.named(value);
            let low = w.define(&format!("and {value}, 3"));
            let again = w.define(&format!("icmp ult {next}, {low}"));
            let (x, y) = (w.value(), w.value());
            w.line(&format!("repeat {again}, {next}, {x}, {y}, {next}"));
        });
        self.line("}");
        self.own.extend([a, b]);
    }

    fn thread_dependent_trips(&mut self) {
        self.met(true, "own trip count with barrier");
        self.budget += 6;
        let value = self.value();
        let value = self.named(value);
        let trips = self.define(&format!("and {value}, 3"));
        let (index, own, result) = (self.name(), self.name(), self.name());
        let initial = self.value();
        self.line(&format!(
            "{result} = for {index} < {trips} iter({own} = {initial}) {{"
        ));
        let modes = self.modes;
        self.region(|w| {
            w.own.push(own);
            w.common.push(index);
            w.uniform_statements(2);
            w.restore_modes(modes);
            let next = w.value();
            w.line(&format!("yield {next}"));
        });
        self.line("}");
        self.own.push(result);
    }

    // ---- statements of a thread ------------------------------------------------------------

    fn thread_statement(&mut self, depth: u32) {
        match self.random.below(18) {
            0..=2 => self.arithmetic(),
            3 => self.common_arithmetic(),
            4 => self.input(),
            5..=6 => self.shared(),
            7 => self.accumulate(),
            8 => self.local(),
            9 => self.own_cell_statement(),
            10 if depth < 2 => self.divergent_branch(depth),
            11 if depth < 2 => self.divergent_loop(depth),
            12 => self.stride(),
            13 => self.counted_stride(),
            14 if depth < 2 => self.guarded_sum(),
            15 => self.search(),
            16 => self.row_major_index(),
            17 => self.commutative_atomic(),
            _ => self.arithmetic(),
        }
    }

    fn combined(&mut self, a: &str, b: &str) -> String {
        match self.random.below(6) {
            0 => self.define(&format!("sub {a}, {b}")),
            1 => self.define(&format!("mul {a}, {b}")),
            2 => self.define(&format!("xor {a}, {b}")),
            3 => {
                let less = self.define(&format!("icmp slt {a}, {b}"));
                self.define(&format!("select {less}, {a}, {b}"))
            }
            4 => {
                let shifted = self.define(&format!("lshr {a}, 1"));
                self.define(&format!("urem {shifted}, 1021"))
            }
            _ => self.define(&format!("add {a}, {b}")),
        }
    }

    fn arithmetic(&mut self) {
        let (a, b) = (self.value(), self.value());
        let a = self.named(a);
        let value = self.combined(&a, &b);
        self.own.push(value);
    }

    fn common_arithmetic(&mut self) {
        let (a, b) = (self.uniform_value(), self.uniform_value());
        let a = self.named(a);
        let value = self.combined(&a, &b);
        self.common.push(value);
    }

    /// Returns an index below `count`.
    fn index(&mut self, value: String, count: &str) -> String {
        let value = self.named(value);
        let shifted = self.define(&format!("lshr {value}, 1"));
        self.define(&format!("urem {shifted}, {count}"))
    }

    fn input(&mut self) {
        let common = self.random.below(2) == 0;
        let value = match common {
            true => self.uniform_value(),
            false => self.value(),
        };
        self.met(true, "steady load");
        let index = self.index(value, &INPUT_CELLS.to_string());
        let at = self.define(&format!("addr i64, %in, {index}"));
        let loaded = self.define(&format!("load {at} -> i64"));
        match common {
            true => self.common.push(loaded),
            false => self.own.push(loaded),
        }
    }

    fn shared(&mut self) {
        let array = self.random.below(2) as usize;
        match self.modes[array] {
            Mode::Own => {
                self.met(true, "own cells");
                let value = self.value();
                let loaded = self.define(&format!("load %c{array} -> i64"));
                self.own.push(loaded);
                self.line(&format!("store {value}, %c{array}"));
            }
            Mode::Open if self.random.below(3) == 0 => self.clamped(array),
            Mode::Open => {
                self.met(true, "cells of others");
                let (value, size) = (self.value(), self.size.clone());
                let index = self.index(value, &size);
                let at = self.define(&format!("addr i64, %s{array}, {index}"));
                let loaded = self.define(&format!("load {at} -> i64"));
                self.own.push(loaded);
            }
            Mode::Adds => {
                self.met(true, "shared atomics");
                let (value, size) = (self.value(), self.size.clone());
                let index = self.index(value, &size);
                let at = self.define(&format!("addr i64, %s{array}, {index}"));
                let value = self.value();
                self.add_to(&at, value);
            }
        }
    }

    fn add_to(&mut self, at: &str, value: String) {
        let value = self.named(value);
        self.define(&format!("atomicrmw add monotonic {at}, {value}"));
    }

    fn accumulate(&mut self) {
        self.met(true, "global atomics");
        let value = self.value();
        let index = self.index(value, "8");
        let at = self.define(&format!("addr i64, %acc, {index}"));
        let value = self.value();
        self.add_to(&at, value);
    }

    fn local(&mut self) {
        self.met(true, "private array");
        let (value, place) = (self.value(), self.value());
        let index = self.index(place, &CELLS.to_string());
        let at = self.define(&format!("addr i64, %local, {index}"));
        let loaded = self.define(&format!("load {at} -> i64"));
        self.line(&format!("store {value}, {at}"));
        self.own.push(loaded);
    }

    fn own_cell_statement(&mut self) {
        let (value, cell) = (self.value(), 1 + self.random.below(CELLS - 1));
        let at = self.define(&format!("addr i64, %mine, {cell}"));
        let loaded = self.define(&format!("load {at} -> i64"));
        self.line(&format!("store {value}, {at}"));
        self.own.push(loaded);
    }

    fn divergent_branch(&mut self, depth: u32) {
        self.met(true, "own branch");
        let condition = self.condition();
        let result = self.name();
        self.line(&format!("{result} = if {condition} -> i64 {{"));
        for arm in 0..2 {
            self.region(|w| {
                for _ in 0..1 + w.random.below(2) {
                    w.thread_statement(depth + 1);
                }
                let value = w.value();
                w.line(&format!("yield {value}"));
            });
            if arm == 0 {
                self.line("} else {");
            }
        }
        self.line("}");
        self.own.push(result);
    }

    fn divergent_loop(&mut self, depth: u32) {
        self.met(true, "own loop");
        let value = self.value();
        let value = self.named(value);
        let trips = self.define(&format!("and {value}, 3"));
        let (index, own, result) = (self.name(), self.name(), self.name());
        let initial = self.value();
        self.line(&format!(
            "{result} = for {index} < {trips} iter({own} = {initial}) {{"
        ));
        self.region(|w| {
            w.own.extend([index, own]);
            w.thread_statement(depth + 1);
            let next = w.value();
            w.line(&format!("yield {next}"));
        });
        self.line("}");
        self.own.push(result);
    }

    /// Emits a sum of inputs from the thread's index on with a uniform stride, up to the end.
    fn stride(&mut self) {
        self.met(true, "stride over all");
        let by = 1 + self.random.below(9);
        let (place, sum, own, result) = (self.name(), self.name(), self.name(), self.name());
        let initial = self.value();
        self.line(&format!(
            "{result} = loop iter({place} = %t, {sum} = {initial}) -> i64 {{"
        ));
        self.region(|w| {
            let more = w.define(&format!("icmp ult {place}, {INPUT_CELLS}"));
            let step = w.define(&format!("select {more}, {by}, 0"));
            let next = w.define(&format!("add {place}, {step}"));
            w.line(&format!("{own} = if {more} -> i64 {{"));
            w.region(|w| {
                let with = w.input_at(&place, &sum);
                w.line(&format!("yield {with}"));
            });
            w.line("} else {");
            w.line(&format!("  yield {sum}"));
            w.line("}");
            w.line(&format!("repeat {more}, {next}, {own}, {own}"));
        });
        self.line("}");
        self.own.push(result);
    }

    /// Like [`Writer::stride`], with a trip count.
    fn counted_stride(&mut self) {
        self.met(true, "counted stride over all");
        let by = 1 + self.random.below(9);
        let (index, sum, result) = (self.name(), self.name(), self.name());
        let initial = self.value();
        let left = self.define(&format!("sub {}, %t", INPUT_CELLS + by - 1));
        let trips = self.define(&format!("udiv {left}, {by}"));
        let some = self.define(&format!("icmp ult %t, {INPUT_CELLS}"));
        let trips = self.define(&format!("select {some}, {trips}, 0"));
        self.line(&format!(
            "{result} = for {index} < {trips} iter({sum} = {initial}) {{"
        ));
        self.region(|w| {
            let far = w.define(&format!("mul {index}, {by}"));
            let place = w.define(&format!("add %t, {far}"));
            let with = w.input_at(&place, &sum);
            w.line(&format!("yield {with}"));
        });
        self.line("}");
        self.own.push(result);
    }

    /// Adds the input at an index to a sum.
    fn input_at(&mut self, place: &str, sum: &str) -> String {
        let at = self.define(&format!("addr i64, %in, {place}"));
        let loaded = self.define(&format!("load {at} -> i64"));
        let sum = self.named(sum.to_string());
        self.combined(&sum, &loaded)
    }

    /// Emits a uniform sum of the first inputs under a thread-dependent condition.
    fn guarded_sum(&mut self) {
        self.met(true, "common loop in own branch");
        let condition = self.condition();
        let (index, sum, total, result) = (self.name(), self.name(), self.name(), self.name());
        self.line(&format!("{result} = if {condition} -> i64 {{"));
        self.region(|w| {
            let initial = w.uniform_value();
            let count = w.uniform_value();
            let count = w.named(count);
            let trips = w.define(&format!("and {count}, 7"));
            w.line(&format!(
                "{total} = for {index} < {trips} iter({sum} = {initial}) {{"
            ));
            w.region(|w| {
                let with = w.input_at(&index, &sum);
                w.line(&format!("yield {with}"));
            });
            w.line("}");
            w.common.push(total);
            let own = w.value();
            w.line(&format!("yield {own}"));
        });
        self.line("} else {");
        let other = self.value();
        self.line(&format!("  yield {other}"));
        self.line("}");
        self.own.push(result);
    }
}
