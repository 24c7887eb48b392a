//! Random structured C functions `double f(int n, double *x, double s)` without undefined behaviour.
//!
//! Flow: this file emits a program's frame (globals, helpers, `f` itself) and tracks visible names;
//! `c_values` emits expressions, `c_statements` statements, `c_memory` statements on memory, `c_kept`
//! blocks that outlive calls in static pointers, `c_limits` code that the analyses must refuse, `c_retyped`
//! memory that holds pointers and floats in turn, `c_address_words` arithmetic with addresses in integers.
//!
//! Invariants: equal seeds give equal programs. `n` is [`CELLS`], and `x` has as many cells. Every number
//! in a variable or cell stays within ±2, and every partial derivative is finite. Every index is in bounds;
//! every loop ends; memory is written before being read. Static memory is set at the start of `f`, so that
//! `f` depends on its arguments only.

use super::{CELLS, Random};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A random C program.
#[derive(Clone, Debug)]
pub struct CProgram {
    /// The source, without includes; every global name ends in `_SEED`.
    pub source: String,
    /// The symbol of the function to be differentiated.
    pub function: String,
    /// The contents, for coverage tables.
    pub contents: BTreeSet<&'static str>,
    /// True if numbers pass through `float`, with seven digits.
    pub single: bool,
    /// The code with which the compiler must refuse a program without a derivative.
    pub refused_with: Option<&'static str>,
}

/// The includes that every program needs.
pub const C_INCLUDES: &str = "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n";

/// An array, or a pointer into one.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub name: String,
    /// Indices up to this mask are in bounds.
    pub mask: u32,
    /// True if the array is a whole object, without other visible pointers into it.
    pub is_whole_object: bool,
    /// True for an assignable pointer variable.
    pub variable: bool,
    /// True for a heap array whose pointer may be swapped with another.
    pub heap: bool,
}

/// The visible names at a point, and the text written.
pub(super) struct Writer<'r> {
    pub random: &'r mut Random,
    /// Separate random numbers for `c_kept`, so that the rest of a seed's program does not depend on it.
    pub kept: Random,
    pub out: String,
    pub contents: BTreeSet<&'static str>,
    pub single: bool,
    /// See [`CProgram::refused_with`].
    pub refused_with: Option<&'static str>,
    pub seed: u64,
    names: u32,
    /// Readable expressions: variables, fields.
    pub floats: Vec<String>,
    /// Assignable expressions among `floats`.
    pub assignable: Vec<String>,
    pub ints: Vec<String>,
    /// Counters from 0 to less than [`CELLS`].
    pub counters: Vec<String>,
    pub arrays: Vec<Array>,
    /// Structure variables.
    pub structs: Vec<String>,
    /// Functions `double h(int n, double *x, double s)`.
    pub helpers: Vec<String>,
    pub budget: u32,
    /// The number of enclosing loops.
    pub loops: u32,
    /// True if `goto out` and `return` are permitted.
    pub exits: bool,
    /// True if `break` leaves a loop here (not a switch).
    pub in_loop: bool,
}

/// The numbers of visible names, for restoring at the end of a scope.
pub(super) struct Mark([usize; 6]);

/// Returns the program of a seed, of roughly `statements` statements.
pub fn c_program(seed: u64, statements: u32) -> CProgram {
    let mut random = Random::new(seed ^ 0x00c0_ffee);
    let mut writer = Writer {
        random: &mut random,
        kept: Random::new(seed ^ 0x000b_10c5),
        out: String::new(),
        contents: BTreeSet::new(),
        single: false,
        refused_with: None,
        seed,
        names: 0,
        floats: Vec::new(),
        assignable: Vec::new(),
        ints: Vec::new(),
        counters: Vec::new(),
        arrays: Vec::new(),
        structs: Vec::new(),
        helpers: Vec::new(),
        budget: 0,
        loops: 0,
        exits: false,
        in_loop: false,
    };
    writer.file_scope();
    writer.kept_blocks();
    for _ in 0..writer.random.below(3) {
        writer.helper(statements / 3);
    }
    if writer.chance(5) {
        writer.recursive(statements / 4);
    }
    let function = format!("f_{seed}");
    writer.intrinsics_function();
    writer.registered_functions();
    writer.limit_function();
    writer.retyped_function();
    writer.address_words_function();
    writer.root(&function, statements);
    CProgram {
        source: writer.out,
        function,
        contents: writer.contents,
        single: writer.single,
        refused_with: writer.refused_with,
    }
}

impl Writer<'_> {
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }
    /// Returns a new name.
    pub fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }
    /// Returns true once in `n` times.
    pub fn chance(&mut self, n: u32) -> bool {
        self.random.below(n) == 0
    }
    pub fn note(&mut self, what: &'static str) {
        self.contents.insert(what);
    }
    pub fn mark(&self) -> Mark {
        Mark([
            self.floats.len(),
            self.assignable.len(),
            self.ints.len(),
            self.counters.len(),
            self.arrays.len(),
            self.structs.len(),
        ])
    }
    pub fn back(&mut self, mark: &Mark) {
        let Mark([floats, places, ints, counters, arrays, structs]) = *mark;
        self.floats.truncate(floats);
        self.assignable.truncate(places);
        self.ints.truncate(ints);
        self.counters.truncate(counters);
        self.arrays.truncate(arrays);
        self.structs.truncate(structs);
    }
    /// Adds a variable that holds a float.
    pub fn variable(&mut self, name: String) {
        self.floats.push(name.clone());
        self.assignable.push(name);
    }

    fn file_scope(&mut self) {
        let seed = self.seed;
        let _ = write!(
            self.out,
            "struct pair_{seed} {{ double a; int k; double b; }};\n\
             struct big_{seed} {{ double a; double v[2]; int k; float c; double b; }};\n\
             struct two_{seed} {{ double a; double b; }};\n\
             struct mixed_{seed} {{ float a; int k; }};\n\
             struct node_{seed} {{ double a; struct node_{seed} *next; double b; }};\n\
             static double g_{seed}[{CELLS}]; static double gs_{seed};\n\
             static inline uint64_t bits_{seed}(double d) {{ uint64_t u; memcpy(&u, &d, 8); return u; }}\n\
             static inline double num_{seed}(uint64_t u) {{ double d; memcpy(&d, &u, 8); return d; }}\n\
             __attribute__((noinline)) static double big_use_{seed}(struct big_{seed} q, double s) {{ q.a = 0.5 * q.a * s; return 0.3 * q.a + 0.2 * q.v[q.k & 1] * q.b + 0.1 * s; }}\n\
             static struct two_{seed} two_make_{seed}(double a, double b) {{ struct two_{seed} t = {{0.5 * a * b, sin(a)}}; return t; }}\n\
             __attribute__((noinline)) static struct mixed_{seed} mixed_make_{seed}(struct mixed_{seed} m, double a) {{ m.a = (float)(0.5 * m.a + 0.4 * a); m.k = m.k + 1; return m; }}\n\
             __attribute__((noinline)) static void swap_{seed}(struct pair_{seed} *p, struct pair_{seed} *q) {{ struct pair_{seed} t = *p; *p = *q; *q = t; p->a = 0.5 * t.a * q->b; }}\n"
        );
    }

    /// Sets the visible names at the start of a function's body.
    fn begin_function(&mut self, budget: u32) {
        self.floats = vec!["s".into()];
        self.assignable = vec!["s".into()];
        self.ints = vec!["n".into()];
        self.counters.clear();
        let parameter = |name: String, own| Array {
            name,
            mask: 7,
            is_whole_object: own,
            variable: false,
            heap: false,
        };
        self.arrays = vec![
            parameter("x".into(), false),
            parameter(format!("g_{}", self.seed), false),
        ];
        self.structs.clear();
        self.budget = budget;
        self.loops = 0;
        self.in_loop = false;
    }

    fn body(&mut self, depth: u32) {
        while self.budget > 0 {
            self.block(depth);
        }
    }

    fn helper(&mut self, budget: u32) {
        let name = format!("h{}_{}", self.helpers.len(), self.seed);
        let inline = ["static", "__attribute__((noinline)) static"];
        let inline = *self.random.pick(&inline);
        self.note(if inline == "static" {
            "helper"
        } else {
            "helper, noinline"
        });
        self.line(format!(
            "{inline} double {name}(int n, double *x, double s) {{"
        ));
        self.begin_function(budget);
        self.exits = false;
        self.line("double r = 0.25;");
        self.variable("r".into());
        self.local_array();
        self.note_addresses();
        self.body(1);
        let result = self.bounded();
        self.line(format!("return 0.5 * r + 0.4 * ({result}); }}"));
        self.helpers.push(name);
    }

    /// Emits a recursive function with at most two calls of itself, and depth three.
    fn recursive(&mut self, budget: u32) {
        self.note("recursion");
        let name = format!("rec_{}", self.seed);
        self.line(format!(
            "__attribute__((noinline)) static double {name}(int n, double *x, double s) {{\n\
             if (n <= 0) return 0.5 * s + 0.25 * x[2];\nint d = (n & 3) - 1; double r = 0.5 * s;"
        ));
        self.begin_function(budget);
        self.exits = false;
        self.variable("r".into());
        self.body(1);
        let (a, b) = (self.bounded(), self.bounded());
        self.line(format!("r = 0.5 * {name}(d, x, {a}) + 0.3 * r;"));
        if self.chance(2) {
            let condition = self.condition();
            self.line(format!(
                "if ({condition}) r = 0.5 * r * {name}(d - 1, x, {b});"
            ));
        }
        self.line("return r; }");
        self.helpers.push(name);
    }

    fn root(&mut self, name: &str, budget: u32) {
        self.line(format!("double {name}(int n, double *x, double s) {{"));
        self.begin_function(budget);
        self.exits = true;
        let seed = self.seed;
        self.line(format!(
            "double r = 0.5 * s;\ngs_{seed} = s;\nfor (int i = 0; i < {CELLS}; i++) g_{seed}[i] = 0.1 * i;"
        ));
        self.variable("r".into());
        self.variable(format!("gs_{seed}"));
        self.call_intrinsics();
        self.through_registered();
        self.call_limit_function();
        self.call_retyped_function();
        self.call_address_words_function();
        let heap = self.chance(2);
        if heap {
            self.heap_arrays();
        }
        self.local_array();
        if self.chance(2) {
            self.local_array();
        }
        self.note_addresses();
        self.read_table();
        self.use_workspace();
        let frees: Vec<String> = self
            .arrays
            .iter()
            .filter(|a| a.heap)
            .map(|a| a.name.clone())
            .collect();
        let mark = self.mark();
        self.line("{");
        self.body(3);
        let last = self
            .floats
            .iter()
            .rev()
            .take(4)
            .cloned()
            .collect::<Vec<_>>();
        for value in last {
            self.line(format!("r = 0.6 * r + 0.3 * {value};"));
        }
        self.line("}");
        self.back(&mark);
        self.line("out:;");
        let a = self.cell();
        self.line(format!("r = 0.6 * r + 0.3 * {a};"));
        self.add_limit();
        self.add_retyped();
        self.add_address_words();
        for name in frees {
            self.line(format!("free({name});"));
        }
        self.line("return r;\n}");
    }
}
