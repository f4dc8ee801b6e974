"""Of what programs write before they end, the line that says why."""

from pathlib import Path

import pytest

from tui.engine.mcp.telling_line import MAX_LINE, telling_line

ENDS = Path(__file__).with_name("ends.txt").read_text("utf-8").split("== ")[1:]
"""What programs wrote in the end: their kind, a part of the line that matters, and the lines."""


@pytest.mark.parametrize("end", ENDS, ids=[end.partition(":")[0] for end in ENDS])
def test_the_line_that_matters_is_found(end: str) -> None:
    head, *lines = end.splitlines()
    assert head.partition(": ")[2] in telling_line(lines)


def test_what_says_nothing_gives_nothing_and_hostile_lines_are_cut() -> None:
    assert telling_line(["starting", "listening on stdio", ""]) == ""
    assert telling_line([]) == ""
    assert len(telling_line([f"Error: {'x' * 100_000}"])) <= MAX_LINE
    assert telling_line(["^" * 100_000, "(" * 100_000, "Error: x"]) == "Error: x"
