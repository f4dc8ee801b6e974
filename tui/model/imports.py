"""Servers of other clients that could be taken over."""

from enum import StrEnum

from tui.model.frozen import Frozen


class ImportState(StrEnum):
    """How a server of another client stands here. The value is its name on the screen."""

    NEW = "new"
    THERE = "there already"
    TAKEN = "name is taken here"
    UNUSABLE = "cannot be taken over"
    WRITTEN = "written"


class ImportOffer(Frozen):
    """A server's entry in full, but for its secrets; nothing in it needs escaping.

    Attributes:
        client: Whose it is.
        file: The file it stands in.
        server: Its name here.
        state: How it stands here.
        command: The program and its arguments.
        address: Its address, if it has no program.
        cwd: Its working folder, or an empty string.
        env: Its variables, ``NAME=value``.
        headers: Its headers, ``Name: value``.
        warnings: What deserves a second look.
        notes: What does not come along, and what it needs.
    """

    client: str
    file: str
    server: str
    state: ImportState
    command: tuple[str, ...] = ()
    address: str = ""
    cwd: str = ""
    env: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
