"""A path is judged by both readings: links followed first, or ``..`` dropped first as node does."""

import os
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Play, Script, Turncoat
from tests.support.definitions import define_server
from tests.unit.engine.chats.support import make_policy, make_tool
from tui.engine.approval.inquiry import file_change, look_at_files
from tui.engine.mcp.catalog.argument_rules import ArgumentRule
from tui.model.consent import Choice, Condition, ConditionKind, Decision, GrantScope, exact_text
from tui.model.requests import ConfirmationRequest
from tui.model.servers import Origin, Transport

IS, FOLDER, STARTS, _ = ConditionKind
TRICK: Final = "clone/docs/L/../../.env"
"""Links first, it is ``shop/.env``; ``..`` first, ``clone/.env``."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A shop of the user's beside a clone that brought links into it."""
    place = tmp_path.resolve()
    for name in ("shop/a/b", "clone/docs", "clone/~", "other"):
        (place / name).mkdir(parents=True)
    for name in ("shop", "clone", "clone/~", "other"):
        (place / name / ".env").write_text(f"{name}\n")
    (place / "clone/docs/L").symlink_to(place / "shop/a/b")
    (place / "clone/up").symlink_to(place / "other")
    (place / "link").symlink_to(place / "shop")
    return place


def rule(place: Path, kind: ConditionKind, value: object) -> ArgumentRule:
    text = exact_text(value) if kind is IS else str(value)
    return ArgumentRule((Condition("path", kind, text),), str(place), str(place))


MISREAD: Final = (
    *("{}/" + TRICK, "{}//clone/./docs/L/../../.env", "{}/clone/docs/L/../../.env/", TRICK),
    *("./" + TRICK, "{}/clone/docs/L/..//../.env", "{}/clone/docs/L/x/../../../.env"),
    *("{}/clone/docs/L/%2e%2e/../.env", "{}/clone/docs/L/..%2f../.env", "file://{}/" + TRICK),
    *("{}/clone/docs/L/\uff0e\uff0e/../.env", "{}\\clone\\docs\\L\\..\\..\\.env"),
)


@pytest.mark.parametrize("path", MISREAD)
def test_B25_no_rule_that_allows_is_met_by_a_path_that_two_read_differently(
    place: Path, path: str
) -> None:
    assert os.path.realpath(place / TRICK) == str(place / "shop/.env")
    assert os.path.normpath(place / TRICK) == str(place / "clone/.env")
    path = path.replace("{}", str(place))
    shop, clone = place / "shop", place / "clone"
    for one in (path, str(shop / ".env"), str(clone / ".env")):
        for value, wanted in ((path, one), ([path], [one]), ({"a": [1, path]}, {"a": [1, one]})):
            assert not rule(place, IS, wanted).allows({"path": value}), (value, wanted)
    for kind, where in ((FOLDER, shop), (FOLDER, clone), (STARTS, f"{clone}/"), (STARTS, "clone/")):
        assert not rule(place, kind, where).allows({"path": path}), (kind, where)
    for folder in (shop, clone):
        for denied in (rule(place, IS, str(folder / ".env")), rule(place, FOLDER, folder)):
            assert denied.denies({"path": path}), folder
            assert denied.denies({"path": [{"of": path}]}), folder


SAME: Final = ("{}/shop/.env", "{}/link/.env", "{}/shop/a/../.env")


@pytest.mark.parametrize("path", SAME)
def test_B25_a_path_that_all_read_alike_needs_no_question(place: Path, path: str) -> None:
    path, own = path.replace("{}", str(place)), str(place / "shop/.env")
    assert rule(place, IS, own).allows({"path": path})
    assert rule(place, IS, [own]).allows({"path": [path]})
    assert rule(place, FOLDER, place / "shop").allows({"path": path})
    assert not rule(place, IS, own).allows({"path": f"{place}/clone/.env"})
    assert rule(place, IS, "draft/../x").allows({"path": "draft/../x"}), "no link is on its way"


OF_PROCESS: Final = (
    *("/proc/self/cwd/.env", "/proc/self/root{}/shop/.env", "/proc/thread-self/cwd/.env"),
    *("/proc/PID/cwd/.env", "/proc/1/root{}/shop/.env", "/dev/fd/3", "/dev/stdin"),
    *("/proc/../proc/./self//cwd/.env", "/proc/self/task/1/cwd/.env", "/%70roc/self/cwd/.env"),
    *(
        "file:///proc/self/cwd/.env",
        "{}/shop/own/.env",
        "shop/own/.env",
        "shop/on/.env",
        "shop/fd/3",
    ),
)


@pytest.mark.parametrize("path", OF_PROCESS)
def test_B25_a_link_that_each_process_has_of_its_own_meets_no_rule_that_allows(
    place: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = place / "shop"
    monkeypatch.chdir(shop)
    (shop / "own").symlink_to("/proc/self/cwd")
    (shop / "on").symlink_to("own")
    (shop / "fd").symlink_to("/dev/fd")
    path = path.replace("{}", str(place)).replace("PID", str(os.getpid()))
    for value in (path, [path], {"a": path}):
        for wanted in (value, str(shop / ".env"), "/x"):
            assert not rule(place, IS, wanted).allows({"path": value}), (value, wanted)
        assert rule(place, IS, str(place / "clone/.env")).denies({"path": value}), value
        assert rule(place, FOLDER, place / "other").denies({"path": value}), value
        assert rule(place, STARTS, "clone/").denies({"path": value}), value
    for kind, where in ((FOLDER, shop), (FOLDER, "/"), (STARTS, "/"), (STARTS, path[:6])):
        assert not rule(place, kind, where).allows({"path": path}), (kind, where)
    change, _, notes = look_at_files(place, str(place), {"path": path, "content": "x"})
    assert change is None
    assert notes or "://" in path, "the question says that gemdeck cannot tell"


def test_B25_other_paths_are_of_no_process(place: Path) -> None:
    for path in ("/proc/version", "/proc/selfish", "/dev/null", "proc/self", "shop/.env"):
        assert rule(place, IS, path).allows({"path": path}), path
        assert not rule(place, IS, str(place / "clone/.env")).denies({"path": path}), path


def test_B25_a_link_in_a_list_that_is_bent_later_leads_nowhere(place: Path) -> None:
    exactly = rule(place, IS, [str(place / "shop/new")])
    assert exactly.allows({"path": [str(place / "shop/new")]})
    (place / "shop/new").symlink_to(place / "clone/.env")
    assert not exactly.allows({"path": [str(place / "shop/new")]})


def test_B25_a_beginning_that_is_a_path_is_left_by_no_link(place: Path) -> None:
    for begin in (f"{place}/clone/", f"{place}/cl", "clone/", f"{place}/link/"):
        inside = f"{begin}x" if begin.endswith("/") else f"{place}/clone/x"
        assert rule(place, STARTS, begin).allows({"path": inside})
        assert rule(place, STARTS, begin).denies({"path": inside})
    for path in ("clone/up/.env", "clone/docs/L", "clone/docs/L/x"):
        assert not rule(place, STARTS, f"{place}/clone/").allows({"path": f"{place}/{path}"})
        assert not rule(place, STARTS, "clone/").allows({"path": path})
    for text in ("draft: a/b ", "draft: $x", "draft: ~"):
        assert rule(place, STARTS, "draft: ").allows({"path": text}), "this is no path"
    denied = rule(place, STARTS, f"{place}/link/")
    assert denied.denies({"path": f"{place}/shop/.env"}), "the links of the beginning are followed"
    assert denied.denies({"path": "shop/.env"})
    assert not denied.denies({"path": "clone/.env"})
    climbing = rule(place, STARTS, "../")
    assert climbing.denies({"path": "../x"})
    assert not climbing.denies({"path": "shop/.env"})
    for begin in ("https://api.example.com/v1/", "git log --format=%H -- ", "/repos/"):
        assert rule(place, STARTS, begin).allows({"path": f"{begin}x y"})


def test_B25_what_decodes_to_a_path_elsewhere_is_in_no_folder(place: Path) -> None:
    clone = rule(place, FOLDER, place / "clone")
    assert clone.allows({"path": "clone/100%25.txt"})
    (place / "clone/up%20").mkdir()
    (place / "clone/up ").symlink_to(place / "other")
    for path in ("clone/%75p/.env", "clone/up%20/.env", "clone/\uff55p/.env", "%2fetc/passwd"):
        assert not clone.allows({"path": path}), path


def test_B25_relative_paths_lead_on_from_where_the_server_really_starts(place: Path) -> None:
    policy, tool = make_policy(), make_tool("go")
    server = define_server(
        *(tool.server, Origin.USER, Transport.STDIO),
        fingerprint=tool.fingerprint,
        cwd=place / "clone/docs/L",
    )
    policy.configure((), (), [server])
    assert policy.start_of(tool.server) == str(place / "shop/a/b")
    folder = (Condition("path", FOLDER, str(place / "clone")),)
    policy.allow([tool], GrantScope.SESSION, "always", folder)
    assert policy.judge(tool, {"path": "../x"}).effect.value == "ask"
    assert policy.judge(tool, {"path": str(place / "clone/x")}).effect.value == "allow"


def test_B25_a_question_shows_the_file_that_is_written_or_says_that_it_cannot_tell(
    place: Path,
) -> None:
    def look(path: str, start: str = "") -> tuple[bool, str, str]:
        change, paths, notes = look_at_files(place, start, {"path": path, "content": "a\nb"})
        real = next((real for name, real, _ in paths if name == "path"), "")
        return change is not None, real, " ".join(notes)

    assert look("shop/.env") == (True, "shop/.env", "")
    assert look(f"{place}/link/.env") == (True, f"{place}/shop/.env", "")
    shows, real, words = look(f"{place}/{TRICK}")
    assert (shows, real) == (False, ""), "a rule would name neither file"
    assert words == (
        f"gemdeck cannot tell which file path means: {place}/clone/.env or {place}/shop/.env."
    )
    (place / "clone/$HOME").symlink_to(place / "other")
    (place / "clone/%2e%2e").mkdir()
    (place / "clone/%2e%2e/.env").touch()
    for path in ("~/.env", "$HOME/.env", "%2e%2e/.env", ".env "):
        (place / "clone/.env ").touch()
        shows, _, words = look(path, str(place / "clone"))
        assert not shows, path
        assert words.startswith("gemdeck cannot tell which file path means: "), path
    for path in ("https://x/../a%20b", "a%20b", "see a/../b", "clone/\ud800", "x/../" * 400):
        assert look(path)[2] == "", path
    change = file_change(place, {"path": ".env", "content": "shop\n"}, str(place / "shop"))
    assert change is not None
    assert change.summary == "overwrites · unchanged", "of the folder where its server starts"


async def test_B25_always_exactly_this_file_asks_about_the_way_round_a_link(
    shop: Turncoat, play: Play, place: Path
) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    shop.offer({"name": "look", "inputSchema": schema})
    own = str(place / "shop/.env")
    script: Script = []
    for path in (own, str(place / "link/.env"), str(place / TRICK)):
        script += [[Call([("look", {"path": path})])], [Say("done")]]
    async with play(script, shop) as running:
        running.engine.send("go")
        asked = await running.pending(ConfirmationRequest)
        words = (Condition("path", IS, exact_text(asked.paths[0][1])),)
        running.engine.desk.answer(asked.id, Decision(Choice.ALWAYS_THESE, conditions=words))
        await running.idle()
        await running.ask("by a link")
        request = await running.answered("round it", Choice.DENY)
        assert "cannot tell which file path means" in request.notes[0]
    assert [call["path"] for _, call in shop.calls] == [own, str(place / "link/.env")]
