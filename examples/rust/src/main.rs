//! The rest position of a chain of springs under its weight, by Newton's method with conjugate gradients.
//!
//! `cargo gradus run` compiles and runs the program.
#![forbid(unsafe_code)]

/// A chain of masses between springs; the first mass hangs from the point 0.
struct Chain {
    stiffness: Vec<f64>,
    weight: f64,
}

impl Chain {
    /// Returns the energy at the positions `x`.
    #[gradus::reverse(d_energy, Duplicated, Const, Active)]
    fn energy(&self, x: &[f64]) -> f64 {
        let mut energy = 0.0;
        let mut above = 0.0;
        for (k, x) in self.stiffness.iter().zip(x) {
            let stretch = x - above - 1.0;
            energy += 0.5 * k * stretch * stretch + 0.1 * stretch.powi(4) - self.weight * x;
            above = *x;
        }
        energy
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves `H p = -g` by conjugate gradients; `product` multiplies by `H`.
fn solve(product: impl Fn(&[f64]) -> Vec<f64>, gradient: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; gradient.len()];
    let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut direction = residual.clone();
    for _ in 0..2 * gradient.len() {
        let square = dot(&residual, &residual);
        if square < 1e-24 {
            break;
        }
        let image = product(&direction);
        let step = square / dot(&direction, &image);
        for i in 0..solution.len() {
            solution[i] += step * direction[i];
            residual[i] -= step * image[i];
        }
        let turn = dot(&residual, &residual) / square;
        for i in 0..direction.len() {
            direction[i] = residual[i] + turn * direction[i];
        }
    }
    solution
}

fn main() {
    let chain = Chain {
        stiffness: (0..20).map(|i| 10.0 + i as f64).collect(),
        weight: 0.5,
    };
    let energy = |x: &[f64]| chain.energy(x);
    let mut x: Vec<f64> = (0..20).map(|i| 1.0 + i as f64).collect();
    for step in 0..20 {
        let (value, gradient) = gradus::value_and_grad(&energy, &x);
        let norm = dot(&gradient, &gradient).sqrt();
        println!("step {step}: energy {value:.6}, gradient {norm:.1e}");
        if norm < 1e-9 {
            println!("converged");
            break;
        }
        let newton = solve(|v| gradus::hvp(&energy, &x, v), &gradient);
        for (x, change) in x.iter_mut().zip(&newton) {
            *x += change;
        }
    }
    // The sensitivity of the energy at rest to the stiffness of each spring.
    let mut shadow = Chain {
        stiffness: vec![0.0; 20],
        weight: 0.0,
    };
    chain.d_energy(&mut shadow, &x, 1.0);
    println!("by stiffness of the first spring: {:.6}", shadow.stiffness[0]);
}
