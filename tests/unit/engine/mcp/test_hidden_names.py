"""What has a name that the screen would show as another is withheld, with the reason."""

from typing import Any

import pytest

from tests.support.rows import row
from tests.unit.engine.mcp.support import script
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.offer import RawOffer, ServerOffer, read_offer
from tui.engine.mcp.catalog.registry import Registry, ToolVisibility
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.schema.to_gemini import UnusableSchemaError, convert_schema, to_gemini
from tui.engine.mcp.session.call_timeout import CallTimeout
from tui.engine.mcp.session.features import Features
from tui.model.servers import ServerId

RAW = script("raw")
NAME = "its name cannot be shown as it is"
URI = "its URI cannot be shown as it is"


def read(**lists: list[object]) -> ServerOffer:
    return read_offer(RawOffer(**lists))  # type: ignore[arg-type]  # by name


def test_a_tool_with_a_hidden_name_is_withheld() -> None:
    for name in ["gr\x1b[1meet", "greet\u202e", "gr\u0435et\U000e0041", "a  b", "n" * 300]:
        with row(name):
            names = (name, "greet", "größe", "天")
            offer = read(tools=[{"name": one, "inputSchema": {}} for one in names])
            assert offer.tools[0].view.problem == NAME
            assert [tool.is_usable for tool in offer.tools] == [False, True, True, True]
            registry = Registry(lambda _: True, ToolVisibility())
            registry.configure([RAW])
            registry.update(RAW.id, offer)
            assert [tool.name for tool in registry.offered()] == ["greet", "größe", "天"]
            found = registry.look_up(RAW.id, "greet")
            assert found is not None
            assert found[1] is not None
            assert found[1].name == "greet"


def test_a_required_parameter_with_a_hidden_name_withholds_its_tool() -> None:
    schema = {"properties": {"pa\x1b[0mth": {}, "path": {}}, "required": ["pa\x1b[0mth"]}
    words = "its required parameter “path” cannot be used: its name cannot be shown as it is"
    with pytest.raises(UnusableSchemaError, match=words):
        to_gemini(schema)
    nested = {"properties": {"at": {"type": "object"} | schema}}
    with pytest.raises(UnusableSchemaError, match=words):
        to_gemini({**nested, "required": ["at"]})
    converted, left_out = convert_schema(nested)
    assert converted["properties"] == {}
    assert left_out == (f"parameter “at”: {words}",)
    [tool] = read(tools=[{"name": "read", "inputSchema": schema}]).tools
    assert tool.view.problem == words


def test_an_optional_parameter_and_a_value_are_left_out_and_named() -> None:
    schema = {
        "properties": {
            "size\u200b": {"type": "integer"},
            "kind": {"enum": ["plain", "rare\u202e"], "default": "rare\u202e"},
        },
        "required": ["kind"],
    }
    converted, left_out = convert_schema(schema)
    assert converted["properties"] == {"kind": {"type": "string", "enum": ["plain"]}}
    assert converted["required"] == ["kind"]
    assert left_out == (
        "value “rare⟨U+202E⟩”: it cannot be shown as it is",
        "parameter “size⟨U+200B⟩”: its name cannot be shown as it is",
    )
    [tool] = read(tools=[{"name": "read", "inputSchema": schema}]).tools
    assert tool.is_usable
    assert tool.view.left_out == left_out


def test_a_prompt_with_a_hidden_name_cannot_be_sent_and_takes_no_other_name() -> None:
    other = script("raw", server="other")
    offer = read(prompts=[{"name": "gr\x1b[1meet"}, {"name": "greet"}, {"name": "\x1b[1m"}])
    hidden, plain, blank = offer.prompts
    assert (hidden.name, hidden.title, hidden.problem) == ("(prompt 1)", "greet", NAME)
    assert (plain.name, plain.problem) == ("greet", "")
    assert (blank.name, blank.problem) == ("(prompt 3)", NAME)
    registry = Registry(lambda _: True, ToolVisibility())
    registry.configure([RAW, other])
    registry.update(RAW.id, read(prompts=[{"name": "gr\x1b[1meet"}]))
    registry.update(ServerId("other"), read(prompts=[{"name": "greet"}]))
    assert [prompt.name for prompt in registry.catalog(other.id).prompts] == ["greet"]


def test_a_prompt_with_an_argument_whose_name_cannot_be_shown_is_not_sent() -> None:
    arguments = [{"name": "x\u200b"}, {"name": "plain"}]
    [prompt] = read(prompts=[{"name": "one", "arguments": arguments}]).prompts
    assert [argument.name for argument in prompt.arguments] == ["plain"]
    words = "its argument “x⟨U+200B⟩” has a name that cannot be shown as it is"
    assert prompt.problem == words


def test_a_resource_with_a_hidden_uri_is_listed_with_the_reason() -> None:
    offer = read(
        resources=[{"uri": "memo://a\u202eb"}, {"uri": "memo://plain"}],
        templates=[{"uriTemplate": "memo://{x}\x07"}, {"uriTemplate": "memo://{x}"}],
    )
    assert [resource.problem for resource in offer.resources] == [URI, ""]
    assert [template.problem for template in offer.templates] == [URI, ""]


async def test_what_is_withheld_is_not_asked_for() -> None:
    offer = read(
        prompts=[{"name": "gr\u200beet"}, {"name": "greet"}],
        resources=[{"uri": "memo://a\u202e"}, {"uri": "memo://b"}],
    )
    client: Any = None
    features = Features(client, RAW.id, lambda: offer, ClientContext(), CallTimeout(1), Redactor())
    hidden = "memo://a⟨U+202E⟩"
    with pytest.raises(ServerCallError, match=NAME):
        await features.get_prompt("(prompt 1)", {})
    for withheld in (features.read_resource(hidden), features.subscribe(hidden)):
        with pytest.raises(ServerCallError, match=URI):
            await withheld
    for asked in (features.get_prompt("greet", {}), features.read_resource("memo://b")):
        with pytest.raises(AttributeError):  # of the client that is none
            await asked
