"""What the doctor finds: lines with a verdict each, in sections."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tui.cli.output import GAP


class FindingLevel(StrEnum):
    """How something stands. The value is the word before it."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        verdict: How it stands.
        text: What it is.
        advice: What to do about it, or an empty string.
        details: Further lines.
    """

    verdict: FindingLevel
    text: str
    advice: str = ""
    details: Sequence[str] = ()

    def lines(self) -> list[str]:
        """Write it as text."""
        width = max(map(len, FindingLevel))
        below = [*([f"→ {self.advice}"] if self.advice else []), *self.details]
        indent = " " * (width + len(GAP))
        return [f"{self.verdict:<{width}}{GAP}{self.text}", *(f"{indent}{line}" for line in below)]


@dataclass(slots=True)
class DoctorSection:
    """Findings on one thing, and the same as JSON.

    Attributes:
        title: Its title.
        findings: What was found.
        value: More of it as JSON.
    """

    title: str
    findings: list[Finding] = field(default_factory=list)
    value: dict[str, Any] = field(default_factory=dict)

    def add(
        self, verdict: FindingLevel, text: str, advice: str = "", details: Sequence[str] = ()
    ) -> None:
        """Add a finding."""
        self.findings.append(Finding(verdict, text, advice, details))

    @property
    def has_failed(self) -> bool:
        return any(one.verdict is FindingLevel.FAILED for one in self.findings)

    def text(self) -> str:
        """Write it as text."""
        lines = [line for one in self.findings for line in one.lines()]
        return "\n".join([self.title, *(f"{GAP}{line}" for line in lines)])

    def json(self) -> dict[str, Any]:
        """Write it as JSON."""
        found = [
            {
                "verdict": one.verdict.value,
                "text": one.text,
                "advice": one.advice,
                "details": list(one.details),
            }
            for one in self.findings
        ]
        return {"title": self.title, "findings": found, **self.value}


def mapped(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON
    """Change every text in a JSON value, keys included."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {change(str(key)): mapped(item, change) for key, item in value.items()}
        case list() | tuple():
            return [mapped(item, change) for item in value]
    return value
