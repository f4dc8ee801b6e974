"""What runs and what is asked, without an engine: settings, trust and answers in, a plan out."""

from dataclasses import replace
from pathlib import Path

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.plan import Answers, Plan, plan
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.project import ProjectOffer, ProjectVerdict
from tui.engine.trust.content import ServerContent
from tui.engine.trust.folder_gate import NO_ID, Trust
from tui.engine.trust.starts import written_keys
from tui.engine.trust.trust_store import FolderIdentity, Start, StartFolder
from tui.model.requests import TrustRequest
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.model.settings import EVERYTHING, NOTHING, AllowedPattern, GemdeckSettings, Profile
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject

PLACE = FolderIdentity(Path("/clone"), 1, 2, 3)
HERE = StartFolder(PLACE, "~/clone", is_opened=True)
WAITS, YES, NEVER = ServerStatus.UNTRUSTED, TrustAnswer.TRUST, TrustAnswer.NEVER
NOT_NOW, OUT = TrustAnswer.NOT_NOW, TrustAnswer.START_OUTSIDE
NPX = ServerId("npx")


def start(folder: StartFolder = HERE, content: str = "seen", **more: object) -> Start:
    seen = ServerContent("npx", "file", "stdio", content)
    return Start(folder, seen, seen, **more)  # type: ignore[arg-type]


def starting(*starts: Start, **more: object) -> Trust:
    """What the one server that runs code of folders would run."""
    found = {NPX: starts or (start(),)}
    return Trust(starts=found, folder=PLACE.key, outside=Path("/state/outside"), **more)  # type: ignore[arg-type]


def server(name: str, origin: Origin = Origin.USER, **more: object) -> ServerDefinition:
    made = ServerDefinition(
        ServerId(name), origin, Transport.STDIO, command=name, fingerprint=name, source="file"
    )
    return replace(made, written={"command": name}, **more)  # type: ignore[arg-type]


def sources(
    *servers: ServerDefinition, verdict: ProjectVerdict | None = None, **gemdeck: object
) -> LoadedSettings:
    settings = GemdeckSettings(**gemdeck)
    return LoadedSettings(settings, servers, (), verdict or ProjectVerdict())


def brought(trust: FolderTrust = FolderTrust.UNTRUSTED) -> ProjectVerdict:
    request = TrustRequest(NO_ID, TrustSubject.FOLDER, "~/clone", ())
    question = request if trust is not FolderTrust.TRUSTED else None
    offer = ProjectOffer()
    return ProjectVerdict(trust, offer=offer, hash="h", question=question, folder=PLACE.key)


def withheld(now: Plan) -> dict[str, ServerStatus | None]:
    return {str(one.id): one.withheld for one in now.definitions}


def first(found: LoadedSettings, trust: Trust | None = None) -> Answers:
    return Answers().reading(found, trust or Trust())


def test_what_stands_in_the_settings_at_first_runs_and_a_later_one_is_asked_about() -> None:
    answers = first(sources(server("old")))
    later = sources(server("old"), server("new"), server("theirs", Origin.EXTENSION))
    answers = answers.reading(later, Trust())
    now = plan(later, Trust(), answers)
    assert withheld(now) == {"old": None, "new": WAITS, "theirs": WAITS}
    [question] = now.questions
    assert question.subject is TrustSubject.SETTINGS
    assert [one.id for one in question.servers] == ["new", "theirs"]
    put_off = plan(later, Trust(), answers.answered(question, TrustAnswer.NOT_NOW))
    assert put_off.questions == ()
    assert withheld(put_off) == withheld(now)
    allowed = plan(later, Trust(), answers.answered(question, YES))
    assert allowed.questions == ()
    assert set(withheld(allowed).values()) == {None}


def test_an_edit_that_allows_more_is_new_and_one_that_allows_less_is_not() -> None:
    bounded = server("s", include_tools=frozenset({"a", "b"}), exclude_tools=frozenset({"x"}))
    answers = first(sources(bounded))
    for edit, status in (
        (replace(bounded, include_tools=frozenset({"a"})), None),
        (replace(bounded, exclude_tools=frozenset({"x", "y"})), None),
        (replace(bounded, include_tools=None), WAITS),
        (replace(bounded, include_tools=frozenset({"a", "c"})), WAITS),
        (replace(bounded, exclude_tools=frozenset()), WAITS),
        (replace(bounded, trust=True), WAITS),
        (replace(bounded, command="other"), WAITS),
    ):
        found = sources(edit)
        now = plan(found, Trust(), answers.reading(found, Trust()))
        assert withheld(now) == {"s": status}, edit


def test_what_was_refused_in_an_earlier_run_waits_and_never_is_not_asked_again() -> None:
    for word, questions in ((TrustAnswer.NOT_NOW, 1), (NEVER, 0)):
        trust = Trust(refused={written_keys(server("s").written, b"")[0]: word.value})
        found = sources(server("s"))
        answers = first(found, trust)
        now = plan(found, trust, answers)
        assert withheld(now) == {"s": WAITS}
        assert len(now.questions) == questions
        assert len(plan(found, trust, answers.reviewing(None)).questions) == 1


def test_a_folders_servers_stop_at_once_when_trust_is_taken_back() -> None:
    found = sources(server("it", Origin.PROJECT), verdict=brought(FolderTrust.TRUSTED))
    answers = first(found)
    assert withheld(plan(found, Trust(), answers)) == {"it": None}
    back = answers.withdrawn("h")
    now = plan(found, Trust(), back)
    assert withheld(now) == {"it": WAITS}
    assert now.trust is FolderTrust.UNTRUSTED
    read_since = plan(found, Trust(withdrawals=1), back)
    assert withheld(read_since) == {"it": None}  # what was read since goes by the new answer


def test_a_content_that_was_answered_about_is_asked_about_only_on_review() -> None:
    found = sources(verdict=brought())
    answers = first(found)
    [question] = plan(found, Trust(), answers).questions
    assert question.subject is TrustSubject.FOLDER
    said = answers.answered(question, TrustAnswer.NOT_NOW)
    assert plan(found, Trust(), said).questions == ()
    assert plan(found, Trust(), said.reviewing(question)).questions == (question,)
    other = sources(verdict=replace(brought(), hash="other"))
    assert len(plan(other, Trust(), said).questions) == 1


def test_a_start_in_a_folder_waits_for_its_yes() -> None:
    trust = starting()
    found = sources(server("npx"), server("own"))
    answers = first(found, trust)
    now = plan(found, trust, answers)
    assert withheld(now) == {"npx": WAITS, "own": None}
    [question] = now.questions
    assert question.subject is TrustSubject.STARTED_HERE
    assert plan(found, trust, answers.answered(question, NEVER)).questions == ()
    yes = answers.answered(question, YES)
    assert withheld(plan(found, trust, yes)) == {"npx": None, "own": None}
    assert withheld(plan(found, trust, yes.withdrawn("", HERE.key))) == withheld(now)
    elsewhere = starting(start(replace(HERE, identity=replace(PLACE, inode=9))))
    assert withheld(plan(found, elsewhere, yes)) == withheld(now)
    changed = starting(start(content="other"))
    assert withheld(plan(found, changed, yes)) == withheld(now)
    assert len(plan(found, changed, yes).questions) == 1


def test_a_folder_is_asked_about_once_for_what_it_brings_and_what_runs_from_it() -> None:
    trust, both = starting(), sources(server("npx"), verdict=brought())
    answers = first(both, trust)
    [question] = plan(both, trust, answers).questions
    assert question.subject is TrustSubject.FOLDER
    assert (question.servers, question.starts) == ((server("npx"),), (start(),))
    for answer, status in ((YES, None), (OUT, None), (NOT_NOW, WAITS), (NEVER, WAITS)):
        now = plan(both, trust, answers.answered(question, answer))
        assert withheld(now) == {"npx": status}, answer
        assert now.questions == (), answer
        [one] = now.definitions
        assert one.is_outside is (answer is OUT)
    refused = replace(question, request=replace(question.request, refusal="Anybody may write."))
    assert withheld(plan(both, trust, answers.answered(refused, YES))) == {"npx": WAITS}
    assert withheld(plan(both, trust, answers.answered(refused, OUT))) == {"npx": None}


def test_a_review_asks_also_about_what_may_start() -> None:
    found = sources(server("npx"))
    for said in (YES, OUT):
        trust = starting(start(said=said))
        answers = first(found, trust)
        assert plan(found, trust, answers).questions == ()
        review = answers.reviewing(None)
        [question] = plan(found, trust, review).questions
        assert question.subject is TrustSubject.STARTED_HERE
        reread = starting(start(said=said, before=start().seen))
        assert plan(found, reread, review).questions == (question,), "asked as it was"
        for answer in (NOT_NOW, NEVER):
            after = plan(found, trust, review.answered(question, answer))
            assert after.questions == ()
            assert withheld(after) == {"npx": None if answer is NOT_NOW else WAITS}


def test_a_start_that_was_allowed_or_forbidden_before_is_not_asked_about() -> None:
    found = sources(server("npx"))
    for made, status in ((start(said=YES), None), (start(replace(HERE, never=True)), WAITS)):
        trust = starting(made)
        now = plan(found, trust, first(found, trust))
        assert withheld(now) == {"npx": status}
        assert now.questions == ()


def test_without_a_user_notices_stand_in_for_questions() -> None:
    before = ServerContent("npx", "file", "stdio", "other")
    changed = start(before=before)
    for made, reason in ((start(), "may not start yet"), (changed, "has changed")):
        trust = starting(made, attended=False)
        found = sources(server("npx"), server("own", trust=True), verdict=brought())
        now = plan(found, trust, first(found, trust))
        assert now.questions == ()
        words = [f"{notice.text} {notice.advice}" for notice in now.notices]
        assert ["not trusted" in words[0], "npx" in words[1]] == [True, True]
        assert reason in words[1]
        assert all("--trust-folder /clone" in one for one in words[:2])
        assert "not allowed: own." in words[2]
        assert len(words) == 3


def test_without_a_user_what_is_forbidden_gets_no_advice() -> None:
    trust = starting(start(replace(HERE, never=True)), attended=False)
    found = sources(server("npx"))
    [notice] = plan(found, trust, first(found, trust)).notices
    assert notice.text == "Not started: npx. You chose never to run code from ~/clone."
    assert notice.advice == ""


def test_a_server_is_trusted_only_where_the_folder_has_a_yes() -> None:
    found = sources(server("npx"))
    for trust, is_asked in (
        (Trust(), False),
        (starting(), True),
        (starting(start(said=YES)), False),
        (starting(start(said=OUT)), False),
        (starting(start(replace(HERE, never=True))), True),
        (starting(start(replace(HERE, is_opened=False))), False),
    ):
        verdict = ProjectVerdict(FolderTrust.NOTHING_TO_TRUST)
        here = replace(found, project=verdict)
        assert bool(plan(here, trust, first(here, trust)).asks) is is_asked, trust
    for word in FolderTrust:
        here = sources(server("own"), verdict=replace(brought(), trust=word, question=None))
        is_yes = word in {FolderTrust.TRUSTED, FolderTrust.NOTHING_TO_TRUST}
        assert bool(plan(here, Trust(), first(here)).asks) is not is_yes


def test_permissions_that_came_later_do_not_count_and_prohibitions_that_went_do() -> None:
    one, two = AllowedPattern(tool="one"), AllowedPattern(tool="two")
    answers = first(sources(always_allow=(one,), always_deny=(two,)))
    later = sources(always_allow=(one, two))
    now = plan(later, Trust(), answers.reading(later, Trust()))
    assert now.rules.always_allow == (one,)
    assert now.rules.always_deny == (two,)
    assert ["Prohibitions" in notice.text for notice in now.notices] == [True]


def test_the_demos_server_takes_a_name_that_is_free() -> None:
    found = sources(server("notes"))
    now = plan(found, Trust(), replace(first(found), demo=True))
    assert [str(one.id) for one in now.definitions] == ["notes", "demo-notes"]


REVIEW, DOCS = Profile(servers=("git", "gone")), Profile(servers=("wiki",))
OFF = ServerStatus.DISABLED


def test_a_server_runs_if_a_profile_in_use_has_it_and_a_profile_allows_nothing() -> None:
    waits = server("new").held(WAITS, "why", "")
    excluded = server("git").held(OFF, "Disabled: listed in mcp.excluded.", "")
    found = sources(
        server("git"), server("wiki"), waits, profiles={"review": REVIEW, "docs": DOCS, "x": {}}
    )
    for profiles, off in (
        ({"": EVERYTHING}, set()),
        ({"x": Profile()}, set()),
        ({"review": REVIEW}, {"wiki"}),
        ({"docs": DOCS}, {"git"}),
        ({"docs": DOCS, "review": REVIEW}, set()),
        ({"": EVERYTHING, "review": REVIEW}, set()),
        ({"review": NOTHING}, {"git", "wiki"}),
    ):
        now = plan(found, Trust(), replace(first(found), profiles=profiles))
        assert {name for name, status in withheld(now).items() if status is OFF} == off
        assert withheld(now)["new"] is WAITS
    now = plan(found, Trust(), replace(first(found), profiles={"a": NOTHING, "b": NOTHING}))
    why = now.definitions[0].failure
    assert why is not None
    assert why.reason == "Left out by the profile a and b."
    assert now.definitions[0].may_enable
    in_review = replace(first(found), profiles={"review": REVIEW})
    [kept] = plan(sources(excluded), Trust(), in_review).definitions
    assert (kept, kept.may_enable) == (excluded, False)


def test_a_server_that_a_profile_leaves_out_asks_about_no_folder_but_on_review() -> None:
    found, trust = sources(server("npx")), starting()
    answers = replace(first(found), profiles={"docs": DOCS})
    now = plan(found, trust, answers)
    assert (withheld(now), now.questions) == ({"npx": WAITS}, ())
    assert len(plan(found, trust, answers.reviewing(None)).questions) == 1
    assert len(plan(found, trust, replace(answers, profiles={"": EVERYTHING})).questions) == 1
