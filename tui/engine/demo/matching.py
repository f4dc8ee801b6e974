"""Scores how well a request in plain words fits each offered tool. Pure and deterministic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from tui.engine.demo.words import (
    GENERIC,
    STOP_WORDS,
    WORD,
    content_stems,
    noun_meanings,
    split_name,
    stem,
    verb_meanings,
)

MAX_TOOLS: Final = 2_000
"""Tools that are looked at: the first ones."""

MAX_REQUEST_WORDS: Final = 60
"""Words of a request that take part in matching."""

MAX_DESCRIPTION_WORDS: Final = 60
"""Words of a tool's description that take part in matching."""

MAX_PARAMETERS: Final = 40
"""Parameters of a tool whose names take part in matching."""

MAX_PROFILES: Final = 4_096
"""Tools whose words are remembered between requests."""

THRESHOLD: Final = 1.5
"""Least score of a tool that is considered at all."""

_EXACT: Final = 3.0
_SAME_MEANING: Final = 2.0
_EXACT_COMMON_VERB: Final = 2.0
_COMMON_VERB: Final = 1.0
_FIRST_WORD: Final = 1.0
_MENTIONED: Final = 10.0
_UNSAID_NOUN: Final = -0.5
_UNSAID_VERB: Final = -0.25
_OTHER_VERB: Final = -4.0
_ONLY_LOOKS: Final = 0.5
_IN_DESCRIPTION: Final = 0.75
_IN_PARAMETERS: Final = 0.75
_MOST_FROM_DESCRIPTION: Final = 2.25
_MOST_FROM_PARAMETERS: Final = 1.5


@dataclass(frozen=True, slots=True)
class Match:
    """A tool that a request may mean.

    Attributes:
        declaration: Its function declaration.
        score: How well it fits; higher is better.
        sure: Whether the request names what the tool is about. A verb alone ("delete …") is
            not enough for a tool that is about some thing.
    """

    declaration: Mapping[str, Any]
    score: float
    sure: bool


@dataclass(frozen=True, slots=True)
class _Request:
    """The words of a request that say something."""

    text: str
    stems: tuple[str, ...]
    verbs: frozenset[str]
    nouns: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Profile:
    """The words of a tool that take part in matching."""

    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    meanings: frozenset[str]
    parameters: frozenset[str]
    description: frozenset[str]


def match_tools(request: str, declarations: Sequence[Mapping[str, Any]]) -> list[Match]:
    """List the tools that `request` may mean, best first; equals stay in their given order."""
    read = _read(request)
    if not read.stems and not read.verbs:
        return []
    matches = [
        match
        for declaration in declarations[:MAX_TOOLS]
        if (match := _match(read, declaration)).score >= THRESHOLD
    ]
    return sorted(matches, key=lambda match: -match.score)


def name_stems(declaration: Mapping[str, Any]) -> frozenset[str]:
    """Give the stems of the words in a tool's name."""
    return frozenset(stem(word) for word in split_name(_name(declaration)))


def _read(request: str) -> _Request:
    stems = content_stems(request, MAX_REQUEST_WORDS)
    spoken = [stem(word) for word in WORD.findall(request)[:MAX_REQUEST_WORDS]]
    return _Request(
        text=request.casefold(),
        stems=stems,
        verbs=frozenset().union(*(verb_meanings(root) for root in spoken)),
        nouns=frozenset().union(*(noun_meanings(root) for root in stems)),
    )


def _match(request: _Request, declaration: Mapping[str, Any]) -> Match:
    profile = _profile_of(declaration)
    verb_score, verb_said = _score_verbs(request, profile)
    noun_score, noun_said = _score_nouns(request, profile)
    rest = frozenset(request.stems) - frozenset(profile.verbs) - frozenset(profile.nouns)
    about = frozenset(root for root in rest if not verb_meanings(root))
    in_description = len(about & profile.description)
    in_parameters = len(about & profile.parameters)
    score = (
        verb_score
        + noun_score
        + min(in_description * _IN_DESCRIPTION, _MOST_FROM_DESCRIPTION)
        + min(in_parameters * _IN_PARAMETERS, _MOST_FROM_PARAMETERS)
    )
    about_said = noun_said or in_description > 0 or in_parameters > 0
    nothing_else = verb_said and request.stems[0] in profile.verbs and not rest
    sure = about_said or nothing_else or (verb_said and not profile.nouns)
    if _mentions(request, _name(declaration)):
        return Match(declaration, score + _MENTIONED, sure=True)
    return Match(declaration, score, sure)


def _score_verbs(request: _Request, profile: _Profile) -> tuple[float, bool]:
    """Compare verbs; the flag says whether one is said that is not common to many tools."""
    score, said = 0.0, False
    for root in profile.verbs:
        shared = verb_meanings(root) & request.verbs
        if root in request.stems and verb_meanings(root) <= GENERIC:
            score += _EXACT_COMMON_VERB
        elif root in request.stems:
            score += _EXACT + (_FIRST_WORD if root == request.stems[0] else 0)
            said = True
        elif shared - GENERIC:
            first = bool(request.stems) and bool(shared & verb_meanings(request.stems[0]))
            score += _SAME_MEANING + (_FIRST_WORD if first else 0)
            said = True
        else:
            score += _COMMON_VERB if shared else _UNSAID_VERB
    if profile.meanings & GENERIC and not request.verbs - GENERIC:
        score += _ONLY_LOOKS
    if profile.meanings and request.verbs and not profile.meanings & request.verbs:
        score += _OTHER_VERB
    return score, said


def _score_nouns(request: _Request, profile: _Profile) -> tuple[float, bool]:
    """Compare what is not a verb; the flag says whether any of it is said."""
    score, said = 0.0, False
    for root in profile.nouns:
        if root in request.stems:
            score, said = score + _EXACT, True
        elif noun_meanings(root) & request.nouns:
            score, said = score + _SAME_MEANING, True
        else:
            score += _UNSAID_NOUN
    return score, said


def _mentions(request: _Request, name: str) -> bool:
    """Tell whether the request spells the whole name, which then must look like one."""
    return len(split_name(name)) > 1 and name.casefold() in request.text


def _profile_of(declaration: Mapping[str, Any]) -> _Profile:
    schema = declaration.get("parametersJsonSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    parameters = list(properties)[:MAX_PARAMETERS] if isinstance(properties, Mapping) else []
    words = f"{declaration.get('title') or ''} {declaration.get('description') or ''}"
    return _profile(_name(declaration), words, " ".join(map(str, parameters)))


@lru_cache(maxsize=MAX_PROFILES)
def _profile(name: str, description: str, parameters: str) -> _Profile:
    roots = tuple(dict.fromkeys(stem(word) for word in split_name(name) if _says(word)))
    verbs = tuple(root for root in roots if verb_meanings(root))
    return _Profile(
        verbs=verbs,
        nouns=tuple(root for root in roots if not verb_meanings(root)),
        meanings=frozenset().union(*(verb_meanings(root) for root in verbs)),
        parameters=frozenset(content_stems(parameters, MAX_PARAMETERS * 4)),
        description=frozenset(content_stems(description, MAX_DESCRIPTION_WORDS)),
    )


def _says(word: str) -> bool:
    return word not in STOP_WORDS


def _name(declaration: Mapping[str, Any]) -> str:
    return str(declaration.get("name") or "")
