//! Custom derivatives in random C programs, registered in every form permitted by C.
//!
//! The registered derivative differs from the derivative of the functions' own code: floats pass through
//! integers without a derivative. Every check of the program detects a registration that was not read.

use super::Random;
use super::c::Writer;

/// Functions with the name of a known function, and their slope.
const LIKE: [(&str, &str); 3] = [
    ("sin", "cos(a)"),
    ("tanh", "(1.0 - tanh(a) * tanh(a))"),
    ("atan", "(1.0 / (1.0 + a * a))"),
];

/// The storage class of a registration, before its type and before its name.
const STORAGE: [(&str, &str); 6] = [
    ("", ""),
    ("static ", ""),
    ("const ", "const "),
    ("static const ", "const "),
    ("static ", "volatile "),
    ("__attribute__((aligned(32))) static ", "const "),
];

impl Writer<'_> {
    fn has_registrations(&self) -> bool {
        self.seed % 4 == 2
    }

    /// Emits registered functions: a function that resembles a known function or has custom derivatives,
    /// and an inactive function.
    pub fn registered_functions(&mut self) {
        if !self.has_registrations() {
            return;
        }
        let seed = self.seed;
        let mut random = Random::new(seed ^ 0x7265_6769);
        let (name, slope) = *random.pick(&LIKE);
        let form = random.below(5);
        let attribute = match form {
            0 => format!("enzyme_function_like(\"{name}\"), "),
            1 => format!("annotate(\"enzyme_function_like={name}\"), "),
            _ => String::new(),
        };
        let inactive = random.below(4);
        let off = *random.pick(&["enzyme_inactive, ", "annotate(\"gradus_inactive\"), "]);
        let off = if inactive == 0 { off } else { "" };
        self.line(format!(
            "static double cut_{seed}(double a) {{ return (double)(int64_t)(a * 0x1p50) * 0x1p-50; }}\n\
             __attribute__(({attribute}noinline)) static double like_{seed}(double a) {{ return cut_{seed}({name}(a)); }}\n\
             __attribute__(({off}noinline)) static double none_{seed}(double a) {{ return 0.4 + (a - cut_{seed}(a)); }}"
        ));
        let registration = |random: &mut Random, what: &str, functions: &[String]| {
            let (before, behind) = *random.pick(&STORAGE);
            let list: Vec<String> = functions.iter().map(|f| format!("(void *){f}")).collect();
            format!(
                "{before}void *{behind}__enzyme_{what}_{seed}[{}] = {{{}}};",
                list.len(),
                list.join(", ")
            )
        };
        let like = format!("like_{seed}");
        match form {
            0 | 1 => {}
            2 => {
                let names = [like, format!("\"{name}\"")];
                let line = registration(&mut random, "function_like", &names);
                self.line(line);
            }
            _ => {
                self.line(format!(
                    "static double aug_{seed}(double a) {{ return like_{seed}(a); }}\n\
                     static double rev_{seed}(double a, double d) {{ return d * {slope}; }}\n\
                     static double jvp_{seed}(double a, double t) {{ return t * {slope}; }}"
                ));
                let sweeps = [like.clone(), format!("aug_{seed}"), format!("rev_{seed}")];
                let forward = [like, format!("jvp_{seed}")];
                let lines = [
                    registration(&mut random, "register_gradient", &sweeps),
                    registration(&mut random, "register_derivative", &forward),
                ];
                lines.iter().for_each(|line| self.line(line));
            }
        }
        if inactive != 0 {
            let line = registration(&mut random, "inactivefn", &[format!("none_{seed}")]);
            self.line(line);
        }
    }

    /// Emits the calls.
    pub fn through_registered(&mut self) {
        if self.has_registrations() {
            self.note("registered derivatives");
            let seed = self.seed;
            self.line(format!(
                "r = 0.5 * r + 0.2 * like_{seed}(x[1] + s) + 0.3 * none_{seed}(x[2]) * x[0];"
            ));
        }
    }
}
