"""Collects the files, packages and manifests that one command leads to, as programs find them."""

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tui.engine.settings.servers.folder_files import (
    COMPILED,
    LEFT_OUT,
    MAX_PACKAGE_BYTES,
    MAX_PACKAGE_FILES,
    FolderFile,
    FolderFiles,
    bound_files,
    skipped,
)
from tui.engine.settings.servers.manifests import (
    Manifest,
    read_package_json,
    read_pyproject,
    text_in,
)

MAX_FILES: Final = 64
"""Files and packages that are watched for one server."""

MAX_UPWARDS: Final = 32
"""Folders above a place in which programs are expected to look for their files."""

_ENDINGS: Final = ("", ".js", ".json", ".cjs", ".mjs", ".ts", ".mts", ".cts", ".node")
"""What the name of a script is tried with, in the order of node and what runs TypeScript."""

_MODULES: Final = "node_modules"
_VENV: Final = ".venv"
_PYTHONS: Final = ("python", "python3", "python.exe")
_PACKAGE: Final = re.compile(r"(?:@[^@/\\\s]+/)?[^@/\\\s.][^@/\\\s]*(?=@|$)")
"""The name of a package of npm, without its version."""


class CodeSearch:
    """Collects what one command leads to. Blocks on the file system.

    Args:
        files: Looks at files of the guarded folders.

    Attributes:
        files: The files and packages so far, by path.
        unwatched: What else would run, in words.
    """

    def __init__(self, files: FolderFiles) -> None:
        self._look = files
        self._package_files = self._package_bytes = 0
        self.files: dict[Path, FolderFile] = {}
        self.unwatched: dict[str, None] = {}

    def spend(self, looks: int) -> bool:
        """Take from the looks of all servers; return whether there were so many left."""
        return self._look.spend(looks)

    def note(self, words: str) -> None:
        """Name something that is not watched."""
        self.unwatched[words] = None

    def file(self, path: Path) -> bool:
        """Watch a file; return whether it is one of the guarded folders."""
        path = _plain(path)
        found = self._look.look(path)
        is_new = found is not None and path not in self.files
        if found is not None:
            self._add(path, found)
        if is_new and path in self.files and path.suffix == ".py":
            for compiled, _ in bound_files(str(path.parent / COMPILED), path.stem):
                self.file(Path(compiled))
        return found is not None

    def package(self, folder: Path) -> bool:
        """Watch all files of a folder; return whether it is in the guarded folders."""
        folder = _plain(folder)
        if folder in self.files:
            return True
        if not folder.is_dir() or not self._look.contains(folder):
            return False
        if folder.name in LEFT_OUT:
            self.note(LEFT_OUT[folder.name] or f"what lies in {folder.name}/")
            return True
        package = self._look.package(folder)
        self.unwatched |= dict.fromkeys(package.unwatched)
        if package.file is None:
            return True
        self._package_files += len(package.file.members)
        self._package_bytes += package.size
        is_over = self._package_bytes > MAX_PACKAGE_BYTES
        if is_over or self._package_files > MAX_PACKAGE_FILES:
            self.note(f"what lies in {folder.name}/, which is too much beside the rest")
        self._add(folder, skipped(folder) if is_over else package.file)
        return True

    def nearest(self, place: Path, name: str) -> Path | None:
        """Watch the nearest file of a name, upwards."""
        paths = (folder / name for folder in self._upwards(place))
        return next((path for path in paths if self.file(path)), None)

    def script(self, path: Path) -> bool:
        """Watch what node would run for a path, and the package if that is a folder."""
        folder = path = _plain(path)
        starts = [str(path)]
        if self.package(path):
            manifest = path / "package.json"
            main = text_in(self.package_json(manifest), "main") if self.file(manifest) else ""
            starts = [str(path / one) for one in (main, f"{main}/index", "index") if one]
        else:
            folder = path.parent
        paths = (Path(start + ending) for start in starts for ending in _ENDINGS)
        found = next((one for one in paths if self.file(one)), None)
        if found is None:
            return False
        self.nearest(folder, "package.json")
        self.node_modules(folder)
        self.note(f"what {found.name} imports")
        return True

    def node_modules(self, place: Path) -> None:
        """Say that installed packages are not watched, where there are any."""
        if any((folder / _MODULES).is_dir() for folder in self._upwards(place)):
            self.note(LEFT_OUT[_MODULES])

    def installed(self, place: Path, name: str) -> bool:
        """Watch a program that a package in ``node_modules`` brings, with that package."""
        for folder in self._upwards(place) if name and "/" not in name else ():
            path = folder / _MODULES / ".bin" / name
            if self.file(path):
                inside = self._upwards(Path(os.path.realpath(path)).parent)
                if home := next((one for one in inside if (one / "package.json").is_file()), None):
                    self.package(home)
                self.note(LEFT_OUT[_MODULES])
                return True
        return False

    def dependency(self, place: Path, spec: str) -> bool:
        """Watch an installed package such as ``@scope/name@1.2``, whatever its programs are."""
        name = _PACKAGE.match(spec)
        homes = (folder / _MODULES / name[0] for folder in self._upwards(place)) if name else ()
        for home in homes:
            if self.file(home / "package.json"):
                self.programs(home / "package.json")
                self.package(home)
                self.note(LEFT_OUT[_MODULES])
                return True
        return False

    def programs(self, manifest: Path) -> None:
        """Watch the programs that a ``package.json`` defines: npx runs them by its name."""
        content = self.package_json(manifest)
        defined = content.get("bin")
        paths = list(defined.values()) if isinstance(defined, Mapping) else [defined]
        for path in itertools.islice((one for one in paths if isinstance(one, str)), MAX_FILES):
            self.script(manifest.parent / path)
        if folder := text_in(content, "directories", "bin"):
            self.package(manifest.parent / folder)

    def environment(self, place: Path) -> None:
        """Watch the programs of virtual environments, upwards; packages in them are only named."""
        self.note(LEFT_OUT[_VENV])
        for venv in (folder / _VENV for folder in self._upwards(place)):
            self.file(venv)  # pipenv takes a file for the path of another one
            self.file(venv / "pyvenv.cfg")
            for programs in (venv / "bin", venv / "Scripts"):
                self.package(programs)
                for name in _PYTHONS:
                    self._follow(programs / name)

    def _follow(self, link: Path) -> None:
        """Watch where a link leads in the guarded folders; the system's programs may change."""
        path = Path(os.path.realpath(link))
        if path != link and self._look.contains(path):
            self.file(path)

    def module(self, name: str, roots: Iterable[Path]) -> None:
        """Watch a Python module and its package, wherever the roots have it."""
        parts = name.split(".")
        for root in roots if all(part.isidentifier() for part in parts) else ():
            base = root.joinpath(*parts)
            for file in (base.with_suffix(".py"), base / "__init__.py", base / "__main__.py"):
                self.file(file)
            self.package(root / parts[0])
        self.note(f"what {name} imports")

    def package_json(self, path: Path) -> Manifest:
        """Read a manifest that is watched; one that cannot be read says nothing."""
        return self._manifest(path, read_package_json)

    def pyproject(self, path: Path) -> Manifest:
        """Read a manifest that is watched; likewise."""
        return self._manifest(path, read_pyproject)

    def _manifest(self, path: Path, read: Callable[[Path], Manifest | None]) -> Manifest:
        found = self._look.manifest(path, read)
        if found is None:
            self.note(f"what {path.name} says, which cannot be read")
        return found or {}

    def _add(self, path: Path, found: FolderFile) -> None:
        if path not in self.files and len(self.files) >= MAX_FILES:
            self.note(f"what it names beyond {MAX_FILES} files")
        else:
            self.files[path] = found

    def _upwards(self, place: Path) -> Iterator[Path]:
        """Return a folder and those above it, as far as they are guarded."""
        place = _plain(place)
        for number, folder in enumerate((place, *place.parents[:MAX_UPWARDS])):
            if not self._look.contains(folder):
                return
            if number == MAX_UPWARDS:
                self.note(f"what lies more than {MAX_UPWARDS} folders above where it starts")
                return
            yield folder


def _plain(path: Path) -> Path:
    """Resolve ``..``, which leads where the system would follow it to."""
    if ".." not in str(path):
        return path
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path
