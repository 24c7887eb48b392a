"""Calls of `f.jax` by an XLA-FFI handler: XLA passes its buffers to compiled code, without the interpreter.

`_jax_handler.cc` is compiled once by the user's clang against the headers of jaxlib, and kept in the cache. One handler
serves all functions. A target is an operation at operands of known shapes: the uniform entry, and the plan of
`_plans.py` with all lengths replaced by numbers. The identifier of a target is a hash of its contents, so that programs
that JAX keeps on disk find the target again, or fail.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import shutil
import struct
import subprocess
from functools import lru_cache
from pathlib import Path

import numpy

from . import _cache
from ._plans import SIZES

SOURCE = Path(__file__).parent / "_jax_handler.cc"
FLAGS = ["-x", "c++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fno-exceptions"]
NAME = "gradus_jax_call"
# As in `_jax_handler.cc`.
MEMBERS_MAX, RANK_MAX, ALIGNMENT = 64, 8, 64
SOURCES = {"operand": 0, "number": 1, "variable": 2, "buffer": 3, "constant": 4}
PASSING = {"value": 0, "pointer": 1, "descriptor": 2}
KINDS = {"f": 0, "i": 1, "u": 2, "b": 3}
TEST = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_char), ctypes.c_int64)
# Handlers by the name of their target: XLA takes a name once.
HANDLERS: dict[str, Handler] = {}


class _Unsupported(Exception):
    """The handler does not take the call: the callback does, or refuses the call with a message."""


def choose() -> Handler | None:
    """Returns the handler; `None` if calls go through callbacks. `GRADUS_JAX` is `ffi`, `callback` or empty."""
    wanted = os.environ.get("GRADUS_JAX", "")
    if wanted not in ("", "ffi", "callback"):
        raise ValueError(f"GRADUS_JAX={wanted} is neither `ffi` nor `callback`")
    if wanted == "callback":
        return None
    found = _handler(_clang())
    if found is None and wanted == "ffi":
        raise RuntimeError("GRADUS_JAX=ffi: there is no clang, or jaxlib has no headers that clang compiles; "
                           "set GRADUS_CLANG to a clang, or unset GRADUS_JAX")
    return found


def _clang() -> str | None:
    return os.environ.get("GRADUS_CLANG") or shutil.which("clang-22") or shutil.which("clang")


@lru_cache(maxsize=None)
def _handler(clang: str | None) -> Handler | None:
    """Compiles and registers the handler; `None` without a clang or without the headers."""
    try:
        try:
            from jax import ffi
        except ImportError:
            from jax.extend import ffi
        include = Path(ffi.include_dir())
        header = include / "xla" / "ffi" / "api" / "c_api.h"
        if not clang or not header.is_file():
            return None
        library = _library(clang, include, header)
        return HANDLERS.get(library.stem) or HANDLERS.setdefault(library.stem, Handler(ffi, library))
    except (ImportError, AttributeError, OSError, RuntimeError, subprocess.SubprocessError):
        # Not an error: callbacks need neither a compiler nor headers.
        return None


def _library(clang: str, include: Path, header: Path) -> Path:
    name = _cache.key(["jax", clang, str(include), *FLAGS], [SOURCE, header])
    entry = _cache.find(name)
    if entry is None:
        made = _cache.scratch()
        try:
            words = [clang, *FLAGS, "-I", str(include), str(SOURCE), "-o", str(made / "handler.so")]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)
            _cache.describe(made, "handler.so", [header])
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        entry = _cache.keep(name, made)
    return _cache.library(entry)


class Handler:
    """The handler of this process."""

    def __init__(self, ffi, library: Path) -> None:
        self.ffi = ffi
        loaded = ctypes.CDLL(str(library))
        self._register = loaded.gradus_jax_register
        self._register.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, TEST]
        # Plans and tests of targets, which live as long as the process.
        self.registered: dict[int, tuple] = {}
        self.target = f"{NAME}_{library.stem}"
        ffi.register_ffi_target(self.target, ffi.pycapsule(loaded.gradus_jax_call), platform="cpu")

    def call(self, operations, kind: str, operands, results: list, outs: tuple) -> list | None:
        """Calls an operation on traced operands; `None` if the handler does not take the call."""
        library, symbol, plan = operations.function._entry(kind)
        try:
            call = _Call(operations, plan, operands, results, outs, kind)
            members = call.members()
        except _Unsupported:
            # Not an error: the callback takes the call, or refuses it with a message.
            return None
        entry = ctypes.cast(getattr(ctypes.CDLL(str(library)), symbol), ctypes.c_void_p).value
        seal = f"{library.name} {symbol} {call.shapes} {call.dtypes} {members}"
        ident = int.from_bytes(hashlib.sha256(seal.encode()).digest()[:8], "little") or 1
        if ident not in self.registered:
            held = ((ctypes.c_int64 * len(members))(*members), call.test())
            memory, test = self.registered.setdefault(ident, held)
            if self._register(ident, entry, ctypes.addressof(memory), test) != 0:
                # Not an error: the callback takes calls beyond the size of the table.
                del self.registered[ident]
                return None
        import jax

        given = [value.T if is_turned else value for value, is_turned in zip(operands, call.are_turned)]
        turned = [len(shape) > 1 and is_fortran for (shape, _), is_fortran in zip(results, call.are_fortran)]
        shapes = [jax.ShapeDtypeStruct(shape[::-1] if t else shape, dtype) for (shape, dtype), t in zip(results, turned)]
        found = self.ffi.ffi_call(self.target, shapes, vmap_method="sequential")(*given, target=f"{ident:016x}")
        return [value.T if t else value for value, t in zip(found, turned)]


class _Call:
    """A plan at operands of known shapes."""

    def __init__(self, operations, plan: dict, operands, results: list, outs: tuple, kind: str) -> None:
        self.operations, self.plan, self.results, self.outs, self.kind = operations, plan, results, outs, kind
        self.params, self.variables = plan["params"], plan["variables"]
        self.shapes = [tuple(v.shape) for v in operands]
        self.dtypes = [numpy.dtype(v.dtype) for v in operands]
        self.are_turned = [p["is_fortran"] and len(s) > 1 for p, s in zip(self.params, self.shapes)]
        self.buffers = [dict(b, result=-1, shape=self._buffer_shape(b)) for b in plan["buffers"]]
        # Values of variables that follow from the lengths of arrays.
        self.known: dict[int, int] = {}
        self.are_fortran = [False] * len(results)
        self._check_operands()

    def _require(self, holds: bool) -> None:
        if not holds:
            raise _Unsupported

    def _check_operands(self) -> None:
        self._require(len(self.params) == len(self.shapes))
        for param, shape, dtype in zip(self.params, self.shapes, self.dtypes):
            is_float = param["dtype"].startswith("f")
            self._require(dtype == numpy.dtype(param["dtype"]) if param["is_array"] or is_float else dtype.kind in "iub")
            self._require(param["is_array"] or math.prod(shape) == 1)
            self._require(param["like"] is None or shape == self.shapes[param["like"]])
            self._require(len(shape) <= RANK_MAX and (param["dims"] is None or len(param["dims"]) == len(shape)))

    def _buffer_shape(self, buffer: dict) -> tuple:
        if buffer["is_scalar"]:
            return ()
        if buffer["like"] is not None:
            return self.shapes[buffer["like"]]
        return next(tuple(shape) for output, (shape, _) in zip(self.operations.outputs, self.outs)
                    if output.argument is not None and output.name == buffer["name"])

    def _outputs(self) -> list[tuple]:
        """Returns the origin of each result: a number of the entry's result, or a buffer."""
        found = list(self.plan["outputs"])
        if self.kind != "value":
            return found
        made = []
        for output in self.operations.outputs:
            argument = output.argument
            if argument is None or argument.kind != "array" or argument.intent != "inout":
                made.append(found.pop(0))
                continue
            # The function changes the array in place: the handler passes a copy.
            like = next(k for k, p in enumerate(self.params) if p["name"] == argument.name)
            self.buffers.append({"dtype": argument.dtype, "like": like, "dims": [], "is_copy": True, "is_scalar": False,
                                 "is_fortran": argument.is_fortran, "result": -1, "shape": self.shapes[like]})
            made.append(("buffer", len(self.buffers) - 1, argument.dtype))
        return made

    def members(self) -> list[int]:
        """Returns the plan as the handler reads it. Each list follows its length."""
        outputs = self._outputs()
        self._require(len(outputs) == len(self.results))
        numbers = {k: at for at, k in enumerate(k for k, p in enumerate(self.params) if not p["is_array"])}
        rows = [(k, *self._type(self.params[k]["dtype"])) for k in numbers]
        stored = self._stored(outputs)
        self._require(all(len(v) < MEMBERS_MAX for v in (self.params, self.variables, self.buffers, self.plan["slots"])))
        self._require(self.plan["result_bytes"] <= 8 * MEMBERS_MAX)
        lists = [rows, self._variables(numbers), self._lengths()]
        made = [len(self.params), len(self.results)]
        for rows in lists:
            made += [len(rows), *(n for row in rows for n in row)]
        scratch, rows = self._memory(numbers)
        made += [scratch, len(rows), *(n for row in rows for n in row)]
        for rows in (self._slots(numbers), stored):
            made += [len(rows), *(n for row in rows for n in row)]
        return made

    @staticmethod
    def _type(dtype: str) -> tuple[int, int]:
        return KINDS[dtype[0]], SIZES[dtype]

    def _variables(self, numbers: dict) -> list[tuple]:
        """Returns each variable: the position of a number, or a value from an array's length."""
        for param, shape in zip(self.params, self.shapes):
            for dim, found in zip(param["dims"] or [], shape):
                if len(dim) == 1 and dim[0][0] == "variable" and self.variables[dim[0][1]]["param"] is None:
                    self.known.setdefault(dim[0][1], found)
        made = []
        for at, variable in enumerate(self.variables):
            if variable["param"] is not None:
                made.append((1, numbers[variable["param"]]))
                continue
            self._require(at in self.known)
            kind, bits = variable["dtype"][0], 8 * SIZES[variable["dtype"]]
            self._require(self.known[at] < 2 ** (bits - (kind == "i")))
            made.append((0, self.known[at]))
        return made

    def _lengths(self) -> list[tuple]:
        """Returns the lengths that a call compares: the length of an array, and the function's expression."""
        made = []
        pairs = [(p["dims"] or [], shape) for p, shape in zip(self.params, self.shapes) if p["is_array"]]
        pairs += [(b["dims"], b["shape"]) for b in self.buffers if b["like"] is None and not b["is_scalar"]]
        for dims, shape in pairs:
            self._require(len(dims) == len(shape) or not dims)
            for dim, found in zip(dims, shape):
                if self._is_equal(dim, found):
                    continue
                made.append((found, len(dim), *(n for name, number in dim for n in (ord(name[0]), number))))
        return made

    def _is_equal(self, dim: list[tuple], found: int) -> bool:
        """Returns whether an expression is known to have a value; false if a call computes the expression."""
        only = dim[0] if len(dim) == 1 else ("", 0)
        if only[0] == "constant":
            self._require(only[1] == found)
        elif only[0] == "variable" and only[1] in self.known:
            self._require(self.known[only[1]] == found)
        return only[0] == "constant" or only[0] == "variable" and only[1] in self.known

    def _stored(self, outputs: list[tuple]) -> list[tuple]:
        """Binds buffers to results. Returns the numbers of the entry's result that are results."""
        made = []
        for at, (kind, index, dtype) in enumerate(outputs):
            shape, wanted = self.results[at]
            self._require(numpy.dtype(dtype) == wanted)
            if kind == "result":
                self._require(math.prod(shape) == 1)
                made.append((at, index, SIZES[dtype], int(dtype == "b1")))
                continue
            buffer = self.buffers[index]
            self._require(buffer["result"] < 0 and math.prod(shape) == math.prod(buffer["shape"]))
            self._require(buffer["is_scalar"] or tuple(shape) == buffer["shape"])
            buffer["result"] = at
            self.are_fortran[at] = buffer["is_fortran"] and not buffer["is_scalar"]
        return made

    def _memory(self, numbers: dict) -> tuple[int, list[tuple]]:
        """Returns the bytes of memory that no result is, and each buffer: place, initial values, and bytes."""
        offset, made = 0, []
        for buffer in self.buffers:
            like, size = buffer["like"], math.prod(buffer["shape"]) * SIZES[buffer["dtype"]]
            initial = (0, 0) if not buffer["is_copy"] else (1, like) if self.params[like]["is_array"] else (2, numbers[like])
            made.append((buffer["result"], offset, *initial, size))
            if buffer["result"] < 0:
                offset += -(-max(size, 8) // ALIGNMENT) * ALIGNMENT
        return offset, made

    def _slots(self, numbers: dict) -> list[tuple]:
        """Returns the arguments of the entry: source, index, passing, and the lengths behind a descriptor."""
        changed = {b["like"]: at for at, b in enumerate(self.buffers) if at >= len(self.plan["buffers"])}
        made = []
        for source, number, passing, dtype in self.plan["slots"]:
            index, shape = int(number), ()
            if source == "param" and index in changed:
                source, index = "buffer", changed[index]
            if source == "param":
                is_array, shape = self.params[index]["is_array"], self.shapes[index]
                source, index = ("operand", index) if is_array else ("number", numbers[index])
            elif source == "buffer":
                shape = self.buffers[index]["shape"]
            elif source == "constant":
                bits = struct.pack("<d", number) if dtype != "f4" else struct.pack("<fi", number, 0)
                index = int.from_bytes(bits, "little", signed=True)
            extents = (*shape, *[0] * (RANK_MAX - len(shape))) if passing == "descriptor" else ()
            made.append((SOURCES[source], index, PASSING[passing], *extents))
        return made

    def test(self):
        """Returns the test of guessed lengths, which runs at the first call; without guesses, a null pointer."""
        first, operations = self.operations.function._first, self.operations
        if first is None or not first.is_needed:
            return TEST()
        points = list(zip(self.shapes, self.dtypes, self.are_turned))[: len(operations.params)]

        def test(addresses, message, room: int) -> int:
            try:
                point = []
                for address, (shape, dtype, is_turned) in zip(addresses, points):
                    text = ctypes.string_at(address, math.prod(shape) * dtype.itemsize)
                    array = numpy.frombuffer(bytearray(text), dtype)
                    point.append(array.reshape(shape[::-1]).T if is_turned else array.reshape(shape))
                first(tuple(operations._host(operations.params, point)), None)
            except Exception as error:  # noqa: BLE001 - an exception cannot pass through XLA
                text = str(error).encode()[: room - 1]
                ctypes.memmove(message, text + b"\0", len(text) + 1)
                return 1
            return 0

        return TEST(test)
