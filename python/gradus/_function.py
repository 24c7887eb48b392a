"""Functions of compiled programs, with derivatives."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from . import _compile, _plans
from ._errors import SignatureError
from ._form import Form, form
from ._native import Caller, Library
from ._probe import Probe
from ._report import Report


class Function(Caller):
    """A function of a program. `f(x)` calls the function; `f.grad(x)` and other attributes its derivatives.

    Arguments are the function's own in order, without the lengths of arrays. `repr(f)` prints the form.
    """

    def __new__(cls, program: Program, made: _compile.Made, shape: Form, stated: tuple) -> Function:
        library = Library(str(made.library))
        described = made.signature["functions"][0]
        plan = _plans.value(shape, described)
        probe = Probe(shape, made.library, described["entry"], plan)
        first = probe if probe.is_needed else None
        self = super().__new__(cls, library, described["entry"], plan, first)
        self._first = first
        self._library, self._program, self._made, self._form = library, program, made, shape
        self._wrt, self._text = stated
        self._last = None
        self.__name__ = shape.name
        return self

    def __init__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"<gradus function {self._form}>"

    def _derivative(self, mode: str) -> dict:
        return next(d for d in self._made.signature["derivatives"] if d["mode"] == mode)

    def _caller(self, mode: str, plan, *more: str) -> Caller:
        derivative = self._derivative(mode)
        return Caller(self._library, derivative["entry"], plan(self._form, derivative, *more), self._first)

    @cached_property
    def grad(self) -> Caller:
        """`f.grad(x)`: the gradient of the result; a tuple for several active arguments."""
        return self._caller("reverse", _plans.grad)

    @cached_property
    def value_and_grad(self) -> Caller:
        """`f.value_and_grad(x)`: the result, then the gradient with respect to each active argument."""
        return self._caller("reverse", _plans.grad, "value_and_grad")

    @cached_property
    def vjp(self) -> Caller:
        """`f.vjp(x, w)`: the transposed Jacobian times the cotangent `w` of the output."""
        return self._caller("reverse", _plans.vjp)

    @cached_property
    def jvp(self) -> Caller:
        """`f.jvp(x, v)`: the Jacobian times the tangent `v`."""
        return self._caller("forward", _plans.jvp)

    @cached_property
    def hvp(self) -> Caller:
        """`f.hvp(x, v)`: the Hessian times the tangent `v`. The first use compiles a second derivative."""
        _plans.grad(self._form, self._derivative("reverse"))
        return self._second_caller("reverse", _plans.hvp)

    @cached_property
    def _second(self) -> Caller:
        """`f._second(x, w, v)`: the derivative of `f.vjp(x, w)` along `v`."""
        return self._second_caller("reverse", _plans.second)

    @cached_property
    def _twice(self) -> Caller:
        """`f._twice(x, v, u)`: the derivative of `f.jvp(x, v)` along `u`."""
        return self._second_caller("forward", _plans.twice)

    @cached_property
    def _dependencies(self) -> Caller:
        """`f._dependencies(x, v)`: `f.jvp` with sets of inputs in place of tangents."""
        made = _compile.dependencies(self._program.source, self.__name__, self._wrt)
        derivative = made.signature["derivatives"][0]
        plan = _plans.jvp(self._form, derivative)
        return Caller(Library(str(made.library)), derivative["entry"], plan, self._first)

    @cached_property
    def _second_dependencies(self) -> Caller:
        """`f._second_dependencies(x, v)`: `f.hvp` with sets of inputs in place of tangents."""
        _plans.grad(self._form, self._derivative("reverse"))
        return self._second_caller("reverse", _plans.hvp, "dependencies")

    @cached_property
    def _patterns(self) -> dict:
        """The sparsity patterns in use, by derivative and shape of the active argument."""
        return {}

    def _second_caller(self, mode: str, plan, outer: str = "forward") -> Caller:
        library, entry, made = self._second_entry(mode, plan, outer)
        return Caller(Library(str(library)), entry, made, self._first)

    def _second_entry(self, mode: str, plan, outer: str = "forward") -> tuple[Path, str, dict]:
        """Compiles the JVP, or the dependency sets, of a derivative. Returns the library, the uniform entry and the plan."""
        numbers = [i for i in self._inputs if self._form.arguments[i].passing == "value"]
        if mode == "reverse" and len(numbers) > 1:
            names = ", ".join(self._form.arguments[i].name for i in numbers)
            raise SignatureError(f"{self.__name__}: second derivatives with respect to several numbers by value "
                                 f"({names}) are not supported; choose arguments with f.wrt(…)")
        made = _compile.second(self._program.source, self.__name__, self._wrt, mode, outer)
        first, second = made.first["derivatives"][0], made.signature["derivatives"][0]
        return made.library, second["entry"], plan(self._form, first, second)

    def _entry(self, kind: str) -> tuple[Path, str, dict]:
        """Returns the library, the uniform entry and the plan of an operation of `_operations.py`."""
        if kind in ("second", "twice"):
            return self._second_entry("reverse" if kind == "second" else "forward", getattr(_plans, kind))
        if kind == "value":
            described, plan = self._made.signature["functions"][0], _plans.value
        else:
            described = self._derivative("reverse" if kind == "vjp" else "forward")
            plan = getattr(_plans, kind)
        return self._made.library, described["entry"], plan(self._form, described)

    @property
    def _inputs(self) -> list[int]:
        return _plans.inputs(self._form, self._derivative("reverse"))

    @property
    def _has_active_result(self) -> bool:
        return any(a["role"] == "cotangent" for a in self._derivative("reverse")["arguments"])

    @property
    def _written(self) -> list[int]:
        return _plans.written(self._form, self._derivative("reverse"))

    def jac(self, *args, sparse=False, **kwargs):
        """Returns the Jacobian, of shape output shape + input shape, by JVPs or VJPs, whichever are fewer.

        `sparse=True` returns a SciPy CSR matrix with a row per output element and a column per input element; a pattern of
        `f.sparsity` in place of `True` states where entries are.
        """
        if sparse is not False:
            from ._sparse import sparse as evaluate

            return evaluate(self, "jac", sparse, args, kwargs)
        from ._dense import jacobian

        return jacobian(self, args, kwargs)

    def hess(self, *args, sparse=False, **kwargs):
        """Returns the Hessian with respect to the one active argument, by Hessian-vector products; `sparse` as in `jac`."""
        if sparse is not False:
            from ._sparse import sparse as evaluate

            return evaluate(self, "hess", sparse, args, kwargs)
        from ._dense import hessian

        return hessian(self, args, kwargs)

    @property
    def pattern(self):
        """The pattern of the last sparse derivative; None before the first."""
        return self._last

    @property
    def colours(self) -> int | None:
        """The number of colours of the last sparse derivative: its products."""
        return self._last and self._last.colours

    def sparsity(self, *args, of: str = "jac", **kwargs):
        """Returns the sparsity pattern of the Jacobian (`of="jac"`) or Hessian (`"hess"`) with a colouring."""
        from ._sparse import sparsity

        return sparsity(self, of, args, kwargs)

    def check(self, *args, **kwargs):
        """Compares JVP, VJP and finite differences at these arguments. Returns a report; raises `Wrong`."""
        from ._check import check

        return check(self, args, kwargs)

    @cached_property
    def jax(self):
        """The function for JAX: `jit`, `grad`, `jvp`, `vjp`, `hessian`, `vmap`."""
        from ._jax import wrap

        return wrap(self)

    @cached_property
    def torch(self):
        """The function for PyTorch: `backward`, `torch.func`, `torch.compile`."""
        from ._torch import wrap

        return wrap(self)

    @cached_property
    def tf(self):
        """The function for TensorFlow: `GradientTape`, `ForwardAccumulator`, `tf.function`."""
        from ._tensorflow import wrap

        return wrap(self)

    @cached_property
    def scipy(self):
        """Calls of SciPy: `f.scipy.minimize(x0)`, `f.scipy.least_squares(x0)`."""
        from ._scipy import Scipy

        return Scipy(self)

    def report(self) -> Report:
        """Returns the compiler's report: a dictionary with the fields of `docs/reference/report.md`; `str(…)` is text, and
        `.html(path)` writes a page."""
        return self._made.report

    def wrt(self, *names: str) -> Function:
        """Returns the function with derivatives with respect to these arguments only."""
        return self._program.function(self.__name__, names, self._text)

    def signature(self, text: str | None = None) -> Function | str:
        """Returns the form as text; with a text (`x: in[n], y: out[2*n]`), the function in this form."""
        return str(self._form) if text is None else self._program.function(self.__name__, self._wrt, text)


class Undecided:
    """A function with arrays of unknown length: calls need a signature."""

    def __init__(self, program: Program, shape: Form, stated: tuple) -> None:
        self._program, self._form, self.__name__ = program, shape, shape.name
        self._wrt, self._text = stated

    def __repr__(self) -> str:
        return f"<gradus function {self._form}, undecided>"

    def signature(self, text: str) -> Function | Undecided:
        """Returns the function in the form that the text states: `x: in[n], y: out[2*n]`."""
        return self._program.function(self.__name__, self._wrt, text)

    def _refuse(self) -> SignatureError:
        unknown = [a.name for a in self._form.undecided]
        example = ", ".join(f"{name}: [n]" for name in unknown)
        return SignatureError(
            f"{self.__name__}: the length of {', '.join(unknown)} is unknown ({self._form}); state the signature with "
            f"integers of the function or numbers, for example f = f.signature(\"{example}\")"
        )

    def __call__(self, *_: object, **__: object) -> None:
        raise self._refuse()

    def __getattr__(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._refuse()


class Program:
    """A compiled program. Its functions are attributes, compiled at their first use."""

    def __init__(self, source: _compile.Source, signatures: dict[str, str], types: dict[str, str] | None = None) -> None:
        self.source, self.stated, self.types = source, dict(signatures), types or {}

    def __repr__(self) -> str:
        return f"<gradus program {', '.join(map(str, self.source.files))}>"

    def function(self, name: str, wrt: tuple[str, ...] = (), signature: str | None = None) -> Function | Undecided:
        """Compiles a function with its derivatives, or finds the result in the cache."""
        made = _compile.derivatives(self.source, name, tuple(wrt))
        shape = form(made.signature["functions"][0], signature, self.types)
        if shape.undecided:
            return Undecided(self, shape, (tuple(wrt), signature))
        return Function(self, made, shape, (tuple(wrt), signature))

    def __getattr__(self, name: str) -> Function | Undecided:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self.function(name, (), self.stated.get(name))
        self.__dict__[name] = found
        return found

    __getitem__ = function
