"""Which folder is trusted: that one, as it lies on the disk, and no other."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.security.folders import Reader, reader
from tests.security.opened import place
from tui.engine.settings.prohibitions import Permission, voids
from tui.engine.settings.project import written_rule
from tui.engine.trust.folder_identity import may_cover_children, reason_to_refuse
from tui.engine.trust.verdict import Answered
from tui.model.servers import ServerStatus
from tui.model.trust import FolderTrust, TrustAnswer

__all__ = ["place", "reader"]

T = FolderTrust


@pytest.fixture
def clone(reader: Reader) -> Path:
    folder = reader.clone(reader.place.home / "work" / "shop")
    reader.say_yes(folder)
    assert reader.trust(folder) is T.TRUSTED
    assert reader.server("it", folder).withheld is None
    return folder


def test_A04_A05_neither_a_git_folder_nor_a_path_that_begins_alike_is_the_trusted_one(
    reader: Reader, clone: Path
) -> None:
    other = reader.clone(reader.place.home / "other")
    (other / ".git").write_text(f"gitdir: {clone}/.git/worktrees/x\n")
    (clone / ".git" / "worktrees" / "x").mkdir(parents=True)
    (clone / ".git" / "worktrees" / "x" / "gitdir").write_text(f"{other}/.git\n")
    assert reader.trust(other) is T.UNTRUSTED
    reader.say_yes(clone, children=True)
    assert reader.trust(reader.clone(clone.with_name("shop2"))) is T.UNTRUSTED
    assert reader.trust(reader.clone(clone.with_name("SHOP"))) is T.UNTRUSTED


def test_A05_other_spellings_lead_to_the_same_folder_and_a_link_only_while_it_does(
    reader: Reader, clone: Path
) -> None:
    link = reader.place.home / "link"
    link.symlink_to(clone)
    for spelling in (link, clone / ".." / "shop", Path(f"{clone}/")):
        assert reader.trust(spelling) is T.TRUSTED
    link.unlink()
    link.symlink_to(reader.clone(reader.place.home / "evil"))
    assert reader.trust(link) is T.UNTRUSTED


def test_A05_a_folder_put_in_the_place_of_a_trusted_or_shown_one_gets_no_yes(
    reader: Reader, clone: Path
) -> None:
    copy = clone.with_name("copy")
    shutil.copytree(clone, copy)
    clone.rename(clone.with_name("away"))
    copy.rename(clone)
    loaded = reader.load(clone)
    assert (loaded.verdict.trust, loaded.verdict.inside) == (T.CHANGED, False)
    assert loaded.settings.servers[0].withheld is ServerStatus.UNTRUSTED
    assert reader.question(clone).difference[0].text.startswith("this is not the trusted folder")
    folder = reader.clone(clone.with_name("fresh"))
    word = reader.word(folder)
    shown = reader.load(folder, word).seen
    folder.rename(folder.with_name("gone"))
    reader.clone(folder)
    word.trust(shown, children=False)
    assert reader.trust(folder) is T.UNTRUSTED
    answered = Answered().about(shown.key, TrustAnswer.TRUST)
    assert reader.load(folder, answered=answered).verdict.trust is T.UNTRUSTED


@pytest.mark.parametrize(
    ("owner", "group", "mode", "word"),
    [
        (-1, -1, 0o777, "Anyone"),
        (-1, -1, 0o1777, "Anyone"),
        (-1, 12_345, 0o770, "group"),
        (12_345, -1, 0o755, "another user"),
    ],
)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_A05_a_folder_that_others_can_change_gets_a_yes_for_one_run(
    reader: Reader, clone: Path, owner: int, group: int, mode: int, word: str
) -> None:
    os.chown(clone, owner, group)
    clone.chmod(mode)
    loaded = reader.load(clone)
    assert (loaded.verdict.trust, loaded.verdict.inside) == (T.UNTRUSTED, False)
    assert loaded.settings.servers[0].withheld is ServerStatus.UNTRUSTED
    assert word in reader.question(clone).refusal
    yes = Answered().about(loaded.seen.key, TrustAnswer.TRUST)
    assert reader.load(clone, answered=yes).verdict.trust is T.TRUSTED
    (clone / ".gemini" / "settings.json").write_text('{"mcpServers": {"it": {"command": "id"}}}')
    assert reader.load(clone, answered=yes).verdict.trust is T.UNTRUSTED
    assert reader.trust(clone, reader.word(clone, clone)) is T.TRUSTED, "a yes for one run, too"


def test_A05_a_group_of_ones_own_is_no_reason_to_refuse(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    assert reason_to_refuse(tmp_path) == ""


def test_A06_trust_covers_the_folders_in_it_where_asked_for_as_they_were_first(
    reader: Reader, clone: Path
) -> None:
    child = reader.clone(clone / "packages" / "a")
    assert reader.trust(child) is T.UNTRUSTED
    reader.say_yes(clone, children=True)
    assert reader.trust(child) is T.TRUSTED
    assert reader.server("it", child).withheld is None
    (child / ".gemini" / "settings.json").write_text('{"mcpServers": {"it": {"command": "id"}}}')
    assert reader.trust(child) is T.CHANGED
    assert {line.text for line in reader.question(child).difference if line.sign == "+"} == {
        "command id",
        "program /usr/bin/id",
    }


def test_A06_never_wins_below_the_folder_it_was_said_of(reader: Reader, clone: Path) -> None:
    reader.say_yes(clone, children=True)
    vendor = reader.clone(clone / "vendor")
    reader.word(vendor).never()
    assert reader.trust(vendor) is T.NEVER
    assert reader.trust(reader.clone(vendor / "deep" / "er")) is T.NEVER
    assert reader.trust(reader.clone(clone / "vendor2")) is T.TRUSTED


def test_A06_trust_from_above_ends_with_the_word_it_came_from(reader: Reader, clone: Path) -> None:
    reader.say_yes(clone, children=True)
    seen, answered = reader.clone(clone / "seen"), reader.clone(clone / "answered")
    assert (reader.trust(seen), reader.trust(answered)) == (T.TRUSTED, T.TRUSTED)
    reader.say_yes(answered)
    reader.word(clone).forget()
    assert (reader.trust(seen), reader.trust(answered)) == (T.UNTRUSTED, T.TRUSTED)
    reader.word(clone).never()
    assert (reader.trust(seen), reader.trust(answered)) == (T.NEVER, T.TRUSTED)


def test_A06_what_was_taken_back_is_taken_back_from_the_folders_below(
    reader: Reader, clone: Path
) -> None:
    reader.say_yes(clone, children=True)
    child, seen = reader.clone(clone / "a"), reader.clone(clone / "seen")
    assert reader.trust(seen) is T.TRUSTED
    for folder in (child, seen):
        reader.word(folder).forget()
        assert reader.trust(folder) is T.UNTRUSTED
    assert reader.trust(reader.clone(child / "deeper")) is T.UNTRUSTED
    assert reader.trust(reader.clone(clone / "b")) is T.TRUSTED
    clone.chmod(0o777)
    assert reader.trust(clone / "b") is T.UNTRUSTED, "others could have swapped what is in it"
    clone.chmod(0o755)
    assert reader.trust(clone / "b") is T.TRUSTED


def test_A06_some_folders_never_cover_those_in_them(reader: Reader, tmp_path: Path) -> None:
    home = reader.place.home
    for folder in (home, home.parent, Path("/"), Path("/tmp"), Path(tempfile.gettempdir())):
        assert not may_cover_children(folder, home)
    shared = tmp_path / "shared"
    shared.mkdir()
    assert may_cover_children(shared, home)
    shared.chmod(0o1777)
    assert not may_cover_children(shared, home)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("garbage"),
        lambda path: path.write_text("null"),
        lambda path: path.write_text('{"version": 1, "folders": [{"path": "/"}, 7]}'),
        lambda path: path.write_text('{"version": 99, "folders": []}'),
    ],
)
def test_A07_a_trust_store_that_cannot_be_relied_on_trusts_nothing(
    reader: Reader, clone: Path, damage: object
) -> None:
    assert callable(damage)
    file = reader.state / "trust.json"
    assert file.stat().st_mode & 0o777 == 0o600
    damage(file)
    held = {path.read_bytes() for path in reader.state.glob("trust.json*") if path.is_file()}
    assert reader.trust(clone) is not T.TRUSTED
    kept = {path.read_bytes() for path in reader.state.glob("trust.json*") if path.is_file()}
    assert held <= kept


def test_A07_a_salt_that_is_lost_or_that_others_can_read_is_not_used(
    reader: Reader, clone: Path
) -> None:
    salt = reader.state / "salt.json"
    assert salt.stat().st_mode & 0o777 == 0o600
    salt.chmod(0o644)
    assert reader.trust(clone) is not T.TRUSTED
    assert any("salt.json is not used" in problem for problem in reader.problems)
    salt.chmod(0o600)
    assert reader.trust(clone) is T.TRUSTED
    salt.unlink()
    assert reader.trust(clone) is T.CHANGED, "everything is asked about again"


def test_a_folder_named_on_the_command_line_is_forgotten_with_its_name(reader: Reader) -> None:
    folder = reader.place.folder
    reader.place.project({"mcpServers": {"it": {"command": "true"}}})
    word = reader.word(folder, folder)
    assert reader.trust(folder, word) is T.TRUSTED
    reader.place.project({"mcpServers": {"it": {"command": "false"}}})
    assert reader.trust(folder, word) is T.CHANGED, "it was named for what it had"
    reader.place.project({"mcpServers": {"it": {"command": "true"}}})
    word.forget()
    assert reader.trust(folder, word) is T.UNTRUSTED
    assert reader.trust(folder, reader.word(folder, folder)) is T.TRUSTED
    reader.place.project({"mcpServers": {"other": {"command": "true"}}})
    reader.say_yes(folder, word)
    assert reader.trust(folder, word) is T.TRUSTED
    reader.place.project({"mcpServers": {"it": {"command": "true"}}})
    assert reader.trust(folder, word) is T.CHANGED, "its name counts no longer"
    never = reader.word(folder, folder)
    never.never()
    assert reader.trust(folder, never) is T.NEVER


def test_A06_what_a_folder_forbade_ends_with_its_yes(reader: Reader) -> None:
    folder = reader.place.folder
    forbids = {"tools": {"confirmationRequired": ["ask"]}, "security": {"disableYoloMode": True}}
    reader.place.project({"gemdeck": {"alwaysDeny": [{"tool": "push"}]}, **forbids})
    word = reader.word(folder, folder)
    loaded = reader.load(folder, word)
    assert [voids(rule) for rule in loaded.verdict.rules.always_deny] == [
        *((), tuple(Permission), (Permission.YOLO,))
    ]
    denied, asked, switch = map(written_rule, loaded.verdict.rules.always_deny)
    assert (denied, [*asked][:2], [*switch][:2]) == (["*", "push"], ["*", "ask"], ["*", "*"])
    assert loaded.verdict.rules.words() == (
        "The tool push of * never runs.",
        "You are asked each time: tool ask of *.",
        "--yolo does not count here.",
    )
    reader.place.project({"gemdeck": {"alwaysDeny": [{"tool": "pull"}]}})
    standing = list(map(written_rule, reader.load(folder, word).verdict.rules.always_deny))
    assert standing == [denied, asked, switch], "holds until a new yes"
    reader.place.project({"tools": {"exclude": ["ask"]}})
    word = reader.word(folder, folder)
    assert reader.trust(folder, word) is T.TRUSTED
    reader.place.project({"tools": {"confirmationRequired": ["ask"]}})
    assert reader.trust(folder, word) is T.CHANGED, "it asks what it denied"
    word.forget()
    assert reader.load(folder, word).verdict.rules.always_deny == ()


def test_B22_a_project_denies_calls_with_certain_arguments_until_a_new_yes(reader: Reader) -> None:
    folder = reader.place.folder
    wanted = {"path": {"folder": "secret"}, "force": {"is": None}, "note": {"any": True}}
    denied = {"tool": "push", "arguments": wanted}
    allowed = [{"tool": "push", "arguments": {"path": {"any": True}}}]
    reader.place.project({"gemdeck": {"alwaysDeny": [denied], "alwaysAllow": allowed}})
    word = reader.word(folder, folder)
    loaded = reader.load(folder, word)
    assert loaded.settings.gemdeck.always_allow == ()
    words = "path is in secret, and force is null, and note is anything or missing"
    assert loaded.verdict.rules.words() == (f"The tool push of * never runs where {words}.",)
    reader.place.project({"gemdeck": {"alwaysDeny": [{"tool": "push", "arguments": {}}]}})
    [rule] = reader.load(folder, word).verdict.rules.always_deny
    assert rule.key == loaded.verdict.rules.always_deny[0].key, "read again from the file of trust"
    assert written_rule(rule) == denied
