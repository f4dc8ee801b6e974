"""Opening addresses: one program, one list of arguments, no shell."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tui.engine import browser
from tui.engine.browser import open_in_browser

OPENER = f"""#!{sys.executable}
import json, pathlib, sys, time
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(sys.argv[1:]))
if "slow" in sys.argv[1]:
    time.sleep(1)
sys.exit(3 if "refuse" in sys.argv[1] else 0)
"""


@pytest.fixture
def opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program that records its arguments in the place of the system's opener."""
    program = tmp_path / ("open" if sys.platform == "darwin" else "xdg-open")
    program.write_text(OPENER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return program


def arguments(opener: Path) -> list[str]:
    read: list[str] = json.loads(opener.with_suffix(".json").read_text())
    return read


async def test_D09_an_address_is_one_argument_without_shell_characters(opener: Path) -> None:
    assert await open_in_browser("https://example.com/a?b=$(id);c='d'`e`&f=g|h")
    assert arguments(opener) == ["https://example.com/a?b=%24%28id%29%3Bc=%27d%27%60e%60&f=g%7Ch"]


async def test_an_opener_that_fails_has_opened_nothing(opener: Path) -> None:
    assert not await open_in_browser("https://example.com/refuse")
    assert arguments(opener)


async def test_an_opener_that_becomes_the_browser_is_not_waited_for(
    opener: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "OPEN_TIMEOUT", 0.3)
    assert await open_in_browser("https://example.com/slow")
    assert arguments(opener) == ["https://example.com/slow"]


async def test_other_schemes_are_never_handed_on(opener: Path) -> None:
    assert not await open_in_browser("file:///etc/passwd")
    assert not await open_in_browser("-version")
    assert not opener.with_suffix(".json").exists()


async def test_without_an_opener_nothing_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not await open_in_browser("https://example.com/")


@pytest.mark.parametrize(
    ("platform", "command"),
    [
        ("linux", ("/usr/bin/xdg-open",)),
        ("darwin", ("/usr/bin/open",)),
        ("win32", ("rundll32", "url.dll,FileProtocolHandler")),
    ],
)
def test_each_system_has_a_program_that_opens_addresses(
    platform: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(sys, "platform", platform)
    assert browser._opener() == command
