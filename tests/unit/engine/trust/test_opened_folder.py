"""What was answered about the opened folder: for this run alone, and kept."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.definitions import define_server
from tests.unit.engine.trust.test_judge import NOW, OFFER, A, T, said
from tui.engine.settings.project import ProjectOffer
from tui.engine.trust.folder_identity import FolderIdentity, identify
from tui.engine.trust.judge import FROM_ABOVE, judge
from tui.engine.trust.opened_folder import OpenedFolder
from tui.engine.trust.trust_store import MAX_REFUSED, Standing, TrustStore
from tui.engine.trust.verdict import Answered, FolderVerdict, Seen
from tui.model.servers import Origin, ServerId

SERVER = define_server("s", Origin.PROJECT, command="true")
EDITED = replace(OFFER, servers=(SERVER,))


@pytest.fixture
def opened(tmp_path: Path) -> OpenedFolder:
    return open_folder(tmp_path)


def open_folder(place: Path, *named: Path, attended: bool = True) -> OpenedFolder:
    """Open a folder that only its owner can write to."""
    place.chmod(0o700)
    return OpenedFolder(place, place.parent, None, named, pytest.fail, attended=attended)


def see(opened: OpenedFolder, offer: ProjectOffer = OFFER) -> Seen:
    return opened.see(identify(opened.folder), offer, {})


def test_trust_reaches_the_folders_in_it_only_where_it_may(opened: OpenedFolder) -> None:
    for children, home in ((True, opened.home), (False, opened.home), (True, opened.folder)):
        opened.home = home
        opened.trust(see(opened), children=children)
        record = opened.standing(identify(opened.folder)).record
        assert record is not None
        assert record.children is (children and home != opened.folder), "never from the home down"


def test_an_edit_of_ones_own_keeps_the_yes_and_nothing_else_does(opened: OpenedFolder) -> None:
    before, now = see(opened), see(opened, EDITED)

    def counts(seen: Seen) -> bool:
        return opened.standing(seen.identity).has(seen.hash)

    opened.trust_edit(before, now, SERVER.id)
    assert not counts(now), "it was not trusted before"
    opened.trust(before, children=True)
    opened.trust_edit(before, replace(now, refusal="others can write to it"), SERVER.id)
    opened.trust_edit(before, see(opened, replace(EDITED, rules=NOW)), SERVER.id)
    elsewhere = replace(now, identity=FolderIdentity(opened.folder, 1, 9, 3))
    opened.trust_edit(before, elsewhere, SERVER.id)
    assert not counts(now)
    opened.trust_edit(before, now, SERVER.id)
    record = opened.standing(now.identity).record
    assert record is not None
    assert (counts(before), counts(now), record.children) == (True, True, True)


def test_a_yes_for_this_run_alone_outlives_a_change_and_gemdecks_own_edit(tmp_path: Path) -> None:
    opened = open_folder(tmp_path, tmp_path)

    def read(offer: ProjectOffer, answered: Answered | None = None) -> tuple[Seen, FolderVerdict]:
        seen, record = see(opened, offer), opened.standing(identify(tmp_path))
        verdict = judge(seen, record, answered or Answered())
        opened.heed(seen, record, verdict)
        return seen, verdict

    first, verdict = read(OFFER)
    assert (verdict.trust, verdict.source) == (T.TRUSTED, "--trust-folder")
    other, verdict = read(replace(OFFER, rules=NOW))
    assert (verdict.trust, verdict.inside, verdict.asks) == (T.CHANGED, True, True)
    assert verdict.context == {"A.md", "B.md"}
    opened.trust_edit(first, other, ServerId("s"))
    assert read(replace(OFFER, rules=NOW))[1].trust is T.CHANGED, "more than the server changed"
    assert read(replace(OFFER, rules=NOW), said(A.TRUST, other))[1].trust is T.TRUSTED
    edited, verdict = read(replace(EDITED, rules=NOW))
    assert (verdict.trust, verdict.servers) == (T.CHANGED, frozenset())
    opened.trust_edit(other, edited, SERVER.id)
    assert read(replace(EDITED, rules=NOW))[1].servers == {SERVER.id}
    place = identify(tmp_path)
    assert place is not None
    swapped = opened.see(replace(place, inode=9), OFFER, {})
    assert judge(swapped, opened.standing(swapped.identity), Answered()).trust is T.UNTRUSTED
    opened.forget()
    assert opened.standing(place) == Standing()


def test_a_never_takes_the_word_of_the_command_line_back(tmp_path: Path) -> None:
    opened = open_folder(tmp_path, tmp_path)
    assert see(opened).named
    opened.never()
    assert not see(opened).named
    assert opened.standing(identify(tmp_path)).never
    above = FolderVerdict(T.TRUSTED, source=FROM_ABOVE)
    opened.heed(see(opened), Standing(), above)
    assert opened.standing(identify(tmp_path)).never, (
        "trust from above does not come back by itself"
    )
    opened.trust(see(opened), children=False)
    opened.heed(see(opened, EDITED), Standing(), above)
    assert opened.standing(identify(tmp_path)).record is None, "it is trust from above, now gone"


def test_a_folder_that_cannot_be_looked_at_is_none_and_names_are_checked_once(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    named = [tmp_path, tmp_path / "other"]
    opened = OpenedFolder(tmp_path, tmp_path.parent, None, named, told.append, attended=False)
    needs = {ServerId("s"): "its cwd is relative"}
    assert opened.see(None, None, needs) == Seen(attended=False, needs=needs)
    see(opened)
    assert told == [f"--trust-folder {tmp_path / 'other'} is not this folder, which is {tmp_path}."]


def test_the_command_line_names_the_folder_and_content_that_it_was_first(tmp_path: Path) -> None:
    opened = OpenedFolder(
        tmp_path, tmp_path / "home", None, [tmp_path], pytest.fail, attended=False
    )
    first, other = (FolderIdentity(tmp_path, 1, inode, 3) for inode in (2, 9))
    changed = ProjectOffer(rules=NOW)
    seen = [(first, OFFER), (other, OFFER), (first, changed), (first, OFFER)]
    named = [opened.see(identity, offer, {}).named for identity, offer in seen]
    assert named == [True, False, False, True]


def test_answers_about_servers_are_bounded_and_the_newest_stay(tmp_path: Path) -> None:
    store = TrustStore(None, tmp_path, pytest.fail)
    keys = [f"k{number}" for number in range(MAX_REFUSED + 2)]
    store.refuse(keys, A.NEVER)
    assert list(store.refused()) == keys[2:]
    for key in keys[-3:]:
        store.add(key)
    assert (len(store.refused()), store.added()) == (MAX_REFUSED - 3, frozenset(keys[-3:]))
    store.add(keys[-1], is_gone=True)
    assert store.added() == frozenset(keys[-3:-1])
