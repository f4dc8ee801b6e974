"""Edits of settings files that the user asks for: they are the user's word, asked about nowhere."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tui.engine.reload import read_settings
from tui.engine.settings.edits import EditError, add_server, remove_server
from tui.engine.settings.sources.document import BadDocumentError, read_document
from tui.engine.settings.sources.dotenv import leads_out
from tui.engine.settings.sources.locations import FILE_NAME, FOLDER_NAME
from tui.engine.trust.folder_gate import OpenedFolder
from tui.engine.trust.starts import written_keys
from tui.model.servers import ServerId


def servers_in(path: Path) -> Mapping[str, object]:
    """Return the entries of a settings file; none if it is absent. Blocks.

    Raises:
        EditError: If it cannot be read.
    """
    try:
        document = read_document(path)
    except BadDocumentError as error:
        raise EditError(f"line {error.line}: {error}" if error.line else str(error)) from error
    servers = document.content.get("mcpServers") if document is not None else None
    return servers if isinstance(servers, dict) else {}


class OwnEdits:
    """Changes servers in the settings; a gemdeck that runs takes that without a question.

    A trusted folder stays trusted with what an edit makes of it, and a new server of the user
    counts as accepted. Blocks; for threads only.

    Args:
        folder: The opened folder.
        home: The user's home.
        state: The state folder, or None.
        on_problem: Takes what is wrong, such as with a state file.
    """

    def __init__(
        self, folder: Path, home: Path, state: Path | None, on_problem: Callable[[str], None]
    ) -> None:
        self._home = home
        self._opened = OpenedFolder(folder, home, state, (), on_problem, attended=False)

    def file_of(self, scope: str) -> Path:
        """Return the file of a scope, ``user`` or ``project``.

        Raises:
            EditError: If the folder's leads out of it, perhaps to the user's own.
        """
        folder = self._home if scope == "user" else self._opened.folder
        path = folder / FOLDER_NAME / FILE_NAME
        if scope == "project" and leads_out(path, folder, self._home, []):
            raise EditError("leads out of this folder, so it is not written.")
        return path

    def add(self, scope: str, name: str, entry: Mapping[str, Any]) -> Path:
        """Write an entry, and return the file.

        Raises:
            EditError: If it cannot be written.
        """
        path = self.file_of(scope)
        if scope == "user":
            self._opened.store.add(written_keys(entry, self._opened.salt)[1])
        self.change(path, name, lambda: add_server(path, name, entry))
        return path

    def remove(self, scope: str, name: str) -> Path:
        """Remove an entry, and return the file.

        Raises:
            NoSuchServerError: If there is none.
            EditError: If it cannot be written.
        """
        path = self.file_of(scope)
        entry = servers_in(path).get(name)
        self.change(path, name, lambda: remove_server(path, name))
        if scope == "user" and isinstance(entry, dict):
            self._opened.store.add(written_keys(entry, self._opened.salt)[1], is_gone=True)
        return path

    def change(self, path: Path, name: str, edit: Callable[[], None]) -> None:
        """Let a server's entry in a file be changed, and keep the folder trusted if it was."""
        opened = self._opened
        before = read_settings(opened, None).settings.project
        edit()
        opened.trust_edit(before, read_settings(opened, None).settings.project, ServerId(name))
        if path.exists():
            os.utime(path)  # who read it before the folder was trusted again reads it once more
