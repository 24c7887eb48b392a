"""Tests guessed lengths: the function runs once in a child process, on copies of its arrays that end at inaccessible pages.

C does not say how many elements a function reads. `repr(f)` shows the guess, and the first call of a function whose
lengths are guessed runs the function in a child before the interpreter's own process. A function that reads or writes
beyond a length kills the child, and the call raises `SignatureError`. The cache keeps the verdict.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy

from ._errors import SignatureError

SECONDS = 60
FAULTS = {signal.SIGSEGV, signal.SIGBUS}


class Probe:
    """The test of one function's guessed lengths, at the arguments of the first call."""

    def __init__(self, form, library: Path, entry: str, plan: dict) -> None:
        self.form, self.library, self.entry, self.plan = form, library, entry, plan
        digest = hashlib.sha256(str(form).encode()).hexdigest()[:16]
        self.verdict = library.parent / f"lengths-{digest}"

    @property
    def is_needed(self) -> bool:
        """True if a length is a guess that no call has tested."""
        return any(a.is_guess for a in self.form.arguments) and not self.verdict.is_file()

    def __call__(self, args: tuple, kwargs: dict | None) -> None:
        """Tests the lengths at a call's arguments. Wrong arguments are left to the call itself."""
        if not self.is_needed:
            return
        params = [p["name"] for p in self.plan["params"]]
        known = [*params, *(v["name"] for v in self.plan["variables"])]
        words = {name: value for name, value in (kwargs or {}).items() if name in known}
        try:
            call = pickle.dumps((str(self.library), self.entry, self.plan, _plain(args[: len(params)]), words))
        except (TypeError, ValueError, AttributeError, pickle.PicklingError):
            # Arguments that are no arrays or numbers: the call refuses them.
            return
        try:
            done = subprocess.run(
                [sys.executable, "-c", "import sys; sys.path[:0] = sys.argv[1:]; from gradus import _probe; _probe.child()",
                 str(Path(__file__).parents[1])],
                input=call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS, check=False,
            )
        except subprocess.TimeoutExpired:
            # A long run that did not fault; a shorter call is tested next time.
            return
        if -done.returncode in FAULTS:
            raise self._refusal()
        if done.returncode == 0:
            self.verdict.touch()

    def _refusal(self) -> SignatureError:
        guessed = [a for a in self.form.arguments if a.is_guess]
        lengths = ", ".join(f"{a.name}: [{', '.join(a.dims)}]" for a in guessed)
        example = ", ".join(f"{a.name}: [2*{a.dims[0]}]" for a in guessed)
        return SignatureError(
            f"{self.form.name} accesses memory beyond its arrays if their lengths are {lengths}, which is a guess; state "
            f"the lengths, for example f = f.signature(\"{example}\")"
        )


def _plain(args: tuple) -> list:
    """Returns arguments as NumPy arrays and numbers."""
    return [numpy.from_dlpack(a) if hasattr(a, "__dlpack__") and not isinstance(a, numpy.ndarray) else a for a in args]


def _guarded(array: numpy.ndarray) -> numpy.ndarray:
    """Returns a copy that ends at an inaccessible page."""
    page = mmap.PAGESIZE
    room = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, room + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(address + room), ctypes.c_size_t(page), 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    copy = numpy.ndarray(array.shape, array.dtype, memory, room - array.nbytes, order=order)
    copy[...] = array
    return copy


def child() -> None:
    """Runs the function; the process of its own."""
    from ._native import Caller, Library

    library, entry, plan, args, words = pickle.load(sys.stdin.buffer)
    call = Caller(Library(library), entry, plan)
    guard = lambda value: _guarded(value) if isinstance(value, numpy.ndarray) else value
    call(*map(guard, args), **{name: guard(value) for name, value in words.items()})
