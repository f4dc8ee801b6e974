"""What the user's servers would run of folders: what counts as the same, and what could leave."""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from tui.engine.trust.folder_gate import NO_ID, OpenedFolder
from tui.engine.trust.starts import StartFinder, described

from tui.engine.definitions.definition import FolderFile, ServerDefinition
from tui.engine.definitions.fingerprint import server_fingerprint
from tui.engine.trust.content import FolderContent, ServerContent, difference
from tui.engine.trust.trust_questions import TrustCase, request_of
from tui.engine.trust.trust_store import Start, identify
from tui.model.requests import TrustRequest
from tui.model.servers import Origin, ServerId, Transport
from tui.model.trust import TrustAnswer, TrustSubject

A, SALT = TrustAnswer, b"salt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "clone"
    (made / "pkg").mkdir(parents=True)
    (made / "server.py").write_text("")
    return made


def opened(
    folder: Path, state: Path | None = None, home: Path | None = None, *, attended: bool = True
) -> OpenedFolder:
    home = home or folder.parent
    state = state or home / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    return OpenedFolder(folder, home, state, (), pytest.fail, attended=attended)


def server(*words: str, name: str = "mine", **more: object) -> ServerDefinition:
    command, *args = words
    written = MappingProxyType({"command": command, "args": args})
    made = ServerDefinition(
        ServerId(name), Origin.USER, Transport.STDIO, command, tuple(args), written=written
    )
    return known(replace(made, **more))  # type: ignore[arg-type]


def known(one: ServerDefinition) -> ServerDefinition:
    return replace(one, fingerprint=server_fingerprint(one, SALT))


def found(opened: OpenedFolder, one: ServerDefinition, *named: Path, back: bool = False) -> Start:
    opened.named, opened.is_withdrawn = named, back
    [start] = StartFinder(opened).find([known(one)])[one.id]
    return start


def file(folder: Path, content: str) -> FolderFile:
    return FolderFile(str(folder / "server.py"), content)


def test_A14_only_what_would_not_look_back_can_start_outside(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    for line in (
        *("npx -y server", "npx -y @scope/server@1.2.3", "npx --package=@scope/server -- server"),
        *("uvx --from git+https://host/x server", "uvx --index-url https://host/x server"),
        "npx server /etc",
    ):
        assert found(opened(folder), server(*line.split())).outside is not None, line
    for line in (
        *("npx server .", "npx server ..", "npx server --root=.", "npx server -C."),
        *("npx server ./data", "npx server lib/data", "npx server data:./x", "npx pkg"),
        *(f"npx server {folder}/data", f"npx server --root={folder}", "npx server ~/clone/data"),
        *("python -m pkg", "python server.py", "./server", "sh -c 'cd . && npx server'"),
    ):
        assert found(opened(folder), server(*line.split())).outside is None, line


def test_A14_neither_a_variable_nor_a_place_above_the_state_is_outside(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for env, leaves in (({"X": "a"}, True), ({"X": "./a"}, False), ({"X": str(folder)}, False)):
        assert (found(opened(folder), server("npx", "x", env=env)).outside is not None) is leaves
    assert found(opened(folder, folder / "state"), server("npx", "x")).outside is None
    monkeypatch.setenv("NODE_PATH", str(folder / "lib"))
    assert found(opened(folder), server("npx", "x")).outside is None


def test_A22_a_yes_is_to_the_entry_and_the_files_that_were_seen(folder: Path) -> None:
    finds, other = opened(folder), server("npx", "x", name="other")
    shown = server("python", "server.py", files=(file(folder, "1"),))
    first = found(finds, shown)
    assert first.said is None
    assert first.before is None

    def seen(one: ServerDefinition) -> ServerContent:
        return described(known(one), folder, SALT)

    assert first.folder.identity is not None
    finds.start_folders.keep(first.folder.identity, A.TRUST, [seen(shown), seen(other)])
    assert found(finds, shown).said is A.TRUST
    for edit, line in (
        ({"files": (file(folder, "2"),)}, "file server.py has changed: content #"),
        ({"args": ("server.py", "x")}, "server mine gets other values of your variables"),
        ({"env": {"TOKEN": "other"}}, "server mine gets other values of your variables"),
        ({"files": ()}, ""),
    ):
        changed = replace(shown, **edit)
        now = found(finds, changed)
        assert (now.said, now.has_changed) == (None, True), edit
        bare = TrustRequest(NO_ID, TrustSubject.STARTED_HERE, "")
        request = request_of(TrustCase(bare, (known(changed),), (now,)), folder, SALT)
        assert [one.change for one in request.started] == ["changed"]
        assert any(one.sign == "+" and one.text.startswith(line) for one in request.difference) or (
            [one.sign for one in request.difference if one.sign.strip()] == ["-"]
        )
        assert found(finds, other).said is A.TRUST


def test_A22_a_file_of_the_folder_changes_nothing_outside_it(folder: Path) -> None:
    finds, shown = opened(folder), server("npx", "x", files=(file(folder, "1"),))
    first = found(finds, shown)
    assert first.folder.identity is not None
    assert first.outside is not None
    finds.start_folders.keep(first.folder.identity, A.START_OUTSIDE, outside=[first.outside])
    pulled = replace(shown, files=(file(folder, "2"),))
    assert found(finds, pulled).said is A.START_OUTSIDE
    assert found(finds, replace(pulled, args=("y",))).said is None


def test_A08_a_named_folder_counts_with_what_it_had_first_and_no_never(folder: Path) -> None:
    finds, one = opened(folder), server("npx", "x")
    assert found(finds, one, folder).said is A.TRUST
    assert found(finds, replace(one, args=("y",)), folder).said is None
    assert found(finds, one, folder, back=True).said is None
    identity = identify(folder)
    assert identity is not None
    finds.store.never(identity)
    start = found(finds, one, folder)
    assert (start.said, start.folder.never) == (None, True)
    finds.start_folders.keep(identity, A.TRUST, [start.seen])  # the later word
    assert found(finds, one).said is A.TRUST
    finds.start_folders.keep(identity, A.NEVER)
    assert found(finds, one, folder).folder.never


def test_A06_what_others_can_write_is_not_reached_from_above(folder: Path) -> None:
    above, below = identify(folder), folder / "pkg"
    finds, one = opened(below, home=folder.parent), server("npx", "x")
    assert above is not None
    finds.start_folders.keep(above, A.TRUST_WITH_CHILDREN)
    below.chmod(0o777)
    assert found(finds, one).said is None
    below.chmod(0o755)
    unattended = opened(below, home=folder.parent, attended=False)
    assert found(unattended, one).said is None
    assert found(finds, one).said is A.TRUST
    assert found(unattended, one).said is A.TRUST


def test_a_difference_says_of_each_line_whose_it_is() -> None:
    def folder(**servers: str) -> FolderContent:
        made = (
            ServerContent(name, "s", "stdio", lines, (f"server {name}", *lines.split()))
            for name, lines in servers.items()
        )
        return FolderContent("", tuple(made), "", ("It may call 5 tools.",))

    lines = difference(
        folder(a="npx -y one", b="uvx", gone="npx -y two"),
        folder(a="npx -y one", b="uvx x", new="npx -y two"),
    )
    assert [f"{line.sign} {line.text}" for line in lines] == [
        *("  server b", "  uvx", "+ x"),
        *("- server gone", "- npx", "- -y", "- two"),
        *("+ server new", "+ npx", "+ -y", "+ two"),
    ]
