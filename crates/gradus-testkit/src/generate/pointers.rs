//! Statements of IR programs on addresses and memory.

use super::Writer;

impl Writer<'_> {
    pub(super) fn pointer_statement(&mut self, depth: u32) {
        match self.random.below(if depth == 0 { 10 } else { 16 }) {
            0 => self.chosen_address(),
            1 if self.fixed > 0 => self.call_with_two_arrays(),
            2 if self.fixed > 1 => self.table_argument(),
            1 | 2 => self.chosen_address(),
            3 => self.reallocated(),
            4 => self.cleared_heap(),
            5 => self.self_memmove(),
            6 => self.part_of_block(),
            7 => self.constant_table(),
            8 => self.global_pointer(),
            9 => self.address_difference(),
            10 | 11 => self.address_of_branch(),
            12 | 13 => self.swapped_in_loop(depth),
            _ => self.exit_from_two_levels(depth),
        }
    }

    fn array(&mut self) -> String {
        self.random.pick(&self.arrays).clone()
    }

    fn chosen_address(&mut self) {
        self.note("pointer phi: select");
        let (condition, a, b) = (self.condition(), self.array(), self.array());
        let chosen = self.value(format!("select {condition}, {a}, {b}"));
        self.arrays.push(chosen);
    }

    fn address_of_branch(&mut self) {
        self.note("pointer phi: if");
        let (condition, a, b) = (self.condition(), self.array(), self.array());
        let (chosen, value) = (self.name(), self.name());
        self.line(format!("{chosen}, {value} = if {condition} -> ptr, f64 {{"));
        for (array, end) in [(a, "} else {"), (b, "}")] {
            let at = self.value(format!("addr inbounds f64, {array}, 2"));
            let old = self.value(format!("load {at} -> f64"));
            let new = self.bounded(&old);
            self.line(format!("store {new}, {at}\nyield {array}, {old}\n{end}"));
        }
        self.arrays.push(chosen);
        self.floats.push(value);
    }

    /// Emits a loop over an array and a loop over its rest, each possibly empty, before the array is
    /// overwritten: a single snapshot serves both.
    pub(super) fn loop_and_rest(&mut self) {
        self.note("array read by a loop and its rest");
        let array = match self.random.below(2) {
            0 => self.arrays[0].clone(),
            _ => self.array(),
        };
        let mut sum = self.float();
        for first in [0, 4] {
            let trips = self.trip_count();
            let (result, i, acc) = (self.name(), self.name(), self.name());
            self.line(format!(
                "{result} = for {i} < {trips} iter({acc} = {sum}) {{"
            ));
            let index = self.value(format!("add {i}, {first}"));
            let cell = self.value(format!("addr inbounds f64, {array}, {index}"));
            let old = self.value(format!("load {cell} -> f64"));
            let square = self.value(format!("fmul {old}, {old}"));
            let product = self.value(format!("fmul {square}, {acc}"));
            let next = self.bounded(&product);
            self.line(format!("yield {next}\n}}"));
            sum = result;
        }
        let (k, cell) = (self.name(), self.name());
        self.line(format!(
            "for {k} < 8 {{\n{cell} = addr inbounds f64, {array}, {k}\nstore {sum}, {cell}\nyield\n}}"
        ));
        self.floats.push(sum);
    }

    /// Emits a variable set in an arm and read in the opposite arm; possibly in each iteration of a loop.
    pub(super) fn variable_set_in_one_arm(&mut self) {
        self.note("variable set in one arm");
        let (slot, first, array) = (self.value("alloca f64, 1"), self.float(), self.array());
        self.line(format!("store {first}, {slot}"));
        let repeated = self.random.below(2) == 0;
        let index = match repeated {
            true => {
                let (trips, i) = (self.trip_count(), self.name());
                self.line(format!("for {i} < {trips} {{"));
                i
            }
            false => {
                let index = self.int();
                self.value(format!("and {index}, 7"))
            }
        };
        let cell = self.value(format!("addr inbounds f64, {array}, {index}"));
        let seen = self.value(format!("load {cell} -> f64"));
        let bound = self.float();
        let more = self.value(format!("fcmp ogt {seen}, {bound}"));
        self.line(format!("if {more} {{"));
        let square = self.value(format!("fmul {seen}, {seen}"));
        let new = self.bounded(&square);
        self.line(format!("store {new}, {slot}\nyield\n}} else {{"));
        let old = self.value(format!("load {slot} -> f64"));
        let product = self.value(format!("fmul {old}, {seen}"));
        let new = self.bounded(&product);
        self.line(format!("store {new}, {cell}\nyield\n}}"));
        if repeated {
            self.line("yield\n}");
        }
        let last = self.value(format!("load {slot} -> f64"));
        self.floats.push(last);
    }

    /// Emits two addresses swapped in every iteration.
    fn swapped_in_loop(&mut self, depth: u32) {
        self.note("pointers swapped in a loop");
        let (a, b, start, trips) = (self.array(), self.array(), self.float(), self.trip_count());
        let names: Vec<String> = (0..7).map(|_| self.name()).collect();
        let [first, second, sum, i, p, q, acc] = names.as_slice() else {
            unreachable!("as many names as were made");
        };
        self.line(format!(
            "{first}, {second}, {sum} = for {i} < {trips} iter({p} = {a}, {q} = {b}, {acc} = {start}) {{"
        ));
        let mark = self.visible_counts();
        self.floats.push(acc.clone());
        self.ints.push(i.clone());
        self.arrays.extend([p.clone(), q.clone()]);
        let index = self.value(format!("and {i}, 7"));
        let from = self.value(format!("addr inbounds f64, {p}, {index}"));
        let old = self.value(format!("load {from} -> f64"));
        let scaled = self.value(format!("fmul {old}, {acc}"));
        let new = self.bounded(&scaled);
        let to = self.value(format!("addr inbounds f64, {q}, {index}"));
        self.line(format!("store {new}, {to}"));
        self.block(depth - 1);
        let next = self.float();
        let next = self.bounded(&next);
        self.free(mark.3);
        self.line(format!("yield {q}, {p}, {next}\n}}"));
        self.restore_visible(mark);
        self.arrays.extend([first.clone(), second.clone()]);
        self.floats.push(sum.clone());
    }

    /// Emits a call with two arrays, possibly equal.
    fn call_with_two_arrays(&mut self) {
        let (n, s, a, tag) = (
            self.int(),
            self.float(),
            self.array(),
            self.name_suffix.clone(),
        );
        let b = match self.random.below(2) {
            0 => a.clone(),
            _ => self.array(),
        };
        self.note(match a == b {
            true => "aliasing arguments",
            false => "different arguments of two arrays",
        });
        let value = self.value(format!("call @two{tag}({n}, {a}, {b}, {s})"));
        self.floats.push(value);
    }

    /// Emits a table of two addresses.
    fn table(&mut self) -> String {
        let table = self.value("alloca [2 x ptr], 1");
        for slot in 0..2 {
            let array = self.array();
            let at = self.value(format!("addr inbounds ptr, {table}, {slot}"));
            self.line(format!("store {array}, {at}"));
        }
        table
    }

    /// Emits a call with a table of addresses; the callee reads the table and swaps its entries.
    fn table_argument(&mut self) {
        self.note("pointer to pointers as an argument");
        let (table, n, s, tag) = (
            self.table(),
            self.int(),
            self.float(),
            self.name_suffix.clone(),
        );
        let value = self.value(format!("call @table{tag}({n}, {table}, {s})"));
        self.floats.push(value);
        let slot = self.random.below(2);
        let at = self.value(format!("addr inbounds ptr, {table}, {slot}"));
        let array = self.value(format!("load {at} -> ptr"));
        self.arrays.push(array);
    }

    /// Emits the start of the function with a table parameter.
    pub(super) fn through_argument_table(&mut self) {
        self.note("pointers swapped in memory");
        let second = self.value("addr inbounds ptr, %t, 1");
        let a = self.value("load %t -> ptr");
        let b = self.value(format!("load {second} -> ptr"));
        if self.random.below(2) == 0 {
            self.line(format!("store {b}, %t\nstore {a}, {second}"));
        }
        self.arrays.extend([a, b]);
    }

    /// Emits a reallocated block: four floats are set before, four after.
    fn reallocated(&mut self) {
        self.note("realloc");
        let (small, value) = (self.value("call @malloc(32)"), self.float());
        let (i, p) = (self.name(), self.name());
        self.line(format!(
            "for {i} < 4 {{\n{p} = addr inbounds f64, {small}, {i}\nstore {value}, {p}\nyield\n}}"
        ));
        let large = self.value(format!("call @realloc({small}, 64)"));
        let (j, at, q, other) = (self.name(), self.name(), self.name(), self.float());
        self.line(format!(
            "for {j} < 4 {{\n{at} = add {j}, 4\n{q} = addr inbounds f64, {large}, {at}\n\
             store {other}, {q}\nyield\n}}"
        ));
        self.heap.push(large.clone());
        self.arrays.push(large);
    }

    fn cleared_heap(&mut self) {
        self.note("calloc");
        let array = self.value("call @calloc(8, 8)");
        self.heap.push(array.clone());
        self.arrays.push(array);
        let (cell, value) = (self.cell(), self.float());
        let value = self.bounded(&value);
        self.line(format!("store {value}, {cell}"));
    }

    fn self_memmove(&mut self) {
        self.note("memmove onto itself");
        let array = self.array();
        let next = self.value(format!("addr inbounds f64, {array}, 2"));
        let (to, from) = match self.random.below(2) {
            0 => (next, array),
            _ => (array, next),
        };
        self.line(format!(
            "call @llvm.memmove.p0.p0.i64({to}, {from}, 40, false)"
        ));
    }

    fn part_of_block(&mut self) {
        self.note("part of a block copied");
        let (to, from) = (self.array(), self.array());
        let middle = self.value(format!("addr inbounds f64, {to}, 4"));
        let size = 8 * (1 + self.random.below(4));
        let copy = self.random.below(3) > 0;
        self.line(match copy {
            true => format!("call @llvm.memmove.p0.p0.i64({middle}, {from}, {size}, false)"),
            false => format!("call @llvm.memset.p0.i64({middle}, i8 0, {size}, false)"),
        });
    }

    fn constant_table(&mut self) {
        self.note("constant table");
        let (k, a, tag) = (self.int(), self.float(), self.name_suffix.clone());
        let index = self.value(format!("and {k}, 7"));
        let at = self.value(format!("addr inbounds f64, @weights{tag}, {index}"));
        let weight = self.value(format!("load {at} -> f64"));
        let value = self.value(format!("fmul {a}, {weight}"));
        self.floats.push(value);
    }

    /// Emits a load of the array whose address is in a global.
    fn global_pointer(&mut self) {
        self.note("pointer in a global");
        let array = self.value(format!("load @slot{} -> ptr", self.name_suffix));
        self.arrays.push(array);
    }

    fn address_difference(&mut self) {
        self.note("difference of addresses");
        let index = self.int();
        let index = self.value(format!("and {index}, 7"));
        let array = self.array();
        let cell = self.value(format!("addr inbounds f64, {array}, {index}"));
        let (a, b) = (
            self.value(format!("ptrtoint {cell} -> i64")),
            self.value(format!("ptrtoint {array} -> i64")),
        );
        let bytes = self.value(format!("sub {a}, {b}"));
        let count = self.value(format!("ashr {bytes}, 3"));
        self.ints.push(count);
    }

    /// Emits a condition in an inner loop that exits the outer loop, too.
    fn exit_from_two_levels(&mut self, depth: u32) {
        self.note("exit from two levels");
        let names: Vec<String> = (0..8).map(|_| self.name()).collect();
        let [result, left, a, k, inner, leave, b, j] = names.as_slice() else {
            unreachable!("as many names as were made");
        };
        let start = self.float();
        self.line(format!(
            "{result}, {left} = loop iter({a} = {start}, {k} = 0) -> f64, i64 {{"
        ));
        let outer = self.visible_counts();
        self.floats.push(a.clone());
        self.ints.push(k.clone());
        let first = self.float();
        self.line(format!(
            "{inner}, {leave} = loop iter({b} = {first}, {j} = 0) -> f64, i1 {{"
        ));
        let mark = self.visible_counts();
        self.floats.push(b.clone());
        self.ints.push(j.clone());
        self.block(depth - 1);
        let (next, wanted) = (self.float(), self.condition());
        let next = self.bounded(&next);
        let more = self.value(format!("add {j}, 1"));
        let few = self.value(format!("icmp ult {more}, 3"));
        let stay = self.value(format!("xor {wanted}, true"));
        let again = self.value(format!("and {stay}, {few}"));
        self.free(mark.3);
        self.line(format!(
            "repeat {again}, {next}, {more}, {next}, {wanted}\n}}"
        ));
        self.restore_visible(mark);
        let cell = self.cell();
        let old = self.value(format!("load {cell} -> f64"));
        let sum = self.value(format!("fadd {inner}, {old}"));
        let next = self.bounded(&sum);
        self.line(format!("store {next}, {cell}"));
        let more = self.value(format!("add {k}, 1"));
        let few = self.value(format!("icmp ult {more}, 4"));
        let stay = self.value(format!("xor {leave}, true"));
        let again = self.value(format!("and {stay}, {few}"));
        self.free(outer.3);
        self.line(format!(
            "repeat {again}, {next}, {more}, {next}, {more}\n}}"
        ));
        self.restore_visible(outer);
        self.floats.push(result.clone());
        self.ints.push(left.clone());
    }
}
