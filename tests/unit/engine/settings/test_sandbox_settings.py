"""Sandboxes in settings: which server gets one, what it is given, and what a slip leads to."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.definitions import define_server
from tests.support.rows import row
from tests.unit.engine.settings.conftest import Machine, messages
from tui.engine.definitions.definition import Sandbox
from tui.engine.definitions.fingerprint import server_fingerprint
from tui.engine.settings.loader import read_files
from tui.model.servers import SandboxView, ServerId, ServerStatus
from tui.model.trust import Boxes

BARE = Sandbox()
DATA = Path("/data")


def test_an_entry_wins_over_what_holds_for_all(machine: Machine) -> None:
    read = machine.home / "data"
    machine.environ["DATA"] = str(read)
    for everywhere, entry, expected in (
        (None, None, None),
        (None, True, BARE),
        (None, False, None),
        (True, None, BARE),
        (True, False, None),
        ({"network": True}, None, Sandbox(network=True)),
        ({"network": True}, True, BARE),
        ("none", True, BARE),
        ("none", None, None),
        (
            None,
            {"read": ["$DATA", "~/x"], "write": "y", "env": ["Npm_Token"]},
            Sandbox((read, machine.home / "x"), (machine.folder / "y",), env=("NPM_TOKEN",)),
        ),
    ):
        given = {"command": "x"} | ({"sandbox": entry} if entry is not None else {})
        content = {"mcpServers": {"it": given}, "gemdeck": {"sandbox": everywhere}}
        machine.write("user", content)
        with row(everywhere, entry):
            assert machine.servers()["it"].launch.sandbox == expected
            assert messages(machine.load()) == []


@pytest.mark.parametrize(
    ("sandbox", "words"),
    [
        ("yes", "must be true, false or an object"),
        (["a"], "must be true, false or an object"),
        ({"network": ["a.example"]}, "hosts cannot be allowed by name"),
        ({"reads": ["~/x"]}, "unknown key"),
    ],
)
def test_a_slip_never_leaves_a_sandbox_out(machine: Machine, sandbox: object, words: str) -> None:
    assert machine.server(command="x", sandbox=sandbox).withheld is ServerStatus.INVALID
    assert words in messages(machine.load())[0]
    content = {"mcpServers": {"it": {"command": "x"}}, "gemdeck": {"sandbox": sandbox}}
    machine.write("user", content)
    assert machine.servers()["it"].launch.sandbox == BARE
    assert any(words in message for message in messages(machine.load()))


def test_a_projects_server_has_one_by_itself_and_what_it_says_of_it_is_shown(
    machine: Machine,
) -> None:
    entries = {
        "plain": {"command": "x"},
        "fetched": {"command": "npx", "args": ["-y", "x"]},
        "dlx": {"command": "pnpm", "args": ["dlx", "x"]},
        "open": {"command": "x", "sandbox": False},
        "given": {"command": "x", "sandbox": {"read": ["/data"], "env": ["TOKEN"]}},
        "net": {"url": "https://x.example/mcp"},
    }
    machine.write("user", {"gemdeck": {"sandbox": {"network": True, "read": ["~"]}}})
    machine.write("project", {"mcpServers": entries})
    files = read_files(machine.folder, environ=machine.environ, home=machine.home)
    loaded = files.settled({ServerId(name) for name in entries})
    boxes = {str(one.id): one for one in loaded.servers}
    assert {name: one.launch.sandbox for name, one in boxes.items() if name != "net"} == {
        "plain": BARE,
        "fetched": Sandbox(network=True),
        "dlx": Sandbox(network=True),
        "open": None,
        "given": Sandbox((DATA,)),
    }
    assert any("sandbox.env: has no effect" in message for message in messages(loaded))
    for name, choice, can_box, expected in (
        ("plain", Boxes.IF_POSSIBLE, True, BARE),
        ("plain", Boxes.IF_POSSIBLE, False, None),
        ("plain", Boxes.BY_ENTRY, False, BARE),
        ("plain", Boxes.NONE, True, None),
        ("open", Boxes.BY_ENTRY, True, None),
        ("given", Boxes.IF_POSSIBLE, False, Sandbox((DATA,))),
        ("net", Boxes.BY_ENTRY, True, None),
    ):
        with row(name, choice, can_box):
            assert boxes[name].boxed(choice, can_box=can_box).launch.sandbox == expected


def test_a_demand_of_gemini_cli_is_met_by_a_sandbox_for_all(machine: Machine) -> None:
    machine.environ["GEMINI_SANDBOX"] = "docker"
    entries = {"it": {"command": "x"}, "bare": {"command": "x", "sandbox": False}}
    for everywhere, expected in (
        (None, {"it", "bare"}),
        (True, {"bare"}),
        ({"network": True}, {"bare"}),
        ("none", set()),
    ):
        machine.write("user", {"mcpServers": entries, "gemdeck": {"sandbox": everywhere}})
        held = {name for name, one in machine.servers().items() if one.withheld is not None}
        with row(everywhere):
            assert held == expected


def test_the_fingerprint_covers_it_where_there_is_one() -> None:
    one = define_server(command="x")
    seen = {
        server_fingerprint(replace(one, launch=replace(one.launch, sandbox=box)), b"")
        for box in (None, BARE, Sandbox(network=True), Sandbox(env=("A",)))
    }
    assert len(seen) == 4
    assert server_fingerprint(one, b"")[:16] == "81dd84cc482d7a09", "of a server without one"


def test_what_it_gets_in_words() -> None:
    assert SandboxView().words == "no network"
    words = SandboxView(("~/a", "/b"), ("/c",), network=True).words
    assert words == "with network; reads ~/a, /b; writes /c"
