//! Derivatives of closures and functions of a slice.
//!
//! Functions with requests are not inlined: the passes analyse the function that holds a request, and a caller may catch
//! panics or run other code.

use crate::internal::{CompiledByGradus, Differentiate, Float, pair};

/// Returns the gradient of `f` at `x`.
///
/// `f` is any function or closure; the environment of a closure is inactive.
///
/// ```no_run
/// let weights = [0.5, 1.5];
/// let f = |x: &[f64]| x.iter().zip(&weights).map(|(a, w)| w * a * a).sum::<f64>();
/// assert_eq!(gradus::grad(&f, &[1.0, 2.0]), [1.0, 6.0]);
/// ```
#[inline]
pub fn grad<T, F>(f: &F, x: &[T]) -> Vec<T>
where
    T: Float,
    F: Fn(&[T]) -> T + CompiledByGradus,
{
    value_and_grad(f, x).1
}

/// Returns the value and the gradient of `f` at `x`.
#[inline(never)]
pub fn value_and_grad<T, F>(f: &F, x: &[T]) -> (T, Vec<T>)
where
    T: Float,
    F: Fn(&[T]) -> T + CompiledByGradus,
{
    let mut gradient = vec![T::ZERO; x.len()];
    let value = add_gradient(f, x, &mut gradient);
    (value, gradient)
}

/// Adds the gradient to `gradient`. Returns the value.
#[inline(always)]
fn add_gradient<T, F>(f: &F, x: &[T], gradient: &mut [T]) -> T
where
    T: Float,
    F: Fn(&[T]) -> T,
{
    (pair("x", x, gradient),).reverse(&mut |x: &[T]| f(x), T::ONE)
}

/// Returns the value of `f` at `x` and the derivative in the direction `v`.
///
/// # Panics
/// Panics if `v` and `x` have different lengths.
#[inline(never)]
#[track_caller]
pub fn jvp<T, F>(f: &F, x: &[T], v: &[T]) -> (T, T)
where
    T: Float,
    F: Fn(&[T]) -> T + CompiledByGradus,
{
    (pair("x", x, v),).forward(&mut |x: &[T]| f(x))
}

/// Returns the product of the Hessian matrix of `f` at `x` with `v`.
///
/// # Panics
/// Panics if `v` and `x` have different lengths.
#[inline(never)]
#[track_caller]
pub fn hvp<T, F>(f: &F, x: &[T], v: &[T]) -> Vec<T>
where
    T: Float,
    F: Fn(&[T]) -> T + CompiledByGradus,
{
    let mut gradient = vec![T::ZERO; x.len()];
    let mut product = vec![T::ZERO; x.len()];
    let arguments = (
        pair("x", x, v),
        pair("gradient", &mut gradient[..], &mut product[..]),
    );
    arguments.forward(&mut |x: &[T], gradient: &mut [T]| {
        add_gradient(f, x, gradient);
    });
    product
}

/// Returns the Jacobian matrix of `f` at `x`: row `i` is the gradient of result `i`.
///
/// `f` runs once to determine the number of results, and once per row, in reverse mode, or per column, in forward
/// mode, for the smaller number.
///
/// # Panics
/// Panics if the number of results is not the same in all runs.
#[inline(never)]
pub fn jacobian<T, F>(f: &F, x: &[T]) -> Vec<Vec<T>>
where
    T: Float,
    F: Fn(&[T]) -> Vec<T> + CompiledByGradus,
{
    let rows = f(x).len();
    let columns = x.len();
    let mut matrix = vec![vec![T::ZERO; columns]; rows];
    let mut results = vec![T::ZERO; rows];
    let mut run = |x: &[T], results: &mut [T]| results.copy_from_slice(&f(x));
    if rows <= columns {
        let mut seed = vec![T::ZERO; rows];
        for (i, row) in matrix.iter_mut().enumerate() {
            seed.fill(T::ZERO);
            seed[i] = T::ONE;
            let arguments = (
                pair("x", x, &mut row[..]),
                pair("results", &mut results[..], &mut seed[..]),
            );
            arguments.reverse(&mut run, ());
        }
        return matrix;
    }
    let mut direction = vec![T::ZERO; columns];
    let mut tangent = vec![T::ZERO; rows];
    for j in 0..columns {
        direction.fill(T::ZERO);
        direction[j] = T::ONE;
        let arguments = (
            pair("x", x, &direction[..]),
            pair("results", &mut results[..], &mut tangent[..]),
        );
        arguments.forward(&mut run);
        for (row, entry) in matrix.iter_mut().zip(&tangent) {
            row[j] = *entry;
        }
    }
    matrix
}
