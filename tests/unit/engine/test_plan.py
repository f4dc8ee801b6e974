"""What runs and what is asked, without an engine: what was read and answered in, a plan out."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.definitions import altered, define_server
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.plan import Answers, Plan, plan
from tui.engine.reload import Reading
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.project import ProjectOffer, ProjectRules
from tui.engine.trust.content import ContextContent, FolderContent, ServerContent
from tui.engine.trust.folder_identity import FolderIdentity
from tui.engine.trust.own_servers import UNANSWERED, written_keys
from tui.engine.trust.trust_store import FolderRecord, Standing, Word
from tui.engine.trust.verdict import Answered, Seen
from tui.model.events import ContextFile
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.model.settings import EVERYTHING, NOTHING, AllowedPattern, GemdeckSettings, Profile
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject

PLACE = FolderIdentity(Path("/clone"), 1, 2, 3)
WAITS, OFF = ServerStatus.UNTRUSTED, ServerStatus.DISABLED
YES, NEVER, NOT_NOW = TrustAnswer.TRUST, TrustAnswer.NEVER, TrustAnswer.NOT_NOW
INSIDE, OUTSIDE = "inside", "outside"
EMPTY = FolderContent("nothing", (), "")


def server(name: str, origin: Origin = Origin.USER, **more: object) -> ServerDefinition:
    made = define_server(
        ServerId(name), origin, Transport.STDIO, command=name, fingerprint=name, source="file"
    )
    return altered(made, written={"command": name}, **more)


def trusted(content: FolderContent = EMPTY) -> Standing:
    """The record of a yes."""
    return Standing(FolderRecord(PLACE, Word.TRUSTED, 1.0, hashes=(content.hash,), content=content))


def found(
    *servers: ServerDefinition,
    seen: Seen | None = None,
    record: Standing | None = None,
    refused: dict[str, str] | None = None,
    **gemdeck: object,
) -> Reading:
    """What was read: by default of a folder that says nothing and has a yes."""
    settings = LoadedSettings(GemdeckSettings(**gemdeck), servers, ())
    seen = seen or Seen(PLACE, ProjectOffer(), EMPTY)
    return Reading(settings, seen, record or trusted(), refused=refused or {})


def brings(*servers: ServerDefinition, **more: object) -> Seen:
    """A folder that brings servers."""
    parts = tuple(ServerContent(one.id, "file", "stdio", one.fingerprint) for one in servers)
    content = FolderContent(" ".join(["h", *(one.fingerprint for one in servers)]), parts, "")
    return replace(Seen(PLACE, ProjectOffer(servers), content), **more)  # type: ignore[arg-type]


NO_RECORD = Standing()
IT = server("it", Origin.PROJECT)


def admitted(now: Plan) -> dict[str, object]:
    """The admission of each server: where it starts, or the status in which it is held."""
    return {str(one.id): one.withheld or place(one) for one in now.definitions}


def place(one: ServerDefinition) -> str:
    return OUTSIDE if one.is_outside else INSIDE


def first(reading: Reading) -> Answers:
    return Answers().reading(reading)


def planned(reading: Reading, answers: Answers | None = None) -> Plan:
    return plan(reading, answers or first(reading))


def test_what_stands_in_the_settings_at_first_runs_and_a_later_one_is_asked_about() -> None:
    answers = first(found(server("old")))
    later = found(server("old"), server("new"), server("theirs", Origin.EXTENSION))
    answers = answers.reading(later)
    now = plan(later, answers)
    assert admitted(now) == {"old": INSIDE, "new": WAITS, "theirs": WAITS}
    [question] = now.questions
    assert question.subject is TrustSubject.SETTINGS
    assert [one.id for one in question.servers] == ["new", "theirs"]
    assert len({*question.refusal_keys, *question.entry_keys}) == 4
    assert question.refusal_keys == question.entry_keys[::2]
    put_off = plan(later, answers.answer(question, NOT_NOW))
    assert (put_off.questions, admitted(put_off)) == ((), admitted(now))
    allowed = plan(later, answers.answer(question, YES))
    assert allowed.questions == ()
    assert set(admitted(allowed).values()) == {INSIDE}


def test_a_server_that_a_command_wrote_while_gemdeck_runs_is_not_asked_about() -> None:
    answers = first(found(server("old")))
    by_command, by_hand = server("a"), server("b")
    added = frozenset({written_keys(by_command.entry.written, b"")[1]})
    later = replace(found(server("old"), by_command, by_hand), added=added)
    assert admitted(plan(later, answers.reading(later))) == {"old": INSIDE, "a": INSIDE, "b": WAITS}


def test_an_edit_that_allows_more_is_new_and_one_that_allows_less_is_not() -> None:
    bounded = server("s", include_tools=frozenset({"a", "b"}), exclude_tools=frozenset({"x"}))
    answers = first(found(bounded))
    for edit, status in (
        (replace(bounded, include_tools=frozenset({"a"})), INSIDE),
        (replace(bounded, exclude_tools=frozenset({"x", "y"})), INSIDE),
        (replace(bounded, include_tools=None), WAITS),
        (replace(bounded, include_tools=frozenset({"a", "c"})), WAITS),
        (replace(bounded, exclude_tools=frozenset()), WAITS),
        (replace(bounded, trust=True), WAITS),
        (altered(bounded, command="other"), WAITS),
    ):
        later = found(edit)
        assert admitted(plan(later, answers.reading(later))) == {"s": status}, edit


@pytest.mark.parametrize(
    ("word", "questions", "reason"),
    [
        (NOT_NOW, 1, "you refused it"),
        (NEVER, 0, "you refused it"),
        (UNANSWERED, 1, "while gemdeck was running"),
    ],
)
def test_what_was_refused_or_not_answered_in_an_earlier_run_waits(
    word: str, questions: int, reason: str
) -> None:
    for key in written_keys(server("s").entry.written, b""):
        reading = found(server("s"), refused={key: word})
        now = planned(reading)
        assert (admitted(now), len(now.questions)) == ({"s": WAITS}, questions)
        failure = now.definitions[0].failure
        assert failure is not None
        assert reason in failure.reason
        answers = first(reading)
        review = replace(answers, answered=answers.answered.reviewing())
        assert TrustSubject.SETTINGS in {one.subject for one in plan(reading, review).questions}


def test_what_was_refused_runs_once_a_command_added_exactly_that() -> None:
    entry = server("s")
    written = {**entry.entry.written, "trust": True}
    looser = altered(entry, id=ServerId("t"), trust=True, written=written)
    runs, whole = written_keys(entry.entry.written, b"")
    refused = {runs: NEVER.value, whole: NEVER.value}
    reading = replace(found(entry, looser, refused=refused), added=frozenset({whole}))
    assert admitted(planned(reading)) == {"s": INSIDE, "t": WAITS}


def test_own_servers_start_outside_until_the_folder_has_a_yes() -> None:
    own = (server("mine"), server("net", transport=Transport.HTTP))
    quiet = Seen(PLACE, ProjectOffer(), EMPTY)
    changed = trusted(FolderContent("before", (), ""))
    for seen, record, trust, where in (
        (quiet, NO_RECORD, FolderTrust.NOTHING_TO_TRUST, OUTSIDE),
        (quiet, trusted(), FolderTrust.TRUSTED, INSIDE),
        (quiet, changed, FolderTrust.TRUSTED, INSIDE),
        (quiet, replace(changed, swapped=True), FolderTrust.NOTHING_TO_TRUST, OUTSIDE),
        (brings(IT), NO_RECORD, FolderTrust.UNTRUSTED, OUTSIDE),
        (brings(IT), changed, FolderTrust.CHANGED, INSIDE),
        (brings(IT, attended=False), changed, FolderTrust.CHANGED, INSIDE),
        (brings(IT), replace(changed, swapped=True), FolderTrust.CHANGED, OUTSIDE),
        (brings(IT), Standing(never=True), FolderTrust.NEVER, OUTSIDE),
        (brings(IT), Standing(covered=True), FolderTrust.TRUSTED, INSIDE),
        (brings(IT, attended=False), Standing(covered=True), FolderTrust.UNTRUSTED, OUTSIDE),
        (brings(IT, refusal="x"), Standing(covered=True), FolderTrust.UNTRUSTED, OUTSIDE),
        (brings(IT, named=True), NO_RECORD, FolderTrust.TRUSTED, INSIDE),
        (brings(IT, named=True), Standing(never=True), FolderTrust.NEVER, OUTSIDE),
        (Seen(PLACE), NO_RECORD, FolderTrust.UNTRUSTED, OUTSIDE),
        (Seen(), NO_RECORD, FolderTrust.UNTRUSTED, OUTSIDE),
    ):
        now = planned(found(*own, seen=seen, record=record))
        assert (now.trust, admitted(now)) == (trust, {"mine": where, "net": where}), (seen, record)
        is_quiet = trust in {FolderTrust.NOTHING_TO_TRUST, FolderTrust.TRUSTED}
        is_quiet = is_quiet or seen.content is None or not seen.attended
        assert bool(now.questions) is not (is_quiet or trust is FolderTrust.NEVER)


def test_what_needs_the_folder_waits_for_its_yes_and_says_why() -> None:
    seen = Seen(PLACE, ProjectOffer(), EMPTY, needs={ServerId("mine"): "argument 1 is ./a"})
    now = planned(found(server("mine"), server("other"), seen=seen, record=NO_RECORD))
    assert admitted(now) == {"mine": WAITS, "other": OUTSIDE}
    failure = now.definitions[0].failure
    assert failure is not None
    assert failure.reason == "Needs this folder: argument 1 is ./a."
    assert failure.advice.startswith("Press t to trust the folder")
    assert now.questions == (), "it is quiet"
    assert admitted(planned(found(server("mine"), seen=seen))) == {"mine": INSIDE}


def test_what_the_user_may_enable_starts_where_it_would_without_that() -> None:
    off = server("off").held(
        OFF, "Disabled: turned off in its settings entry.", "", may_enable=True
    )
    for record, needs, admission in (
        (trusted(), {}, INSIDE),
        (NO_RECORD, {}, OUTSIDE),
        (NO_RECORD, {off.id: "it uses ${PWD}"}, WAITS),
    ):
        seen = Seen(PLACE, ProjectOffer(), EMPTY, needs=needs)
        [now] = planned(found(off, seen=seen, record=record)).definitions
        assert admission in {now.withheld, place(now)}
        assert now.may_enable is (admission is not WAITS)
    left_out = replace(first(found(server("s"), record=NO_RECORD)), profiles={"a": NOTHING})
    [now] = plan(found(server("s"), record=NO_RECORD), left_out).definitions
    assert (now.withheld, now.is_outside, now.may_enable) == (OFF, True, True)


def test_a_review_asks_about_a_folder_that_says_nothing_and_its_yes_counts_at_once() -> None:
    reading = found(server("mine"), record=NO_RECORD)
    answers = first(reading)
    review = replace(answers, answered=answers.answered.reviewing())
    [question] = plan(reading, review).questions
    assert (question.subject, question.own) == (TrustSubject.FOLDER, ("mine",))
    yes = review.answer(question, YES)
    now = plan(reading, yes)
    assert (now.trust, now.questions, admitted(now)) == (
        *(FolderTrust.TRUSTED, ()),
        {"mine": INSIDE},
    )
    for answer in (NOT_NOW, NEVER):
        after = plan(reading, yes.answer(question, answer))
        assert after.questions == ()
        assert admitted(after) == {"mine": OUTSIDE}


def test_a_folders_servers_stop_at_once_when_trust_is_taken_back() -> None:
    seen = brings(IT)
    assert seen.content is not None
    reading = found(IT, server("mine"), seen=seen, record=trusted(seen.content))
    answers = first(reading)
    assert admitted(plan(reading, answers)) == {"it": INSIDE, "mine": INSIDE}
    back = replace(answers, answered=answers.answered.taken_back(seen.key))
    now = plan(reading, back)
    assert admitted(now) == {"it": WAITS, "mine": OUTSIDE}
    assert (now.trust, now.questions) == (FolderTrust.UNTRUSTED, ())
    named = replace(reading, seen=replace(seen, named=True), record=NO_RECORD)
    assert admitted(plan(named, back)) == admitted(now)
    again = replace(back, answered=back.answered.about(seen.key, YES))
    assert admitted(plan(reading, again)) == {"it": INSIDE, "mine": INSIDE}


def test_a_content_that_was_answered_about_is_asked_about_only_on_review() -> None:
    reading = found(seen=brings(IT), record=NO_RECORD)
    answers = first(reading)
    [question] = plan(reading, answers).questions
    assert question.subject is TrustSubject.FOLDER
    said = answers.answer(question, NOT_NOW)
    assert plan(reading, said).questions == ()
    [again] = plan(reading, replace(said, answered=said.answered.reviewing())).questions
    assert again == question
    other = found(seen=brings(server("other", Origin.PROJECT)), record=NO_RECORD)
    assert len(plan(other, said).questions) == 1


def test_a_yes_for_this_run_is_to_this_folder_with_this_content() -> None:
    seen = brings(IT, refusal="Anyone can write to it.")
    reading = found(IT, server("mine"), seen=seen, record=NO_RECORD)
    answers = first(reading)
    [question] = plan(reading, answers).questions
    yes = answers.answer(question, TrustAnswer.TRUST_WITH_CHILDREN)
    assert admitted(plan(reading, yes)) == {"it": INSIDE, "mine": INSIDE}
    elsewhere = replace(reading, seen=replace(seen, identity=replace(PLACE, inode=9)))
    changed = replace(reading, seen=brings(replace(IT, fingerprint="new"), refusal="x"))
    for other in (elsewhere, changed):
        now = plan(other, yes)
        assert admitted(now) == {"it": WAITS, "mine": OUTSIDE}
        assert len(now.questions) == 1


def test_what_the_record_has_no_longer_counts_by_the_answer() -> None:
    seen = brings(IT)
    assert seen.content is not None
    reading = found(IT, seen=seen, record=NO_RECORD)
    answers = first(reading)
    [question] = plan(reading, answers).questions
    yes = answers.answer(question, YES)
    assert yes.reading(reading).answered.said == {seen.key: YES}
    kept = yes.reading(replace(reading, record=trusted(seen.content)))
    assert kept.answered == Answered(), "another gemdeck may take it back"


def test_what_a_folder_forbids_in_this_run_asks_no_other_question() -> None:
    seen = brings(IT)
    assert seen.content is not None
    later = replace(seen, in_force=ProjectRules(excluded=frozenset({ServerId("it")})))
    review, record = Answers(answered=Answered(review=True)), trusted(seen.content)
    one, other = (plan(found(IT, seen=it, record=record), review) for it in (seen, later))
    assert one.questions == other.questions != ()


def test_of_a_changed_folder_what_is_as_it_was_runs_on_where_somebody_is_asked() -> None:
    new, other = replace(IT, fingerprint="new"), server("other", Origin.PROJECT)
    before = brings(IT, other).content
    assert before is not None
    record = trusted(before)
    for attended, others in ((True, INSIDE), (False, WAITS)):
        seen = brings(new, other, attended=attended)
        now = planned(found(new, other, seen=seen, record=record))
        assert admitted(now) == {"it": WAITS, "other": others}


def test_of_the_folders_files_the_model_gets_those_that_count() -> None:
    files = (ContextFile("A.md", "a"), ContextFile("B.md", "b"))
    told = tuple(ContextContent(one.place, one.text) for one in files)
    seen = Seen(PLACE, ProjectOffer(context=files), replace(EMPTY, hash="two", context=told))
    for record, context in (
        (trusted(replace(EMPTY, context=told[:1])), files[:1]),
        (trusted(replace(EMPTY, hash="two")), files),
        (NO_RECORD, ()),
    ):
        assert planned(found(seen=seen, record=record)).context == context


def test_without_a_user_notices_stand_in_for_questions() -> None:
    seen = brings(IT, attended=False, needs={ServerId("npx"): "argument 1 is ./x"})
    reading = found(server("npx"), server("own", trust=True), seen=seen, record=NO_RECORD)
    now = planned(reading)
    assert now.questions == ()
    words = [f"{notice.text} {notice.advice}" for notice in now.notices]
    assert "is not trusted, so these have no effect: it." in words[0]
    assert "Not started: npx. Needs this folder: argument 1 is ./x." in words[1]
    assert all("--trust-folder /clone" in one for one in words[:2])
    assert "not allowed: own." in words[2]
    assert len(words) == 3


def test_a_server_is_trusted_only_where_the_folder_has_a_yes_or_says_nothing() -> None:
    own = server("own", trust=True)
    for seen, record, is_asked in (
        (Seen(PLACE, ProjectOffer(), EMPTY), NO_RECORD, False),
        (brings(IT), NO_RECORD, True),
        (brings(IT), trusted(), True),
        (brings(IT, named=True), NO_RECORD, False),
        (brings(IT), Standing(never=True), True),
    ):
        assert bool(planned(found(own, seen=seen, record=record)).asks) is is_asked, seen


def test_permissions_that_came_later_do_not_count_and_prohibitions_that_went_do() -> None:
    one, two = AllowedPattern(tool="one"), AllowedPattern(tool="two")
    answers = first(found(always_allow=(one,), always_deny=(two,)))
    later = found(always_allow=(one, two))
    now = plan(later, answers.reading(later))
    assert now.rules.always_allow == (one,)
    assert now.rules.always_deny == (two,)
    assert plan(found(always_deny=(two,)), answers).rules.always_deny == (two,), "once"
    assert ["Prohibitions" in notice.text for notice in now.notices] == [True]


def test_the_demos_server_takes_a_name_that_is_free() -> None:
    reading = found(server("notes"))
    now = plan(reading, replace(first(reading), demo=True))
    assert [str(one.id) for one in now.definitions] == ["notes", "demo-notes"]


REVIEW, DOCS = Profile(servers=("git", "gone")), Profile(servers=("wiki",))


def test_a_server_runs_if_a_profile_in_use_has_it_and_a_profile_allows_nothing() -> None:
    waits = server("new").held(WAITS, "why", "")
    excluded = server("git").held(OFF, "Disabled: listed in mcp.excluded.", "")
    named: dict[str, object] = {"review": REVIEW, "docs": DOCS, "x": {}}
    reading = found(server("git"), server("wiki"), waits, profiles=named)
    for profiles, off in (
        ({"": EVERYTHING}, set()),
        ({"x": Profile()}, set()),
        ({"review": REVIEW}, {"wiki"}),
        ({"docs": DOCS}, {"git"}),
        ({"docs": DOCS, "review": REVIEW}, set()),
        ({"": EVERYTHING, "review": REVIEW}, set()),
        ({"review": NOTHING}, {"git", "wiki"}),
    ):
        now = admitted(plan(reading, replace(first(reading), profiles=profiles)))
        assert {name for name, status in now.items() if status is OFF} == off
        assert now["new"] is WAITS
    now_out = plan(reading, replace(first(reading), profiles={"a": NOTHING, "b": NOTHING}))
    why = now_out.definitions[0].failure
    assert why is not None
    assert why.reason == "Not in the profile a or b."
    assert now_out.definitions[0].may_enable
    in_review = replace(first(reading), profiles={"review": REVIEW})
    [kept] = plan(found(excluded), in_review).definitions
    assert (kept, kept.may_enable) == (excluded, False)
