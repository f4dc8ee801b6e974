"""A gemdeck without a screen for the conformance suite: it does once all that a server offers.

Run it as ``python -m tests.conformance.client URL``. It connects by the same engine as the app,
calls every tool, reads every resource and gets every prompt, and says yes to whatever it is
asked; it signs in where that is required, with a client that goes wherever it is sent in place of
a browser. It knows three things of scenarios: which sign in with client credentials, which
want skills to be loaded, and that a parameter named ``schema`` wants another tool's schema. Where
``MCP_CONFORMANCE_CONTEXT`` names ``toolCalls``, exactly those calls are made instead of made-up
ones; client credentials in there count as if they stood in the settings.

It ends with 0 if the server was ready and the engine did its work; what the server refused is
printed and is no failure.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.conformance.stubs import STUB, fill_in, stub_arguments
from tests.servers.web import free_port
from tests.support.definitions import altered, define_server
from tui.engine.approval.tool_review import PinStore
from tui.engine.chats.skills import Skills
from tui.engine.definitions.definition import ServerDefinition, SignInSettings
from tui.engine.desk import Desk
from tui.engine.late import import_auth_requests, import_connection
from tui.engine.logs.audit import AuditLog
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.catalog.offered_tool import OfferedTool, ToolCallError, ToolResult
from tui.engine.mcp.catalog.permit import Permit
from tui.engine.mcp.catalog.skill_entry import OpenSkills
from tui.engine.mcp.context import ClientContext, Generation, Generator, Prompt
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.session.features import Features
from tui.engine.sign_in.sign_in_record import AuthError
from tui.engine.sign_in.sign_ins import SignIns
from tui.model.catalog import Catalog
from tui.model.events import CatalogChanged, Event, RequestRaised, ServerLogged, ServerStatusChanged
from tui.model.requests import Answer, FormRequest, PendingRequest, Reply, ReplyAction, SkillRequest
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.model.settings import OAuthSettings
from tui.model.trust import TrustAnswer

CONTEXT: Final = "MCP_CONFORMANCE_CONTEXT"
"""The environment variable in which the suite describes a scenario, as JSON."""

SCENARIO: Final = "MCP_CONFORMANCE_SCENARIO"
"""The environment variable with the name of a scenario, for what a user would have set up."""

DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"
"""The client metadata document that the suite knows."""

MAX_SIGN_INS: Final = 4
"""Most rounds of calls with a sign-in after each."""

COMING: Final = frozenset({ServerStatus.STARTING, ServerStatus.STOPPING, ServerStatus.STOPPED})
"""Statuses of a server on its way to be ready."""

SERVER: Final = ServerId("conformance")

SCHEMA: Final = "schema"
"""The parameter in which a tool takes a schema."""

READY_SECONDS: Final = 60.0
"""Longest time for the server to be ready."""

ONE_ATTEMPT: Final = RetryPolicy(first_delay=60.0)
"""A server that fails is not tried again while it is looked at."""


def willing_reply(request: PendingRequest) -> Answer:
    """Accept everything, forms with their defaults unless those did not pass the check."""
    if isinstance(request, SkillRequest):
        return TrustAnswer.TRUST
    if not isinstance(request, FormRequest):
        return Reply(ReplyAction.ACCEPT)
    if request.problem:
        print(f"a form could not be filled in: {request.problem}")
        return Reply(ReplyAction.DECLINE)
    return Reply(ReplyAction.ACCEPT, {field.key: fill_in(field) for field in request.fields})


async def stub_answer(_prompt: Prompt) -> Generation:
    """Answer every prompt alike."""
    return Generation(STUB, (), STUB)


class Visit:
    """One visit to a server: everything it offers, once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._status = ServerStatus.STOPPED
        self._reason = ""
        self._catalog = Catalog()
        self._desk = Desk(self._hear)

    async def run(self) -> bool:
        """Tell whether the server was ready."""
        generator = Generator(lambda: STUB, stub_answer)
        context = ClientContext(self._hear, self._desk, open_url=go_there, generator=generator)
        context.client_version = "0"
        context.sign_ins = SignIns(
            None, self._desk, go_there, import_auth_requests, self._hear, context.redactor
        )
        with tempfile.TemporaryDirectory() as folder:
            context.workspaces = (Path(folder),)
            sign_in = sign_in_settings(Path(folder))
            own = define_server(SERVER, Origin.USER, Transport.HTTP, url=self._url)
            definition = altered(own, sign_in=sign_in)
            async with ServerManager(
                self._hear, context, import_connect=import_connection, retry=ONE_ATTEMPT
            ) as manager:
                manager.configure([definition])
                await manager.wait_discovered(READY_SECONDS)
                for _ in range(MAX_SIGN_INS):
                    if self._status is ServerStatus.READY:
                        await self._call_tools(manager)
                    if self._status is not ServerStatus.NEEDS_SIGN_IN:
                        break
                    await self._sign_in(manager, context.sign_ins, definition)
                if self._status is not ServerStatus.READY:
                    print(f"{self._status}: {self._reason}")
                    return self._reason.startswith("offers nothing")
                await self._use_features(manager.features(SERVER))
                if os.environ.get(SCENARIO, "").startswith("sep-2640-client-verify"):
                    await self._load_skills(manager)
                await context.sign_ins.aclose()
        return True

    async def _sign_in(
        self, manager: ServerManager, sign_ins: SignIns, definition: ServerDefinition
    ) -> None:
        try:
            print(await sign_ins.sign_in(definition))
        except AuthError as error:
            print(f"sign-in: the server {error.reason}")
            self._status, self._reason = ServerStatus.FAILED, error.reason
            return
        manager.restart(SERVER)
        await manager.wait_while(lambda: self._status in COMING, READY_SECONDS)

    def _hear(self, event: Event) -> None:
        match event:
            case RequestRaised(request):
                self._desk.answer(request.id, willing_reply(request))
            case ServerStatusChanged(status=status, failure=failure):
                self._status = status
                self._reason = failure.reason if failure is not None else ""
            case CatalogChanged(catalog=catalog):
                self._catalog = catalog
            case ServerLogged(lines=lines):
                for line in lines:
                    print(f"{line.source}: {line.text}")

    async def _call_tools(self, manager: ServerManager) -> None:
        for tool, arguments in planned_calls(manager):
            permit = Permit(tool, arguments, "", "the harness")
            await tell(tool.id, manager.call_tool(permit, lambda _: None))

    async def _use_features(self, features: Features) -> None:
        for resource in self._catalog.resources:
            await tell(resource.uri, features.read_resource(resource.uri))
        for prompt in self._catalog.prompts:
            arguments = {argument.name: STUB for argument in prompt.arguments}
            await tell(prompt.name, features.get_prompt(prompt.name, arguments))

    async def _load_skills(self, manager: ServerManager) -> None:
        """Load each skill, and read all files of those that could be."""
        store, opened = PinStore(None, print), OpenSkills()
        audit = AuditLog(None, on_problem=print)
        skills = Skills(manager, self._desk, store, self._hear, audit)
        for skill in self._catalog.skills:
            name = f"{SERVER}:{skill.name}"
            await tell(name, skills.load(name, opened, by_user=True))
        for held in opened.values():
            for path in held.files:
                await tell(path, manager.features(SERVER).read_resource(held.address(path)))


def given() -> dict[str, Any]:
    """Give what the suite says of the scenario."""
    context: dict[str, Any] = json.loads(os.environ.get(CONTEXT) or "{}")
    return context


def sign_in_settings(folder: Path) -> SignInSettings:
    """Say how to sign in: with the credentials that the suite gives, or as anybody.

    A token that the platform of a workload keeps up to date goes into the folder.
    """
    context = given()
    oauth: dict[str, object] = {
        "client_id": context.get("client_id", DOCUMENT),
        "client_secret": context.get("client_secret"),
        "redirect_uri": f"http://localhost:{free_port()}/oauth/callback",
    }
    if (os.environ.get(SCENARIO) or "").startswith("auth/client-credentials"):
        oauth |= {
            "grant_type": "client_credentials",
            "private_key": context.get("private_key_pem"),
            "signing_algorithm": context.get("signing_algorithm", "RS256"),
        }
    if "idp_id_token" in context:
        oauth |= {
            "grant_type": "identity_assertion",
            "identity_token": context["idp_id_token"],
            "identity_token_url": context["idp_token_endpoint"],
            "identity_client_id": context["idp_client_id"],
        }
    if "valid_jwt" in context:
        file = folder / "workload"
        file.write_text(context["valid_jwt"])
        oauth |= {"grant_type": "identity_assertion", "identity_token_file": str(file)}
    return SignInSettings(OAuthSettings.model_validate(oauth))


async def go_there(url: str) -> bool:
    """Go where a browser would, and say yes to nothing: the suite's pages need no yes."""
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        await browser.get(url)
    return True


def planned_calls(manager: ServerManager) -> Iterator[tuple[OfferedTool, dict[str, Any]]]:
    """Give the calls to make: those that the suite names, or one of each tool.

    A tool that takes a schema is given that of another tool: suites ask for one to see whether
    it came through unharmed.
    """
    tools = list(manager.offered_tools())
    named = given().get("toolCalls")
    if named is not None:
        by_name = {tool.name: tool for tool in tools}
        known = (call for call in named if call["name"] in by_name)
        yield from ((by_name[call["name"]], call.get("arguments") or {}) for call in known)
        return
    for tool in tools:
        arguments = stub_arguments(tool.schema)
        others = [other.schema for other in tools if other is not tool]
        if others and isinstance(arguments.get(SCHEMA), dict):
            arguments[SCHEMA] = dict(others[0])
        yield tool, arguments


async def tell(what: str, doing: Awaitable[object]) -> None:
    """Print what came of something; a refusal is an answer too."""
    try:
        result = await doing
    except (ToolCallError, ServerCallError) as error:
        print(f"{what}: {error}")
        return
    print(f"{what}: {result.display if isinstance(result, ToolResult) else result}")


async def main(url: str) -> int:
    """Visit a server; give the exit code."""
    return 0 if await Visit(url).run() else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
