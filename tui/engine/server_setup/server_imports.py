"""Servers of other clients: shown in full, and written to the settings where the user says so."""

import os
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.expansion import references_in
from tui.engine.files.paths import GEMINI_FOLDER, shown_path
from tui.engine.keys.secret_store import SecretStore, without_literals
from tui.engine.mcp.catalog.offer import not_included
from tui.engine.reload import read_settings
from tui.engine.settings import importers
from tui.engine.settings.edits import (
    EXCLUDED,
    EditError,
    add_server,
    remove_server,
    servers_in,
    set_excluded,
)
from tui.engine.settings.entries import reaches
from tui.engine.settings.importers import CLIENTS, Candidate, ClientFile, Machine, find_files
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.sources.source import FILE_NAME, Report, leads_out, own_files
from tui.engine.settings.typed_entries import SANDBOX, EntryFields, entry_difference, is_address
from tui.engine.trust.content import entry_cautions
from tui.engine.trust.opened_folder import OpenedFolder
from tui.engine.trust.own_servers import words_on, written_keys
from tui.model.imports import ImportOffer, ImportState
from tui.model.input.arguments import spelled
from tui.model.servers import OWN, Origin, ServerId
from tui.text import sanitize_line


class OwnEdits:
    """Changes servers in the settings; a gemdeck that runs takes that without a question.

    A trusted folder stays trusted with what an edit makes of it, and a new server of the user
    counts as accepted. Blocks; for threads only.

    Args:
        folder: The opened folder.
        home: The user's home.
        state: The state folder, or None.
        on_problem: Takes what is wrong, such as with a state file.
    """

    def __init__(
        self, folder: Path, home: Path, state: Path | None, on_problem: Callable[[str], None]
    ) -> None:
        self._home = home
        self._opened = OpenedFolder(folder, home, state, (), on_problem, attended=False)

    def file_of(self, scope: str) -> Path:
        """Return the file of a scope: ``user``, ``folder`` or ``project``.

        Raises:
            EditError: If the project's leads out of it, or is the user's own, or there can be no
                settings of the user's for this folder.
        """
        if scope == Origin.FOLDER:
            real = Path(os.path.realpath(self._opened.folder))
            for path in own_files(self._opened.state, real, self._home):
                return path
            raise EditError("gemdeck has no private folder outside this one to keep them in.")
        folder = self._home if scope == "user" else self._opened.folder
        path = folder / GEMINI_FOLDER / FILE_NAME
        if scope == "project" and folder == Path(os.path.realpath(self._home)):
            raise EditError("in your home folder, these are your own settings: use the scope user.")
        if scope == "project" and leads_out(path, folder, Report(self._home)):
            raise EditError("links outside this folder, so it was not written.")
        return path

    def add(
        self, scope: str, name: str, entry: Mapping[str, Any], replaces: object | None = None
    ) -> tuple[Path, str]:
        """Write an entry, in the place of one that the user saw.

        Returns:
            The file, and why the entry does not count, or an empty string.

        Raises:
            EditError: If it cannot be written.
        """
        path = self.file_of(scope)
        if scope != Origin.PROJECT:
            if isinstance(replaces, dict):
                self._opened.store.add(written_keys(replaces, self._opened.salt)[1], is_gone=True)
            self._opened.store.add(written_keys(entry, self._opened.salt)[1])
        now = self.change(path, name, lambda: add_server(path, name, entry, replaces))
        why = "this folder is never trusted. To be asked again: gemdeck trust forget"
        for source in [one.entry.source for one in now.servers if one.id == name]:
            why = "" if source == shown_path(path, self._home) else f"{source} overrides it."
        return path, why

    def remove(self, scope: str, name: str) -> Path:
        """Remove an entry, and return the file.

        Raises:
            NoSuchServerError: If there is none.
            EditError: If it cannot be written.
        """
        path = self.file_of(scope)
        entry = servers_in(path).get(name)
        self.change(path, name, lambda: remove_server(path, name))
        if scope != Origin.PROJECT and isinstance(entry, dict):
            self._opened.store.add(written_keys(entry, self._opened.salt)[1], is_gone=True)
        return path

    def exclude(self, one: ServerDefinition, tool: str, *, off: bool) -> Path:
        """Let a server's entry leave a tool out, or no longer, and return the file.

        Raises:
            EditError: If the entry is not the user's, or cannot be written.
        """
        origin = one.entry.origin
        path = self.file_of(origin.value if origin in OWN else "user")
        entry = servers_in(path).get(one.id) if origin in OWN else None
        if not isinstance(entry, dict):
            place = one.entry.source or origin.value
            raise EditError(f"{one.id} is defined in {place}.")
        if "$" in tool or "(" in tool:
            raise EditError("$ and ( in the name have another meaning in a list of tools.")
        listed = entry.get(EXCLUDED, [])
        if not isinstance(listed, list):
            raise EditError(f"{EXCLUDED} must be a list: [ … ].")
        kept = [word for word in listed if f"{word}(".partition("(")[0] != tool]
        if off:
            kept = listed if len(kept) < len(listed) else [*listed, tool]
        after = {**entry, EXCLUDED: kept}
        if not off and not_included([tool], replace(one, exclude_tools=frozenset(kept))):
            raise EditError(f"includeTools of {one.id} does not list it.")
        store, salt = self._opened.store, self._opened.salt
        # an edit of a tool lifts no refusal
        if not words_on(written_keys(entry, salt), store.refused(), store.added()):
            store.add(written_keys(after, salt)[1])
        self.change(path, one.id, lambda: set_excluded(path, one.id, kept))
        return path

    def change(self, path: Path, name: str, edit: Callable[[], None]) -> LoadedSettings:
        """Let a server's entry in a file be changed, and keep the folder trusted if it was."""
        opened = self._opened
        before = read_settings(opened, None).seen
        edit()
        now = read_settings(opened, None)
        opened.trust_edit(before, now.seen, ServerId(name))
        if path.exists():
            os.utime(path)  # who read it before the folder was trusted again reads it once more
        return now.settings


Offered = list[tuple[ClientFile, tuple[ImportOffer, ...]]]
"""Files of clients, each with what can be taken over of it."""


@dataclass
class ServerImports:
    """Takes over servers of other clients. Blocks; for threads only.

    Attributes:
        machine: Where files are looked for.
        edits: Writes the settings.
        scope: Whose settings; see `OwnEdits.file_of`.
        secrets: Keeps the secrets of entries, which then name them; None leaves them there.
        given: What the user gives of what entries ask for, as `importers.asked` names it.
    """

    machine: Machine
    edits: OwnEdits
    scope: str = "user"
    secrets: SecretStore | None = None
    given: frozenset[str] = frozenset()
    _entries: dict[ImportOffer, Mapping[str, Any]] = field(default_factory=dict)

    def find(self) -> Offered:
        """Read the files of all clients."""
        return self.offered(find_files(self.machine))

    def offered(self, files: Iterable[ClientFile]) -> Offered:
        """Say what stands in files and what could be taken over.

        Raises:
            EditError: If the settings cannot be read.
        """
        target = self.edits.file_of(self.scope)
        there = servers_in(target)
        rest = (file for file in files if file.path != target)
        return [(file, tuple(self._offer(one, there) for one in file.candidates)) for file in rest]

    def take(self, offer: ImportOffer) -> ImportOffer:
        """Write a server to the settings if it is new there; return how it stands then.

        Raises:
            EditError: If it cannot be written.
            CredentialError: If its secrets cannot be kept.
        """
        if offer.state is not ImportState.NEW or offer.server in servers_in(
            self.edits.file_of(self.scope)
        ):
            return offer
        entry = self._entries[offer]
        if self.secrets is not None:
            entry, literal = without_literals(offer.server, entry)
            self.secrets.set_all(literal)
        self.edits.add(self.scope, offer.server, entry)
        return replace(offer, state=ImportState.WRITTEN)

    def _offer(self, candidate: Candidate, there: Mapping[str, object]) -> ImportOffer:
        left = frozenset(importers.asked(candidate.entry)) - self.given
        entry = importers.withheld(candidate.entry, left)
        inputs = [n for n in sorted(left) if importers.ASKED_FOR.format(n) in candidate.warnings]
        replaced = {
            importers.ASKED_FOR.format(name): f"Not passed: {name}, which the client prompts "
            f"for. Import with --give {name} and set {name}."
            for name in inputs
        }
        notes = [replaced.get(words, words) for words in candidate.warnings]
        shown = entry if reaches(entry) else candidate.entry
        if shown is not entry and reaches(shown):
            target = [shown.get(key) for key in ("command", "url", "httpUrl")]
            names = sorted(left.intersection(importers.asked(target)))
            gives = " ".join(f"--give {name}" for name in names)
            what = "command" if shown.get("command") else "address"
            notes.append(f"Its {what} needs {', '.join(names)}: import it with {gives}.")
        offer = replace(
            shown_entry(candidate.name, shown, left.difference(inputs)),
            client=CLIENTS[candidate.client].title,
            file=candidate.file,
            state=_state(candidate, entry, there),
            notes=(*notes, *filter(None, [sanitize_line(candidate.problem)])),
        )
        self._entries[offer] = entry
        return offer


def shown_entry(name: str, entry: Mapping[str, Any], left: Set[str] = frozenset()) -> ImportOffer:
    """Show an entry in full, but for its secrets, and name what was left out of it."""
    shown = EntryFields(entry)
    words = () if is_address(shown.target) else filter(None, (shown.target, *shown.words))
    missing = [f"Omitted, because only you can pass it on: {', '.join(sorted(left))}."] * bool(left)
    keys = {*shown.others, SANDBOX} - {"cwd"}
    others = entry_difference(None, {key: value for key, value in entry.items() if key in keys})
    return ImportOffer(
        client="",
        file="",
        server=name,
        state=ImportState.NEW,
        command=tuple(map(spelled, words)),
        address=spelled(shown.target) if is_address(shown.target) else "",
        cwd=spelled(str(entry["cwd"])) if entry.get("cwd") else "",
        env=tuple(map(spelled, shown.variables)),
        headers=tuple(map(spelled, shown.fields)),
        warnings=(*map(sanitize_line, missing), *entry_cautions(entry, references_in(dict(entry)))),
        notes=(" ".join(line.text.strip() for line in others),) if others else (),
    )


def _state(one: Candidate, entry: Mapping[str, Any], there: Mapping[str, object]) -> ImportState:
    if one.problem or not reaches(entry):
        return ImportState.UNUSABLE
    if one.name not in there:
        return ImportState.NEW
    return ImportState.THERE if there[one.name] in (one.entry, entry) else ImportState.TAKEN
