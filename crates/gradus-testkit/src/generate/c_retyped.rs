//! Statements of random C programs on memory that holds pointers, floats and integers at different times: unions
//! and arenas. Pointers in variadic arguments.
//!
//! Every fourth program has one such function. A phase sets the slots to values of one kind or of several kinds, later
//! phases read the slots by the kind of the last phase, and between them bytes of the slots move.

use super::Random;
use super::c::Writer;

/// Kind of values that the slots hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slots {
    Undefined,
    Links,
    Numbers,
    Pairs,
    Marks,
    /// Addresses in odd slots, floats in even slots.
    Mixed,
    /// Addresses in the slots whose entry of `k` is one, integers or floats in the others, as only the run knows.
    Tagged,
}

/// Accessors of a slot of a union.
const UNION: &str = "typedef union { R number; const R *link; R pair[2]; int mark; } slot_S;
    I void set_number_S(slot_S *t, int i, R v) { t[i].number = v; }
    I void set_second_S(slot_S *t, int i, R v) { t[i].pair[1] = v; }
    I void set_link_S(slot_S *t, int i, const R *v) { t[i].link = v; }
    I void set_mark_S(slot_S *t, int i, int v) { t[i].mark = v; }
    I R number_S(slot_S *t, int i) { return t[i].number; }
    I R second_S(slot_S *t, int i) { return t[i].pair[1]; }
    I const R *link_S(slot_S *t, int i) { return t[i].link; }
    I int mark_S(slot_S *t, int i) { return t[i].mark; }";

/// Accessors of an arena, whose arrays begin at one address. Integers have the size of the floats.
const ARENA: &str = "typedef char slot_S;
    I void set_number_S(char *t, int i, R v) { ((R *)t)[i] = v; }
    I void set_second_S(char *t, int i, R v) { ((R *)t)[8 + i] = v; }
    I void set_link_S(char *t, int i, const R *v) { ((const R **)t)[i] = v; }
    I void set_mark_S(char *t, int i, int v) { ((W *)t)[i] = v; }
    I R number_S(char *t, int i) { return ((R *)t)[i]; }
    I R second_S(char *t, int i) { return ((R *)t)[8 + i]; }
    I const R *link_S(char *t, int i) { return ((const R **)t)[i]; }
    I int mark_S(char *t, int i) { return (int)((W *)t)[i]; }";

/// Functions `double variadic_S(int n, ...)` that read pointers from their variadic arguments.
const VARIADIC: [&str; 2] = [
    "__attribute__((noinline)) static double variadic_S(int n, ...) {
    __builtin_va_list l; double u = 0; __builtin_va_start(l, n);
    for (int i = 0; i < n; i++) { const double *p = __builtin_va_arg(l, const double *); u += *p * *p; }
    __builtin_va_end(l); return u; }",
    "static double variadic_S(int n, ...) {
    __builtin_va_list l, m; double u = 0; __builtin_va_start(l, n); __builtin_va_copy(m, l);
    while (n-- > 0) { double *p = __builtin_va_arg(m, double *); u += 0.5 * *p; *p = u; }
    __builtin_va_end(m); __builtin_va_end(l); return u; }",
];

impl Writer<'_> {
    fn has_retyped_memory(&self) -> bool {
        self.seed % 4 == 1
    }

    /// Emits the function `retyped_SEED(n, x, s)`.
    pub fn retyped_function(&mut self) {
        if !self.has_retyped_memory() {
            return;
        }
        let seed = self.seed;
        let mut random = Random::new(seed ^ 0x0072_6574);
        let text = match seed / 4 % 4 {
            3 => {
                self.note("pointers in variadic arguments");
                let (a, b) = *random.pick(&[("&a", "&b"), ("&a", "x + 1"), ("x + n / 2", "&b")]);
                format!(
                    "{}\nstatic double retyped_S(int n, double *x, double s) {{ double a = x[0] * s, b = x[1] * x[2]; return 0.2 * variadic_S(2, {a}, {b}); }}",
                    random.pick(&VARIADIC)
                )
            }
            kind => {
                let real = *random.pick(&["float", "double"]);
                self.single |= real == "float";
                let inline = *random.pick(&["static inline", "__attribute__((noinline)) static"]);
                let is_arena = kind == 2;
                self.note(match is_arena {
                    true => "pointers, floats and integers in an arena",
                    false => "pointers, floats and integers in a union",
                });
                let accessors = if is_arena { ARENA } else { UNION };
                let moves = Moves::of(is_arena, real);
                let phases = phases(&mut random, is_arena, moves);
                let (block, end) = match random.below(3) {
                    0 if !is_arena => ("slot_S t[8];", ""),
                    _ => ("slot_S *t = malloc(16 * sizeof(double));", "free(t);"),
                };
                let text = format!(
                    "{accessors}\nstatic double retyped_S(int n, double *x, double s) {{ R y[8], u = 0; int k[8] = {{0}};\n\
                     for (int i = 0; i < 8; i++) y[i] = (R)(0.4 * x[i] + 0.02 * i * s);\n\
                     {block}\n{phases}{end} return tanh(u); }}"
                );
                let word = if real == "float" { "int " } else { "long " };
                text.replace("W ", word)
                    .replace("R ", &format!("{real} "))
                    .replace("(R)", &format!("({real})"))
                    .replace("I ", &format!("{inline} "))
            }
        };
        self.line(text.replace("_S", &format!("_{seed}")));
    }

    /// Emits the call at the start of `f`, where the arguments are active.
    pub fn call_retyped_function(&mut self) {
        if self.has_retyped_memory() {
            let seed = self.seed;
            self.line(format!("double retyped = retyped_{seed}(n, x, s);"));
        }
    }

    /// Emits the use of the call's result at the end of `f`.
    pub fn add_retyped(&mut self) {
        if self.has_retyped_memory() {
            self.line("r = 0.5 * r + 0.3 * retyped;");
        }
    }
}

/// Returns phases in random order, possibly in a loop.
fn phases(random: &mut Random, is_arena: bool, moves: Moves) -> String {
    let mut text = String::new();
    let loops = random.below(2) == 0;
    if loops {
        text.push_str("for (int round = 0; round < 3; round++) {\n");
    }
    let mut slots = Slots::Undefined;
    for _ in 0..4 + random.below(6) {
        let body = phase(random, &mut slots, is_arena);
        text.push_str(&format!("for (int i = 0; i < 8; i++) {{ {body} }}\n"));
        if slots != Slots::Undefined && random.below(3) == 0 {
            text.push_str(&moves.text(random, slots));
        }
        if random.below(2) == 0 {
            text.push_str("u = (R)0.8 * u / ((R)1 + u * u);\n");
        }
    }
    if loops {
        text.push_str("}\n");
    }
    text
}

/// Returns the body of a loop over the slots, and sets the kind of their values.
fn phase(random: &mut Random, slots: &mut Slots, is_arena: bool) -> String {
    let place = *random.pick(&["i", "7 - i", "(i * 3 + 2) & 7"]);
    let number = *random.pick(&[
        "3 * y[i]",
        "y[i] * y[7 - i]",
        "(R)0.5 * u + y[i]",
        "y[i] * i",
    ]);
    let reads = *slots != Slots::Undefined && random.below(2) == 0;
    if !reads {
        *slots = match random.below(if is_arena { 5 } else { 8 }) {
            0 | 1 => Slots::Links,
            2 => Slots::Numbers,
            3 => Slots::Pairs,
            4 => Slots::Marks,
            5 => Slots::Mixed,
            _ => Slots::Tagged,
        };
        return match slots {
            Slots::Links => format!("set_link_S(t, i, y + ({place}));"),
            // The loop clears the whole block in its first iteration.
            Slots::Numbers if random.below(3) == 0 => format!(
                "if (i == 0) memset(t, 0, 16 * sizeof(R)); set_number_S(t, i, number_S(t, i) + {number});"
            ),
            Slots::Numbers => format!("set_number_S(t, i, {number});"),
            Slots::Pairs => {
                format!("set_number_S(t, i, {number}); set_second_S(t, i, y[{place}]);")
            }
            Slots::Marks => format!("set_mark_S(t, i, {place});"),
            Slots::Tagged if random.below(2) == 0 => format!(
                "k[i] = i * n / 3 & 1; if (k[i]) set_link_S(t, i, y + ({place})); else set_mark_S(t, i, {place});"
            ),
            Slots::Tagged => format!(
                "k[i] = (i * n / 3 & 1) + 2; if (k[i] & 1) set_link_S(t, i, y + ({place})); else set_number_S(t, i, {number});"
            ),
            Slots::Mixed | Slots::Undefined => format!(
                "if (i & 1) set_link_S(t, i, y + ({place})); else set_number_S(t, i, {number});"
            ),
        };
    }
    match slots {
        Slots::Links if random.below(3) == 0 => {
            "y[i] = (R)0.5 * *link_S(t, i) * *link_S(t, 7 - i) + (R)0.1;".into()
        }
        Slots::Links => format!("u += (R)0.1 * *link_S(t, i) * *link_S(t, {place});"),
        Slots::Numbers if random.below(3) == 0 => {
            "set_number_S(t, i, (R)0.5 * number_S(t, i) / (1 + number_S(t, i) * number_S(t, i)));"
                .into()
        }
        Slots::Numbers => format!("u += (R)0.1 * number_S(t, {place}) * y[i];"),
        Slots::Pairs => format!("u += (R)0.1 * number_S(t, i) * second_S(t, {place});"),
        Slots::Marks => "u += (R)0.1 * y[mark_S(t, i)] * y[i];".into(),
        Slots::Tagged => {
            "u += (R)0.1 * (k[i] & 1 ? *link_S(t, i) : k[i] ? number_S(t, i) : y[mark_S(t, i)]) * y[i];".into()
        }
        Slots::Mixed | Slots::Undefined => {
            "u += (R)0.1 * (i & 1 ? *link_S(t, i) : number_S(t, i)) * y[i];".into()
        }
    }
}

/// Moves of slots as bytes.
#[derive(Clone, Copy)]
enum Moves {
    /// Slots have one size for all kinds, in bytes of C: rotations are possible.
    Slots(&'static str),
    /// The size of a slot depends on the kind: the block moves as a whole.
    Block,
}

impl Moves {
    fn of(is_arena: bool, real: &str) -> Moves {
        match (is_arena, real) {
            (false, _) => Moves::Slots("sizeof *t"),
            (true, "double") => Moves::Slots("8"),
            (true, _) => Moves::Block,
        }
    }

    /// Returns a statement that moves slots so that reads by kind stay valid.
    fn text(self, random: &mut Random, slots: Slots) -> String {
        let bytes = match self {
            Moves::Slots(bytes) if slots != Slots::Tagged => bytes,
            _ => "",
        };
        match random.below(if bytes.is_empty() { 2 } else { 4 }) {
            0 => "{ char c[8 * sizeof(double)]; memcpy(c, t, sizeof c); memcpy(t, c, sizeof c); }\n".into(),
            1 => "{ char *c = malloc(8 * sizeof(double)); memcpy(c, t, 8 * sizeof(double)); memset(t, 0, 8 * sizeof(double)); memcpy(t, c, 8 * sizeof(double)); free(c); }\n".into(),
            2 => format!(
                "{{ char c[32], *b = (char *)t; memcpy(c, b, 2 * {bytes}); memmove(b, b + 2 * {bytes}, 6 * {bytes}); memcpy(b + 6 * {bytes}, c, 2 * {bytes}); }}\n"
            ),
            _ => format!(
                "for (int i = 0; i < 4; i++) {{ char c[16], *b = (char *)t + i * {bytes}; memcpy(c, b, {bytes}); memcpy(b, b + 4 * {bytes}, {bytes}); memcpy(b + 4 * {bytes}, c, {bytes}); }}\n"
            ),
        }
    }
}
