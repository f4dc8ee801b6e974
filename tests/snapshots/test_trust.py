"""What the questions on folders and changed tools look like, and the list of grants."""

from dataclasses import replace
from typing import Final

import pytest

from tests.snapshots.decks import HISTORIES, Album, deck
from tests.support.samples import SERVER, one_of_each
from tests.ui.consent.samples import DIFFERENCE, GIT, NPX, SEARCH, changed_tools, trust
from tests.ui.consent.test_grants import SAVED, SESSION, SETTING
from tui.model import events as e
from tui.model.catalog import Catalog
from tui.model.consent import Effect, ToolStanding
from tui.model.servers import Failure, ServerStatus
from tui.model.trust import FolderTrust

_READY: Final = HISTORIES["ready"]
_UNTRUSTED: Final = e.FolderTrustChanged(FolderTrust.UNTRUSTED)
_CHANGED: Final = e.FolderTrustChanged(FolderTrust.CHANGED)
_TRUSTED: Final = e.FolderTrustChanged(FolderTrust.TRUSTED)


def _changed_catalog() -> e.CatalogChanged:
    """Give the catalog of a server whose only tool changed."""
    offered = one_of_each()[e.CatalogChanged]
    assert isinstance(offered, e.CatalogChanged)
    (tool,) = offered.catalog.tools
    return e.CatalogChanged(SERVER, Catalog(tools=(replace(tool, changed=True),)))


PICTURES: Final[dict[str, tuple[tuple[e.Event, ...], tuple[str, ...]]]] = {
    "trust": ((*_READY, _UNTRUSTED, e.RequestRaised(trust())), ("end",)),
    "trust-changed": (
        (
            *_READY,
            _CHANGED,
            e.RequestRaised(
                trust(servers=(replace(GIT, change="changed"), SEARCH), difference=DIFFERENCE)
            ),
        ),
        (),
    ),
    "trust-starts": (
        (
            *_READY,
            _UNTRUSTED,
            e.RequestRaised(trust(servers=(SEARCH,), started=(NPX,), may_start_outside=True)),
        ),
        ("end",),
    ),
    "trust-refused": (
        (
            *_READY,
            _UNTRUSTED,
            e.RequestRaised(trust(refusal="Anybody may write to this folder.", rules=())),
        ),
        (),
    ),
    "tool-changes": ((*_READY, _TRUSTED, e.RequestRaised(changed_tools())), ()),
    "grants": (
        (*_READY, _TRUSTED, e.GrantsChanged((SAVED, SESSION, SETTING))),
        ("f2", "g"),
    ),
    "grants-empty": ((*_READY, _TRUSTED), ("f2", "g")),
    "standing": (
        (
            *_READY,
            _TRUSTED,
            _changed_catalog(),
            e.ToolExplained(
                ToolStanding(SERVER, "add_note", Effect.ASK, "Asked: no rule allows it.")
            ),
        ),
        ("f3",),
    ),
    "untrusted-server": (
        (
            *_READY,
            _UNTRUSTED,
            e.ServerStatusChanged(
                SERVER,
                ServerStatus.UNTRUSTED,
                Failure("The folder is not trusted.", "t shows what it would run."),
            ),
        ),
        ("f2",),
    ),
}
"""For each picture what happened, and the keys pressed after it."""


@pytest.mark.parametrize("name", PICTURES)
async def test_consent(album: Album, name: str) -> None:
    events, keys = PICTURES[name]
    wide = name in {"trust-changed", "trust-refused", "grants-empty", "standing"}
    await album.take_all(deck(events), name, *keys, wide=wide)
