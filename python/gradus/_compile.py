"""Compiles functions of a program into shared libraries, by the command `gradus`."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import _cache, _command
from ._errors import Error, Refused
from ._report import Report

LIBRARY, SIGNATURE, FIRST = "derivatives.so", "signature.json", "first.json"
# The forms of the report.
REPORTS = {"json": "report.json", "full": "report.txt", "html": "report.html"}
# Compilers that list the files which a source includes.
LISTING = {".c", ".cc", ".cpp", ".cxx", ".c++", ".C"}
# Sources without other files. A Fortran source may have some.
WHOLE = {".bc", ".ll"}
FORTRAN = {".f", ".for", ".f77", ".f90", ".f95", ".f03", ".f08", ".f18"}
REFERENCE = re.compile(r"^\s*#?\s*(use|include)\b", re.IGNORECASE | re.MULTILINE)
# Libraries of the C library.
SYSTEM = {"-lm", "-ldl", "-lpthread", "-lrt"}
VERSION = 1


class NoSuchFunction(Refused, AttributeError):
    """The program has no function of the name."""


@dataclass(frozen=True)
class Source:
    """A program: its files and the compiler's flags."""

    files: tuple[Path, ...]
    flags: tuple[str, ...] = ()

    @property
    def lists_includes(self) -> bool:
        """True if the compiler lists the included files."""
        return all(file.suffix in LISTING for file in self.files)

    @property
    def is_known(self) -> bool:
        """True if the contents of all files that the compiler reads can be known."""
        def is_whole(file: Path) -> bool:
            if file.suffix in WHOLE:
                return True
            is_fortran = file.suffix.lower() in FORTRAN
            return is_fortran and not REFERENCE.search(file.read_text(errors="replace"))

        # A static library, or a file of options, may change.
        reads_more = any(flag.startswith(("-l", "-L", "-Wl,", "@")) and flag not in SYSTEM for flag in self.flags)
        return not reads_more and (self.lists_includes or all(map(is_whole, self.files)))


@dataclass(frozen=True)
class Made:
    """A library of derivatives with its signature."""

    library: Path
    signature: dict
    report: Report
    # The signature of the first derivative, for a derivative of a derivative.
    first: dict | None = None


def derivatives(source: Source, function: str, wrt: tuple[str, ...]) -> Made:
    """Returns the function with its JVP and VJP."""
    words = ["-f", function, "--mode", "reverse,forward", "--with-primal", *_wrt(wrt)]
    return _made(source, function, words, second="")


def dependencies(source: Source, function: str, wrt: tuple[str, ...]) -> Made:
    """Returns the function's dependency sets: the JVP with sets of inputs in place of tangents."""
    return _made(source, function, ["-f", function, "--mode", "dependencies", *_wrt(wrt)], second="")


def second(source: Source, function: str, wrt: tuple[str, ...], mode: str = "reverse", outer: str = "forward") -> Made:
    """Returns the JVP of the VJP, or of the JVP if the mode is `forward`. `outer` is `forward`, or `dependencies`."""
    return _made(source, function, ["-f", function, "--mode", mode, *_wrt(wrt)], second=outer)


def _wrt(names: tuple[str, ...]) -> list[str]:
    return ["--wrt", ",".join(names)] if names else []


def _made(source: Source, function: str, words: list[str], *, second: str) -> Made:
    """Returns the derivatives of the command's `words`, or the derivatives of these in the mode `second`."""
    for file in source.files:
        if not file.is_file():
            raise FileNotFoundError(2, os.strerror(2), str(file))
    name = _cache.key([*words, *source.flags, second], list(source.files))
    entry = _cache.find(name) if source.is_known else None
    if entry is None:
        made = _cache.scratch()
        try:
            included = _compile(source, function, words, made, second=second)
            _cache.describe(made, LIBRARY, included)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        if source.is_known:
            entry = _cache.keep(name, made)
        else:
            # The cache cannot judge whether the entry is stale.
            entry = made
            atexit.register(shutil.rmtree, made, ignore_errors=True)
    first = entry / FIRST
    return Made(
        _cache.library(entry),
        _read(entry / SIGNATURE),
        _report(entry),
        _read(first) if first.is_file() else None,
    )


def _read(file: Path) -> dict:
    told = json.loads(file.read_text())
    if told.get("version") != VERSION:
        raise Error(f"the command `gradus` writes signatures of version {told.get('version')}, this package reads "
                    f"version {VERSION}: install the same release of both")
    return told


def _report(entry: Path) -> Report:
    document, text, page = ((entry / name).read_text(encoding="utf-8") for name in REPORTS.values())
    return Report(json.loads(document), text, page)


def _compile(source: Source, function: str, words: list[str], made: Path, *, second: str) -> list[Path]:
    """Writes the library into `made`. Returns the files that the sources include."""
    flags, listing = list(source.flags), made / "included.d"
    if source.lists_includes:
        flags += ["-MD", "-MF", str(listing)]
    files = [str(file) for file in source.files]
    reports = [f"--report={form}:{made / name}" for form, name in REPORTS.items()]
    shared = [*reports, "--emit", "shared", "--entry", "uniform", "--signature", str(made / SIGNATURE), "-o", str(made / LIBRARY)]
    if not second:
        _run(files, [*words, *shared], flags, function)
    else:
        bitcode, first = made / "first.bc", made / FIRST
        _run(files, [*words, "--emit", "bc", "--signature", str(first), "-o", str(bitcode)], flags, function)
        derivative = _read(first)["derivatives"][0]
        active = [a["name"] for a in derivative["arguments"] if a["role"] in ("active", "shadow")]
        again = ["-f", derivative["name"], "--mode", second, "--wrt", ",".join(active)]
        linked = [flag for flag in source.flags if flag.startswith(("-l", "-L", "-Wl,", "-O", "-fopenmp"))]
        _run([str(bitcode)], [*again, *shared], linked, function)
        bitcode.unlink()
    return _included(listing) if source.lists_includes else []


def _run(files: list[str], words: list[str], flags: list[str], function: str) -> None:
    try:
        _command.run(["grad", *files, *words, "--", *flags])
    except Refused as refused:
        if refused.code == "GRD0002":
            raise NoSuchFunction(list(refused.diagnostics)) from None
        raise


def _included(listing: Path) -> list[Path]:
    """Reads a list of make's rules."""
    words = listing.read_text().replace("\\\n", " ").partition(":")[2]
    names = re.findall(r"(?:\\ |\S)+", words)
    listing.unlink()
    return [Path(name.replace("\\ ", " ").replace("$$", "$")) for name in names]
