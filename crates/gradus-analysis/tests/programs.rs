//! Random programs in text form: nested loops and branches around index arithmetic, loop-carried and
//! swapped pointers, pointers in memory, copies, allocations in loops.

use std::fmt::Write;

/// A small pseudo-random number generator (Steele et al., SplitMix64).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
    fn pick<'a>(&mut self, list: &'a [String]) -> &'a str {
        &list[self.below(list.len())]
    }
}

pub(crate) struct ProgramWriter {
    dice: Rng,
    text: String,
    next: usize,
    ints: Vec<String>,
    pointers: Vec<String>,
    depth: usize,
    budget: usize,
}

impl ProgramWriter {
    /// Returns the text of a program. `apart` states that the first two arguments never overlap.
    pub(crate) fn program(seed: u64, apart: bool) -> String {
        let mut writer = ProgramWriter {
            dice: Rng(seed),
            text: String::from(
                "attrs 0 = param(noalias) param() param() param() param()\n\
                 declare @malloc(i64) -> ptr\ndeclare @free(ptr)\n\
                 declare @memcpy(ptr, ptr, i64) -> ptr\n\
                 func @f(%x: ptr, %y: ptr, %n: i64, %m: i64, %c: i1)",
            ),
            next: 0,
            ints: ["%n", "%m", "0", "1", "3"].map(String::from).to_vec(),
            pointers: ["%x", "%y", "%a", "%b", "%w"].map(String::from).to_vec(),
            depth: 0,
            budget: 34,
        };
        writer.text.push_str(if apart { " #0 {\n" } else { " {\n" });
        writer.text.push_str(
            "%a = call @malloc(400)\n%b = call @malloc(400)\n\
             %w = alloca [50 x i64], 1\n%slot = alloca [2 x ptr], 1\nstore %a, %slot\n",
        );
        writer.statements();
        writer.text.push_str("call @free(%b)\nreturn }\n");
        writer.text
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }
    fn line(&mut self, text: std::fmt::Arguments) {
        let _ = self.text.write_fmt(text);
        self.text.push('\n');
    }
    fn int(&mut self) -> String {
        self.dice.pick(&self.ints).to_string()
    }
    /// Returns a pointer in scope, preferably a recent one.
    fn pointer(&mut self) -> String {
        let recent = self.pointers.len().saturating_sub(3);
        let from = if self.dice.below(2) == 0 { recent } else { 0 };
        self.dice.pick(&self.pointers[from..]).to_string()
    }

    fn statements(&mut self) {
        let scope = (self.ints.len(), self.pointers.len());
        for _ in 0..4 + self.dice.below(5) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            match self.dice.below(16) {
                0..=2 => self.arithmetic(),
                3..=5 => self.address(),
                6..=8 => self.access(),
                9 => self.pointer_in_memory(),
                10 => self.copy(),
                11 => self.choice(),
                12 | 13 if self.depth < 3 => self.counted(),
                14 if self.depth < 3 => self.repeated(),
                15 if self.depth < 3 => self.branch(),
                _ => self.allocation(),
            }
        }
        self.ints.truncate(scope.0);
        self.pointers.truncate(scope.1);
    }

    fn arithmetic(&mut self) {
        let (r, a, b) = (self.fresh(), self.int(), self.int());
        let typed = |v: &str| {
            if v.starts_with('%') {
                v.to_string()
            } else {
                format!("i64 {v}")
            }
        };
        let (a, b) = (typed(&a), typed(&b));
        match self.dice.below(8) {
            0 => self.line(format_args!("{r} = add nsw {a}, {b}")),
            1 => self.line(format_args!("{r} = add {a}, {b}")),
            2 => self.line(format_args!("{r} = sub nsw {a}, {b}")),
            3 => self.line(format_args!("{r} = mul nsw {a}, {b}")),
            4 => self.line(format_args!("{r} = and {a}, 7")),
            5 => self.line(format_args!("{r} = shl nsw {a}, 1")),
            6 => {
                let (t, u) = (self.fresh(), self.fresh());
                self.line(format_args!(
                    "{t} = trunc {a} -> i32\n{u} = add {t}, i32 -1"
                ));
                self.line(format_args!("{r} = sext {u} -> i64"));
            }
            _ => {
                let (t, u) = (self.fresh(), self.fresh());
                self.line(format_args!("{t} = shl {a}, 32\n{u} = add {t}, 4294967296"));
                self.line(format_args!("{r} = ashr exact {u}, 32"));
            }
        }
        self.ints.push(r);
    }

    fn address(&mut self) {
        let (r, p, i) = (self.fresh(), self.pointer(), self.int());
        let bytes = 4 * self.dice.below(8);
        match self.dice.below(4) {
            0 => self.line(format_args!("{r} = addr inbounds i64, {p}, {i}")),
            1 => self.line(format_args!("{r} = addr inbounds [2 x i64], {p}, {i}, 1")),
            2 => self.line(format_args!("{r} = addr inbounds i8, {p}, {}", bytes)),
            _ => self.line(format_args!("{r} = addr i64, {p}, {i}")),
        }
        self.pointers.push(r);
    }

    fn access(&mut self) {
        let p = self.pointer();
        match self.dice.below(5) {
            0 | 1 => {
                let r = self.fresh();
                self.line(format_args!("{r} = load {p} -> i64"));
                self.ints.push(r);
            }
            2 => {
                let r = self.fresh();
                self.line(format_args!("{r} = load {p} -> f32"));
            }
            3 => {
                let i = self.int();
                let i = if i.starts_with('%') {
                    i
                } else {
                    format!("i64 {i}")
                };
                self.line(format_args!("store {i}, {p}"));
            }
            _ => self.line(format_args!("store f32 1.0, {p}")),
        }
    }

    fn pointer_in_memory(&mut self) {
        if self.dice.below(2) == 0 {
            let p = self.pointer();
            let place = ["%slot", "%slot", "%a", "%y"][self.dice.below(4)];
            self.line(format_args!("store {p}, {place}"));
        } else {
            let r = self.fresh();
            let place = ["%slot", "%slot", "%y", "%a"][self.dice.below(4)];
            self.line(format_args!("{r} = load {place} -> ptr"));
            self.pointers.push(r);
        }
    }

    fn copy(&mut self) {
        let (r, p, q) = (self.fresh(), self.pointer(), self.pointer());
        let size = ["8", "16", "24"][self.dice.below(3)];
        self.line(format_args!("{r} = call @memcpy({p}, {q}, {size})"));
        self.pointers.push(r);
    }

    fn choice(&mut self) {
        let (t, r, i) = (self.fresh(), self.fresh(), self.int());
        let i = if i.starts_with('%') {
            i
        } else {
            format!("i64 {i}")
        };
        let predicate = ["slt", "eq", "ne", "ult", "sgt"][self.dice.below(5)];
        let limit = ["0", "1", "2", "%m"][self.dice.below(4)];
        self.line(format_args!("{t} = icmp {predicate} {i}, {limit}"));
        if self.dice.below(2) == 0 {
            let (p, q) = (self.pointer(), self.pointer());
            self.line(format_args!("{r} = select {t}, {p}, {q}"));
            self.pointers.push(r);
        } else {
            let (s, u) = (self.fresh(), self.fresh());
            self.line(format_args!("{s} = add nsw {i}, 1\n{u} = sub nsw {i}, 1"));
            self.line(format_args!("{r} = select {t}, {s}, {u}"));
            self.ints.push(r);
        }
    }

    fn allocation(&mut self) {
        let r = self.fresh();
        self.line(format_args!("{r} = call @malloc(64)"));
        self.pointers.push(r);
    }

    /// Emits a `for` that carries an integer and two pointers, which are swapped, advanced or unchanged.
    fn counted(&mut self) {
        let trips = ["%n", "%m", "2", "3"][self.dice.below(4)];
        let (i, p, q, k) = (self.fresh(), self.fresh(), self.fresh(), self.fresh());
        let (e1, e2, e3) = (self.fresh(), self.fresh(), self.fresh());
        let (from, other) = (self.pointer(), self.pointer());
        let typed = if trips.starts_with('%') {
            trips.to_string()
        } else {
            format!("i64 {trips}")
        };
        self.line(format_args!(
            "{e1}, {e2}, {e3} = for {i} < {typed} iter({p} = {from}, {q} = {other}, {k} = i64 1) {{"
        ));
        let scope = (self.ints.len(), self.pointers.len());
        self.ints.extend([i, k.clone()]);
        self.pointers.extend([p.clone(), q.clone()]);
        self.depth += 1;
        self.statements();
        self.depth -= 1;
        let (next, step) = (self.fresh(), self.fresh());
        let (op, by) = [("add", 2), ("sub", 1)][self.dice.below(2)];
        self.line(format_args!(
            "{next} = {op} nsw {k}, {by}\n{step} = addr inbounds i64, {p}, 2"
        ));
        let last = self.pointer();
        match self.dice.below(4) {
            0 => self.line(format_args!("yield {q}, {p}, {next} }}")),
            1 => self.line(format_args!("yield {step}, {q}, {next} }}")),
            2 => self.line(format_args!("yield {q}, {last}, {k} }}")),
            _ => self.line(format_args!("yield {p}, {q}, {next} }}")),
        }
        self.ints.truncate(scope.0);
        self.pointers.truncate(scope.1);
        self.ints.push(e3);
        self.pointers.extend([e1, e2]);
    }

    fn repeated(&mut self) {
        let (k, p, e, next, again) = (
            self.fresh(),
            self.fresh(),
            self.fresh(),
            self.fresh(),
            self.fresh(),
        );
        let from = self.pointer();
        self.line(format_args!(
            "{e} = loop iter({k} = i64 0, {p} = {from}) -> ptr {{"
        ));
        let scope = (self.ints.len(), self.pointers.len());
        self.ints.push(k.clone());
        self.pointers.push(p.clone());
        self.depth += 1;
        self.statements();
        self.depth -= 1;
        let other = self.pointer();
        self.line(format_args!(
            "{next} = add nsw {k}, 1\n{again} = icmp slt {next}, %m"
        ));
        self.line(format_args!("repeat {again}, {next}, {other}, {p} }}"));
        self.ints.truncate(scope.0);
        self.pointers.truncate(scope.1);
        self.pointers.push(e);
    }

    fn branch(&mut self) {
        let (t, r, i) = (self.fresh(), self.fresh(), self.int());
        let i = if i.starts_with('%') {
            i
        } else {
            format!("i64 {i}")
        };
        self.line(format_args!(
            "{t} = icmp slt {i}, 1\n{r} = if {t} -> ptr {{"
        ));
        for end in ["} else {", "}"] {
            let scope = (self.ints.len(), self.pointers.len());
            self.depth += 1;
            self.statements();
            self.depth -= 1;
            let p = self.pointer();
            self.line(format_args!("yield {p} {end}"));
            self.ints.truncate(scope.0);
            self.pointers.truncate(scope.1);
        }
        self.pointers.push(r);
    }
}
