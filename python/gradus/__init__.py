"""Gradients of C, C++, Fortran, Rust and CUDA programs, by the compiler Gradus.

>>> import gradus, numpy
>>> f = gradus.load("energy.c").energy
>>> f.grad(numpy.array([1.0, 4.0, 8.0]))
"""

from __future__ import annotations

import os
from pathlib import Path

from ._cache import clear as clear_cache
from ._cache import keep_source
from ._compile import NoSuchFunction, Source
from ._errors import CommandMissing, Diagnostic, Error, Refused, SignatureError, Wrong
from ._function import Function, Program
from ._sparse import PatternChanged, Sparsity

__all__ = [
    "CommandMissing", "Diagnostic", "Error", "Function", "NoSuchFunction", "PatternChanged", "Program", "Refused",
    "SignatureError", "Sparsity", "Wrong", "clear_cache", "from_numba", "from_source", "load",
]
__version__ = "0.1.0"

LANGUAGES = {"c": ".c", "c++": ".cpp", "cpp": ".cpp", "fortran": ".f90", "rust": ".rs", "cuda": ".cu", "llvm": ".ll"}


def load(path: str | os.PathLike | list, *, flags: tuple[str, ...] = (), signatures: dict[str, str] | None = None) -> Program:
    """Opens a program of one file or several. Its functions are attributes; the first use of a function compiles.

    `flags` are the compiler's (`["-O3", "-DN=4", "-lgsl"]`). `signatures` states forms by function, as
    `Function.signature` does.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if not paths:
        raise ValueError("gradus.load needs a file")
    files = tuple(Path(p).absolute() for p in paths)
    for given, file in zip(paths, files):
        if not file.is_file():
            raise FileNotFoundError(2, os.strerror(2), str(given))
    if isinstance(flags, str):
        raise TypeError("flags is one text; pass a list of words: [\"-O3\", \"-lgsl\"]")
    return Program(Source(files, tuple(flags)), signatures or {})


def from_source(text: str, lang: str = "c", *, flags: tuple[str, ...] = (), signatures: dict[str, str] | None = None) -> Program:
    """Opens a program given as text: `lang` is c, c++, fortran, rust, cuda or llvm."""
    if lang not in LANGUAGES:
        raise ValueError(f"unknown language `{lang}`: use {', '.join(LANGUAGES)}")
    return Program(Source((keep_source(text, LANGUAGES[lang]),), tuple(flags)), signatures or {})


def from_numba(function, *, signature: str | None = None, flags: tuple[str, ...] = ()) -> Function:
    """Opens a function that Numba compiled with `@numba.cfunc`: numbers, and arrays as `CPointer` with their lengths."""
    from ._numba import source

    name, text, types = source(function)
    program = Program(Source((keep_source(text, ".ll"),), tuple(flags)), {}, types)
    return program.function(name, (), signature)
