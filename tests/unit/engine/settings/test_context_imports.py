"""Imports in files of context: what is followed, and what is not."""

import os
from pathlib import Path

import pytest

from tui.engine.settings.sources.context_places import (
    MAX_DEPTH,
    MAX_IMPORTS,
    ContextPlaces,
    Imports,
    find_context,
    project_context,
    read_context,
)
from tui.engine.settings.sources.source import Report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "shop"
    (made / "docs").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("SECRET")
    (made / "docs" / "style.md").write_text("Write plainly. See @more.md")
    (made / "docs" / "more.md").write_text("And briefly.")
    (made / "token.txt").write_text("TOKEN")
    return made


def imported(folder: Path, text: str) -> str:
    return Imports(folder).put_in(text, folder / "GEMINI.md")


def test_an_import_stands_for_its_file_and_its_own_imports(folder: Path) -> None:
    text = imported(folder, "Rules: @./docs/style.md, and\nno more.")
    inner = "<!-- Imported from more.md -->\nAnd briefly.\n<!-- End of more.md -->"
    start, end = "<!-- Imported from ./docs/style.md -->", "<!-- End of ./docs/style.md -->"
    assert text == f"Rules: {start}\nWrite plainly. See {inner}\n{end}, and\nno more."


@pytest.mark.parametrize(
    "text",
    [
        *("write to @ada or ada@docs/style.md", "@docs/none.md", "@token.txt", "`@docs/style.md`"),
        *("```\n@docs/style.md\n```", f"@{'long' * 100}.md", "@docs/\0.md"),
        *("@docs/style.md/deeper.md", "~~~~ md\n@docs/style.md\n~~~\n@docs/style.md"),
    ],
)
def test_what_is_no_import_stays_as_it_is(folder: Path, text: str) -> None:
    assert imported(folder, text) == text


def test_code_ends_where_its_fence_does(folder: Path) -> None:
    text = imported(folder, "```\n@docs/more.md\n```\n@docs/more.md")
    assert text.startswith("```\n@docs/more.md\n```\n<!-- Imported from docs/more.md -->")


def test_nothing_outside_the_folder_is_imported(folder: Path) -> None:
    (folder / "link.md").symlink_to(folder.parent / "secret.md")
    outside = folder.parent / "secret.md"
    for word in ("@../secret.md", "@link.md", f"@{outside}", "@docs/../../secret.md"):
        text = imported(folder, word)
        assert "outside the folder" in text
        assert "SECRET" not in text


def test_what_lies_outside_is_never_looked_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    for name in ("stat", "lstat"):
        real = getattr(os, name)

        def spy(path: object, *args: object, real: object = real, **kwargs: object) -> object:
            looked.append(str(path))
            return real(path, *args, **kwargs)  # type: ignore[operator]

        monkeypatch.setattr(os, name, spy)
    for name in ("secret.md", "none.md"):
        word = f"@../{name}"
        reason = "it lies outside the folder"
        assert imported(folder, word) == f"<!-- {word} is not imported: {reason} -->"
    assert looked
    assert not any("secret" in path or "none" in path for path in looked)
    looked.clear()
    words = " ".join(f"@{number}.md" for number in range(MAX_IMPORTS + 5))
    assert imported(folder, words) == words
    assert any(path.endswith(f"/{MAX_IMPORTS - 1}.md") for path in looked)
    assert not any(path.endswith(f"/{MAX_IMPORTS}.md") for path in looked)


def test_refusals_are_bounded(folder: Path) -> None:
    text = imported(folder, "@../secret.md " * (MAX_IMPORTS + 5) + "@docs/more.md")
    assert text.count("outside the folder") == MAX_IMPORTS
    assert text.endswith("@../secret.md @docs/more.md")


def test_a_folder_that_is_a_link_holds_what_is_named_through_it(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    for name in ("docs/more.md", f"{link}/docs/more.md", f"{folder}/docs/more.md"):
        assert "And briefly." in Imports(link).put_in(f"@{name}", link / "GEMINI.md")


def test_circles_depth_and_number_are_bounded(folder: Path) -> None:
    (folder / "GEMINI.md").write_text("@a.md")
    (folder / "a.md").write_text("A @GEMINI.md")
    assert "imports itself" in imported(folder, "@a.md")
    for number in range(MAX_DEPTH + 3):
        (folder / f"d{number}.md").write_text(f"deep{number} @d{number + 1}.md")
    text = imported(folder, "@d0.md")
    assert f"deep{MAX_DEPTH - 1}" in text
    assert f"deep{MAX_DEPTH + 1}" not in text
    (folder / "b.md").write_text("@docs/more.md " * 20)
    assert 0 < imported(folder, "@b.md " * 20).count("And briefly.") < MAX_IMPORTS


def test_files_of_context_hold_what_they_import(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "sub").mkdir()
    for place in (folder, folder / "sub"):
        (place / "GEMINI.md").write_text("@../shop/docs/more.md @../docs/more.md")
    places = ContextPlaces(project=(folder / "GEMINI.md", folder / "sub" / "GEMINI.md"))
    top, sub = project_context(places, folder / "sub", Report(folder.parent))
    assert "And briefly." in top.text
    assert "And briefly." in sub.text
    [own] = read_context([folder / "sub" / "GEMINI.md"], folder.parent)
    assert "And briefly." not in own.text


def test_a_repository_at_the_home_opens_no_more_than_the_folder(folder: Path) -> None:
    home = folder.parent
    (home / ".git").mkdir()
    (folder / "GEMINI.md").write_text("@../secret.md @docs/more.md")
    (folder / "docs" / "GEMINI.md").write_text("@more.md @../GEMINI.md")
    places = find_context((), (), folder / "docs", Report(home))
    assert places.project == (folder / "docs" / "GEMINI.md",)
    [docs] = project_context(places, folder / "docs", Report(home))
    assert "And briefly." in docs.text
    assert "GEMINI.md is not imported: it lies outside" in docs.text
    places = find_context((), (), folder, Report(home))
    [whole] = project_context(places, folder, Report(home))
    assert "And briefly." in whole.text
    assert "SECRET" not in whole.text
