"""Turns a request in plain words into calls, or into the question that has to come first."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tui.engine.demo.arguments import Filled, fill
from tui.engine.demo.matching import Match, match_tools, name_stems
from tui.engine.demo.schemas import Parameter
from tui.engine.demo.tokens import Shape, tokenize
from tui.engine.demo.words import STOP_WORDS, split_name, stem, verb_meanings

MAX_REQUEST: Final = 8_000
"""Longest request that is read, in characters."""

MAX_CANDIDATES: Final = 6
"""Best matches whose arguments are tried."""

MAX_CALLS: Final = 8
"""Calls that one request may lead to."""

_SAME: Final = 0.01
_PER_EVIDENT: Final = 0.5
_MOST_EVIDENT: Final = 3
_PAYLOAD: Final = 1.0
_PER_GUESSED: Final = 0.25
_PER_MISSING: Final = 1.5
_MOST_MISSING: Final = 2

_THEN: Final = re.compile(r"\s*(?:[,;.]\s*)?\b(?:and\s+)?(?:then|after that)\b,?\s+|\s*;\s+", re.I)
_AND: Final = re.compile(r"\s*,?\s+(?:and|plus|also|as well as)\s+(?:also\s+)?", re.I)
_REFUSAL: Final = re.compile(
    r"^\W*(?:please\W+|no\W+)?(?:do\s+not|don['\u2019]?t|never)\b(?!\s+(?:forget|you)\b)", re.I
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call to make."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls to make: those of one stage at the same time, stage after stage."""

    stages: tuple[tuple[Call, ...], ...]


@dataclass(frozen=True, slots=True)
class NeedsArguments:
    """A tool was meant, but the request does not give all that it needs.

    `misfits` are numbers in the request that fit no parameter, as written.
    """

    name: str
    missing: tuple[Parameter, ...]
    misfits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unclear:
    """Several tools fit equally well."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The request asks not to do something."""


@dataclass(frozen=True, slots=True)
class NoMatch:
    """No tool fits."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """The request is longer than `MAX_REQUEST`."""


Plan = Calls | NeedsArguments | Unclear | Refused | NoMatch | TooLong


def make_plan(request: str, declarations: Sequence[Mapping[str, Any]]) -> Plan:
    """Decide what a request leads to, given the tools that are offered."""
    if len(request) > MAX_REQUEST:
        return TooLong()
    if _REFUSAL.search(request):
        return Refused()
    stages = _stages(request, declarations)
    return Calls(stages) if stages else _plan_one(request, declarations)


def _plan_one(request: str, declarations: Sequence[Mapping[str, Any]]) -> Plan:
    """Decide on a request that asks for one thing."""
    ranked = sorted(
        (
            (_rank(match, filled), match, filled)
            for match in match_tools(_instruction(request), declarations)[:MAX_CANDIDATES]
            if _is_meant(match, filled := fill(match.declaration, request))
        ),
        key=lambda candidate: -candidate[0],
    )
    if not ranked:
        return NoMatch()
    best, match, filled = ranked[0]
    equals = [other for rank, other, _ in ranked if best - rank < _SAME]
    words = {name_stems(other.declaration) for other in equals}
    if len(words) > 1:
        return Unclear(tuple(_name(other) for other in equals))
    if filled.missing:
        return NeedsArguments(_name(match), filled.missing, filled.misfits)
    return Calls(((Call(_name(match), filled.arguments),),))


def _is_meant(match: Match, filled: Filled) -> bool:
    """Tell whether a match is more than a verb in common: its arguments may show it."""
    return match.sure or (filled.evident > 0 and not filled.missing)


def _rank(match: Match, filled: Filled) -> float:
    return (
        match.score
        + _PER_EVIDENT * min(filled.evident, _MOST_EVIDENT)
        + _PAYLOAD * filled.payload
        - _PER_GUESSED * filled.guessed
        - _PER_MISSING * min(len(filled.missing), _MOST_MISSING)
    )


def _stages(
    request: str, declarations: Sequence[Mapping[str, Any]]
) -> tuple[tuple[Call, ...], ...]:
    """Split a request such as "do this and that, then something else" into its calls.

    Nothing is split inside a quotation, and after a colon only at "then" and semicolons. If
    any part leads to no complete call, nothing is split.
    """
    stages = []
    for start, end in _pieces(request, _THEN, len(request)):
        calls = _parallel(request[start:end], declarations)
        if not calls:
            return ()
        stages.append(calls)
    return tuple(stages) if sum(map(len, stages)) <= MAX_CALLS else ()


def _parallel(text: str, declarations: Sequence[Mapping[str, Any]]) -> tuple[Call, ...]:
    """Give the calls that "this and that" leads to; none if any part is incomplete.

    What follows an "and" is a part of its own only if it begins with a verb and leads to a
    complete call; otherwise it belongs to what stands before it.
    """
    pieces = list(_pieces(text, _AND, _payload_start(text)))
    parts = pieces[:1]
    for index, (start, end) in enumerate(pieces[1:], start=1):
        begins = _begins_with_verb(text[start:end], declarations) and any(
            _call(text[start:later], declarations) is not None for _, later in pieces[index:]
        )
        if begins:
            parts.append((start, end))
        else:
            parts[-1] = (parts[-1][0], end)
    calls = [_call(text[start:end], declarations) for start, end in parts]
    return tuple(call for call in calls if call is not None) if None not in calls else ()


def _call(request: str, declarations: Sequence[Mapping[str, Any]]) -> Call | None:
    """Give the one complete call that a part leads to, or nothing."""
    plan = _plan_one(request, declarations)
    return plan.stages[0][0] if isinstance(plan, Calls) else None


def _pieces(text: str, cut: re.Pattern[str], limit: int) -> Iterator[tuple[int, int]]:
    """Cut a text before `limit` wherever `cut` matches outside a quotation; give the spans."""
    quotations = [token for token in tokenize(text) if token.shape is Shape.QUOTATION]
    start, cuts = 0, 1
    for match in cut.finditer(text):
        quoted = any(token.start < match.start() < token.end for token in quotations)
        if quoted or match.start() >= limit or cuts == MAX_CALLS:
            continue
        if text[start : match.start()].strip():
            yield start, match.start()
            start, cuts = match.end(), cuts + 1
    yield start, len(text)


def _payload_start(text: str) -> int:
    """Give the place of the first colon between words."""
    colons = [token.start for token in tokenize(text) if token.is_mark(":")]
    return colons[0] if colons else len(text)


def _instruction(request: str) -> str:
    """Give what a request says to do: without quotations and without what follows a colon."""
    end = _payload_start(request)
    kept = list(request[:end])
    for token in tokenize(request):
        if token.shape is Shape.QUOTATION and token.end <= end:
            kept[token.start : token.end] = " " * (token.end - token.start)
    instruction = "".join(kept)
    return instruction if instruction.strip() else request


def _begins_with_verb(text: str, declarations: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether the first word that says something is a verb, known or a tool's own."""
    for token in tokenize(text):
        if token.folded not in STOP_WORDS:
            firsts = (split_name(_name(declaration))[:1] for declaration in declarations)
            known = bool(verb_meanings(token.root))
            return known or any(stem(word) == token.root for first in firsts for word in first)
    return False


def _name(source: Match | Mapping[str, Any]) -> str:
    declaration = source.declaration if isinstance(source, Match) else source
    return str(declaration.get("name") or "")
