"""A run in which tools are not asked about says so for as long as it lasts."""

from dataclasses import replace

from tui.model.consent import UNASKED_GRANT, Effect, GrantView
from tui.store.state import AppState
from tui.ui.widgets.header import UNASKED, header_content, header_view

YOLO = GrantView(UNASKED_GRANT, Effect.ALLOW, "*", "*", "this session", "--yolo", revocable=False)


def test_the_header_says_that_tools_run_unasked_at_every_width() -> None:
    state = AppState(workspace="~/a/folder/with/a/long/name", grants=(YOLO,))
    for width in (80, 110, 200):
        assert UNASKED in header_content(header_view(state), width).plain


def test_the_header_says_nothing_where_tools_are_asked_about() -> None:
    other = replace(YOLO, id=type(YOLO.id)("another"))
    view = header_view(AppState(grants=(other,)))
    assert UNASKED not in header_content(view, 200).plain
