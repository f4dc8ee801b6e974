"""Grants: compared as whole records, field by field, never as joined names."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import AliasPath, Field, PlainSerializer, PlainValidator

from tui.engine.background import OrderedWorker
from tui.engine.files.entry_format import EntryFormat, PathText
from tui.engine.files.state_file import Stamp, StateFile
from tui.engine.mcp.catalog.argument_rules import ArgumentRule
from tui.engine.mcp.catalog.offer import Tool
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool
from tui.model.consent import MAX_CONDITIONS, Condition, ConditionKind, Effect, GrantId, GrantScope
from tui.model.frozen import Frozen

MAX_GRANTS: Final = 10_000
"""Grants that are kept; of more, the oldest permissions go first."""

MAX_LABEL: Final = 256
"""Characters of a name that a record keeps to be shown."""

_ID_LENGTH: Final = 32

FILE_NAME: Final = "grants.json"

_KEY: Final = "grants"


def _read_name(text: object) -> str | None:
    if text is None:
        return None
    name = json.loads(text) if isinstance(text, str) else None
    if not isinstance(name, str):
        raise ValueError("no tool's name")
    return name


def _write_name(name: str | None) -> str | None:
    return None if name is None else json.dumps(name)


def _read_scope(name: object) -> GrantScope:
    if name not in (GrantScope.FOLDER.name, GrantScope.EVERYWHERE.name):
        raise ValueError("no scope that is kept")
    return GrantScope[str(name)]


def _read_condition(entry: object) -> Condition:
    """Read what a rule says of an argument; two texts were once a name and the one value."""
    texts = entry if isinstance(entry, list) and all(isinstance(one, str) for one in entry) else []
    name, kind, value = (texts[0], "is", texts[1]) if len(texts) == 2 else texts
    if not (condition := Condition(name, ConditionKind(kind), value)).is_valid:
        raise ValueError("no condition")
    return condition


_ToolName = Annotated[str | None, PlainValidator(_read_name), PlainSerializer(_write_name)]
"""Stands in the file as JSON text, since it may be no valid Unicode."""

_Scope = Annotated[GrantScope, PlainValidator(_read_scope), PlainSerializer(lambda s: s.name)]
"""Stands in the file by its name; its value is a word on the screen."""

_as_texts: Final = PlainSerializer(lambda one: [one.name, one.kind.value, one.value])
_Condition = Annotated[Condition, PlainValidator(_read_condition), _as_texts]
"""Stands in the file as three texts, which a gemdeck that knows two takes for no rule."""


class Grant(Frozen):
    """One rule on one tool, or on all of a server. Two are the same if all fields are equal.

    Permission is for one tool in one definition; only denying and asking may be for all tools
    or for every definition, since they can only take away.

    Attributes:
        effect: What it says.
        fingerprint: Which server, by what it is; for another client also which client.
        tool: The tool's name as the server spells it; None for all of the server.
        definition_hash: The definition that was shown; empty for every definition.
        scope: How long and where it holds.
        folder: The real path of the folder it holds in; empty for other scopes.
        conditions: What it wants of the arguments; without any they may be anything.
    """

    effect: Effect
    fingerprint: str
    tool: _ToolName
    definition_hash: str
    scope: _Scope
    folder: PathText
    conditions: tuple[_Condition, ...]

    @classmethod
    def allowing(
        cls,
        tool: OfferedTool,
        scope: GrantScope,
        folder: str = "",
        conditions: tuple[Condition, ...] = (),
    ) -> "Grant":
        """Return the grant for a tool in its present definition and nothing else."""
        kept = folder if scope is GrantScope.FOLDER else ""
        what = tool.bound_to, tool.name, tool.definition_hash
        return cls(Effect.ALLOW, *what, scope, kept, conditions)

    @classmethod
    def rewording(cls, fingerprint: str, tool: Tool) -> "Grant":
        """Return the grant for a tool with any description, and with nothing else changed."""
        what = fingerprint, tool.name, tool.wordless_hash
        return cls(Effect.REWORD, *what, GrantScope.EVERYWHERE, "", ())

    @property
    def is_valid(self) -> bool:
        """Whether it says enough to be obeyed."""
        is_exact = self.tool is not None and bool(self.definition_hash)
        has_place = (self.scope is GrantScope.FOLDER) == bool(self.folder)
        says_enough = is_exact or self.effect is not Effect.ALLOW
        is_bounded = len(self.conditions) <= MAX_CONDITIONS
        is_clear = is_bounded and all(condition.is_valid for condition in self.conditions)
        return bool(self.fingerprint) and has_place and says_enough and is_clear

    @property
    def id(self) -> GrantId:
        """A name that no other grant has: a hash over all fields, written as JSON."""
        text = json.dumps(_GRANTS.write(self), sort_keys=True)
        return GrantId(hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH])

    def is_on(self, fingerprint: str, tool: str, definition_hash: str, folder: str) -> bool:
        """Return whether it is about a tool of a server in a folder, whatever the arguments."""
        return (
            bool(fingerprint)
            and self.fingerprint == fingerprint
            and self.tool in {None, tool}
            and self.definition_hash in {"", definition_hash}
            and self.folder in {"", folder}
        )

    def covers(
        self, tool: OfferedTool, arguments: JsonObject | None, folder: str, start: str = ""
    ) -> bool:
        """Return whether the grant applies to a call.

        Args:
            tool: The tool in the definition that the model was offered.
            arguments: The arguments of the call; None asks for grants without conditions.
            folder: The real path of the opened folder.
            start: Where the tool's server starts; see `ArgumentRule`.
        """
        server = tool.bound_to if self.effect is Effect.ALLOW else tool.fingerprint
        if not self.is_on(server, tool.name, tool.definition_hash, folder):
            return False
        rule = ArgumentRule(self.conditions, start, folder)
        return (rule.allows if self.effect is Effect.ALLOW else rule.denies)(arguments)


def _label(place: int) -> Any:  # noqa: ANN401 - as pydantic types it
    """Return where one of the two names stands in the file, in ``label``."""
    return Field(validation_alias=AliasPath("label", place), max_length=MAX_LABEL, exclude=True)


class GrantNote(Frozen):
    """What is remembered beside a grant; no part of its identity.

    Attributes:
        server: The server's name when it was given, as shown.
        tool: The tool's name, as shown.
        words: The answer it came of, such as ``always this tool``.
        granted_at: When, in seconds since the epoch; None where nobody knows.
        used_at: When a call last rested on it; None for never.
    """

    server: Annotated[str, _label(0)]
    tool: Annotated[str, _label(1)]
    words: str = ""
    granted_at: float | None = None
    used_at: float | None = None


class GrantSet(dict[Grant, GrantNote]):
    """Grants in memory, the oldest first, each with what is remembered beside it."""

    def named(self, grant: GrantId) -> Grant | None:
        return next((one for one in self if one.id == grant), None)

    def put(self, grant: Grant, note: GrantNote) -> None:
        """Add a grant, or change what is remembered beside it. An invalid one is left out.

        Of more than `MAX_GRANTS` the permission that was added first goes.
        """
        if not grant.is_valid:
            return
        self[grant] = note
        if len(self) > MAX_GRANTS:
            del self[next((known for known in self if known.effect is Effect.ALLOW), grant)]

    def find(
        self, tool: OfferedTool, arguments: JsonObject | None, folder: str, start: str = ""
    ) -> list[Grant]:
        """Return the grants that apply to a call; see `Grant.covers`."""
        return [grant for grant in self if grant.covers(tool, arguments, folder, start)]


def read_all(entries: object) -> dict[Grant, GrantNote]:
    """Read the entries of the file; one that is odd in any way is passed over."""
    found: dict[Grant, GrantNote] = {}
    for entry in entries[-MAX_GRANTS:] if isinstance(entries, list) else ():
        grant = _GRANTS.read(entry)
        if grant is not None and grant.is_valid:
            found[grant] = _NOTES.read(entry) or GrantNote("", "")
    return found


def write_all(grants: Mapping[Grant, GrantNote]) -> list[dict[str, Any]]:
    """Write the saved grants among these for the file: permissions first, the oldest first."""
    saved = [grant for grant in grants if grant.scope is not GrantScope.SESSION]
    saved.sort(key=lambda g: (g.effect is not Effect.ALLOW, grants[g].granted_at or 0.0))
    return [
        _GRANTS.write(grant) | {"label": [note.server, note.tool]} | _NOTES.write(note)
        for grant, note in ((grant, grants[grant]) for grant in saved[-MAX_GRANTS:])
    ]


_GRANTS: Final = EntryFormat(
    Grant, {"fingerprint": "server", "definition_hash": "definition", "conditions": "arguments"}
)
_NOTES: Final = EntryFormat(GrantNote, {"granted_at": "granted", "used_at": "used"})


Change = Callable[[dict[Grant, GrantNote]], dict[Grant, GrantNote]]
"""Makes the saved grants of those that the file holds; does nothing but compute."""


class GrantBook:
    """The grants of this run and the saved ones.

    Only changes are written, onto what the file holds at that moment: another gemdeck's grants
    stay, and what it revoked does not come back. What it revoked ends here, too, with the next
    `refresh`. Lives on one event loop.

    Args:
        file: The file of saved grants; without one all grants last for this run.
        clock: Gives seconds since the epoch.

    Attributes:
        grants: The grants that hold now.
        on_used: Called when a grant was used; when that was is written at the end.
    """

    def __init__(
        self, file: StateFile | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.grants = GrantSet()
        self.on_used: Callable[[], None] = lambda: None
        self._file, self._clock = file, clock
        self._worker = OrderedWorker()
        self._submitted = self._written = 0
        self._stamp: Stamp = ()
        self._refreshing = asyncio.Lock()
        self._used: dict[Grant, float] = {}

    @property
    def is_kept(self) -> bool:
        """Whether saved grants reach the disk; also where none are to be saved."""
        return self._file is None or self._file.is_kept

    async def refresh(self) -> bool:
        """Reload the file if another gemdeck has written it.

        While a change of our own waits to be written, nothing is read: it would be lost. Those
        who wait go on in the order in which they came.

        Returns:
            Whether other grants hold than before.
        """
        file = self._file
        if file is None:
            return False
        async with self._refreshing:
            changes = self._submitted
            if changes != self._written:
                return False
            found = await asyncio.to_thread(_read_if_new, file, self._stamp)
            if found is None or self._submitted != changes:
                return False
            self._stamp, saved = found
            return self._take(saved)

    async def aclose(self) -> None:
        """Write what is still to be written."""
        self._write_uses()
        await asyncio.to_thread(self._worker.close)

    def add(self, grants: Mapping[Grant, GrantNote]) -> None:
        """Add grants, as given now."""
        now = self._clock()
        added = {grant: replace(note, granted_at=now) for grant, note in grants.items()}
        for grant, note in added.items():
            self.grants.put(grant, note)
        saved = {g: note for g, note in added.items() if g.scope is not GrantScope.SESSION}
        if saved:
            self._change(lambda known: {**known, **saved})

    def remove(self, grant: Grant) -> None:
        """Forget a grant."""
        self.grants.pop(grant, None)
        self._used.pop(grant, None)
        if grant.scope is not GrantScope.SESSION:
            self._change(lambda known: {g: note for g, note in known.items() if g != grant})

    def save(self, grant: Grant, folder: str) -> None:
        """Let a grant of this session hold for a folder, also in later runs."""
        note = self.grants[grant]
        self.remove(grant)
        self.add({replace(grant, scope=GrantScope.FOLDER, folder=folder): note})

    def use(self, grant: Grant) -> None:
        """Note that a call rests on a grant now."""
        if grant not in self.grants:
            return
        now = self._clock()
        self.grants.put(grant, replace(self.grants[grant], used_at=now))
        self._used[grant] = now
        self.on_used()

    def _take(self, saved: Mapping[Grant, GrantNote]) -> bool:
        """Replace the saved grants; return whether they changed."""
        known = {grant for grant in self.grants if grant.scope is not GrantScope.SESSION}
        for grant in known - saved.keys():
            self.grants.pop(grant, None)
            self._used.pop(grant, None)
        for grant, note in saved.items():
            self.grants.put(grant, _used(note, self._used.get(grant)))
        return known != saved.keys()

    def _write_uses(self) -> None:
        """Write when grants were used last; one that another gemdeck revoked stays away."""
        used = {g: when for g, when in self._used.items() if g.scope is not GrantScope.SESSION}
        self._used.clear()
        if used:
            self._change(lambda known: {g: _used(note, used.get(g)) for g, note in known.items()})

    def _change(self, change: Change) -> None:
        file = self._file
        if file is not None:
            self._submitted += 1
            self._worker.submit(lambda: self._write(file, change))

    def _write(self, file: StateFile, change: Change) -> None:
        """Write a change, in the worker's thread."""

        def changed(content: dict[str, Any]) -> dict[str, Any]:
            return {**content, _KEY: write_all(change(read_all(content.get(_KEY))))}

        try:
            file.update(changed)
        finally:
            self._written += 1


def _used(note: GrantNote, when: float | None) -> GrantNote:
    """Note the later one of two uses."""
    return note if when is None else replace(note, used_at=max(when, note.used_at or when))


def _read_if_new(file: StateFile, known: Stamp) -> tuple[Stamp, dict[Grant, GrantNote]] | None:
    """Read the file, unless it is the one that is known already. Blocks."""
    stamp = file.stamp()
    if stamp == known:
        return None
    return stamp, read_all((file.load() or {}).get(_KEY))
