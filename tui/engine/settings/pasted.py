"""Servers in what a user pasted: a command line, ``mcp add`` of any client, JSON, an address.

Nothing is run, and no shell reads it: what only a shell can do is refused, and ``$NAME`` stays.
"""

import re
import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit

from tui.engine.settings.entries import server_id
from tui.engine.settings.importers import TYPES, Machine, candidates_in
from tui.engine.settings.sources.document import (
    BadDocumentError,
    parse_document,
)
from tui.engine.settings.typed_entries import (
    EntryError,
    address_type,
    is_address,
    server_entry,
)
from tui.model.frozen import dataclass
from tui.text import sanitize

MAX_PASTED: Final = 64 * 1024
"""Characters that are read."""

WANTED: Final = "A command, an mcp add line, a JSON block or an address can be read."

_SERVERS: Final = ("mcpServers", "servers", "context_servers", "mcp_servers")
_TARGETS: Final = ("command", "url", "httpUrl", "serverUrl")
_CLIENTS: Final = frozenset({"claude", "gemini", "codex", "gemdeck"})
_SHORT: Final = {"-e": "env", "-H": "header", "-s": "scope", "-t": "transport"}
_OPTIONS: Final = frozenset(
    {"env", "header", "scope", "transport", "url", "timeout", "description", "bearer_token_env_var"}
    | {"include_tools", "exclude_tools"}
)
_SWITCHES: Final = frozenset({"--trust", "--no-check", "--yes", "-y"})
_RUNNERS: Final = frozenset(
    {"npx", "bunx", "uvx", "pipx", "uv", "docker", "podman", "python", "python3", "node", "deno"}
    | {"run", "tool"}
)
_EMPTY: Final = frozenset({"mcp", "server", "modelcontextprotocol", "py", "index", "dist", "src"})
"""Parts of the name of a package or file that tell no server from another."""

_PROMPT: Final = re.compile(r"(?m)^[ \t]*[$%>][ \t]+|\\\n|^```.*\n?")
"""What stands before a command, line ends that do not count, and Markdown's fences."""

_PIECE: Final = re.compile(
    r"""\\. | '[^']*' | "(?P<double>(?:\\.|[^"\\])*)"
    | (?P<sign>`|\$\(|&&|\|\||[|&;<>()\n]|(?<!\S)\#[^\n]*) | .""",
    re.VERBOSE | re.DOTALL,
)
_JSON: Final = re.compile(r'\{|"[^"]*"\s*:')
_INNER: Final = re.compile(r"(?<!\\)(?:`|\$\()")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_HOME: Final = re.compile(r"~(?=/|\Z)")


@dataclass(frozen=True, slots=True)
class PastedServer:
    """A server that was understood.

    Attributes:
        name: Its name, which may be derived from what it runs.
        entry: Its entry.
        scope: Whose settings it is for: ``user`` or ``project``.
        notes: What does not come along, and what it needs.
    """

    name: str
    entry: Mapping[str, Any] = field(repr=False)
    scope: str = "user"
    notes: tuple[str, ...] = ()


def understand(text: str, machine: Machine) -> tuple[PastedServer, ...]:
    """Read the servers in a pasted text; at least one.

    Args:
        text: What was pasted or typed.
        machine: What the references of other clients mean.

    Raises:
        EntryError: If it cannot be understood; it says why, and what could be.
    """
    text = text.replace("\r\n", "\n").strip()
    if len(text) > MAX_PASTED:
        raise EntryError(f"That is too long: {MAX_PASTED:,} characters can be read.")
    if sanitize(text) != text:
        raise EntryError("That has characters which cannot be seen. Type it instead.")
    text = _PROMPT.sub("", text).strip()
    if not text:
        raise EntryError(WANTED)
    if _JSON.match(text):
        return _from_json(text if text[0] == "{" else f"{{{text}}}", machine)
    if is_address(text) and len(text.split()) == 1:
        return (_typed("", (text,), {}, {}),)
    env, words = _command(text)
    client, *verb = (PurePath(words[0]).name, *words[1:3])
    if client not in _CLIENTS or verb[:1] != ["mcp"]:
        return (_typed("", words, env, {}),)
    if verb[1:] != ["add"]:
        raise EntryError(f"Of {client} mcp only add names a server. {WANTED}")
    return (_from_add(words[3:], env),)


def _from_json(text: str, machine: Machine) -> tuple[PastedServer, ...]:
    """Read the servers of a settings file, or of a part of one."""
    try:
        document = parse_document(text)
    except BadDocumentError as error:
        raise EntryError(f"line {error.line}: {error}") from error
    content = document.content
    every = [content.get(key) for key in _SERVERS]
    listed = next((one for one in every if isinstance(one, dict)), content)
    if any(isinstance(content.get(key), str) for key in _TARGETS):
        listed = {str(content.get("name") or _name_in(content)): content}
    found = candidates_in(document, listed, machine, "", "")
    if not found:
        raise EntryError(f"No server stands in that. {WANTED}")
    if wrong := next((one for one in found if one.problem), None):
        raise EntryError(f"{wrong.name}: {wrong.problem}.")
    return tuple(PastedServer(one.name, one.entry, "user", one.warnings) for one in found)


def _command(text: str) -> tuple[dict[str, str], list[str]]:
    """Split a line as a shell would, the variables in front of the command apart."""
    env, words = dict[str, str](), list[str]()
    for piece in _pieces(text):
        try:
            found = [_HOME.sub("${HOME}", word) for word in shlex.split(piece)]
        except ValueError as error:
            raise EntryError("A quote is not closed in that.") from error
        if found and words:
            raise EntryError("There are several commands in that: take the one of the server.")
        if found[:1] in (["export"], ["env"]):
            del found[0]
        at = next((at for at, one in enumerate(found) if not _ASSIGNED.fullmatch(one)), len(found))
        for name, _, value in (word.partition("=") for word in found[:at]):
            env[name] = _HOME.sub("${HOME}", value)
        words = words or found[at:]
    if not words:
        raise EntryError(f"That sets variables and names no command. {WANTED}")
    return env, words


def _pieces(text: str) -> Iterator[str]:
    """Split a text where a shell would begin another command; refuse what else a shell does."""
    start = 0
    for found in _PIECE.finditer(text):
        sign = found["sign"] or ("$(" if _INNER.search(found["double"] or "") else "")
        if sign in {";", "&&", "\n"} or sign.startswith("#"):
            yield text[start : found.start()]
            start = found.end()
        elif sign:
            more = " For <…> write what it stands for." if sign in "<>" else ""
            words = f"“{sign}” is for a shell, and none is run: take the server's command alone."
            raise EntryError(words + more)
    yield text[start:]


def _from_add(rest: Sequence[str], env: dict[str, str]) -> PastedServer:
    """Read what stands behind ``mcp add``: options, a name, and a command or an address."""
    given: dict[str, list[str]] = {}
    own, words, notes = list[str](), deque(rest), list[str]()
    while words:
        word = words.popleft()
        option, sign, value = word.partition("=")
        if word == "--":
            own += words
            break
        if not word.startswith("-"):
            if own and _ASSIGNED.fullmatch(word) and "env" in given:  # -e takes several
                given["env"].append(word)
                continue
            own.append(word)
            if len(own) > 1 and not is_address(word):
                own += words if "--" not in words else [one for one in words if one != "--"]
                break
        elif (key := _SHORT.get(option, option[2:].replace("-", "_"))) in _OPTIONS and (
            sign or words
        ):
            given.setdefault(key, []).append(value if sign else words.popleft())
        elif word in _SWITCHES:
            notes += ["--trust is left out: gemdeck asks about its tools."] * (word == "--trust")
        else:
            raise EntryError(f"{option} of mcp add means nothing to gemdeck. Leave it out.")
    name, *target = [*own[:1], *given.pop("url", ()), *own[1:]] or [""]
    if not name or not target:
        raise EntryError("mcp add names a server and its command or address: one is missing.")
    return _typed(name, target, env, given, notes)


def _typed(
    name: str,
    words: Sequence[str],
    env: dict[str, str],
    given: Mapping[str, Sequence[str]],
    notes: Sequence[str] = (),
) -> PastedServer:
    """Write the server of a command line or an address, with the options of ``mcp add``."""
    last: dict[str, Any] = {key: values[-1] for key, values in given.items()}
    kind = last.pop("transport", "") or (address_type(words[0]) if is_address(words[0]) else None)
    scope, bearer = last.pop("scope", ""), last.pop("bearer_token_env_var", "")
    last |= {
        "env": [*(f"{name}={value}" for name, value in env.items()), *given.get("env", ())],
        "header": [
            *given.get("header", ()),
            *([f"Authorization: Bearer ${bearer}"] * bool(bearer)),
        ],
    }
    if str(last.get("timeout")).isdecimal():
        last["timeout"] = int(last["timeout"])
    entry = server_entry(words[0], words[1:], transport=TYPES.get(kind or "", kind), **last)
    scope = scope if scope == "project" else "user"
    return PastedServer(server_id(name) or _name_in(entry), entry, scope, tuple(notes))


def _name_in(entry: Mapping[str, Any]) -> str:
    """Derive a name from the package, the file or the host."""
    if address := next((entry[key] for key in _TARGETS[1:] if entry.get(key)), ""):
        host = (urlsplit(str(address)).hostname or "").split(".")
        words = host[-2:-1] or host
    else:
        args = entry.get("args")
        every = [entry.get("command"), *(args if isinstance(args, list) else ())]
        plain = [word for word in map(str, every) if not word.startswith("-") and "=" not in word]
        telling = [word for word in plain if re.search("mcp|server", word, re.IGNORECASE)]
        others = [word for word in plain if PurePath(word).name not in _RUNNERS]
        words = [*telling, *others, *plain, ""]
    for piece in reversed(re.sub(r"(?<=.)@.*|\.\w{1,4}$|==.*", "", words[0]).split("/")):
        parts = re.findall(r"[A-Za-z0-9]+", piece)
        if told := "-".join(one for one in parts if one.lower() not in _EMPTY):
            return server_id(told)
    return "server"
