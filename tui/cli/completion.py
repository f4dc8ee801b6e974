"""``gemdeck completion``: what a shell needs to complete commands, options and servers."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from tui.cli.command import CommandOutput, finish

_VARIABLE: Final = "_GEMDECK_COMPLETE"
"""Where the shell says what it wants, by the library's rule."""


@click.command(epilog="Example: gemdeck completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets your shell complete gemdeck's commands and options.

    \b
    bash: gemdeck completion bash >> ~/.bashrc
    zsh:  gemdeck completion zsh >> ~/.zshrc
    fish: gemdeck completion fish > ~/.config/fish/completions/gemdeck.fish
    """  # noqa: D301 - the library reads this backspace
    finish(_script(shell), as_json=False)


async def _script(shell: str) -> CommandOutput:
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - the library knows these shells
    script = found(click.Command("gemdeck"), {}, "gemdeck", _VARIABLE)
    return CommandOutput({}, script.source_template % script.source_vars())
