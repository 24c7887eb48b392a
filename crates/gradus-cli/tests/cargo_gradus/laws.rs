//! A library of pair potentials: a trait, generic functions, and derivatives of instances that the program chooses.

/// A pair potential.
pub trait Potential {
    fn energy(&self, stretch: f64) -> f64;
}

pub struct Quadratic {
    pub stiffness: f64,
}

impl Potential for Quadratic {
    fn energy(&self, stretch: f64) -> f64 {
        0.5 * self.stiffness * stretch * stretch
    }
}

pub struct Morse {
    pub depth: f64,
    pub widths: Vec<f64>,
}

impl Potential for Morse {
    fn energy(&self, stretch: f64) -> f64 {
        let wells = self.widths.iter();
        wells
            .map(|width| self.depth * (1.0 - (-width * stretch).exp()).powi(2))
            .sum()
    }
}

/// The energy of a chain.
#[gradus::reverse(d_chain, Const, Duplicated, Active)]
#[gradus::forward(t_chain, Const, Dual, Dual)]
#[gradus::reverse(d_law, Duplicated, Const, Active)]
pub fn chain<P: Potential>(law: &P, x: &[f64]) -> f64 {
    x.windows(2).map(|w| law.energy(w[1] - w[0] - 1.0)).sum()
}

pub mod first {
    #[gradus::reverse(d_same, Active, Active)]
    pub fn same(x: f64) -> f64 {
        x * x
    }
}

pub mod second {
    #[gradus::reverse(d_same, Active, Active)]
    pub fn same(x: f64) -> f64 {
        x.sin()
    }
}
