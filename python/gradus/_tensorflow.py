"""`f.tf`: a function as a function of TensorFlow tensors.

`tf.custom_gradient` connects the operations of `_operations.py`. TensorFlow computes the gradients of all inputs of a
custom gradient: each group of operands (the point, cotangents, tangents) is a node of its own, so that a second
derivative is compiled only if it is asked for. The first node has the value, and other nodes add zeros.
"""

from __future__ import annotations

import numpy

from ._errors import SignatureError
from ._operations import Operations


def wrap(function):
    """Returns the function of tensors."""
    try:
        import tensorflow
        # TensorFlow has no public way to ask whether a tensor has a tangent.
        from tensorflow.python.eager.forwardprop_util import pack_tangents
    except ImportError as error:
        raise ImportError(f"{function.__name__}.tf needs the package tensorflow: pip install tensorflow") from error
    return _Wrapped(tensorflow, Operations(function), pack_tangents).public()


class _Wrapped:
    """The operations of one function on tensors."""

    def __init__(self, tf, operations: Operations, pack_tangents) -> None:
        self.tf, self.operations, self.name = tf, operations, f"{operations.name}.tf"
        self.pack_tangents = pack_tangents
        if any(p.dtype == "b1" and p.kind != "array" for p in operations.params):
            raise SignatureError(f"{self.name}: bool parameters are not supported")

    def public(self):
        """Returns the function that a user calls."""
        def wrapped(*values):
            found = self._apply("value", self._checked(values))
            return found[0] if len(found) == 1 else tuple(found)

        wrapped.__name__ = self.operations.name
        wrapped.__doc__ = f"The function {self.operations.function._form} of tensors."
        return wrapped

    def _checked(self, values: tuple) -> list:
        """Returns tensors of the function's types, and integers; other types are refused."""
        tf, params = self.tf, self.operations.params
        if len(values) != len(params):
            call = f"{self.name}({', '.join(p.name for p in params)})"
            raise TypeError(f"{self.name}: {len(values)} of {len(params)} arguments are given; call {call}")
        made = []
        for k, (value, param) in enumerate(zip(values, params)):
            if param.kind != "array" and not param.is_float:
                if not isinstance(value, (int, numpy.integer)):
                    raise TypeError(f"{self.name}: `{param.name}` is not an integer but a {type(value).__name__}; pass a "
                                    "Python int")
                made.append(int(value))
                continue
            dtype = tf.dtypes.as_dtype(numpy.dtype(param.dtype))
            is_number = param.kind != "array" and isinstance(value, (int, float))
            if not is_number and not isinstance(value, (tf.Tensor, tf.Variable, numpy.ndarray)):
                raise TypeError(f"{self.name}: `{param.name}` is not a tensor but a {type(value).__name__}; pass "
                                f"tf.constant({param.name}, tf.{dtype.name})")
            tensor = tf.constant(value, dtype) if is_number else tf.convert_to_tensor(value)
            if tensor.dtype != dtype:
                raise TypeError(f"{self.name}: `{param.name}` has elements of type {tensor.dtype.name}, but the function "
                                f"takes {dtype.name}; pass tf.cast({param.name}, tf.{dtype.name})")
            rank = len(param.dims) if param.kind == "array" else 0
            if tensor.shape.rank not in (rank, None):
                raise ValueError(f"{self.name}: `{param.name}` has {tensor.shape.rank} dimensions, {rank} are expected")
            if param.is_float and k not in self.operations.active:
                tensor = self._constant(tensor, f"`{param.name}` requires a derivative, but the function is not "
                                        f"differentiated with respect to `{param.name}`; pass tf.stop_gradient("
                                        f"{param.name}), or add the name to f.wrt(…)")
            made.append(tensor)
        return made

    def _constant(self, tensor, said: str):
        """Returns a tensor that refuses derivatives."""
        @self.tf.custom_gradient
        def constant(value):
            def refuse(*_):
                raise NotImplementedError(f"{self.name}: {said}")

            return self.tf.identity(value), refuse

        return constant(tensor)

    def _apply(self, kind: str, point: list, *more: list) -> list:
        """Returns the results of an operation, connected to all operands."""
        if kind in ("second", "twice"):
            point = [self._constant(v, "third derivatives are not supported") if k in self.operations.active else v
                     for k, v in enumerate(point)]
        groups = [point, *more]
        found = self._node(kind, groups, 0, None)
        for at in range(1, len(groups)):
            zeros = [self.tf.zeros_like(one) for one in found]
            found = [a + b for a, b in zip(found, self._node(kind, groups, at, zeros))]
        return found

    def _node(self, kind: str, groups: list, at: int, zeros: list | None) -> list:
        """Returns the results, or zeros, with derivatives with respect to one group of operands."""
        tf = self.tf
        places = [k for k, v in enumerate(groups[at]) if tf.is_tensor(v)]
        # In a graph, TensorFlow would drop the tangents of a custom gradient silently.
        if not tf.executing_eagerly() and self.pack_tangents([groups[at][k] for k in places]).tangents:
            raise NotImplementedError(f"{self.name}: tf.autodiff.ForwardAccumulator does not work inside of tf.function; call "
                                      "the function eagerly, or take the gradient of a gradient")

        @tf.custom_gradient
        def node(*_):
            found = self._run(kind, groups) if zeros is None else zeros

            def grad(*cotangents):
                adjoints = self._adjoints(kind, groups, at, list(cotangents))
                return tuple(adjoints[k] for k in places)

            return tuple(found), grad

        return list(node(*(groups[at][k] for k in places)))

    def _adjoints(self, kind: str, groups: list, at: int, cotangents: list) -> list:
        """Returns the adjoints of a group of operands, by the table of `_operations.py`."""
        tf, operations, (point, *more) = self.tf, self.operations, groups
        if kind == "value":
            cotangents = [cotangents[k] for k in operations.differentiable]
        if at > 0:
            kept = more[2 - at] if len(more) == 2 else None
            return {
                "vjp": lambda: self._apply("jvp", point, cotangents),
                "jvp": lambda: self._apply("vjp", point, cotangents),
                "second": lambda: self._apply("twice", point, kept, cotangents) if at == 1 else
                self._apply("second", point, kept, cotangents),
                "twice": lambda: self._apply("second", point, cotangents, kept),
            }[kind]()
        found = {
            "value": lambda: self._apply("vjp", point, cotangents),
            "vjp": lambda: self._apply("second", point, more[0], cotangents),
            "jvp": lambda: self._apply("second", point, cotangents, more[0]),
        }.get(kind, lambda: [tf.zeros_like(point[k]) for k in operations.active])()
        adjoints = [tf.zeros_like(v) if p.is_float else None for v, p in zip(point, operations.params)]
        for k, adjoint in zip(operations.active, found):
            adjoints[k] = adjoint
        return adjoints

    def _run(self, kind: str, groups: list) -> list:
        """Calls an operation, now or in a graph."""
        tf, operations = self.tf, self.operations
        call, sizes = getattr(operations, kind), [len(group) for group in groups]
        outputs = self._outputs(kind, groups[0])
        flat = sum(groups, [])
        tensors = [v for v in flat if tf.is_tensor(v)]
        if tf.executing_eagerly():
            found = call(*([v.numpy() if tf.is_tensor(v) else v for v in group] for group in groups))
            return [tf.constant(one) for one in found]

        def host(*arrays):
            given = iter(arrays)
            values = [next(given) if tf.is_tensor(v) else v for v in flat]
            starts = [sum(sizes[:k]) for k in range(len(sizes))]
            return tuple(call(*(values[start : start + size] for start, size in zip(starts, sizes))))

        types = [tf.dtypes.as_dtype(numpy.dtype(dtype)) for dtype, _ in outputs]
        found = tf.numpy_function(host, tensors, types, stateful=False)
        return [tf.ensure_shape(one, shape) for one, (_, shape) in zip(found, outputs)]

    def _outputs(self, kind: str, point: list) -> list[tuple]:
        """Returns the types and shapes of the results; an unknown length is None."""
        operations = self.operations
        if kind in ("vjp", "second"):
            return [(operations.params[k].dtype, point[k].shape) for k in operations.active]
        chosen = range(len(operations.outputs)) if kind == "value" else operations.differentiable
        made = []
        for output in (operations.outputs[k] for k in chosen):
            is_known = all(v.shape.is_fully_defined() for v in point if self.tf.is_tensor(v))
            is_new = output.argument is not None and output.argument not in operations.params
            is_array = is_new and output.argument.kind == "array"
            unknown = (None,) * len(output.argument.dims) if is_array else None
            made.append((output.dtype, unknown if is_array and not is_known else operations.shape(output, point)))
        return made
