"""Fills the arguments of a tool from a request in plain words, by the tool's schema.

Pure and deterministic. What is filled fits the schema as far as `Parameter.accepts` reads it;
what is required and cannot be filled is named, so that it can be asked for.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from tui.engine.demo.matching import name_stems
from tui.engine.demo.reading import Mention, Reading, find_mentions
from tui.engine.demo.schemas import Kind, Parameter, parameters_of
from tui.engine.demo.shapes import expected_shapes, is_numeric
from tui.engine.demo.tokens import Shape, Token, find_json_object, tokenize
from tui.engine.demo.words import NEGATIONS, STOP_WORDS, split_name, stem

MAX_ITEMS: Final = 50
"""Items that are taken into one list."""

MAX_CHOICES: Final = 200
"""Allowed values of one parameter that are looked for."""

_YES: Final = frozenset({"yes", "true", "on"})
_NO: Final = frozenset({"no", "false", "off"})
_SEPARATOR: Final = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+|\s*;\s*")


@dataclass(frozen=True, slots=True)
class Filled:
    """What a request gives a tool.

    Attributes:
        arguments: The arguments, in the order of the schema.
        missing: Parameters that have to be asked for: required and not given, or given a
            number that does not fit.
        misfits: Numbers in the request that fit no parameter, as written.
        evident: How many arguments were plainly there: named, or of the one type that fits.
        guessed: How many texts are only what was left of the request.
        payload: Whether the words after a colon or in quotation marks were taken.
    """

    arguments: dict[str, Any]
    missing: tuple[Parameter, ...] = ()
    misfits: tuple[str, ...] = ()
    evident: int = 0
    guessed: int = 0
    payload: bool = False


def fill(declaration: Mapping[str, Any], request: str) -> Filled:
    """Fill the arguments of one tool from a request."""
    parameters = parameters_of(declaration.get("parametersJsonSchema"))
    filler = _Filler(parameters, request, name_stems(declaration))
    return filler.fill()


class _Filler:
    """One attempt, in rounds: from what is plainly named to what is only left over."""

    def __init__(
        self, parameters: tuple[Parameter, ...], request: str, tool_words: frozenset[str]
    ) -> None:
        self._parameters = sorted(parameters, key=lambda parameter: not parameter.required)
        self._order = [parameter.name for parameter in parameters]
        self._names = frozenset(name.casefold() for name in self._order)
        self._reading = Reading(request, tool_words, self._names)
        self._found: dict[str, Any] = {}
        self._evident = 0
        self._payload = False
        self._guessed = 0
        self._misfits: dict[int, str] = {}
        self._json, self._json_span = find_json_object(request)

    def fill(self) -> Filled:
        """Go through the rounds."""
        for attempt in (
            self._from_json,
            self._from_name,
            self._from_choices,
            self._from_shape,
            self._from_unit,
            self._from_number,
            self._from_list,
            self._from_quotation,
            self._from_words,
            self._from_single_word,
        ):
            self._round(attempt)
        missing = [parameter for parameter in self._parameters if self._is_missing(parameter)]
        arguments = {name: self._found[name] for name in self._order if name in self._found}
        misfits = tuple(self._reading.tokens[index].text for index in self._misfitting())
        return Filled(
            arguments, tuple(missing), misfits, self._evident, self._guessed, self._payload
        )

    def _is_missing(self, parameter: Parameter) -> bool:
        """Tell whether a parameter has to be asked for; fill in the default of a required one.

        A number that was said and does not fit is asked for again rather than dropped.
        """
        if parameter.name in self._found:
            return False
        if not parameter.required:
            return parameter.name in self._misfitting().values()
        if parameter.default is not None and parameter.accepts(parameter.default):
            self._found[parameter.name] = parameter.default
            return False
        return True

    def _misfitting(self) -> dict[int, str]:
        """Give the numbers that fit nothing, by token, with the first parameter they met."""
        return {at: name for at, name in self._misfits.items() if self._reading.is_free(at)}

    def _round(self, attempt: Callable[[Parameter], object]) -> None:
        for parameter in self._parameters:
            if parameter.name not in self._found:
                attempt(parameter)

    def _take(self, parameter: Parameter, value: object, *used: int, evident: bool = True) -> bool:
        """Keep a value if it fits."""
        if not parameter.accepts(value):
            return False
        self._found[parameter.name] = value
        self._reading.use(*used)
        self._evident += evident
        return True

    def _from_json(self, parameter: Parameter) -> None:
        """Take arguments that the user wrote as one JSON object."""
        if self._json is None:
            return
        begin, end = self._json_span
        used = [i for i, t in enumerate(self._reading.tokens) if begin <= t.start < end]
        if self._json.keys() <= set(self._order):
            if parameter.name in self._json:
                self._take(parameter, self._json[parameter.name], *used)
        elif parameter.kind is Kind.OBJECT:
            self._take(parameter, self._json, *used)

    def _from_name(self, parameter: Parameter) -> None:
        """Take a value whose parameter is named: ``limit=5``, ``tagged work``, ``3 steps``."""
        for mention in find_mentions(self._reading, parameter.name):
            if parameter.kind is Kind.LIST:
                taken = self._take_listed(parameter, mention)
            else:
                taken = any(
                    self._take(parameter, value, *used)
                    for value, used in self._named_values(parameter, mention)
                )
            if taken:
                return

    def _named_values(
        self, parameter: Parameter, mention: Mention
    ) -> Iterator[tuple[object, Iterable[int]]]:
        """Give what a named parameter may mean, with the tokens that say it."""
        tokens = self._reading.tokens
        name = range(mention.start, mention.value)
        index = mention.value
        token = tokens[index] if self._reading.is_free(index) else None
        if parameter.kind is Kind.FLAG:
            if token is not None and token.folded in _YES | _NO:
                yield token.folded in _YES, (*name, index)
            elif not mention.marked and mention.whole:
                before = {other.folded for other in tokens[max(0, mention.start - 2) : index]}
                yield not before & NEGATIONS, name
        if token is None:
            return
        if token.number is not None:
            yield token.number, (*name, index)
        for choice, used in self._choices_at(parameter, index):
            yield choice, (*name, *used)
        if parameter.kind is Kind.TEXT:
            end = self._end_of_text(parameter, mention)
            if end > index:
                yield self._reading.slice(index, end), (*name, *range(index, end))

    def _end_of_text(self, parameter: Parameter, mention: Mention) -> int:
        """Give one past the last token of a named text."""
        tokens, index = self._reading.tokens, mention.value
        token = tokens[index]
        if token.shape is Shape.QUOTATION or mention.mark == "=":
            return index + 1
        shapes = expected_shapes(parameter)
        if shapes:
            return index + 1 if token.shape in shapes else index
        if not mention.marked and not (parameter.required and mention.whole):
            return index if token.says_nothing or token.shape is Shape.MARK else index + 1
        end = index
        while self._reading.is_free(end) and not self._begins_named(end):
            end += 1
        while end > index and (tokens[end - 1].is_mark(",;") or tokens[end - 1].folded == "and"):
            end -= 1
        return end

    def _begins_named(self, index: int) -> bool:
        """Tell whether ``name:`` or ``name=`` begins here."""
        tokens = self._reading.tokens
        named = tokens[index].folded in self._names
        return named and index + 1 < len(tokens) and tokens[index + 1].is_mark(":=")

    def _take_listed(self, parameter: Parameter, mention: Mention) -> bool:
        """Take a named list: ``tags: a, b`` or ``tagged a and b``."""
        tokens, index = self._reading.tokens, mention.value
        values: list[Any] = []
        used = list(range(mention.start, mention.value))
        while self._reading.is_free(index) and len(values) < MAX_ITEMS:
            token = tokens[index]
            separates = token.is_mark(",&") or token.folded == "and"
            if not separates and (
                (token.says_nothing and not mention.marked)
                or token.shape is Shape.MARK
                or self._begins_named(index)
                or (values and index == mention.value)
            ):
                break
            if not separates:
                values.append(_item(parameter, token))
            used.append(index)
            index += 1
            if not separates and not self._goes_on(index):
                break
        return bool(values) and self._take(parameter, values, *used)

    def _goes_on(self, index: int) -> bool:
        """Tell whether a list continues: by a comma or "and" and then no other parameter."""
        if not self._reading.is_free(index) or not self._reading.is_free(index + 1):
            return False
        token = self._reading.tokens[index]
        return (token.is_mark(",&") or token.folded == "and") and not self._begins_named(index + 1)

    def _from_choices(self, parameter: Parameter) -> None:
        """Take one of the allowed values where the request says it."""
        if parameter.required and len(parameter.choices) == 1:
            self._take(parameter, parameter.choices[0], evident=False)
            return
        if parameter.required and parameter.kind is Kind.FLAG:
            found = self._reading.find(lambda token: token.folded in _YES | _NO, in_payload=True)
            if found is not None:
                self._take(parameter, found[1].folded in _YES, found[0])
            return
        reading = self._reading
        end = len(reading.tokens) if parameter.required else reading.payload
        for index in range(end):
            for choice, used in self._choices_at(parameter, index):
                if self._take(parameter, choice, *used):
                    return

    def _choices_at(
        self, parameter: Parameter, index: int
    ) -> Iterator[tuple[object, tuple[int, ...]]]:
        """Give the allowed values that the request says at a place; of letters, two at least."""
        for choice in parameter.choices[:MAX_CHOICES]:
            if isinstance(choice, str):
                said = _folded(choice)
                place = range(index, index + len(said))
                there = tuple(
                    self._reading.tokens[at].folded for at in place if self._reading.is_free(at)
                )
                if said and said == there and len(choice) > 1:
                    yield choice, tuple(place)
            elif self._reading.is_free(index):
                number = self._reading.tokens[index].number
                if number is not None and number == choice and not isinstance(choice, bool):
                    yield choice, (index,)

    def _from_shape(self, parameter: Parameter) -> None:
        """Take the first path, date, address … for a text that must be one."""
        shapes = expected_shapes(parameter) - {Shape.WORD}
        found = self._reading.find(
            lambda token: token.shape in shapes, in_payload=parameter.required
        )
        if found is not None:
            self._take(parameter, found[1].text, found[0])

    def _from_unit(self, parameter: Parameter) -> None:
        """Take the number before a word of the name: ``0.2 seconds`` for `seconds_per_step`."""
        if not is_numeric(parameter):
            return
        reading = self._reading
        for root in [stem(word) for word in split_name(parameter.name) if word not in STOP_WORDS]:
            for index in range(len(reading.tokens) - 1):
                number = reading.tokens[index].number
                unit = reading.tokens[index + 1]
                counts = number is not None and reading.is_free(index) and unit.root == root
                if counts and self._take(parameter, number, index, index + 1):
                    return
                if counts:
                    self._misfits.setdefault(index, parameter.name)

    def _from_number(self, parameter: Parameter) -> None:
        """Take the next number; for an optional parameter only one that counts something."""
        if not is_numeric(parameter):
            return
        reading = self._reading
        end = len(reading.tokens) if parameter.required else reading.payload
        for index in range(end):
            number = reading.tokens[index].number
            if number is None or not reading.is_free(index):
                continue
            if not parameter.required and reading.names_a_thing(index):
                continue
            if self._take(parameter, number, index):
                return
            self._misfits.setdefault(index, parameter.name)

    def _from_list(self, parameter: Parameter) -> None:
        """Take hashtags for tags; for a required list whatever is enumerated."""
        if parameter.kind is not Kind.LIST:
            return
        tokens = self._reading.tokens
        if {"tag", "tags", "label", "labels"} & set(split_name(parameter.name)):
            hashtags = [i for i, token in enumerate(tokens) if token.shape is Shape.HASHTAG]
            tags = [tokens[index].text for index in hashtags[:MAX_ITEMS]]
            if tags and self._take(parameter, tags, *hashtags):
                return
        if not parameter.required:
            return
        if parameter.item is not None and (is_numeric(parameter.item) or parameter.item.choices):
            places = [i for i in range(len(tokens)) if self._reading.is_free(i)]
            known = [(i, _item(parameter, tokens[i])) for i in places]
            fitting = [(i, value) for i, value in known if parameter.item.accepts(value)]
            values = [value for _, value in fitting[:MAX_ITEMS]]
            if values:
                self._take(parameter, values, *(i for i, _ in fitting))
        elif parameter.item is None or parameter.item.kind is Kind.TEXT:
            payload, rest = self._reading.payload_words(), self._reading.other_words()
            words = payload if payload.text else rest
            items = [item.strip(" \"'") for item in _SEPARATOR.split(words.text)]
            values = [item for item in items if item][:MAX_ITEMS]
            if values and self._take(parameter, values, *words.indices, evident=False):
                self._payload = True

    def _from_quotation(self, parameter: Parameter) -> None:
        """Take the next quotation for a text; one of several words is no path or the like."""
        shapes = expected_shapes(parameter)
        found = self._reading.find(
            lambda token: token.shape is Shape.QUOTATION and not (shapes and " " in token.text)
        )
        if found is not None and _is_open_text(parameter):
            taken = self._take(parameter, found[1].text, found[0], evident=False)
            self._payload |= taken and parameter.required

    def _from_words(self, parameter: Parameter) -> None:
        """Take what stands after the colon, or what is left, for a required free text."""
        if not parameter.required or not _is_open_text(parameter) or expected_shapes(parameter):
            return
        payload, rest = self._reading.payload_words(), self._reading.other_words()
        if payload.text:
            self._payload |= self._take(parameter, payload.text, *payload.indices, evident=False)
        elif rest.text:
            self._guessed += self._take(parameter, rest.text, *rest.indices, evident=False)

    def _from_single_word(self, parameter: Parameter) -> None:
        """Take a lone word that is left for a required text that is no free text."""
        if not parameter.required or not expected_shapes(parameter):
            return
        for words in (self._reading.payload_words(), self._reading.other_words()):
            alone = len(words.text.split()) == 1
            if alone and self._take(parameter, words.text, *words.indices, evident=False):
                return


def _is_open_text(parameter: Parameter) -> bool:
    return parameter.kind is Kind.TEXT and not parameter.choices


def _item(parameter: Parameter, token: Token) -> object:
    """Read one item of a list."""
    if parameter.item is not None and is_numeric(parameter.item):
        return token.number
    choices = parameter.item.choices if parameter.item is not None else ()
    return next((one for one in choices if str(one).casefold() == token.folded), token.text)


@lru_cache(maxsize=MAX_CHOICES)
def _folded(choice: str) -> tuple[str, ...]:
    """Give the tokens of an allowed value, for comparing."""
    return tuple(token.folded for token in tokenize(choice))
