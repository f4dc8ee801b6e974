"""How the words of commands are read: flags, their values, scripts, and texts with commands."""

import itertools
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tui.model.frozen import dataclass

LOAD_FLAGS: Final = frozenset(
    {"-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file"}
    | {"--preload", "--config", "--tsconfig"}
)
"""Flags of node and its relatives that load a file."""

EVAL_FLAGS: Final = frozenset({"-e", "--eval", "-p", "--print", "-pe"})
"""Flags of node that run what stands behind them."""

_VALUE_FLAGS: Final = LOAD_FLAGS | {
    *("-C", "--conditions", "--input-type", "--run", "--title", "--env-file-if-exists"),
    *("--allow-fs-read", "--allow-fs-write", "--build-snapshot-config", "--snapshot-blob"),
    *("--cpu-prof-dir", "--cpu-prof-interval", "--cpu-prof-name", "--diagnostic-dir"),
    *("--heap-prof-dir", "--heap-prof-interval", "--heap-prof-name", "--heapsnapshot-signal"),
    *("--heapsnapshot-near-heap-limit", "--disable-proto", "--disable-warning"),
    *("--dns-result-order", "--experimental-default-type", "--experimental-sea-config"),
    *("--es-module-specifier-resolution", "--experimental-specifier-resolution"),
    *("--experimental-config-file", "--icu-data-dir", "--inspect-port", "--debug-port"),
    *("--inspect-publish-uid", "--localstorage-file", "--max-http-header-size"),
    *("--max-old-space-size-percentage", "--openssl-config", "--experimental-policy"),
    *("--policy-integrity", "--network-family-autoselection-attempt-timeout"),
    *("--redirect-warnings", "--report-filename", "--report-signal", "--report-dir"),
    *("--report-directory", "--secure-heap", "--secure-heap-min", "--test-concurrency"),
    *("--test-coverage-branches", "--test-coverage-exclude", "--test-coverage-functions"),
    *("--test-coverage-include", "--test-coverage-lines", "--test-global-setup"),
    *("--test-isolation", "--test-name-pattern", "--test-random-seed", "--test-reporter"),
    *("--test-reporter-destination", "--test-rerun-failures", "--test-shard"),
    *("--test-skip-pattern", "--test-timeout", "--tls-cipher-list", "--tls-keylog"),
    *("--trace-event-categories", "--trace-event-file-pattern", "--trace-require-module"),
    *("--unhandled-rejections", "--use-largepages", "--v8-pool-size", "--watch-path"),
    *("--watch-kill-signal", "--experimental-test-tag-filter"),
}
"""Flags of node that take the word behind them."""

PLACE_FLAGS: Final = frozenset(
    {"-C", "--directory", "--project", "--prefix", "--dir", "--cwd", "--chdir", "--working-dir"}
)
"""Flags that make a program work in another folder."""

SOURCE_FLAGS: Final = frozenset(
    {"--from", "--spec", "--with", "--with-editable", "--package", "-p", "--editable"}
)
"""Flags that name what a runner installs."""

_WORKSPACE_FLAGS: Final = frozenset({"-w", "--workspace", "-F", "--filter", "workspace"})
_ALL_WORKSPACES: Final = frozenset({"-ws", "--workspaces", "-r", "--recursive", "workspaces"})

_SUBCOMMANDS: Final = frozenset(
    {"run", "run-script", "exec", "x", "dlx", "tool", "watch", "start", "install"}
)
"""First words of runners, behind which stands what runs."""

_NODES: Final = frozenset({"node", "nodejs", "electron"})

_MAX_PLAIN: Final = 8
"""Words of a command that could name what runs."""

_INSTALLS: Final = frozenset({"install", "i", "ci", "add", "rebuild"})
_INSTALL_SCRIPTS: Final = ("preinstall", "install", "postinstall", "prepublish", "prepare")
_SHORT_SCRIPTS: Final = {"t": "test", "tst": "test"}
_FETCHING: Final = _INSTALLS | {"exec", "x", "dlx", "create", "init"}


@dataclass(frozen=True, slots=True)
class Command:
    """A command within a command line.

    Attributes:
        name: Its program.
        args: The words behind it.
        place: Where it runs.
        moved: The folders that its flags name instead.
        sources: The folders of packages that its flags name.
        nested: In how many texts it stands.
    """

    name: str
    args: Sequence[str]
    place: Path
    moved: tuple[Path, ...]
    sources: tuple[Path, ...]
    nested: int

    @property
    def places(self) -> tuple[Path, ...]:
        """Where it may run."""
        return self.moved or (self.place,)

    @property
    def plain(self) -> list[str]:
        """Its first words that are neither flags nor what flags of node load."""
        pairs = zip(("", *self.args), self.args, strict=False)
        plain = (word for flag, word in pairs if flag not in LOAD_FLAGS)
        return list(itertools.islice((w for w in plain if not w.startswith("-")), _MAX_PLAIN))

    @property
    def target(self) -> str:
        """The first of them that says what runs; empty where there is none."""
        return next((word for word in self.plain if word not in _SUBCOMMANDS), "")

    @property
    def entries(self) -> list[str]:
        """The words that node may run: the first one, and before it those behind other flags."""
        found: list[str] = []
        skipped = {"inspect"} if self.name in _NODES else _SUBCOMMANDS
        before = ""
        for word in self.args:
            if before in _VALUE_FLAGS:
                before = ""
            elif word.startswith("-"):
                before = word
            elif word not in skipped:
                found.append(word)
                if not before or "=" in before or before == "--":
                    break
                before = ""
        return found[:_MAX_PLAIN]

    @property
    def fetches(self) -> bool:
        """Whether npm would download something."""
        return bool(_FETCHING.intersection(self.plain))

    def scripts(self) -> list[str]:
        """Return the names that scripts of a package could have which npm would run."""
        words = itertools.islice((w for w in self.args if not w.startswith("-")), _MAX_PLAIN)
        installs = _INSTALL_SCRIPTS if _INSTALLS.intersection(self.plain[:1]) else ()
        return [*(_SHORT_SCRIPTS.get(word, word) for word in words), *installs]

    def workspaces(self) -> list[str]:
        """Return the names or folders of the workspaces in which npm would run them."""
        every = _ALL_WORKSPACES.intersection(self.args)
        return [*flag_values(self.args, _WORKSPACE_FLAGS), *every][:_MAX_PLAIN]


def flag_values(args: Sequence[str], flags: frozenset[str]) -> Iterator[str]:
    """Return the values of flags, joined to them by ``=`` or behind them."""
    for index, word in enumerate(args):
        flag, sign, value = word.partition("=")
        if flag in flags and sign:
            yield value
        elif flag in flags and index + 1 < len(args):
            yield args[index + 1]


def python_target(args: Sequence[str]) -> tuple[str, str]:
    """Return the module of ``-m``, or the script; both are empty if code or nothing is given."""
    rest = iter(args)
    for word in rest:
        if not word.startswith("-"):
            return "", word
        if word == "--check-hash-based-pycs":
            next(rest, None)
        for at, letter in enumerate(word[1:], 2) if not word.startswith("--") else ():
            if letter == "m":
                return word[at:] or next(rest, ""), ""
            if letter == "c":
                return "", ""
            if letter in "WXQ":
                if not word[at:]:
                    next(rest, None)
                break
    return "", ""


def modules_of_run(args: Sequence[str]) -> list[str]:
    """Return the modules that ``uv run`` may be told to run."""
    behind = list(itertools.dropwhile(lambda word: word != "run", args))[1:]
    named = (python_target(behind)[0], *flag_values(behind, frozenset({"-m", "--module"})))
    return list(dict.fromkeys(filter(None, named)))


def package_name(word: str) -> str:
    """Return the name of the program that a package such as ``@scope/name@1.2`` brings."""
    return word.rpartition("/")[2].partition("@")[0]


def is_path(word: str) -> bool:
    """Return whether a word is a path and not a name."""
    return word.startswith((".", "/"))


def shell_words(text: str) -> list[str]:
    """Split a text as a shell does, or at blanks if a quote is not closed."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return text.split()
