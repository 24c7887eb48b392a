//! Functions called by iterations.

use super::{ARRAY_CELLS, View, Writer};

impl Writer {
    /// Emits the functions; early inlining is random.
    pub(super) fn functions(&mut self) {
        let kinds = ["static", "static __attribute__((noinline))"];
        let [weighted, rowsum, fill] = [0; 3].map(|_| *self.random.pick(&kinds));
        let seed = self.seed;
        let view = |read: &[&str], numbers: &[&str]| View {
            index: "i".into(),
            read: read.iter().map(|a| a.to_string()).collect(),
            own: Vec::new(),
            numbers: numbers.iter().map(|a| a.to_string()).collect(),
            adds: false,
            reduced: None,
            row: None,
        };
        // `at` is the program's index array; functions have their own.
        let places = format!("static const int at[{ARRAY_CELLS}] = {{3, 1, 4, 1, 5, 9, 2, 6}};");
        let plain = view(&["p"], &["t"]);
        let own = self.number(&plain, 1);
        let more = self.number(&view(&["p", "q"], &["t", "own[1]", "own[2]"]), 2);
        self.line(format!(
            "{weighted} double weighted_{seed}(const double *p, const double *q, int i, double t) {{\n{places}\n\
             double own[3] = {{p[i], q[(i * 7) % {ARRAY_CELLS}], {own}}}, u = 0;\n\
             for (int k = 0; k < 3; k++) u += 0.2 * own[k] * own[(k + i) % 3] * (k + t);\n\
             return 0.5 * tanh(u) + 0.3 * ({more}); }}"
        ));
        let term = self.number(&view(&["p"], &["t", "u"]), 1);
        self.line(format!(
            "{rowsum} double rowsum_{seed}(const double *p, int i, double t) {{\n{places}\n\
             double u = 0.2 * t; for (int k = 0; k <= i % 4; k++) u += 0.2 * p[(i + k * 5) % {ARRAY_CELLS}] * ({term});\n\
             return sin(u); }}"
        ));
        let first = self.number(&plain, 1);
        let second = self.number(&plain, 2);
        self.line(format!(
            "{fill} void fill_{seed}(double *o, const double *p, int i, double t) {{\n{places}\n\
             *o = 0.5 * *o * ({first}) + 0.3 * ({second}); }}"
        ));
        let step = self.number(&plain, 1);
        self.line(format!(
            "static double deeper_{seed}(const double *p, int depth, int i, double t) {{\n{places}\n\
             if (depth == 0) return 0.5 * t + 0.3 * p[i];\n\
             return 0.6 * sin(deeper_{seed}(p, depth - 1, (i + 5) % {ARRAY_CELLS}, 0.7 * t)) + 0.3 * ({step}); }}"
        ));
        self.line(format!(
            "static __attribute__((noinline)) void locked_{seed}(double *p, double t) {{\n\
             #pragma omp critical\n*p += t; }}"
        ));
        self.line(format!(
            "static double halves_{seed}(const double *p, int n, double t) {{\n\
             if (n < 6) {{ double u = 0; for (int i = 0; i < n; i++) u += 0.2 * sin(p[i] * t); return u; }}\n\
             double first, second;\n#pragma omp task shared(first)\nfirst = halves_{seed}(p, n / 2, t);\n\
             second = halves_{seed}(p + n / 2, n - n / 2, t);\n#pragma omp taskwait\n\
             return 0.5 * first * second + 0.4 * first; }}"
        ));
    }
}
