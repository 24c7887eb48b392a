"""Dense Jacobians and Hessians, column by column or row by row."""

from __future__ import annotations

import numpy

from ._errors import SignatureError


def _only(function, names: list[str], what: str) -> None:
    if len(names) != 1:
        raise SignatureError(f"{function.__name__}.{what}: one active argument is needed, but {', '.join(names)} are "
                             f"active; choose one with f.wrt(\"{names[0]}\")")


def _split(function, args: tuple, kwargs: dict, what: str):
    """Returns the one active argument's value, and the name of its index among the parameters."""
    arguments = function._form.arguments
    names = [arguments[i].name for i in function._inputs]
    _only(function, names or ["no argument"], what)
    params = [a.name for a in arguments if a.is_parameter]
    position = params.index(names[0])
    if len(args) <= position:
        raise TypeError(f"{function.__name__}.{what}: pass `{names[0]}` by position")
    return args[position], arguments[function._inputs[0]]


def hessian(function, args: tuple, kwargs: dict) -> numpy.ndarray:
    """Returns the Hessian: one Hessian-vector product per element of the active argument."""
    x, argument = _split(function, args, kwargs, "hess")
    shape = numpy.shape(x)
    order = "F" if argument.is_fortran else "C"
    rows = []
    for k in numpy.ndindex(*shape):
        v = numpy.zeros(shape, argument.dtype, order)
        v[k] = 1
        if argument.kind != "array":
            v = float(v)
        rows.append(numpy.asarray(function.hvp(*args, v, **kwargs)))
    return numpy.reshape(rows, shape + shape)


def jacobian(function, args: tuple, kwargs: dict) -> numpy.ndarray:
    """Returns the Jacobian of the one output."""
    x, argument = _split(function, args, kwargs, "jac")
    reverse = function._derivative("reverse")
    if any(a["role"] == "cotangent" for a in reverse["arguments"]):
        return numpy.asarray(function.grad(*args, **kwargs))
    shape = numpy.shape(x)
    order = "F" if argument.is_fortran else "C"
    columns, tangent = [], None
    for k in numpy.ndindex(*shape):
        v = numpy.zeros(shape, argument.dtype, order)
        v[k] = 1
        tangent = function.jvp(*args, float(v) if argument.kind != "array" else v, **kwargs)
        if isinstance(tangent, tuple):
            raise SignatureError(f"{function.__name__}.jac: several outputs; use jvp or vjp")
        columns.append(numpy.asarray(tangent))
        if tangent is not None and columns[0].size < len(list(numpy.ndindex(*shape))) and columns[0].ndim:
            return _by_rows(function, args, kwargs, columns[0], shape)
    out = numpy.shape(columns[0])
    return numpy.moveaxis(numpy.reshape(columns, shape + out), range(len(shape)), range(len(out), len(out) + len(shape)))


def _by_rows(function, args: tuple, kwargs: dict, like: numpy.ndarray, shape: tuple) -> numpy.ndarray:
    """Returns the Jacobian by VJPs, for fewer outputs than inputs."""
    rows = []
    for k in numpy.ndindex(*like.shape):
        w = numpy.zeros_like(like)
        w[k] = 1
        rows.append(numpy.asarray(function.vjp(*args, w, **kwargs)))
    return numpy.reshape(rows, like.shape + shape)
