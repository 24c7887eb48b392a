"""`f.scipy`: SciPy's optimisers with the function's derivatives."""

from __future__ import annotations

import numpy

from ._errors import SignatureError

# Methods of scipy.optimize.minimize that take Hessian-vector products.
SECOND_ORDER = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}


class Scipy:
    """Calls of SciPy for functions of one active argument. Other parameters follow by `args`."""

    def __init__(self, function) -> None:
        try:
            import scipy.optimize
        except ImportError as error:
            raise ImportError(f"{function.__name__}.scipy needs the package scipy: pip install scipy") from error
        self._optimize, self._function = scipy.optimize, function
        params = [a for a in function._form.arguments if a.is_parameter]
        active = [function._form.arguments[i].name for i in function._inputs]
        if len(active) != 1 or params[0].name != active[0]:
            raise SignatureError(f"{function.__name__}.scipy: the first parameter must be the only active one; the active "
                                 f"ones are {', '.join(active)}, choose one with f.wrt(…)")

    def minimize(self, x0, args: tuple = (), method: str = "L-BFGS-B", **options):
        """Calls `scipy.optimize.minimize` with the gradient, and with Hessian-vector products if the method takes them."""
        function = self._function
        if method.lower() in SECOND_ORDER:
            options.setdefault("hessp", lambda x, v, *rest: function.hvp(x, *rest, v))
        start = numpy.array(x0, dtype="f8")
        return self._optimize.minimize(function.value_and_grad, start, args=args, jac=True, method=method, **options)

    def least_squares(self, x0, args: tuple = (), **options):
        """Calls `scipy.optimize.least_squares` with the Jacobian of the one output array."""
        start = numpy.array(x0, dtype="f8")
        return self._optimize.least_squares(self._function, start, jac=self._function.jac, args=args, **options)
