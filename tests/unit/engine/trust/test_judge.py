"""What counts of a folder, by what was seen of it, what is recorded and what was answered."""

from dataclasses import replace
from pathlib import Path

import pytest

from tui.engine.settings.project import ProjectOffer, ProjectRules
from tui.engine.trust.content import MAX_KEPT, ContextContent, FolderContent, ServerContent
from tui.engine.trust.folder_identity import FolderIdentity
from tui.engine.trust.judge import judge
from tui.engine.trust.own_servers import KnownServer
from tui.engine.trust.trust_store import FolderRecord, Standing, TrustStore, Word
from tui.engine.trust.verdict import Answered, Seen
from tui.model.events import ContextFile
from tui.model.servers import ServerId
from tui.model.trust import FolderTrust, TrustAnswer

T, A = FolderTrust, TrustAnswer
PLACE = FolderIdentity(Path("/clone"), 1, 2, 3)
BEFORE, NOW = ProjectRules(max_tool_calls=5), ProjectRules(max_tool_calls=3)


def content(name: str, rules: ProjectRules = BEFORE, *servers: str) -> FolderContent:
    parts = tuple(ServerContent(one, "file", "stdio", f"hash of {one}") for one in servers)
    files = (ContextContent("A.md", "a"), ContextContent("B.md", name))
    return FolderContent(name, parts, str(rules), rules.words(), rules, files)


OLD, NEW = content("old", BEFORE, "same", "gone"), content("new", NOW, "same", "added")
OFFER = ProjectOffer(context=(ContextFile("A.md", ""), ContextFile("B.md", "")))
SEEN = Seen(PLACE, OFFER, NEW, in_force=ProjectRules(idle_timeout=9))
AS_TRUSTED = replace(SEEN, content=OLD)
YES = Standing(FolderRecord(PLACE, Word.TRUSTED, 1.0, hashes=("old",), content=OLD))
FOR_NOW = replace(YES, for_now=True)
SHARED = replace(SEEN, refusal="others can write to it")
NOTHING = Seen(PLACE, ProjectOffer(), FolderContent("", (), ""))


def said(answer: TrustAnswer, seen: Seen = SEEN) -> Answered:
    return Answered().about(seen.key, answer)


@pytest.mark.parametrize(
    ("seen", "record", "answered", "trust", "rules", "asks"),
    [
        (SEEN, Standing(), Answered(), T.UNTRUSTED, SEEN.in_force, True),
        (SEEN, Standing(), said(A.NOT_NOW), T.UNTRUSTED, SEEN.in_force, False),
        (SEEN, Standing(), said(A.TRUST), T.TRUSTED, NOW, False),
        (SEEN, Standing(), said(A.NEVER), T.NEVER, ProjectRules(), False),
        (SEEN, Standing(never=True), Answered(), T.NEVER, ProjectRules(), False),
        (SEEN, Standing(never=True), said(A.TRUST), T.TRUSTED, NOW, False),
        (SEEN, Standing(never=True), Answered(review=True), T.NEVER, ProjectRules(), True),
        (SEEN, YES, Answered(), T.CHANGED, BEFORE, True),
        (SEEN, YES, said(A.NOT_NOW), T.CHANGED, BEFORE, False),
        (SEEN, YES, Answered(withdrawn=True), T.UNTRUSTED, ProjectRules(), True),
        (SEEN, replace(YES, swapped=True), Answered(), T.CHANGED, BEFORE, True),
        (AS_TRUSTED, YES, Answered(), T.TRUSTED, BEFORE, False),
        (AS_TRUSTED, YES, Answered(review=True), T.TRUSTED, BEFORE, True),
        (AS_TRUSTED, YES, Answered(withdrawn=True), T.UNTRUSTED, ProjectRules(), True),
        (replace(AS_TRUSTED, refusal="x"), YES, Answered(), T.UNTRUSTED, BEFORE, True),
        (replace(SEEN, refusal="x", named=True), YES, Answered(), T.TRUSTED, NOW, False),
        (SHARED, YES, Answered(), T.UNTRUSTED, BEFORE, True),
        (SHARED, FOR_NOW, Answered(), T.CHANGED, BEFORE, True),
        (SHARED, FOR_NOW, Answered(withdrawn=True), T.UNTRUSTED, ProjectRules(), True),
        (replace(SHARED, content=OLD), FOR_NOW, Answered(), T.TRUSTED, BEFORE, False),
        (NOTHING, YES, Answered(), T.CHANGED, BEFORE, True),
        (NOTHING, Standing(), Answered(), T.NOTHING_TO_TRUST, ProjectRules(), False),
        (NOTHING, Standing(), Answered(review=True), T.NOTHING_TO_TRUST, ProjectRules(), True),
        (NOTHING, YES, Answered(withdrawn=True), T.NOTHING_TO_TRUST, ProjectRules(), False),
        (Seen(PLACE), YES, Answered(review=True), T.UNTRUSTED, ProjectRules(), False),
    ],
)
def test_what_is_forbidden_holds_until_a_yes_and_a_question_is_put_once(
    seen: Seen,
    record: Standing,
    answered: Answered,
    trust: FolderTrust,
    rules: ProjectRules,
    asks: bool,
) -> None:
    now = judge(seen, record, answered)
    assert (now.trust, now.rules, now.asks) == (trust, rules, asks)
    assert now.inside is (trust is T.TRUSTED or (trust is T.CHANGED and not record.swapped))


def test_after_a_change_what_is_as_it_was_counts_on() -> None:
    now = judge(SEEN, YES, Answered())
    assert ([*now.servers], [*now.context]) == (["same"], ["A.md"])
    everything = judge(SEEN, YES, said(A.TRUST))
    assert {*everything.servers, *everything.context} == {"same", "added", "A.md", "B.md"}
    for record, seen in ((replace(YES, swapped=True), SEEN), (YES, replace(SEEN, attended=False))):
        none = judge(seen, record, Answered())
        assert (none.servers, none.context) == (frozenset(), frozenset())


def test_a_source_beside_the_users_own_answers_is_named() -> None:
    covered = Standing(covered=True)
    for seen, record, answered, source in (
        (SEEN, covered, Answered(), "trust in a folder above"),
        (replace(SEEN, named=True), covered, Answered(), "--trust-folder"),
        (replace(SEEN, named=True), covered, said(A.TRUST), ""),
        (replace(SEEN, attended=False), covered, Answered(), ""),
    ):
        assert judge(seen, record, answered).source == source


def test_an_answer_takes_back_only_what_it_is_about() -> None:
    server = KnownServer(ServerId("s"), "hash", False, None, frozenset())
    first = Answered({server: A.NEVER}).about(SEEN.key, A.TRUST)
    other = replace(SEEN, content=OLD)
    both = first.about(other.key, A.NOT_NOW)
    assert both.said == {server: A.NEVER, SEEN.key: A.TRUST, other.key: A.NOT_NOW}
    never = both.about(other.key, A.NEVER)
    assert never == Answered({server: A.NEVER, other.key: A.NEVER}, withdrawn=True)
    assert never.about(SEEN.key, A.NOT_NOW).withdrawn
    assert not never.about(SEEN.key, A.TRUST).withdrawn
    assert both.reviewing() == Answered({SEEN.key: A.TRUST}, review=True)
    assert not both.reviewing().about(SEEN.key, A.NOT_NOW).review
    elsewhere = replace(SEEN, identity=replace(PLACE, inode=9))
    assert len({SEEN.key, other.key, elsewhere.key}) == 3


def test_what_is_too_long_to_keep_loses_the_files_for_the_model_first() -> None:
    server = ServerContent("s", "file", "stdio", "h", ("server s",))
    file = ContextContent("A.md", "a", ("tells the model A.md", "x" * MAX_KEPT))
    kept = FolderContent("", (server,), "", ("rule",), context=(file,)).kept()
    assert (kept.servers, kept.rule_lines) == ((server,), ("rule",))
    assert kept.context == (replace(file, lines=file.lines[:1]),)
    long = replace(server, lines=("y" * (MAX_KEPT + 1),))
    bare = FolderContent("", (long,), "", ("rule",), context=(file,)).kept()
    assert (bare.servers, bare.rule_lines) == ((replace(server, lines=()),), ())


def test_a_new_server_that_nobody_answered_about_keeps_an_earlier_no(tmp_path: Path) -> None:
    store = TrustStore(None, tmp_path, pytest.fail)
    store.refuse(["a"], A.NEVER)
    store.refuse_new(["a", "b"], "not answered")
    assert store.refused() == {"a": "never", "b": "not answered"}
    store.refuse(["a", "b"], "")
    assert store.refused() == {}
