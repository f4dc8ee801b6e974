"""Skills of servers (SEP-2640): entries of their lists, and whether a file is what one says of it.

A digest proves only that a file is the one that was listed: both are the server's.
"""

import hashlib
import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final
from urllib.parse import unquote

from tui.engine.files.saved import joined_contents
from tui.engine.mcp.catalog.argument_rules import folded
from tui.engine.mcp.catalog.marks import marks_of
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.settings.sources.document import read_yaml
from tui.model.bounded_json import canonical_text
from tui.model.catalog import SkillView
from tui.model.frozen import Frozen
from tui.model.input.arguments import reveal
from tui.model.servers import ServerId
from tui.text import is_shown_whole, sanitize, sanitize_line

SKILLS: Final = "io.modelcontextprotocol/skills"
"""The extension by which a server says that it has skills."""

FILE_NAME: Final = "SKILL.md"

MAX_SKILLS: Final = 1_000
"""Skills of one server that are taken."""

MAX_FILES: Final = 512
"""Files of one skill, as the extension has it."""

MAX_BYTES: Final = 16_777_216
"""Bytes of all files of one skill, likewise."""

MAX_TEXT: Final = 500_000
"""Bytes of a SKILL.md that is loaded."""

MAX_DESCRIPTION: Final = 1_024
"""Characters of a description, as Agent Skills has it; of a longer one the rest is cut."""

MAX_FRONT_MATTER: Final = 16_000
"""Bytes of front matter that are parsed: half a second at worst, in a thread."""

_NAME: Final = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_FRONT_MATTER: Final = re.compile(rb"(?ms)(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$")
_SAYS: Final = frozenset({"name", "description", "license", "compatibility", "metadata"})
"""Fields that only say something; any other, such as `allowed-tools`, would have a host act."""


class SkillError(ToolCallError):
    """A skill or a file of it is not used; the text says why, for the model as well."""


class Skill(Frozen):
    """A skill as its server describes it; each text is safe to show.

    Attributes:
        uri: The address of its SKILL.md.
        view: Its name here, its description and why it is not used.
        front_matter: What SKILL.md has to begin with.
        files: The size in bytes and the digest of all its files, by their paths from SKILL.md.
        definition: All that the user's trust is bound to, as lines of text.
        definition_hash: SHA-256 (hex) of that.
    """

    uri: str
    view: SkillView
    front_matter: Mapping[str, Any]
    files: Mapping[str, tuple[int, str]]
    definition: str
    definition_hash: str

    @property
    def folder(self) -> str:
        """What the addresses of all its files begin with."""
        return self.uri.removesuffix(FILE_NAME)

    @property
    def ignored(self) -> tuple[str, ...]:
        """The fields of its front matter that a host might act on; gemdeck does not."""
        return tuple(sanitize_line(key, 64) for key in self.front_matter if key not in _SAYS)

    def address(self, path: str) -> str:
        """Return the address of a file by its path or address, if it is listed."""
        inside = posixpath.normpath(path.removeprefix(self.folder))
        if inside not in self.files:
            raise SkillError(f"{sanitize_line(path, 200)} is not one of the skill's files.")
        return self.folder + inside

    def check(self, uri: str, answer: Mapping[str, Any]) -> bytes:
        """Return the bytes of a file that was read, if they are what the entry says.

        Args:
            uri: Its address.
            answer: The result of ``resources/read`` as the server wrote it.
        """
        path = uri.removeprefix(self.folder)
        size, digest = self.files[path]
        try:
            data = joined_contents(answer["contents"])
        except ValueError as error:
            raise SkillError("The server sent a file that is not valid base64.") from error
        if len(data) != size:
            words = f"it has {len(data):,} bytes, not {size:,} as listed"
        elif f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            words = "its digest differs from the listed one"
        else:
            return data
        words = f"{path} does not match the skill's entry: {words}. It was not used."
        raise SkillError(f"{words} If the skill has changed, load it again to see how.")

    def read(self, answer: Mapping[str, Any]) -> str:
        """Return the text of SKILL.md, if it is what the entry says. Takes a while."""
        data = self.check(self.uri, answer)
        found = _FRONT_MATTER.match(data[: MAX_FRONT_MATTER + 16])
        try:
            text = data.decode()
            written = canonical_text(read_yaml(found[1].decode())) if found else ""
        except (ValueError, TypeError) as error:  # odd keys
            raise SkillError(f"The skill's {FILE_NAME} cannot be read.") from error
        if written != canonical_text(self.front_matter):
            raise SkillError(f"The front matter of {FILE_NAME} does not match the skill's entry.")
        return text


class OpenSkills(dict[tuple[ServerId, str], Skill]):
    """The skills of one conversation by server and address, as they were when they were loaded."""

    def restore(self, kept: object) -> None:
        """Go on with the skills of a saved conversation, of which no file is known yet."""
        self.clear()
        for one in kept if isinstance(kept, list) else ():
            match one:
                case [str(server), str(uri)]:
                    view = SkillView(sanitize_line(uri), "")
                    self[ServerId(server), uri] = Skill(uri, view, {}, {}, "", "")

    def around(self, server: ServerId, uri: str, listed: Iterable[Skill]) -> Skill | None:
        """Return the skill, loaded or only listed, in whose folder an address of a server lies."""
        own = (skill for (owner, _), skill in self.items() if owner == server)
        place, known = _spelling(uri), chain(own, listed)
        return next((one for one in known if place.startswith(_spelling(one.folder))), None)

    def caution(self, server: ServerId) -> str:
        """Say which skills of others may have led to a read of a server, if there are any."""
        others = [(one, skill) for (one, _), skill in self.items() if one != server]
        names = ", ".join(f"{owner}:{skill.view.name}" for owner, skill in others)
        return names and f"Another server's loaded skill may have prompted this: {names}."


def _spelling(uri: str) -> str:
    """Return what all spellings of an address share that some server may take for the same."""
    return folded(f"{posixpath.normpath(unquote(unquote(uri)))}/")


def read_skills(items: Sequence[object]) -> tuple[Skill, ...]:
    """Read a list of entries; what is none is left out. Of equal names each gets its address."""
    found = {one.uri: one for item in items[:MAX_SKILLS] if (one := read_skill(item)) is not None}
    names = Counter(one.view.name for one in found.values())
    return tuple(
        one if names[one.view.name] == 1 else replace(one, view=replace(one.view, name=one.uri))
        for one in found.values()
    )


def read_skill(item: Any) -> Skill | None:  # noqa: ANN401 - any JSON
    """Read an entry; None if it is none that can be named."""
    match item:
        case {"uri": str(uri), "frontmatter": {"name": str(name), "description": str(said)} as own}:
            listed = item.get("resources")
        case _:
            return None
    if not (_NAME.fullmatch(name) and _is_plain(uri)):
        return None
    files = _files(uri.removesuffix(FILE_NAME), listed if isinstance(listed, list) else [])
    total = sum(size for size, _ in files.values())
    front, problem = json.dumps(own, indent=2, sort_keys=True, ensure_ascii=False), ""
    if listed == "dynamic":
        problem = "its files are generated anew each time, so they cannot be checked"
    elif FILE_NAME not in files or not uri.endswith(f"/{name}/{FILE_NAME}"):
        problem = "its file list is incomplete: every file needs a size and a digest"
    elif len(files) > MAX_FILES or total > MAX_BYTES or files[FILE_NAME][0] > MAX_TEXT:
        problem = f"it is too large: {len(files):,} files, {total:,} bytes"
    elif len(front) > 2 * MAX_FRONT_MATTER:
        problem, front = "its front matter is too long", ""
    lines = sorted(f"{one} · {size:,} bytes · {digest}" for one, (size, digest) in files.items())
    definition = "\n".join((uri, sanitize(reveal(front)), *lines))
    digest = hashlib.sha256(definition.encode()).hexdigest()
    view = SkillView(name, sanitize(said, MAX_DESCRIPTION), problem, marks_of(own))
    return Skill(uri, view, own, files, definition, digest)


def _is_plain(uri: str) -> bool:
    """Return whether an address is nothing else, such as a sentence, where it stands in a text."""
    return is_shown_whole(uri) and not set(uri) & set(" \\?#")


def _files(folder: str, listed: Sequence[Any]) -> Mapping[str, tuple[int, str]]:
    """Read a list of files; it is empty if one of them does not belong there."""
    files: dict[str, tuple[int, str]] = {}
    for item in listed[: MAX_FILES + 1]:
        match item:
            case {"uri": str(uri), "digest": str(digest), "size": int(size)}:
                path = uri.removeprefix(folder)
            case _:
                return {}
        is_inside = path != uri and not {"", ".", ".."} & set(unquote(path).split("/"))
        is_new = path not in files and _is_plain(uri)
        is_sound = _DIGEST.fullmatch(digest) and type(size) is int and size >= 0
        if not (is_inside and is_new and is_sound):
            return {}
        files[path] = size, digest
    return files
