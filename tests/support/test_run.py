"""A failure stays a failure, also where a second run passes."""

from pathlib import Path

import pytest

from tests.__main__ import run

BODIES = {
    "never": ("assert True", pytest.ExitCode.OK),
    "once": ("seen = path.exists(); path.touch(); assert seen", pytest.ExitCode.TESTS_FAILED),
    "always": ("assert False", pytest.ExitCode.TESTS_FAILED),
}
"""What a test does that fails so often, and how a run with it ends."""


@pytest.mark.parametrize("fails", BODIES)
def test_the_status_is_that_of_the_first_run(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    body, expected = BODIES[fails]
    text = f"import pathlib\npath = pathlib.Path('seen')\n\ndef test_it():\n    {body}\n"
    (tmp_path / "test_it.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist")
    assert run(["test_it.py"]) == expected
    output = capfd.readouterr().out
    assert ("Running again" in output) == (fails != "never")
    assert ("A flake" in output) == (fails == "once")
