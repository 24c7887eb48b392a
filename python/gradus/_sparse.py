"""Sparse Jacobians and Hessians: the pattern by dependency sets, a colouring, and one product per colour.

The compiler makes a version of the function, or of its gradient, in which a set of inputs takes the place of each
tangent (`--mode dependencies`). One call finds which of up to 44 inputs each output depends on, for the branches that
ran. The columns of a Jacobian without a common row share one Jacobian-vector product; a Hessian takes a star colouring.
A Jacobian with dense rows takes vector-Jacobian products of groups of rows. Each evaluation is compared with the
derivative along a random direction: entries outside of the pattern raise `PatternChanged`.

Rows and columns count the elements of the output and of the active argument as `ravel()` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy

from ._dense import _split
from ._errors import Error, SignatureError
from ._native import color_columns, color_star

# The fraction bits of a set, and the bits of 1.0, by type: `gradus-ad/src/shadow/dependency_sets.rs`.
SET_BITS = {"f8": 44, "f4": 22}
WORDS = {"f8": ("u8", 52, 0x3FF), "f4": ("u4", 23, 0x7F)}
# A deviation along a random direction, relative to the sum of the row's magnitudes, that is no rounding error.
TOLERANCES = {"f8": 2**-26, "f4": 2**-10}
# The cost of a vector-Jacobian product in Jacobian-vector products, in the choice between columns and rows.
COST_OF_VJP = 2


class PatternChanged(Error):
    """A sparse derivative has entries outside of its pattern: the function ran other branches than at the detection."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}.{what}: the sparsity pattern does not fit at this point: the function ran other branches, "
                         f"or other arguments changed. Compute the pattern again with {name}.sparsity(…), or use the dense "
                         f"derivative {name}.{what}(…)")


@dataclass(frozen=True, eq=False)
class Sparsity:
    """A sparsity pattern by rows (CSR), with a colouring.

    `of` is `jac` or `hess`. `groups` says which products an evaluation takes: of `columns` (Jacobian-vector), of `rows`
    (vector-Jacobian) or `symmetric` (Hessian-vector). `coloring` holds the colour of each column, or row.
    """

    of: str
    shape: tuple[int, int]
    indptr: numpy.ndarray
    indices: numpy.ndarray
    groups: str
    coloring: numpy.ndarray

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.indices)

    @property
    def colours(self) -> int:
        """The number of colours: the products of an evaluation."""
        return int(self.coloring.max(initial=-1)) + 1

    @cached_property
    def rows(self) -> numpy.ndarray:
        """The row of each entry."""
        return numpy.repeat(numpy.arange(self.shape[0]), numpy.diff(self.indptr))

    @cached_property
    def products(self) -> list[tuple[numpy.ndarray, numpy.ndarray]]:
        """For the product of each colour, entries of the matrix and their places in the product."""
        if self.groups == "symmetric":
            colors, places = self._alone()
        elif self.groups == "columns":
            colors, places = self.coloring[self.indices], self.rows
        else:
            colors, places = self.coloring[self.rows], self.indices
        order = numpy.argsort(colors, kind="stable")
        ends = numpy.searchsorted(colors[order], numpy.arange(self.colours + 1))
        parts = [order[first:end] for first, end in zip(ends, ends[1:])]
        return [(part, places[part]) for part in parts]

    def _alone(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Returns for each entry of a Hessian the colour and the place of a product that holds the entry alone.

        The entry in row i and column j is alone in row i of the product of column j's colour if row i has no other column
        of the colour. Otherwise the entry in row j and column i is alone, because the colouring is a star colouring.
        """
        keys = self.rows * (self.colours + 1) + self.coloring[self.indices]
        _, inverse, counts = numpy.unique(keys, return_inverse=True, return_counts=True)
        is_alone = counts[inverse] == 1
        color = numpy.where(is_alone, self.coloring[self.indices], self.coloring[self.rows])
        return color, numpy.where(is_alone, self.rows, self.indices)

    def matrix(self):
        """Returns the pattern as a SciPy matrix of ones, for example for `jac_sparsity=` of `least_squares`."""
        return csr(self, numpy.ones(self.nnz))

    def __repr__(self) -> str:
        groups = "rows" if self.groups == "rows" else "columns"
        colours = "1 colour" if self.colours == 1 else f"{self.colours} colours"
        return f"<sparsity of {self.of}: {self.shape[0]} × {self.shape[1]}, {self.nnz} entries, {colours} of {groups}>"


def csr(pattern: Sparsity, data: numpy.ndarray):
    """Returns a `scipy.sparse.csr_array`, or `(indptr, indices, data, shape)` without SciPy."""
    # Copies: SciPy changes the indices of a matrix in place.
    dtype = "i4" if max(*pattern.shape, pattern.nnz) < 2**31 else "i8"
    indices, indptr = pattern.indices.astype(dtype), pattern.indptr.astype(dtype)
    try:
        from scipy.sparse import csr_array
    except ImportError:
        return indptr, indices, data, pattern.shape
    return csr_array((data, indices, indptr), shape=pattern.shape)


@dataclass
class Point:
    """A function with one active argument, at the arguments of a call."""

    function: object
    what: str
    args: tuple
    kwargs: dict

    def __post_init__(self) -> None:
        self.is_single = any(d["single_precision"] for d in self.function._made.signature["derivatives"])
        x, self.argument = _split(self.function, self.args, self.kwargs, self.what)
        self.shape = numpy.shape(x)
        self.size = int(numpy.prod(self.shape))

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    def direction(self, values: numpy.ndarray):
        """Returns the elements of a tangent in the form of the active argument."""
        if self.argument.kind != "array":
            return float(values[0])
        order = "F" if self.argument.is_fortran else "C"
        return numpy.array(numpy.reshape(values, self.shape), self.argument.dtype, order=order)

    def call(self, operation, *more) -> numpy.ndarray:
        """Returns the elements of the one output of an operation."""
        found = operation(*self.args, *more, **self.kwargs)
        if isinstance(found, tuple):
            raise SignatureError(f"{self.name}.{self.what}: several outputs; use jvp or vjp")
        return found

    def product(self, values: numpy.ndarray) -> numpy.ndarray:
        """Returns the Jacobian or Hessian times a vector."""
        operation = self.function.jvp if self.what == "jac" else self.function.hvp
        return numpy.ravel(self.call(operation, self.direction(values)))

    def transposed(self, values: numpy.ndarray, like: numpy.ndarray) -> numpy.ndarray:
        """Returns the transposed Jacobian times a vector, for outputs like `like`."""
        order = "F" if like.flags.f_contiguous and not like.flags.c_contiguous else "C"
        w = numpy.array(numpy.reshape(values, like.shape), like.dtype, order=order) if like.ndim else float(values[0])
        return numpy.ravel(self.call(self.function.vjp, w))

    def output_dtype(self, found) -> str:
        """Returns the type of the output of a product."""
        if isinstance(found, numpy.ndarray):
            return found.dtype.str[1:]
        return (self.function._form.result or "f8") if self.what == "jac" else self.argument.dtype


def detect(point: Point) -> Sparsity:
    """Detects a pattern at a point, and colours it."""
    operation = point.function._dependencies if point.what == "jac" else point.function._second_dependencies
    dtype = point.argument.dtype
    # A conversion to single precision merges members beyond.
    width, fraction = SET_BITS["f4" if point.is_single else dtype], WORDS[dtype][1]
    rows, columns, count = [], [], 0
    for first in range(0, max(point.size, 1), width):
        block = min(width, point.size - first)
        seeds = numpy.zeros(point.size, WORDS[dtype][0])
        bits = numpy.arange(block, dtype=seeds.dtype)
        seeds[first : first + block] = (seeds.dtype.type(1) << bits) | seeds.dtype.type(WORDS[dtype][2] << fraction)
        found = point.call(operation, point.direction(seeds.view(dtype)))
        sets = numpy.ravel(numpy.asarray(found, point.output_dtype(found)))
        count = len(sets)
        outputs, inputs = _members(point, sets, width)
        inside = inputs < block
        rows.append(outputs[inside])
        columns.append(inputs[inside] + first)
    return _pattern(point.what, (count, point.size), numpy.concatenate(rows), numpy.concatenate(columns))


def _members(point: Point, sets: numpy.ndarray, width: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns the pairs of an output and a member of its set."""
    dtype = sets.dtype.str[1:]
    word, fraction, exponent = WORDS[dtype]
    words = sets.view(word)
    outputs = numpy.flatnonzero(words != 0)
    words = words[outputs].astype("u8")
    if numpy.any(words >> numpy.uint64(fraction) != exponent):
        raise Error(f"{point.name}.{point.what}: the dependencies of an output are unknown, because the program converts the "
                    "bits of numbers; use the dense derivative")
    bits = numpy.unpackbits(words[:, None].astype("<u8").view("u1"), axis=1, bitorder="little")[:, : SET_BITS[dtype]]
    hit, members = numpy.nonzero(bits)
    outputs = outputs[hit]
    if SET_BITS[dtype] < width:
        # A shorter set merges members.
        return numpy.concatenate([outputs, outputs]), numpy.concatenate([members, members + SET_BITS[dtype]])
    return outputs, members % width


def _compress(rows: numpy.ndarray, columns: numpy.ndarray, shape: tuple[int, int]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns the entries by rows, in order and once each: `indptr` and `indices`."""
    keys = numpy.sort(rows.astype("i8") * max(shape[1], 1) + columns)
    keys = keys[numpy.diff(keys, prepend=-1) > 0]
    counts = numpy.bincount(keys // max(shape[1], 1), minlength=shape[0])
    return numpy.concatenate([[0], numpy.cumsum(counts)]).astype("i8"), keys % max(shape[1], 1)


def _pattern(what: str, shape: tuple[int, int], rows: numpy.ndarray, columns: numpy.ndarray) -> Sparsity:
    """Returns the pattern with the colouring of the least cost."""
    if what == "hess":
        # One half of a Hessian may lack what the other shows: a superset is right, too.
        indptr, indices = _compress(numpy.concatenate([rows, columns]), numpy.concatenate([columns, rows]), shape)
        return Sparsity(what, shape, indptr, indices, "symmetric", color_star(indptr, indices))
    indptr, indices = _compress(rows, columns, shape)
    by_columns = Sparsity(what, shape, indptr, indices, "columns", color_columns(indptr, indices, shape[1]))
    by_rows = Sparsity(what, shape, indptr, indices, "rows", color_columns(*_compress(columns, rows, shape[::-1]), shape[0]))
    return by_columns if by_columns.colours <= COST_OF_VJP * by_rows.colours else by_rows


def evaluate(point: Point, pattern: Sparsity):
    """Returns the derivative in the form of the pattern, after a comparison along a random direction."""
    values = numpy.random.default_rng().uniform(0.5, 1.5, point.size).astype(point.argument.dtype)
    operation = point.function.jvp if point.what == "jac" else point.function.hvp
    found = point.call(operation, point.direction(values))
    found = numpy.asarray(found, point.output_dtype(found))
    if pattern.of != point.what or pattern.shape != (found.size, point.size):
        raise ValueError(f"{point.name}.{point.what}: the pattern is of {pattern.of} with shape {pattern.shape}, but the "
                         f"derivative has shape {(found.size, point.size)}")
    data = _entries(point, pattern, found)
    narrow = "f4" if point.is_single else min(found.dtype.str[1:], point.argument.dtype)
    if not _agrees(pattern, data, values, numpy.ravel(found), TOLERANCES[narrow]):
        raise PatternChanged(point.name, point.what)
    point.function._last = pattern
    return csr(pattern, data)


def _agrees(pattern: Sparsity, data: numpy.ndarray, values: numpy.ndarray, wanted: numpy.ndarray, tolerance: float) -> bool:
    """Returns whether a product with the matrix equals `wanted`, up to rounding errors and infinite rows."""
    with numpy.errstate(all="ignore"):
        parts = data * values[pattern.indices]
        sums = numpy.bincount(pattern.rows, parts, minlength=len(wanted))
        error = abs(sums - wanted)
        if (error <= tolerance * abs(wanted)).all():
            return True
        scales = numpy.bincount(pattern.rows, abs(parts), minlength=len(wanted))
        is_right = error <= tolerance * (scales + abs(wanted))
        return bool((is_right | ~numpy.isfinite(wanted) & ~numpy.isfinite(sums)).all())


def _entries(point: Point, pattern: Sparsity, like: numpy.ndarray) -> numpy.ndarray:
    """Returns the values of the pattern's entries, from one product per colour."""
    data = numpy.zeros(pattern.nnz, like.dtype)
    for color, (entries, places) in enumerate(pattern.products):
        group = pattern.coloring == color
        if pattern.groups == "rows":
            found = point.transposed(group.astype(like.dtype), like)
        else:
            found = point.product(group.astype(point.argument.dtype))
        data[entries] = found[places]
    return data


def sparsity(function, what: str, args: tuple, kwargs: dict) -> Sparsity:
    """Returns the pattern of the Jacobian or Hessian at a point."""
    if what not in ("jac", "hess"):
        raise ValueError(f"{function.__name__}.sparsity: of is \"jac\" or \"hess\", not {what!r}")
    return detect(Point(function, what, args, kwargs))


def sparse(function, what: str, given: bool | Sparsity, args: tuple, kwargs: dict):
    """Returns a sparse Jacobian or Hessian by a given pattern, or by the pattern of an earlier call."""
    point = Point(function, what, args, kwargs)
    if isinstance(given, Sparsity):
        return evaluate(point, given)
    known = function._patterns.get((what, point.shape))
    if known is not None:
        try:
            return evaluate(point, known)
        except (PatternChanged, ValueError):
            # Other branches ran, or other arguments differ: the pattern is detected again, once.
            pass
    known = function._patterns[what, point.shape] = detect(point)
    return evaluate(point, known)
