"""`f.jax`: a function as a function of JAX, by the XLA-FFI handler of `_jax_direct.py` or by callbacks on the host.

The operations of `_operations.py` are primitives of JAX, each with rules for forward mode, transposition and batches.
Reverse mode is the transposed forward mode: `jvp` is linear in the tangents, `second` and `twice` in each of their
operands but the point. Every operand of a primitive is an array; the parameter `outs` holds the shapes of the function's
outputs.
"""

from __future__ import annotations

from functools import partial

import numpy

from . import _jax_direct
from ._errors import SignatureError
from ._operations import Operations

# The operands of each operation after the point: cotangents of the outputs (w), or tangents of the active inputs (v).
OPERANDS = {"value": "", "vjp": "w", "jvp": "v", "second": "wv", "twice": "vv"}


def wrap(function):
    """Returns the JAX function of the same parameters."""
    try:
        import jax
        from jax.extend.core import Primitive
        from jax.interpreters import ad, batching, mlir
    except ImportError as error:
        raise ImportError(f"{function.__name__}.jax needs the package jax: pip install jax") from error
    operations = Operations(function)
    used = {p.dtype for p in operations.params} | {o.dtype for o in operations.outputs}
    if any(dtype.endswith("8") for dtype in used) and not jax.config.jax_enable_x64:
        raise SignatureError(f"{operations.name}.jax: the function computes in float64; call "
                             'jax.config.update("jax_enable_x64", True) first')
    return _Wrapped(jax, (Primitive, ad, batching, mlir), operations).public()


class _Wrapped:
    """The primitives of one function."""

    def __init__(self, jax, modules: tuple, operations: Operations) -> None:
        self.jax, self.operations, self.name = jax, operations, f"{operations.name}.jax"
        self.primitive, self.ad, self.batching, self.mlir = modules
        self.handler = _jax_direct.choose()
        self.primitives = {kind: self._primitive(kind) for kind in OPERANDS}

    def public(self):
        """Returns the function that a user calls."""
        jax, operations = self.jax, self.operations

        def wrapped(*values):
            point = self._typed(values)
            outs = tuple((self._shape(output, point), output.dtype) for output in operations.outputs)
            found = self.primitives["value"].bind(*map(jax.numpy.asarray, point), outs=outs)
            return found[0] if len(found) == 1 else tuple(found)

        wrapped.__name__ = operations.name
        wrapped.path = "ffi" if self.handler else "callback"
        wrapped.__doc__ = f"The function {operations.function._form} of JAX arrays."
        return wrapped

    def _shape(self, output, point: list) -> tuple:
        try:
            return tuple(int(n) for n in self.operations.shape(output, point))
        except self.jax.errors.ConcretizationTypeError as error:
            raise TypeError(f"{self.name}: the length of `{output.name}` follows from an integer that JAX traces; make the "
                            "integer a Python int, or one of static_argnums") from error

    def _typed(self, values: tuple) -> list:
        """Returns the values as arrays of the function's types; other types of arrays are refused."""
        jax, params = self.jax, self.operations.params
        if len(values) != len(params):
            raise TypeError(f"{self.name}: pass {', '.join(p.name for p in params)} by position")
        made = []
        for value, param in zip(values, params):
            dtype = numpy.dtype(param.dtype)
            if param.kind != "array":
                # The native call checks that a traced integer fits into the function's type.
                made.append(jax.numpy.asarray(value, dtype) if param.is_float else self._integer(value, param))
            elif not hasattr(value, "dtype") or value.dtype != dtype:
                found = getattr(value, "dtype", type(value).__name__)
                raise TypeError(f"{self.name}: `{param.name}` has type {found}, but the function takes {dtype}")
            elif value.ndim != len(param.dims):
                raise ValueError(f"{self.name}: `{param.name}` has {value.ndim} dimensions, {len(param.dims)} are expected")
            else:
                made.append(jax.numpy.asarray(value))
        return made

    def _integer(self, value, param):
        """Returns an integer by value, as a Python integer or an array."""
        dtype = numpy.dtype(param.dtype)
        wanted = self.jax.numpy.bool_ if dtype == bool else self.jax.numpy.integer
        if not self.jax.numpy.issubdtype(self.jax.numpy.result_type(value), wanted):
            raise TypeError(f"{self.name}: `{param.name}` is not an integer: {value}")
        if dtype != bool and isinstance(value, int):
            limits = numpy.iinfo(dtype)
            if not limits.min <= value <= limits.max:
                raise OverflowError(f"{self.name}: {value} does not fit into `{param.name}` of type {dtype}")
        return value

    def _groups(self, kind: str, operands) -> list[list]:
        """Splits the operands of an operation: the point, then cotangents or tangents."""
        sizes = {"w": len(self.operations.differentiable), "v": len(self.operations.active)}
        at = len(self.operations.params)
        groups = [list(operands[:at])]
        for letter in OPERANDS[kind]:
            groups.append(list(operands[at : at + sizes[letter]]))
            at += sizes[letter]
        return groups

    def _results(self, kind: str, operands, outs: tuple) -> list:
        """Returns the shapes and types of an operation's results."""
        operations = self.operations
        if kind in ("vjp", "second"):
            return [(operands[k].shape, numpy.dtype(operations.params[k].dtype)) for k in operations.active]
        chosen = range(len(outs)) if kind == "value" else operations.differentiable
        return [(outs[k][0], numpy.dtype(outs[k][1])) for k in chosen]

    def _primitive(self, kind: str):
        """Defines the primitive of an operation."""
        jax, made = self.jax, self.primitive(f"gradus_{self.operations.name}_{kind}")
        made.multiple_results = True

        def host(*operands):
            return tuple(getattr(self.operations, kind)(*self._groups(kind, [numpy.asarray(v) for v in operands])))

        def lowered(*operands, outs):
            shapes = tuple(jax.ShapeDtypeStruct(*result) for result in self._results(kind, operands, outs))
            return list(jax.pure_callback(host, shapes, *operands))

        def direct(*operands, outs):
            if kind == "twice" and self.operations.is_scalar:
                return self._twice_of_scalar(operands, outs)
            results = self._results(kind, operands, outs)
            found = self.handler.call(self.operations, kind, operands, results, outs)
            return lowered(*operands, outs=outs) if found is None else found

        made.def_abstract_eval(lambda *operands, outs: [
            jax.core.ShapedArray(*result) for result in self._results(kind, operands, outs)])
        made.def_impl(jax.jit(made.bind, static_argnames="outs"))
        self.mlir.register_lowering(made, self.mlir.lower_fun(lowered, multiple_results=True))
        if self.handler:
            self.mlir.register_lowering(made, self.mlir.lower_fun(direct, multiple_results=True), platform="cpu")
        self.ad.primitive_jvps[made] = partial(self._along, kind)
        self.ad.primitive_transposes[made] = partial(self._transposed, kind)
        self.batching.primitive_batchers[made] = partial(self._batched, made)
        return made

    def _twice_of_scalar(self, operands: tuple, outs: tuple) -> list:
        """Returns the second derivative of a number along two tangents, by one product with the Hessian."""
        point, first, other = self._groups("twice", operands)
        one = self.jax.numpy.ones((), self.operations.outputs[self.operations.differentiable[0]].dtype)
        rows = self.primitives["second"].bind(*point, one, *first, outs=outs)
        return [sum(self.jax.numpy.vdot(row, along) for row, along in zip(rows, other))]

    def _call(self, kind: str, outs: tuple, *groups) -> list:
        # An error in the callback would be an internal one of JAX.
        self.operations.compile(kind)
        return self.primitives[kind].bind(*sum(groups, []), outs=outs)

    def _is_zero(self, tangent) -> bool:
        return type(tangent) is self.ad.Zero or tangent.dtype == self.jax.dtypes.float0

    def _zero(self, value):
        """Returns the tangent of a value that is constant; integers have tangents of type float0."""
        is_float = value.dtype.kind == "f"
        return self.ad.Zero(self.jax.core.ShapedArray(value.shape, value.dtype if is_float else self.jax.dtypes.float0))

    def _along(self, kind: str, operands: tuple, tangents: tuple, *, outs: tuple) -> tuple:
        """Returns the results of an operation and their tangents, by the table of `_operations.py`."""
        operations = self.operations
        point, *more = self._groups(kind, operands)
        given, *along = self._groups(kind, tangents)
        found = self._call(kind, outs, point, *more)
        for k, tangent in enumerate(given):
            if not self._is_zero(tangent) and k not in operations.active:
                param = operations.params[k].name
                raise TypeError(f"{self.name}: `{param}` requires a derivative, but the function is not differentiated with "
                                f"respect to `{param}`; pass jax.lax.stop_gradient({param}), or add the name to f.wrt(…)")
        sums, chosen = None, [given[k] for k in operations.active]
        if not all(map(self._is_zero, chosen)):
            if kind in ("second", "twice"):
                raise NotImplementedError(f"{self.name}: third derivatives are not supported")
            tangent = list(map(self.ad.instantiate_zeros, chosen))
            following = {"value": "jvp", "vjp": "second", "jvp": "twice"}[kind]
            sums = self._call(following, outs, point, *more, tangent)
        for at, own in enumerate(along):
            if not all(map(self._is_zero, own)):
                rest = list(more)
                rest[at] = list(map(self.ad.instantiate_zeros, own))
                part = self._call(kind, outs, point, *rest)
                sums = part if sums is None else [a + b for a, b in zip(sums, part)]
        zeros = list(map(self._zero, found))
        if kind == "value" and sums is not None:
            known = dict(zip(operations.differentiable, sums))
            return found, [known.get(k, zeros[k]) for k in range(len(found))]
        return found, zeros if sums is None else sums

    def _transposed(self, kind: str, cotangents: list, *operands, outs: tuple) -> list:
        """Returns the adjoints of the linear operands, by the table of `_operations.py`."""
        is_linear = self.ad.is_undefined_primal
        groups = self._groups(kind, operands)
        linear = [at for at, group in enumerate(groups) if any(map(is_linear, group))]
        if len(linear) != 1 or linear == [0]:
            raise NotImplementedError(f"{self.name}: {kind} is not linear in these operands")
        at, (point, *more) = linear[0], groups
        given = list(map(self.ad.instantiate_zeros, cotangents))
        following, rest = {
            ("vjp", 1): ("jvp", [given]),
            ("jvp", 1): ("vjp", [given]),
            ("second", 1): ("twice", [*more[1:], given]),
            ("second", 2): ("second", [*more[:1], given]),
            ("twice", 1): ("second", [given, *more[1:]]),
            ("twice", 2): ("second", [given, *more[:1]]),
        }[kind, at]
        found = self._call(following, outs, point, *rest)
        adjoints = [[None] * len(group) for group in groups]
        adjoints[at] = [one if is_linear(v) else None for one, v in zip(found, groups[at])]
        return sum(adjoints, [])

    def _batched(self, primitive, operands: tuple, dims: tuple, *, outs: tuple) -> tuple:
        """Calls a primitive for each element of a batch."""
        jax = self.jax
        moved = tuple(jax.numpy.moveaxis(v, d, 0) for v, d in zip(operands, dims) if d is not None)

        def element(batched):
            given = iter(batched)
            return primitive.bind(*(v if d is None else next(given) for v, d in zip(operands, dims)), outs=outs)

        found = jax.lax.map(element, moved)
        return found, [0] * len(found)
