"""The compiler's report on a function's derivatives."""

from __future__ import annotations

import os
from pathlib import Path


class Report(dict):
    """The report as the compiler's JSON document. `print(report)` shows text; `report.html(path)` writes a page."""

    def __init__(self, document: dict, text: str, page: str) -> None:
        super().__init__(document)
        self._text, self._page = text, page

    def __str__(self) -> str:
        return self._text

    def html(self, path: str | os.PathLike) -> Path:
        """Writes the page, one file without references to others. Returns the path."""
        file = Path(path)
        file.write_text(self._page, encoding="utf-8")
        return file
