//! Colourings of sparsity patterns: the groups of columns of a Jacobian or Hessian that share one product.
//!
//! - [`color_columns`]: a distance-2 colouring of the columns. Two columns with a common row have different colours, so
//!   that the product of a Jacobian with the sum of a colour's unit vectors holds each entry of the group.
//! - [`color_star`]: a star colouring of a symmetric pattern. Neighbours have different colours, and each path of four
//!   vertices has at least three. Each entry of a Hessian then appears alone in one of two products.
//!
//! Both algorithms are greedy, with the vertices in order of decreasing degree (Gebremedhin, Manne, Pothen, What color is
//! your Jacobian?, SIAM Review 47, 2005, algorithms 3.1 and 4.1). The work is linear in the rows' lengths squared for
//! columns, and in the sum over paths of length three for stars.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A sparsity pattern by rows.
struct Rows<'a> {
    starts: &'a [i64],
    columns: &'a [i64],
}

impl<'a> Rows<'a> {
    /// Checks a pattern of `columns` columns.
    ///
    /// # Errors
    /// Starts that do not increase to the number of entries, or a column outside of the matrix.
    fn new(starts: &'a [i64], indices: &'a [i64], columns: usize) -> PyResult<Self> {
        let increases = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        let is_whole = starts.first() == Some(&0)
            && starts.last().copied() == i64::try_from(indices.len()).ok();
        let is_inside = |c: &i64| usize::try_from(*c).is_ok_and(|c| c < columns);
        match increases && is_whole && indices.iter().all(is_inside) {
            true => Ok(Rows {
                starts,
                columns: indices,
            }),
            false => Err(PyValueError::new_err("the pattern is not a CSR matrix")),
        }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the columns of a row.
    fn row(&self, row: usize) -> impl Iterator<Item = usize> + 'a {
        let entries = &self.columns[self.starts[row] as usize..self.starts[row + 1] as usize];
        entries.iter().map(|c| *c as usize)
    }
}

/// The rows of each column: the pattern by columns.
struct Transposed {
    starts: Vec<i64>,
    rows: Vec<i64>,
}

impl Transposed {
    fn of(rows: &Rows<'_>, columns: usize) -> Self {
        let mut starts = vec![0; columns + 1];
        for &column in rows.columns {
            starts[column as usize + 1] += 1;
        }
        for column in 0..columns {
            starts[column + 1] += starts[column];
        }
        let (mut next, mut by_column) = (starts.clone(), vec![0; rows.columns.len()]);
        for row in 0..rows.count() {
            for column in rows.row(row) {
                by_column[next[column] as usize] = row as i64;
                next[column] += 1;
            }
        }
        Transposed {
            starts,
            rows: by_column,
        }
    }

    fn as_rows(&self) -> Rows<'_> {
        Rows {
            starts: &self.starts,
            columns: &self.rows,
        }
    }
}

/// Returns the vertices in order of decreasing degree; vertices of one degree in order.
fn largest_first(degrees: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..degrees.len()).collect();
    order.sort_by_key(|vertex| std::cmp::Reverse(degrees[*vertex]));
    order
}

/// The colours of a greedy colouring, with the colours that the next vertex must not have.
struct GreedyColors {
    /// The colour of each vertex; [`NONE`] before the vertex has one.
    colors: Vec<i32>,
    /// The last vertex that forbade each colour.
    forbidden_by: Vec<usize>,
}

const NONE: i32 = -1;

impl GreedyColors {
    fn new(vertices: usize) -> Self {
        GreedyColors {
            colors: vec![NONE; vertices],
            forbidden_by: Vec::new(),
        }
    }

    fn of(&self, vertex: usize) -> Option<usize> {
        usize::try_from(self.colors[vertex]).ok()
    }

    /// Forbids the colour of `other` for `vertex`.
    fn forbid(&mut self, other: usize, vertex: usize) {
        if let Some(color) = self.of(other) {
            self.forbidden_by[color] = vertex;
        }
    }

    /// Gives a vertex the first colour that is not forbidden.
    fn take(&mut self, vertex: usize) {
        let free = self.forbidden_by.iter().position(|by| *by != vertex);
        let color = free.unwrap_or(self.forbidden_by.len());
        if free.is_none() {
            self.forbidden_by.push(usize::MAX);
        }
        self.colors[vertex] = color as i32;
    }
}

/// Returns a distance-2 colouring of the columns.
fn columns_by_color(rows: &Rows<'_>, columns: usize) -> Vec<i32> {
    let by_column = Transposed::of(rows, columns);
    let by_column = by_column.as_rows();
    let length = |row: usize| rows.row(row).count();
    let degree = |column: usize| by_column.row(column).map(length).sum();
    let degrees: Vec<usize> = (0..columns).map(degree).collect();
    let mut greedy = GreedyColors::new(columns);
    for column in largest_first(&degrees) {
        for row in by_column.row(column) {
            for other in rows.row(row) {
                greedy.forbid(other, column);
            }
        }
        greedy.take(column);
    }
    greedy.colors
}

/// Returns a star colouring of a symmetric pattern. Entries of the diagonal count for nothing.
fn stars_by_color(rows: &Rows<'_>) -> Vec<i32> {
    let degrees: Vec<usize> = (0..rows.count()).map(|row| rows.row(row).count()).collect();
    let mut greedy = GreedyColors::new(rows.count());
    for vertex in largest_first(&degrees) {
        for near in rows.row(vertex).filter(|near| *near != vertex) {
            greedy.forbid(near, vertex);
            for far in rows.row(near).filter(|far| *far != vertex && *far != near) {
                if greedy.colors[near] == NONE {
                    // The later colour of `near` must not close a path of two colours.
                    greedy.forbid(far, vertex);
                    continue;
                }
                let has_color_of_near =
                    |end: usize| end != near && greedy.colors[end] == greedy.colors[near];
                if greedy.colors[far] != NONE && rows.row(far).any(has_color_of_near) {
                    greedy.forbid(far, vertex);
                }
            }
        }
        greedy.take(vertex);
    }
    greedy.colors
}

/// Colours the columns of a CSR pattern. Returns the colour of each column.
#[pyfunction]
pub(crate) fn color_columns<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    indices: PyReadonlyArray1<'py, i64>,
    columns: usize,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let (starts, indices) = (starts.as_slice()?, indices.as_slice()?);
    let rows = Rows::new(starts, indices, columns)?;
    Ok(PyArray1::from_vec(py, columns_by_color(&rows, columns)))
}

/// Colours the vertices of a symmetric CSR pattern, for Hessian-vector products. Returns the colour of each column.
#[pyfunction]
pub(crate) fn color_star<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    indices: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let (starts, indices) = (starts.as_slice()?, indices.as_slice()?);
    let rows = Rows::new(starts, indices, starts.len().saturating_sub(1))?;
    Ok(PyArray1::from_vec(py, stars_by_color(&rows)))
}
