"""Runs the Python blocks of README and the manual: files are written, and blocks run in order, with one namespace per page.

A block ```text output after a Python block shows consecutive lines of the output; `…` stands for other lines, or for
the rest of a line, as in `crates/gradus-cli/tests/pages/session.rs`.
"""

import importlib.util
import re
from pathlib import Path

import pytest

MANUAL = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALL = [MANUAL.parent / "README.md", *MANUAL.rglob("*.md")]
PAGES = sorted(page for page in ALL if "```python\n" in page.read_text())

# Packages that the common tests do not install: `cargo xtask frameworks` runs their pages, apart from IPOPT's.
OPTIONAL = re.compile(r"^import (torch|tensorflow|numba|cyipopt)\b", re.MULTILINE)


def shows(said: list[str], shown: list[str]) -> bool:
    """Returns whether the lines `shown` are among the lines `said`, in order."""
    parts, place = [[]], 0
    for line in shown:
        parts.append([]) if line == "…" else parts[-1].append(line)

    def equal(line: str, pattern: str) -> bool:
        return line.startswith(pattern[:-1]) if pattern.endswith("…") else line == pattern

    for part in parts:
        starts = range(place, len(said) - len(part) + 1)
        found = next((at for at in starts if all(map(equal, said[at : at + len(part)], part))), None)
        if found is None:
            return False
        place = found + len(part)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(MANUAL.parent).with_suffix("")))
def test_the_page_runs(page, tmp_path, monkeypatch, capsys):
    needed = OPTIONAL.search(page.read_text())
    if needed and importlib.util.find_spec(needed[1]) is None:
        pytest.skip(f"{needed[1]} is not installed")
    monkeypatch.chdir(tmp_path)
    names, count, said = {"__name__": "__main__"}, 0, None
    for language, name, text in BLOCK.findall(page.read_text()):
        if name == "output":
            shown = [line.rstrip() for line in text.splitlines()]
            assert said is None or shows(said, shown), f"the page shows\n{text}\nand the code prints\n" + "\n".join(said)
        elif language == "sh":
            # Commands and their output belong to the tests of the command.
            said = None
        elif name:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        elif language == "python":
            count += 1
            exec(compile(text, f"{page.name}, block {count}", "exec"), names)
            said = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert count > 0


def test_an_output_has_the_lines_of_a_block():
    said = ["a", "long line", "b", "c", "d"]
    for shown in (["b", "c"], ["a", "…", "d"], ["…", "d"], ["a", "long …", "…", "d"]):
        assert shows(said, shown), shown
    for shown in (["a", "b"], ["d", "…", "a"], ["b", "b"], ["…", "e"], ["a", "log …"]):
        assert not shows(said, shown), shown


def test_the_manual_has_python_pages():
    assert len(PAGES) >= 3
