"""Changed tools: what is known of them, when the user is asked, how long lists are judged."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.definitions import altered, define_server
from tests.unit.engine.chats.support import make_policy
from tests.unit.engine.mcp.support import eventually
from tui.engine.approval import tool_review as module
from tui.engine.approval.tool_review import CHANGED, UNREADABLE, Pin, PinStore, ToolReview, pin_key
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.definition_diff import UnreadableDefinitionError, difference
from tui.engine.desk import Desk
from tui.engine.mcp.catalog.offer import RawOffer, Tool, read_offer
from tui.model.events import Event, NoticeRaised, RequestRaised, RequestSettled
from tui.model.requests import Reply, ReplyAction, ToolChangeRequest
from tui.model.servers import Origin, ServerId, Transport

ACCEPT, KEEP_AWAY = Reply(ReplyAction.ACCEPT), Reply(ReplyAction.DECLINE)
FINGERPRINT = "ab" * 32


def definition(name: str = "git", fingerprint: str = FINGERPRINT) -> ServerDefinition:
    return define_server(ServerId(name), Origin.USER, Transport.STDIO, fingerprint=fingerprint)


def tools(*described: tuple[str, object]) -> tuple[Tool, ...]:
    schema = {"inputSchema": {"type": "object"}}
    raw = [{"name": name, "description": words, **schema} for name, words in described]
    return read_offer(RawOffer(tools=[*raw])).tools


class Reviewed:
    """A review and what it published."""

    def __init__(self, store: PinStore, *, has_user: bool = True) -> None:
        self.events: list[Event] = []
        self.desk = Desk(self.events.append, attended=has_user)
        self.review = ToolReview(self.desk, self.events.append, store, make_policy())

    @property
    def requests(self) -> list[ToolChangeRequest]:
        found = (event.request for event in self.events if isinstance(event, RequestRaised))
        return [request for request in found if isinstance(request, ToolChangeRequest)]

    async def answer(self, answer: Reply) -> None:
        """Answer the last question, and wait until that was acted on."""
        request = self.requests[-1].id
        self.desk.answer(request, answer)
        await eventually(lambda: RequestSettled(request) in self.events)

    def examine(
        self, *described: tuple[str, object], of: ServerDefinition | None = None
    ) -> dict[str, str]:
        withheld = self.review.withhold(of or definition(), tools(*described))
        return {name: one.reason for name, one in withheld.items()}


def has_asked(reviewed: Reviewed, count: int) -> bool:
    return len(reviewed.requests) == count


@asynccontextmanager
async def reviewing(folder: Path | None, *, has_user: bool = True) -> AsyncIterator[Reviewed]:
    reviewed = Reviewed(PinStore(folder, pytest.fail), has_user=has_user)
    await reviewed.review.prepare(definition())
    try:
        yield reviewed
    finally:
        await reviewed.review.aclose()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path / "pins"


async def test_what_is_seen_first_or_accepted_is_known_in_later_runs(folder: Path) -> None:
    accepted: list[None] = []
    async with reviewing(folder) as reviewed:
        assert reviewed.examine(("a", "one"), ("b", "two")) == {}
    async with reviewing(folder) as reviewed:
        reviewed.review.on_accepted = lambda: accepted.append(None)
        assert reviewed.examine(("a", "one"), ("c", "new")) == {}
        assert reviewed.examine(("a", "other"), ("b", "two")) == {"a": CHANGED}
        await eventually(lambda: reviewed.requests)
        await reviewed.answer(ACCEPT)
        assert (accepted, reviewed.examine(("a", "other"))) == ([None], {})
    async with reviewing(folder) as later:
        assert later.examine(("a", "one")) == {"a": CHANGED}
    [change] = reviewed.requests[0].changes
    assert [(line.sign, line.text) for line in change.difference] == [
        *((" ", "name: a"), (" ", "description:"), ("-", "  one"), ("+", "  other")),
        *((" ", line) for line in ("input schema:", "  {", '    "type": "object"', "  }")),
    ]


async def test_new_tools_push_no_known_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PINNED", 2)
    async with reviewing(folder) as reviewed:
        assert reviewed.examine(("a", "one")) == {}
        assert reviewed.examine(*((f"new{number}", "words") for number in range(5))) == {}
        assert reviewed.examine(("a", "other"), ("new4", "other")) == {"a": CHANGED}


async def test_a_second_sight_in_another_gemdeck_does_not_replace_the_first(folder: Path) -> None:
    async with reviewing(folder) as first, reviewing(folder) as second:
        first.examine(("a", "one"))
        await first.review.aclose()
        second.examine(("a", "poisoned"))
    async with reviewing(folder) as later:
        assert later.examine(("a", "poisoned")) == {"a": CHANGED}


async def test_many_changes_are_asked_about_list_by_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHANGES", 2)
    async with reviewing(None) as reviewed:
        before = [(f"t{number}", "one") for number in range(5)]
        after = [(f"t{number}", "two") for number in range(5)]
        reviewed.examine(*before)

        def examine_again() -> None:
            reviewed.examine(*after)

        reviewed.review.on_accepted = examine_again
        reviewed.examine(*after)
        for count in range(1, 4):
            await eventually(partial(has_asked, reviewed, count))
            await reviewed.answer(KEEP_AWAY if count == 2 else ACCEPT)
    asked = [[change.tool for change in request.changes] for request in reviewed.requests]
    assert asked == [["t0", "t1"], ["t2", "t3"], ["t4"]]
    assert set(reviewed.examine(*after)) == {"t2", "t3"}


async def test_a_definition_too_long_stays_away_and_no_other_server_is_compared() -> None:
    async with reviewing(None) as reviewed:
        reviewed.examine(("a", "one"))
        assert reviewed.examine(("a", "x" * 70_000)) == {"a": UNREADABLE}
        other = definition(fingerprint="cd" * 32)
        await reviewed.review.prepare(other)
        assert reviewed.examine(("a", "two"), of=other) == {}
    assert reviewed.requests == []


async def test_a_server_that_nothing_identifies_is_known_by_its_entry() -> None:
    bare = definition(fingerprint="")
    async with reviewing(None) as reviewed:
        for entry, words, withheld in (
            (bare, "one", {}),
            (bare, "two", {"a": CHANGED}),
            (altered(bare, url="x"), "two", {}),
        ):
            await reviewed.review.prepare(entry)
            assert reviewed.examine(("a", words), of=entry) == withheld, words


async def test_only_a_tool_as_it_was_shown_is_known_before_its_server_runs() -> None:
    [one], [two] = tools(("a", "one")), tools(("a", "two"))
    own, other, demo = definition(), definition("other"), altered(definition(), origin=Origin.DEMO)
    async with reviewing(None) as reviewed:
        is_known = reviewed.review.is_known
        assert not is_known(own, one)
        reviewed.examine(("a", "one"))
        given = [(own, one), (own, two), (other, one), (demo, two)]
        assert [is_known(*each) for each in given] == [True, False, False, True]


async def test_a_change_that_is_seen_again_leaves_its_question_open_until_the_end() -> None:
    async with reviewing(None) as reviewed:
        reviewed.examine(("a", "one"))
        for number, words in enumerate(("two", "three"), 1):
            for _ in "12":
                assert reviewed.examine(("a", words)) == {"a": CHANGED}
                await eventually(partial(has_asked, reviewed, number))
            if words == "two":
                await reviewed.answer(ACCEPT)
                assert reviewed.examine(("a", "two")) == {}
    settled = [e.request for e in reviewed.events if isinstance(e, RequestSettled)]
    assert settled == [request.id for request in reviewed.requests]


async def test_a_server_that_leaves_takes_its_question_along_and_without_a_user_none_is_put() -> (
    None
):
    async with reviewing(None) as reviewed:
        for words in ("one", "two"):
            reviewed.examine(("a", words))
        await eventually(lambda: reviewed.requests)
        reviewed.review.keep_only(set())
    settled = [e.request for e in reviewed.events if isinstance(e, RequestSettled)]
    assert settled == [reviewed.requests[0].id]
    async with reviewing(None, has_user=False) as reviewed:
        for words in ("one", "two"):
            reviewed.examine(("a", words))
        await eventually(lambda: reviewed.events)
    [raised] = reviewed.events
    assert isinstance(raised, NoticeRaised)
    assert raised.notice.text == "The server git changed these tools; they are now withheld: a."


async def test_what_is_pinned_has_limits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PINNED", 2)
    monkeypatch.setattr(module, "MAX_KEPT", 4)
    store = PinStore(folder, pytest.fail)
    store.save(FINGERPRINT, {"x": Pin("1", "abc"), "y": Pin("2", "abc")}, replacing=False)
    store.save(FINGERPRINT, {"y": Pin("9", "no"), "z": Pin("3", "ab")}, replacing=False)
    assert store.load(FINGERPRINT) == {"x": Pin("1", "abc"), "y": Pin("2")}


def test_what_is_no_fingerprint_makes_no_file(folder: Path) -> None:
    store = PinStore(folder, pytest.fail)
    for fingerprint in ("", "../../etc/passwd", "a" * 31, "A" * 64, "a" * 200):
        store.save(fingerprint, {"x": Pin("1")}, replacing=True)
        assert store.load(fingerprint) == {}
    assert not folder.exists()
    assert pin_key("\ud800") != pin_key("\ud801") != pin_key(""), "names may be no Unicode"


def described(words: str) -> str:
    return json.dumps({"name": "a", "description": words})


def test_a_difference_hides_nothing_and_says_where_none_can_be_seen() -> None:
    shown = difference(described("one"), described("one\u200b\u202e\x1b[2J" + "\U000e0041" * 20))
    [new] = [line.text for line in shown if line.sign == "+"]
    assert new.count("\\udb40\\udc41") == 20
    assert "\\u200b\\u202e\\u001b[2J" in new
    shown = difference(described("one\\u200b"), described("one\u200b"))
    assert "lookalike" in shown[0].text
    assert [line.sign for line in shown[1:]] == ["+"] * 3
    shown = difference("", described("one\ntwo"))  # what was is no longer known
    assert [line.text for line in shown[1:]] == ["name: a", "description:", "  one", "  two"]
    shown = difference("", json.dumps({"inputSchema": {"title": "é"}}))
    assert '    "title": "é"' in [line.text for line in shown], "as one would read it"


def test_unchanged_lines_far_from_a_change_are_counted() -> None:
    lines = [f"line {number}" for number in range(100)]
    before = json.dumps({"description": "\n".join(lines)})
    lines[50] = "changed"
    shown = difference(before, json.dumps({"description": "\n".join(lines)}))
    texts = [line.text for line in shown]
    counts = (texts[0], texts[-1], len(texts))
    assert counts == ("… 48 unchanged lines …", "… 46 unchanged lines …", 10)


def test_a_long_difference_is_found_in_time_and_one_nested_too_deeply_is_not_shown() -> None:
    before = json.dumps({"description": "a\n" * 10_000})
    start = time.process_time()
    shown = difference(before, json.dumps({"description": "b\n" * 10_000}))
    assert time.process_time() - start < 2
    assert len([line for line in shown if line.sign == "+"]) == 10_000
    deep = '{"annotations":' * 50_000 + "1" + "}" * 50_000
    with pytest.raises(UnreadableDefinitionError):
        difference("", deep)


async def test_changes_that_cannot_be_compared_stay_withheld_and_can_be_reviewed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_known: str, _now: str) -> None:
        raise ZeroDivisionError("a bug")

    async with reviewing(folder) as reviewed:
        reviewed.examine(("a", "one"))
        with monkeypatch.context() as patched:
            patched.setattr(module, "difference", broken)
            assert reviewed.examine(("a", "other")) == {"a": CHANGED}
            await eventually(lambda: "could not be asked about" in caplog.text)
        assert (reviewed.examine(("a", "other")), reviewed.events) == ({"a": CHANGED}, [])
        reviewed.review.review(ServerId("git"))
        await eventually(lambda: reviewed.requests)
    assert len(reviewed.requests) == 1
