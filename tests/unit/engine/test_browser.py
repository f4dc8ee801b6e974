"""Opening addresses: one program, one list of arguments, no shell."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE, eventually
from tui.engine import browser
from tui.engine.browser import open_in_browser

OPENER = f"""#!{sys.executable}
import json, pathlib, sys, time
told = pathlib.Path(__file__).with_suffix(".new")
told.write_text(json.dumps(sys.argv[1:]))
told.rename(told.with_suffix(".json"))
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
    monkeypatch.setattr(browser, "OPEN_TIMEOUT", PATIENCE)  # it is to have ended
    return program


def arguments(opener: Path) -> list[str]:
    read: list[str] = json.loads(opener.with_suffix(".json").read_text())
    return read


async def test_D09_an_address_is_one_argument_without_shell_characters(opener: Path) -> None:
    assert await open_in_browser("https://example.com/a?b=$(id);c='d'`e`&f=g|h")
    assert arguments(opener) == ["https://example.com/a?b=%24%28id%29%3Bc=%27d%27%60e%60&f=g%7Ch"]


async def test_an_opener_that_fails_or_is_missing_has_opened_nothing(
    opener: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not await open_in_browser("https://example.com/refuse")
    assert arguments(opener)
    monkeypatch.setenv("PATH", str(opener.parent / "nowhere"))
    assert not await open_in_browser("https://example.com/")


async def test_no_browser_is_waited_for(opener: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "OPEN_TIMEOUT", 0.2)
    assert await open_in_browser("https://example.com/slow")
    await eventually(opener.with_suffix(".json").exists)
    assert arguments(opener) == ["https://example.com/slow"]


async def test_other_schemes_are_never_handed_on(opener: Path) -> None:
    assert not await open_in_browser("file:///etc/passwd")
    assert not await open_in_browser("-version")
    assert not opener.with_suffix(".json").exists()


async def test_each_system_opens_addresses(opener: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def which(name: str, path: str) -> str:
        assert path
        asked.append(name)
        return str(opener)

    monkeypatch.setattr(shutil, "which", which)
    for platform in ("linux", "darwin"):
        monkeypatch.setattr(sys, "platform", platform)
        assert await open_in_browser("https://example.com/")
        assert arguments(opener) == ["https://example.com/"]
    assert asked == ["xdg-open", "open"]
