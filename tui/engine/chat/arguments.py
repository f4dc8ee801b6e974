"""Which checks arguments pass before anyone is asked."""

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass

from tui.engine.tools import JsonObject


@dataclass(frozen=True, slots=True)
class ArgumentRules:
    """The rules for arguments.

    Attributes:
        coerce: Takes a schema and arguments; gives the arguments as the server takes them, with
            its spelling of names and listed values, and integers where the schema says so.
        check: Takes a schema and arguments; gives what is wrong with them, one line each.
    """

    coerce: Callable[[JsonObject, JsonObject], JsonObject]
    check: Callable[[JsonObject, JsonObject], list[str]]


async def load_argument_rules() -> ArgumentRules:
    """Load the rules of the server side, off the loop because JSON Schema is slow to import."""
    module = await asyncio.to_thread(importlib.import_module, "tui.engine.servers.arguments")
    return ArgumentRules(coerce=module.coerce, check=module.check_arguments)
