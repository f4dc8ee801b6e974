"""The work behind the screen, and a library: ``from tui.engine import Engine, EngineOptions``.

The names in `api` can be imported from here; they are loaded when one is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.engine.api import *  # noqa: F403


def __getattr__(name: str) -> object:
    if name == "__all__":
        return __dir__()
    if not name[0].isupper():  # a submodule
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("tui.engine.api"), name)


def __dir__() -> list[str]:
    return [name for name in vars(import_module("tui.engine.api")) if name[0].isupper()]
