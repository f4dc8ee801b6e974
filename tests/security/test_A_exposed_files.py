"""What grants something counts only where nobody else could have written it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import World
from tests.security.decks import Play, Turncoat, calling
from tui.engine.files.atomic import read_own, write_private
from tui.engine.files.state_file import ServerFiles, StateFile, StateFileError
from tui.engine.logs.redaction import Redactor
from tui.model.consent import Choice, GrantScope
from tui.model.events import NoticeRaised


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir(mode=0o700)
    return tmp_path / "state/trust.json"


def loosen(path: Path) -> None:
    path.chmod(0o620)


def lead_elsewhere(path: Path) -> None:
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    path.rename(elsewhere / "trust.json")
    path.symlink_to(elsewhere / "trust.json")


@pytest.mark.parametrize(
    ("expose", "reason"),
    [
        (loosen, "others have access to it (620)"),
        pytest.param(
            lambda path: os.chown(path, 12_345, 12_345),
            "belongs to another user",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away"),
        ),
        (lambda path: path.with_name("other").hardlink_to(path), "second hard link"),
        (lead_elsewhere, "links into another folder"),
        (lambda path: path.parent.chmod(0o777), "others can write to its folder"),
        (lambda path: path.parent.parent.chmod(0o777), "others can write to its folder"),
    ],
)
def test_A07_what_others_could_have_written_grants_nothing_and_stays_as_it_is(
    path: Path, expose: Callable[[Path], None], reason: str
) -> None:
    told = list[str]()
    data = b'{"version": 1, "trusted": ["/"]}'
    write_private(path, data)
    expose(path)
    file = StateFile(path, fails_closed=True, on_problem=told.append)
    assert file.load() is None
    assert reason in told.pop()
    assert file.update(lambda _: {"mine": 1}) == {"mine": 1}
    assert "this run only" in told.pop()
    assert file.load() == {"mine": 1}
    assert path.read_bytes() == data
    with pytest.raises(StateFileError, match="is not used"):
        file.save(lambda _: {"mine": 2})
    assert path.read_bytes() == data


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
async def test_B27_a_folder_that_others_can_write_to_keeps_no_grant_until_the_user_closes_it(
    shop: Turncoat, play: Play, world: World, mode: int
) -> None:
    async with play(calling("look"), shop) as running:
        await running.ask("go", Choice.ALWAYS_TOOL, scope=GrantScope.EVERYWHERE)
    world.state.chmod(mode)
    for _ in range(2):  # the first start does not make it good
        async with play(calling("look"), shop) as running:
            assert running.store.state.grants == ()
            await running.answered("again", Choice.DENY)
            notices = [str(one) for one in running.events if isinstance(one, NoticeRaised)]
            [words] = [one for one in notices if "grants.json" in one]
            assert "is not used: others can write to its folder" in words
            assert f"Make {world.state} yours (chmod go-w)." in words
            assert any("pins/" in one for one in notices) or mode == 0o770  # a folder above it
    world.state.chmod(0o700)
    async with play(calling("look"), shop) as running:
        await running.ask("and again")
    assert len(shop.calls) == 2


def test_A07_a_folder_above_that_a_group_of_ones_own_can_write_to_is_no_reason(path: Path) -> None:
    path.parent.chmod(0o700)
    path.parent.parent.chmod(0o775)  # as umask 002 makes it
    write_private(path, b"mine")
    assert read_own(path, 100, alone=True) == b"mine"


def test_A07_the_file_of_a_server_is_named_in_words_that_no_mask_hides(tmp_path: Path) -> None:
    told = list[str]()
    fingerprint = "f02e059a519ddd70b0a6aa7cc4fb216977443a84bed02e75c39d619acf1ffd7d"
    file = ServerFiles(tmp_path / "pins", told.append).of(fingerprint)
    assert file is not None
    file.update(lambda _: {"mine": 1})
    loosen(tmp_path / "pins" / f"{fingerprint}.json")
    assert file.load() is None
    assert Redactor().redact(told.pop()).startswith("pins/f02e059a….json is not used: ")
