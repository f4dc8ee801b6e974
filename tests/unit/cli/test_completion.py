"""`gemdeck completion`, and what a shell gets by it."""

import pytest
from click.shell_completion import BashComplete

from tests.cli.running import write_settings
from tests.unit.cli.conftest import Run
from tui.cli.main import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(run: Run, shell: str) -> None:
    script = run("completion", shell)
    assert script.code == 0
    assert f"_GEMDECK_COMPLETE={shell}_complete" in script.stdout


@pytest.mark.usefixtures("run")
def test_commands_options_and_servers_are_completed() -> None:
    write_settings({"mcpServers": {"notes": {"command": "x"}}})
    shell = BashComplete(main, {}, "gemdeck", "_GEMDECK_COMPLETE")

    def completed(*words: str) -> list[str]:
        return [one.value for one in shell.get_completions(list(words[:-1]), words[-1])]

    assert completed("do") == ["doctor"]
    assert completed("mcp", "en") == ["enable"]
    assert completed("mcp", "show", "n") == ["notes"]
    assert "--output-format" in completed("--out")
    assert completed("-o", "st") == ["stream-json"]
