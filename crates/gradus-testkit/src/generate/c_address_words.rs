//! Statements of random C programs that compute with addresses in integers: cursors, tags, distances, tables.
//!
//! Every fourth program has one such function. All words of the table hold values of one kind: addresses in an array,
//! distances in this array, or addresses with tags in the lowest bits.

use super::Random;
use super::c::Writer;

/// Kind of the words in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Addresses,
    Distances,
    Tagged,
}

/// Declarations of the table `w` of eight words.
const TABLES: [(&str, &str); 4] = [
    ("W w[8];", ""),
    ("W *w = malloc(8 * sizeof *w);", "free(w);"),
    ("struct { double before; W w[8]; } own; W *w = own.w;", ""),
    ("union { W w[8]; char bytes[64]; } own; W *w = own.w;", ""),
];

/// Declarations of the array `y` of eight numbers.
const NUMBERS: [(&str, &str); 2] = [
    ("double y[8];", ""),
    ("double *y = malloc(8 * sizeof *y);", "free(y);"),
];

impl Writer<'_> {
    fn has_address_words(&self) -> bool {
        self.seed % 4 == 3
    }

    /// Emits the function `words_SEED(n, x, s)`.
    pub fn address_words_function(&mut self) {
        if !self.has_address_words() {
            return;
        }
        self.note("arithmetic with addresses in integers");
        let mut random = Random::new(self.seed ^ 0x0061_6464);
        let word = *random.pick(&["uintptr_t", "unsigned long", "long", "size_t"]);
        let (table, table_end) = *random.pick(&TABLES);
        let (numbers, numbers_end) = *random.pick(&NUMBERS);
        let mut kind = Words::Addresses;
        let mut phases = String::new();
        for _ in 0..4 + random.below(6) {
            phases.push_str(&phase(&mut random, &mut kind));
            phases.push('\n');
        }
        let text = format!(
            "static double words_S(int n, double *x, double s) {{ double u = 0; {numbers} {table}\n\
             for (int i = 0; i < 8; i++) {{ y[i] = 0.4 * x[i] + 0.02 * i * s; w[i] = (W)(y + (i * 3 + n) % 8); }}\n\
             {phases}{table_end} {numbers_end} return tanh(u); }}"
        );
        let text = text.replace("W ", &format!("{word} "));
        let text = text.replace("(W)", &format!("({word})"));
        self.line(text.replace("_S", &format!("_{}", self.seed)));
    }

    /// Emits the call at the start of `f`, where the arguments are active.
    pub fn call_address_words_function(&mut self) {
        if self.has_address_words() {
            let seed = self.seed;
            self.line(format!("double words = words_{seed}(n, x, s);"));
        }
    }

    /// Emits the use of the call's result at the end of `f`.
    pub fn add_address_words(&mut self) {
        if self.has_address_words() {
            self.line("r = 0.5 * r + 0.3 * words;");
        }
    }
}

/// Returns a loop over the words, and sets the kind of the words behind the loop.
fn phase(random: &mut Random, kind: &mut Words) -> String {
    let place = *random.pick(&["i", "7 - i", "(i * 3 + 2) & 7"]);
    if random.below(4) == 0 {
        return random.pick(&[
            "{ W first = w[0]; memmove(w, w + 1, 7 * sizeof *w); w[7] = first; }",
            "for (int i = 0; i < 4; i++) { W word = w[i]; w[i] = w[7 - i]; w[7 - i] = word; }",
            "{ W copy[8]; memcpy(copy, w, sizeof copy); for (int i = 0; i < 8; i++) w[i] = copy[(i * 3 + 1) & 7]; }",
        ])
        .to_string();
    }
    let (body, next) = match *kind {
        Words::Addresses => match random.below(8) {
            0 => ("w[i] -= (W)y;".into(), Words::Distances),
            1 => ("w[i] |= i & 7;".into(), Words::Tagged),
            5 => (format!("w[i] = 8 * ({place});"), Words::Distances),
            2 => (
                "w[i] = (W)y + (w[i] + 8 - (W)y) % 64;".into(),
                Words::Addresses,
            ),
            3 => (
                format!("*(double *)w[i] = 0.5 * y[{place}] + 0.1 * u;"),
                Words::Addresses,
            ),
            4 => (
                "for (W p = (W)y; p < w[i]; p += 8) u += 0.05 * *(double *)p;".into(),
                Words::Addresses,
            ),
            _ => (
                format!("u += 0.1 * *(double *)w[i] * y[{place}];"),
                Words::Addresses,
            ),
        },
        Words::Distances => match random.below(4) {
            0 => ("w[i] += (W)y;".into(), Words::Addresses),
            1 => (format!("w[i] = 8 * ({place});"), Words::Distances),
            _ => (
                format!("u += 0.1 * *(double *)((W)y + w[i]) * y[{place}];"),
                Words::Distances,
            ),
        },
        Words::Tagged => match random.below(4) {
            0 => ("w[i] &= ~(W)7;".into(), Words::Addresses),
            1 => ("w[i] ^= i & 3;".into(), Words::Tagged),
            _ => (
                format!("u += 0.02 * (double)(w[i] & 7) * *(double *)(w[i] & ~(W)7) * y[{place}];"),
                Words::Tagged,
            ),
        },
    };
    *kind = next;
    format!("for (int i = 0; i < 8; i++) {{ {body} }}")
}
