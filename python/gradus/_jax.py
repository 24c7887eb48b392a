"""`f.jax`: a function with a float result as a function of JAX, by callbacks on the host.

JVPs are the inner product of the gradient and the tangent, in JAX's own operations, which JAX transposes: reverse mode
follows from the same rule. The gradient's JVP is the Hessian-vector product. JAX has no rule to transpose a callback:
reverse mode of the gradient (reverse over reverse) is refused by JAX; `jax.hessian` (forward over reverse) works.
"""

from __future__ import annotations

import numpy

from ._errors import SignatureError


def wrap(function):
    """Returns the JAX function of the same parameters."""
    try:
        import jax
    except ImportError as error:
        raise ImportError(f"{function.__name__}.jax needs the package jax: pip install jax") from error
    form = function._form
    if form.result not in ("f4", "f8"):
        raise SignatureError(f"{form.name}.jax: only functions with a float result are supported")
    params = [a for a in form.arguments if a.is_parameter]
    if any(a.intent != "in" for a in form.arguments) or any(a.is_fortran and len(a.dims) > 1 for a in params if a.dims):
        raise SignatureError(f"{form.name}.jax: only functions that write no argument, on arrays in C order, are supported")
    names = [a.name for a in params]
    active = [names.index(form.arguments[i].name) for i in function._inputs]
    if "f8" in {form.result, *(a.dtype for a in params)} and not jax.config.jax_enable_x64:
        raise SignatureError(f"{form.name}.jax: the function computes in float64; call "
                             'jax.config.update("jax_enable_x64", True) first')
    return _Wrapped(jax, function, params, active).value()


class _Wrapped:
    """Callbacks of one function. Each takes JAX's values of the parameters."""

    def __init__(self, jax, function, params: list, active: list[int]) -> None:
        self.jax, self.function, self.params, self.active = jax, function, params, active

    def _host(self, values: tuple, arguments: list) -> list:
        """Returns parameters for the native call: contiguous arrays of the right types, and numbers."""
        made = []
        for value, argument in zip(values, arguments):
            array = numpy.asarray(value)
            if argument.kind == "array":
                made.append(numpy.require(array, requirements=["C", "A"]))
            else:
                made.append(array.item())
        return made

    def _call(self, call, shapes, values: tuple, arguments: list):
        """Calls on the host. `shapes` are those of the results."""
        def run(*given):
            found = call(*self._host(given, arguments))
            found = found if isinstance(found, tuple) else (found,)
            return tuple(numpy.asarray(one, shape.dtype) for one, shape in zip(found, shapes))

        return self.jax.pure_callback(run, shapes, *values, vmap_method="sequential")

    def _typed(self, values: tuple) -> tuple:
        """Returns the values as arrays of the function's types; other types of arrays are refused."""
        if len(values) != len(self.params):
            names = ", ".join(a.name for a in self.params)
            raise TypeError(f"{self.function.__name__}.jax: pass {names} by position")
        made = []
        for value, argument in zip(values, self.params):
            dtype = numpy.dtype(argument.dtype)
            if argument.kind == "array" and value.dtype != dtype:
                raise TypeError(f"{self.function.__name__}.jax: `{argument.name}` has type {value.dtype}, but the "
                                f"function takes {dtype}")
            made.append(self.jax.numpy.asarray(value, dtype))
        return tuple(made)

    def _gradient_shapes(self, values: tuple) -> tuple:
        return tuple(self.jax.ShapeDtypeStruct(values[k].shape, values[k].dtype) for k in self.active)

    def _gradient(self):
        """Returns the gradient with respect to the active parameters, as a tuple, with the Hessian as its JVP."""
        jax, function, params, active = self.jax, self.function, self.params, self.active

        @jax.custom_jvp
        def gradient(*values):
            return self._call(function.grad, self._gradient_shapes(values), values, params)

        @gradient.defjvp
        def _(values, tangents):
            along = tuple(tangents[k] for k in active)
            arguments = params + [params[k] for k in active]
            product = self._call(function.hvp, self._gradient_shapes(values), values + along, arguments)
            return gradient(*values), product

        return gradient

    def value(self):
        """Returns the function itself."""
        jax, function, params, active = self.jax, self.function, self.params, self.active
        result = jax.ShapeDtypeStruct((), numpy.dtype(function._form.result))
        gradient = self._gradient()

        @jax.custom_jvp
        def value(*values):
            return self._call(function, (result,), values, params)[0]

        @value.defjvp
        def _(values, tangents):
            parts = zip(gradient(*values), (tangents[k] for k in active))
            along = sum(jax.numpy.vdot(slope, tangent) for slope, tangent in parts)
            return value(*values), along.astype(result.dtype)

        def wrapped(*values):
            return value(*self._typed(values))

        wrapped.__name__ = function.__name__
        return wrapped
