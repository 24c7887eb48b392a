"""Runs the command `gradus` in child processes; the compiler never runs in the interpreter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ._errors import CommandMissing, Refused, diagnostics

BUNDLED = Path(__file__).parent / "tree" / "bin" / "gradus"


def command() -> str:
    """Returns the path of the command: `GRADUS_COMMAND`, the one in the package, or the one on `PATH`."""
    given = os.environ.get("GRADUS_COMMAND")
    if given:
        if not shutil.which(given):
            raise CommandMissing(f"GRADUS_COMMAND={given} is not a program")
        return given
    if BUNDLED.is_file():
        return str(BUNDLED)
    found = shutil.which("gradus")
    if found is None:
        raise CommandMissing(
            "the command `gradus` is not in the package or on PATH; install it with"
            " `cargo install --path crates/gradus-cli`, or set GRADUS_COMMAND to its path"
        )
    return found


def main() -> None:
    """Becomes the command of the package: the script `gradus` of a wheel."""
    if not BUNDLED.is_file():
        sys.exit("gradus: this installation has no command; install a wheel of `cargo xtask wheel`")
    os.execv(BUNDLED, [str(BUNDLED), *sys.argv[1:]])


def run(arguments: list[str], folder: Path | None = None) -> tuple[str, list]:
    """Runs the command. Returns its standard output and its diagnostics.

    Raises `Refused` if the command fails, or exceeds the limits `GRADUS_MAX_TIME` and `GRADUS_MAX_MEMORY`.
    """
    limits = [f"--max-{name}={value}" for name in ("time", "memory") if (value := os.environ.get(f"GRADUS_MAX_{name.upper()}"))]
    words = [command(), *arguments[:1], "--message-format=json", *limits, *arguments[1:]]
    done = subprocess.run(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    found = diagnostics(done.stderr)
    if done.returncode != 0:
        said = done.stderr or f"`gradus` ended with status {done.returncode}"
        raise Refused(found, said)
    return done.stdout, found
