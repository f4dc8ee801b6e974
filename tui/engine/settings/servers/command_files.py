"""Which files of the guarded folders a command runs: those that it names, and what they lead to.

Programs find code by rules of their own: ``node .`` by a ``package.json``, ``python -m`` by a
search path, ``make`` by the name of a file. What follows from these rules is watched. What a
program decides only while it runs, such as its imports, is named as not watched. In doubt a file is
watched.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from tui.engine.settings.servers.code_search import CodeSearch
from tui.engine.settings.servers.command_words import (
    EVAL_FLAGS,
    LOAD_FLAGS,
    PLACE_FLAGS,
    SOURCE_FLAGS,
    Command,
    flag_values,
    is_path,
    modules_of_run,
    package_name,
    python_target,
    shell_words,
)
from tui.engine.settings.servers.folder_files import FolderFile, FolderFiles
from tui.engine.settings.servers.known_programs import (
    BUILD_FILES,
    BUILDS,
    COMPOSE_FILES,
    CONTAINERS,
    INTERPRETERS,
    NPM_FILES,
    PROJECT_FILES,
    RUNNERS,
    interpreters_in,
    is_loader_variable,
    pieces_of,
    program_names,
)
from tui.engine.settings.servers.manifests import text_in
from tui.model.frozen import dataclass

MAX_LOOKS: Final = 8_192
"""Looks for one server; words, what could be a path in them, and commands cost some."""

MAX_NESTED: Final = 3
"""How deep commands stand in texts of others, such as a script of npm in ``sh -c``."""

_COMMAND_LOOKS: Final = 32
_CHARACTERS_A_LOOK: Final = 16
_REST: Final = "what the rest of its command names"

_BLANK: Final = re.compile(r"\s")
_SCRIPT_ENDINGS: Final = ("", ".js", ".cjs", ".mjs", ".rb", ".pm", ".so")
_CONTAINERS: Final = CONTAINERS | {"docker-compose", "podman-compose"}
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish"})
_GIVEN_CODE: Final = "what the code among its arguments runs"
_MOVING: Final = frozenset({"env"})
"""Programs of no rule that have a flag for another folder."""


@dataclass(frozen=True, slots=True)
class CommandFiles:
    """What a command runs of the guarded folders.

    Attributes:
        files: The files, then the package folders.
        unwatched: What else would run, each in words.
    """

    files: tuple[FolderFile, ...] = ()
    unwatched: tuple[str, ...] = ()


def command_files(
    words: Sequence[str], program: str, env: Mapping[str, str], start: Path, files: FolderFiles
) -> CommandFiles:
    """Find what a command runs of the guarded folders. Blocks on the file system.

    Args:
        words: The program as the entry names it, and its arguments.
        program: The file that it means, if one was found.
        env: The variables that may load code into it.
        start: The folder where it starts.
        files: Looks at files of the guarded folders.
    """
    search = CodeSearch(files)
    reading = _Reading(search, start, env)
    for name, value in env.items():
        reading.variable(name, value, start)
    names = program_names(words[0], program, os.path.realpath(program) if program else "")
    reading.words(words, start, 0, names)
    found = sorted(search.files.values(), key=lambda one: bool(one.members))
    return CommandFiles(tuple(found), tuple(search.unwatched))


class _Reading:
    """Reads one command line, as far as its words tell what runs."""

    def __init__(self, search: CodeSearch, start: Path, env: Mapping[str, str]) -> None:
        self._search = search
        self._left = MAX_LOOKS
        paths = env.get("PYTHONPATH", "").split(os.pathsep)
        self._python_path = [start / path for path in paths if path]

    def words(
        self,
        words: Sequence[str],
        place: Path,
        nested: int,
        first: AbstractSet[str] = frozenset(),
    ) -> None:
        """Look at each word as a file, and as if a command began there.

        Args:
            words: The words.
            place: The folder in which they count.
            nested: In how many texts they stand.
            first: The names of the program that the first word means, if that is known.
        """
        in_container = False
        for index, word in enumerate(words):
            if not self._spend(1):
                return
            names = first if first and not index else program_names(word)
            if names is not first:
                self._word(word, place, nested)
            if word == "cd" and index + 1 < len(words):
                place = place / words[index + 1]
            if not in_container:  # where the words that follow are commands
                self._run(names, words[index + 1 :], place, nested)
            in_container = in_container or bool(names & _CONTAINERS)

    def variable(self, name: str, value: str, place: Path) -> None:
        """Look at a variable that may load code: what it names is a file, a folder or flags."""
        if not is_loader_variable(name) or name.upper() == "HOME":
            return
        if name.upper() == "NODE_OPTIONS":
            self._loads(self._split(value), place)
        for piece in self._pieces(value):
            endings = (Path(f"{place / piece}{ending}") for ending in _SCRIPT_ENDINGS)
            if not any(map(self._search.file, endings)):
                self._search.package(place / piece)

    def python(self, command: Command) -> None:
        module, script = python_target(command.args)
        path = command.place / script
        if module:
            self._search.module(module, [command.place, *self._python_path])
        elif script and (self._search.package(path) or self._search.file(path)):
            self._search.file(path / "__main__.py")
            self._search.note(f"what {path.name} imports")
        elif not script:
            self._search.note(_GIVEN_CODE)
        elif not path.exists():
            self._note_more(command, "runs")

    def node(self, command: Command) -> None:
        if not self._script(command):
            self._note_more(command, "runs")

    def npm(self, command: Command) -> None:
        if not self._package_scripts(command):
            self._note_more(command, "runs")

    def bun(self, command: Command) -> None:
        """Look at what is a script of a package or a file."""
        is_script = self._package_scripts(command)
        if not self._script(command) and not is_script:
            self._note_more(command, "runs")

    def npx(self, command: Command) -> None:
        """Look at a program that a package brings: one that is installed, or a folder."""
        if not self._packages(command):
            self._note_more(command, "downloads")

    def uv(self, command: Command) -> None:
        """Look at a Python project and the scripts that it defines."""
        if command.args[:1] == ["tool"]:
            self.uvx(command)
        else:
            self._project(command, (*command.places, *command.sources))
            places = (command.place, *command.moved)
            for module in modules_of_run(command.args):
                inside = [place / "src" for place in places]
                self._search.module(module, [*places, *inside, *self._python_path])

    def uvx(self, command: Command) -> None:
        """Look at what a runner of tools installs, if that is a folder."""
        own = [command.place / command.target] if is_path(command.target) else []
        self._project(command, (*command.moved, *command.sources, *own))

    def build(self, command: Command) -> None:
        """Look at the files by whose names a build tool finds what to do."""
        for place in command.places:
            for name in BUILD_FILES[command.name]:
                self._search.nearest(place, name)
        self._search.note(f"what {command.name} builds and loads")

    def container(self, command: Command) -> None:
        if BUILDS & set(command.args) or command.name.endswith("compose"):
            for name in COMPOSE_FILES:
                self._search.nearest(command.place, name)
        self._search.note(f"what {command.name} pulls")

    def shell(self, command: Command) -> None:
        if any(re.match(r"-\w*c", word) for word in command.args):
            self._search.note(_GIVEN_CODE)
        for word in command.args:
            for path in (command.place / piece for piece in self._pieces(word)):
                if self._search.file(path):
                    self._search.note(f"what {path.name} runs")

    def _word(self, word: str, place: Path, nested: int) -> None:
        """Look at a word as files, as a variable that is set, and as a text with commands."""
        name, sign, value = word.partition("=")
        if sign:
            self.variable(name, value, place)
        for piece in self._pieces(word):
            self._search.file(place / piece)
        if _BLANK.search(word):
            self._text(word, place, nested)

    def _run(self, names: AbstractSet[str], args: Sequence[str], place: Path, nested: int) -> None:
        """Look at a command by the rules of its program."""
        names = names | interpreters_in(names)
        rules = {rule: name for name in sorted(names) for rule in _RULES.get(name, ())}
        known = sorted(names & (RUNNERS | INTERPRETERS | _MOVING))
        if not rules and not known:
            return
        if not self._spend(_COMMAND_LOOKS):
            return
        moved = tuple(self._folders(args, PLACE_FLAGS, place))
        for other in moved if nested < MAX_NESTED else ():
            self.words(args, other, nested + 1)
        sources = tuple(self._folders(args, SOURCE_FLAGS, place))
        for rule, name in rules.items():
            rule(self, Command(name, args, place, moved, sources, nested))
        if not rules and known[0] not in _MOVING:
            self._search.note(f"what {known[0]} loads")

    def _packages(self, command: Command) -> bool:
        """Look at what npm and its relatives obey, and at what is installed or named by a path."""
        found = False
        own = [command.target] if is_path(command.target) else []
        for place in command.places:
            for name in NPM_FILES:
                self._search.nearest(place, name)
            if yarn := self._search.nearest(place, ".yarnrc.yml"):
                self._search.package(yarn.parent / ".yarn" / "releases")
                self._search.package(yarn.parent / ".yarn" / "plugins")
            self._search.node_modules(place)
            if manifest := self._search.nearest(place, "package.json"):
                self._search.programs(manifest)
            for word in command.plain:
                found |= self._search.installed(place, package_name(word))
            for word in (*command.plain, *flag_values(command.args, SOURCE_FLAGS)):
                found |= self._search.dependency(place, word)
            for path in (*command.sources, *(place / one for one in own)):
                found |= self._search.script(path)
        return found

    def _project(self, command: Command, places: Sequence[Path]) -> None:
        for place in places:
            self._search.environment(place)
            for word in command.plain:
                if self._search.file(place / word):
                    self._search.note(f"what {Path(word).name} imports")
            for name in PROJECT_FILES:
                self._search.nearest(place, name)
            manifest = self._search.nearest(place, "pyproject.toml")
            if manifest is None:
                continue
            home, content = manifest.parent, self._search.pyproject(manifest)
            for word in command.plain:
                for keys in (("project", "scripts"), ("tool", "poetry", "scripts")):
                    if entry := text_in(content, *keys, word):
                        module = entry.partition(":")[0].strip()
                        self._search.module(module, (home, home / "src"))
        self._note_more(command, "downloads")

    def _script(self, command: Command) -> bool:
        """Look at what node runs; return whether that is known."""
        self._loads(command.args, command.place)
        is_known = not command.args
        if EVAL_FLAGS.intersection(command.args):
            self._search.note(_GIVEN_CODE)
            is_known = True
        for name in flag_values(command.args, frozenset({"--run"})):
            is_known |= self._scripts(command, command.place, [name])
        places = dict.fromkeys((command.place, *command.moved))
        for word in command.entries:
            paths = [place / word for place in places]
            watched = [path for path in paths if self._search.script(path)]
            if watched or any(path.is_file() for path in paths):
                return True
        return is_known

    def _package_scripts(self, command: Command) -> bool:
        """Look at what npm and its relatives run; return whether all of it is known."""
        is_known = self._packages(command)
        if command.fetches:
            self._note_more(command, "downloads")
        names, workspaces = command.scripts(), command.workspaces()
        for place in command.places:
            is_known |= self._scripts(command, place, names)
        for workspace in workspaces:
            inside = [place / workspace for place in command.places]
            inside = [place for place in inside if (place / "package.json").is_file()]
            found = [self._scripts(command, place, names) for place in inside]
            is_name = workspace.startswith("@") or "/" not in workspace
            if is_name or not any(found):  # a name may be that of another folder
                self._search.note("what workspaces of package.json run")
        return is_known or bool(workspaces) or command.fetches or not names

    def _scripts(self, command: Command, place: Path, names: Sequence[str]) -> bool:
        """Look at scripts of the nearest package; return whether there is one of these names."""
        manifest = self._search.nearest(place, "package.json")
        if manifest is None:
            return False
        scripts = self._search.package_json(manifest).get("scripts")
        scripts = scripts if isinstance(scripts, Mapping) else {}
        for name in names:
            for text in (scripts.get(f"{prefix}{name}") for prefix in ("pre", "", "post")):
                if isinstance(text, str):
                    self._search.note("what scripts of package.json run")
                    self._text(text, manifest.parent, command.nested)
        is_found = any(isinstance(scripts.get(name), str) for name in names)
        if "start" in names and "start" not in scripts:
            is_found |= self._search.script(manifest.with_name("server.js"))
        return is_found

    def _note_more(self, command: Command, what: str) -> None:
        self._search.note(f"what {command.name.removesuffix('-cli')} {what}")

    def _loads(self, args: Sequence[str], place: Path) -> None:
        """Look at what flags of node load."""
        for value in flag_values(args, LOAD_FLAGS):
            if not self._search.script(place / value) and not is_path(value):
                self._search.node_modules(place)

    def _text(self, text: str, place: Path, nested: int) -> None:
        """Look at a text that may hold commands."""
        if nested >= MAX_NESTED:
            self._search.note(_REST)
            return
        words = self._split(text)
        for word in words:
            if self._spend(1):
                self._search.installed(place, word)
        self.words(words, place, nested + 1)

    def _split(self, text: str) -> list[str]:
        """Split a text into words, unless it is too long."""
        return shell_words(text) if self._spend(len(text) // _CHARACTERS_A_LOOK) else []

    def _spend(self, looks: int) -> bool:
        """Take from the looks that are left; if there are too few, the rest is not watched."""
        self._left = self._left - looks if self._search.spend(looks) else -1
        if self._left < 0:
            self._search.note(_REST)
        return self._left >= 0

    def _pieces(self, word: str) -> list[str]:
        """Split a word into what could be paths, unless that is too much."""
        if not self._spend(len(word) // _CHARACTERS_A_LOOK):
            return [word]
        pieces = pieces_of(word)
        return pieces if self._spend(len(pieces)) else [word]

    def _folders(self, args: Sequence[str], flags: frozenset[str], place: Path) -> Iterator[Path]:
        paths = (place / value for value in flag_values(args, flags))
        return (path for path in dict.fromkeys(paths) if path.is_dir())


_RULES: Final[Mapping[str, tuple[Callable[[_Reading, Command], None], ...]]] = {
    **dict.fromkeys(("python", "pythonw", "pypy"), (_Reading.python,)),
    **dict.fromkeys(("node", "nodejs", "electron"), (_Reading.node,)),
    **dict.fromkeys(("npx", "npx-cli", "bunx", "pnpx"), (_Reading.npx,)),
    **dict.fromkeys(("npm", "npm-cli", "pnpm", "yarn", "yarnpkg"), (_Reading.npm,)),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye", "pipenv"), (_Reading.uv,)),
    **dict.fromkeys(("uvx", "pipx"), (_Reading.uvx,)),
    **dict.fromkeys(BUILD_FILES, (_Reading.build,)),
    **dict.fromkeys(_CONTAINERS, (_Reading.container,)),
    **dict.fromkeys(_SHELLS, (_Reading.shell,)),
    "bun": (_Reading.bun,),
    **dict.fromkeys(("deno", "nodemon", "tsx", "ts-node"), (_Reading.build, _Reading.node)),
}
"""How programs find what they run. Those in no rule are only named."""
