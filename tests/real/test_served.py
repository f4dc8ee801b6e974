"""What a client gets by `gemdeck mcp serve` is what the reference servers offer and answer.

The SDK's client is connected to the servers themselves, and to all of them by gemdeck. What
differs is listed here.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import SERVER_INFO_META_KEY
from pydantic import BaseModel

from tests.cli.running import environment, write_settings
from tests.real.catalogue import REFERENCES, STATELESS, prepare
from tests.support import warm
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.timeout(120)

Json = dict[str, Any]

NAMES: Final = ("everything-stdio", "filesystem", "git", "memory")
SERVERS: Final = {one.name: one for one in REFERENCES if one.name in NAMES}

LATE: Final = "get-roots-list"
"""A tool that is listed only once its server knows the roots."""

ESCAPE: Final = "\x1b[31m"

INVALID: Final = (
    "The arguments do not match the tool's schema: arguments: 'message' is a required property"
)

CALLS: Final[list[tuple[str, Json]]] = [
    ("echo", {"message": f"hé {ESCAPE}red"}),
    ("echo", {}),
    ("get-sum", {"a": 2, "b": 40}),
    ("get-structured-content", {"location": "New York"}),
    ("get-tiny-image", {}),
    ("get-resource-links", {"count": 2}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("list_directory", {"path": "."}),
    ("read_text_file", {"path": "notes.txt"}),
    ("read_text_file", {"path": "/etc/hostname"}),
    ("git_status", {"repo_path": "repository"}),
    ("git_log", {"repo_path": "nowhere"}),
    ("read_graph", {}),
]
"""Calls, of which some fail; paths are of the workspace."""


async def decline(*_: object) -> types.ElicitResult:
    return types.ElicitResult(action="decline")


@asynccontextmanager
async def connected(command: str, *arguments: str, **more: Any) -> AsyncIterator[Client]:  # noqa: ANN401
    """Connect a client that can do what gemdeck can without a deck: some servers offer more then.

    That is forms and roots, but no texts of a model.
    """
    mode = more.pop("mode", "auto")
    parameters = StdioServerParameters(command=command, args=[*arguments], **more)

    async def roots(*_: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=Path(more["cwd"]).as_uri())])

    able: Json = {"elicitation_callback": decline, "list_roots_callback": roots}
    async with Client(stdio_client(parameters), mode=mode, **able) as client:
        yield client


def plain(model: BaseModel) -> Json:
    """Give what a server wrote, without the name that each of the later era puts to it."""
    written = model.model_dump(by_alias=True, exclude_none=True, mode="json")
    meta = {k: v for k, v in written.pop("_meta", {}).items() if k != SERVER_INFO_META_KEY}
    return {**written, "_meta": meta} if meta else written


async def lists(client: Client, late: str) -> dict[str, dict[str, Json]]:
    """Give all that is listed, by names and addresses, once the tool that comes late is."""
    found: dict[str, dict[str, Json]] = {"tools": {}}
    offered = client.server_capabilities
    while not found["tools"] or (late and late not in found["tools"]):
        found["tools"] = {one.name: plain(one) for one in (await client.list_tools()).tools}
    if offered.prompts:
        listed = (await client.list_prompts()).prompts
        found["prompts"] = {one.name: plain(one) for one in listed}
    if offered.resources:
        resources = (await client.list_resources()).resources
        found["resources"] = {one.uri: plain(one) for one in resources}
        templates = (await client.list_resource_templates()).resource_templates
        found["templates"] = {one.uri_template: plain(one) for one in templates}
    return found


async def uses(client: Client, workspace: Path, offered: Mapping[str, Any]) -> Json:
    """Give the results of what a server offers, of the uses that are tried here."""
    found: Json = {}
    for name, given in CALLS:
        if name in offered["tools"]:
            arguments = {
                key: str(workspace / one) if "path" in key else one for key, one in given.items()
            }
            found[f"{name} {given}"] = plain(await client.call_tool(name, arguments))
    for uri in offered.get("resources", {}):
        found[uri] = plain(await client.read_resource(uri))
    if "args-prompt" in offered.get("prompts", {}):
        found["args-prompt"] = plain(await client.get_prompt("args-prompt", {"city": "Kyiv"}))
        about = types.PromptReference(name="completable-prompt")
        argument = {"name": "department", "value": "S"}
        found["completion"] = plain(await client.complete(about, argument))
    return found


@pytest.fixture
async def own(tmp_path: Path) -> tuple[dict[str, dict[str, Json]], Json]:
    """Configure the servers; give what they list and answer by themselves."""
    prepare(tmp_path)
    entries, listed, used = {}, dict[str, dict[str, Json]](), Json()
    for name, reference in SERVERS.items():
        command, arguments = reference._command(tmp_path)
        env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
        entries[name] = {"command": command, "args": arguments, "env": env, "cwd": str(tmp_path)}
        surroundings = {**environment(None), **env}
        async with connected(command, *arguments, env=surroundings, cwd=tmp_path) as client:
            with anyio.fail_after(PATIENCE):
                offered = await lists(client, LATE if name == "everything-stdio" else "")
            used |= await uses(client, tmp_path, offered)
            for kind, items in offered.items():
                assert not listed.get(kind, {}).keys() & items.keys(), "names need servers' names"
                listed[kind] = listed.get(kind, {}) | items
    write_settings(
        {
            "mcpServers": entries,
            "gemdeck": {"alwaysAllow": [{"server": name} for name in entries]},
        }
    )
    return listed, used


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_gets_what_the_servers_themselves_offer_and_answer(
    mode: str, own: tuple[dict[str, dict[str, Json]], Json], tmp_path: Path
) -> None:
    listed, used = own
    serve = (warm.python(), "-m", "tui", "mcp", "serve")
    with anyio.fail_after(PATIENCE):
        async with connected(*serve, env=environment(None), cwd=Path.home(), mode=mode) as client:
            assert (client.protocol_version == STATELESS) is (mode == "auto")
            got, results = await lists(client, LATE), await uses(client, tmp_path, listed)
    if mode == "auto":  # which has no such thing
        for tool in listed["tools"].values():
            tool.pop("execution", None)
    for kind, items in listed.items():
        assert got[kind] == items
    escaped, invalid = (f"echo {given}" for _, given in CALLS[:2])
    used[escaped]["content"][0]["text"] = used[escaped]["content"][0]["text"].replace(ESCAPE, "")
    used[invalid]["content"][0]["text"] = INVALID  # checked before it is sent
    assert results == used
