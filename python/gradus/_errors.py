"""Exceptions of the package."""

from __future__ import annotations

import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Diagnostic:
    """A message of the compiler."""

    level: str
    message: str
    code: str | None = None
    file: str | None = None
    line: int | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None
    rendered: str = field(default="", repr=False)

    @classmethod
    def of_json(cls, value: dict) -> Diagnostic:
        """Reads an object of `gradus --message-format=json`."""
        spans = value.get("spans") or []
        primary = next((s for s in spans if s.get("is_primary")), {})
        children = value.get("children") or []
        helps = [c["message"] for c in children if c["level"] == "help"]
        return cls(
            level=value["level"],
            message=value["message"],
            code=(value.get("code") or {}).get("code"),
            file=primary.get("file_name"),
            line=primary.get("line_start"),
            notes=tuple(c["message"] for c in children if c["level"] == "note"),
            help="; ".join(helps) or None,
            rendered=(value.get("rendered") or "").rstrip(),
        )


def diagnostics(text: str) -> list[Diagnostic]:
    """Reads the diagnostics among the lines of a command's standard error."""
    found = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("$message_type") == "diagnostic":
            found.append(Diagnostic.of_json(value))
    return found


class Error(Exception):
    """An error of this package."""


class CommandMissing(Error):
    """The command `gradus` was not found."""


class Refused(Error):
    """The compiler refused a program or a derivative.

    `code`, `file`, `line` and `help` are those of the first error; `diagnostics` holds all messages.
    """

    def __init__(self, found: list[Diagnostic], said: str = "") -> None:
        errors = [d for d in found if d.level == "error"]
        self.diagnostics = tuple(found)
        first = errors[0] if errors else Diagnostic("error", said.strip() or "the compiler failed without a message")
        self.code, self.file, self.line, self.help = first.code, first.file, first.line, first.help
        super().__init__("\n\n".join(d.rendered or d.message for d in errors) or first.message)


class Wrong(Error):
    """A derivative does not agree with finite differences; `report` holds the comparison."""

    def __init__(self, report) -> None:
        self.report = report
        super().__init__(str(report))


class SignatureError(Error, TypeError):
    """The Python form of a function is not known, or a stated form does not fit the function."""
