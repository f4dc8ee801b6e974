"""Words for matching: stems, stop words, and the few synonyms that the demo model knows."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

MAX_CACHED: Final = 20_000
"""Words whose stems are remembered."""

WORD: Final = re.compile(r"[^\W_]+")
"""One word: letters and digits of any script."""

_CAMEL_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_STOP_WORDS: Final = """
    a about all am an and any are as at be been by can could did do does for from has have having
    he her here hi him his how i if in into is it its just know let like ll m may me mine my need
    no not now of off on once one or our out over own please re s shall she should so some such t
    than that the their them then there these they this those to too under until up us ve very
    want was we were what when which while who why will with would you your called containing
    named saying says titled
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""Words that say nothing of what is wanted."""

NEGATIONS: Final = frozenset({"no", "not", "without", "never", "don", "skip"})
"""Words that turn the flag after them off."""

_VERBS: Final[dict[str, str]] = {
    "create": "add append create insert jot keep make new put record remember save store write",
    "list": "display enumerate fetch get give list show summarize tell view what which",
    "read": "cat display fetch get give open read show summarize tell view what",
    "remove": "clear delete destroy discard drop erase forget remove",
    "search": "contain find grep locate look lookup mention query search seek where",
    "change": "amend change correct edit modify rename replace set update",
    "sum": "add calculate compute plus sum total",
    "repeat": "echo repeat say",
    "run": "execute launch run start trigger",
    "count": "count enumerate",
    "convert": "convert translate transform turn",
    "investigate": "explore investigate research study",
}
_NOUNS: Final[dict[str, str]] = {
    "note": "memo note remember reminder",
    "folder": "dir directory folder",
    "file": "document file",
    "time": "clock hour time",
    "picture": "image photo picture",
    "message": "message text",
    "change": "changes diff difference",
    "history": "commits history log",
}

GENERIC: Final = frozenset({"list", "read"})
"""Verb meanings so common that they alone are no sign of what is wanted."""


@lru_cache(maxsize=MAX_CACHED)
def stem(word: str) -> str:
    """Cut a word down to what its forms have in common: ``notes``, ``note`` → ``not``.

    The stem need not be a word; equal stems are what counts. English endings only; words of
    other languages mostly stay as they are.
    """
    root = word.casefold()
    root = _without_ending(root, (("ies", "y"), ("es", ""), ("s", "")))
    root = _without_ending(root, (("ing", ""), ("ed", ""), ("ly", "")))
    if len(root) > 3 and root[-1] == "e":
        root = root[:-1]
    if len(root) > 3 and root[-1] == root[-2]:
        root = root[:-1]
    if len(root) > 3 and root[-1] == "y":
        root = root[:-1] + "i"
    return root


def _without_ending(word: str, endings: Iterable[tuple[str, str]]) -> str:
    for ending, instead in endings:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + instead
    return word


def split_name(name: str) -> tuple[str, ...]:
    """Split an identifier into lower-case words: ``getSum``, ``get-sum`` → ``get``, ``sum``."""
    return tuple(word.lower() for word in WORD.findall(_CAMEL_CASE.sub(" ", name)))


def _meanings(groups: dict[str, str]) -> dict[str, frozenset[str]]:
    meanings: dict[str, set[str]] = {}
    for meaning, words in groups.items():
        for word in words.split():
            meanings.setdefault(stem(word), set()).add(meaning)
    return {root: frozenset(group) for root, group in meanings.items()}


_VERB_MEANINGS: Final = _meanings(_VERBS)
_NOUN_MEANINGS: Final = _meanings(_NOUNS)
_NOTHING: Final[frozenset[str]] = frozenset()


def verb_meanings(root: str) -> frozenset[str]:
    """Give what a stem may mean as a verb: ``add`` → ``create``, ``sum``."""
    return _VERB_MEANINGS.get(root, _NOTHING)


def noun_meanings(root: str) -> frozenset[str]:
    """Give what a stem may mean as a noun: ``directori`` → ``folder``."""
    return _NOUN_MEANINGS.get(root, _NOTHING)


def content_stems(text: str, limit: int) -> tuple[str, ...]:
    """Give the stems of the first `limit` words that say something, each once, in order."""
    words = WORD.findall(_CAMEL_CASE.sub(" ", text))[:limit]
    return tuple(dict.fromkeys(stem(word) for word in words if word.casefold() not in STOP_WORDS))
