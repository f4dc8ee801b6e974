"""What the questions on folders and changed tools look like, and the list of grants."""

from dataclasses import replace
from typing import Final

import pytest

from tests.snapshots.decks import HISTORIES, Album, deck
from tests.support.samples import SERVER, one_of_each
from tests.ui.consent.samples import (
    DIFFERENCE,
    GIT,
    NPX,
    SEARCH,
    SKILL_CHANGE,
    SKILL_TEXT,
    changed_tools,
    skill,
    trust,
)
from tests.ui.consent.test_grants import SAVED, SESSION, SETTING
from tui.model import events as e
from tui.model.catalog import Catalog
from tui.model.requests import PendingRequest
from tui.model.servers import Failure, ServerStatus
from tui.model.trust import FolderTrust

FAILURE: Final = Failure("The folder is not trusted.", "t shows what it would run.")

_UNTRUSTED: Final = e.FolderTrustChanged(FolderTrust.UNTRUSTED)
_NOTHING: Final = e.FolderTrustChanged(FolderTrust.NOTHING_TO_TRUST)
OWN: Final = (NPX.server, GIT.server)
_CHANGED: Final = e.FolderTrustChanged(FolderTrust.CHANGED)
_TRUSTED: Final = e.FolderTrustChanged(FolderTrust.TRUSTED)


def _changed_catalog() -> e.CatalogChanged:
    """Give the catalog of a server whose only tool changed."""
    offered = one_of_each()[e.CatalogChanged]
    assert isinstance(offered, e.CatalogChanged)
    (tool,) = offered.catalog.tools
    return e.CatalogChanged(SERVER, Catalog(tools=(replace(tool, changed=True),)))


def asking(trusted: e.Event, request: PendingRequest) -> tuple[e.Event, ...]:
    return trusted, e.RequestRaised(request)


PICTURES: Final[dict[str, tuple[tuple[e.Event, ...], tuple[str, ...]]]] = {
    "trust": (asking(_UNTRUSTED, trust()), ("end",)),
    "trust-changed": (
        asking(
            _CHANGED,
            trust(servers=(replace(GIT, change="changed"), SEARCH), difference=DIFFERENCE),
        ),
        (),
    ),
    "trust-quiet": (asking(_NOTHING, trust(servers=(), rules=(), variables=(), own=OWN)), ()),
    "trust-refused": (
        asking(_UNTRUSTED, trust(refusal="Anybody may write to this folder.", rules=())),
        (),
    ),
    "tool-changes": (asking(_TRUSTED, changed_tools()), ()),
    "skill": (asking(_TRUSTED, skill()), ()),
    "skill-changed": (asking(_TRUSTED, skill(difference=SKILL_CHANGE)), ()),
    "skill-text": (asking(_TRUSTED, skill(text=SKILL_TEXT)), ()),
    "grants": ((_TRUSTED, e.GrantsChanged((SAVED, SESSION, SETTING))), ("f2", "g")),
    "grants-empty": ((_TRUSTED,), ("f2", "g")),
    "standing": ((_TRUSTED, _changed_catalog()), ("f3",)),
    "untrusted-server": (
        (_UNTRUSTED, e.ServerStatusChanged(SERVER, ServerStatus.UNTRUSTED, FAILURE)),
        ("f2",),
    ),
}
"""For each picture what happened once the servers were ready, and the keys pressed after it."""


@pytest.mark.parametrize("name", PICTURES)
async def test_consent(album: Album, name: str) -> None:
    events, keys = PICTURES[name]
    wide = name in {"trust-changed", "trust-refused", "grants-empty", "standing"}
    await album.take_all(deck((*HISTORIES["ready"], *events)), name, *keys, wide=wide)
