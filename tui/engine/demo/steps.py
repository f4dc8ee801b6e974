"""Decides the demo model's next step from the conversation alone. Pure and deterministic."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tui.engine.chat.backend import ModelRequest, WireContent
from tui.engine.demo import answers
from tui.engine.demo.answers import Outcome
from tui.engine.demo.planning import (
    Call,
    Calls,
    NeedsArguments,
    NoMatch,
    Plan,
    Refused,
    TooLong,
    Unclear,
    make_plan,
)
from tui.engine.demo.talk import Talk, read_talk

_DENIAL: Final = re.compile(r"Denied: |The user has denied ")
"""How the turn loop begins the answer to a call that was not allowed to run."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: text to say, then calls to make at the same time. One of them may be empty."""

    text: str = ""
    calls: tuple[Call, ...] = ()


def next_step(request: ModelRequest) -> Step:
    """Decide what the model does now.

    The first answer of a conversation says that this is a demo. Calls that failed or were
    denied are reported and not tried again; stages planned after them are left out.
    """
    start = _last_message(request.contents)
    message = _text(request.contents[start]) if start is not None else ""
    since = request.contents[start + 1 :] if start is not None else ()
    outcomes = _outcomes(since)
    if not outcomes:
        step = _first_step(request, message, start or 0)
        is_first = all(content.get("role") != "model" for content in request.contents)
        return _introduced(step) if is_first else step
    plan = _plan(request, message, start or 0)
    stages = plan.stages[_steps_with_calls(since) :] if isinstance(plan, Calls) else ()
    if any(outcome.failed for outcome in outcomes):
        left_out = [call.name for stage in stages for call in stage]
        return Step(answers.summary(outcomes, left_out))
    return Step(calls=stages[0]) if stages else Step(answers.summary(outcomes))


def _first_step(request: ModelRequest, message: str, start: int) -> Step:
    """Answer the user's message."""
    declarations = request.declarations
    match read_talk(message):
        case Talk.GREETING:
            return Step(f"Hello! {answers.tool_list(declarations)}")
        case Talk.ABOUT_MODEL:
            return Step(answers.about_model(declarations))
        case Talk.ABOUT_TOOLS:
            return Step(answers.tool_list(declarations))
        case Talk.THANKS:
            return Step(answers.THANKED)
        case Talk.DISMISSAL:
            return Step(answers.DONE_NOTHING)
    match _plan(request, message, start):
        case Calls(stages):
            return Step(calls=stages[0])
        case NeedsArguments() as need:
            return Step(answers.question(need))
        case Unclear(names):
            return Step(answers.choice(names))
        case Refused():
            return Step(answers.DONE_NOTHING)
        case TooLong():
            return Step(answers.TOO_LONG)
        case NoMatch():
            return Step(answers.no_match(declarations))


def _introduced(step: Step) -> Step:
    return Step("\n\n".join(filter(None, (answers.INTRODUCTION, step.text))), step.calls)


def _plan(request: ModelRequest, message: str, start: int) -> Plan:
    """Plan for a message; one that means nothing by itself may answer our last question."""
    plan = make_plan(message, request.declarations)
    asked = _question_before(request, start)
    if asked is None or not message.strip():
        return plan
    earlier, need = asked
    if isinstance(need, Unclear):
        names = [name for name in need.names if name.casefold() in message.casefold()]
        return make_plan(f"{names[0]} {earlier}", request.declarations) if names else plan
    if not isinstance(plan, NoMatch):
        return plan
    for misfit in need.misfits:
        earlier = earlier.replace(misfit, "", 1)
    marker = f"\n{need.missing[0].name}:" if len(need.missing) == 1 else ":"
    together = make_plan(f"{earlier}{marker} {message}", request.declarations)
    return plan if isinstance(together, NoMatch) else together


def _question_before(
    request: ModelRequest, start: int
) -> tuple[str, NeedsArguments | Unclear] | None:
    """Give the message before this one and what we had to ask about it, if we had to."""
    before = _last_message(request.contents[:start])
    if before is None or _steps_with_calls(request.contents[before:start]):
        return None
    earlier = _text(request.contents[before])
    if read_talk(earlier) is not None:
        return None
    plan = make_plan(earlier, request.declarations)
    return (earlier, plan) if isinstance(plan, NeedsArguments | Unclear) else None


def _last_message(contents: Sequence[WireContent]) -> int | None:
    """Find the last content that the user wrote, as opposed to answers of tools."""
    for index in range(len(contents) - 1, -1, -1):
        content = contents[index]
        if content.get("role") == "user" and not _responses(content) and _text(content):
            return index
    return None


def _text(content: WireContent) -> str:
    """Give the first text of a content: the message itself, without what is attached to it."""
    texts = (part.get("text") for part in content.get("parts", ()))
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _steps_with_calls(contents: Sequence[WireContent]) -> int:
    return sum(
        any("functionCall" in part for part in content.get("parts", ())) for content in contents
    )


def _responses(content: WireContent) -> list[Mapping[str, Any]]:
    parts = content.get("parts", ())
    return [part["functionResponse"] for part in parts if "functionResponse" in part]


def _outcomes(contents: Sequence[WireContent]) -> list[Outcome]:
    """Read what came of all calls in these contents."""
    outcomes: list[Outcome] = []
    for content in contents:
        responses = _responses(content)
        beside = sum("inlineData" in part for part in content.get("parts", ()))
        for number, response in enumerate(responses, start=1):
            last = number == len(responses)
            outcomes.append(_outcome(response, beside if last else 0))
    return outcomes


def _outcome(response: Mapping[str, Any], beside: int) -> Outcome:
    body = response.get("response") or {}
    error = body.get("error")
    text = str(error if error is not None else body.get("output", ""))
    return Outcome(
        name=str(response.get("name", "")),
        text=text,
        failed=error is not None,
        denied=error is not None and _DENIAL.match(text) is not None,
        attachments=len(response.get("parts") or ()) + beside,
    )
