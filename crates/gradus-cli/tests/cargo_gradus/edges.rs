//! Uncommon functions: empty slices, recursion, panics, trait objects, allocation, `Result`, threads of control.

use std::panic::{AssertUnwindSafe, catch_unwind};

fn near(found: f64, expected: f64) {
    println!("{found:?}");
    assert!(
        (found - expected).abs() <= 1e-7 * expected.abs().max(1.0),
        "{found} in place of {expected}"
    );
}

#[gradus::reverse(d_power, Active, Const, Active)]
fn power(x: f64, n: u32) -> f64 {
    match n {
        0 => 1.0,
        n if n % 2 == 1 => x * power(x, n - 1),
        _ => power(x * x, n / 2),
    }
}

#[gradus::reverse(d_sum, Duplicated, Active)]
fn sum(x: &[f64]) -> f64 {
    match x {
        [] => 0.0,
        [first, rest @ ..] => first.sin() + sum(rest),
    }
}

#[gradus::reverse(d_checked, Duplicated, Const, Active)]
fn checked(x: &[f64], index: usize) -> f64 {
    let squares: Vec<f64> = x.iter().map(|a| a * a).collect();
    assert!(index < 100, "the index is large");
    squares[index]
}

trait Shape {
    fn area(&self, scale: f64) -> f64;
}
struct Disc(f64);
struct Square(f64);
impl Shape for Disc {
    fn area(&self, scale: f64) -> f64 {
        std::f64::consts::PI * (self.0 * scale).powi(2)
    }
}
impl Shape for Square {
    fn area(&self, scale: f64) -> f64 {
        (self.0 * scale).powi(2)
    }
}

#[gradus::reverse(d_total, Const, Active, Active)]
fn total(shapes: &[Box<dyn Shape>], scale: f64) -> f64 {
    shapes.iter().map(|shape| shape.area(scale)).sum()
}

/// Matrices of constant size.
#[gradus::reverse(d_trace, Duplicated, Duplicated, Active)]
fn trace<const N: usize, const M: usize>(a: &[[f64; M]; N], b: &[[f64; N]; M]) -> f64 {
    let mut sum = 0.0;
    for i in 0..N {
        for j in 0..M {
            sum += a[i][j] * b[j][i];
        }
    }
    sum
}

#[derive(Debug)]
struct Negative;

fn root(x: f64) -> Result<f64, Negative> {
    if x < 0.0 { Err(Negative) } else { Ok(x.sqrt()) }
}

#[gradus::reverse(d_roots, Duplicated, Active)]
fn roots(x: &Vec<f64>) -> f64 {
    let all: Result<Vec<f64>, Negative> = x.iter().map(|x| root(*x)).collect();
    match all {
        Ok(all) => all.iter().sum(),
        Err(Negative) => -1.0,
    }
}

/// A growing vector, sorted.
#[gradus::reverse(d_sorted, Duplicated, Active)]
fn sorted(x: &[f64]) -> f64 {
    let mut values = Vec::new();
    for (i, a) in x.iter().enumerate() {
        values.push(a * (i + 1) as f64);
    }
    values.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    let weights = values.iter().enumerate();
    weights.map(|(i, value)| value * (i + 7) as f64).sum()
}

struct Counter<T> {
    count: T,
}

impl<T: Copy + Into<f64>> Counter<T> {
    #[gradus::reverse(d_scaled, Const, Active, Active)]
    fn scaled(&self, x: f64) -> f64 {
        self.count.into() * x
    }
    #[gradus::forward(t_moved, Dual, Const)]
    fn moved(&mut self, by: T)
    where
        T: std::ops::AddAssign,
    {
        self.count += by;
    }
}

#[gradus::reverse(d_mixed, Const, Active, Duplicated, Const, ActiveOnly)]
pub fn mixed(_: &str, x: f64, out: &mut [f64], mut n: usize) -> f64 {
    n += 1;
    out[0] = x * x;
    x * n as f64
}

fn main() {
    assert_eq!(d_power(2.0, 10, 1.0), (1024.0, 5120.0));
    let mut dx: [f64; 0] = [];
    assert_eq!(d_sum(&[], &mut dx, 1.0), 0.0);
    assert_eq!(gradus::grad(&|x: &[f64]| x.iter().sum(), &[]), []);
    let mut dx = [0.0; 3];
    d_sum(&[0.1, 0.2, 0.3], &mut dx, 2.0);
    near(dx[2], 2.0 * 0.3f64.cos());

    let mut dx = [0.0; 2];
    assert_eq!(d_checked(&[1.0, 3.0], &mut dx, 1, 1.0), 9.0);
    let panics = |index: usize| {
        let mut dx = [0.0; 2];
        let run = AssertUnwindSafe(|| d_checked(&[1.0, 3.0], &mut dx, index, 1.0));
        catch_unwind(run).is_err()
    };
    assert!(panics(7) && panics(100) && !panics(0));
    let short = catch_unwind(|| d_sum(&[1.0], &mut [], 1.0)).expect_err("lengths differ");
    let short = short.downcast_ref::<String>().expect("a text");
    assert!(short.contains("the shadow of `x` has 0 elements"), "{short}");

    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Disc(1.0)), Box::new(Square(2.0))];
    let (value, derivative) = d_total(&shapes, 0.5, 1.0);
    near(derivative, 4.0 * value);

    let (a, b) = ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0; 3], [2.0; 3]]);
    let (mut da, mut db) = ([[0.0; 2]; 3], [[0.0; 3]; 2]);
    near(d_trace(&a, &mut da, &b, &mut db, 1.0), 33.0);
    assert_eq!((da[2], db[1]), ([1.0, 2.0], [2.0, 4.0, 6.0]));

    let mut dx = vec![0.0; 2];
    near(d_roots(&vec![4.0, 9.0], &mut dx, 1.0), 5.0);
    assert_eq!(dx, [0.25, 1.0 / 6.0]);
    let mut dx = vec![0.0; 2];
    near(d_roots(&vec![4.0, -9.0], &mut dx, 1.0), -1.0);
    assert_eq!(dx, [0.0, 0.0]);

    let mut dx = [0.0; 3];
    near(d_sorted(&[3.0, 1.0, 0.1], &mut dx, 1.0), 0.3 * 7.0 + 2.0 * 8.0 + 3.0 * 9.0);
    assert_eq!(dx, [9.0, 16.0, 21.0]);

    let mut counter = Counter { count: 2.0f32 };
    assert_eq!(counter.d_scaled(3.0, 1.0), (6.0, 2.0));
    let mut shadow = Counter { count: 1.0 };
    counter.t_moved(&mut shadow, 4.0);
    assert_eq!((counter.count, shadow.count), (6.0, 1.0));

    let (mut out, mut dout) = ([0.0], [1.0]);
    assert_eq!(d_mixed("", 3.0, &mut out, &mut dout, 1, 1.0), 8.0);
    assert_eq!(out, [9.0]);

    let dynamic: &dyn Fn(&[f64]) -> f64 = &|x| x[0].exp();
    near(gradus::grad(&dynamic, &[0.5])[0], 0.5f64.exp());
    fn plain(x: &[f64]) -> f64 {
        x[0] * x[0]
    }
    let pointer: fn(&[f64]) -> f64 = plain;
    near(gradus::grad(&pointer, &[3.0])[0], 6.0);
    near(gradus::grad(&plain, &[3.0])[0], 6.0);
}
