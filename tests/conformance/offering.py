"""A server with all that the suite's scenarios for servers use, in whichever era it is asked.

Names, texts and forms are those that the scenarios expect.
"""

import base64
import json
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8Dw"
    "HwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
PICTURE: Final = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
BEAT: Final = 0.3
"""Seconds between two things that a tool tells; gemdeck passes on ten reports a second."""

STATE: Final = "state-of-a-round"
"""What a retried request has to bring back."""

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
DEFAULTS: Final[dict[str, Any]] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}
_PLAIN = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
CHOICES: Final[dict[str, Any]] = {
    "untitledSingle": {"type": "string", "enum": _PLAIN},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _PLAIN}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}

server = MCPServer("offering", version="1")
low = server._lowlevel_server

_Answer = str | types.InputRequiredResult


def form(message: str, **properties: Any) -> types.ElicitRequest:  # noqa: ANN401
    """Make a request for input."""
    schema = {"type": "object", "properties": properties}
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def sampling(words: str, max_tokens: int = 100) -> types.CreateMessageRequest:
    """Make a request for text."""
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=words))
    params = types.CreateMessageRequestParams(messages=[said], max_tokens=max_tokens)
    return types.CreateMessageRequest(params=params)


NAME: Final = {"name": {"type": "string"}}
INPUTS: Final[dict[str, dict[str, Any]]] = {
    "elicitation": {"user_name": form("What is your name?", **NAME)},
    "sampling": {"capital_question": sampling("What is the capital of France?")},
    "list_roots": {"client_roots": types.ListRootsRequest()},
    "request_state": {"confirm": form("Please confirm", ok={"type": "boolean"})},
    "multiple_inputs": {
        "user_name": form("What is your name?", **NAME),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    },
    "tampered_state": {"confirm": form("Please confirm", ok={"type": "boolean"})},
    "capabilities": {"user_name": form("What is your name?", **NAME)},
}
"""By the last words of a tool's name what it wants to know before it answers."""

STEPS: Final = ("Step 1: What is your name?", "Step 2: What is your favorite color?")


@server.tool()
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@server.tool(structured_output=False)
def test_image_content() -> list[Any]:
    """Give a picture."""
    return [PICTURE]


@server.tool(structured_output=False)
def test_audio_content() -> list[Any]:
    """Give a sound."""
    return [types.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


def embedded(uri: str, kind: str, text: str) -> types.EmbeddedResource:
    """Make a resource within a result."""
    held = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.EmbeddedResource(type="resource", resource=held)


@server.tool(structured_output=False)
def test_embedded_resource() -> list[Any]:
    """Give a resource."""
    words = "This is an embedded resource content."
    return [embedded("test://embedded-resource", "text/plain", words)]


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[Any]:
    """Give several things."""
    held = embedded("test://mixed-content-resource", "application/json", '{"test":"data"}')
    return ["Multiple content types test:", PICTURE, held]


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three lines."""
    for doing in ("execution started", "processing data", "execution completed"):
        await ctx.log("info", f"Tool {doing}")
        await anyio.sleep(BEAT)
    return "done"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Tell of progress."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await anyio.sleep(BEAT)
    return "done"


@server.tool()
def test_error_handling() -> str:
    """Fail."""
    raise ValueError("This tool intentionally returns an error for testing")


async def asking(ctx: Context, key: str, asked: types.InputRequest, kind: Any) -> _Answer:  # noqa: ANN401
    """Ask by a request of our own, or by a result that asks for input; give the answer as JSON."""
    answer: Any
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answer = await ctx.session.send_request(asked, kind)
    elif (answer := (ctx.input_responses or {}).get(key)) is None:
        return types.InputRequiredResult(input_requests={key: asked})
    return str(answer.model_dump_json(by_alias=True, exclude_none=True))


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> _Answer:
    """Ask for text."""
    return await asking(ctx, "text", sampling(prompt), types.CreateMessageResult)


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> _Answer:
    """Ask for a name and an address."""
    wanted = form(message, username={"type": "string"}, email={"type": "string"})
    return await asking(ctx, "form", wanted, types.ElicitResult)


@server.tool()
async def test_streaming_elicitation(ctx: Context) -> _Answer:
    """Ask for a name."""
    return await asking(ctx, "form", form("What is your name?", **NAME), types.ElicitResult)


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> _Answer:
    """Ask by a form that has defaults."""
    return await asking(ctx, "form", form("Who are you?", **DEFAULTS), types.ElicitResult)


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> _Answer:
    """Ask by a form that has all kinds of choices."""
    return await asking(ctx, "form", form("Choose.", **CHOICES), types.ElicitResult)


def add_asking_tool(name: str, wanted: dict[str, Any]) -> None:
    """Add a tool that ends with what it was told, once it was told all that it wants to know."""

    async def tool(ctx: Context) -> _Answer:
        answers = {**(ctx.input_responses or {})}
        if not wanted.keys() <= answers.keys():
            return types.InputRequiredResult(input_requests=wanted, request_state=STATE)
        if ctx.request_state != STATE:
            raise MCPError(types.INVALID_PARAMS, "The state is not ours.")
        said = (one.model_dump_json(by_alias=True) for one in answers.values())
        return f"state-ok {' '.join(said)}"

    words = f"Want to know {', '.join(wanted)}."
    server.add_tool(tool, name=f"test_input_required_result_{name}", description=words)


for one, wanted_of_it in INPUTS.items():
    add_asking_tool(one, wanted_of_it)


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> _Answer:
    """Ask twice, one after the other."""
    asked_before = int(ctx.request_state or 0)
    if asked_before == len(STEPS):
        return "done"
    request = {f"step{asked_before + 1}": form(STEPS[asked_before], **NAME)}
    state = str(asked_before + 1)
    return types.InputRequiredResult(input_requests=request, request_state=state)


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Say that tools have changed; gemdeck would not look again so soon after the prompts."""
    await ctx.notify_tools_changed()
    return "done"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Add a prompt."""
    server.add_prompt(Prompt.from_function(test_simple_prompt, name="one_more"))
    await ctx.notify_prompts_changed()
    return "done"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Log a line."""
    await ctx.log("info", "a line")
    return "done"


def json_schema_2020_12_tool() -> str:
    """Have a schema with much of its language."""
    return "done"


server.add_tool(json_schema_2020_12_tool)
server._tool_manager._tools["json_schema_2020_12_tool"].parameters = SCHEMA


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Give a text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """Give bytes."""
    return base64.b64decode(PIXEL)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """Give what may be watched."""
    return "Watched resource content"


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 - the name in the template
    """Give what belongs to an id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt()
def test_simple_prompt() -> str:
    """Give a message."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Give a message with two arguments in it."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803
    """Give a message with a resource."""
    held = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(held), "Please process the embedded resource above."]


@server.prompt()
def test_prompt_with_image() -> list[Any]:
    """Give a message with a picture."""
    return [UserMessage(PICTURE), "Please analyze the image above."]


async def complete(_: Any, params: types.CompleteRequestParams) -> types.CompleteResult:  # noqa: ANN401
    """Complete whatever is begun."""
    values = [f"{params.argument.value}ing"]
    return types.CompleteResult(completion=types.Completion(values=values))


async def agree(*_: object) -> types.EmptyResult:
    """Take a subscription, or its end."""
    return types.EmptyResult()


low.add_request_handler("completion/complete", types.CompleteRequestParams, complete)
low.add_request_handler("resources/subscribe", types.SubscribeRequestParams, agree)
low.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, agree)
low.add_request_handler("logging/setLevel", types.SetLevelRequestParams, agree)

if __name__ == "__main__":
    server.run()
