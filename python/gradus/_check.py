"""Tests derivatives at given arguments: JVP against VJP, and both against finite differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from ._errors import SignatureError, Wrong


@dataclass(frozen=True)
class Check:
    """The outcome of a check: relative differences of the derivative along a direction."""

    function: str
    forward_reverse: float
    forward_differences: float
    tolerance: float
    derivative: float

    @property
    def is_right(self) -> bool:
        """True if all comparisons agree."""
        return max(self.forward_reverse / 1e-3, self.forward_differences) <= self.tolerance

    def __str__(self) -> str:
        verdict = "right" if self.is_right else "WRONG"
        return (f"{self.function}: the derivative is {verdict}: forward and reverse mode differ by "
                f"{self.forward_reverse:.1e}, forward mode and differences by {self.forward_differences:.1e} "
                f"(at most {self.tolerance:.0e} is expected)")


# The steps of differences, relative to the arguments.
STEPS = 10.0 ** -numpy.arange(2, 9)


def check(function, args: tuple, kwargs: dict) -> Check:
    """Compares the derivatives along a random direction. Raises `Wrong`, or `Error` if nothing was compared."""
    form, inputs = function._form, function._inputs
    params = [a for a in form.arguments if a.is_parameter]
    if len(args) != len(params):
        raise TypeError(f"{function.__name__}.check: pass all of {', '.join(a.name for a in params)} by position")
    random = numpy.random.default_rng(1)
    active = [params.index(form.arguments[i]) for i in inputs]
    tangents = [_random(random, params[k], args[k]) for k in active]
    forward = _flat(function.jvp(*args, *tangents, **kwargs))
    weights = random.uniform(-1, 1, forward.size)
    adjoints = function.vjp(*args, *_like(function, args, kwargs, tangents, weights), **kwargs)
    adjoints = adjoints if isinstance(adjoints, tuple) else (adjoints,)
    reverse = sum(float(numpy.sum(numpy.asarray(a) * v)) for a, v in zip(adjoints, tangents))
    along = float(numpy.dot(forward, weights))
    scale = max(abs(along), abs(reverse), float(numpy.dot(abs(forward), abs(weights))), 1e-300)
    if not numpy.any(forward):
        raise SignatureError(f"{function.__name__}.check: the derivative is zero at these arguments, so that nothing was "
                             "tested; try other arguments")
    best = min(_difference(function, args, kwargs, active, tangents, forward, step) for step in STEPS)
    is_single = any(form.arguments[i].dtype == "f4" for i in inputs)
    report = Check(function.__name__, abs(along - reverse) / scale, best, 3e-2 if is_single else 1e-5, along)
    if not report.is_right:
        raise Wrong(report)
    return report


def _random(random, argument, value):
    if argument.kind != "array":
        return float(random.uniform(-1, 1))
    made = random.uniform(-1, 1, numpy.shape(value)).astype(argument.dtype)
    return numpy.asarray(made, order="F" if argument.is_fortran else "C")


def _flat(outputs) -> numpy.ndarray:
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    return numpy.concatenate([numpy.ravel(numpy.asarray(p, dtype="f8"), order="K") for p in parts])


def _like(function, args: tuple, kwargs: dict, tangents: list, weights: numpy.ndarray) -> list:
    """Returns the weights in the form of the outputs."""
    outputs = function.jvp(*args, *tangents, **kwargs)
    made, at = [], 0
    for part in outputs if isinstance(outputs, tuple) else (outputs,):
        size = numpy.size(part)
        if isinstance(part, numpy.ndarray):
            like = numpy.empty_like(part)
            like.ravel(order="K")[:] = weights[at : at + size]
            made.append(like)
        else:
            made.append(float(weights[at]))
        at += size
    return made


def _values(function, args: list, kwargs: dict) -> numpy.ndarray:
    """Calls the function on copies. Returns the active outputs in the order of the JVP."""
    copies = [a.copy(order="K") if isinstance(a, numpy.ndarray) else a for a in args]
    outputs = function(*copies, **kwargs)
    outputs = list(outputs if isinstance(outputs, tuple) else () if outputs is None else (outputs,))
    form = function._form
    params = [a for a in form.arguments if a.is_parameter]
    own = [outputs.pop(0)] if form.result else []
    found = own if form.result in ("f4", "f8") else []
    for i, argument in enumerate(form.arguments):
        if argument.intent == "in":
            continue
        in_place = argument.intent == "inout" and argument.kind == "array"
        value = copies[params.index(argument)] if in_place else outputs.pop(0)
        if i in function._written:
            found.append(value)
    return _flat(tuple(found))


def _difference(function, args, kwargs, active: list, tangents: list, forward: numpy.ndarray, step: float) -> float:
    """Returns the relative distance of the JVP from central differences of a step."""
    sizes = [float(numpy.max(numpy.abs(numpy.asarray(args[k])), initial=0)) for k in active]
    step *= max([1.0, *sizes])
    sides = []
    for sign in (step, -step):
        moved = list(args)
        for k, v in zip(active, tangents):
            by = numpy.asarray(sign * v, dtype=v.dtype) if isinstance(v, numpy.ndarray) else sign * v
            moved[k] = args[k] + by
        sides.append(_values(function, moved, kwargs))
    differences = (sides[0] - sides[1]) / (2 * step)
    return float(numpy.linalg.norm(differences - forward) / max(numpy.linalg.norm(forward), 1e-300))
