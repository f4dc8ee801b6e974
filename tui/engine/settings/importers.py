"""Servers of other clients: in their files, and in what a user pasted.

Pasted are a command line, ``mcp add`` of any client, JSON, an address. Nothing is run, and no shell
reads it: what only a shell can do is refused, and ``$NAME`` stays.
"""

import json
import re
import shlex
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from tui.engine.definitions.expansion import Expansion, references_in, secret_names
from tui.engine.files.atomic import read_text
from tui.engine.files.paths import shown_path
from tui.engine.settings.entries import RENAMED, is_gemdeck, known_part, salvaged, server_id
from tui.engine.settings.sources.document import (
    BadDocumentError,
    dotted,
    parse_document,
    read_toml,
    read_yaml,
)
from tui.engine.settings.sources.source import MAX_SERVERS, SHARED_FILE_NAME, validation_problems
from tui.engine.settings.typed_entries import EntryError, address_type, is_address, server_entry
from tui.model.bounded_json import as_list, as_object, as_texts, mapped
from tui.model.frozen import Frozen
from tui.model.settings_rules import STREAMABLE_HTTP
from tui.text import sanitize, sanitize_line

_KEPT: Final = frozenset(
    {"command", "args", "env", "cwd", "url", "httpUrl", "headers", "type", "timeout"}
    | {"sandbox", "description", "includeTools", "excludeTools", "disabled", "oauth"}
    | {"authProviderType", "targetAudience", "targetServiceAccount"}
)
_PERMISSIONS: Final = frozenset({"trust", "alwaysAllow", "autoApprove", "auto_approve"})
_SILENT: Final = frozenset({"source", "enabled", "settings", "gallery", "version", "id", "name"})

TYPES: Final = {"local": "stdio", "remote": "http", **dict.fromkeys(STREAMABLE_HTTP, "http")}
"""Other names of transports, and ours."""

_REFERENCE: Final = re.compile(r"\$\{(?P<kind>[A-Za-z]+)(?::(?P<name>[^}]*))?\}")
"""``${input:token}``, ``${env:NAME}``, ``${workspaceFolder}``."""

ASKED_FOR: Final = "Set the environment variable {}; the client prompts for it."
"""What is said of a variable that stands for an input of the client's."""

MAX_CLIENT_FILE: Final = 16 * 1024 * 1024
"""Largest file, in bytes: that of Claude Code also holds what it did."""

MAX_YAML: Final = 200_000
"""Most characters of YAML that are parsed."""

LEAST_TIMEOUT: Final = 1_000
"""Milliseconds; a smaller timeout in pasted text is in seconds, as those of Cline and Roo Code."""


class Client(Frozen):
    """A client whose servers can be taken over.

    Attributes:
        title: What it is called.
        user: The file in which it lists those of the user; see `Machine.places`.
        project: That of a folder, or an empty string.
        key: The key under which they stand there.
        also: Further files of either.
    """

    title: str
    user: str
    project: str = ""
    key: str = "mcpServers"
    also: tuple[str, ...] = ()


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-desktop": Client("Claude Desktop", "{settings}/Claude/claude_desktop_config.json"),
    "claude-code": Client("Claude Code", "{claude}/.claude.json", SHARED_FILE_NAME),
    "vscode": Client("VS Code", "{settings}/Code/User/mcp.json", ".vscode/mcp.json", "servers"),
    "cursor": Client("Cursor", "{home}/.cursor/mcp.json", ".cursor/mcp.json"),
    "windsurf": Client("Windsurf", "{home}/.codeium/windsurf/mcp_config.json"),
    "zed": Client("Zed", "{config}/zed/settings.json", ".zed/settings.json", "context_servers"),
    "codex": Client("Codex", "{codex}/config.toml", ".codex/config.toml", "mcp_servers"),
    "gemini-cli": Client("gemini-cli", "{home}/.gemini/settings.json", ".gemini/settings.json"),
    "opencode": Client(
        "opencode",
        "{config}/opencode/opencode.json",
        "opencode.json",
        "mcp",
        ("{config}/opencode/opencode.jsonc", "{folder}/opencode.jsonc"),
    ),
    "copilot": Client("Copilot CLI", "{home}/.copilot/mcp-config.json", ".github/mcp.json"),
    "goose": Client("goose", "{config}/goose/config.yaml", key="extensions"),
    "agents": Client(".agents/mcp.json", "{home}/.agents/mcp.json", ".agents/mcp.json"),
}


class Machine(Frozen):
    """Where files are looked for.

    Attributes:
        home: The user's home.
        folder: The opened folder.
        environ: Variables that move files.
        platform: As `sys.platform`.
    """

    home: Path
    folder: Path
    environ: Mapping[str, str]
    platform: str = sys.platform

    def places(self, client: str) -> Iterator[Path]:
        """Return the files in which a client may list servers: the user's, then the folder's."""
        config = Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")
        is_mac = self.platform == "darwin"
        roots = {
            "home": self.home,
            "folder": self.folder,
            "config": config,
            "settings": self.home / "Library" / "Application Support" if is_mac else config,
            "claude": self.environ.get("CLAUDE_CONFIG_DIR") or self.home,
            "codex": self.environ.get("CODEX_HOME") or self.home / ".codex",
        }
        yield Path(CLIENTS[client].user.format_map(roots))
        if project := CLIENTS[client].project:
            yield self.folder / project
        yield from (Path(one.format_map(roots)) for one in CLIENTS[client].also)


LITERAL: Final = frozenset({"claude-desktop", "windsurf", "zed", "codex", "opencode"})
"""Clients that do not fill in ``$NAME``."""


@dataclass(slots=True)
class Translation:
    """One entry on its way.

    Attributes:
        client: Whose it is; empty where nobody knows.
        machine: What its references mean.
        warnings: What the user should know.
    """

    client: str
    machine: Machine
    warnings: list[str] = field(default_factory=list)

    def entry(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return our entry; empty if it does not say how to reach the server."""
        raw = {**raw, **as_object(raw.get("config"))} if self.client == "goose" else raw
        raw = {RENAMED.get(key, key): value for key, value in raw.items()}
        if self.client in LITERAL and (names := references_in(dict(raw))):
            self._warn(f"{self.client} leaves ${', $'.join(names)} as it is; gemdeck expands it.")
        if self.client == "codex":
            raw = _from_codex(raw)
        if self.client == "goose":
            raw = _from_goose(raw)
        if self.client == "copilot":
            raw["includeTools"] = None if (tools := raw.pop("tools", None)) == ["*"] else tools
        command = raw.get("command")
        if self.client in {"opencode", ""} and isinstance(command, list) and command:
            raw = {**raw, "command": command[0], "args": command[1:]}
        if raw.get("oauth") is False:
            raw = {**raw, "oauth": {"enabled": False}}
        if self.client in {"zed", ""} and isinstance(command := raw.get("command"), dict):
            raw = {**raw, **command}
            raw["command"] = raw.pop("path", None)
        if raw.get("enabled") is False:
            raw = {**raw, "disabled": True}
        if isinstance(kind := raw.get("type"), str):
            raw = {**raw, "type": TYPES.get(kind, kind)}
        if not any(raw.get(key) for key in ("command", "url", "httpUrl")):
            return {}
        self._name_left_out(raw)
        kept = {key: value for key, value in raw.items() if key in _KEPT and value is not None}
        if isinstance(kept.get("command"), str) and kept.get("type") == "stdio":
            del kept["type"]
        read = None if self.client else _milliseconds(kept.get("timeout"))
        if read and kept["timeout"] < LEAST_TIMEOUT:
            self._warn(f"timeout: {kept['timeout']} is imported as seconds, not milliseconds.")
            kept["timeout"] = read
        return dict(mapped(kept, str, self._filled))

    def _name_left_out(self, raw: Mapping[str, Any]) -> None:
        permissions = sorted(_PERMISSIONS & raw.keys())
        if any(raw[key] for key in permissions):
            self._warn(f"Not imported: {', '.join(permissions)}. gemdeck asks about its tools.")
        if raw.get("envFile"):
            self._warn("Not imported: envFile. Put its variables into env.")
        known = _KEPT | _PERMISSIONS | _SILENT | {"envFile"}
        if left := ", ".join(sorted(map(str, raw.keys() - known))):
            self._warn(f"Not imported: {left}.")

    def _filled(self, value: str) -> str:
        """Write the client's references in a text as ours."""
        if self.client in {"opencode", ""}:
            value = re.sub(r"(?<!\$)\{(?=(?:env|file):)", "${", value)
        return _REFERENCE.sub(self._reference, value)

    def _reference(self, found: re.Match[str]) -> str:
        kind, name = found["kind"], found["name"]
        if kind == "input" and name:
            variable = re.sub(r"\W", "_", name).upper()
            self._warn(ASKED_FOR.format(variable))
            return f"${{{variable}}}"
        if kind == "env" and name:
            return f"${{{name}}}"
        folder = self.machine.folder
        fixed = {
            "workspaceFolder": str(folder),
            "workspaceRoot": str(folder),
            "workspaceFolderBasename": folder.name,
            "userHome": str(self.machine.home),
            "pathSeparator": "/",
        }
        if kind in fixed and name is None:
            return fixed[kind]
        # ${NAME:-default} and ${keyring:NAME} are ours as well
        if name is not None and not name.startswith("-") and kind != "keyring":
            self._warn(f"gemdeck does not know {found.group()} and leaves it as it is.")
        return found.group()

    def _warn(self, text: str) -> None:
        if (line := sanitize_line(text, 500)) not in self.warnings:
            self.warnings.append(line)


def _from_codex(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Name the keys of Codex as we do; seconds become milliseconds."""
    entry = dict(raw)
    headers: dict[str, Any] = dict(as_object(entry.pop("http_headers", None)))
    for name, variable in as_object(entry.pop("env_http_headers", None)).items():
        headers[name] = f"${{{variable}}}"
    if variable := entry.pop("bearer_token_env_var", None):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    passed, seconds = entry.pop("env_vars", None), entry.pop("tool_timeout_sec", None)
    entry.pop("startup_timeout_sec", None)
    entry |= {
        "headers": headers or None,
        "env": _env(entry, passed),
        "timeout": _milliseconds(seconds),
        "includeTools": entry.pop("enabled_tools", None),
        "excludeTools": entry.pop("disabled_tools", None),
        "type": "http" if entry.get("url") else None,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _from_goose(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Name the keys of goose as we do; what it brings itself has no command and no address."""
    entry = dict(raw)
    entry["env"] = _env(entry, entry.pop("env_keys", None))
    entry["timeout"] = _milliseconds(entry.pop("timeout", None))
    entry["includeTools"] = entry.get("includeTools") or None  # of an empty list all
    left = ("config", "bundled", "display_name")
    return {key: value for key, value in entry.items() if value is not None and key not in left}


def _env(entry: Mapping[str, Any], passed: object) -> dict[str, Any] | None:
    """Return the variables of an entry, and by reference those whose names it passes on."""
    names = [one.get("name") if isinstance(one, dict) else one for one in as_list(passed)]
    named = {name: f"${{{name}}}" for name in as_texts(names)}
    return {**named, **as_object(entry.get("env"))} or None


def _milliseconds(seconds: object) -> int | None:
    if isinstance(seconds, int | float) and 0 < seconds < 1e9:  # TOML and YAML have infinite ones
        return round(seconds * 1000)
    return None


HARMLESS: Final = frozenset(
    {"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
)
"""Variables of the user's that any server may know: they name places, languages and the user."""


def asked(entry: object) -> tuple[str, ...]:
    """Name what an entry asks for of the user's: variables, and secrets as ``keyring:NAME``."""
    secrets = (f"keyring:{name}" for name in sorted(secret_names(entry)))
    return (*(name for name in references_in(entry) if name not in HARMLESS), *secrets)


def withheld(entry: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
    """Return an entry without what it asks for by some names.

    Their defaults count; a text that needs one of them is left empty, whatever else is in it.
    """

    def without(text: str) -> str:
        if names.isdisjoint(wanted := asked(text)):
            return text
        kept = dict.fromkeys({*wanted, *HARMLESS} - names, "")
        filled = Expansion(kept, kept).text(text)
        return filled if kept.keys() >= {*asked(filled)} else ""  # a default may ask for more

    return dict(mapped(entry, str, without))


class Candidate(Frozen):
    """A server that another client has, or that was pasted.

    Attributes:
        client: Whose it is; empty where it was pasted.
        file: The file, as shown; likewise.
        name: Its name, as ours.
        entry: Its entry for our settings; empty if there can be none.
        warnings: What does not come along, and what it needs.
        problem: Why there can be no entry, or an empty string.
        scope: Whose settings it is for: ``user``, ``folder`` or ``project``.
    """

    client: str
    file: str
    name: str
    entry: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    problem: str = ""
    scope: str = "user"


class ClientFile(Frozen):
    """A file that was read.

    Attributes:
        client: Whose it is.
        path: The file.
        file: The same, as shown.
        candidates: Its servers.
        problem: Why it cannot be used, or an empty string.
    """

    client: str
    path: Path
    file: str
    candidates: tuple[Candidate, ...] = ()
    problem: str = ""


def find_files(machine: Machine, client: str = "", at: Path | None = None) -> Iterator[ClientFile]:
    """Read the files that there are of one client, or of all; or that one at a path. Blocks."""
    for name in (client,) if client else CLIENTS:
        places = machine.places(name) if at is None else (at,)
        for path in dict.fromkeys(places):  # the home may be the opened folder
            if (found := read_client_file(machine, name, path)) is not None:
                yield found


def read_client_file(machine: Machine, client: str, path: Path) -> ClientFile | None:
    """Read a file of a client; None if it is absent. Blocks."""
    shown = shown_path(path, machine.home)
    try:
        if (text := read_text(path, MAX_CLIENT_FILE)) is None:
            return None
        match path.suffix:
            case ".toml":
                content: Mapping[str, Any] = read_toml(text)
            case ".yaml":
                content = _parse_yaml(text)
            case _:
                content = parse_document(text).content
    except (OSError, ValueError, RecursionError, BadDocumentError) as error:
        line = getattr(error, "line", 0)
        reason = sanitize_line(getattr(error, "strerror", None) or str(error))
        return ClientFile(client, path, shown, (), f"line {line}: {reason}" if line else reason)
    # VS Code once kept its servers in its settings
    listed = content.get(CLIENTS[client].key, content.get("mcpServers"))
    if client == "opencode" and "type" not in as_object(inner := as_object(listed).get("servers")):
        listed = inner or listed  # since its version 2
    # what Claude Code keeps in the user's file for the opened folder alone
    own = as_object(as_object(content.get("projects")).get(str(machine.folder))).get("mcpServers")
    servers = {**as_object(listed), **as_object(own)}
    return ClientFile(client, path, shown, candidates_in(servers, machine, client, shown))


def _parse_yaml(text: str) -> Mapping[str, Any]:
    """Read YAML as if it were JSON; what JSON does not have becomes a text."""
    if len(text) > MAX_YAML:  # it is slow to parse
        raise ValueError(f"it has more than {MAX_YAML:,} characters")
    return as_object(json.loads(json.dumps(read_yaml(text), default=str, skipkeys=True)))


def candidates_in(
    servers: Mapping[str, Any], machine: Machine, client: str, file: str
) -> tuple[Candidate, ...]:
    """Write the entries of a client by their names as ours; `file` is where they stand."""
    some = list(servers.items())[:MAX_SERVERS]
    return tuple(_candidate(Translation(client, machine), file, name, raw) for name, raw in some)


def _candidate(translation: Translation, file: str, name: str, raw: object) -> Candidate:
    ours = server_id(name)
    blank = Candidate(translation.client, file, ours or "unnamed")
    if not ours or not isinstance(raw, dict):
        problem = "its name cannot be shown" if not ours else "its entry must be an object"
        return replace(blank, problem=problem)
    if not (entry := translation.entry(raw)):
        problem = "it has neither a command nor an address; an extension may provide it"
        return replace(blank, problem=problem)
    if is_gemdeck(entry):
        return replace(blank, problem="it is gemdeck itself, which serves other clients")
    try:
        _, slips = salvaged(known_part(entry))
    except ValidationError as error:
        keys, words = validation_problems(error)[0]
        return replace(blank, problem=f"{dotted(keys)}: {words}".removeprefix(": "))
    notes = [f"{dotted(keys)}: {words}" for keys, words in slips]
    return replace(blank, entry=entry, warnings=(*translation.warnings, *notes))


MAX_PASTED: Final = 64 * 1024
"""Characters that are read."""

WANTED: Final = "Enter a command, an mcp add line, a JSON block or an address."

_TARGETS: Final = ("command", "url", "httpUrl", "serverUrl")
_CLIENTS: Final = frozenset({"claude", "gemini", "codex", "gemdeck"})
_SHORT: Final = {"-e": "env", "-H": "header", "-s": "scope", "-t": "transport"}
_OPTIONS: Final = frozenset(
    {"env", "header", "scope", "transport", "url", "timeout", "description", "bearer_token_env_var"}
    | {"include_tools", "exclude_tools"}
)
_SWITCHES: Final = frozenset({"--trust", "--sandbox", "--no-check", "--yes", "-y"})
_RUNNERS: Final = frozenset(
    {"npx", "bunx", "uvx", "pipx", "uv", "docker", "podman", "python", "python3", "node", "deno"}
    | {"run", "tool"}
)
_AROUND: Final = re.compile(r"(?i)^(mcp[-_])?(server[-_])?|([-_]mcp)?([-_]server)?([-_]mcp)?$")
"""What the name of a package has around that of its server."""

_INNER: Final = re.compile(r"(?:(?:^|/)(?:dist|build|src|index|main))+$")
"""What the path of a program has below the folder that names its server."""

_PROMPT: Final = re.compile(r"(?m)^[ \t]*[$%>][ \t]+|\\\n|^```.*\n?")
"""What stands before a command, line ends that do not count, and Markdown's fences."""

_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=[ \t]))#(?:[ \t].*)?$")
_NEXT: Final = re.compile(r"[;\n]+|&&\n*")
"""Signs behind which another command begins."""

_SHELL: Final = re.compile(r"\A[|&;<>()\n]+\Z|`|\$\(")
"""What only a shell can do: alone it counts as its sign even if it was quoted."""

_JSON: Final = re.compile(r'\{|"[^"]*"\s*:|\[mcp_servers\b')
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_HOME: Final = re.compile(r"\A([A-Za-z_]\w*=)?~(?=/|\Z)")


def understand(text: str, machine: Machine) -> tuple[Candidate, ...]:
    """Read the servers in a pasted text; at least one.

    Args:
        text: What was pasted or typed.
        machine: What the references of other clients mean.

    Raises:
        EntryError: If it cannot be understood; it says why, and what could be.
    """
    text = text.replace("\r\n", "\n").strip()
    if len(text) > MAX_PASTED:
        raise EntryError(f"This is too long; the limit is {MAX_PASTED:,} characters.")
    if sanitize(text) != text:
        raise EntryError("This contains invisible characters. Type it instead.")
    text = _PROMPT.sub("", text).strip()
    if not text:
        raise EntryError(WANTED)
    if _JSON.match(text):
        return _from_json(f"{{{text}}}" if text[0] == '"' else text, machine)
    if is_address(text) and len(text.split()) == 1:
        return (_typed((text,)),)
    env, words = _command(text)
    client, *verb = (PurePath(words[0]).name, *words[1:3])
    if given := [b for a, b in pairwise(words) if a == "--add-mcp" and b[:1] == "{"]:  # of VS Code
        return _from_json(given[0], machine)
    if verb in (["mcp", "add"], ["mcp", "add-json"]):  # of clients that nobody here knows, too
        return (_from_add(words[3:], env, machine),)
    if client in _CLIENTS and verb[:1] == ["mcp"]:
        raise EntryError(f"This {client} mcp command adds no server. {WANTED}")
    return (_typed(words, env=env),)


def _from_json(text: str, machine: Machine) -> tuple[Candidate, ...]:
    """Read the servers of a settings file, or of a part of one."""
    is_toml = text[0] == "["
    try:
        content = read_toml(text) if is_toml else parse_document(text).content
    except (BadDocumentError, ValueError, RecursionError) as error:
        line = getattr(error, "line", 0)
        raise EntryError(f"line {line}: {error}" if line else str(error)) from error
    keyed = {key.rpartition(".")[2]: value for key, value in content.items()}  # "amp.mcpServers"
    every = [as_object(keyed.get("mcp")).get("servers")]  # in VS Code's settings
    every += [keyed.get(key) for key in dict.fromkeys(one.key for one in CLIENTS.values())]
    objects = (one for one in every if isinstance(one, dict))
    listed = next((one for one in objects if one.keys().isdisjoint(_TARGETS)), content)
    if any(isinstance(content.get(key), str) for key in _TARGETS):
        listed = {str(content.get("name") or _name_in(content)): content}
    if not (found := candidates_in(listed, machine, "codex" if is_toml else "", "")):
        raise EntryError(f"This contains no server. {WANTED}")
    if wrong := next((one for one in found if one.problem), None):
        raise EntryError(f"{wrong.name}: {wrong.problem}.")
    return found


def _command(text: str) -> tuple[list[str], list[str]]:
    """Split a line as a shell would, the variables in front of the command apart."""
    lexer = shlex.shlex(_COMMENT.sub("", text), posix=True, punctuation_chars="|&;<>()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    try:
        found = [_HOME.sub(r"\1${HOME}", word) for word in lexer]
    except ValueError as error:
        raise EntryError("A quote is not closed.") from error
    env, words, is_begun = list[str](), list[str](), False
    for word in found:
        if _NEXT.fullmatch(word):
            is_begun = False
        elif shell := _SHELL.search(word):
            more = " Replace <…> with a value." if word in "<>" else ""
            sign = f"“{shell[0]}” needs a shell, but gemdeck uses none"
            raise EntryError(f"{sign}: enter the server's command alone.{more}")
        elif not is_begun and _ASSIGNED.fullmatch(word):
            env.append(word)
        elif is_begun or word not in {"export", "env"}:
            if words and not is_begun:
                raise EntryError("This has several commands: enter only the server's.")
            is_begun = True
            words.append(word)
    if not words:
        raise EntryError(f"This sets variables but has no command. {WANTED}")
    return env, words


def _from_add(rest: Sequence[str], env: list[str], machine: Machine) -> Candidate:
    """Read what stands behind ``mcp add``: options, a name, and a command, an address or JSON."""
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
            if len(own) > 1 and not is_address(word) and word[:1] != "{":
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
            notes += ["--trust is ignored: gemdeck asks about its tools."] * (word == "--trust")
            last |= {"sandbox": True} if word == "--sandbox" else {}
        else:
            raise EntryError(f"gemdeck does not know the mcp add option {option}. Remove it.")
    scopes = {"project": "project", "folder": "folder", "local": "folder"}
    scope = scopes.get(last.pop("scope", ""), "user")
    address = last.pop("url", "")
    name, *target = [*own[:1], *filter(None, [address]), *own[1:]] or [""]
    if not name or not target:
        raise EntryError("mcp add needs a name and a command or an address.")
    if target[0][:1] == "{":
        one = _from_json(target[0], machine)[0]
        return replace(one, name=server_id(name) or one.name, scope=scope)
    return replace(_typed(target, name, **lists, **last), scope=scope, warnings=tuple(notes))


def _typed(target: Sequence[str], name: str = "", **given: Any) -> Candidate:  # noqa: ANN401
    """Write the server of a command line or an address, with the options of ``mcp add``."""
    kind = given.pop("transport", address_type(target[0]) if is_address(target[0]) else "stdio")
    entry = server_entry(target[0], target[1:], transport=TYPES.get(kind, kind), **given)
    return Candidate("", "", server_id(name) or _name_in(entry), entry)


def _name_in(entry: Mapping[str, Any]) -> str:
    """Derive a name from the package, the file or the host."""
    if address := next((entry[key] for key in _TARGETS[1:] if entry.get(key)), ""):
        word = re.sub(r"^[\d.:]+$", "", urlsplit(str(address)).hostname or "").split(".")[-2:][0]
    else:
        every = [entry.get("command"), *as_list(entry.get("args"))]
        plain = [word for word in map(str, every) if not word.startswith("-") and "=" not in word]
        telling = [word for word in plain if re.search("mcp|server", word, re.IGNORECASE)]
        others = [word for word in plain if PurePath(word).name not in _RUNNERS]
        word = [*telling, *others, *plain, ""][0]
    path = re.sub(r"(?<=[^/])@.*|\.\w{1,4}$|==.*", "", word)
    last = _INNER.sub("", path).rpartition("/")[2]
    return server_id("-".join(re.findall(r"\w+", _AROUND.sub("", last) or last))) or "server"
