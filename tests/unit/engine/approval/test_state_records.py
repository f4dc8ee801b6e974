"""What another gemdeck wrote of grants, pins and trust is read, and written as it was."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tui.engine.approval.grants import Grant, GrantBook, GrantNote, read_all, write_all
from tui.engine.approval.tool_review import Pin, PinStore
from tui.engine.files.state_file import StateFile
from tui.engine.settings.project import ProjectRules
from tui.engine.trust.content import FolderContent, ServerContent
from tui.engine.trust.trust_store import (
    FolderIdentity,
    Record,
    StartFolders,
    StartRecord,
    TrustStore,
    Word,
    identify,
)
from tui.model.consent import Condition, ConditionKind, Effect, GrantScope
from tui.model.settings import ToolPattern
from tui.model.trust import TrustAnswer

GRANTS = """[
 {"effect": "allow", "server": "f1", "tool": "\\"go\\"", "definition": "d1", "scope": "FOLDER",
  "folder": "/work", "arguments": [["path", "\\"/a\\""]],
  "label": ["notes", "go"], "words": "always this tool", "granted": 5, "used": 6.5},
 {"effect": "deny", "server": "f2", "tool": null, "definition": "", "scope": "EVERYWHERE",
  "folder": "", "arguments": [], "label": ["mail", ""], "words": "", "granted": null,
  "used": null}
]"""

PINS = """{"version": 1, "tools": {
 "k1": {"hash": "h1", "definition": "{}"}, "k2": {"hash": "h2", "definition": ""}
}}"""

TRUST = """{"version": 1, "folders": [
 {"path": "/work", "dev": 1, "ino": 2, "uid": 3, "state": "trusted", "when": 4.5,
  "children": true, "hashes": ["h2", "h1"], "inherited": false,
  "content": {"hash": "h2", "rules": "r", "rule_lines": ["nothing"],
   "servers": [{"name": "s", "source": "settings.json", "transport": "stdio", "hash": "h",
    "lines": ["server s"]}],
   "forbidden": {"allowed": ["s"], "excluded": ["t"], "denied": [["s", "go_*"]], "calls": 5,
    "result": 1000, "idle": 30.0, "source": ".gemini/settings.json"}}},
 {"path": "/other", "dev": 1, "ino": 9, "uid": 3, "state": "never", "when": 6.0,
  "children": false, "hashes": [], "inherited": false}
], "refused": {"f": "never"}}"""

WORK = FolderIdentity(Path("/work"), 1, 2, 3)
OTHER = FolderIdentity(Path("/other"), 1, 9, 3)
SERVERS = (ServerContent("s", "settings.json", "stdio", "h", ("server s",)),)
NAMED = (frozenset({"s"}), frozenset({"t"}), (ToolPattern(server="s", tool="go_*"),))
RULES = ProjectRules(*NAMED, 5, 1000, 30.0, ".gemini/settings.json")
CONTENT = FolderContent("h2", SERVERS, "r", ("nothing",), RULES)


def kept(path: Path, text: str) -> Path:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_grants_are_read_and_written() -> None:
    conditions = (Condition("path", ConditionKind.IS, '"/a"'),)
    allowed = Grant(Effect.ALLOW, "f1", "go", "d1", GrantScope.FOLDER, "/work", conditions)
    denied = Grant(Effect.DENY, "f2", None, "", GrantScope.EVERYWHERE, "", ())
    expected = {
        allowed: GrantNote("notes", "go", "always this tool", 5.0, 6.5),
        denied: GrantNote("mail", ""),
    }
    entries = json.loads(GRANTS)
    assert read_all(entries) == expected
    entries[0]["arguments"] = [["path", "is", '"/a"']]  # which an older gemdeck takes for no rule
    assert (write_all(expected), read_all(entries)) == (entries, expected)


def test_a_grant_without_its_conditions_or_folder_is_no_wider_one() -> None:
    entry = json.loads(GRANTS)[0]
    for key in ("arguments", "folder", "definition", "tool", "server", "scope", "effect"):
        assert read_all([{k: value for k, value in entry.items() if k != key}]) == {}


def test_a_grant_stands_without_what_is_remembered_beside_it() -> None:
    entry = json.loads(GRANTS)[1]
    for change in ({"label": ["mail"]}, {"granted": "now"}, {"label": ["m" * 300, ""]}):
        [(grant, note)] = read_all([{**entry, **change}]).items()
        assert (grant.effect, note) == (Effect.DENY, GrantNote("", ""))


def test_pins_are_read_and_written(tmp_path: Path) -> None:
    fingerprint = "ab" * 32
    path = kept(tmp_path / "pins" / f"{fingerprint}.json", PINS)
    store = PinStore(path.parent, pytest.fail)
    known = {"k1": Pin("h1", "{}"), "k2": Pin("h2")}
    assert store.load(fingerprint) == known
    store.save(fingerprint, {"k3": Pin("h3", "x")}, replacing=False)
    content = json.loads(path.read_text())
    assert content.pop("version") == 1
    added = {"hash": "h3", "definition": "x"}
    assert content == {"tools": {**json.loads(PINS)["tools"], "k3": added}}


def test_trust_is_read_and_written(tmp_path: Path) -> None:
    path = kept(tmp_path / "state" / "trust.json", TRUST)
    store = TrustStore(path.parent, tmp_path, pytest.fail)
    expected = Record(WORK, Word.TRUSTED, 4.5, True, ("h2", "h1"), CONTENT)
    assert store.standing(WORK).record == expected
    assert store.standing(OTHER).never
    assert store.refused() == {"f": "never"}
    store.refuse(["g"], "never")
    store.forget(FolderIdentity(Path("/elsewhere"), 1, 1, 1))
    written, before = json.loads(path.read_text()), json.loads(TRUST)
    before["folders"][1]["content"] = None
    assert written == {**before, "refused": {"f": "never", "g": "never"}}


def test_a_record_of_before_there_were_rules_is_read(tmp_path: Path) -> None:
    content = json.loads(TRUST)
    [folder, _] = content["folders"]
    del folder["content"]["forbidden"], folder["content"]["rule_lines"], folder["inherited"]
    path = kept(tmp_path / "state" / "trust.json", json.dumps(content))
    record = TrustStore(path.parent, tmp_path, pytest.fail).standing(WORK).record
    assert record is not None
    assert record.content is not None
    assert record.content.forbidden == ProjectRules()


def test_an_odd_record_of_trust_counts_as_none(tmp_path: Path) -> None:
    hashed: dict[str, Any] = {"hash": "h", "servers": [], "rules": ""}
    changes: tuple[dict[str, Any], ...] = (
        *({"dev": True}, {"ino": "2"}, {"state": "sure"}, {"state": 1}, {"path": "work"}),
        *({"path": 5}, {"children": "yes"}, {"children": 1}, {"when": "today"}, {"hashes": "h1"}),
        {"content": {"hash": "h2"}},
        {"content": {**hashed, "forbidden": {"denied": [5]}}},
        {"content": {**hashed, "forbidden": {"denied": [["s"] * 9]}}},
    )
    content = json.loads(TRUST)
    for change in changes:
        odd = {"version": 1, "folders": [{**content["folders"][0], **change}]}
        path = kept(tmp_path / "state" / "trust.json", json.dumps(odd))
        store = TrustStore(path.parent, tmp_path, pytest.fail)
        assert store.standing(WORK).record is None, change


def test_a_folder_whose_name_is_no_unicode_leaves_the_other_answers_alone(tmp_path: Path) -> None:
    path = kept(tmp_path / "state" / "trust.json", TRUST)
    odd = FolderIdentity(Path(os.fsdecode(b"/work\xff %41")), 1, 5, 3)
    TrustStore(path.parent, tmp_path, pytest.fail).never(odd)
    store = TrustStore(path.parent, tmp_path, pytest.fail)
    assert store.standing(odd).never
    assert store.standing(OTHER).never


def test_an_answer_about_a_start_folder_is_read_and_written(tmp_path: Path) -> None:
    entry = {"path": "/work", "dev": 1, "ino": 2, "uid": 3, "answer": "trust", "when": 4.5}
    seen = json.loads(TRUST)["folders"][0]["content"]["servers"]
    entry |= {"inside": seen, "outside": [], "inherited": False}
    text = json.dumps({"version": 1, "folders": [entry, {**entry, "path": "/odd", "dev": "1"}]})
    path = kept(tmp_path / "state" / "start-folders.json", text)
    odd = FolderIdentity(Path(os.fsdecode(b"/work\xff %41")), 1, 5, 3)
    store = StartFolders(path.parent, tmp_path, pytest.fail)
    store.keep(odd, TrustAnswer.NEVER)
    assert said(store, odd) is TrustAnswer.NEVER
    expected = StartRecord(WORK, TrustAnswer.TRUST, 4.5, CONTENT.servers, ())
    assert store.standing(WORK) == (expected, False)
    assert store.standing(FolderIdentity(Path("/work"), 1, 7, 3)) == (None, False)
    [first, _] = json.loads(path.read_text())["folders"]
    assert first == entry
    store.forget(odd)
    assert said(store, odd) is None


def said(store: StartFolders, folder: FolderIdentity) -> TrustAnswer | None:
    record, _ = store.standing(folder)
    return record.answer if record is not None else None


def test_what_a_yes_above_reaches_is_kept_until_either_is_forgotten(tmp_path: Path) -> None:
    above, below = tmp_path / "above", tmp_path / "above" / "below"
    below.mkdir(parents=True)
    [outer, inner] = filter(None, map(identify, (above, below)))
    store = StartFolders(None, tmp_path / "home", pytest.fail)
    store.keep(outer, TrustAnswer.TRUST_WITH_CHILDREN)
    assert store.standing(inner) == (None, True)
    store.inherit(inner, CONTENT.servers)
    record, is_new = store.standing(inner)
    assert record is not None
    assert (record.inside, is_new) == (CONTENT.servers, False)
    store.forget(inner)
    assert said(store, inner) is TrustAnswer.NOT_NOW
    store.inherit(inner, CONTENT.servers)
    store.keep(outer, TrustAnswer.NEVER)
    assert store.standing(inner) == (None, False)


def test_a_server_is_allowed_in_a_folder_or_outside_it_as_was_said_last(tmp_path: Path) -> None:
    store, [one] = StartFolders(None, tmp_path, pytest.fail), CONTENT.servers
    other = replace(one, name="other")
    changed = replace(one, hash="now")
    store.keep(WORK, TrustAnswer.TRUST, [one, other])
    for answer, inside, outside, found in (
        (TrustAnswer.START_OUTSIDE, [], [one], ((other,), (one,))),
        (TrustAnswer.TRUST, [changed], [], ((other, changed), ())),
    ):
        store.keep(WORK, answer, inside, outside=outside)
        record, _ = store.standing(WORK)
        assert record is not None
        assert (record.inside, record.outside) == found


async def test_a_grant_for_a_name_that_is_no_unicode_leaves_the_others(tmp_path: Path) -> None:
    entries = json.loads(GRANTS)
    path = kept(tmp_path / "state" / "grants.json", json.dumps({"version": 1, "grants": entries}))
    known = set(read_all(entries))
    folder = os.fsdecode(b"/work\xff %41")
    odd = Grant(Effect.ALLOW, "f1", "go", "d1", GrantScope.FOLDER, folder, ())
    for added in ({odd: GrantNote("notes", "go")}, {}):
        book = GrantBook(StateFile(path, fails_closed=True, on_problem=pytest.fail))
        await book.refresh()
        book.add(added)
        await book.aclose()
    assert set(book.grants) == known | {odd}
