//! Random call graphs of parallel regions and worksharing functions, in C, in one or two files.
//!
//! Flow: first the functions are emitted, each with a random kind of inlining. They contain constructs and
//! call earlier functions, by name or through pointers. Regions follow, likewise. The last function enters
//! the regions and calls some of the functions outside of all regions.
//!
//! Invariants: equal seeds give equal programs; no races. The count of each construct is determined by the
//! number of times that a team reaches it and by the number of threads, independent of caller, inlining and
//! file.

use super::Random;
use std::collections::BTreeSet;

/// The features that a call graph may have.
// table
pub const SHARES_FEATURES: &[&str] = &[
    "one file",
    "two files",
    "always_inline",
    "inline",
    "static",
    "noinline",
    "flatten",
    "external",
    "in both files",
    "recursive",
    "through a pointer",
    "outside of regions",
    "in a loop",
    "for",
    "for (dynamic)",
    "for (guided)",
    "loop without a wait",
    "reduction",
    "single",
    "copyprivate",
    "sections",
    "master",
    "critical",
    "barrier",
    "task",
    "loop of tasks",
    "recursive tasks",
    "ordered",
    "indices at the end of their type",
    "huge chunks",
    "region with an if clause",
    "region with a false if clause",
];

/// A call graph.
#[derive(Clone, Debug)]
pub struct SharesProgram {
    /// The sources, without includes; every global name ends in `_SEED`.
    pub files: [String; 2],
    /// The function to call: `long f(int threads)`, with the number of threads of a team. It returns the number of
    /// constructs with a wrong count.
    pub function: String,
    /// The contents, of [`SHARES_FEATURES`].
    pub features: BTreeSet<&'static str>,
}

impl SharesProgram {
    /// Returns the files, one after the other.
    pub fn joined_files(&self) -> String {
        let [first, second] = &self.files;
        format!("{SHARES_INCLUDES}{first}\n// the other file\n{second}")
    }
}

/// The text at the start of the files.
pub const SHARES_INCLUDES: &str = "#include <stdio.h>\n";

/// The largest count of a construct.
const COUNT_MAX: u64 = 1 << 20;

/// The count of a construct: a part for a team, and a part for each of its threads.
#[derive(Clone, Copy, Default)]
struct Count {
    team: u64,
    thread: u64,
}

/// The form in which a function is defined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    AlwaysInline,
    Inline,
    Static,
    NoInline,
    Flatten,
    External,
}

struct Function {
    name: String,
    kind: Kind,
    /// The files that contain the code.
    files: [bool; 2],
    recursive: bool,
    /// The count of each construct if a team reaches the function once, including callees.
    counts: Vec<(usize, Count)>,
}

struct Writer {
    random: Random,
    features: BTreeSet<&'static str>,
    seed: u64,
    functions: Vec<Function>,
    /// The number of constructs.
    slots: usize,
    files: [String; 2],
    names: u32,
}

/// Returns the call graph of a seed.
pub fn shares_program(seed: u64) -> SharesProgram {
    let mut writer = Writer {
        random: Random::new(seed ^ 0x5ba7_e5ed),
        features: BTreeSet::new(),
        seed,
        functions: Vec::new(),
        slots: 0,
        files: [String::new(), String::new()],
        names: 0,
    };
    writer.files = [
        format!("int team_{seed};\n"),
        format!("extern int team_{seed};\n"),
    ];
    let two = writer.one_in(2);
    writer.met(if two { "two files" } else { "one file" });
    for _ in 0..3 + writer.random.below(5) {
        writer.function(two);
    }
    writer.root(two);
    SharesProgram {
        files: writer.files,
        function: format!("f_{seed}"),
        features: writer.features,
    }
}

impl Writer {
    fn met(&mut self, feature: &'static str) {
        self.features.insert(feature);
    }
    fn one_in(&mut self, n: u32) -> bool {
        self.random.below(n) == 0
    }
    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}_{}", self.names, self.seed)
    }
    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    /// Selects the files of new code.
    fn place(&mut self, two: bool) -> [bool; 2] {
        match two && self.one_in(2) {
            true => [false, true],
            false => [true, false],
        }
    }

    fn function(&mut self, two: bool) {
        let kinds = [
            (Kind::AlwaysInline, "always_inline"),
            (Kind::AlwaysInline, "always_inline"),
            (Kind::Inline, "inline"),
            (Kind::Static, "static"),
            (Kind::Static, "static"),
            (Kind::NoInline, "noinline"),
            (Kind::Flatten, "flatten"),
            (Kind::External, "external"),
            (Kind::External, "external"),
        ];
        let (kind, feature) = *self.random.pick(&kinds);
        self.met(feature);
        let mut files = self.place(two);
        if two && kind != Kind::External && self.one_in(3) {
            self.met("in both files");
            files = [true, true];
        }
        // An always-inline function that calls itself is not inlined.
        let recursive = self.one_in(if kind == Kind::AlwaysInline { 3 } else { 6 });
        if recursive {
            self.met("recursive");
        }
        let name = self.name("g");
        let (before, code, mut counts) = self.statements(files, 3);
        let mut body = format!("{code}{}", if recursive { "" } else { "(void)d;\n" });
        if recursive {
            body.push_str(&format!("if (d > 0) {name}(c, n, d - 1);\n"));
            for (_, count) in &mut counts {
                // The call passes 1.
                count.team *= 2;
                count.thread *= 2;
            }
        }
        let head = match kind {
            Kind::AlwaysInline => "static inline __attribute__((always_inline)) ",
            Kind::Inline => "static inline ",
            Kind::Static => "static ",
            Kind::NoInline => "static __attribute__((noinline)) ",
            Kind::Flatten => "static __attribute__((flatten)) ",
            Kind::External => "",
        };
        for (file, inside) in files.into_iter().enumerate() {
            if inside {
                let text =
                    format!("{before}{head}void {name}(long *c, int n, int d) {{\n{body}}}\n");
                self.files[file].push_str(&text);
            } else if kind == Kind::External {
                self.files[file].push_str(&format!("void {name}(long *c, int n, int d);\n"));
            }
        }
        self.functions.push(Function {
            name,
            kind,
            files,
            recursive,
            counts,
        });
    }

    /// Emits statements reached by every thread of a team. Returns the text before the function, the
    /// statements, and their counts.
    fn statements(&mut self, files: [bool; 2], most: u32) -> (String, String, Vec<(usize, Count)>) {
        let (mut before, mut code) = (String::new(), String::new());
        let mut counts: Vec<(usize, Count)> = Vec::new();
        for _ in 0..1 + self.random.below(most) {
            let called = match self.one_in(2) {
                true => self.call(files, &mut before),
                false => None,
            };
            let (text, own) = called.unwrap_or_else(|| self.construct(&mut before));
            let large = |(_, count): &(usize, Count)| count.team.max(count.thread) > COUNT_MAX;
            match self.one_in(6) && !own.iter().any(large) {
                true => {
                    self.met("in a loop");
                    code.push_str(&format!("for (int t = 0; t < 2; t++) {{\n{text}}}\n"));
                    let twice = own.into_iter().map(|(slot, count)| {
                        let (team, thread) = (2 * count.team, 2 * count.thread);
                        (slot, Count { team, thread })
                    });
                    counts.extend(twice);
                }
                false => {
                    code.push_str(&text);
                    counts.extend(own);
                }
            }
        }
        (before, code, counts)
    }

    /// Emits a call of a function visible in these files.
    fn call(
        &mut self,
        files: [bool; 2],
        before: &mut String,
    ) -> Option<(String, Vec<(usize, Count)>)> {
        let is_seen = |f: &Function| {
            let here = std::iter::zip(files, f.files);
            f.kind == Kind::External || here.into_iter().all(|(own, its)| its || !own)
        };
        let seen = (0..self.functions.len()).filter(|f| is_seen(&self.functions[*f]));
        let seen: Vec<usize> = seen.collect();
        if seen.is_empty() {
            return None;
        }
        let at = *self.random.pick(&seen);
        let called = &self.functions[at];
        let (name, counts) = (called.name.clone(), called.counts.clone());
        let deep = i32::from(called.recursive);
        if !self.one_in(5) {
            return Some((format!("{name}(c, n, {deep});\n"), counts));
        }
        self.met("through a pointer");
        let pointer = self.name("p");
        before.push_str(&format!(
            "static void (*volatile {pointer})(long *, int, int) = {name};\n"
        ));
        Some((format!("{pointer}(c, n, {deep});\n"), counts))
    }

    /// Emits an OpenMP construct reached by all threads of a team.
    fn construct(&mut self, before: &mut String) -> (String, Vec<(usize, Count)>) {
        let slot = self.slot();
        let team = |team| vec![(slot, Count { team, thread: 0 })];
        let thread = vec![(slot, Count { team: 0, thread: 1 })];
        let add = format!("__atomic_fetch_add(&c[{slot}], 1, __ATOMIC_RELAXED);");
        let n = 5 + u64::from(self.random.below(60));
        let head = |clauses: &str| head_of(n, clauses);
        match self.random.below(18) {
            0..3 => {
                let (feature, clause) = *self.random.pick(&[
                    ("for", ""),
                    ("for", "schedule(static)"),
                    ("for", "schedule(static, 3)"),
                    ("for (dynamic)", "schedule(dynamic, 2)"),
                    ("for (guided)", "schedule(guided)"),
                ]);
                self.met(feature);
                let nowait = self.one_in(3);
                if nowait {
                    self.met("loop without a wait");
                }
                let clause = format!("{clause}{}", if nowait { " nowait" } else { "" });
                (format!("{} {add}\n", head(&clause)), team(n))
            }
            3 => self.reduction(before, slot, n),
            4 | 5 => {
                self.met("single");
                let nowait = if self.one_in(2) { " nowait" } else { "" };
                (format!("#pragma omp single{nowait}\n{add}\n"), team(1))
            }
            6 => {
                self.met("copyprivate");
                let text = format!(
                    "{{ long v = 0;\n#pragma omp single copyprivate(v)\nv = 3;\n\
                     __atomic_fetch_add(&c[{slot}], v, __ATOMIC_RELAXED); }}\n"
                );
                (text, vec![(slot, Count { team: 0, thread: 3 })])
            }
            7 => {
                self.met("sections");
                let section = format!("#pragma omp section\n{add}\n");
                let text = format!("#pragma omp sections\n{{\n{}}}\n", section.repeat(3));
                (text, team(3))
            }
            8 => {
                self.met("master");
                (format!("#pragma omp master\n{add}\n"), team(1))
            }
            9 => {
                self.met("critical");
                (
                    format!("#pragma omp critical(k_{})\nc[{slot}]++;\n", self.seed),
                    thread,
                )
            }
            10 | 11 => {
                self.met("barrier");
                let wrong = self.slot();
                let text = format!(
                    "#pragma omp barrier\n{add}\n#pragma omp barrier\n\
                     if (__atomic_load_n(&c[{slot}], __ATOMIC_RELAXED) % team_{} != 0) \
                     __atomic_fetch_add(&c[{wrong}], 1, __ATOMIC_RELAXED);\n#pragma omp barrier\n",
                    self.seed
                );
                (text, vec![thread[0], (wrong, Count::default())])
            }
            14 | 15 => self.extreme_loop(slot),
            16 => {
                self.met("task");
                (
                    format!("#pragma omp task\n{{ {add} }}\n#pragma omp taskwait\n"),
                    thread,
                )
            }
            17 => self.recursive_tasks(before, slot),
            12 => {
                self.met("loop of tasks");
                let text = format!(
                    "#pragma omp single\n{{\n#pragma omp taskloop\nfor (int i = 0; i < {n}; i++) {add}\n}}\n"
                );
                (text, team(n))
            }
            _ => {
                self.met("ordered");
                let text = format!("{{\n#pragma omp ordered\n{add} }}\n");
                (format!("{} {text}", head("ordered")), team(n))
            }
        }
    }

    /// Emits a static loop whose indices end next to the end of their type, or whose chunks are larger than any
    /// loop. A team may have more threads than the loop has iterations.
    fn extreme_loop(&mut self, slot: usize) -> (String, Vec<(usize, Count)>) {
        let n = 1 + u64::from(self.random.below(9));
        let indices = [
            format!("int i = 2147483647 - {n} - n; i < 2147483647; i++"),
            format!("int i = -2147483647 - 1 + {n} + n; i > -2147483647 - 1; i--"),
            format!("unsigned i = 4294967295u - {n} - n; i < 4294967295u; i++"),
            format!("long i = 9223372036854775807 - {n} - n; i < 9223372036854775807; i++"),
            format!("unsigned char i = 255 - {n} - n; i < 255; i++"),
            format!("int i = 0; i < {n} + n; i++"),
            format!("long i = 0; i < {n} + n; i++"),
        ];
        let schedules = [
            "schedule(static)",
            "schedule(static, 2)",
            "schedule(static, 1073741824)",
            "schedule(static, 2147483647)",
        ];
        let at = self.random.below(indices.len() as u32) as usize;
        let schedule = *self.random.pick(&schedules);
        if at < 5 {
            self.met("indices at the end of their type");
        }
        if schedule.len() > 20 {
            self.met("huge chunks");
        }
        let text = format!(
            "#pragma omp for {schedule}\nfor ({}) __atomic_fetch_add(&c[{slot}], 1, __ATOMIC_RELAXED);\n",
            indices[at]
        );
        (text, vec![(slot, Count { team: n, thread: 0 })])
    }

    /// Emits a loop with a reduction, and the use of the sum.
    fn reduction(
        &mut self,
        before: &mut String,
        slot: usize,
        n: u64,
    ) -> (String, Vec<(usize, Count)>) {
        self.met("reduction");
        let sum = self.name("s");
        before.push_str(&format!("static long {sum};\n"));
        let text = format!(
            "{} {sum} += 2;\n#pragma omp single\n{{ c[{slot}] += {sum}; {sum} = 0; }}\n",
            head_of(n, &format!("reduction(+ : {sum})"))
        );
        let count = Count {
            team: 2 * n,
            thread: 0,
        };
        (text, vec![(slot, count)])
    }

    /// Emits a call of a function whose tasks call the function: three tasks in all.
    fn recursive_tasks(
        &mut self,
        before: &mut String,
        slot: usize,
    ) -> (String, Vec<(usize, Count)>) {
        self.met("recursive tasks");
        let head = *self.random.pick(&[
            "static inline __attribute__((always_inline))",
            "static inline",
            "static __attribute__((noinline))",
        ]);
        let name = self.name("t");
        before.push_str(&format!(
            "{head} void {name}(long *c, int d) {{\n#pragma omp task\n\
             {{ __atomic_fetch_add(&c[{slot}], 1, __ATOMIC_RELAXED); if (d > 0) {name}(c, d - 1); }}\n\
             #pragma omp taskwait\nif (d > 0) {name}(c, d - 1);\n}}\n"
        ));
        let count = Count { team: 0, thread: 3 };
        (format!("{name}(c, 1);\n"), vec![(slot, count)])
    }

    /// Emits the regions, and the function that enters them.
    fn root(&mut self, two: bool) {
        let seed = self.seed;
        let mut wanted: Vec<Count> = Vec::new();
        let mut serial = String::new();
        // Regions of one thread follow: their counts are no multiple of the team's size.
        let mut alone = String::new();
        let mut outside: Vec<(usize, Count)> = Vec::new();
        let mut inside: Vec<(usize, Count)> = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let name = self.name("r");
            let files = self.place(two);
            let (before, code, counts) = self.statements(files, 3);
            let file = usize::from(files[1]);
            // Without a stated number a team of one is legal, with each per-thread action executed once.
            let is_told = counts.iter().any(|(_, count)| count.thread > 0);
            let mut told = match is_told || self.one_in(4) {
                true => format!(" num_threads(team_{seed})"),
                false => String::new(),
            };
            let is_serial = self.one_in(8);
            if is_serial {
                self.met("region with a false if clause");
                told = " num_threads(3) if (n > 0)".into();
            } else if self.one_in(3) {
                self.met("region with an if clause");
                told.push_str(&format!(" if (team_{seed} > n)"));
            }
            self.files[file].push_str(&format!(
                "{before}void {name}(long *c, int n) {{\n#pragma omp parallel{told}\n{{\n{code}}}\n}}\n"
            ));
            self.files[1 - file].push_str(&format!("void {name}(long *c, int n);\n"));
            match is_serial {
                true => {
                    alone.push_str(&format!("team_{seed} = 1;\n{name}(c, 0);\n"));
                    outside.extend(counts);
                }
                false => {
                    serial.push_str(&format!("{name}(c, 0);\n"));
                    inside.extend(counts);
                }
            }
        }
        serial.push_str(&alone);
        if self.one_in(2) {
            let mut before = String::new();
            if let Some((text, counts)) = self.call([true, false], &mut before) {
                self.met("outside of regions");
                self.files[0].push_str(&before);
                serial.push_str(&format!("team_{seed} = 1;\n{{ int n = 0; {text} }}\n"));
                outside.extend(counts);
            }
        }
        wanted.resize(self.slots, Count::default());
        for (slot, count) in inside {
            wanted[slot].team += count.team;
            wanted[slot].thread += count.thread;
        }
        for (slot, count) in outside {
            wanted[slot].team += count.team + count.thread;
        }
        let numbers = |of: &dyn Fn(&Count) -> u64| {
            let all: Vec<String> = wanted.iter().map(|count| of(count).to_string()).collect();
            all.join(", ")
        };
        let (slots, team, thread) = (
            self.slots,
            numbers(&|count| count.team),
            numbers(&|count| count.thread),
        );
        self.files[0].push_str(&format!(
            "long f_{seed}(int threads) {{\n\
             static const long team[] = {{{team}}}, thread[] = {{{thread}}};\n\
             static long c[{slots}];\nlong wrong = 0;\n\
             for (int k = 0; k < {slots}; k++) c[k] = 0;\nteam_{seed} = threads;\n\
             {serial}for (int k = 0; k < {slots}; k++) wrong += c[k] != team[k] + thread[k] * threads;\n\
             return wrong;\n}}\n"
        ));
    }
}

/// Returns the head of a worksharing loop of `n` iterations.
fn head_of(n: u64, clauses: &str) -> String {
    format!("#pragma omp for {clauses}\nfor (int i = 0; i < {n} + n; i++)")
}
