"""Files go along that were typed or chosen, not those that a text in one piece names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from errno import ENOSPC
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pytest
from textual import events

from tests.fakes.gemini import Step
from tests.fakes.gemini_script import Fail, Say
from tests.ui.engine_deck import EngineDeck, engine_deck
from tui.ui.widgets.chat.composer import FOLD_AT, SHOWN

PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(40)
MAIL: Final = (
    "see @src/ and (@README.md)\n@.env for more, @.env.\nmail jane@shop.example, @ once; "
    r'say \@README.md "@.env" @"README.md" @scope/pkg'
)
LONG: Final = "lorem ipsum\n" * (FOLD_AT // 10) + MAIL + "\nand so on"
TOGETHER: Final = (
    ("=see @", "=.env"),
    ("=see @", ".env"),
    ("@", "=.env"),
    ("@.e", "=nv"),
    ('@"', '=.env"'),
    ("@src/../.e", "=nv and on"),
    ("x@.env", "home", "right", "= "),
    (".env", "home", "=@"),
    ("=" + LONG + "\n", "=@.env"),
    ("=" + LONG + " @", "=.env"),
)
"""What is typed, pressed, and pasted, which begins with an equals sign."""


class Writing(EngineDeck):
    """The app in a folder with files."""

    async def paste(self, text: str) -> None:
        before = self.composer.message
        self.app.post_message(events.Paste(text))
        await self.until(lambda: self.composer.message != before)

    async def send(self) -> list[str]:
        """Press Enter, and give the texts that the model got."""
        return [part["text"] for part in await self.parts()]

    async def parts(self) -> list[dict[str, Any]]:
        """Press Enter, and give the parts that the model got."""
        self.composer._pasted_at = 0.0
        before = len(self.fake.requests)
        await self.pilot.press("enter")
        await self.until(lambda: len(self.fake.requests) > before)
        await self.idle()
        parts: list[dict[str, Any]] = self.fake.requests[-1].contents[-1]["parts"]
        return parts


@asynccontextmanager
async def writing(*steps: Step) -> AsyncIterator[Writing]:
    shop = Path.home() / "shop"
    (shop / "src").mkdir(parents=True, exist_ok=True)
    for name in (".env", "README.md", "src/a.py"):
        (shop / name).write_text(f"content of {name}\n")
    async with engine_deck(Writing, None, *steps, *[(Say("read it"),)] * 20) as at:
        await at.until(lambda: at.store.state.conversation.model is not None)
        await at.until(lambda: at.app.deck.chat.is_filled)
        yield at


async def test_C15_a_paste_sends_no_file_and_reaches_the_model_as_it_is() -> None:
    async with writing() as at:
        for piece in (MAIL, LONG, "@.env", "@README.md"):
            await at.pilot.press(*"read ")
            await at.paste(piece)
            assert (SHOWN in at.composer.get_line(0).plain) is (piece is LONG)
            assert await at.send() == [f"read {piece}"]
            await at.pilot.press(*"@README.md ")
            await at.paste(piece)
            text, *file = await at.send()
            assert text == f"@README.md {piece}"
            assert file == ["[File README.md]", "content of README.md\n", "[End of README.md]"]
            await at.pilot.press("up")
            assert await at.send() == [text, *file]


async def test_C15_what_comes_back_names_what_was_typed_alone() -> None:
    steps: list[Step] = [(Fail(400),), (Say("once"),), (Say("again"),)]
    async with writing(*steps, *steps) as at:
        for piece in (MAIL, LONG):
            await at.pilot.press(*"@src/a.py ")
            await at.paste(piece)
            text, *file = await at.send()
            assert file == ["[File src/a.py]", "content of src/a.py\n", "[End of src/a.py]"]
            await at.until(lambda: at.composer.holds_returned)
            assert await at.send() == [text, *file]
            await at.pilot.press(*"/edit", "enter")
            await at.until(lambda: len(at.pilot.app.screen_stack) > 1)
            await at.pilot.press("enter")
            await at.until(lambda: at.composer.message.startswith("@src/a.py"))
            await at.pilot.press(*" now")
            assert await at.send() == [f"{text} now", *file]


@pytest.mark.parametrize("piece", [MAIL, LONG], ids=["short", "folded"])
async def test_C15_a_draft_of_an_earlier_run_names_what_was_typed_alone(piece: str) -> None:
    async with writing() as at:
        await at.pilot.press(*"see @src/a.py and ")
        await at.paste(piece)
        at.pilot.app.exit()
    async with writing() as at:
        await at.until(lambda: at.composer.holds_returned)
        text, *file = await at.send()
        assert text == f"see @src/a.py and {piece}"
        assert file == ["[File src/a.py]", "content of src/a.py\n", "[End of src/a.py]"]


async def test_C15_an_editors_text_names_what_was_typed_in_the_message_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def edited(_: object, text: str) -> str:
        assert text == r"@README.md \@.env"
        return f"{text} @src/ and @.env"

    monkeypatch.setattr("tui.ui.editor.edit_text", edited)
    async with writing() as at:
        await at.pilot.press(*"@README.md ")
        await at.paste("@.env")
        await at.pilot.press("ctrl+g")
        await at.until(lambda: r"\@src/" in at.composer.message)
        text, *file = await at.send()
        assert text == "@README.md @.env @src/ and @.env"
        assert file == ["[File README.md]", "content of README.md\n", "[End of README.md]"]


async def test_C15_a_paste_after_a_typed_sign_is_named_where_it_is_a_word_and_not_folded() -> None:
    async with writing() as at:
        await at.pilot.press(*"see @")
        await at.paste("src/a.py")
        assert len(await at.send()) == 4
        for before in ("@", "@sr"):
            await at.pilot.press(*before)
            await at.paste("c/a.py\n" + "lorem ipsum\n" * FOLD_AT)
            assert len(await at.send()) == 1


async def test_C15_pastes_that_make_a_name_together_or_with_what_is_typed_send_no_secret() -> None:
    async with writing() as at:
        for pieces in TOGETHER:
            for piece in pieces:
                if piece.startswith("="):
                    await at.paste(piece[1:])
                else:
                    await at.pilot.press(*([piece] if piece in {"home", "right"} else piece))
            [text] = await at.send()
            wanted = "".join(
                one.removeprefix("=") for one in pieces if one not in {"home", "right"}
            )
            assert sorted("".join(text.split())) == sorted("".join(wanted.split())), pieces


async def test_C15_what_a_paste_named_counts_once_its_backslash_is_gone_or_it_is_chosen() -> None:
    async with writing() as at:
        await at.paste("@README.md")
        await at.pilot.press("home", "delete")
        assert len(await at.send()) == 4
        await at.pilot.press(*"@READ")
        await at.until(lambda: at.composer.completing)
        await at.pilot.press("tab")
        assert len(await at.send()) == 4


async def test_C15_the_path_of_a_picture_attaches_it_within_the_opened_folders() -> None:
    shop = Path.home() / "shop"
    async with writing() as at:
        for path in (shop / "my shot.png", Path.home() / "outside.png"):
            path.write_bytes(PNG)
        await at.pilot.press(*"see ")
        await at.paste(f"'{shop}/my shot.png'")
        assert at.composer.message == f'see @"{shop}/my shot.png" '
        assert (await at.parts())[2]["inlineData"]["mimeType"] == "image/png"
        for text in (f"{Path.home()}/outside.png", f"{shop}/.env", f"x {shop}/my\\ shot.png"):
            await at.paste(text)
            assert ("@" in at.composer.message) is text.endswith("outside.png")
            if text.endswith("outside.png"):
                at.composer._pasted_at = 0.0
                await at.pilot.press("enter")
                await at.until(lambda: r"Type \@ for a plain @." in at.text)
                at.composer.clear()
            else:
                assert await at.send() == [text]


def kept(path: Path) -> tuple[bytes, int]:
    """Return what is in a file, and what others may do in its folder."""
    return path.read_bytes(), path.parent.stat().st_mode & 0o077


async def test_a_picture_in_the_clipboard_is_attached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = [PNG, b"", PNG, PNG]
    monkeypatch.setattr("tui.ui.terminal.clipboard.picture", lambda _: held.pop(0))
    async with writing() as at:
        await at.pilot.press(*"what is ", "ctrl+v", *"this?")
        await at.until(lambda: at.composer.message.endswith("picture.png this?"))
        path = Path(at.composer.message.split("@")[1].split()[0])
        assert kept(path) == (PNG, 0)
        _, named, picture = await at.parts()
        assert (named["text"], "inlineData" in picture) == ("[File picture.png: image/png]", True)
        await at.pilot.press(*"/paste", "enter")
        await at.until(lambda: "There is no picture in the clipboard." in at.text)
        at.composer.clear()
        await at.pilot.press(*"/paste", "enter")
        await at.until(lambda: "picture-2.png" in at.composer.message)
        fails = Mock(side_effect=OSError(ENOSPC, "No space left on device"))
        monkeypatch.setattr("tui.engine.workspace.Workspace.keep_picture", fails)
        await at.pilot.press("ctrl+v")
        await at.until(lambda: "No space left on device" in at.text)
