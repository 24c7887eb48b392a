//! Derivatives by attributes and of closures, compared with differences and with each other. Every line of the output
//! holds a number with all digits: the profiles must agree.

use laws::{Morse, Potential, Quadratic, chain, d_chain, d_law, t_chain};

fn near(what: &str, found: f64, expected: f64, tolerance: f64) {
    println!("{what} {found:?}");
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1.0),
        "{what}: {found} in place of {expected}"
    );
}

/// Central differences of a function of a slice.
fn differences(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    let moved = |i: usize, by: f64| {
        let mut x = x.to_vec();
        x[i] += by;
        f(&x)
    };
    (0..x.len())
        .map(|i| (moved(i, 1e-6) - moved(i, -1e-6)) / 2e-6)
        .collect()
}

// The examples of the documentation of `std::autodiff`.

#[gradus::forward(rb_fwd1, Dual, Const, Dual)]
#[gradus::forward(rb_fwd2, Const, Dual, Dual)]
#[gradus::forward(rb_fwd3, Dual, Dual, Dual)]
#[gradus::reverse(rb_rev, Active, Active, Active)]
fn rosenbrock(x: f64, y: f64) -> f64 {
    (1.0 - x).powi(2) + 100.0 * (y - x.powi(2)).powi(2)
}

#[gradus::forward(rb_inp_fwd, Dual, Dual, Dual)]
#[gradus::reverse(rb_inp_rev, Active, Active, Duplicated)]
fn rosenbrock_inp(x: f64, y: f64, out: &mut f64) {
    *out = (1.0 - x).powi(2) + 100.0 * (y - x.powi(2)).powi(2);
}

fn documented_examples() {
    assert_eq!(rb_fwd1(1.0, 1.0, 3.0), (400.0, -800.0));
    assert_eq!(rb_fwd2(1.0, 3.0, 1.0), (400.0, 400.0));
    assert_eq!(rb_fwd3(1.0, 1.0, 3.0, 1.0), (400.0, -400.0));
    let (mut out, mut dout) = (0.0, 0.0);
    rb_inp_fwd(1.0, 1.0, 3.0, 1.0, &mut out, &mut dout);
    assert_eq!((out, dout), (400.0, -400.0));
    assert_eq!(rb_rev(1.0, 3.0, 1.0), (400.0, -800.0, 400.0));
    let (mut out, mut seed) = (0.0, 1.0);
    assert_eq!(rb_inp_rev(1.0, 3.0, &mut out, &mut seed), (-800.0, 400.0));
    assert_eq!(out, 400.0);
}

fn instances() {
    let x: Vec<f64> = (0..8)
        .map(|i| i as f64 * 1.1 + (i as f64).sin() * 0.2)
        .collect();
    let quadratic = Quadratic { stiffness: 3.0 };
    let morse = Morse {
        depth: 2.0,
        widths: vec![1.0, 0.5],
    };
    let v: Vec<f64> = (0..8).map(|i| (i as f64).cos()).collect();
    one_instance(&quadratic, &x, &v);
    one_instance(&morse, &x, &v);
    let mut shadow = Morse {
        depth: 0.0,
        widths: vec![0.0; 2],
    };
    d_law(&morse, &mut shadow, &x, 1.0);
    let of_law = |p: &[f64]| {
        let morse = Morse {
            depth: p[0],
            widths: p[1..].to_vec(),
        };
        chain(&morse, &x)
    };
    let expected = differences(of_law, &[2.0, 1.0, 0.5]);
    near("depth", shadow.depth, expected[0], 1e-7);
    near("width", shadow.widths[1], expected[2], 1e-7);
}

fn one_instance<P: Potential>(law: &P, x: &[f64], v: &[f64]) {
    let mut dx = vec![0.0; x.len()];
    let value = d_chain(law, x, &mut dx, 1.0);
    near("value", value, chain(law, x), 1e-14);
    let expected = differences(|x| chain(law, x), x);
    for (found, expected) in dx.iter().zip(&expected) {
        near("adjoint", *found, *expected, 1e-7);
    }
    let (_, tangent) = t_chain(law, x, v);
    let along = dx.iter().zip(v).map(|(a, b)| a * b).sum();
    near("tangent", tangent, along, 1e-12);
}

/// Arrays of constant length, single precision, several tangents.
#[gradus::reverse(d_norm, Duplicated, Active)]
#[gradus::forward(t_norm, 3, Dualv, Dual)]
fn norm<const N: usize>(x: &[f32; N]) -> f32 {
    x.iter().map(|a| a * a).sum::<f32>().sqrt()
}

#[gradus::forward(t_wave, 2, Dual, Const, Dualv, DualOnly)]
fn wave(x: f64, n: usize, y: &mut [f64]) -> f64 {
    for (i, y) in y.iter_mut().enumerate().take(n) {
        *y = (x * i as f64).sin();
    }
    y.iter().sum()
}

fn arrays() {
    let mut dx = [0.0; 2];
    assert_eq!(d_norm(&[3.0, 4.0], &mut dx, 1.0), 5.0);
    assert_eq!(dx, [0.6, 0.8]);
    let directions = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
    let (value, tangents) = t_norm(&[3.0, 4.0], &directions);
    assert_eq!((value, tangents), (5.0, [0.6, 0.8, 1.4]));
    let (mut y, mut dy) = ([0.0; 3], [0.0; 6]);
    let tangents = wave_tangents(&mut y, &mut dy);
    near("wave", tangents[1], 2.0 * tangents[0], 1e-14);
    near("wave", dy[4], 2.0 * 0.7f64.cos(), 1e-14);
}

fn wave_tangents(y: &mut [f64], dy: &mut [f64]) -> [f64; 2] {
    t_wave(0.7, [1.0, 2.0], 3, y, dy)
}

#[derive(Clone)]
struct Model {
    weights: Vec<f64>,
    bias: f64,
}

impl Model {
    #[gradus::reverse(d_loss, Duplicated, Const, Active)]
    fn loss(&self, data: &[(f64, f64)]) -> f64 {
        let mut sum = 0.0;
        for (x, y) in data {
            let mut value = self.bias;
            let mut power = 1.0;
            for weight in &self.weights {
                power *= x;
                value += weight * power;
            }
            sum += (value - y) * (value - y);
        }
        sum
    }
}

fn structures() {
    let model = Model {
        weights: vec![0.3, -0.2, 0.1],
        bias: 0.5,
    };
    let data: Vec<(f64, f64)> = (0..5)
        .map(|i| (i as f64 * 0.4, (i as f64).sqrt()))
        .collect();
    let mut shadow = Model {
        weights: vec![0.0; 3],
        bias: 0.0,
    };
    model.d_loss(&mut shadow, &data, 1.0);
    let of = |p: &[f64]| {
        let model = Model {
            weights: p[1..].to_vec(),
            bias: p[0],
        };
        model.loss(&data)
    };
    let expected = differences(of, &[0.5, 0.3, -0.2, 0.1]);
    near("bias", shadow.bias, expected[0], 1e-6);
    for (found, expected) in shadow.weights.iter().zip(&expected[1..]) {
        near("weight", *found, *expected, 1e-6);
    }
}

fn closures() {
    let weights = vec![0.5, 1.5, -1.0];
    let f = |x: &[f64]| {
        let terms = x.iter().enumerate();
        terms
            .map(|(i, a)| weights[i % 3] * a.powi(3))
            .sum::<f64>()
            .exp()
    };
    let x = [0.2, -0.4, 0.6, 0.1];
    let (value, gradient) = gradus::value_and_grad(&f, &x);
    near("value", value, f(&x), 1e-14);
    for (found, expected) in gradient.iter().zip(differences(f, &x)) {
        near("gradient", *found, expected, 1e-7);
    }
    let v = [1.0, 2.0, -1.0, 0.5];
    let (_, tangent) = gradus::jvp(&f, &x, &v);
    let along = gradient.iter().zip(&v).map(|(a, b)| a * b).sum();
    near("jvp", tangent, along, 1e-12);
    let along = |x: &[f64]| {
        let gradient = gradus::grad(&f, x);
        gradient.iter().zip(&v).map(|(a, b)| a * b).sum::<f64>()
    };
    let expected = differences(along, &x);
    for (found, expected) in gradus::hvp(&f, &x, &v).iter().zip(&expected) {
        near("hvp", *found, *expected, 1e-6);
    }
    let wide = gradus::jacobian(&|x: &[f64]| vec![x[0] * x[1], x[3].exp()], &x);
    near("jacobian", wide[0][1], 0.2, 1e-14);
    near("jacobian", wide[1][3], 0.1f64.exp(), 1e-14);
    let tall = gradus::jacobian(&|x: &[f64]| vec![x[0], x[1], x[0] * x[1]], &x[..2]);
    assert_eq!(tall, [[1.0, 0.0], [0.0, 1.0], [-0.4, 0.2]]);
    assert_eq!(
        gradus::grad(&|x: &[f32]| x[0] * x[1], &[2.0f32, 3.0]),
        [3.0, 2.0]
    );
}

fn main() {
    documented_examples();
    instances();
    arrays();
    structures();
    closures();
    assert_eq!(laws::first::d_same(3.0, 1.0), (9.0, 6.0));
    near(
        "sine",
        laws::second::d_same(3.0, 1.0).1,
        3.0f64.cos(),
        1e-15,
    );
}
