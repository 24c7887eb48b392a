//! Statements of random C programs at the limits of the analyses: memory that outlives the call, names that
//! alias, numbers that pass through text, constants of binary16.
//!
//! Every eighth program has one such statement. A program without a derivative states the code of its refusal;
//! a derivative without a refusal is a failure.

use super::Random;
use super::c::Writer;

/// Constants that binary16 rounds up, down, to even and to a subnormal number, with a factor for numbers of
/// ordinary size.
const HALVES: [(&str, &str); 6] = [
    ("0.3", "0.5"),
    ("0.7", "0.5"),
    ("2049.0", "2e-4"),
    ("2051.0", "2e-4"),
    ("65519.0", "1e-5"),
    ("3.3e-6", "1e5"),
];

/// Pairs of a statement that writes the number `%` as text, and an expression that reads the text.
const TEXTS: [(&str, &str); 3] = [
    ("snprintf(t, sizeof t, \"%.17g\", %);", "strtod(t, 0)"),
    ("sprintf(t, \"%a\", %);", "strtod(t, 0)"),
    (
        "double v = 0; sprintf(t, \"%.17g\", %); sscanf(t, \"%lf\", &v);",
        "v",
    ),
];

impl Writer<'_> {
    /// Emits the globals and functions of the statement, and the statement itself as the function
    /// `limit_SEED(n, x, s)`.
    pub fn limit_function(&mut self) {
        if self.seed % 8 != 7 {
            return;
        }
        let seed = self.seed;
        let mut random = Random::new(seed ^ 0x006c_696d);
        let inline = *random.pick(&["static", "__attribute__((noinline)) static"]);
        let head = format!("{inline} double limit_{seed}(int n, double *x, double s)");
        let kind = seed / 8 % 6;
        let text = match kind {
            0 => self.freed_in_loop(&mut random, &head),
            1 => self.external_globals(&head),
            2 => self.shared_block(&head),
            3 => self.given_address(&mut random, &head),
            4 => self.through_text(&mut random, &head),
            _ => {
                self.note("constant of binary16");
                let (number, factor) = *random.pick(&HALVES);
                let k = random.below(8);
                format!(
                    "{head} {{ double c = {number}; _Float16 h = (_Float16)c; return {factor} * (double)h * x[{k}] * s; }}"
                )
            }
        };
        self.line(text);
    }

    /// Emits the call at the start of `f`, where the arguments are active.
    pub fn call_limit_function(&mut self) {
        if self.seed % 8 == 7 {
            let seed = self.seed;
            self.line(format!("double limit = limit_{seed}(n, x, s);"));
        }
    }

    /// Emits the use of the call's result at the end of `f`: no statement overwrites the sum.
    pub fn add_limit(&mut self) {
        if self.seed % 8 == 7 {
            self.line("r = 0.5 * r + 0.3 * limit;");
        }
    }

    /// Returns a function with blocks in a static array, freed in a loop that runs as often as the allocating
    /// loop, or less often. In the second case a block outlives the call.
    fn freed_in_loop(&mut self, random: &mut Random, head: &str) -> String {
        let seed = self.seed;
        let (count, is_kept) = *random.pick(&[("n", false), ("n - 1", true), ("n / 2", true)]);
        match is_kept {
            false => self.note("freed in a loop"),
            true => {
                self.note("freed in a loop that may not run");
                self.refused_with = Some("Outlives");
            }
        }
        format!(
            "static double *rows_{seed}[8];\n\
             static void frees_{seed}(int m) {{ for (int i = 0; i < m; i++) free(rows_{seed}[i]); }}\n\
             {head} {{ double u = 0;\n\
             for (int i = 0; i < n; i++) rows_{seed}[i] = malloc(sizeof(double));\n\
             for (int i = 0; i < n; i++) *rows_{seed}[i] = 0.3 * x[i] * x[i];\n\
             for (int i = 0; i < n; i++) u += 0.2 * *rows_{seed}[i] * x[n - 1 - i];\n\
             frees_{seed}({count}); return tanh(u + s); }}"
        )
    }

    /// Returns a function that writes through one global with external linkage, and reads through another.
    fn external_globals(&mut self, head: &str) -> String {
        self.note("two external pointers");
        self.refused_with = Some("Outlives");
        let seed = self.seed;
        format!(
            "double *left_{seed}, *right_{seed};\n\
             void start_{seed}(int n) {{ left_{seed} = malloc(n * sizeof(double)); right_{seed} = malloc(n * sizeof(double)); }}\n\
             {head} {{ double u = 0;\n\
             for (int i = 0; i < n; i++) {{ left_{seed}[i] = 0.3 * x[i] * s; u += right_{seed}[i] * x[i]; }}\n\
             return u; }}"
        )
    }

    /// Returns a function that writes through one static pointer, and reads through another that holds the same
    /// block.
    fn shared_block(&mut self, head: &str) -> String {
        self.note("two pointers to one block");
        self.refused_with = Some("Outlives");
        let seed = self.seed;
        format!(
            "static double *left_{seed}, *right_{seed};\n\
             void start_{seed}(int n) {{ double *both = malloc(n * sizeof(double)); left_{seed} = both; right_{seed} = both; }}\n\
             {head} {{ double u = 0;\n\
             for (int i = 0; i < n; i++) {{ left_{seed}[i] = 0.3 * x[i] * s; u += right_{seed}[i] * x[i]; }}\n\
             return u; }}"
        )
    }

    /// Returns a function that writes through a pointer which an unknown callee returned, and reads a variable
    /// whose address an unknown callee received.
    fn given_address(&mut self, random: &mut Random, head: &str) -> String {
        self.note("address given to an unknown callee");
        self.refused_with = Some("Outlives");
        let seed = self.seed;
        let start = *random.pick(&[
            "testkit_keep(&own); other = testkit_kept();",
            "other = testkit_same(&own);",
        ]);
        let start = start.replace("own", &format!("own_{seed}"));
        let start = start.replace("other", &format!("other_{seed}"));
        format!(
            "void testkit_keep(double *); double *testkit_kept(void), *testkit_same(double *);\n\
             static double own_{seed}, *other_{seed};\n\
             void start_{seed}(void) {{ {start} }}\n\
             {head} {{ *other_{seed} = 0.3 * x[n & 3] * s; return own_{seed} + x[1]; }}"
        )
    }

    /// Returns a function in which a number becomes text and a number again.
    fn through_text(&mut self, random: &mut Random, head: &str) -> String {
        self.note("number through text");
        self.refused_with = Some("TextRoundTrip");
        let (write, read) = *random.pick(&TEXTS);
        // The placeholder is the last argument of the call that writes.
        let write = write.replacen(", %);", ", 0.4 * x[n & 3] * s);", 1);
        format!("{head} {{ char t[64]; {write} return {read} + x[2]; }}")
    }
}
