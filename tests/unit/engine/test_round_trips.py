"""Files that the model reads with one tool and writes back with another keep every byte."""
# ruff: noqa: RUF001 - letters of the world's scripts look like others

import unicodedata
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.gemini import FakeGemini, Request
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Deck, Json, Script, deck
from tests.servers.web import process
from tests.support import warm
from tests.unit.engine.mcp.support import FOLDER, eventually
from tui.model.servers import ServerId, ServerStatus
from tui.model.settings_rules import DEFAULT_RESULT_SIZE

FILES: Final = {
    "persian": "می\u200cخواهم کتاب\u200cها را بخوانم؛ «نیم\u200cفاصله» ۱۲۳",
    "arabic": "\u200fالسلام عليكم\u200f (v1.2)\u200e — \u061cسطر",
    "hebrew": "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u200f123\u200e abc",
    "hindi": "क्\u200dष क्\u200cष हिन्दी में ज़्\u200dयादा",
    "bengali": "র\u200d্য বাংলা অ্যা",
    "tamil": "தமிழ் க்ஷ ஸ்ரீ",
    "malayalam": "അവന്\u200d ന്\u200dറെ",
    "sinhala": "ශ්\u200dරී ලංකා ක්\u200dෂ",
    "thai": "ภาษาไทย\u200bไม่มี\u200bเว้นวรรค",
    "khmer": "ខ្មែរ\u200bភាសា",
    "burmese": "မြန်မာ ဘာသာ",
    "tibetan": "བོད་ཡིག་\u0f0b ཨོཾ་མ་ཎི",
    "mongolian": "ᠮᠣᠩᠭᠣᠯ\u180eᠬᠡᠯᠡᠠ\u180b",
    "chinese": "漢字\U00020000 葛\U000e0100城 ，。\u3000全角",
    "japanese": "日本語\u3099か\u3099 ﾊﾝｶｸ\r\n辻\U000e0101 凞\ufe00",
    "korean": "한국어 \u1112\u1161\u11ab",
    "vietnamese": unicodedata.normalize("NFD", "Tiếng Việt có dấu") + " NFC: Tiếng Việt",
    "zalgo": "Z" + "\u0301\u0327" * 40 + " gap",
    "emoji": "👩\u200d👩\u200d👧 ❤\ufe0f ✌🏽 🇺🇦 1\ufe0f\u20e3 "
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f ☎\ufe0e",
    "dos": "\ufefffirst\r\nsecond\rthird\n\r\n\x1a",
    "log": "\x1b[31mred\x1b[0m \x00\x07\x08\x0b\x0c\x7f\x9b1m",
    "glyphs": "\ue0b0 \uf8ff \U000f0001 soft\u00adhyphen \ufffc\ufffd \u0378",
    "separators": "a\u2028b\u2029c\x85d\x1ce\x1df\u00a0g\tend \\u2028 \\n \"quoted\" {'a': 1}\n\n",
    "json": '{"b": 1.0, "a": [1, 2], "a": "\\u0000"}',
    "blank": " \n",
    "limit": "\x1a" * (DEFAULT_RESULT_SIZE - 1) + "\U0010fffd",
}
"""Texts in the world's scripts, and with what editors, terminals and fonts put in files."""


@asynccontextmanager
async def files(
    kind: str, fake: FakeGemini, patch: pytest.MonkeyPatch, folder: Path
) -> AsyncIterator[Deck]:
    """Run an engine with the server of files."""
    server = str(FOLDER / "files.py")
    entry: Json = {"command": warm.python(), "args": [server], "cwd": str(folder)}
    async with AsyncExitStack() as stack:
        if kind == "http":
            patch.chdir(folder)
            served = process(warm.python(), server, "http", "{port}")
            url, _ = await stack.enter_async_context(served)
            entry = {"url": f"{url}/mcp", "type": "http"}
        settings = {"mcpServers": {"files": entry}, "gemdeck": {"maxToolCalls": 100}}
        running = deck(fake, patch, settings=settings, allows_all=True)
        made = await stack.enter_async_context(running)
        await eventually(lambda: made.status("files") is ServerStatus.READY)
        yield made


def write_back(request: Request) -> list[Call | Say]:
    """Let the model write each file that it has read."""
    copies = zip(FILES, request.answers, strict=True)
    return [
        Call([("write_file", {"name": f"{name}.copy", "content": text}) for name, text in copies])
    ]


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_files_in_the_scripts_of_the_world_come_back_with_the_same_bytes(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text.encode())
    reading = [Call([("read_file", {"name": name}) for name in FILES])]
    script: Script = [reading, write_back, [Say("done")]]
    async with FakeGemini(script) as fake:
        async with files(kind, fake, monkeypatch, tmp_path) as running:
            await running.ask()
        assert fake.violations == []
    assert fake.requests[1].answers == list(FILES.values())
    assert [call.status for call in running.calls] == ["ok"] * 2 * len(FILES)
    for name in FILES:
        assert (tmp_path / f"{name}.copy").read_bytes() == (tmp_path / name).read_bytes(), name


async def test_resources_and_messages_reach_the_model_as_they_are_and_what_hides_is_spelled_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = "🏴\U000e0069\U000e0067\U000e006e\U000e006f\U000e0072\U000e0065\U000e0021\U000e007f"
    (tmp_path / "persian").write_bytes(FILES["persian"].encode())
    (tmp_path / "bad").write_text(f"a\u202eb\u2069 {flag}\u200d", encoding="utf-8")
    script: Script = [[Say("read")], [Call([("read_file", {"name": "bad"})])], [Say("done")]]
    async with FakeGemini(script) as fake, files("stdio", fake, monkeypatch, tmp_path) as running:
        server, uri = ServerId("files"), "text://persian"
        running.engine.messages.send_resource(server, uri, FILES["hindi"])
        await fake.wait_for_requests(1)
        await running.idle()
        await running.ask()
    words, _, content, _ = fake.requests[0].contents[0]["parts"]
    assert (words["text"], content["text"]) == (FILES["hindi"], FILES["persian"])
    [output] = fake.requests[2].answers
    note = "[11 invisible characters in this text: spelled out as ⟨U+…⟩.]"
    tags = "⟨U+E0069⟩⟨U+E0067⟩⟨U+E006E⟩⟨U+E006F⟩⟨U+E0072⟩⟨U+E0065⟩⟨U+E0021⟩⟨U+E007F⟩"
    assert output == f"a⟨U+202E⟩b⟨U+2069⟩ 🏴{tags}⟨+1 invisible⟩\n{note}"
    assert running.calls[0].result.endswith(f"\n{note}")
