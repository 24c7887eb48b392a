//! x86 intrinsics in random C programs, each compared with a C equivalent. If any lane differs, the
//! program's result is NaN, and every check of the program detects it.

use super::Random;
use super::c::Writer;

/// An intrinsic's name, the number of lanes, true for single precision, and the value of each lane in terms
/// of `a`, `b` and `c` at `I`, for even and for odd lanes.
type Instruction = (&'static str, u32, bool, &'static str, &'static str);

// table
const INSTRUCTIONS: &[Instruction] = &[
    (
        "haddpd256(a, b)",
        4,
        false,
        "a[I] + a[I + 1]",
        "b[I - 1] + b[I]",
    ),
    (
        "hsubpd256(a, b)",
        4,
        false,
        "a[I] - a[I + 1]",
        "b[I - 1] - b[I]",
    ),
    ("addsubpd256(a, b)", 4, false, "a[I] - b[I]", "a[I] + b[I]"),
    (
        "vfmaddsubpd256(a, b, c)",
        4,
        false,
        "__builtin_fma(a[I], b[I], -c[I])",
        "__builtin_fma(a[I], b[I], c[I])",
    ),
    (
        "blendvpd256(a, b, c)",
        4,
        false,
        "(__builtin_signbit(c[I]) ? b[I] : a[I])",
        "(__builtin_signbit(c[I]) ? b[I] : a[I])",
    ),
    (
        "minpd256(a, b)",
        4,
        false,
        "(a[I] < b[I] ? a[I] : b[I])",
        "(a[I] < b[I] ? a[I] : b[I])",
    ),
    (
        "maxpd256(a, b)",
        4,
        false,
        "(a[I] > b[I] ? a[I] : b[I])",
        "(a[I] > b[I] ? a[I] : b[I])",
    ),
    (
        "roundpd256(a, 1)",
        4,
        false,
        "__builtin_floor(a[I])",
        "__builtin_floor(a[I])",
    ),
    (
        "minsd(a, b)",
        2,
        false,
        "(a[I] < b[I] ? a[I] : b[I])",
        "a[I]",
    ),
    (
        "maxsd(a, b)",
        2,
        false,
        "(a[I] > b[I] ? a[I] : b[I])",
        "a[I]",
    ),
    ("addsubps(a, b)", 4, true, "a[I] - b[I]", "a[I] + b[I]"),
    (
        "minps(a, b)",
        4,
        true,
        "(a[I] < b[I] ? a[I] : b[I])",
        "(a[I] < b[I] ? a[I] : b[I])",
    ),
];

impl Writer<'_> {
    /// Returns true if the program of this seed has a function with intrinsics. The decision draws no
    /// random number, and leaves other programs unchanged.
    fn has_intrinsics(&self) -> bool {
        cfg!(target_arch = "x86_64") && self.seed % 8 == 5
    }

    /// Emits a function of floats that applies some intrinsics in sequence.
    pub fn intrinsics_function(&mut self) {
        if !self.has_intrinsics() {
            return;
        }
        let seed = self.seed;
        let mut random = Random::new(seed ^ 0x6c61_6e65);
        let single = random.below(4) == 0;
        self.single |= single;
        let mut fitting: Vec<&Instruction> = INSTRUCTIONS.iter().collect();
        let narrow = random.below(3) == 0;
        fitting.retain(|(_, lanes, float, ..)| {
            *float == single && (single || (*lanes == 2) == narrow)
        });
        let lanes = fitting[0].1;
        let number = if single { "float" } else { "double" };
        let bytes = if single { 4 } else { 8 } * lanes;
        self.line(format!(
            "typedef {number} lanes_{seed} __attribute__((vector_size({bytes})));\n\
             __attribute__((noinline, target(\"avx,fma\"))) static double through_lanes_{seed}(const double *x, double s) {{\n\
             lanes_{seed} a, b, c, d; double r = 0;\n\
             for (int i = 0; i < {lanes}; i++) {{ a[i] = x[i]; b[i] = x[7 - i]; c[i] = s - x[i + 2]; }}"
        ));
        for _ in 0..1 + random.below(4) {
            let (call, _, _, even, odd) = *random.pick(&fitting);
            self.line(format!("d = __builtin_ia32_{call};"));
            for lane in 0..lanes {
                let text = if lane % 2 == 0 { even } else { odd };
                let text = text
                    .replace("I + 1", &(lane + 1).to_string())
                    .replace("I - 1", &lane.saturating_sub(1).to_string())
                    .replace('I', &lane.to_string());
                let weight = 0.1 + 0.17 * f64::from(lane);
                self.line(format!(
                    "if (d[{lane}] != ({number})({text})) return 0.0 / 0.0;\n\
                     r += {weight:.2} * d[{lane}] * d[{lane}];"
                ));
            }
            let next = *random.pick(&["a = 0.5 * b; b = d;", "c = b; b = a; a = 0.5 * d;"]);
            let next = match single {
                true => next.replace("0.5", "0.5f"),
                false => next.into(),
            };
            self.line(next);
        }
        self.line("return tanh(r);\n}");
    }

    /// Emits the call.
    pub fn call_intrinsics(&mut self) {
        if self.has_intrinsics() {
            self.note("x86's lanes");
            let seed = self.seed;
            self.line(format!("r = 0.6 * r + 0.3 * through_lanes_{seed}(x, s);"));
        }
    }
}
