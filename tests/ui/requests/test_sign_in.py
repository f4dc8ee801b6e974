"""The question whether to sign in to a server."""

from dataclasses import replace

import pytest
from textual import events
from textual.widgets import Input

from tests.ui.hands import Asking, asking
from tests.ui.requests.samples import sign_in
from tui.model import events as e
from tui.model.requests import Reply, ReplyAction
from tui.ui.questions.sign_in import SignInQuestion


async def ask_again(hands: Asking, problem: str) -> None:
    """Let the engine say what came of the answer."""
    hands.app.store.dispatch(e.RequestRaised(sign_in(problem=problem)))
    await hands.until(lambda: problem[:20] in hands.text)
    await hands.arm()


async def test_server_host_scopes_resource_and_address_are_named() -> None:
    request = replace(sign_in(notes=("Until now you signed in at old.example.",)), shown_host="ш.x")
    async with asking(request, (100, 36)) as hands:
        for words in (
            *("everything", "https://events.example.com/mcp", "login.example.com", "ш.x"),
            *("https://login.example.com", "tokens.example.net"),
            *("events.read, offline_access", "the system keyring", "Until now you signed in"),
            "https://login.example.com/authorize?",
        ):
            assert words in hands.text
        assert not hands.one(Input).display


@pytest.mark.parametrize(
    ("key", "reply"),
    [("ctrl+s", Reply(ReplyAction.ACCEPT)), ("escape", Reply(ReplyAction.CANCEL))],
)
async def test_nothing_is_opened_before_it_is_agreed_to(key: str, reply: Reply) -> None:
    async with asking(sign_in(), (100, 36)) as hands:
        await hands.press(key)
        assert hands.replies == [], "not armed yet"
        await hands.arm()
        await hands.press(key)
        assert hands.replies == [reply]


async def test_the_address_can_be_copied() -> None:
    async with asking(sign_in(), (100, 36)) as hands:
        await hands.arm()
        await hands.press("ctrl+y")
        assert hands.app.clipboard == sign_in().url
        assert "Copied" in hands.text
        assert hands.replies == []


@pytest.mark.parametrize("key", ["enter", "ctrl+s"])
async def test_what_a_browser_elsewhere_ended_at_is_pasted(key: str) -> None:
    async with asking(sign_in(), (100, 36)) as hands:
        await hands.arm()
        await hands.press("ctrl+s")
        await ask_again(hands, "No browser could be opened here.")
        assert isinstance(hands.modal, SignInQuestion)
        assert hands.one(Input).has_focus
        hands.app.post_message(events.Paste("http://localhost:7777/x?code=a&state=b"))
        await hands.until(lambda: hands.one(Input).value)
        await hands.press(key)
        assert hands.replies[1:] == [
            Reply(ReplyAction.ACCEPT, text="http://localhost:7777/x?code=a&state=b")
        ]
        await ask_again(hands, "What was pasted belongs to another sign-in.")
        await hands.press("escape")
        assert hands.replies[2:] == [Reply(ReplyAction.CANCEL)]
