//! Random fork-join programs in the text form: nested parallel loops, nested tasks, teams with worksharing
//! loops and barriers, reductions, atomic updates and locks; race-free and deterministic.
//!
//! The program of seed 7 has the function `@p_7() -> i64`, which fills memory, works on it in parallel, and
//! sums the contents. Many programs share a module, hence global names end in the seed.
//!
//! Race freedom is by construction. At every point of the program some cells are *own*: no concurrent code
//! accesses them; and some are *open*: no concurrent code writes them. A fork passes parts of its own cells
//! on, and gets them back at the sync. All other memory is only added to, each cell by a single commutative
//! operation, and read at the end. Numbers are integers, or floats with exact sums, hence every order gives
//! equal bits.
//!
//! This file emits functions and serial statements; `loops`, `columns`, `neighbours`, `tasks` and `team`
//! emit forks.

mod columns;
mod loops;
mod neighbours;
mod tasks;
mod team;

use super::Random;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The features of random fork-join programs.
// table
pub const FORK_JOIN_FEATURES: &[&str] = &[
    "parallel loop",
    "two dimensions",
    "three dimensions",
    "narrow index",
    "extent not known",
    "grain",
    "reduction",
    "float reduction",
    "own reduction",
    "task",
    "task on a condition",
    "task that stays serial inside",
    "task that spawns",
    "sync",
    "scope with a result",
    "loop of tasks",
    "loops that follow each other",
    "columns",
    "recursion that spawns",
    "call",
    "private memory",
    "atomic update",
    "lock",
    "team",
    "static loop",
    "chunked loop",
    "dynamic loop",
    "guided loop",
    "loops without a wait between them",
    "same iterations on the same rank",
    "barrier",
    "single",
    "single for all",
    "sum of each rank",
    "cell of each rank",
    "team's loop in a loop",
];

/// A random fork-join program.
#[derive(Clone, Debug)]
pub struct ForkJoinProgram {
    /// The functions.
    pub text: String,
    /// The function to call, without parameters, returning `i64`.
    pub function: String,
    /// The contents, of [`FORK_JOIN_FEATURES`].
    pub features: BTreeSet<&'static str>,
}

/// Returns the program of a seed.
pub fn fork_join_program(seed: u64) -> ForkJoinProgram {
    let random = Random::new(seed ^ 0x666f_726b);
    let mut writer = Writer::new(random, seed);
    let statements = 6 + writer.random.below(30);
    writer.tree();
    writer.helper(statements / 3);
    writer.main(statements);
    ForkJoinProgram {
        text: writer.out,
        function: format!("p_{seed}"),
        features: writer.features,
    }
}

/// The number of cells of a program, and of a helper's part.
const CELLS: u32 = 240;
const HELPER_CELLS: u32 = 12;
/// The number of sums that any code may add to, in any order: the first four are updated by [`UPDATES`],
/// the others under a lock; then a cell for each rank.
const SUMS: u32 = 6;
const RANKS: u32 = 64;
const UPDATES: [&str; 4] = ["add", "xor", "umax", "or"];
/// The maximum number of executions of a statement.
const EXECUTIONS_MAX: u32 = 3000;

/// Consecutive cells.
#[derive(Clone)]
struct Cells {
    base: String,
    cells: u32,
}

/// The distribution of cells to iterations.
#[derive(Clone, Copy)]
struct Distribution {
    count: u32,
    /// The number of cells per iteration.
    cells_per_iteration: u32,
}

/// The cells available to the statements of a region.
#[derive(Clone)]
struct CellAccess {
    own: Cells,
    open: Vec<Cells>,
    /// The number of executions.
    runs: u32,
    /// True if a stack slot would be allocated repeatedly.
    repeated: bool,
    /// True inside a parallel op: slots are private then.
    forked: bool,
    /// True if no code runs concurrently, for any caller.
    no_concurrency: bool,
}

impl CellAccess {
    /// Returns the view for code executed `times` as often, each time with separate own cells; `rest` may
    /// be read.
    fn subview(&self, own: Cells, rest: Option<Cells>, times: u32) -> CellAccess {
        let open = self.open.iter().cloned().chain(rest).collect();
        CellAccess {
            own,
            open,
            runs: self.runs * times.max(1),
            repeated: false,
            forked: true,
            no_concurrency: false,
        }
    }
}

struct Writer {
    random: Random,
    seed: u64,
    out: String,
    names: u32,
    /// Visible integers.
    values: Vec<String>,
    budget: u32,
    /// True if the helper may be called.
    helper: bool,
    features: BTreeSet<&'static str>,
}

impl Writer {
    fn new(random: Random, seed: u64) -> Self {
        Writer {
            random,
            seed,
            out: String::new(),
            names: 0,
            values: Vec::new(),
            budget: 0,
            helper: false,
            features: BTreeSet::new(),
        }
    }

    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }
    fn met(&mut self, feature: &'static str) {
        self.features.insert(feature);
    }
    fn one_in(&mut self, n: u32) -> bool {
        self.random.below(n) == 0
    }
    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }
    /// Emits an op with one result. Returns its name.
    fn define(&mut self, op: impl AsRef<str>) -> String {
        let name = self.name();
        let _ = writeln!(self.out, "{name} = {}", op.as_ref());
        name
    }
    /// Like [`Writer::define`], with the result visible in the rest of the region.
    fn define_visible(&mut self, op: impl AsRef<str>) {
        let name = self.define(op);
        self.values.push(name);
    }
    /// Returns a visible number, usually the latest.
    fn value(&mut self) -> String {
        match self.random.below(8) {
            0 => self.random.below(100).to_string(),
            1..=3 => self.values[self.values.len() - 1].clone(),
            _ => self.random.pick(&self.values).clone(),
        }
    }
    fn cell(&mut self, place: &Cells) -> String {
        let index = match self.random.below(3) {
            0 => {
                let value = self.value();
                self.define(format!("urem {value}, {}", place.cells))
            }
            _ => self.random.below(place.cells).to_string(),
        };
        self.define(format!("addr inbounds i64, {}, {index}", place.base))
    }
    fn condition(&mut self) -> String {
        let (a, b) = (self.value(), self.value());
        let test = *self.random.pick(&["slt", "eq", "ugt", "sge", "ne"]);
        self.define(format!("icmp {test} {a}, {b}"))
    }
    /// Emits a region's statements; their definitions end with the region.
    fn region(&mut self, view: &CellAccess, depth: u32) {
        let visible = self.values.len();
        self.block(view, depth);
        self.line("yield");
        self.values.truncate(visible);
    }

    // ---- functions -------------------------------------------------------------------------

    /// Emits `@tree`: splits cells in halves until two are left; the halves are tasks.
    fn tree(&mut self) {
        let seed = self.seed;
        let update = *self.random.pick(&["add", "xor", "mul"]);
        let (when, condition) = match self.random.below(3) {
            0 => ("when ", "%often"),
            _ => ("", ""),
        };
        let sync = if self.one_in(2) { "sync\n" } else { "" };
        let second = match self.random.below(2) {
            0 => "spawn {\n%y = call @tree(%q, %m, %b)\nstore %y, %other\nyield\n}\n",
            _ => "%y = call @tree(%q, %m, %b)\nstore %y, %other\n",
        };
        let text = format!(
            "func @tree(%own: ptr, %n: i64, %a: i64) -> i64 {{\n\
             %b = add %a, %n\n\
             %few = icmp ule %n, 2\n\
             %r = if %few -> i64 {{\n%c = load %own -> i64\n%d = mul %c, 31\n%e = add %d, %b\n\
             store %e, %own\nyield %e\n}} else {{\n\
             %h = udiv %n, 2\n%m = sub %n, %h\n%q = addr i64, %own, %h\n\
             %mine = alloca i64, 1\n%other = alloca i64, 1\n\
             %low = and %a, 3\n%often = icmp ne %low, 0\n\
             scope {{\nspawn {when}{condition} {{\n%x = call @tree(%own, %h, %b)\n\
             store %x, %mine\nyield\n}}\n{second}{sync}yield\n}}\n\
             %z = load %mine -> i64\n%w = load %other -> i64\n%s = {update} %z, %w\nyield %s\n}}\n\
             return %r\n}}\n"
        );
        self.out
            .push_str(&text.replace("@tree", &format!("@tree_{seed}")));
    }

    /// Emits `@helper(own, open, sums, a)`: statements in a separate function.
    fn helper(&mut self, statements: u32) {
        let seed = self.seed;
        self.line(format!(
            "func @helper_{seed}(%own: ptr, %open: ptr, %sums: ptr, %a: i64) -> i64 {{"
        ));
        let place = |base: &str| Cells {
            base: base.into(),
            cells: HELPER_CELLS,
        };
        self.values = vec!["%a".into()];
        let view = CellAccess {
            own: place("%own"),
            open: vec![place("%open")],
            runs: EXECUTIONS_MAX / 8,
            repeated: false,
            forked: false,
            no_concurrency: false,
        };
        self.statements(statements, &view);
        let result = self.value();
        self.line(format!("return {result}\n}}"));
        self.helper = true;
    }

    fn main(&mut self, statements: u32) {
        let all = SUMS + RANKS;
        self.line(format!(
            "func @p_{}() -> i64 {{\n%own = alloca [{CELLS} x i64], 1\n%open = alloca [{HELPER_CELLS} x i64], 1\n\
             %sums = alloca [{all} x i64], 1\n\
             for %i < {CELLS} {{\n%p = addr i64, %own, %i\n%u = mul %i, 7\nstore %u, %p\nyield\n}}\n\
             for %j < {HELPER_CELLS} {{\n%q = addr i64, %open, %j\n%w = mul %j, -3\nstore %w, %q\nyield\n}}\n\
             for %k < {all} {{\n%l = addr i64, %sums, %k\nstore 0, %l\nyield\n}}",
            self.seed
        ));
        self.values = vec!["11".into()];
        let view = CellAccess {
            own: Cells {
                base: "%own".into(),
                cells: CELLS,
            },
            open: vec![Cells {
                base: "%open".into(),
                cells: HELPER_CELLS,
            }],
            runs: 1,
            repeated: false,
            forked: false,
            no_concurrency: true,
        };
        self.statements(statements, &view);
        let mut result = self.value();
        for (base, cells) in [("%own", CELLS), ("%sums", all)] {
            let [k, s, p, w, m, n] = [0; 6].map(|_| self.name());
            result = self.define(format!(
                "for {k} < {cells} iter({s} = {result}) {{\n{p} = addr i64, {base}, {k}\n\
                 {w} = load {p} -> i64\n{m} = mul {s}, 31\n{n} = add {m}, {w}\nyield {n}\n}}"
            ));
        }
        self.line(format!("return {result}\n}}"));
    }

    /// Emits statements until the budget is spent.
    fn statements(&mut self, budget: u32, view: &CellAccess) {
        self.budget = budget;
        self.block(view, 4);
        while self.budget > 0 {
            self.block(view, 4);
        }
    }

    // ---- statements ------------------------------------------------------------------------

    fn block(&mut self, view: &CellAccess, depth: u32) {
        for _ in 0..=self.random.below(5) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement(view, depth);
        }
    }

    fn statement(&mut self, view: &CellAccess, depth: u32) {
        let forks = depth > 0 && view.runs * 4 <= EXECUTIONS_MAX;
        match self.random.below(if forks { 29 } else { 14 }) {
            0..=1 => self.arithmetic(),
            2 => self.float_arithmetic(),
            3..=5 => {
                let places = view.open.iter().chain([&view.own]).cloned();
                let places: Vec<Cells> = places.collect();
                let place = self.random.pick(&places).clone();
                let cell = self.cell(&place);
                self.define_visible(format!("load {cell} -> i64"));
            }
            6..=9 => {
                let cell = self.cell(&view.own);
                let value = self.value();
                self.line(format!("store {value}, {cell}"));
            }
            10 => self.update(),
            11 => self.locked(),
            12 => self.call(view),
            13 => self.slot(view, depth),
            14 => self.branch(view, depth),
            15 => self.counted(view, depth),
            16..=19 => self.parallel_loop(view, depth),
            20 | 21 => self.scope(view, depth),
            22 => self.loop_of_tasks(view, depth),
            23 | 24 => self.neighbours(view),
            25 => self.columns(view),
            _ => self.team(view, depth),
        }
    }

    fn arithmetic(&mut self) {
        let (a, b) = (self.value(), self.value());
        match self.random.below(8) {
            0 => {
                let b = self.define(format!("or {b}, 1"));
                self.define_visible(format!("udiv {a}, {b}"));
            }
            1 => {
                let by = 1 + self.random.below(20);
                self.define_visible(format!("lshr {a}, {by}"));
            }
            2 => {
                let test = self.condition();
                self.define_visible(format!("select {test}, {a}, {b}"));
            }
            _ => {
                let op = *self.random.pick(&["add", "sub", "mul", "xor", "and"]);
                self.define_visible(format!("{op} {a}, {b}"));
            }
        }
    }

    /// Returns a small integer as a float.
    fn small_float(&mut self) -> String {
        let value = self.value();
        let small = self.define(format!("and {value}, 1023"));
        self.define(format!("uitofp {small} -> f64"))
    }

    fn float_arithmetic(&mut self) {
        let (a, b) = (self.small_float(), self.small_float());
        let b = self.define(format!("fadd {b}, 0.75"));
        let op = *self.random.pick(&["fmul", "fdiv", "fsub"]);
        let value = self.define(format!("{op} {a}, {b}"));
        self.define_visible(format!("bitcast {value} -> i64"));
    }

    /// Emits an atomic update of a sum.
    fn update(&mut self) {
        self.met("atomic update");
        let which = self.random.below(UPDATES.len() as u32);
        let value = self.value();
        let cell = self.define(format!("addr i64, %sums, {which}"));
        let order = *self.random.pick(&["monotonic", "seq_cst", "acq_rel"]);
        let op = UPDATES[which as usize];
        self.define(format!("atomicrmw {op} {order} {cell}, {value}"));
    }

    /// Emits an update of a sum with a lock.
    fn locked(&mut self) {
        self.met("lock");
        let which = self.random.below(2);
        let value = self.value();
        let cell = self.define(format!("addr i64, %sums, {}", 4 + which));
        self.line(format!("critical \"lock_{}_{which}\" {{", self.seed));
        let old = self.define(format!("load {cell} -> i64"));
        let op = ["add", "xor"][which as usize];
        let new = self.define(format!("{op} {old}, {value}"));
        self.line(format!("store {new}, {cell}\nyield\n}}"));
    }

    fn call(&mut self, view: &CellAccess) {
        let value = self.value();
        let own = view.own.clone();
        let forks = view.runs * 8 <= EXECUTIONS_MAX;
        if self.helper && forks && own.cells >= HELPER_CELLS && self.one_in(2) {
            self.met("call");
            let open = self.random.pick(&view.open).clone();
            let open = match open.cells >= HELPER_CELLS {
                true => open.base,
                false => view.open[0].base.clone(),
            };
            let seed = self.seed;
            return self.define_visible(format!(
                "call @helper_{seed}({}, {open}, %sums, {value})",
                own.base
            ));
        }
        self.met("recursion that spawns");
        let cells = 1 + self.random.below(own.cells.min(60));
        let seed = self.seed;
        self.define_visible(format!("call @tree_{seed}({}, {cells}, {value})", own.base));
    }

    /// Emits stack memory used temporarily as own cells.
    fn slot(&mut self, view: &CellAccess, depth: u32) {
        if view.repeated {
            return self.arithmetic();
        }
        let private = if view.forked { "private " } else { "" };
        if view.forked {
            self.met("private memory");
        }
        let cells = 1 + self.random.below(6);
        let base = self.define(format!("alloca {private}[{cells} x i64], 1"));
        for i in 0..cells {
            let cell = self.define(format!("addr i64, {base}, {i}"));
            let value = self.value();
            self.line(format!("store {value}, {cell}"));
        }
        let view = CellAccess {
            own: Cells { base, cells },
            ..view.clone()
        };
        self.block(&view, depth);
        let cell = self.cell(&view.own);
        self.define_visible(format!("load {cell} -> i64"));
    }

    fn branch(&mut self, view: &CellAccess, depth: u32) {
        let condition = self.condition();
        let result = self.name();
        self.line(format!("{result} = if {condition} -> i64 {{"));
        for end in ["} else {", "}"] {
            let visible = self.values.len();
            self.block(view, depth - 1);
            let value = self.value();
            self.line(format!("yield {value}\n{end}"));
            self.values.truncate(visible);
        }
        self.values.push(result);
    }

    /// Emits a serial loop with a carried number.
    fn counted(&mut self, view: &CellAccess, depth: u32) {
        let (i, carried, result) = (self.name(), self.name(), self.name());
        let times = 1 + self.random.below(4);
        let start = self.value();
        self.line(format!(
            "{result} = for {i} < {times} iter({carried} = {start}) {{"
        ));
        let visible = self.values.len();
        self.values.extend([i, carried]);
        let view = CellAccess {
            runs: view.runs * times,
            repeated: true,
            ..view.clone()
        };
        self.block(&view, depth - 1);
        let value = self.value();
        self.line(format!("yield {value}\n}}"));
        self.values.truncate(visible);
        self.values.push(result);
    }

    // ---- cells -----------------------------------------------------------------------------

    /// Splits off the first `cells` of a place. Returns both parts.
    fn split(&mut self, place: &Cells, cells: u32) -> (Cells, Option<Cells>) {
        let rest = (cells < place.cells).then(|| Cells {
            base: self.define(format!("addr inbounds i64, {}, {cells}", place.base)),
            cells: place.cells - cells,
        });
        let base = place.base.clone();
        (Cells { base, cells }, rest)
    }

    /// Returns the maximum number of iterations, and the cells of each.
    fn distribution(&mut self, view: &CellAccess) -> Distribution {
        let most = match self.random.below(4) {
            0 => 60,
            1 => 3,
            _ => 12,
        };
        let most = most
            .min(EXECUTIONS_MAX / view.runs)
            .min(view.own.cells)
            .max(1);
        let count = 1 + self.random.below(most);
        let step = 1 + self.random.below((view.own.cells / count).min(16));
        Distribution {
            count,
            cells_per_iteration: step,
        }
    }

    /// Returns a number of iterations: `most`, or a value up to `most`.
    fn extent(&mut self, most: u32) -> String {
        if self.one_in(3) {
            self.met("extent not known");
            let value = self.value();
            return self.define(format!("urem {value}, {}", most + 1));
        }
        most.to_string()
    }

    /// Returns the cells of iteration `index`.
    fn iteration_cells(&mut self, own: &Cells, index: &str, cut: Distribution) -> Cells {
        let first = self.define(format!("mul {index}, {}", cut.cells_per_iteration));
        let base = self.define(format!("addr inbounds i64, {}, {first}", own.base));
        let cells = cut.cells_per_iteration;
        Cells { base, cells }
    }
}
