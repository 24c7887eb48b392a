//! Families of programs for `cargo xtask growth`. Each family has a function to differentiate and a
//! hand-written adjoint.

/// Family of programs.
pub struct Family {
    /// Name.
    pub name: &'static str,
    /// Smallest size.
    pub size: usize,
    /// Number of doublings of the size.
    pub doublings: u32,
    /// Returns the text of `double f(const double *x)` for a size.
    pub function: fn(usize) -> String,
    /// Returns the text of `void f_adj(const double *restrict x, double *restrict x_adj, double r_adj)`.
    pub by_hand: fn(usize) -> String,
}

/// All families.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "straight line",
        size: 500,
        doublings: 2,
        function: straight,
        by_hand: straight_by_hand,
    },
    Family {
        name: "calls",
        size: 250,
        doublings: 2,
        function: calls,
        by_hand: calls_by_hand,
    },
    Family {
        name: "branches",
        size: 250,
        doublings: 2,
        function: branches,
        by_hand: branches_by_hand,
    },
    Family {
        name: "exits",
        size: 800,
        doublings: 2,
        function: exits,
        by_hand: exits_by_hand,
    },
    Family {
        name: "early exits",
        size: 20_000,
        doublings: 0,
        function: exits,
        by_hand: exits_by_hand,
    },
    Family {
        name: "deep calls",
        size: 5000,
        doublings: 0,
        function: calls,
        by_hand: calls_by_hand,
    },
];

const ADJOINT: &str = "f_adj(const double *restrict x, double *restrict x_adj, double r_adj)";

/// Returns a program that compares its gradient with a difference along one direction. `PRIMAL` omits the
/// gradient; `BY_HAND` selects the hand-written gradient.
pub fn program(family: &Family, n: usize) -> String {
    format!(
        "#include <math.h>\n#include <stdio.h>\n\n{}\n
#ifdef BY_HAND\n{}\n#endif\n{MAIN}",
        (family.function)(n),
        (family.by_hand)(n)
    )
}

const MAIN: &str = r#"
#ifdef PRIMAL
int main(void)
{
    double x[8] = {0.3, 0.1, 0.4, 0.15, 0.9, 0.2, 0.6, 0.5};
    printf("%.17g\n", f(x));
}
#else
extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);

int main(void)
{
    double x[8] = {0.3, 0.1, 0.4, 0.15, 0.9, 0.2, 0.6, 0.5}, x_adj[8] = {0}, up[8], down[8], along = 0;
    const double direction[8] = {1, -0.5, 0.3, 0.8, -0.2, 0.6, -0.9, 0.4}, h = 1e-5;
#ifdef BY_HAND
    f_adj(x, x_adj, 1);
#else
    __enzyme_autodiff((void *)f, enzyme_dup, x, x_adj);
#endif
    for (int i = 0; i < 8; i++) {
        along += x_adj[i] * direction[i];
        up[i] = x[i] + h * direction[i];
        down[i] = x[i] - h * direction[i];
    }
    const double difference = (f(up) - f(down)) / (2 * h);
    printf("gradient %.12g difference %.12g\n", along, difference);
    return fabs(along - difference) <= 1e-5 * fmax(1e-3, fabs(difference)) ? 0 : 1;
}
#endif
"#;

/// Returns n statements in sequence.
fn straight(n: usize) -> String {
    let mut text = String::from("double f(const double *x)\n{\n    double a = x[0], b = x[1];\n");
    for i in 0..n {
        text += &match i % 4 {
            0 => format!("    a = 0.6 * a * b + x[{}];\n", i % 8),
            1 => format!("    b = sin(b) + 0.3 * a * x[{}];\n", (i * 3) % 8),
            2 => format!("    a = a / (1.5 + b * b) + 0.1 * x[{}];\n", (i * 5) % 8),
            _ => "    b = 0.5 * (a + b);\n".to_owned(),
        };
    }
    text + "    return a + b;\n}\n"
}

fn straight_by_hand(n: usize) -> String {
    let mut text = format!("static void {ADJOINT}\n{{\n    const double a0 = x[0], b0 = x[1];\n");
    // Indices of the a and b that each statement reads.
    let (mut a, mut b, mut read) = (0, 0, Vec::new());
    for i in 0..n {
        read.push((a, b));
        let next = i + 1;
        text += &match i % 4 {
            0 => format!(
                "    const double a{next} = 0.6 * a{a} * b{b} + x[{}];\n",
                i % 8
            ),
            1 => format!(
                "    const double b{next} = sin(b{b}) + 0.3 * a{a} * x[{}];\n",
                (i * 3) % 8
            ),
            2 => format!(
                "    const double a{next} = a{a} / (1.5 + b{b} * b{b}) + 0.1 * x[{}];\n",
                (i * 5) % 8
            ),
            _ => format!("    const double b{next} = 0.5 * (a{a} + b{b});\n"),
        };
        if i % 2 == 0 { a = next } else { b = next }
    }
    text += "    double a_adj = r_adj, b_adj = r_adj, t;\n";
    for (i, (a, b)) in read.into_iter().enumerate().rev() {
        text += &match i % 4 {
            0 => format!(
                "    x_adj[{}] += a_adj;\n    b_adj += 0.6 * a{a} * a_adj;\n    a_adj *= 0.6 * b{b};\n",
                i % 8
            ),
            1 => format!(
                "    x_adj[{j}] += 0.3 * a{a} * b_adj;\n    a_adj += 0.3 * x[{j}] * b_adj;\n    b_adj *= cos(b{b});\n",
                j = (i * 3) % 8
            ),
            2 => format!(
                "    x_adj[{}] += 0.1 * a_adj;\n    t = 1.5 + b{b} * b{b};\n    a_adj /= t;\n    b_adj -= a_adj * a{a} / t * 2 * b{b};\n",
                (i * 5) % 8
            ),
            _ => "    b_adj *= 0.5;\n    a_adj += b_adj;\n".to_owned(),
        };
    }
    text + "    x_adj[0] += a_adj;\n    x_adj[1] += b_adj;\n}\n"
}

/// Returns a chain of n functions in which each function calls its predecessor.
fn calls(n: usize) -> String {
    let mut text = String::from(
        "__attribute__((noinline)) static double f0(const double *x) { return x[0] * x[1]; }\n",
    );
    for i in 1..=n {
        text += &format!(
            "__attribute__((noinline)) static double f{i}(const double *x) {{ return 0.9 * f{}(x) * x[{}] + sin(x[{}]); }}\n",
            i - 1,
            i % 8,
            (i * 3) % 8
        );
    }
    text + &format!("double f(const double *x) {{ return f{n}(x); }}\n")
}

fn calls_by_hand(n: usize) -> String {
    const ALONE: &str = "__attribute__((noinline)) static";
    let mut text = format!(
        "{ALONE} double forward0(const double *x, double *tape) {{ return x[0] * x[1]; }}
{ALONE} void return0(const double *x, double *x_adj, const double *tape, double r_adj) {{ x_adj[0] += x[1] * r_adj; x_adj[1] += x[0] * r_adj; }}\n"
    );
    for i in 1..=n {
        let (before, j, k) = (i - 1, i % 8, (i * 3) % 8);
        text += &format!(
            "{ALONE} double forward{i}(const double *x, double *tape) {{ return 0.9 * (tape[{i}] = forward{before}(x, tape)) * x[{j}] + sin(x[{k}]); }}
{ALONE} void return{i}(const double *x, double *x_adj, const double *tape, double r_adj) {{ x_adj[{j}] += 0.9 * tape[{i}] * r_adj; x_adj[{k}] += cos(x[{k}]) * r_adj; return{before}(x, x_adj, tape, 0.9 * x[{j}] * r_adj); }}\n"
        );
    }
    text + &format!(
        "static void {ADJOINT}\n{{\n    double tape[{}];\n    forward{n}(x, tape);\n    return{n}(x, x_adj, tape, r_adj);\n}}\n",
        n + 1
    )
}

/// Returns n branches with two arms in sequence.
fn branches(n: usize) -> String {
    let mut text = String::from("double f(const double *x)\n{\n    double a = x[0], b = x[1];\n");
    for i in 0..n {
        text += &format!(
            "    if (a > b * x[{}])\n        a = 0.4 * a * x[{}] + 0.1;\n    else\n        b = 0.7 * b + cos(a) * x[{}];\n",
            i % 8,
            (i * 3) % 8,
            (i * 5) % 8
        );
    }
    text + "    return a + b;\n}\n"
}

fn branches_by_hand(n: usize) -> String {
    let mut text = format!(
        "static void {ADJOINT}\n{{\n    double kept[{n}], a = x[0], b = x[1], a_adj, b_adj;\n    char yes[{n}];\n"
    );
    for i in 0..n {
        text += &format!(
            "    kept[{i}] = a;\n    yes[{i}] = a > b * x[{}];\n    if (yes[{i}])\n        a = 0.4 * a * x[{}] + 0.1;\n    else\n        b = 0.7 * b + cos(a) * x[{}];\n",
            i % 8,
            (i * 3) % 8,
            (i * 5) % 8
        );
    }
    text += "    a_adj = b_adj = r_adj;\n";
    for i in (0..n).rev() {
        text += &format!(
            "    if (yes[{i}]) {{\n        x_adj[{j}] += 0.4 * kept[{i}] * a_adj;\n        a_adj *= 0.4 * x[{j}];\n    }} else {{\n        x_adj[{k}] += cos(kept[{i}]) * b_adj;\n        a_adj -= sin(kept[{i}]) * x[{k}] * b_adj;\n        b_adj *= 0.7;\n    }}\n",
            j = (i * 3) % 8,
            k = (i * 5) % 8
        );
    }
    text + "    x_adj[0] += a_adj;\n    x_adj[1] += b_adj;\n}\n"
}

/// Returns n jumps to one label in sequence, the form of error handling in C: n nested regions.
fn exits(n: usize) -> String {
    let mut text = String::from("double f(const double *x)\n{\n    double a = x[0];\n");
    for i in 0..n {
        text += &format!(
            "    a = 0.5 * a + 0.1 * x[{}];\n    if (a > 100.0 + {i})\n        goto fail;\n",
            i % 8
        );
    }
    text + "    return a * a;\nfail:\n    return -a;\n}\n"
}

fn exits_by_hand(n: usize) -> String {
    let mut text = format!(
        "static void {ADJOINT}\n{{\n    double a = x[0], a_adj = -r_adj;\n    int done = {n};\n"
    );
    for i in 0..n {
        text += &format!(
            "    a = 0.5 * a + 0.1 * x[{}];\n    if (a > 100.0 + {i}) {{\n        done = {};\n        goto undo;\n    }}\n",
            i % 8,
            i + 1
        );
    }
    text += "    a_adj = 2 * a * r_adj;\nundo:\n    switch (done) {\n";
    for i in (0..n).rev() {
        text += &format!(
            "    case {}:\n        x_adj[{}] += 0.1 * a_adj;\n        a_adj *= 0.5;\n",
            i + 1,
            i % 8
        );
    }
    text + "    }\n    x_adj[0] += a_adj;\n}\n"
}
