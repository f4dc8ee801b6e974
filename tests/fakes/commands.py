"""Commands that only remember what was asked, for tests of the screen without an engine."""

from functools import partial
from inspect import isfunction, signature
from typing import Final

from tui.store.commands import Commands

COMMAND_NAMES: Final = tuple(
    name
    for name, member in vars(Commands).items()
    if isfunction(member) and not name.startswith("_") and name != "attach"
)
"""What the user can ask for; `attach` is for the engine."""


class RecordingCommands(Commands):
    """Carries nothing out; `calls` holds (name, arguments in the order of the signature)."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.calls: list[tuple[str, tuple[object, ...]]] = []
        for name in COMMAND_NAMES:
            setattr(self, name, partial(self._record, name))

    def _record(self, name: str, *args: object, **kwargs: object) -> None:
        bound = signature(getattr(Commands, name)).bind(self, *args, **kwargs)
        self.calls.append((name, tuple(bound.arguments.values())[1:]))
