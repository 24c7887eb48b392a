"""The Python form of a function: which C arguments are parameters, lengths and outputs.

The form follows from the signature that the compiler writes, and from a text of the user's where the signature leaves
more than one reading: C says neither how long the array behind a pointer is, nor whether an array that the function
writes is an output only.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from ._errors import SignatureError

INTEGERS = {
    "bool": "b1", "_Bool": "b1", "char": "i1", "signed char": "i1", "unsigned char": "u1",
    "short": "i2", "unsigned short": "u2", "int": "i4", "unsigned int": "u4",
    "long": "i8", "unsigned long": "u8", "long long": "i8", "unsigned long long": "u8",
    "int8_t": "i1", "int16_t": "i2", "int32_t": "i4", "int64_t": "i8",
    "uint8_t": "u1", "uint16_t": "u2", "uint32_t": "u4", "uint64_t": "u8",
}
FLOATS = {"double": "f8", "float": "f4"}
DTYPES = INTEGERS | FLOATS
# Names of integers that count the elements of all arrays of a function.
COUNTS = {"n", "len", "length", "size", "count", "num"}


@dataclass(frozen=True)
class Argument:
    """A C argument in its Python form."""

    name: str
    dtype: str
    # "array", "number" or "length": a length is the number of elements in a dimension of an array.
    kind: str
    # "value", "pointer" or "descriptor".
    passing: str
    # "in", "inout" or "out".
    intent: str = "in"
    # The lengths in the dimensions of an array, as expressions; None if unknown.
    dims: tuple[str, ...] | None = None
    is_fortran: bool = False
    is_guess: bool = False

    @property
    def is_float(self) -> bool:
        """True for floats."""
        return self.dtype in FLOATS.values()

    @property
    def is_parameter(self) -> bool:
        """True if a call passes the argument."""
        return self.kind != "length" and self.intent != "out"

    def __str__(self) -> str:
        shape = "" if self.kind != "array" else f"[{', '.join(self.dims)}]" if self.dims is not None else "[?]"
        return f"{self.name}: {self.intent} {self.dtype}{shape}"


@dataclass(frozen=True)
class Form:
    """A function in its Python form."""

    name: str
    arguments: tuple[Argument, ...]
    # The type of the result, None without a result.
    result: str | None

    @property
    def undecided(self) -> list[Argument]:
        """Arrays of unknown length."""
        return [a for a in self.arguments if a.kind == "array" and a.dims is None]

    def __str__(self) -> str:
        parts = [str(a) for a in self.arguments if a.kind != "length"]
        lengths = [f"{a.name}: length" for a in self.arguments if a.kind == "length"]
        result = f" -> {self.result}" if self.result else ""
        return f"{self.name}({', '.join(parts + lengths)}){result}"


def form(function: dict, text: str | None = None, types: dict[str, str] | None = None) -> Form:
    """Returns the Python form of a function of a signature, with the user's text on arguments.

    `types` holds types of elements, by argument, that the compiler does not know.
    """
    result = function["result"]
    if result not in DTYPES and result != "void":
        raise SignatureError(f"{function['name']}: results of type `{result}` are not supported; return a number")
    arguments = [_argument(function["name"], a) for a in function["arguments"]]
    arguments = [replace(a, dtype=a.dtype or (types or {}).get(a.name, "")) for a in arguments]
    said = _parse(function["name"], text, [a.name for a in arguments]) if text else {}
    arguments = [_merge(function["name"], a, said.get(a.name)) for a in arguments]
    missing = [a.name for a in arguments if not a.dtype]
    if missing:
        example = ", ".join(f"{name}: f8[n]" for name in missing)
        raise SignatureError(f"{function['name']}: the type behind {', '.join(missing)} is unknown; state the signature, "
                             f"for example \"{example}\"")
    arguments = _guess_lengths(arguments)
    arguments = _bind_lengths(arguments)
    return Form(function["name"], tuple(arguments), None if result == "void" else DTYPES[result])


def _argument(function: str, told: dict) -> Argument:
    """Returns the form of an argument by the compiler's signature alone."""
    name, c_type, passing = told["name"], told["type"], told["passing"]
    shape = told["shape"]
    intent = "inout" if told["written"] else "in"
    if passing == "value":
        if c_type not in DTYPES:
            raise SignatureError(f"{function}: `{name}` has type {c_type}, which has no Python form; "
                                 "write a function that takes numbers and arrays, and calls this one")
        return Argument(name, DTYPES[c_type], "number", passing)
    element = told["element"] or ""
    if element not in DTYPES and c_type.replace("const ", "") != "void *":
        raise SignatureError(f"{function}: `{name}` has type {c_type}, which has no Python form; "
                             "write a function that takes numbers and arrays, and calls this one")
    dtype = DTYPES.get(element, "")
    if passing == "descriptor":
        if told["descriptor"] != "assumed shape":
            raise SignatureError(f"{function}: `{name}` is {told['descriptor']}; write a procedure that takes "
                                 f"`{name}(:)`, and calls this one")
        dims = tuple(f"{name}.shape[{k}]" for k in range(len(shape)))
        return Argument(name, dtype, "array", passing, intent, dims, True)
    if shape == []:
        return Argument(name, dtype, "number", passing, intent)
    if shape is not None:
        known = None if None in shape else tuple(map(str, shape))
        return Argument(name, dtype, "array", passing, intent, known, True, False)
    return Argument(name, dtype, "array", passing, intent)


ITEM = re.compile(r"\s*(\w+)\s*:\s*(inout|in|out)?\s*([fiub][1248])?\s*(?:\[([^\]]*)\])?\s*$")


def _parse(function: str, text: str, names: list[str]) -> dict:
    """Reads `x: in f8[n], y: out[2*n]`."""
    said = {}
    for item in re.split(r",(?![^\[]*\])", text):
        found = ITEM.match(item)
        if not found:
            raise SignatureError(f"{function}: `{item.strip()}` is not understood; write for example "
                                 "\"x: in[n], y: out[2*n]\"")
        name, intent, dtype, dims = found.groups()
        if name not in names:
            raise SignatureError(f"{function} has no argument `{name}`; the arguments are {', '.join(names)}")
        shape = None if dims is None else tuple(d.strip() for d in dims.split(",") if d.strip())
        said[name] = (intent, dtype, shape)
    return said


def _merge(function: str, argument: Argument, said: tuple | None) -> Argument:
    """Returns the argument with the user's words, which must fit the compiler's."""
    if said is None:
        return argument
    intent, dtype, dims = said
    if dtype and argument.dtype and dtype != argument.dtype:
        raise SignatureError(f"{function}: `{argument.name}` is {argument.dtype} in the source, not {dtype}")
    if intent and argument.intent == "in" and intent != "in":
        raise SignatureError(f"{function}: `{argument.name}` is not written by the function, and cannot be {intent}")
    if intent == "in" and argument.intent != "in":
        raise SignatureError(f"{function}: `{argument.name}` is written by the function; say inout or out")
    if intent == "out" and argument.passing == "descriptor":
        raise SignatureError(f"{function}: the shape of `{argument.name}` is the caller's; pass an array")
    if dims is not None and argument.passing == "value":
        raise SignatureError(f"{function}: `{argument.name}` is a number, not an array")
    kind, shape = argument.kind, argument.dims
    if dims is not None:
        if argument.passing == "descriptor" and len(dims) != len(argument.dims):
            raise SignatureError(f"{function}: `{argument.name}` has {len(argument.dims)} dimensions")
        kind, shape = ("array", dims) if dims else ("number", None)
    return replace(argument, dtype=argument.dtype or dtype or "", intent=intent or argument.intent, kind=kind, dims=shape)


def _is_count_of(name: str, array: str) -> bool:
    """Returns whether an integer's name says that it counts the elements of an array."""
    name, array = name.lower(), array.lower()
    starts = [f"{word}{joint}{array}" for word in ("n", "len", "num", "size") for joint in ("", "_")]
    ends = [f"{array}{joint}{word}" for word in ("n", "len", "length", "size", "count") for joint in ("", "_")]
    return name in starts or name in ends


def _guess_lengths(arguments: list[Argument]) -> list[Argument]:
    """Gives arrays of unknown length the length that the names of integers say, if there is one reading only."""
    integers = [a.name for a in arguments if a.kind == "number" and not a.is_float and a.intent == "in"]
    counts = [name for name in integers if name.lower() in COUNTS]
    guessed = []
    for argument in arguments:
        own = [name for name in integers if _is_count_of(name, argument.name)]
        readings = own or counts
        if argument.kind == "array" and argument.dims is None and len(readings) == 1:
            argument = replace(argument, dims=(readings[0],), is_guess=True)
        guessed.append(argument)
    return guessed


def _bind_lengths(arguments: list[Argument]) -> list[Argument]:
    """Turns integers that are a whole dimension of a parameter into lengths."""
    bare = {dim for a in arguments if a.kind == "array" and a.is_parameter for dim in a.dims or ()}
    is_length = lambda a: a.kind == "number" and not a.is_float and a.intent == "in" and a.name in bare
    return [replace(a, kind="length") if is_length(a) else a for a in arguments]


def postfix(function: str, text: str, variables: dict[str, int]) -> list[tuple[str, int]]:
    """Returns a length's expression in postfix order."""
    if text in variables:
        return [("variable", variables[text])]

    def walk(node: ast.expr) -> list[tuple[str, int]]:
        signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
        if isinstance(node, ast.BinOp) and type(node.op) in signs:
            return [*walk(node.left), *walk(node.right), (signs[type(node.op)], 0)]
        if isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value < 2**62:
            return [("constant", node.value)]
        if isinstance(node, ast.Name) and node.id in variables:
            return [("variable", variables[node.id])]
        raise SignatureError(f"{function}: the length `{text}` is not understood; use integers of the function "
                             f"({', '.join(v for v in variables if v.isidentifier()) or 'there are none'}), numbers, +, - and *")

    try:
        return walk(ast.parse(text, mode="eval").body)
    except SyntaxError:
        raise SignatureError(f"{function}: the length `{text}` is not understood") from None
