"""Functions that Numba compiled with `@cfunc`, as programs of LLVM IR.

Numba writes a function that returns a status, and stores the result behind a pointer; a wrapper turns a status into an
exception of the interpreter. The program of `source` has another wrapper, with the arguments' names, and without the
interpreter. A function that may end with another status than 0 is refused: native code cannot raise an exception.
"""

from __future__ import annotations

import inspect
import re

from ._errors import SignatureError

# Numba's numbers: the type in LLVM IR, and the type of elements.
NUMBERS = {
    "float64": ("double", "f8"), "float32": ("float", "f4"),
    "int8": ("i8", "i1"), "int16": ("i16", "i2"), "int32": ("i32", "i4"), "int64": ("i64", "i8"),
    "uint8": ("i8", "u1"), "uint16": ("i16", "u2"), "uint32": ("i32", "u4"), "uint64": ("i64", "u8"),
}
NAME = r'(?:"[^"\n]+"|[\w.$-]+)'
WRAPPER = re.compile(rf'^define [^\n@]*@"?cfunc\.[^\n]*\{{\n(.*?)^\}}\n', re.MULTILINE | re.DOTALL)


def source(function) -> tuple[str, str, dict[str, str]]:
    """Returns the name, the program's text, and the types of the elements behind pointers by argument."""
    if not (hasattr(function, "inspect_llvm") and hasattr(function, "native_name") and hasattr(function, "_sig")):
        raise TypeError(f"gradus.from_numba: {_described(function)} is not a function of @numba.cfunc; write for example "
                        "@numba.cfunc(\"float64(CPointer(float64), int64)\")")
    name, signature = function._pyfunc.__name__, function._sig
    names = list(inspect.signature(function._pyfunc).parameters)
    types = [_argument(name, *pair) for pair in zip(names, signature.args)]
    result = _result(name, signature.return_type)
    text = function.inspect_llvm()
    own = WRAPPER.search(text)
    inner = function.native_name.removeprefix("cfunc.")
    body = re.search(rf'^define [^\n@]*@"?{re.escape(inner)}"?\(([^\n]*)\)[^\n()]*\{{\n(.*?)^\}}\n', text, re.MULTILINE | re.DOTALL)
    if not own or not body:
        raise SignatureError(f"{name}: the LLVM IR of this release of Numba has another form; use the releases that "
                             "docs/howto/numba.md names")
    if set(re.findall(r"^\s*ret i32 (\S+)", body[2], re.MULTILINE)) != {"0"}:
        raise SignatureError(f"{name}: the function may raise an exception, which native code cannot do; compile with "
                             "@numba.cfunc(…, error_model=\"numpy\"), and use no raise, no assert and no new arrays")
    attributes = re.findall(r"ptr([^,]*?)%arg\.", body[1])
    if len(attributes) != sum(t[0] == "ptr" for t in types):
        attributes = [""] * len(types)
    text = text[: own.start()] + text[own.end() :] + _entry(name, inner, names, types, result, attributes)
    return name, text, {n: element for n, (kind, element) in zip(names, types) if kind == "ptr"}


def _described(function) -> str:
    return f"`{getattr(function, '__name__', function)}` of type {type(function).__name__}"


def _argument(function: str, name: str, given) -> tuple[str, str]:
    """Returns the type in LLVM IR and the type of elements."""
    pointee = getattr(given, "dtype", None)
    if type(given).__name__ == "CPointer" and pointee is not None:
        return "ptr", _number(function, f"`{name}`", pointee)[1]
    return _number(function, f"`{name}`", given)


def _result(function: str, given) -> str:
    """Returns the type in LLVM IR; LLVM's integers have no sign, and results are read as signed integers."""
    kind, element = ("void", "") if str(given) == "none" else _number(function, "the result", given)
    if element.startswith("u"):
        raise SignatureError(f"{function}: the result has Numba's type {given}; return a signed integer or a float")
    return kind


def _number(function: str, what: str, given) -> tuple[str, str]:
    found = NUMBERS.get(str(given))
    if found is None:
        raise SignatureError(f"{function}: {what} has Numba's type {given}, which has no Python form; use numbers and "
                             "CPointer of numbers, with numba.carray in the function")
    return found


def _entry(name: str, inner: str, names: list, types: list, result: str, attributes: list) -> str:
    """Returns a function with the arguments' names that calls Numba's."""
    attributes = iter(attributes)
    known = {"readonly", "writeonly"}
    words = [[kind, *(known & set(next(attributes).split()) if kind == "ptr" else ())] for kind, _ in types]
    parameters = ", ".join(f"{' '.join(w)} %{n}" for w, n in zip(words, names))
    arguments = "".join(f", {kind} %{n}" for (kind, _), n in zip(types, names))
    stored = "i64" if result == "void" else result
    load = "" if result == "void" else f"  %.value = load {result}, ptr %.result\n"
    return (f'\ndefine {result} @"{name}"({parameters}) {{\n'
            f"  %.result = alloca {stored}\n  %.info = alloca ptr\n"
            f'  %.status = call i32 @"{inner}"(ptr %.result, ptr %.info{arguments})\n{load}'
            f"  ret {'void' if result == 'void' else f'{result} %.value'}\n}}\n")
