"""What the command line says about a run of the engine."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tui.model.frozen import Frozen

READY_PATIENCE: Final = 30.0
"""Seconds that a library waits for the servers unless it says."""

LATEST: Final = "latest"
"""Stands for the session of a folder that changed last."""


class EngineOptions(Frozen):
    """What the command line says.

    Attributes:
        folder: The workspace.
        demo: Whether the offline demo was asked for, whatever keys there are.
        model: The model asked for, or None for the settings' choice.
        demo_without_key: Whether the demo stands in where there is no key.
        follow_settings: Whether edits of settings files take effect while the engine runs.
        server_patience: Seconds that a message waits for servers that start for the first time;
            None for what the settings say.
        trusted_folders: Folders whose own settings count in this run, by their real paths.
        attended: Whether somebody sits before a screen and can be asked.
        allowed_tools: ``server.tool`` or ``server`` patterns of tools that run unasked.
        allows_all: Whether all tools run unasked that no rule denies.
        names_mode: Whether an approval mode was named, so that the settings' plan mode is off.
        needs_model: Whether a model is to answer.
        private: Whether nothing of the conversation is kept on disk. Without a user
            only one that is to be saved or resumed is.
        save: Whether a turn without a screen is saved as a session.
        resume: The session to go on with: the beginning of its id, or `LATEST`; None for none.
        only_servers: The names of the servers that count; None for all.
        more_folders: Further folders that servers are told of as roots; absolute.
        max_steps: Most answers of the model in one turn; None for any number.
        max_cost: Most that the requests of the run may cost; None for what the settings say.
        profile: The profile of the settings that counts at first; None for none.
        trace: Where each frame of the servers' wires is written, or None.
        check_keys: Says which keys of the settings the screen cannot have, and why.
    """

    folder: Path
    demo: bool = False
    model: str | None = None
    demo_without_key: bool = True
    follow_settings: bool = True
    server_patience: float | None = None
    trusted_folders: tuple[Path, ...] = ()
    attended: bool = False
    allowed_tools: tuple[str, ...] = ()
    allows_all: bool = False
    names_mode: bool = False
    needs_model: bool = True
    private: bool = False
    save: bool = False
    resume: str | None = None
    only_servers: frozenset[str] | None = None
    more_folders: tuple[Path, ...] = ()
    max_steps: int | None = None
    max_cost: float | None = None
    profile: str | None = None
    trace: Path | None = None
    check_keys: Callable[[Mapping[str, Sequence[str]]], Mapping[str, str]] = lambda _: {}

    @property
    def saves(self) -> bool:
        """Whether conversations are saved, if the settings want it."""
        return (self.attended or self.save or self.resume is not None) and not self.private
