"""Plans of calls for `gradus._native`: the operations of a function as arguments of uniform entries."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._errors import SignatureError
from ._form import Argument, Form, postfix

SIZES = {"f8": 8, "f4": 4, "i1": 1, "i2": 2, "i4": 4, "i8": 8, "u1": 1, "u2": 2, "u4": 4, "u8": 8, "b1": 1}


@dataclass
class Builder:
    """A plan in the making. The parameters of the function come first, then tangents or cotangents."""

    form: Form
    operation: str
    params: list[dict] = field(default_factory=list)
    variables: list[dict] = field(default_factory=list)
    buffers: list[dict] = field(default_factory=list)
    slots: list[tuple] = field(default_factory=list)
    outputs: list[tuple] = field(default_factory=list)
    result_bytes: int = 0
    is_tuple: bool = False
    keeps_arrays: bool = True

    def __post_init__(self) -> None:
        self.numbers = {}
        self.positions = {}
        self.names = {}
        self._declare_variables()
        for argument in self.form.arguments:
            if argument.is_parameter:
                self.positions[argument.name] = self.add_param(argument.name, argument, keep=self.keeps_arrays)
        for variable, argument in self._integers:
            variable["param"] = self.positions.get(argument.name)

    def _declare_variables(self) -> None:
        """Declares the integers of the function, and the lengths of arrays with a descriptor."""
        self._integers = []
        for argument in self.form.arguments:
            if argument.kind != "array" and not argument.is_float and argument.intent == "in":
                self.names[argument.name] = len(self.variables)
                self.variables.append({"name": argument.name, "dtype": argument.dtype, "param": None})
                self._integers.append((self.variables[-1], argument))
            for dim in argument.dims or ():
                if dim.startswith(f"{argument.name}.shape"):
                    self.names[dim] = len(self.variables)
                    self.variables.append({"name": dim, "dtype": "i8", "param": None})

    def lengths(self, argument: Argument) -> list:
        """Returns the lengths of an array's dimensions."""
        return [postfix(self.form.name, dim, self.names) for dim in argument.dims or ()]

    def add_param(self, name: str, argument: Argument, *, keep: bool, like: str | None = None) -> int:
        """Adds a Python parameter of the type of an argument. The entry leaves the array unchanged if `keep`."""
        is_array = argument.kind == "array"
        self.params.append({
            "name": name,
            "is_array": is_array,
            "dtype": argument.dtype,
            "dims": self.lengths(argument) if is_array else None,
            "like": self.positions.get(like) if is_array else None,
            "is_written": argument.intent != "in" and not keep and is_array,
            "is_fortran": argument.is_fortran,
        })
        return len(self.params) - 1

    def add_buffer(self, argument: Argument, copy_of: int | None = None) -> int:
        """Adds memory of the type of an argument: zeros, or a copy of a parameter."""
        like = copy_of if copy_of is not None else self.positions.get(argument.name)
        self.buffers.append({
            "name": argument.name,
            "dtype": argument.dtype,
            "like": like,
            "dims": self.lengths(argument) if like is None and argument.kind == "array" else [],
            "is_copy": copy_of is not None,
            "is_scalar": argument.kind != "array",
            "is_fortran": argument.is_fortran,
        })
        return len(self.buffers) - 1

    def slot(self, source: str, index: float, argument: Argument, passing: str | None = None) -> None:
        """Adds an argument of the entry."""
        self.slots.append((source, float(index), passing or argument.passing, argument.dtype))

    def primal(self, argument: Argument) -> int | None:
        """Adds the function's own argument. Returns the buffer of an output."""
        if argument.kind == "length":
            self.slot("variable", self.names[argument.name], argument)
            return None
        position = self.positions.get(argument.name)
        is_changed = argument.intent == "inout" and (self.keeps_arrays or argument.kind != "array")
        if argument.intent == "out" or is_changed:
            buffer = self.add_buffer(argument, copy_of=position)
            self.slot("buffer", buffer, argument)
            return buffer
        self.slot("param", position, argument)
        return None

    def add_results(self, parts: list[dict]) -> list[tuple]:
        """Lays out the entry's result by C's rules. Returns the outputs, one per part."""
        from ._form import DTYPES

        offset, alignment, made = 0, 1, []
        for part in parts:
            dtype = DTYPES.get(part["type"])
            if dtype is None:
                raise SignatureError(f"{self.form.name}: results of type `{part['type']}` are not supported")
            size = SIZES[dtype]
            alignment = max(alignment, size)
            offset = -(-offset // size) * size
            made.append(("result", offset, dtype))
            offset += size
        self.result_bytes = -(-offset // alignment) * alignment
        return made

    def plan(self) -> dict:
        """Returns the plan."""
        return {
            "name": f"{self.form.name}{'.' if self.operation else ''}{self.operation}",
            "params": self.params,
            "variables": self.variables,
            "buffers": self.buffers,
            "slots": self.slots,
            "outputs": self.outputs,
            "is_tuple": self.is_tuple,
            "result_bytes": self.result_bytes,
        }


def active(form: Form, derivative: dict) -> list[int]:
    """Returns the indices of the floats that a derivative is with respect to."""
    roles = {a["of"] for a in derivative["arguments"] if a["role"] == "active"}
    return sorted(i for i in roles if form.arguments[i].is_float)


def inputs(form: Form, derivative: dict) -> list[int]:
    """Returns the indices of the active arguments that a call passes."""
    return [i for i in active(form, derivative) if form.arguments[i].is_parameter]


def written(form: Form, derivative: dict) -> list[int]:
    """Returns the indices of the active arguments that the function writes."""
    return [i for i in active(form, derivative) if form.arguments[i].intent != "in"]


def value(form: Form, function: dict) -> dict:
    """Plans a call of the function itself. Arrays with intent inout change in place."""
    made = Builder(form, "", keeps_arrays=False)
    buffers = [made.primal(argument) for argument in form.arguments]
    if form.result:
        made.outputs += made.add_results([{"type": function["result"]}])
    made.outputs += [("buffer", b, made.buffers[b]["dtype"]) for b in buffers if b is not None]
    return made.plan()


def _output(made: Builder, buffer: int) -> tuple:
    return ("buffer", buffer, made.buffers[buffer]["dtype"])


def _names(prefix: str, form: Form, indices: list[int | None]) -> list[str]:
    """Returns names of tangents or cotangents: `v`, or `v_x`, `v_y` for several; None is the result."""
    if len(indices) == 1:
        return [prefix]
    return [f"{prefix}_{'result' if i is None else form.arguments[i].name}" for i in indices]


def jvp(form: Form, derivative: dict) -> dict:
    """Plans a JVP: the arguments, then a tangent per active input. Returns the tangents of the outputs."""
    made = Builder(form, "jvp")
    tangents = _add_tangents(made, derivative, "v")
    results = {}
    for part in derivative["arguments"]:
        i = part["of"]
        argument = form.arguments[i]
        if part["role"] != "shadow":
            made.primal(argument)
        elif i in tangents and argument.intent == "in":
            made.slot("param", tangents[i], argument)
        else:
            results[i] = made.add_buffer(argument, copy_of=tangents.get(i))
            made.slot("buffer", results[i], argument)
    parts = made.add_results(derivative["results"])
    for part, output in zip(derivative["results"], parts):
        if part["role"] == "result tangent":
            made.outputs.append(output)
    made.outputs += [_output(made, results[i]) for i in written(form, derivative)]
    if not made.outputs:
        raise SignatureError(f"{form.name} has no differentiable output")
    return made.plan()


def _reverse(made: Builder, derivative: dict, cotangents: dict) -> None:
    """Adds the arguments and the adjoints of a VJP. `cotangents` are parameters by argument, None for the result."""
    form, adjoints, value = made.form, {}, []
    for part in derivative["arguments"]:
        i = part["of"]
        if part["role"] == "cotangent":
            argument = Argument("", "f4" if part["type"] == "float" else "f8", "number", "value")
            source = ("param", cotangents[None]) if None in cotangents else ("constant", 1.0)
            made.slot(*source, argument)
        elif part["role"] == "shadow":
            argument = form.arguments[i]
            adjoints[i] = made.add_buffer(argument, copy_of=cotangents.get(i))
            made.slot("buffer", adjoints[i], argument)
        else:
            made.primal(form.arguments[i])
    outputs = {i: _output(made, buffer) for i, buffer in adjoints.items()}
    parts = made.add_results(derivative["results"])
    for part, output in zip(derivative["results"], parts):
        if part["role"] == "adjoint":
            outputs[part["of"]] = output
        elif part["role"] == "primal result":
            value.append(output)
    gradient = [outputs[i] for i in inputs(form, derivative)]
    made.outputs = (value if made.operation == "value_and_grad" else []) + gradient


def vjp(form: Form, derivative: dict) -> dict:
    """Plans a VJP: the arguments, then a cotangent per output. Returns the adjoints of the active inputs."""
    made = Builder(form, "vjp")
    cotangents = _add_cotangents(made, derivative)
    _reverse(made, derivative, cotangents)
    return made.plan()


def grad(form: Form, derivative: dict, operation: str = "grad") -> dict:
    """Plans the gradient of the result with respect to the active inputs."""
    if not any(a["role"] == "cotangent" for a in derivative["arguments"]):
        raise SignatureError(f"{form.name} returns no float, so that there is no gradient; use vjp or jac")
    made = Builder(form, operation)
    _reverse(made, derivative, {})
    return made.plan()


def _add_tangents(made: Builder, derivative: dict, prefix: str) -> dict:
    """Adds a parameter per active input, a tangent. Returns the parameters by argument."""
    own = inputs(made.form, derivative)
    tangents = {}
    for i, name in zip(own, _names(prefix, made.form, own)):
        argument = made.form.arguments[i]
        tangents[i] = made.add_param(name, argument, keep=True, like=argument.name)
    return tangents


def _add_cotangents(made: Builder, derivative: dict) -> dict:
    """Adds a parameter per output, a cotangent. Returns the parameters by argument, None for the result."""
    form = made.form
    has_result = any(a["role"] == "cotangent" for a in derivative["arguments"])
    outputs = ([None] if has_result else []) + written(form, derivative)
    if not outputs:
        raise SignatureError(f"{form.name} has no differentiable output")
    cotangents = {}
    for i, name in zip(outputs, _names("w", form, outputs)):
        argument = Argument(name, form.result or "f8", "number", "value") if i is None else form.arguments[i]
        like = argument.name if i is not None and argument.is_parameter else None
        cotangents[i] = made.add_param(name, argument, keep=True, like=like)
    return cotangents


def _directional(made: Builder, first: dict, second: dict, *, tangents: dict, shadows: dict, result: dict) -> dict:
    """Adds the arguments of a derivative's JVP along `tangents` of the active inputs; shadows are constant.

    `shadows` are parameters by argument: tangents if `first` is a JVP, cotangents if `first` is a VJP. `result` holds the
    cotangent of the result. Returns the buffers with the tangents of shadows, by argument.
    """
    form, products = made.form, {}
    is_jvp = first["mode"] == "forward"
    for part in second["arguments"]:
        own = first["arguments"][part["of"]]
        is_tangent = part["role"] == "shadow"
        if own["role"] == "cotangent":
            source = ("param", result[None]) if None in result else ("constant", 1.0)
            made.slot(*source, Argument("", "f4" if own["type"] == "float" else "f8", "number", "value"))
            continue
        i = own["of"]
        argument = form.arguments[i]
        is_constant = argument.intent == "in"
        if own["role"] != "shadow" and not is_tangent:
            made.primal(argument)
        elif own["role"] != "shadow" and i in tangents and is_constant:
            made.slot("param", tangents[i], argument)
        elif own["role"] == "shadow" and not is_tangent and is_jvp and i in shadows and is_constant:
            made.slot("param", shadows[i], argument)
        elif own["role"] == "shadow" and is_tangent and argument.passing == "value":
            made.slot("constant", 0.0, argument)
        else:
            given = tangents if own["role"] != "shadow" else {} if is_tangent else shadows
            buffer = made.add_buffer(argument, copy_of=given.get(i))
            made.slot("buffer", buffer, argument)
            if own["role"] == "shadow" and is_tangent:
                products[i] = buffer
    return products


def _adjoint_tangents(made: Builder, first: dict, second: dict, products: dict) -> None:
    """Returns from the call the tangents of the adjoints of the active inputs."""
    form, own = made.form, inputs(made.form, first)
    outputs = {i: _output(made, buffer) for i, buffer in products.items()}
    # The adjoint of the one active number by value is the gradient's result.
    number = next((i for i in own if form.arguments[i].passing == "value"), None)
    for part, output in zip(second["results"], made.add_results(second["results"])):
        if part["role"] == "result tangent":
            outputs[number] = output
    made.outputs = [outputs[i] for i in own]


def hvp(form: Form, first: dict, derivative: dict) -> dict:
    """Plans a Hessian-vector product: the JVP of the gradient. `derivative` is the JVP of `first`, a VJP."""
    made = Builder(form, "hvp")
    tangents = _add_tangents(made, first, "v")
    products = _directional(made, first, derivative, tangents=tangents, shadows={}, result={})
    _adjoint_tangents(made, first, derivative, products)
    return made.plan()


def second(form: Form, first: dict, derivative: dict) -> dict:
    """Plans the JVP of a VJP: the arguments, a cotangent per output, then a tangent per active input."""
    made = Builder(form, "second")
    cotangents = _add_cotangents(made, first)
    tangents = _add_tangents(made, first, "v")
    products = _directional(made, first, derivative, tangents=tangents, shadows=cotangents, result=cotangents)
    _adjoint_tangents(made, first, derivative, products)
    return made.plan()


def twice(form: Form, first: dict, derivative: dict) -> dict:
    """Plans the JVP of a JVP: the arguments, then two tangents per active input. Returns tangents of the outputs."""
    made = Builder(form, "twice")
    inner, outer = _add_tangents(made, first, "v"), _add_tangents(made, first, "u")
    products = _directional(made, first, derivative, tangents=outer, shadows=inner, result={})
    parts = made.add_results(derivative["results"])
    for part, output in zip(derivative["results"], parts):
        if part["role"] == "result tangent":
            made.outputs.append(output)
    made.outputs += [_output(made, products[i]) for i in written(form, first)]
    return made.plan()
