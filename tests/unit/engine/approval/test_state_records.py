"""What another gemdeck wrote of grants, pins and trust is read, and written as it was."""

import json
import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.definitions import altered, define_server
from tui.engine.approval.grants import Grant, GrantBook, GrantNote, read_all, write_all
from tui.engine.approval.tool_review import Pin, PinStore
from tui.engine.definitions.fingerprint import server_fingerprint
from tui.engine.files.state_file import StateFile
from tui.engine.settings.project import ProjectOffer, ProjectRules
from tui.engine.trust.content import FolderContent, ServerContent, describe
from tui.engine.trust.folder_identity import FolderIdentity
from tui.engine.trust.trust_store import (
    EARLIER,
    MAX_HASHES,
    FolderRecord,
    Standing,
    TrustStore,
    Word,
)
from tui.model.consent import Condition, ConditionKind, Effect, GrantScope
from tui.model.events import ContextFile
from tui.model.servers import Origin, ServerId, Transport
from tui.model.settings import ToolPattern

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
  "children": true, "hashes": ["h2", "h1"], "inherited": false, "boxes": "if possible",
  "content": {"hash": "h2", "rules": "r", "rule_lines": ["nothing"],
   "servers": [{"name": "s", "source": "settings.json", "transport": "stdio", "hash": "h",
    "lines": ["server s"]}],
   "forbidden": {"allowed": ["s"], "excluded": ["t"], "denied": [["s", "go_*"]], "calls": 5,
    "result": 1000, "idle": 30.0, "source": ".gemini/settings.json"}}},
 {"path": "/other", "dev": 1, "ino": 9, "uid": 3, "state": "never", "when": 6.0,
  "children": false, "hashes": [], "inherited": false, "boxes": "if possible"}
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
    expected = {**json.loads(PINS)["tools"], "k3": added}
    assert content == {"tools": {key: {**pin, "seen": False} for key, pin in expected.items()}}


def test_trust_is_read_and_written(tmp_path: Path) -> None:
    path = kept(tmp_path / "state" / "trust.json", TRUST)
    store = TrustStore(path.parent, tmp_path, pytest.fail)
    expected = FolderRecord(WORK, Word.TRUSTED, 4.5, True, ("h2", "h1"), CONTENT)
    assert store.standing(WORK).record == expected
    assert store.standing(OTHER).never
    assert store.refused() == {"f": "never"}
    store.refuse(["g"], "never")
    store.forget(FolderIdentity(Path("/elsewhere"), 1, 1, 1))
    written, before = json.loads(path.read_text()), json.loads(TRUST)
    before["folders"][0]["content"]["context"] = []
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


def test_of_the_file_of_older_versions_a_never_counts_and_a_yes_does_not(tmp_path: Path) -> None:
    entry = {"path": "/third", "dev": 1, "ino": 7, "uid": 3, "answer": "never", "when": 4.5}
    entries = [entry, {**entry, "path": "/work", "answer": "never"}]
    entries.append({**entry, "path": "/yes", "answer": "trust with all folders in it"})
    state = tmp_path / "state"
    kept(state / "trust.json", TRUST)
    earlier = kept(state / EARLIER, json.dumps({"version": 1, "folders": entries}))
    store = TrustStore(state, tmp_path, pytest.fail)
    assert store.standing(FolderIdentity(Path("/third"), 1, 7, 3)).never
    assert store.standing(FolderIdentity(Path("/yes"), 1, 7, 3)) == Standing()
    assert not store.standing(WORK).never, "what was said of the whole folder counts"
    assert not earlier.exists()
    kept(earlier, json.dumps({"version": 1, "folders": entries}))
    TrustStore(state, tmp_path, pytest.fail).trust(OTHER, CONTENT)
    assert not earlier.exists()
    store.forget(FolderIdentity(Path("/third"), 1, 7, 3))
    again = TrustStore(state, tmp_path, pytest.fail)
    assert again.standing(FolderIdentity(Path("/third"), 1, 7, 3)) == Standing()


def test_a_yes_keeps_earlier_contents_of_this_very_folder_alone(tmp_path: Path) -> None:
    store = TrustStore(None, tmp_path, pytest.fail)
    for number in range(MAX_HASHES + 2):
        store.trust(WORK, replace(CONTENT, hash=f"h{number}"))
    record = store.standing(WORK).record
    assert record is not None
    assert record.hashes == tuple(f"h{MAX_HASHES + 1 - number}" for number in range(MAX_HASHES))
    other = replace(WORK, inode=9)
    store.trust(other, CONTENT)
    record = store.standing(other).record
    assert record is not None
    assert record.hashes == (CONTENT.hash,)


def test_what_was_allowed_before_named_files_were_left_out_goes_on_counting() -> None:
    """Grants and trust hold on to these hashes, which came of the code before."""
    written = {"command": "true", "args": ["a"], "env": {"A": "1"}}
    own = define_server(
        ServerId("s"),
        *(Origin.USER, Transport.STDIO, "true", ("a",)),
        env=MappingProxyType({"A": "1"}),
        cwd=Path("/srv"),
        program="/bin/true",
        source="~/x.json",
        written=written,
    )
    assert server_fingerprint(own, b"salt").startswith("0fdb6be272d6f6e6f2de74ad6c")
    outside = replace(own, is_outside=True)
    assert server_fingerprint(outside, b"salt") == server_fingerprint(own, b"salt")
    theirs, folder = altered(own, origin=Origin.PROJECT), ("/clone", 1, 2, 3)
    assert server_fingerprint(theirs, b"salt", folder).startswith("d4e8f828c64951e4fdbe32c4")
    rules, said = ProjectRules(max_tool_calls=5), (ContextFile("A.md", "x"),)
    content = describe(ProjectOffer((theirs,), rules, context=said), b"salt", Path("/clone"))
    assert content.hash.startswith("2c8655f1b3c0e3cdb0cf5d178f2b")


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
