//! IR programs: loops with scratch memory.

use super::Writer;

impl Writer<'_> {
    /// Emits a loop with scratch memory filled by each iteration; or by the first only, so that later
    /// iterations read previous contents.
    pub(super) fn scratch_loop(&mut self) {
        self.note("loop with scratch memory");
        let array = match self.random.below(3) {
            0 => self.random.pick(&self.arrays).clone(),
            _ => format!("@weights{}", self.name_suffix),
        };
        let (factor, start) = (self.float(), self.float());
        let memory = self.value("call @malloc(24)");
        let (result, i, sum) = (self.name(), self.name(), self.name());
        self.line(format!("{result} = for {i} < 3 iter({sum} = {start}) {{"));
        let once = self.random.below(2) == 0;
        if once {
            let first = self.value(format!("icmp eq {i}, 0"));
            self.line(format!("if {first} {{"));
        }
        let (j, p, v) = (self.name(), self.name(), self.name());
        self.line(format!("for {j} < 3 {{"));
        let at = self.value(format!("add {i}, {j}"));
        self.line(format!(
            "{p} = addr inbounds f64, {array}, {at}\n{v} = load {p} -> f64"
        ));
        let scaled = self.value(format!("fmul {v}, {factor}"));
        let cell = self.value(format!("addr inbounds f64, {memory}, {j}"));
        self.line(format!("store {scaled}, {cell}\nyield\n}}"));
        if once {
            self.line("yield\n} else {\nyield\n}");
        }
        let (inner, k, part) = (self.name(), self.name(), self.name());
        self.line(format!("{inner} = for {k} < 3 iter({part} = 0.0) {{"));
        let cell = self.value(format!("addr inbounds f64, {memory}, {k}"));
        let old = self.value(format!("load {cell} -> f64"));
        let new = self.value(format!("call @sin({old})"));
        let product = self.value(format!("fmul {old}, {new}"));
        let more = self.value(format!("fadd {part}, {product}"));
        self.line(format!("store {new}, {cell}\nyield {more}\n}}"));
        let next = self.value(format!("fadd {sum}, {inner}"));
        self.line(format!("yield {next}\n}}\ncall @free({memory})"));
        let value = self.bounded(&result);
        self.floats.push(value);
    }

    /// Emits a loop with scratch memory whose iterations are filled from a carried number: loop
    /// recomputation is impossible. Iterations do not overwrite memory that they read, except by late
    /// writes.
    pub(super) fn nonrecomputable_scratch_loop(&mut self) {
        self.note("loop with scratch memory");
        let way = self.random.below(6);
        self.note(match way {
            0 | 1 => "scratch memory: filled, then read",
            2 => "scratch memory: written after it was read",
            3 => "scratch memory: filled in part",
            4 => "scratch memory: filled under a condition",
            _ => "scratch memory: used in a branch",
        });
        let array = self.random.pick(&self.arrays).clone();
        let (factor, start) = (self.float(), self.float());
        let start = self.bounded(&start);
        let heap = self.random.below(2) == 0;
        let memory = self.value(match heap {
            true => "call @malloc(24)",
            false => "alloca [3 x f64], 1",
        });
        if matches!(way, 3 | 4) {
            let (j, cell) = (self.name(), self.name());
            self.line(format!(
                "for {j} < 3 {{\n{cell} = addr inbounds f64, {memory}, {j}\nstore {start}, {cell}\nyield\n}}"
            ));
        }
        let (result, i, sum) = (self.name(), self.name(), self.name());
        self.line(format!("{result} = for {i} < 4 iter({sum} = {start}) {{"));
        let odd = self.value(format!("and {i}, 1"));
        let even = self.value(format!("icmp eq {odd}, 0"));
        let branch = self.name();
        match way {
            4 => self.line(format!("if {even} {{")),
            5 => self.line(format!("{branch} = if {even} -> f64 {{")),
            _ => {}
        }
        let (j, places) = (self.name(), if way == 3 { 2 } else { 3 });
        self.line(format!("for {j} < {places} {{"));
        let at = self.value(format!("add {i}, {j}"));
        let from = self.value(format!("addr inbounds f64, {array}, {at}"));
        let old = self.value(format!("load {from} -> f64"));
        let scaled = self.value(format!("fmul {old}, {factor}"));
        let filled = self.value(format!("fadd {scaled}, {sum}"));
        let cell = self.value(format!("addr inbounds f64, {memory}, {j}"));
        self.line(format!("store {filled}, {cell}\nyield\n}}"));
        if way == 4 {
            self.line("yield\n} else {\nyield\n}");
        }
        let mut next = self.squares(&memory);
        if way == 5 {
            self.line(format!("yield {next}\n}} else {{\nyield {sum}\n}}"));
            next = branch;
        }
        if matches!(way, 2..=4) && (way == 2 || self.random.below(2) == 0) {
            next = self.late_writes(&memory, &next);
        }
        let tame = self.bounded(&next);
        self.line(format!("yield {tame}\n}}"));
        if heap {
            self.line(format!("call @free({memory})"));
        }
        self.floats.push(result);
    }

    /// Emits the sum of the squares of three floats.
    fn squares(&mut self, memory: &str) -> String {
        let (sum, k, part) = (self.name(), self.name(), self.name());
        self.line(format!("{sum} = for {k} < 3 iter({part} = 0.0) {{"));
        let cell = self.value(format!("addr inbounds f64, {memory}, {k}"));
        let old = self.value(format!("load {cell} -> f64"));
        let square = self.value(format!("fmul {old}, {old}"));
        let more = self.value(format!("fadd {part}, {square}"));
        self.line(format!("yield {more}\n}}"));
        sum
    }

    /// Emits a change of each of three floats after its load, and adds them to a number. Results stay
    /// bounded: the sine of a growing product would oscillate within any step of finite differences.
    fn late_writes(&mut self, memory: &str, number: &str) -> String {
        let number = self.bounded(number);
        let (sum, k, part) = (self.name(), self.name(), self.name());
        self.line(format!("{sum} = for {k} < 3 iter({part} = {number}) {{"));
        let cell = self.value(format!("addr inbounds f64, {memory}, {k}"));
        let old = self.value(format!("load {cell} -> f64"));
        let product = self.value(format!("fmul {old}, {part}"));
        let new = self.bounded(&product);
        self.line(format!("store {new}, {cell}"));
        let seen = self.value(format!("fadd {new}, {part}"));
        self.line(format!("yield {seen}\n}}"));
        sum
    }
}
