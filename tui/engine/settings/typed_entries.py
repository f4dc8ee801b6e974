"""Entries of servers made of what a user typed, and entries written so that one can edit them."""

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.definitions.definition_diff import compared_lines
from tui.engine.definitions.expansion import secret_names
from tui.engine.definitions.fingerprint import digest
from tui.engine.logs.redaction import MASK, MAX_SHOWN, is_secret_variable, masked_words
from tui.engine.settings.entries import MAX_NAME, server_id
from tui.engine.settings.sources.source import validation_problems
from tui.model.bounded_json import as_list, as_object
from tui.model.servers import RefusedAccess
from tui.model.settings import ServerSettings
from tui.model.trust import DifferenceLine
from tui.text import sanitize

_ADDRESSES: Final = ("httpUrl", "url")
OPTIONS: Final = ("start", "cwd", "timeout", "excludeTools")
"""The keys of an entry that have a field for what is seldom set."""

SANDBOX: Final = "sandbox"
_OFF: Final = (False, "false", "none")
_PATHS: Final = ("read", "write")
"""The keys of a sandbox with a list of paths."""

NETWORK: Final = "network"
"""The key of a sandbox for the network, and the text for one that has it."""

_SHOWN: Final = frozenset(
    {"command", "args", "env", "headers", "type", SANDBOX, *_ADDRESSES, *OPTIONS}
)
"""The keys of an entry that have a field."""

_REFERENCE: Final = re.compile(
    r"(?:--?[\w-]+=|[A-Za-z]+ )?\$(?:[A-Za-z_]\w*|\{(?:keyring:[\w.-]+|\w+)\})"
)
"""A variable or the name of a secret, alone, or behind a flag or ``Bearer``: it hides nothing."""

_NO_COMMAND: Final = re.compile(r"\{|\w+=|[\w.-]+:\d")
"""JSON, a variable, or an address without its scheme."""

_QUOTED: Final = re.compile(r"[\s'\"\\]")


class EntryError(ValueError):
    """What was typed is no entry of a server; the text says why."""


def is_address(target: str) -> bool:
    """Tell an address from a command."""
    return target.startswith(("http://", "https://"))


def server_entry(
    target: str,
    arguments: Sequence[str],
    *,
    transport: str | None = None,
    env: Sequence[str] = (),
    header: Sequence[str] = (),
    include_tools: str | None = None,
    exclude_tools: str | None = None,
    trust: bool = False,
    **others: object,
) -> dict[str, Any]:
    """Write the entry that the options of ``mcp add`` describe.

    Args:
        target: Its command or its address.
        arguments: Those of the command.
        transport: ``stdio``, ``http`` or ``sse``; None for that of the target.
        env: The variables of the command, ``NAME=value``.
        header: The headers for the address, ``Name: value``.
        include_tools: The names of the only tools, with commas between them.
        exclude_tools: The names of those that are left out, likewise.
        trust: Whether its tools run unasked.
        others: Further keys of the entry; what is empty is left out.

    Raises:
        EntryError: If they contradict each other or a value is wrong.
    """
    kind = transport or ("http" if is_address(target) else "stdio")
    if is_address(target) == (kind == "stdio"):
        raise EntryError(f"{kind} needs {'a command' if is_address(target) else 'an address'}.")
    if _NO_COMMAND.match(target):
        words = "a variable needs -e, and an address https:// or http://. Paste JSON on the screen"
        raise EntryError(f"This is not a command: {words} (+ in the servers pane).")
    if is_address(target) and (arguments or env):
        raise EntryError("Arguments and environment variables need a command, not an address.")
    if header and not is_address(target):
        raise EntryError("Headers need an address, not a command.")
    reached = (
        {"url": target, "type": kind, "headers": named_values(header, ":", "A header")}
        if is_address(target)
        else {"command": target, "args": [*arguments], "env": named_values(env, "=", "A variable")}
    )
    tools = {"includeTools": _listed(include_tools), "excludeTools": _listed(exclude_tools)}
    given = {**reached, **others, "trust": trust or None, **tools}
    entry = {key: value for key, value in given.items() if value not in (None, [], {})}
    try:
        ServerSettings.model_validate(entry)
    except ValidationError as error:
        keys, words = validation_problems(error)[0]
        raise EntryError(f"{'.'.join(map(str, keys))}: {words}".removeprefix(": ")) from error
    return entry


def check_entry(name: str, scope: str, entry: Mapping[str, object]) -> None:
    """Check what only the settings of a scope refuse.

    Raises:
        EntryError: If the name or the entry cannot stand there.
    """
    if not name or server_id(name) != name:
        raise EntryError(f"A name has 1 to {MAX_NAME} characters and no double spaces.")
    if scope == "project" and entry.get("trust"):
        raise EntryError("A project's settings cannot trust a server.")
    if scope == "project" and secret_names(entry):
        raise EntryError("A project's settings cannot refer to your secrets, ${keyring:…}.")


def named_values(words: Sequence[str], sign: str, what: str) -> dict[str, str]:
    """Read values that were typed behind their names.

    Raises:
        EntryError: If the sign or a name is missing; it says what was typed wrongly.
    """
    parts = [word.partition(sign) for word in words]
    if any(not found or not name for name, found, _ in parts):
        raise EntryError(f"{what} must have the form KEY{sign}VALUE.")
    return {name.strip(): value.lstrip() if sign == ":" else value for name, _, value in parts}


def entry_difference(before: object, after: object) -> tuple[DifferenceLine, ...]:
    """Compare two entries; a mark behind what is masked tells one secret from another."""
    salt = os.urandom(16)
    old, new = (_entry_lines(entry, salt) for entry in (before, after))
    lines = compared_lines(old, new)
    return tuple(DifferenceLine(line.sign, sanitize(line.text)) for line in lines)


def _entry_lines(entry: object, salt: bytes) -> list[str]:
    def masked(value: object, key: str = "") -> object:
        match value:
            case Mapping():
                return {name: masked(item, str(name)) for name, item in value.items()}
            case list():
                words = [str(item) for item in value]
                return [*map(marked, words, map(_masked, words, ("", *words)))]
            case str():
                return marked(value, MASK if is_secret_variable(key, value) else _masked(value))
        return value

    def marked(value: str, shown: str) -> str:
        return value if shown == value else f"{shown} #{digest(value, salt)[:8]}"

    return json.dumps(masked(entry), indent=2, ensure_ascii=False).splitlines() if entry else []


def with_access(entry: Mapping[str, Any], refused: RefusedAccess) -> dict[str, Any]:
    """Return an entry whose sandbox allows what was refused; without one, it gets one."""
    box = as_object(entry.get(SANDBOX))
    value = [*as_list(box.get(refused.key)), refused.path] if refused.path else True
    return {**entry, SANDBOX: {**box, refused.key: value}}


class EntryFields:
    """An entry as texts that can be edited, with a mask in place of each secret.

    Args:
        entry: The entry; keys without a field stay.

    Attributes:
        target: The command or the address.
        words: The arguments.
        variables: The variables, ``NAME=value``.
        fields: The headers, ``Name: value``.
        args: The arguments, as words of a shell.
        env: The variables, likewise.
        headers: The headers, likewise.
        options: The texts of `OPTIONS`, of a timeout in seconds; empty where the key is not set.
        sandbox: What is set of the sandbox (``off``, ``on``, ``network`` or nothing), and the
            paths that it reads and writes, as words of a shell.
        others: The keys that have no field.
    """

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self._entry = entry
        self._hidden = dict[str, str]()
        self._key = next((key for key in _ADDRESSES if entry.get(key)), "")
        target = str(entry.get(self._key or "command") or "")
        self.target = self._hide(target, _masked(target)) if self._key else target
        words = [str(word) for word in as_list(entry.get("args"))]
        self.words = [*map(self._word, words, ("", *words))]
        self.variables, self.fields = self._named("env", "="), self._named("headers", ": ")
        self.args, self.env, self.headers = map(joined, (self.words, self.variables, self.fields))
        self.options = {key: _option_text(key, entry.get(key)) for key in OPTIONS}
        box = entry.get(SANDBOX)
        self._box = as_object(box)
        has_network = self._box.get(NETWORK) in (True, "true")
        has = NETWORK if has_network else "off" if box in _OFF else "on"
        paths = {key: joined(map(str, as_list(self._box.get(key)))) for key in _PATHS}
        self.sandbox = {SANDBOX: "" if box is None else has, **paths}
        self.others = {key: value for key, value in entry.items() if key not in _SHOWN}

    def entry(
        self, target: str, args: str, env: str, headers: str, **options: str
    ) -> dict[str, Any]:
        """Write the entry that edited texts describe.

        Raises:
            EntryError: If they describe none.
        """
        target = self._hidden.get(target.strip(), target.strip())
        env_words, header = self._words(env), self._words(headers)
        box = {key: options.pop(key, text).strip() for key, text in self.sandbox.items()}
        given = {key: text.strip() for key, text in (self.options | options).items()}
        kept = {key: self._entry.get(key) for key in given if given[key] == self.options[key]}
        more: dict[str, Any] = {"env": env_words, "header": header}
        if "timeout" not in kept:
            more["timeout"] = _milliseconds(given["timeout"])
        if "excludeTools" not in kept:
            more["exclude_tools"] = given["excludeTools"]
        more |= {key: given[key] or None for key in ("start", "cwd") if key not in kept}
        if box == self.sandbox:
            kept[SANDBOX] = self._entry.get(SANDBOX)
        else:
            more[SANDBOX] = self._sandbox(**box)
        made = server_entry(target, self._words(args), **more) | kept | self.others
        if self._key and is_address(target):  # it goes on as it was, with SSE where that was tried
            kept = {key: self._entry[key] for key in ("type",) if key in self._entry}
            made = {self._key: made.pop("url"), **made, "type": None} | kept
        elif is_address(target):
            made["type"] = address_type(target)
        return {key: value for key, value in made.items() if value is not None}

    def _sandbox(self, sandbox: str, **paths: str) -> dict[str, Any] | bool | None:
        lists = {key: words for key in _PATHS if (words := self._words(paths[key]))}
        if sandbox in {"", "off"}:
            if lists:
                raise EntryError("Paths are for a server in a sandbox: turn it on.")
            return False if sandbox else None
        kept = {key: value for key, value in self._box.items() if key not in {*_PATHS, NETWORK}}
        network = {NETWORK: True} if sandbox == NETWORK else {}
        return kept | lists | network or True

    def _words(self, text: str) -> list[str]:
        try:
            return [self._hidden.get(word, word) for word in shlex.split(text)]
        except ValueError as error:
            raise EntryError(f"A quote is not closed: {text[:40]}") from error

    def _named(self, key: str, sign: str) -> list[str]:
        words = list[str]()
        for name, value in as_object(self._entry.get(key)).items():
            if isinstance(value, dict | list):  # as a text, a key in it could be a reference
                continue
            is_secret = value and is_secret_variable(name, str(value))
            shown = MASK if is_secret else _masked(str(value))
            shown = str(value) if _REFERENCE.fullmatch(str(value)) else shown
            start = f"{name}{sign}" if value else f"{name}{sign.strip()}"
            words.append(self._hide(f"{start}{value}", f"{start}{shown}"))
        return words

    def _word(self, word: str, before: str) -> str:
        return word if _REFERENCE.fullmatch(word) else self._hide(word, _masked(word, before))

    def _hide(self, word: str, shown: str) -> str:
        """Return what stands for a word: each secret has a mask of its own."""
        if shown != word:
            while self._hidden.get(shown, word) != word:
                shown += "*"
            self._hidden[shown] = word
        return shown


def _masked(word: str, before: str = "") -> str:
    """Mask secrets in a word of a command line, and show all the rest, however long it is."""
    pieces = [word[at : at + MAX_SHOWN] for at in range(0, len(word), MAX_SHOWN)]
    return "".join(masked_words((before[:99], piece))[-1] for piece in pieces)


def _option_text(key: str, value: object) -> str:
    match value:
        case None:
            return ""
        case list():
            return ", ".join(map(str, value))
        case int() | float() if key == "timeout":
            return f"{value / 1000:g}"
    return str(value)


def _milliseconds(text: str) -> int | None:
    try:
        return round(float(text) * 1000) if text else None
    except (ValueError, OverflowError) as error:
        raise EntryError("timeout: must be a number of seconds") from error


def address_type(address: str) -> str:
    """Return the transport that an address suggests."""
    return "sse" if address.partition("?")[0].rstrip("/").endswith("/sse") else "http"


def joined(words: Iterable[str]) -> str:
    """Join words so that `shlex.split` gives them again; only those are quoted that need it."""
    return " ".join(shlex.quote(one) if not one or _QUOTED.search(one) else one for one in words)


def _listed(words: str | None) -> list[str]:
    return [word.strip() for word in (words or "").split(",") if word.strip()]
