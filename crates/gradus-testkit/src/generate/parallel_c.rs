//! Random OpenMP programs `double f(int n, double *x, double s)`: the reverse passes of many iterations add
//! to shared memory, through functions, private arrays, and indirect loads.
//!
//! Flow: this file emits a program's frame and the sequence of its regions; `iterations` emits iterations;
//! `functions` emits their callees.
//!
//! Invariants: equal seeds give equal programs. Programs are race-free, with equal values for any number of
//! threads, except for the order of sums. `x` has [`super::CELLS`] cells, other arrays [`ARRAY_CELLS`]. Every
//! number in an array stays within ±2. In a region, some arrays are only read; in others each iteration
//! writes its own cells; shared sums are only added to.

mod functions;
mod iterations;

use super::{CELLS, Random};
use std::collections::BTreeSet;

/// The number of cells of each array, and of iterations of most loops; coprime to 5 and 7.
pub(super) const ARRAY_CELLS: u32 = 24;
/// The number of cells of an iteration over rows.
const ROW_CELLS: u32 = 4;

/// The features of random OpenMP programs.
// table
pub const PARALLEL_C_FEATURES: &[&str] = &[
    "loop",
    "schedule",
    "rows",
    "collapsed loops",
    "permuted cells",
    "loop in a loop of time",
    "region on a condition",
    "region with several loops",
    "loop without a wait",
    "single",
    "sum of each thread",
    "reduction",
    "extreme",
    "product",
    "atomic add",
    "critical add",
    "gather",
    "gather through memory",
    "uniform read",
    "update in place",
    "array of its own",
    "block of its own",
    "function",
    "function that fills",
    "function with a loop",
    "recursive function",
    "function that locks",
    "nested loop",
    "branch",
    "inner loop",
    "while loop",
    "private",
    "firstprivate",
    "lastprivate",
    "tasks",
    "loop of tasks",
    "level query",
];

/// A random OpenMP program.
#[derive(Clone, Debug)]
pub struct ParallelCProgram {
    /// The source, without includes; every global name ends in `_SEED`.
    pub source: String,
    /// The symbol of the function to be differentiated.
    pub function: String,
    /// The contents, of [`PARALLEL_C_FEATURES`].
    pub features: BTreeSet<&'static str>,
    /// The code with which the compiler must refuse a program without a derivative.
    pub refused_with: Option<&'static str>,
}

/// Returns the program of a seed.
pub fn parallel_c_program(seed: u64) -> ParallelCProgram {
    let mut writer = Writer {
        random: Random::new(seed ^ 0x0bad_cafe),
        out: String::new(),
        features: BTreeSet::new(),
        seed,
        names: 0,
    };
    writer.functions();
    writer.root();
    ParallelCProgram {
        source: writer.out,
        function: format!("f_{seed}"),
        refused_with: writer.features.contains("level query").then_some("OpenMp"),
        features: writer.features,
    }
}

struct Writer {
    random: Random,
    out: String,
    features: BTreeSet<&'static str>,
    seed: u64,
    names: u32,
}

/// The operator of a reduction.
#[derive(Clone, Copy)]
enum Reduction {
    Sum,
    Product,
    Greatest,
    Least,
}

/// The memory accessible to an iteration.
#[derive(Clone)]
struct View {
    /// The induction variable, from 0 to less than [`ARRAY_CELLS`].
    index: String,
    /// Arrays without concurrent writes.
    read: Vec<String>,
    /// Cells private to the iteration, as expressions.
    own: Vec<String>,
    /// Readable numbers.
    numbers: Vec<String>,
    /// True if sums may be added to with atomic operations and locks.
    adds: bool,
    /// The reduction variable to which iterations contribute.
    reduced: Option<(String, Reduction)>,
    /// The address of the iteration's row, if a nested parallel loop over it is permitted.
    row: Option<String>,
}

/// The program's arrays, besides `x`.
const ARRAYS: [&str; 4] = ["a", "b", "c", "d"];

impl Writer {
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
    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn root(&mut self) {
        let seed = self.seed;
        self.line(format!("double f_{seed}(int n, double *x, double s) {{"));
        self.line("double r = 0.3 * s, sum[4] = {0}, crit = 0;");
        let heap: Vec<bool> = ARRAYS.iter().map(|_| self.one_in(2)).collect();
        for (array, heap) in std::iter::zip(ARRAYS, &heap) {
            let memory = match heap {
                true => format!("double *{array} = malloc({ARRAY_CELLS} * sizeof(double));"),
                false => format!("double {array}[{ARRAY_CELLS}];"),
            };
            self.line(memory);
        }
        self.line(format!("int at[{ARRAY_CELLS}];"));
        let factor = 1 + self.random.below(9);
        self.line(format!(
            "for (int i = 0; i < {ARRAY_CELLS}; i++) {{ at[i] = i * {factor} % {ARRAY_CELLS} / 2;\n\
             a[i] = x[i % {CELLS}] * 0.5; b[i] = x[i * 3 % {CELLS}] * s * 0.3; c[i] = 0.1 * i - 1; d[i] = 0.2; }}"
        ));
        for _ in 0..2 + self.random.below(3) {
            self.region();
        }
        // Not a random number: other programs do not change.
        if seed % 20 == 13 {
            self.level_query();
        }
        self.line(format!(
            "for (int i = 0; i < {ARRAY_CELLS}; i++) r += 0.1 * a[i] * b[i] + 0.2 * sin(c[i]) + 0.1 * d[i];\n\
             for (int k = 0; k < 4; k++) r += 0.2 * tanh(sum[k]);\nr += 0.3 * tanh(crit);"
        ));
        for (array, heap) in std::iter::zip(ARRAYS, &heap) {
            if *heap {
                self.line(format!("free({array});"));
            }
        }
        self.line("return r;\n}");
    }

    /// Returns the arrays written here, and the arrays only read.
    fn written_and_read_arrays(&mut self) -> (Vec<String>, Vec<String>) {
        let mut written: Vec<String> = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let array = self.random.pick(&ARRAYS).to_string();
            if !written.contains(&array) {
                written.push(array);
            }
        }
        let read = ARRAYS.iter().map(|a| a.to_string());
        let read = read.filter(|a| !written.contains(a)).chain(["x".into()]);
        let read = read.collect();
        (written, read)
    }

    fn view(&self, index: &str, read: &[String]) -> View {
        View {
            index: index.into(),
            read: read.to_vec(),
            own: Vec::new(),
            numbers: vec!["s".into()],
            adds: true,
            reduced: None,
            row: None,
        }
    }

    /// Emits one or several parallel regions.
    fn region(&mut self) {
        match self.random.below(9) {
            0 => self.several_loops(),
            1 => self.thread_sums(),
            2 => {
                self.met("loop in a loop of time");
                let times = 2 + self.random.below(2);
                let name = self.name("t");
                self.line(format!(
                    "for (int {name} = 0; {name} < {times}; {name}++) {{"
                ));
                self.one_loop();
                self.line("}");
            }
            3 => {
                self.met("region on a condition");
                self.line("if (s + x[1] > -0.4) {");
                self.one_loop();
                self.line("}");
            }
            4 if self.one_in(2) => match self.one_in(2) {
                true => self.task_loop(),
                false => self.tasks(),
            },
            _ => self.one_loop(),
        }
    }

    fn schedule(&mut self) -> &'static str {
        let all = [
            "",
            "",
            " schedule(static)",
            " schedule(dynamic)",
            " schedule(guided)",
            " schedule(static, 2)",
            " schedule(dynamic, 3)",
        ];
        let schedule = *self.random.pick(&all);
        if !schedule.is_empty() {
            self.met("schedule");
        }
        schedule
    }

    /// Emits a loop with its own region, over random arrays.
    fn one_loop(&mut self) {
        self.met("loop");
        let (written, read) = self.written_and_read_arrays();
        self.loop_over(None, &written, &read);
    }

    /// Emits a parallel loop, or, given trailing clauses, a worksharing loop of the enclosing team.
    fn loop_over(&mut self, shared: Option<&str>, written: &[String], read: &[String]) {
        let index = self.name("i");
        let mut view = self.view(&index, read);
        let mut head = match shared {
            None => String::from("#pragma omp parallel for"),
            Some(_) => String::from("#pragma omp for"),
        };
        head.push_str(self.schedule());
        if self.one_in(3) {
            self.met("reduction");
            head.push_str(" reduction(+ : r)");
            view.reduced = Some(("r".into(), Reduction::Sum));
        }
        let combined = match view.reduced {
            None if shared.is_none() && self.one_in(4) => {
                Some(self.ordered_reduction(&mut head, &mut view))
            }
            _ => None,
        };
        head.push_str(shared.unwrap_or(""));
        let scalar = self.name("p");
        let clause = match self.random.below(6) {
            kind @ 0..3 if shared.is_none() => {
                Some(["private", "firstprivate", "lastprivate"][kind as usize])
            }
            _ => None,
        };
        if let Some(clause) = clause {
            self.met(clause);
            head.push_str(&format!(" {clause}({scalar})"));
            self.line(format!("{{ double {scalar} = 0.4 * s;"));
        }
        self.loop_head(&head, written, &mut view);
        if let Some(clause) = clause {
            // A private value carried between iterations would depend on the threads.
            if clause != "firstprivate" {
                let value = self.number(&view, 1);
                self.line(format!("{scalar} = 0.9 * {value};"));
            }
            view.numbers.push(scalar.clone());
        }
        self.iteration(&mut view, 3);
        self.line("}");
        match clause {
            Some("lastprivate") => self.line(format!("r += 0.1 * {scalar}; }}")),
            Some(_) => self.line("}"),
            None => {}
        }
        if let Some(number) = combined {
            self.line(format!("r += 0.2 * {number}; }}"));
        }
    }

    /// Adds a reduction whose derivative depends on the order of iterations; opens a block and returns the
    /// variable.
    fn ordered_reduction(&mut self, head: &mut String, view: &mut View) -> String {
        let (feature, operator, start, reduction) = match self.random.below(3) {
            0 => ("product", "*", "1", Reduction::Product),
            1 => ("extreme", "max", "-9", Reduction::Greatest),
            _ => ("extreme", "min", "9", Reduction::Least),
        };
        self.met(feature);
        let name = self.name("q");
        self.line(format!("{{ double {name} = {start};"));
        head.push_str(&format!(" reduction({operator} : {name})"));
        view.reduced = Some((name.clone(), reduction));
        name
    }

    /// Emits the loop's head up to the body, and sets the iteration's private cells.
    fn loop_head(&mut self, head: &str, written: &[String], view: &mut View) {
        let index = view.index.clone();
        let rows = ARRAY_CELLS / ROW_CELLS;
        match self.random.below(6) {
            0 => {
                self.met("rows");
                self.line(format!(
                    "{head}\nfor (int {index} = 0; {index} < {rows}; {index}++) {{"
                ));
                view.row = Some(format!("{} + {ROW_CELLS} * {index}", written[0]));
                for array in written {
                    let own =
                        (0..ROW_CELLS).map(|k| format!("{array}[{ROW_CELLS} * {index} + {k}]"));
                    view.own.extend(own);
                }
            }
            1 => {
                self.met("collapsed loops");
                let (outer, inner) = (self.name("o"), self.name("j"));
                self.line(format!(
                    "{head} collapse(2)\nfor (int {outer} = 0; {outer} < {rows}; {outer}++)\n\
                     for (int {inner} = 0; {inner} < {ROW_CELLS}; {inner}++) {{\n\
                     int {index} = {outer} * {ROW_CELLS} + {inner};"
                ));
                let own = written.iter().map(|a| format!("{a}[{index}]"));
                view.own.extend(own);
            }
            kind => {
                self.line(format!(
                    "{head}\nfor (int {index} = 0; {index} < {ARRAY_CELLS}; {index}++) {{"
                ));
                let place = match kind {
                    2 => {
                        self.met("permuted cells");
                        format!("({index} * 5 + 2) % {ARRAY_CELLS}")
                    }
                    _ => index.clone(),
                };
                let own = written.iter().map(|a| format!("{a}[{place}]"));
                view.own.extend(own);
            }
        }
    }

    /// Emits a region whose numbers depend on the level of nesting.
    fn level_query(&mut self) {
        self.met("level query");
        self.line(
            "#ifdef _OPENMP\nint omp_get_level(void);\n#else\n#define omp_get_level() 1\n#endif\n\
             #pragma omp parallel for\n\
             for (int i = 0; i < 8; i++) if (omp_get_level() == 1) a[i] = 0.5 * a[i] * s;",
        );
    }

    /// Emits a team with several loops, some with `nowait`, and a `single` part.
    fn several_loops(&mut self) {
        self.met("region with several loops");
        let (first, read) = (vec!["a".to_string()], ["b", "c", "x"].map(String::from));
        self.line("#pragma omp parallel\n{");
        let nowait = self.one_in(2);
        self.loop_over(Some(if nowait { " nowait" } else { "" }), &first, &read);
        // Code after `nowait` does not access memory written by the previous loop.
        let (second, read) = (vec!["d".to_string()], ["b", "c", "x"].map(String::from));
        if nowait {
            self.met("loop without a wait");
        }
        self.loop_over(Some(""), &second, &read);
        if self.one_in(2) {
            self.met("single");
            let view = self.view("0", &read);
            let value = self.number(&view, 2);
            self.line(format!(
                "#pragma omp single\n{{ a[3] = 0.5 * a[3] + 0.4 * d[5] * ({value}); }}"
            ));
        }
        if self.one_in(2) {
            let (third, read) = (vec!["c".to_string()], ["a", "d", "x"].map(String::from));
            self.loop_over(Some(""), &third, &read);
        }
        self.line("}");
    }

    /// Emits a region in which each thread sums its iterations and contributes the sum.
    fn thread_sums(&mut self) {
        self.met("sum of each thread");
        let (written, read) = self.written_and_read_arrays();
        let mine = self.name("mine");
        let index = self.name("i");
        self.line(format!(
            "#pragma omp parallel\n{{ double {mine} = 0;\n#pragma omp for\n\
             for (int {index} = 0; {index} < {ARRAY_CELLS}; {index}++) {{"
        ));
        let mut view = self.view(&index, &read);
        view.own = written.iter().map(|a| format!("{a}[{index}]")).collect();
        view.reduced = Some((mine.clone(), Reduction::Sum));
        self.iteration(&mut view, 3);
        let hand_over = match self.one_in(2) {
            true => "#pragma omp critical",
            false => "#pragma omp atomic",
        };
        self.line(format!("}}\n{hand_over}\nsum[1] += {mine}; }}"));
    }

    /// Emits a task loop, with all chunk clauses.
    fn task_loop(&mut self) {
        self.met("loop of tasks");
        let clauses = [
            "",
            " grainsize(5)",
            " grainsize(strict : 7)",
            " num_tasks(3)",
            " num_tasks(9) if(s > 0)",
            " grainsize(2) final(s > 0)",
        ];
        let clause = *self.random.pick(&clauses);
        let (written, read) = self.written_and_read_arrays();
        let index = self.name("i");
        self.line(format!(
            "#pragma omp parallel\n#pragma omp single\n#pragma omp taskloop{clause}\n\
             for (int {index} = 0; {index} < {ARRAY_CELLS}; {index}++) {{"
        ));
        let mut view = self.view(&index, &read);
        view.own = written.iter().map(|a| format!("{a}[{index}]")).collect();
        self.iteration(&mut view, 3);
        self.line("}");
    }

    fn tasks(&mut self) {
        self.met("tasks");
        let seed = self.seed;
        let read = self.random.pick(&ARRAYS).to_string();
        self.line(format!(
            "#pragma omp parallel\n#pragma omp single\nr += 0.2 * halves_{seed}({read}, {ARRAY_CELLS}, s);"
        ));
    }
}
