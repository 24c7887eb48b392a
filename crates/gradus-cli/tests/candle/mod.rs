//! What candle's kernels should compute: the types of their elements, and how results are compared.

pub mod elementwise;
pub mod places;
pub mod quantized;
pub mod rows;

use std::collections::BTreeMap;

/// A type of elements.
#[derive(Clone, Copy)]
pub struct Type {
    /// How names of kernels end.
    pub suffix: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Half the distance between neighbours, relative to them; and an absolute part of errors.
    Float { relative: f64, absolute: f64 },
    /// Eight bits, which hold nothing beyond 448.
    Eight,
    /// As many bits without a sign; 64 are not filled here.
    Integer { bits: i32 },
}

const fn float(suffix: &'static str, relative: f64, absolute: f64) -> Type {
    let kind = Kind::Float { relative, absolute };
    Type { suffix, kind }
}

const fn integer(suffix: &'static str, bits: i32) -> Type {
    let kind = Kind::Integer { bits };
    Type { suffix, kind }
}

pub const F32: Type = float("f32", 1e-6, 1e-6);
pub const F64: Type = float("f64", 1e-13, 1e-13);
pub const F16: Type = float("f16", 1.0 / 2000.0, 1e-7);
pub const BF16: Type = float("bf16", 1.0 / 250.0, 1e-30);
pub const F8: Type = Type {
    suffix: "f8_e4m3",
    kind: Kind::Eight,
};
/// The same type under the other name that candle has for it.
pub const FP8: Type = Type {
    suffix: "fp8_e4m3",
    kind: Kind::Eight,
};
pub const U8: Type = integer("u8", 8);
pub const U32: Type = integer("u32", 32);
pub const I16: Type = integer("i16", 64);
pub const I32: Type = integer("i32", 64);
pub const I64: Type = integer("i64", 64);

impl Type {
    /// Whether elements are integers.
    pub fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Integer { .. })
    }

    /// The inputs of the programs: each type holds them exactly.
    pub fn input(self, count: usize, seed: usize) -> Vec<f64> {
        let at = |i: usize| ((i * 37 + seed * 11) % 31) as f64;
        let number = |k: f64| match self.kind {
            Kind::Integer { .. } => k,
            _ => (k - 15.0) / 8.0,
        };
        (0..count).map(|i| number(at(i))).collect()
    }

    /// What is expected under a name, computed with one rounding at the end.
    pub fn expects(self, name: &str, values: Vec<f64>) -> Expected {
        self.within(name, values, 1.0)
    }

    /// The same, with so many times the error.
    pub fn within(self, name: &str, values: Vec<f64>, times: f64) -> Expected {
        let (values, relative, absolute) = match self.kind {
            Kind::Float { relative, absolute } => (values, relative, absolute),
            Kind::Eight => {
                // A largest number, no infinities.
                let held = values.into_iter().map(|x| x.clamp(-448.0, 448.0));
                (held.collect(), 1.01 / 16.0, 1.01 / 1024.0)
            }
            Kind::Integer { bits: 64 } => (values, 0.0, 0.0),
            Kind::Integer { bits } => {
                let around = values.iter().map(|x| x.rem_euclid(2f64.powi(bits)));
                (around.collect(), 0.0, 0.0)
            }
        };
        let times = if times > 1.0 { times } else { 1.0 };
        Expected {
            name: format!("{name}_{}", self.suffix),
            is: Is::Near {
                values,
                relative: relative * times,
                absolute: (absolute * times).max(if times > 1.0 { relative * times } else { 0.0 }),
            },
        }
    }
}

/// What a line of a program should say.
pub struct Expected {
    pub name: String,
    pub is: Is,
}

/// What holds of a line's numbers.
pub enum Is {
    /// They are these, with errors of so much.
    Near {
        values: Vec<f64>,
        relative: f64,
        absolute: f64,
    },
    /// They hold, in words.
    Such(Box<dyn Fn(&[f64]) -> bool>),
}

impl Expected {
    /// Exactly these numbers under this name.
    pub fn exact(name: String, values: Vec<f64>) -> Expected {
        let is = Is::Near {
            values,
            relative: 0.0,
            absolute: 0.0,
        };
        Expected { name, is }
    }

    /// Also one off.
    pub fn or_one_off(mut self) -> Expected {
        if let Is::Near { absolute, .. } = &mut self.is {
            *absolute = absolute.max(1.0);
        }
        self
    }
}

/// Compares all lines with all that is expected.
pub fn compare(said: &str, expected: &[Expected]) {
    let mut lines = BTreeMap::new();
    for line in said.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().expect("a name");
        let numbers: Vec<f64> = words
            .map(|word| word.parse().unwrap_or_else(|_| panic!("{line}")))
            .collect();
        assert!(
            lines.insert(name, numbers).is_none(),
            "{name} is said twice"
        );
    }
    for Expected { name, is } in expected {
        let got = lines.remove(name.as_str());
        let got = got.unwrap_or_else(|| panic!("{name} is not said"));
        match is {
            Is::Such(holds) => assert!(holds(&got), "{name}: {got:?}"),
            Is::Near {
                values,
                relative,
                absolute,
            } => {
                assert_eq!(got.len(), values.len(), "{name}");
                for (i, (&got, &value)) in got.iter().zip(values).enumerate() {
                    let near = (got - value).abs() <= relative * value.abs() + absolute;
                    let same = near || got == value || (got.is_nan() && value.is_nan());
                    assert!(same, "{name}[{i}]: {got}, and not {value}");
                }
            }
        }
    }
    assert!(lines.is_empty(), "nobody expects {:?}", lines.keys());
}
