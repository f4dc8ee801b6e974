"""The names of tools for the model, and of prompts for the user.

Tool names are valid for Gemini and unique. The first server in settings order keeps a tool's own
name; later ones get ``server__tool``. Names depend on the offers and the order of the servers,
never on which one connected first.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeVar

from tui.model.catalog import ToolId
from tui.model.input.own_commands import OWN_COMMANDS

OWN_NAMES: Final = ("search_tools", "list_mcp_resources", "read_mcp_resource")
"""The names of gemdeck's own tools, which no server's tool gets."""

MAX_NAME: Final = 63
"""Longest name; Gemini documents 64."""

_HEAD: Final = 28
_TAIL: Final = 32
_GAP: Final = "___"
_DIGEST: Final = 8
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9_.-]")
_MODEL_PREFIX: Final = re.compile(r"default_api[.:]")
"""What Gemini models sometimes put before names; no tool may have such a name itself."""

_RESERVED: Final = frozenset({"default_api"})

_REMEMBERED: Final = 65_536
"""Size of the cache: every name is assigned again whenever a list changes."""

Server = TypeVar("Server", bound=str)


@lru_cache(maxsize=_REMEMBERED)
def sanitize_name(name: str) -> str:
    """Make a name valid for Gemini.

    Characters outside ``[a-zA-Z0-9_.-]`` become ``_``; a name that does not start with a letter
    or ``_`` gets a ``_``; a name over 63 characters keeps its first 28 and last 32.
    """
    clean = _NOT_ALLOWED.sub("_", name)
    if not clean or not (clean[0].isalpha() or clean[0] == "_"):
        clean = "_" + clean
    if len(clean) > MAX_NAME:
        clean = clean[:_HEAD] + _GAP + clean[-_TAIL:]
    return clean


def assign_names(
    offers: Sequence[tuple[Server, Iterable[str]]], reserved: Iterable[str] = ()
) -> dict[tuple[Server, str], ToolId]:
    """Name the tools of all servers.

    Names that differ only in case count as equal, as models confuse them. The order of tools
    within a server does not matter.

    Args:
        offers: Server ids in settings order, each with the names of its tools.
        reserved: Names that are already taken.

    Returns:
        The name of each server's tool, in their order; no two are equal, ignoring case.
    """
    names: dict[tuple[Server, str], ToolId] = {}
    taken = {*_RESERVED, *(name.lower() for name in reserved)}
    for server, tools in offers:
        spelled = {tool: sanitize_name(tool) for tool in tools}
        lowered = {bare.lower() for bare in spelled.values()}
        if (
            len(lowered) == len(spelled)
            and not any(map(_MODEL_PREFIX.match, lowered))
            and taken.isdisjoint(lowered)
        ):  # as most are: all keep their names
            names |= {(server, tool): ToolId(bare) for tool, bare in spelled.items()}
            taken |= lowered
            continue
        names |= {(server, tool): ToolId("") for tool in spelled}  # in this order
        for _, tool, bare in sorted((bare != tool, tool, bare) for tool, bare in spelled.items()):
            name = bare if _is_free(bare, taken) else _free_name(server, tool, taken)
            taken.add(name.lower())
            names[server, tool] = ToolId(name)
    return names


def assign_prompt_names(offers: Sequence[tuple[str, Sequence[str]]]) -> list[list[str]]:
    """Name the prompts of all servers for the user.

    The first server keeps a prompt's own name, unless it is a command of the screen; others get
    ``server_prompt``, with a number appended if that is taken too.

    Args:
        offers: Server ids in settings order, each with the names of its prompts.

    Returns:
        For each server the names of its prompts, in order; all are different.
    """
    taken = set(OWN_COMMANDS)
    named = []
    for server, prompts in offers:
        names = []
        for prompt in prompts:
            name = prompt
            number = 1
            while name in taken:
                name = f"{server}_{prompt}" + (f"_{number}" if number > 1 else "")
                number += 1
            taken.add(name)
            names.append(name)
        named.append(names)
    return named


def without_model_prefix(name: str) -> str:
    """Remove the prefix that a model may have put before a tool's name."""
    return name[found.end() :] if (found := _MODEL_PREFIX.match(name)) else name


def _free_name(server: str, tool: str, taken: set[str]) -> str:
    """Return a name with the server in it."""
    qualified = sanitize_name(f"{server}__{tool}")
    if _is_free(qualified, taken):
        return qualified
    counter = 0
    while True:
        digest = hashlib.sha256(f"{server}\0{tool}\0{counter}".encode()).hexdigest()[:_DIGEST]
        candidate = f"{qualified[: MAX_NAME - _DIGEST - 1]}_{digest}"
        if candidate.lower() not in taken:
            return candidate
        counter += 1


def _is_free(name: str, taken: set[str]) -> bool:
    return name.lower() not in taken and not _MODEL_PREFIX.match(name)
