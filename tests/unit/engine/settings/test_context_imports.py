"""Imports in files of context: what is followed, and what is not."""

from pathlib import Path

import pytest

from tui.engine.settings.sources.context_imports import MAX_DEPTH, MAX_IMPORTS, Imports
from tui.engine.settings.sources.context_places import ContextPlaces, project_context, read_context


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
        "write to @ada or ada@docs/style.md",
        "@docs/none.md",
        "@token.txt",
        "`@docs/style.md`",
        "```\n@docs/style.md\n```",
        "~~~~ md\n@docs/style.md\n~~~\n@docs/style.md",
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
    assert imported(folder, "@b.md " * 20).count("And briefly.") < MAX_IMPORTS


def test_files_of_context_hold_what_they_import(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "sub").mkdir()
    for place in (folder, folder / "sub"):
        (place / "GEMINI.md").write_text("@../shop/docs/more.md @../docs/more.md")
    places = ContextPlaces(project=(folder / "GEMINI.md", folder / "sub" / "GEMINI.md"))
    top, sub = project_context(places, folder / "sub", folder.parent, [])
    assert "And briefly." in top.text
    assert "And briefly." in sub.text
    [own] = read_context([folder / "sub" / "GEMINI.md"], folder.parent)
    assert "And briefly." not in own.text
