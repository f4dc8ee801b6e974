"""Servers in what a user pasted: a command line, ``mcp add`` of any client, JSON, an address.

Nothing is run, and no shell reads it: what only a shell can do is refused, and ``$NAME`` stays.
"""

import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
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
from tui.model.frozen import Frozen
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
_AROUND: Final = re.compile(r"(?i)^(mcp[-_])?(server[-_])?|([-_]mcp)?([-_]server)?([-_]mcp)?$")
"""What the name of a package has around that of its server."""

_PROMPT: Final = re.compile(r"(?m)^[ \t]*[$%>][ \t]+|\\\n|^```.*\n?")
"""What stands before a command, line ends that do not count, and Markdown's fences."""

_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=[ \t]))#(?:[ \t].*)?$")
_NEXT: Final = re.compile(r"[;\n]+|&&\n*")
"""Signs behind which another command begins."""

_SHELL: Final = re.compile(r"\A[|&;<>()\n]+\Z|`|\$\(")
"""What only a shell can do: alone it counts as its sign even if it was quoted."""

_JSON: Final = re.compile(r'\{|"[^"]*"\s*:')
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_HOME: Final = re.compile(r"\A([A-Za-z_]\w*=)?~(?=/|\Z)")


class PastedServer(Frozen):
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
        return (_typed((text,)),)
    env, words = _command(text)
    client, *verb = (PurePath(words[0]).name, *words[1:3])
    if client not in _CLIENTS or verb[:1] != ["mcp"]:
        return (_typed(words, env=env),)
    if verb[1:] != ["add"]:
        raise EntryError(f"Of {client} mcp only add names a server. {WANTED}")
    return (_from_add(words[3:], env),)


def _from_json(text: str, machine: Machine) -> tuple[PastedServer, ...]:
    """Read the servers of a settings file, or of a part of one."""
    try:
        content = parse_document(text).content
    except BadDocumentError as error:
        raise EntryError(f"line {error.line}: {error}") from error
    every = [content.get(key) for key in _SERVERS]
    listed = next((one for one in every if isinstance(one, dict)), content)
    if any(isinstance(content.get(key), str) for key in _TARGETS):
        listed = {str(content.get("name") or _name_in(content)): content}
    found = candidates_in(listed, machine, "", "")
    if not found:
        raise EntryError(f"No server stands in that. {WANTED}")
    if wrong := next((one for one in found if one.problem), None):
        raise EntryError(f"{wrong.name}: {wrong.problem}.")
    return tuple(PastedServer(one.name, one.entry, "user", one.warnings) for one in found)


def _command(text: str) -> tuple[list[str], list[str]]:
    """Split a line as a shell would, the variables in front of the command apart."""
    lexer = shlex.shlex(_COMMENT.sub("", text), posix=True, punctuation_chars="|&;<>()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    try:
        found = [_HOME.sub(r"\1${HOME}", word) for word in lexer]
    except ValueError as error:
        raise EntryError("A quote is not closed in that.") from error
    env, words, is_begun = list[str](), list[str](), False
    for word in found:
        if _NEXT.fullmatch(word):
            is_begun = False
        elif shell := _SHELL.search(word):
            more = " For <…> write what it stands for." if word in "<>" else ""
            sign = f"“{shell[0]}” is for a shell, and none is run"
            raise EntryError(f"{sign}: take the server's command alone.{more}")
        elif not is_begun and _ASSIGNED.fullmatch(word):
            env.append(word)
        elif is_begun or word not in {"export", "env"}:
            if words and not is_begun:
                raise EntryError("There are several commands in that: take the one of the server.")
            is_begun = True
            words.append(word)
    if not words:
        raise EntryError(f"That sets variables and names no command. {WANTED}")
    return env, words


def _from_add(rest: Sequence[str], env: list[str]) -> PastedServer:
    """Read what stands behind ``mcp add``: options, a name, and a command or an address."""
    lists, last = {"env": env, "header": list[str]()}, dict[str, Any]()
    own, words, notes, takes_more = list[str](), deque(rest), list[str](), False
    while words:
        word = words.popleft()
        option, sign, value = word.partition("=")
        key = _SHORT.get(option, option[2:].replace("-", "_"))
        if word == "--":
            own += words
            break
        if not word.startswith("-"):
            if takes_more and own and _ASSIGNED.fullmatch(word):  # Claude's -e takes several
                env.append(word)
                continue
            own.append(word)
            if len(own) > 1 and not is_address(word):
                own += words if "--" not in words else [one for one in words if one != "--"]
                break
        elif key in _OPTIONS and (sign or words):
            value = value if sign else words.popleft()
            takes_more |= key == "env"
            if key == "bearer_token_env_var":
                key, value = "header", f"Authorization: Bearer ${value}"
            if key in lists:
                lists[key].append(value)
            else:
                last[key] = int(value) if key == "timeout" and value.isdecimal() else value
        elif word in _SWITCHES:
            notes += ["--trust is left out: gemdeck asks about its tools."] * (word == "--trust")
        else:
            raise EntryError(f"{option} of mcp add means nothing to gemdeck. Leave it out.")
    scope = "project" if last.pop("scope", "") == "project" else "user"
    address = last.pop("url", "")
    name, *target = [*own[:1], *filter(None, [address]), *own[1:]] or [""]
    if not name or not target:
        raise EntryError("mcp add names a server and its command or address: one is missing.")
    return replace(_typed(target, name, **lists, **last), scope=scope, notes=tuple(notes))


def _typed(target: Sequence[str], name: str = "", **given: Any) -> PastedServer:  # noqa: ANN401
    """Write the server of a command line or an address, with the options of ``mcp add``."""
    kind = given.pop("transport", address_type(target[0]) if is_address(target[0]) else "stdio")
    entry = server_entry(target[0], target[1:], transport=TYPES.get(kind, kind), **given)
    return PastedServer(server_id(name) or _name_in(entry), entry)


def _name_in(entry: Mapping[str, Any]) -> str:
    """Derive a name from the package, the file or the host."""
    if address := next((entry[key] for key in _TARGETS[1:] if entry.get(key)), ""):
        word = (urlsplit(str(address)).hostname or "").split(".")[-2:][0]
    else:
        args = entry.get("args")
        every = [entry.get("command"), *(args if isinstance(args, list) else ())]
        plain = [word for word in map(str, every) if not word.startswith("-") and "=" not in word]
        telling = [word for word in plain if re.search("mcp|server", word, re.IGNORECASE)]
        others = [word for word in plain if PurePath(word).name not in _RUNNERS]
        word = [*telling, *others, *plain, ""][0]
    last = re.sub(r"(?<=.)@.*|\.\w{1,4}$|==.*", "", word).rpartition("/")[2]
    return server_id("-".join(re.findall(r"\w+", _AROUND.sub("", last) or last))) or "server"
