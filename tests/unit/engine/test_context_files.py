"""`GEMINI.md` of the user, of extensions and of projects, on their way to the model."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Say
from tests.security.folders import Reader, reader
from tests.security.opened import Opened, Place, opened, place
from tests.support.waiting import PATIENCE, eventually
from tui.engine.chats.instructions import MAX_OF_CONTEXT, compose
from tui.engine.plan import Answers, plan
from tui.engine.reload import Reading
from tui.engine.settings.sources.context_places import MAX_FILE, read_context
from tui.model.events import ContextFile
from tui.model.trust import FolderTrust, TrustAnswer

__all__ = ["place", "reader"]


@asynccontextmanager
async def chatting(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Opened, FakeGemini]]:
    """Open the folder with a model that says four things."""
    async with FakeGemini([(Say(f"{number}"),) for number in range(4)]) as fake:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
        async with opened(place) as deck:
            await eventually(lambda: deck.state.model.name)
            yield deck, fake
        assert fake.violations == []


async def told(deck: Opened, fake: FakeGemini) -> str:
    """Send a message, and return the system instruction that went with it."""
    deck.engine.send("hello")
    with anyio.fail_after(PATIENCE):
        await deck.engine.wait_idle()
    parts = fake.requests[-1].body.get("systemInstruction", {}).get("parts", [])
    return "\n".join(part["text"] for part in parts)


async def test_the_users_files_are_read_again_for_each_turn(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = place.home / ".gemini" / "GEMINI.md"
    place.user({})
    own.write_text("Be \u202ebrief.\n")
    extension = place.home / ".gemini" / "extensions" / "notes"
    extension.mkdir(parents=True)
    manifest = {"name": "notes", "contextFileName": ["HELP.md", "../../escape.md", "none.md"]}
    (extension / "gemini-extension.json").write_text(json.dumps(manifest))
    (extension / "HELP.md").write_text("Notes have titles.")
    (place.home / ".gemini" / "escape.md").write_text("outside")
    async with chatting(place, monkeypatch) as (deck, fake):
        await eventually(lambda: len(deck.state.context) == 2)
        first = await told(deck, fake)
        assert "--- Context from: ~/.gemini/GEMINI.md ---\nBe ⟨U+202E⟩brief.\n" in first
        assert "Notes have titles." in first
        assert "outside" not in first
        own.write_text("Be long.")
        assert "Be long." in await told(deck, fake)
        assert deck.state.context[0].text == "Be long."
        own.unlink()
        assert "Be long." not in await told(deck, fake)


async def test_a_projects_file_counts_with_a_yes_to_what_it_says(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place.project("Obey the project.\nAlways.", "GEMINI.md")
    async with chatting(place, monkeypatch) as (deck, fake):
        question = await deck.question()
        assert question.context == ("~/clone/GEMINI.md, 2 lines",)
        assert "Obey" not in await told(deck, fake)
        await deck.answer(TrustAnswer.TRUST)
        await eventually(lambda: deck.trust() is FolderTrust.TRUSTED)
        assert "Obey the project." in await told(deck, fake)
        file.write_text("Obey somebody else.")
        question = await deck.question()
        lines = [f"{line.sign}{line.text}" for line in question.difference]
        said = [line for line in lines if "tells the model" not in line]
        assert said == ["-Obey the project.", "-Always.", "+Obey somebody else."], lines
        assert len(lines) == len(said) + 2
        assert "Obey" not in await told(deck, fake)
        await deck.answer(TrustAnswer.TRUST)
        await eventually(lambda: deck.trust() is FolderTrust.TRUSTED)
        assert "Obey somebody else." in await told(deck, fake)


def offered(found: Reading) -> tuple[ContextFile, ...]:
    assert found.seen.offer is not None
    return found.seen.offer.context


def test_files_above_count_in_a_repository_and_no_link_out(place: Place, reader: Reader) -> None:
    deep = place.folder / "packages" / "one"
    deep.mkdir(parents=True)
    place.project("outside", "../GEMINI.md")
    place.project("ref: refs/heads/main", ".git/HEAD")
    place.project("of the repository", "GEMINI.md")
    (place.folder / "packages" / "GEMINI.md").symlink_to(place.home / "GEMINI.md")
    (deep / "GEMINI.md").write_text("of the package")
    loaded = reader.load(deep)
    assert [one.text for one in offered(loaded)] == ["of the repository", "of the package"]
    assert any("links to a file outside" in str(one) for one in loaded.settings.problems)


@pytest.mark.parametrize(
    ("agents", "texts"),
    [
        ("Run the tests.", ["Be brief.", "Run the tests."]),
        ("Be brief.", ["Be brief."]),
        (Path("GEMINI.md"), ["Be brief."]),
        (Path("../up.md"), ["Be brief."]),
    ],
    ids=["another text", "the same", "a link", "a link out of the folder"],
)
def test_agents_md_is_read_beside_gemini_md_and_its_text_once(
    place: Place, reader: Reader, agents: str | Path, texts: list[str]
) -> None:
    (place.home / "up.md").write_text("up")
    (place.folder / "GEMINI.md").write_text("Be brief.")
    if isinstance(agents, Path):
        (place.folder / "AGENTS.md").symlink_to(agents)
    else:
        (place.folder / "AGENTS.md").write_text(agents)
    loaded = reader.load()
    assert [one.text for one in offered(loaded)] == texts
    assert plan(loaded, Answers()).context == (), "nobody trusted the folder"
    reader.say_yes()
    assert [one.text for one in plan(reader.load(), Answers()).context] == texts


def test_what_gemini_md_imports_is_not_sent_again(place: Place, reader: Reader) -> None:
    place.project("Be brief.\n@./AGENTS.md", "GEMINI.md")
    place.project("Run the tests.", "AGENTS.md")
    [both] = offered(reader.load())
    assert both.text.count("Run the tests.") == 1


def test_other_names_are_the_users_and_in_a_project_its_own_as_well(
    place: Place, reader: Reader
) -> None:
    place.user({"context": {"fileName": ["AGENTS.md", "../up.md"]}})
    loaded = reader.load()
    names = [path.name for path in loaded.settings.context.own]
    assert names == ["GEMINI.md", "AGENTS.md"]
    assert any("relative path below" in str(problem) for problem in loaded.settings.problems)
    place.user({"context": {"fileName": "AGENTS.md"}})
    place.project("agents", "AGENTS.md")
    place.project("read me", "README.md")
    place.project("style", "docs/style.md")
    for named in ("README.md", ["docs/style.md", "README.md"]):
        place.project({"context": {"fileName": named}})
        loaded = reader.load()
        assert loaded.settings.problems == ()
        assert loaded.settings.context.own == (place.home / ".gemini" / "AGENTS.md",)
        texts = ["agents", *(["style"] if isinstance(named, list) else []), "read me"]
        assert [one.text for one in offered(loaded)] == texts
        assert place.folder / "README.md" in loaded.settings.context.project, "to be watched"
    assert plan(loaded, Answers()).context == (), "nobody trusted the folder"
    reader.say_yes()
    loaded = reader.load()
    assert [one.text for one in plan(loaded, Answers()).context] == texts


@pytest.mark.parametrize(
    "named", ["../up.md", "a/../../up.md", "{home}/up.md", "~/up.md", "link.md"]
)
def test_a_project_names_no_file_outside_of_it(place: Place, reader: Reader, named: str) -> None:
    (place.home / "up.md").write_text("up")
    (place.folder / "link.md").symlink_to(place.home / "up.md")
    place.project({"context": {"fileName": [named.format(home=place.home)]}})
    loaded = reader.load()
    assert offered(loaded) == ()
    [problem] = loaded.settings.problems
    assert "outside the folder" in problem.message or "path below the folder" in problem.message


def test_further_folders_are_the_users_and_of_a_project_those_inside(
    place: Place, reader: Reader
) -> None:
    deep, beside = place.folder / "packages" / "one", place.folder / "packages" / "two"
    deep.mkdir(parents=True)
    place.project("ref: refs/heads/main", ".git/HEAD")
    place.project("beside", "packages/two/GEMINI.md")
    place.project("named", "packages/two/AGENTS.md")
    (place.home / "notes").mkdir()
    (place.home / "notes" / "GEMINI.md").write_text("outside")
    (deep / "link").symlink_to(place.home / "notes")
    folders = ["../two", "none", "~/notes", str(place.home), "link"]
    context = {"includeDirectories": folders, "fileName": "AGENTS.md"}
    place.user({"context": {"includeDirectories": ["../two", "~/notes", "~/none"]}})
    place.project({"context": context}, "packages/one/.gemini/settings.json")
    loaded = reader.load(deep)
    roots = tuple(map(str, (beside, place.home / "notes")))
    assert loaded.settings.context.said.include_directories == roots
    assert [one.text for one in offered(loaded)] == ["beside", "named"]
    said = [(problem.file, problem.message) for problem in loaded.settings.problems]
    theirs = "~/clone/packages/one/.gemini/settings.json"
    lies = "is outside the project; ignored"
    assert said == [
        ("~/.gemini/settings.json", "~/none does not exist; ignored"),
        (theirs, "none does not exist; ignored"),
        *((theirs, f"{folder} {lies}") for folder in folders[2:]),
    ]


async def test_further_folders_of_the_user_are_roots(place: Place) -> None:
    notes = place.home / "notes"
    notes.mkdir()
    place.user({"context": {"includeDirectories": ["~/notes", str(place.folder)]}})
    async with opened(place) as deck:
        await eventually(lambda: deck.state.folders)
        assert deck.state.folders == ("~/clone", "~/notes")


def test_what_is_too_large_is_named_or_cut(tmp_path: Path) -> None:
    (tmp_path / "huge.md").write_text("x" * (MAX_FILE + 1))
    (tmp_path / "long.md").write_text("begin " + "x" * 200_000 + " end")
    huge, long = read_context([tmp_path / "huge.md", tmp_path / "long.md"], tmp_path)
    assert (huge.text, huge.problem) == ("", "larger than 1024 KiB")
    assert long.text.startswith("begin x")
    assert long.text.endswith("x end")
    assert len(long.text) < 101_000
    many = [ContextFile(f"{number}", "y" * 150_000) for number in range(5)]
    whole, _ = compose("own", [huge, *many], ())
    assert whole.startswith("own\n\n--- Context from: 0 ---\n")
    assert whole.count("y") == MAX_OF_CONTEXT
    assert "Context from: 3" not in whole
