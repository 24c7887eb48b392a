"""Results of the compiler, kept by content below `$XDG_CACHE_HOME/gradus/python`.

The key of an entry holds the version of the command, the arguments, and the contents of the sources. The headers that a
source included are known only after the compilation: an entry lists them with the hashes of their contents, and is
stale if one of them differs. Entries appear atomically; two processes may make the same entry.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from ._command import command

DESCRIPTION = "entry.json"
# Variables that select compilers, headers and libraries.
VARIABLES = ("GRADUS_CLANG", "GRADUS_FLANG", "PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")


def folder() -> Path:
    """Returns the folder of the cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gradus" / "python"


def clear() -> None:
    """Removes all entries. Loaded functions stay valid."""
    shutil.rmtree(folder(), ignore_errors=True)
    # The folder of the command's own files stays if the command keeps any.
    with suppress(OSError):
        folder().parent.rmdir()


@lru_cache(maxsize=8)
def _identity(path: str, modified: int, size: int) -> str:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return f"{said.stdout}\n{modified}\n{size}"


def identity() -> str:
    """Returns a text that differs for each build of the command."""
    path = os.path.realpath(shutil.which(command()) or command())
    status = os.stat(path)
    compilers = [os.environ.get(name, "") for name in VARIABLES]
    return _identity(path, status.st_mtime_ns, status.st_size) + "\n".join(compilers)


def _hash(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def key(words: list[str], files: list[Path]) -> str:
    """Returns the key of a compilation of `files` with the command's `words`."""
    contents = [file.read_bytes() for file in files]
    return _hash(identity(), *words, *map(str, files), *contents)[:40]


def find(name: str) -> Path | None:
    """Returns the folder of an entry; `None` if there is none, or an included file has changed."""
    entry = folder() / name
    try:
        described = json.loads((entry / DESCRIPTION).read_text())
        if not (entry / described["library"]).is_file():
            return None
        for file, digest in described["included"].items():
            if _hash(Path(file).read_bytes()) != digest:
                return None
    except (OSError, ValueError, KeyError):
        return None
    return entry


def describe(made: Path, library: str, included: list[Path]) -> None:
    """Completes an entry. The library's name follows from its contents: the loader takes equal paths for one library."""
    hashes = {str(file): _hash(file.read_bytes()) for file in included}
    own = f"{_hash((made / library).read_bytes())[:16]}.so"
    (made / library).rename(made / own)
    (made / DESCRIPTION).write_text(json.dumps({"library": own, "included": hashes}))


def library(entry: Path) -> Path:
    """Returns the library of an entry."""
    return entry / json.loads((entry / DESCRIPTION).read_text())["library"]


def keep(name: str, made: Path) -> Path:
    """Moves the folder `made` into the cache. Returns the entry."""
    entry = folder() / name
    old = Path(tempfile.mkdtemp(prefix=".old-", dir=folder()))
    try:
        if entry.exists():
            entry.rename(old / "entry")
        made.rename(entry)
    except OSError:
        # Another process made the entry first.
        if not (entry / DESCRIPTION).is_file():
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
    return entry


def keep_source(text: str, suffix: str) -> Path:
    """Writes a source that is given as text. Equal texts have equal files, so that results are found again."""
    data = text.encode(errors="surrogateescape")
    file = folder() / f"source-{_hash(data)[:16]}" / f"source{suffix}"
    if not (file.is_file() and file.read_bytes() == data):
        made = scratch()
        (made / file.name).write_bytes(data)
        file.parent.mkdir(exist_ok=True)
        (made / file.name).replace(file)
        made.rmdir()
    return file


def scratch() -> Path:
    """Returns a new folder in the file system of the cache."""
    folder().mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".new-", dir=folder()))
