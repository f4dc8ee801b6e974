"""Servers of other clients: shown in full, and written to the settings where the user says so."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tui.engine.commands.own_edits import OwnEdits, servers_in
from tui.engine.definitions.expansion import references_in
from tui.engine.settings.importers.candidates import (
    TITLES,
    Candidate,
    ClientFile,
    Machine,
    find_files,
)
from tui.engine.trust.warnings import (
    address_cautions,
    command_cautions,
    sign_in_cautions,
    spelled,
    variable_cautions,
)
from tui.model.trust import ImportOffer, ImportState
from tui.text import sanitize_line


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A client's file, and the servers in it; `problem` says why it cannot be used."""

    client: str
    file: str
    offers: tuple[ImportOffer, ...] = ()
    problem: str = ""


@dataclass
class ServerImports:
    """Takes over servers of other clients. Blocks; for threads only.

    Attributes:
        machine: Where files are looked for.
        edits: Writes the settings.
        scope: Whose settings: ``user`` or ``project``.
    """

    machine: Machine
    edits: OwnEdits
    scope: str = "user"
    _entries: dict[ImportOffer, Mapping[str, Any]] = field(default_factory=dict)

    def find(self) -> list[OfferedFile]:
        """Read the files of all clients."""
        return self.offered(find_files(self.machine))

    def offered(self, files: Iterable[ClientFile]) -> list[OfferedFile]:
        """Say what stands in files and what could be taken over.

        Raises:
            EditError: If the settings cannot be read.
        """
        there = servers_in(self.edits.file_of(self.scope))
        target = self.edits.file_of(self.scope)
        found = []
        for one in files:
            if one.path != target:
                offers = tuple(self._offer(candidate, there) for candidate in one.candidates)
                problem = sanitize_line(one.problem)
                found.append(OfferedFile(one.client, one.file, offers, problem))
        return found

    def take(self, offer: ImportOffer) -> ImportOffer:
        """Write a server to the settings if it is new there; return how it stands then.

        Raises:
            EditError: If it cannot be written.
        """
        if offer.state is not ImportState.NEW or offer.server in servers_in(
            self.edits.file_of(self.scope)
        ):
            return offer
        self.edits.add(self.scope, offer.server, self._entries[offer])
        return replace(offer, state=ImportState.WRITTEN)

    def _offer(self, candidate: Candidate, there: Mapping[str, object]) -> ImportOffer:
        entry = candidate.entry
        command = entry.get("command")
        words = [str(command), *_texts(entry.get("args"))] if command else []
        address = str(entry.get("httpUrl") or entry.get("url") or "")
        offer = ImportOffer(
            client=TITLES[candidate.client],
            file=candidate.file,
            server=candidate.name,
            state=_state(candidate, there),
            command=tuple(map(spelled, words)),
            address=spelled(address) if address and not words else "",
            cwd=spelled(str(entry["cwd"])) if entry.get("cwd") else "",
            env=tuple(map(spelled, _names(entry.get("env")))),
            headers=tuple(map(spelled, _names(entry.get("headers")))),
            warnings=tuple(_cautions(words, address, entry)),
            notes=(*candidate.warnings, *filter(None, [sanitize_line(candidate.problem)])),
        )
        self._entries[offer] = entry
        return offer


def _state(candidate: Candidate, there: Mapping[str, object]) -> ImportState:
    if candidate.problem:
        return ImportState.UNUSABLE
    if candidate.name not in there:
        return ImportState.NEW
    is_same = there[candidate.name] == candidate.entry
    return ImportState.THERE if is_same else ImportState.TAKEN


def _cautions(words: Sequence[str], address: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Return what deserves a second look."""
    if words:
        yield from command_cautions(words[0], words[1:])
    yield from variable_cautions(_names(entry.get("env")), references_in(dict(entry)))
    if address:
        yield from address_cautions(address)
    yield from sign_in_cautions(entry.get("oauth"))


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, dict) else ()
