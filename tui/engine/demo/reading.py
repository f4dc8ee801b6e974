"""Keeps track of which words of a request have been taken as arguments, and of the rest."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tui.engine.demo.tokens import Shape, Token, tokenize
from tui.engine.demo.words import noun_meanings, split_name, stem, verb_meanings

_CONNECTORS: Final = frozenset(
    {"about", "as", "at", "called", "containing", "for", "from", "in", "into", "is", "named"}
    | {"of", "on", "saying", "says", "that", "titled", "to", "with"}
)
"""Words between what to do and what to do it with."""

_PLACES: Final = frozenset({"in", "from", "to", "of", "on", "into", "within", "among"})
"""Words that begin a place at the end, as in "find milk in my notes"."""

_FILLERS: Final = frozenset({"is", "to", "as", "of", "with", "be"})
"""Words that may stand between a parameter's name and its value."""


@dataclass(frozen=True, slots=True)
class Words:
    """A stretch of the request, and the tokens that it consists of."""

    text: str = ""
    indices: tuple[int, ...] = ()


NO_WORDS: Final = Words()


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where a request names a parameter.

    Attributes:
        start: The first token of the name.
        value: The token where the value would begin.
        mark: ``:`` or ``=`` where one stands between them, else nothing.
        whole: Whether the whole name is said, not only its first word.
    """

    start: int
    value: int
    mark: str
    whole: bool = True

    @property
    def marked(self) -> bool:
        """Whether a mark makes plain that a value follows."""
        return bool(self.mark)


class Reading:
    """A request on its way into arguments.

    Attributes:
        text: The request.
        tokens: Its tokens.
        payload: Where the words after the colon begin, as in "add a note: buy milk": the
            index of the first token after it, or the number of tokens where there is none.
    """

    def __init__(self, text: str, tool_words: frozenset[str], names: Iterable[str]) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self._used: set[int] = set()
        self._tool_words = tool_words
        self._tool_verbs = frozenset().union(*(verb_meanings(root) for root in tool_words))
        self._tool_nouns = frozenset().union(*(noun_meanings(root) for root in tool_words))
        self.payload = self._find_payload(frozenset(name.casefold() for name in names))

    def use(self, *indices: int) -> None:
        """Mark tokens as taken."""
        self._used.update(indices)

    def is_free(self, index: int) -> bool:
        """Tell whether a token is there and not taken."""
        return 0 <= index < len(self.tokens) and index not in self._used

    def find(
        self, wanted: Callable[[Token], bool], *, in_payload: bool = False
    ) -> tuple[int, Token] | None:
        """Find the first free token that is wanted, before the payload or also in it."""
        end = len(self.tokens) if in_payload else self.payload
        for index in range(end):
            if index not in self._used and wanted(self.tokens[index]):
                return index, self.tokens[index]
        return None

    def says_tool(self, token: Token) -> bool:
        """Tell whether a word only says which tool is meant."""
        root = token.root
        return bool(root) and (
            root in self._tool_words
            or bool(verb_meanings(root) & self._tool_verbs)
            or bool(noun_meanings(root) & self._tool_nouns)
        )

    def names_a_thing(self, index: int) -> bool:
        """Tell whether the number at `index` says which one, as in "note 2" and "#2"."""
        if index == 0:
            return False
        before = self.tokens[index - 1]
        names = before.root in self._tool_words and not verb_meanings(before.root)
        return names or before.is_mark("#") or before.folded in {"number", "no", "nr", "id"}

    def payload_words(self) -> Words:
        """Give what stands free after the colon, without quotation marks and last hashtags."""
        free = self._free_run(self.payload)
        while free and self._is_trailing(free[-1]):
            free.pop()
        while free and self.tokens[free[0]].is_mark(":,;"):
            free.pop(0)
        return Words(self.slice(free[0], free[-1] + 1), tuple(free)) if free else NO_WORDS

    def other_words(self) -> Words:
        """Give the free words before the payload that do not say what to do or where."""
        start = self._after_instruction()
        run = self._free_run(start)
        run = self._without_place([index for index in run if index < self.payload])
        if not run:
            return NO_WORDS
        text = self.text[self.tokens[run[0]].start : self.tokens[run[-1]].end]
        return Words(text.strip(" .?,;"), tuple(run))

    def slice(self, start: int, end: int) -> str:
        """Give the words from one token up to another; a lone quotation without its marks."""
        if end - start == 1:
            return self.tokens[start].text
        return self.text[self.tokens[start].start : self.tokens[end - 1].end].strip()

    def _find_payload(self, names: frozenset[str]) -> int:
        for index, token in enumerate(self.tokens):
            if index == 0 or not token.is_mark(":"):
                continue
            before = self.tokens[index - 1]
            if before.folded not in names or self.says_tool(before):
                return index + 1
        return len(self.tokens)

    def _free_run(self, start: int) -> list[int]:
        """List the indices from the first free token on, up to the next one that is taken."""
        run: list[int] = []
        for index in range(start, len(self.tokens)):
            if index not in self._used:
                run.append(index)
            elif run:
                break
        return run

    def _is_trailing(self, index: int) -> bool:
        token = self.tokens[index]
        return token.is_mark(",;") or token.shape is Shape.HASHTAG

    def _after_instruction(self) -> int:
        """Give the index after the last leading word that says what to do."""
        start, leading, verbs = 0, 0, 0
        for index, token in enumerate(self.tokens[: self.payload]):
            if self.says_tool(token) or index in self._used:
                start = index + 1
            elif start == 0 and verbs == 0 and verb_meanings(token.root):
                verbs += 1
            elif not token.says_nothing and not token.is_mark(",;"):
                break
            leading = index + 1
        if start == 0:
            return leading
        while start < self.payload and self.tokens[start].folded in _CONNECTORS:
            start += 1
        return start

    def _without_place(self, run: list[int]) -> list[int]:
        """Cut "please", marks, and an end such as "in my notes" or "in" before a taken place."""
        while run and self._is_closing(run[-1]):
            run = run[:-1]
        end, said = len(run), False
        while end > 0:
            token = self.tokens[run[end - 1]]
            if self.says_tool(token):
                said = True
            elif not token.says_nothing:
                break
            end -= 1
            if said and token.folded in _PLACES:
                return run[:end]
        return run

    def _is_closing(self, index: int) -> bool:
        token = self.tokens[index]
        dangling = token.folded in _CONNECTORS and index + 1 in self._used
        return dangling or token.is_mark(".?,;") or token.folded == "please"


def find_mentions(reading: Reading, name: str) -> Iterator[Mention]:
    """Find where a request names a parameter.

    Without a mark after it, a name counts only before the payload, and only where it is
    neither a word that only says which tool is meant nor one that says nothing. The first word
    of a name is enough there: "branch main" for `branch_name`.
    """
    roots = [stem(word) for word in split_name(name)]
    tokens = reading.tokens
    for start, token in enumerate(tokens):
        length = _said_words(tokens[start : start + max(len(roots), 1)], name, roots)
        if length == 0 or not reading.is_free(start):
            continue
        value = start + length
        whole = length == len(roots) or token.folded == name.casefold()
        if value < len(tokens) and tokens[value].is_mark(":=") and whole:
            yield Mention(start, value + 1, tokens[value].text)
        elif (
            start < reading.payload
            and len(name) > 1
            and not token.says_nothing
            and not all(reading.says_tool(other) for other in tokens[start:value])
        ):
            while value < len(tokens) and tokens[value].folded in _FILLERS:
                value += 1
            yield Mention(start, value, "", whole)


def _said_words(tokens: Sequence[Token], name: str, roots: list[str]) -> int:
    """Count the tokens that say a name: as it is spelled, in words, or by its first word."""
    if tokens[0].folded == name.casefold():
        return 1
    said = [token.root for token in tokens]
    if roots and said == roots:
        return len(roots)
    return int(len(roots) > 1 and said[0] == roots[0])
