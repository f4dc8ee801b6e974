"""Warnings about a server's entry.

These are hints for a reader, never a boundary: what runs is decided by the user, who sees the
whole command.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from tui.engine.definitions.programs import FETCHERS, FETCHING, is_within
from tui.engine.logs.redaction import is_secret_name
from tui.model.input.addresses import is_loopback
from tui.model.input.arguments import spelled

_SHELLS: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "csh", "tcsh", "busybox"}
    | {"cmd", "powershell", "pwsh", "nu", "xonsh", "elvish"}
)
_CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl", "finch", "container"})
_LOADERS: Final = frozenset(
    {"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "NODE_PATH", "NODE_OPTIONS", "RUBYLIB"}
    | {"RUBYOPT", "PERL5LIB", "PERLLIB", "PERL5OPT", "BASH_ENV", "ENV", "JAVA_TOOL_OPTIONS"}
    | {"PERL_USE_UNSAFE_INC", "PHPRC", "PHP_INI_SCAN_DIR", "JDK_JAVA_OPTIONS", "GCONV_PATH"}
    | {"_JAVA_OPTIONS", "PATH", "PATHEXT", "NODE_EXTRA_CA_CERTS", "ZDOTDIR", "PYTHONSTARTUP"}
    | {"PYTHONINSPECT", "PERL5DB", "CLASSPATH", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS"}
    | {"GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_DIR", "SSH_ASKPASS", "EDITOR", "VISUAL"}
    | {"PAGER", "BROWSER", "SHELL", "HOME", "IFS", "PS4", "PROMPT_COMMAND", "HTTP_PROXY"}
    | {"HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"}
    | {"CURL_CA_BUNDLE", "NODE_TLS_REJECT_UNAUTHORIZED", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"}
    | {"UV_DEFAULT_INDEX", "DOCKER_HOST", "PYTHONPYCACHEPREFIX", "BUNDLE_GEMFILE"}
    | {"DOTNET_STARTUP_HOOKS", "TCLLIBPATH"}
)
"""Variables that change which code a program loads or whom it talks to."""

_LOADER_PREFIXES: Final = (
    *("LD_", "DYLD_", "NPM_CONFIG_", "PIP_", "GIT_CONFIG", "BASH_FUNC_"),
    *("LUA_", "GEM_", "OPENSSL_"),
)
_RUNNERS: Final = FETCHERS - {"pipx"}
_FILE_RUNNERS: Final = frozenset({("uv", "run"), ("deno", "run")})
_CONTAINER_SWITCHES: Final = frozenset(
    {"-i", "-t", "-it", "-ti", "-d", "-P", "--rm", "--init", "--privileged", "--interactive"}
    | {"--tty", "--detach", "--read-only", "--no-healthcheck", "--publish-all", "-q", "--quiet"}
)
_CODE_FLAGS: Final = {
    "python": frozenset({"-c"}),
    "pypy": frozenset({"-c"}),
    "node": frozenset({"-e", "--eval", "-p", "--print", "-pe"}),
    "bun": frozenset({"-e", "--eval", "-p", "--print"}),
    "deno": frozenset({"eval"}),
    "ruby": frozenset({"-e"}),
    "perl": frozenset({"-e", "-E"}),
    "php": frozenset({"-r"}),
    "npx": frozenset({"-c", "--call"}),
    "npm": frozenset({"-c", "--call"}),
    "osascript": frozenset({"-e"}),
}
"""Flags by which a program takes code instead of a file."""

_RUNNER_VALUE_FLAGS: Final = frozenset(
    {"--python", "--index-url", "--index", "--registry", "--cache", "--prefix"}
)
_PACKAGE_FLAGS: Final = ("--package", "--from", "--with", "--spec")
_PINNED: Final = re.compile(
    r".+(?:@v?\d+\.\d+\.\d+[\w.+-]*|==\d[\w.!+]*|@[0-9a-f]{40}|#[0-9a-f]{40})"
)


def command_cautions(command: str, args: Sequence[str]) -> Iterator[str]:
    """Return warnings about a command line."""
    words = (command, *args)
    names = [_program_name(word) for word in words]
    if shell := next((name for name in names if name in _SHELLS), ""):
        yield f"Runs a shell ({shell}): its arguments are commands."
    if code := _code_flag(names, words):
        yield f"Runs code given in its arguments ({code})."
    if (package := _unpinned(names, words)) is not None:
        which = f" ({spelled(package)})" if package else ""
        yield f"Not pinned{which}: whoever publishes the package decides what runs next time."
    if any(name in _CONTAINERS for name in names):
        yield from _container_cautions(words)


def program_cautions(program: str, folder: Path | None) -> Iterator[str]:
    """Warn of a program in the opened folder. Blocks on the file system."""
    if program and folder is not None and is_within(program, folder):
        yield "The program is in this folder and can change with it."


def variable_cautions(names: Iterable[str], references: Iterable[str]) -> Iterator[str]:
    """Warn of variables that change what runs, and of the user's secrets."""
    if loading := [name for name in names if _is_loader(name.upper())]:
        yield f"Sets environment variables that change which programs run: {_listed(loading)}."
    if secret := [name for name in references if is_secret_name(name)]:
        yield f"Receives environment variables that look secret: {_listed(secret)}."


def address_cautions(address: str) -> Iterator[str]:
    """Return warnings about the address of a network server."""
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return
    if parts.scheme.lower() == "http" and not is_loopback(host):
        yield "Not encrypted: others on the network can read and change the traffic."
    if "@" in parts.netloc:
        yield "The address contains a user name, which can hide where it leads."
    if "xn--" in host or not host.isascii():
        yield "The host name uses letters that can imitate others."


def sign_in_cautions(sign_in: object) -> Iterator[str]:
    """Warn of the hosts that an entry's ``oauth`` sends the user's sign-in to."""
    values = sign_in.values() if isinstance(sign_in, dict) else ()
    if hosts := sorted({_host_of(v) for v in values if isinstance(v, str) and "://" in v} - {""}):
        yield f"Its sign-in goes to {_listed(hosts)}."


def _is_loader(name: str) -> bool:
    return name in _LOADERS or name.startswith(_LOADER_PREFIXES)


def _program_name(word: str) -> str:
    name = PurePosixPath(word.replace("\\", "/")).name.lower()
    return re.sub(r"(?:\.(?:exe|cmd|bat|com))+$", "", name)


def _code_flag(names: Sequence[str], words: Sequence[str]) -> str:
    first: dict[str, int] = {}  # one look a program, or many words would cost their square
    for index, name in enumerate(names):
        first.setdefault(name.rstrip("0123456789."), index)
    for kind, flags in _CODE_FLAGS.items():
        for word in words[first[kind] + 1 :] if kind in first else ():
            if word.partition("=")[0] in flags:
                return f"{kind} {word.partition('=')[0]}"
            if kind in {"python", "pypy"} and re.match(r"-[A-Za-z]*c", word):
                return f"{kind} -c"
    return ""


def _unpinned(names: Sequence[str], words: Sequence[str]) -> str | None:
    """Return an unpinned package; empty if none is named, None if none is fetched."""
    for index, name in enumerate(names):
        pair = (name, names[index + 1]) if index + 1 < len(names) else (name, "")
        if name in _RUNNERS:
            packages = _packages(words[index + 1 :]) or [""]
        elif pair == ("uv", "tool"):
            packages = _packages(words[index + 3 :]) or [""]
        elif pair in FETCHING:
            packages = _packages(words[index + 2 :])
            if pair in _FILE_RUNNERS:  # their first word is a file, unless it is an address
                named = {value for flag, value in _flags(words) if flag in _PACKAGE_FLAGS}
                packages = [word for word in packages if ":" in word or word in named]
        else:
            continue
        return next((package for package in packages if not _PINNED.fullmatch(package)), None)
    return None


def _packages(rest: Sequence[str]) -> list[str]:
    """Return the packages that a runner fetches: those its flags name, or its first word."""
    named: list[str] = []
    words = iter(rest)
    for word in words:
        flag, sign, value = word.partition("=")
        if flag in _PACKAGE_FLAGS or word == "-p":
            named.append(value if sign else next(words, ""))
        elif flag in _RUNNER_VALUE_FLAGS:
            if not sign:
                next(words, None)
        elif not word.startswith("-"):
            return named or [word]
    return named


def _container_cautions(words: Sequence[str]) -> Iterator[str]:
    mounts = [
        value
        for flag, value in _flags(words)
        if (flag in {"-v", "--volume"} and re.match(r"[/.~$\\]|[A-Za-z]:\\", value))
        or (flag == "--mount" and "bind" in value)
    ]
    if mounts:
        yield f"The container can access folders of this machine: {_listed(mounts)}."
    host = {"--pid", "--network", "--net", "--ipc", "--userns", "--uts"}
    if "--privileged" in words or any(f in host and v == "host" for f, v in _flags(words)):
        yield "The container is not isolated from this machine."
    image = _image(words)
    if image is not None and "@sha256:" not in image:
        tag = image.rpartition("/")[2].partition(":")[2]
        if tag in {"", "latest"}:
            yield f"Not pinned ({spelled(image)}): another image may run next time."


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Return flags with their values, however the two are joined."""
    for index, word in enumerate(words):
        flag, sign, value = word.partition("=")
        if sign:
            yield flag, value
        elif word.startswith("-v") and not word.startswith("--") and len(word) > len("-v"):
            yield "-v", word[2:]
        elif index + 1 < len(words):
            yield word, words[index + 1]


def _image(words: Sequence[str]) -> str | None:
    """Find the image that ``run`` starts, as far as its flags can be told apart."""
    if "run" not in words:
        return None
    rest = iter(words[words.index("run") + 1 :])
    for word in rest:
        if not word.startswith("-"):
            return word
        if word not in _CONTAINER_SWITCHES and "=" not in word:
            next(rest, None)
    return None


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(spelled, names))
