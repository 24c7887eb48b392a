"""`f.torch`: a function as a function of PyTorch tensors.

Five operators (`_operations.py`) call the function and its derivatives. `torch.autograd.Function` connects them for eager
code: reverse mode, forward mode, `torch.func` and `vmap`. `torch.compile` refuses a `Function` with a rule for forward
mode, or ignores the rule; an operator of `torch.library` loses the tangents of forward mode silently. Compiled code
therefore calls the operators, and leaves the compiler inside of `torch.func`'s transforms and of forward mode.
"""

from __future__ import annotations

import re
import threading

import numpy

from ._errors import SignatureError
from ._operations import Operations

# The extra operands of each operation, after the point: cotangents of outputs, or tangents of inputs.
OPERANDS = {"value": "", "vjp": "w", "jvp": "v", "second": "wv", "twice": "vv"}
# The operations whose outputs have the shapes of the active inputs.
ADJOINTS = ("vjp", "second")
# The operations without a derivative with respect to the point.
SECOND = ("second", "twice")

_made: dict = {}
_lock = threading.Lock()


def wrap(function):
    """Returns the function of tensors. The attribute `operators` holds the operators of `torch.library` by operation."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"{function.__name__}.torch needs the package torch: pip install torch") from error
    operations = Operations(function)
    plain = re.sub(r"\W", "_", operations.name)
    key = f"{plain}_{function._made.library.stem}_{_digest(str(function._form))}"
    with _lock:
        if key not in _made:
            _made[key] = _Wrapped(torch, operations, key).public()
        return _made[key]


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()[:8]


class _Wrapped:
    """The operators and the autograd functions of one function."""

    def __init__(self, torch, operations: Operations, key: str) -> None:
        self.torch, self.operations, self.key = torch, operations, key
        self.count = len(operations.params)
        self.dtypes = {"b1": torch.bool, **{
            dtype: getattr(torch, numpy.dtype(dtype).name) for dtype in ("f4", "f8", "i1", "i2", "i4", "i8", "u1")}}
        used = {p.dtype for p in operations.params if p.kind == "array" or p.is_float} | {o.dtype for o in operations.outputs}
        for dtype in used - self.dtypes.keys():
            raise SignatureError(f"{operations.name}.torch: elements of type {numpy.dtype(dtype).name} are not supported")
        self.fixed = self._fixed()
        self.operators = {kind: self._operator(kind) for kind in OPERANDS}
        self.functions = {kind: self._function(kind) for kind in OPERANDS}
        for kind in OPERANDS:
            self.operators[kind].register_autograd(self._backward_of_operator(kind), setup_context=self._save)

    def public(self):
        """Returns the function that a user calls."""
        torch, check = self.torch, self._check()
        eager, operator = self.functions["value"].apply, getattr(torch.ops.gradus, f"{self.key}_value").default
        uncompiled, forward_ad = torch.compiler.disable(eager), torch.autograd.forward_ad

        def wrapped(*values):
            given = check(values)
            if not torch.compiler.is_compiling():
                return eager(*given)
            # A compiled operator would lose tangents; the compiler would lose those of an autograd function, too.
            if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
                return uncompiled(*given)
            return operator(*given)

        wrapped.__name__ = self.operations.name
        wrapped.__doc__ = f"The function {self.operations.function._form} of tensors."
        wrapped.operators = self.operators
        return wrapped

    def _check(self):
        """Returns a function that checks a call's values and converts numbers; `torch.compile` traces the function."""
        torch, name, active = self.torch, self.operations.name, self.operations.active
        params = [
            (p.name, None if p.kind != "array" and not p.is_float else self.dtypes[p.dtype], p.kind == "array",
             len(p.dims) if p.kind == "array" else 0, k in active, p.dtype == "b1")
            for k, p in enumerate(self.operations.params)
        ]
        call = f"{name}.torch({', '.join(p[0] for p in params)})"

        def check(values: tuple) -> list:
            if len(values) != len(params):
                raise TypeError(f"{name}.torch: {len(values)} of {len(params)} arguments are given; call {call}")
            made = []
            for value, (param, dtype, is_array, rank, is_active, is_bool) in zip(values, params):
                if dtype is None:
                    if not isinstance(value, (int, torch.SymInt)):
                        raise TypeError(f"{name}.torch: `{param}` is not an integer but a {type(value).__name__}; pass a "
                                        f"Python {'bool' if is_bool else 'int'}")
                    made.append(bool(value) if is_bool else value)
                    continue
                if not is_array and isinstance(value, (int, float)):
                    made.append(torch.tensor(value, dtype=dtype))
                    continue
                if not isinstance(value, torch.Tensor):
                    raise TypeError(f"{name}.torch: `{param}` is not a tensor but a {type(value).__name__}; pass "
                                    f"torch.as_tensor({param}, dtype={dtype})")
                if value.device.type != "cpu":
                    raise TypeError(f"{name}.torch: `{param}` is on the device {value.device}, but the function runs on the "
                                    f"CPU; pass {param}.cpu()")
                if value.layout != torch.strided:
                    raise TypeError(f"{name}.torch: `{param}` has the layout {value.layout}; pass {param}.to_dense()")
                if value.dtype != dtype:
                    raise TypeError(f"{name}.torch: `{param}` has elements of type {value.dtype}, but the function takes "
                                    f"{dtype}; pass {param}.to({dtype})")
                if value.dim() != rank:
                    raise ValueError(f"{name}.torch: `{param}` has {value.dim()} dimensions, {rank} are expected")
                if value.requires_grad and not is_active and torch.is_grad_enabled():
                    raise ValueError(_inactive(name, param))
                made.append(value)
            return made

        return check

    def _operator(self, kind: str):
        """Defines the operator of an operation."""
        torch, operations = self.torch, self.operations
        call, of_inputs = getattr(operations, kind), [operations.params[k] for k in operations.active]

        def host(values: list) -> list:
            return [v if not isinstance(v, torch.Tensor) else v.detach().resolve_neg().contiguous().numpy() for v in values]

        def run(*values):
            found = call(*map(host, self._groups(kind, values)))
            return _one([torch.from_numpy(array) for array in found])

        def shapes(*values):
            point = list(values[: self.count])
            if kind in ADJOINTS:
                made = [(tuple(point[k].shape), self.dtypes[p.dtype]) for k, p in zip(operations.active, of_inputs)]
            else:
                chosen = range(len(operations.outputs)) if kind == "value" else operations.differentiable
                outputs = [operations.outputs[k] for k in chosen]
                made = [(operations.shape(o, point), self.dtypes[o.dtype]) for o in outputs]
            return _one([torch.empty(shape, dtype=dtype) for shape, dtype in made])

        number = {"b1": "bool"}
        types = ["Tensor" if p.kind == "array" or p.is_float else number.get(p.dtype, "SymInt") for p in operations.params]
        names = [f"{t} p{k}" for k, t in enumerate(types)]
        outputs = {"w": len(operations.differentiable), "v": len(of_inputs)}
        for letter in OPERANDS[kind]:
            names += [f"Tensor p{len(names) + k}" for k in range(outputs[letter])]
        count = len(operations.outputs) if kind == "value" else len(of_inputs) if kind in ADJOINTS else outputs["w"]
        returned = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        schema = f"({', '.join(names)}) -> {returned}"
        made = torch.library.custom_op(f"gradus::{self.key}_{kind}", run, mutates_args=(), device_types="cpu", schema=schema)
        made.register_fake(shapes)
        self._shapes = {**getattr(self, "_shapes", {}), kind: shapes}
        return made

    def _groups(self, kind: str, values) -> list[list]:
        """Splits the operands of an operation: the point, then cotangents or tangents."""
        sizes = {"w": len(self.operations.differentiable), "v": len(self.operations.active)}
        groups, at = [list(values[: self.count])], self.count
        for letter in OPERANDS[kind]:
            groups.append(list(values[at : at + sizes[letter]]))
            at += sizes[letter]
        return groups

    def _save(self, ctx, inputs, output) -> None:
        """Keeps the operands for both modes, and the shapes of the outputs."""
        torch = self.torch
        tensors = [v for v in inputs if isinstance(v, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.numbers = [None if isinstance(v, torch.Tensor) else v for v in inputs]
        ctx.shapes = [tuple(o.shape) for o in _tuple(output)]
        ctx.set_materialize_grads(False)

    def _saved(self, ctx, kind: str) -> list[list]:
        tensors = iter(ctx.saved_tensors)
        return self._groups(kind, [next(tensors) if v is None else v for v in ctx.numbers])

    def _function(self, kind: str):
        """Defines the autograd function of an operation."""
        wrapped, torch = self, self.torch

        def apply(kind: str, point: list, *groups) -> list:
            if kind in SECOND:
                point = [self.fixed.apply(v) if k in self.operations.active else v for k, v in enumerate(point)]
            return list(_tuple(wrapped.functions[kind].apply(*point, *sum(groups, []))))

        # The compiler would trace the rules, which PyTorch calls, and ignore those of nested autograd functions.
        uncompiled = torch.compiler.disable

        class Function(torch.autograd.Function):
            @staticmethod
            @uncompiled
            def forward(*values):
                return wrapped.operators[kind](*values)

            @staticmethod
            @uncompiled
            def setup_context(ctx, inputs, output):
                wrapped._save(ctx, inputs, output)

            @staticmethod
            @uncompiled
            def backward(ctx, *cotangents):
                return wrapped._back(ctx, kind, cotangents, apply)

            @staticmethod
            @uncompiled
            def jvp(ctx, *tangents):
                return wrapped._along(ctx, kind, tangents, apply)

            @staticmethod
            @uncompiled
            def vmap(info, dims, *values):
                return wrapped._batched(kind, info.batch_size, dims, values)

        Function.__name__ = Function.__qualname__ = f"{self.operations.name}.{kind}"
        return Function

    def _fixed(self):
        """Returns the identity, as a function that refuses derivatives: those of a second derivative's point.

        PyTorch runs the refusal only if a derivative with respect to the point is asked for.
        """
        torch, name = self.torch, self.operations.name

        def refuse(*_):
            raise RuntimeError(_third(name))

        class Fixed(torch.autograd.Function):
            forward = staticmethod(torch.compiler.disable(lambda value: value.view_as(value)))
            setup_context = staticmethod(lambda ctx, inputs, output: None)
            backward = staticmethod(refuse)
            jvp = staticmethod(refuse)
            vmap = staticmethod(torch.compiler.disable(lambda info, dims, value: (Fixed.apply(value), dims[0])))

        return Fixed

    def _backward_of_operator(self, kind: str):
        def call(kind: str, *groups) -> list:
            return list(_tuple(self.operators[kind](*sum(groups, []))))

        if kind in SECOND:
            return lambda ctx, *cotangents: self._back_of_second(ctx, kind, cotangents, call)
        return lambda ctx, *cotangents: self._back(ctx, kind, cotangents, call)

    def _along(self, ctx, kind: str, tangents: tuple, call):
        """Returns the tangents of an operation's outputs, by the table of `_operations.py`."""
        point, *more = self._saved(ctx, kind)
        given, *along = self._groups(kind, tangents)
        operations, sums = self.operations, None
        for k, tangent in enumerate(given):
            if tangent is not None and k not in operations.active:
                raise RuntimeError(_inactive(operations.name, operations.params[k].name))
        chosen = [given[k] for k in operations.active]
        if any(t is not None for t in chosen):
            tangent = self._filled(chosen, [point[k] for k in operations.active])
            if kind == "value":
                sums = call("jvp", point, tangent)
            elif kind == "vjp":
                sums = call("second", point, more[0], tangent)
            elif kind == "jvp":
                sums = call("twice", point, more[0], tangent)
            else:
                raise RuntimeError(_third(operations.name))
        for at, own in enumerate(along):
            if any(t is not None for t in own):
                operands = list(more)
                operands[at] = self._filled(own, more[at])
                part = call(kind, point, *operands)
                sums = part if sums is None else [a + b for a, b in zip(sums, part)]
        if kind == "value" and sums is not None:
            found = dict(zip(operations.differentiable, sums))
            sums = [found.get(k) for k in range(len(operations.outputs))]
        return _one(sums) if sums is not None else None

    def _back(self, ctx, kind: str, cotangents: tuple, call) -> tuple:
        """Returns the adjoints of an operation's operands, by the table of `_operations.py`."""
        torch, operations = self.torch, self.operations
        point, *more = self._saved(ctx, kind)
        adjoints = [[None] * len(group) for group in (point, *more)]
        needs, *rest = self._groups(kind, ctx.needs_input_grad)
        for k, needed in enumerate(needs):
            if needed and k not in operations.active and isinstance(point[k], torch.Tensor):
                raise RuntimeError(_inactive(operations.name, operations.params[k].name))
        shapes, given = ctx.shapes, list(cotangents)
        if kind == "value":
            shapes, given = ([group[k] for k in operations.differentiable] for group in (shapes, given))
        if all(c is None for c in given):
            return tuple(sum(adjoints, []))
        dtypes = [self.dtypes[operations.params[k].dtype] for k in operations.active] if kind in ADJOINTS else [
            self.dtypes[operations.outputs[k].dtype] for k in operations.differentiable]
        given = [torch.zeros(s, dtype=d) if c is None else c for c, s, d in zip(given, shapes, dtypes)]
        if any(needs[k] for k in operations.active):
            found = (call("vjp", point, given) if kind == "value" else
                     call("second", point, more[0], given) if kind == "vjp" else
                     call("second", point, given, more[0]) if kind == "jvp" else
                     # `_fixed` refuses a use of these adjoints.
                     [torch.zeros_like(point[k]) for k in operations.active])
            for k, adjoint in zip(operations.active, found):
                adjoints[0][k] = adjoint
        transposed = {
            "value": [],
            "vjp": [lambda: call("jvp", point, given)],
            "jvp": [lambda: call("vjp", point, given)],
            "second": [lambda: call("twice", point, more[1], given), lambda: call("second", point, more[0], given)],
            "twice": [lambda: call("second", point, given, more[1]), lambda: call("second", point, given, more[0])],
        }[kind]
        for at, (needed, transpose) in enumerate(zip(rest, transposed), start=1):
            if any(needed):
                adjoints[at] = transpose()
        return tuple(sum(adjoints, []))

    def _filled(self, tangents: list, like: list) -> list:
        return [self.torch.zeros_like(p) if t is None else t for t, p in zip(tangents, like)]

    def _back_of_second(self, ctx, kind: str, cotangents: tuple, call) -> tuple:
        """Returns the adjoints of a compiled second derivative's operands, but refuses those of the point."""
        if any(ctx.needs_input_grad[k] for k in self.operations.active):
            raise RuntimeError(_third(self.operations.name))
        return self._back(ctx, kind, cotangents, call)

    def _batched(self, kind: str, size: int, dims: tuple, values: tuple) -> tuple:
        """Calls an operation for each element of a batch."""
        torch = self.torch
        moved = [v if d is None else v.movedim(d, 0) for v, d in zip(values, dims)]
        element = lambda k: [v if d is None else v[k] for v, d in zip(moved, dims)]
        if size == 0:
            empty = [v if d is None else v.new_empty(v.shape[1:]) for v, d in zip(moved, dims)]
            made = [o.new_empty((0, *o.shape)) for o in _tuple(self._shapes[kind](*empty))]
        else:
            rows = [_tuple(self.functions[kind].apply(*element(k))) for k in range(size)]
            made = [torch.stack(column) for column in zip(*rows)]
        return _one(made), 0 if len(made) == 1 else (0,) * len(made)


def _third(name: str) -> str:
    return f"{name}.torch: third derivatives are not supported"


def _inactive(name: str, param: str) -> str:
    return (f"{name}.torch: `{param}` requires a derivative, but the function is not differentiated with respect to "
            f"`{param}`; pass {param}.detach(), or add the name to f.wrt(…)")


def _tuple(found) -> tuple:
    return found if isinstance(found, tuple) else tuple(found) if isinstance(found, list) else (found,)


def _one(found: list):
    """Returns a tensor alone, or several as a tuple."""
    return found[0] if len(found) == 1 else tuple(found)
