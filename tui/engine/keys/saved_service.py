"""Which model service the user chose last: kept between runs, without its key."""

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from tui.engine.files.state_file import private_file
from tui.model.frozen import dataclass

FILE_NAME: Final = "service.json"


class Service(StrEnum):
    """A service that can be chosen. The value stands in the file."""

    GOOGLE = "google"
    ADDRESS = "address"
    VERTEX = "vertex"


@dataclass(frozen=True, slots=True)
class KeptService:
    """The choice, with what was entered for it.

    Attributes:
        service: What answers: the Gemini API at Google, or at another address, or Vertex.
        address: The other address, or an empty string.
        project: The Google Cloud project for Vertex.
        location: Its location.
    """

    service: Service = Service.GOOGLE
    address: str = ""
    project: str = ""
    location: str = ""


OWN_SERVICE: Final = KeptService()
"""The Gemini API at Google, if nothing else was chosen."""

_CHOICE: Final = TypeAdapter(KeptService)


class ServiceStore:
    """Keeps the choice in a private file: an address decides where a key is sent.

    Every method blocks: call it in a thread.

    Args:
        folder: The state folder; None keeps it in memory.
        on_problem: Told from any thread what cannot be read or written.
    """

    def __init__(self, folder: Path | None, on_problem: Callable[[str], None]) -> None:
        self._file = private_file(folder, FILE_NAME, on_problem)

    def get(self) -> KeptService:
        """Return the choice; one that is unsound counts as none."""
        try:
            return _CHOICE.validate_python(self._file.load() or {})
        except ValidationError:
            return OWN_SERVICE

    def set(self, choice: KeptService) -> None:
        self._file.update(lambda content: {**content, **asdict(choice)})
