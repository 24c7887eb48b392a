"""Runs the Python programs and the notebooks of `examples`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*/*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("*/*.ipynb"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.parent.name)
def test_an_example(program):
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the derivative is right" in done.stdout


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.parent.name)
def test_a_notebook(notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(notebook.read_text())["cells"]):
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "outputs are not part of the project"
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)
    assert "the derivative is right" in capsys.readouterr().out


def test_there_are_examples():
    assert len(PROGRAMS) >= 3 and NOTEBOOKS
