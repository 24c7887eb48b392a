"""Runs the blocks of docs/python.md: files are written, and Python blocks run in order in one namespace."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, count = {}, 0
    for language, name, text in BLOCK.findall(PAGE.read_text()):
        if name:
            (tmp_path / name).write_text(text)
        elif language == "python":
            exec(compile(text, f"{PAGE.name}, block {count}", "exec"), names)
            count += 1
    assert count >= 5
    said = capsys.readouterr().out
    assert "<gradus function energy(x: in f8[n], n: length) -> f8>" in said
    assert "the derivative is right" in said
