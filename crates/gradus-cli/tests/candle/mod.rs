//! Expected results of candle's kernels: element types and tolerances.

pub mod elementwise;
pub mod places;
pub mod quantized;
pub mod rows;

use std::collections::BTreeMap;

/// An element type.
#[derive(Clone, Copy)]
pub struct Type {
    /// The suffix of kernel names.
    pub suffix: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Half the relative distance between neighbours; and an absolute part of the error.
    Float { relative: f64, absolute: f64 },
    /// 8-bit float with a maximum of 448.
    Eight,
    /// Unsigned integer of `bits` bits; 64 bits never overflow here.
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
/// The type under another name used by candle.
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
    /// Returns true for integer types.
    pub fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Integer { .. })
    }

    /// Returns the inputs of the programs, exactly representable in each type.
    pub fn input(self, count: usize, seed: usize) -> Vec<f64> {
        let at = |i: usize| ((i * 37 + seed * 11) % 31) as f64;
        let number = |k: f64| match self.kind {
            Kind::Integer { .. } => k,
            _ => (k - 15.0) / 8.0,
        };
        (0..count).map(|i| number(at(i))).collect()
    }

    /// Returns the expectation for a name, computed with a single rounding at the end.
    pub fn expects(self, name: &str, values: Vec<f64>) -> Expected {
        self.within(name, values, 1.0)
    }

    /// Like [`Type::expects`], with `times` the error.
    pub fn within(self, name: &str, values: Vec<f64>, times: f64) -> Expected {
        let (values, relative, absolute) = match self.kind {
            Kind::Float { relative, absolute } => (values, relative, absolute),
            Kind::Eight => {
                // Saturates at the maximum; no infinities.
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
            is: Condition::Near {
                values,
                relative: relative * times,
                absolute: (absolute * times).max(if times > 1.0 { relative * times } else { 0.0 }),
            },
        }
    }
}

/// The expectation for a line of a program's output.
pub struct Expected {
    pub name: String,
    pub is: Condition,
}

/// The condition on a line's numbers.
pub enum Condition {
    /// Near these numbers, with these errors.
    Near {
        values: Vec<f64>,
        relative: f64,
        absolute: f64,
    },
    /// A predicate on the numbers.
    Predicate(Box<dyn Fn(&[f64]) -> bool>),
}

impl Expected {
    /// Expects exactly these numbers.
    pub fn exact(name: String, values: Vec<f64>) -> Expected {
        let is = Condition::Near {
            values,
            relative: 0.0,
            absolute: 0.0,
        };
        Expected { name, is }
    }

    /// Permits an error of 1.
    pub fn or_one_off(mut self) -> Expected {
        if let Condition::Near { absolute, .. } = &mut self.is {
            *absolute = absolute.max(1.0);
        }
        self
    }
}

/// Compares all lines with all expectations.
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
            Condition::Predicate(holds) => assert!(holds(&got), "{name}: {got:?}"),
            Condition::Near {
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
