"""Derivatives of a function as pure functions of arrays, for automatic differentiation by other packages.

Parameters and outputs are NumPy arrays in C order; a number is an array without dimensions, and an integer by value is
a Python integer. The outputs are the result, then the arrays and numbers that the function writes. Calls copy an array
that the function changes, and an array whose layout differs from the function's.

The first and second derivatives are closed under differentiation, apart from the point:

| operation | result | derivative with respect to the point | transposed with respect to w, v, u |
|---|---|---|---|
| value | y | jvp | |
| vjp(w) | Jᵀw | second(w, v) | jvp |
| jvp(v) | Jv | twice(v, u) | vjp |
| second(w, v) | derivative of Jᵀw along v | not supported | twice, second |
| twice(v, u) | derivative of Jv along u | not supported | second |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy

from ._errors import SignatureError
from ._form import Argument, postfix


@dataclass(frozen=True)
class Output:
    """An output: the result, with no argument, or an argument that the function writes."""

    name: str
    dtype: str
    argument: Argument | None

    @property
    def is_float(self) -> bool:
        """True for floats."""
        return self.dtype in ("f4", "f8")


class Operations:
    """The operations of one function. Points are lists of parameters."""

    def __init__(self, function) -> None:
        self.function, form = function, function._form
        self.name = form.name
        self.params = [a for a in form.arguments if a.is_parameter]
        # Positions of the active inputs among the parameters.
        self.active = [self.params.index(form.arguments[i]) for i in function._inputs]
        result = [Output("result", form.result, None)] if form.result else []
        self.outputs = result + [Output(a.name, a.dtype, a) for a in form.arguments if a.intent != "in"]
        active = {form.arguments[i].name for i in function._written}
        if function._has_active_result:
            active.add("result")
        # Positions of the outputs with derivatives.
        self.differentiable = [k for k, output in enumerate(self.outputs) if output.name in active]
        passive = [o.name for k, o in enumerate(self.outputs) if o.is_float and k not in self.differentiable]
        if passive:
            raise SignatureError(f"{form.name}: the output {', '.join(passive)} has no derivative with respect to the chosen "
                                 "arguments; include the argument in f.wrt(…)")
        if not self.differentiable:
            raise SignatureError(f"{form.name} has no differentiable output")
        if not self.active:
            raise SignatureError(f"{form.name} has no differentiable argument")

    @cached_property
    def is_scalar(self) -> bool:
        """True if the only differentiable output is the result."""
        return [self.outputs[k].name for k in self.differentiable] == ["result"]

    def shape(self, output: Output, point: list) -> tuple:
        """Returns the shape of an output at a point; the lengths may be symbols of another package."""
        argument = output.argument
        if argument is None or argument.kind != "array":
            return ()
        if argument in self.params:
            return tuple(point[self.params.index(argument)].shape)
        return tuple(self._length(dim, point) for dim in argument.dims)

    def _length(self, text: str, point: list):
        """Returns the value of a length's expression."""
        known = {}
        for value, param in zip(point, self.params):
            if param.kind != "array":
                known[param.name] = value
                continue
            for dim, found in zip(param.dims, value.shape):
                known.setdefault(dim, found)
        numbers = []
        for operation, operand in postfix(self.name, text, {name: name for name in known}):
            if operation == "variable":
                numbers.append(known[operand])
            elif operation == "constant":
                numbers.append(operand)
            else:
                right, left = numbers.pop(), numbers.pop()
                numbers.append(left + right if operation == "+" else left - right if operation == "-" else left * right)
        return numbers[0]

    def compile(self, kind: str) -> None:
        """Compiles an operation, which a call would do; raises what the compiler refuses."""
        names = {"value": "__call__", "second": "_second", "twice": "_second" if self.is_scalar else "_twice"}
        getattr(self.function, names.get(kind, kind))

    def value(self, point: list) -> list:
        """Returns the outputs."""
        given, copies = self._host(self.params, point), {}
        for k, param in enumerate(self.params):
            if param.kind == "array" and param.intent == "inout":
                copies[param.name] = given[k] = given[k].copy(order="K")
        found = list(_tuple(self.function(*given)))
        values = [copies[o.name] if o.name in copies else found.pop(0) for o in self.outputs]
        return [_array(value, output.dtype) for value, output in zip(values, self.outputs)]

    def vjp(self, point: list, cotangents: list) -> list:
        """Returns the adjoints of the active inputs."""
        return self._adjoints(self.function.vjp, point, self._outputs(cotangents))

    def jvp(self, point: list, tangents: list) -> list:
        """Returns the tangents of the differentiable outputs."""
        return self._tangents(self.function.jvp, point, self._inputs(tangents))

    def second(self, point: list, cotangents: list, tangents: list) -> list:
        """Returns the derivative of the adjoints along tangents of the active inputs."""
        return self._adjoints(self.function._second, point, self._outputs(cotangents) + self._inputs(tangents))

    def twice(self, point: list, first: list, other: list) -> list:
        """Returns the derivative of the outputs' tangents along other tangents of the active inputs."""
        if not self.is_scalar:
            return self._tangents(self.function._twice, point, self._inputs(first) + self._inputs(other))
        dtype = self.outputs[self.differentiable[0]].dtype
        rows = self.second(point, [numpy.ones((), dtype)], first)
        return [_array(sum(numpy.vdot(row, along) for row, along in zip(rows, other)), dtype)]

    def _inputs(self, values: list) -> list:
        return self._host([self.params[k] for k in self.active], values)

    def _outputs(self, values: list) -> list:
        chosen = [self.outputs[k] for k in self.differentiable]
        return self._host([o.argument or Argument("w", o.dtype, "number", "value") for o in chosen], values)

    def _adjoints(self, call, point: list, more: list) -> list:
        found = _tuple(call(*self._host(self.params, point), *more))
        return [_array(one, self.params[k].dtype) for one, k in zip(found, self.active)]

    def _tangents(self, call, point: list, more: list) -> list:
        found = _tuple(call(*self._host(self.params, point), *more))
        return [_array(one, self.outputs[k].dtype) for one, k in zip(found, self.differentiable)]

    @staticmethod
    def _host(arguments: list[Argument], values: list) -> list:
        """Returns values as a native call takes them: aligned arrays in the function's order, and numbers."""
        made = []
        for argument, value in zip(arguments, values):
            if argument.kind == "array":
                is_fortran = argument.is_fortran and numpy.ndim(value) > 1
                made.append(numpy.require(value, requirements=["F" if is_fortran else "C", "A"]))
            else:
                made.append(value if isinstance(value, (int, float)) else numpy.asarray(value).item())
        return made


def _tuple(found) -> tuple:
    return found if isinstance(found, tuple) else () if found is None else (found,)


def _array(value, dtype: str) -> numpy.ndarray:
    """Returns a value as an array in C order."""
    return numpy.asarray(value, dtype, order="C")
