"""Bad sources never end or stop the interpreter: `gradus.load` raises an exception of the package.

`GRADUS_BAD_SOURCES=1000` loads so many sources; `GRADUS_BAD_SOURCES_FIRST` is the number of the first.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import bad_sources

COUNT = int(os.environ.get("GRADUS_BAD_SOURCES", "40"))
FIRST = int(os.environ.get("GRADUS_BAD_SOURCES_FIRST", "0"))


def test_bad_sources_raise_exceptions_and_the_interpreter_goes_on(tmp_path):
    script, halves, each = Path(bad_sources.__file__), [], -(-COUNT // 2)
    for start in range(FIRST, FIRST + COUNT, each):
        folder = tmp_path / f"from{start}"
        folder.mkdir()
        count = min(each, FIRST + COUNT - start)
        words = [sys.executable, str(script), str(start), str(count), str(folder)]
        halves.append((subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), count))
    for half, count in halves:
        out, err = half.communicate()
        told = [json.loads(line) for line in out.splitlines()]
        assert half.returncode == 0 and len(told) == count, (half.returncode, told[-1:], err[-2000:])
        faults = [one for one in told if one["outcome"].startswith("fault")]
        assert not faults, faults
        accepted = [one for one in told if one["must_fail"] and one["outcome"] == "made"]
        assert not accepted, accepted


def test_a_number_gives_the_same_source():
    base = bytes(range(256)) * 8
    for number in range(200):
        assert bad_sources.source(number, base) == bad_sources.source(number, base)
