"""What the demo model says, as Markdown. What tools returned is quoted, never rendered."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tui.engine.demo.matching import MAX_TOOLS
from tui.engine.demo.planning import MAX_REQUEST, NeedsArguments
from tui.engine.demo.schemas import Kind, Parameter
from tui.engine.demo.words import split_name
from tui.text import clip, clip_middle

MAX_LISTED_TOOLS: Final = 8
"""Tools that are named when the model says what it can do."""

MAX_QUOTED: Final = 4_000
"""Longest result that is quoted in full, in characters."""

MAX_SENTENCE: Final = 100
"""Longest description of a tool or parameter in an answer, in characters."""

MAX_LISTED_CHOICES: Final = 8
"""Allowed values that are named when one is asked for."""

INTRODUCTION: Final = (
    "I am the demo: a small offline model that matches your words to tools. I understand little, "
    "and nothing leaves this computer."
)
DONE_NOTHING: Final = "All right, I leave it at that."
THANKED: Final = "You are welcome."
TOO_LONG: Final = (
    f"Your message is longer than the {MAX_REQUEST:,} characters that I read, so I did nothing."
)

_ACTIVE: Final = re.compile(r"[\\`*~<\[\]|]|(?<!\w)_|_(?!\w)|&(?=#?\w{1,32};)|^(?=[#>+=-]|\d+[.)])")
_FENCE: Final = re.compile(r"`{3,}")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call.

    Attributes:
        name: The tool.
        text: What it returned, or why it did not.
        failed: Whether it reported an error or did not come back.
        denied: Whether it was not allowed to run.
        attachments: Images and other media among what it returned.
    """

    name: str
    text: str
    failed: bool = False
    denied: bool = False
    attachments: int = 0


def about_model(declarations: Sequence[Mapping[str, Any]]) -> str:
    """Say what this model is and how to get a real one."""
    return (
        "I am not a language model. I compare the words of your message with the names and "
        "descriptions of the tools on offer, fill their arguments from what you wrote, and show "
        "what they return. With a Gemini key a real model answers here instead."
        f"\n\n{tool_list(declarations)}"
    )


def tool_list(declarations: Sequence[Mapping[str, Any]]) -> str:
    """Name some of the tools that are offered."""
    if not declarations:
        return "No tools are offered right now: no server is ready, or none offers any."
    lines = [
        f"- {code(str(declaration.get('name')))}{_colon(_first_sentence(declaration))}"
        for declaration in declarations[:MAX_LISTED_TOOLS]
    ]
    more = len(declarations) - MAX_LISTED_TOOLS
    if more > 0:
        lines.append(f"- and {more} more")
    example = " ".join(split_name(str(declarations[0].get("name"))))
    hint = f"Say what you want with a tool's own words, such as {code(example)}."
    return "\n".join(("I can use these tools now:", "", *lines, "", hint))


def no_match(declarations: Sequence[Mapping[str, Any]]) -> str:
    """Say that no tool fits."""
    lead = "I can only use tools, and I found none that fits what you wrote."
    if len(declarations) > MAX_TOOLS:
        lead += f" I looked at the first {MAX_TOOLS:,} of {len(declarations):,}."
    return f"{lead}\n\n{tool_list(declarations)}"


def question(need: NeedsArguments) -> str:
    """Ask for the arguments that are missing."""
    misfits = (
        f"{' and '.join(need.misfits)} {'does' if len(need.misfits) == 1 else 'do'} not fit. "
        if need.misfits
        else ""
    )
    lines = [
        f"- **{escape(parameter.name)}**: {_expectation(parameter)}" for parameter in need.missing
    ]
    example = " ".join(f"{parameter.name}=…" for parameter in need.missing)
    return (
        f"{misfits}To use {code(need.name)} I still need:\n\n"
        + "\n".join(lines)
        + f"\n\nTell me just that, or write {code(f'{need.name} {example}')}."
    )


def choice(names: Sequence[str]) -> str:
    """Ask which of several tools is meant."""
    listed = "\n".join(f"- {code(name)}" for name in names)
    return f"Several tools fit equally well. Which one do you mean?\n\n{listed}"


def summary(outcomes: Sequence[Outcome], left_out: Sequence[str] = ()) -> str:
    """Say what came of the calls, and which planned ones were not made because of it."""
    paragraphs = [_outcome(outcome) for outcome in outcomes]
    if left_out:
        names = ", ".join(code(name) for name in left_out)
        paragraphs.append(f"Because of that I did not go on with {names}.")
    return "\n\n".join(paragraphs)


def code(text: str) -> str:
    """Write a name as Markdown code."""
    clean = " ".join(text.replace("`", "'").split())
    return f"`{clip(clean, MAX_SENTENCE)}`"


def escape(text: str) -> str:
    """Write one line of foreign text so that Markdown shows it as it is."""
    return _ACTIVE.sub(lambda match: f"\\{match.group()}", " ".join(text.split()))


def quote(text: str) -> str:
    """Quote what a tool returned: a line as a quotation, anything longer in a fence."""
    pretty = _pretty_json(text)
    if pretty is None and "\n" not in text.strip() and len(text) <= MAX_QUOTED:
        return f"> {escape(text)}"
    language, body = ("json", pretty) if pretty is not None else ("text", text.strip("\n"))
    shown = clip_middle(body, MAX_QUOTED * 3 // 4, MAX_QUOTED // 4)
    longest = max((len(run) for run in _FENCE.findall(shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _outcome(outcome: Outcome) -> str:
    name = code(outcome.name)
    if outcome.denied:
        return f"{name} was not allowed, so it did not run. I do not try it again."
    if outcome.failed:
        reason = f":\n\n{quote(outcome.text)}" if outcome.text.strip() else "."
        return f"{name} failed{reason}"
    count = outcome.attachments
    attached = f"{count} attachment{'s' if count > 1 else ''} that I cannot read" if count else ""
    if not outcome.text.strip():
        return f"{name} is done and returned {attached or 'nothing'}."
    also = f"\n\nIt also returned {attached}." if attached else ""
    return f"{name} returned:\n\n{quote(outcome.text)}{also}"


def _expectation(parameter: Parameter) -> str:
    """Say what a parameter takes."""
    if parameter.choices:
        shown = [str(value) for value in parameter.choices[:MAX_LISTED_CHOICES]]
        more = ", …" if len(parameter.choices) > MAX_LISTED_CHOICES else ""
        kind = f"one of {escape(clip(', '.join(shown), MAX_SENTENCE))}{more}"
    else:
        kind = f"{parameter.kind}{_bounds(parameter)}"
    described = escape(clip(parameter.description, MAX_SENTENCE))
    return f"{kind}{f' ({described})' if described else ''}"


def _bounds(parameter: Parameter) -> str:
    keywords = parameter.keywords
    match parameter.kind:
        case Kind.WHOLE_NUMBER | Kind.NUMBER:
            low, high, unit = keywords.get("minimum"), keywords.get("maximum"), ""
        case Kind.TEXT:
            low, high, unit = None, keywords.get("maxLength"), " characters"
        case _:
            return ""
    low_text = f" from {low}" if isinstance(low, int | float) else ""
    high_word = " to" if low_text else " of at most" if unit else " up to"
    high_text = f"{high_word} {high}{unit}" if isinstance(high, int | float) else ""
    return f"{low_text}{high_text}"


def _first_sentence(declaration: Mapping[str, Any]) -> str:
    text = " ".join(str(declaration.get("description") or "").split())
    return escape(clip(_SENTENCE_END.split(text, maxsplit=1)[0], MAX_SENTENCE))


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def _pretty_json(text: str) -> str | None:
    """Indent a JSON object or array; None for anything else."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
        return json.dumps(value, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
