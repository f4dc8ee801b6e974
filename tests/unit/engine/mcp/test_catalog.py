import hashlib
from dataclasses import replace
from typing import Any

from tests.support.definitions import define_server
from tests.support.rows import row
from tui.engine.mcp.catalog.offer import (
    RawOffer,
    ServerOffer,
    definition_hash,
    not_included,
    read_offer,
)
from tui.model.catalog import Parameter, PromptArgument
from tui.model.servers import Origin, ServerId, Transport

SERVER = define_server(ServerId("s"), Origin.USER, Transport.STDIO)
ECHO: dict[str, Any] = {"name": "echo", "inputSchema": {"type": "object"}}


def read(*tools: object, **more: Any) -> ServerOffer:  # noqa: ANN401
    return read_offer(RawOffer(tools=list(tools), **more))


def test_a_tool_is_shown_with_its_parameters_claims_and_schema() -> None:
    offer = read(
        {
            "name": "copy",
            "title": "Copy a file",
            "description": "Copies.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "force": {"type": "boolean"},
                    "mode": {"enum": ["a", "b"]},
                    "paths": {"type": "array", "items": {"type": "string"}, "description": "What"},
                    "limit": {"type": ["integer", "null"]},
                },
                "required": ["paths"],
            },
            "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False},
        }
    )
    [tool] = offer.tools
    assert tool.view.title == "Copy a file"
    assert tool.view.parameters == (
        Parameter("paths", "string[]", required=True, description="What"),
        Parameter("force", "boolean", required=False),
        Parameter("mode", "a | b", required=False),
        Parameter("limit", "integer | null", required=False),
    )
    assert tool.view.claims == ("destructive", "no outside access")
    assert tool.view.schema.startswith('{\n  "type": "object",\n  "properties": {')
    assert tool.view.problem == ""


def test_a_malformed_tool_is_shown_with_its_problem_and_the_others_stay() -> None:
    offer = read(
        ECHO,
        {"name": "no_schema", "inputSchema": 5},
        {"name": "list", "inputSchema": {"type": "array"}},
        {"inputSchema": {}},
        7,
        {**ECHO, "description": "again"},
        refused_tools=frozenset({"echo2"}),
    )
    assert [(tool.view.name, tool.view.problem) for tool in offer.tools] == [
        ("echo", ""),
        ("no_schema", "its input schema is not an object"),
        ("list", "its arguments are not an object"),
        ("(tool 4)", "it has no readable name"),
        ("(tool 5)", "it has no readable name"),
        ("echo", "another tool of this server has the same name"),
    ]
    assert [tool.is_usable for tool in offer.tools] == [True] + [False] * 5


def test_what_does_not_matter_in_a_tool_keeps_it_in() -> None:
    odds: list[dict[str, Any]] = [
        *({}, {"inputSchema": None}, {"inputSchema": []}, {"inputSchema": {"properties": []}}),
        *({"annotations": []}, {"annotations": {"title": 5}}, {"title": 5}, {"icons": "x"}),
        *({"_meta": []}, {"execution": "no"}, {"outputSchema": []}),
    ]
    for odd in odds:
        with row(odd):
            [tool] = read({"name": "a", **odd}).tools
            assert tool.is_usable
            assert not tool.view.claims_to_read
    [odd_tool] = read({"name": "a", "description": ["x"]}).tools
    assert odd_tool.is_usable
    assert odd_tool.view.left_out == ("its description, which is not text",)


def test_text_of_a_server_is_sanitised_and_its_raw_name_kept_for_calls() -> None:
    [tool] = read({**ECHO, "name": "e\x1b[2Jcho", "description": "a\x1b]52;c;x\x07b"}).tools
    assert tool.name == "e\x1b[2Jcho"
    assert tool.view.name == "echo"
    assert tool.view.description == tool.description == "ab"


def test_at_most_ten_thousand_tools_are_read_and_the_rest_is_told() -> None:
    tools = read(*({**ECHO, "name": f"t{n}"} for n in range(10_200))).tools
    assert [tool.name for tool in tools if tool.is_usable] == [f"t{n}" for n in range(10_000)]
    [rest] = [tool.view for tool in tools if not tool.is_usable]
    said = "only 10,000 tools per server are used"
    assert (rest.name, rest.problem) == ("(200 more tools)", said)


def test_a_long_description_is_cut_with_a_mark() -> None:
    sizes = {"a": 16_000, "b": 20_000}
    tools = ({**ECHO, "name": name, "description": "x" * size} for name, size in sizes.items())
    whole, long = read(*tools).tools
    assert whole.description == whole.view.description == "x" * 16_000
    assert whole.view.left_out == ()
    assert long.description == long.view.description
    assert len(long.description) == 16_000
    assert long.description.endswith("…[+4000 characters]")
    assert long.view.left_out == ("4,000 characters of its description",)


def test_a_tool_that_can_only_fail_is_listed_with_the_reason() -> None:
    rows: list[tuple[dict[str, object], str]] = [
        ({"execution": {"taskSupport": "required"}}, ""),
        ({"_meta": {"ui": {"visibility": ["app"]}}}, "its server offers it to apps"),
        ({"execution": {}, "_meta": {"ui": {"visibility": ["app", "model"]}}}, ""),
        ({"execution": 1, "_meta": {"ui": {"visibility": "app"}}}, ""),
    ]
    for more, problem in rows:
        with row(more):
            [tool] = read({**ECHO, **more}).tools
            assert tool.is_usable is not bool(problem)
            assert tool.view.problem.startswith(problem)
            assert bool(tool.view.problem) is bool(problem)


def test_output_schemas_and_the_presence_of_icons_are_kept() -> None:
    icons = [{"src": "http://127.0.0.1:9/icon.png"}]
    output = {"type": "object", "properties": {"n\u202e": {}}}
    plain = {**ECHO, "name": "plain", "outputSchema": 5, "icons": "x"}
    offer = read({**ECHO, "outputSchema": output, "icons": icons}, plain)
    first, second = (tool.view for tool in offer.tools)
    assert '"n⟨U+202E⟩": {}' in first.output_schema
    assert (first.has_icons, second.has_icons, second.output_schema) == (True, False, "")


def test_numbers_that_no_float_holds_cost_no_tool() -> None:
    schema = {"type": "integer", "minimum": 10**400, "multipleOf": 10**400, "default": 10**400}
    tools = read({**ECHO, "inputSchema": {"properties": {"n": schema}}}, ECHO).tools
    assert tools[0].parameters == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert len(tools) == 2


def test_the_settings_say_which_tools_are_let_in_and_the_others_are_only_shown() -> None:
    nothing, echo = frozenset[str](), frozenset({"echo"})
    for include, exclude, expected in [
        (None, nothing, True),
        (None, echo, False),
        (echo, nothing, True),
        (frozenset({"echo(text)"}), nothing, True),
        (echo, frozenset({"echo(all)"}), False),
        (frozenset({"echo_more"}), nothing, False),
        (nothing, nothing, False),
    ]:
        entry = replace(SERVER, include_tools=include, exclude_tools=exclude)
        out = not_included(["echo"], entry)
        assert (not out) is expected, (include, exclude)


def test_the_hash_tells_definitions_apart_by_what_is_shown_and_by_no_order() -> None:
    shown = {"description": "other", "title": "t", "outputSchema": {}, "name": "other"}
    shown |= {"inputSchema": {"type": "object", "properties": {}}}
    shown |= {"annotations": {"readOnlyHint": True}}
    for name, value in shown.items():
        assert definition_hash(ECHO) != definition_hash({**ECHO, name: value}), name
    reordered = dict(reversed(ECHO.items()))
    assert definition_hash(ECHO) == definition_hash({**reordered, "_meta": {"x": 1}})
    canonical = (
        '{"annotations":null,"description":null,"inputSchema":{"type":"object"},'
        '"name":"echo","outputSchema":null,"title":null}'
    )
    assert definition_hash(ECHO) == hashlib.sha256(canonical.encode()).hexdigest()


def test_prompts_resources_and_templates_are_read_and_odd_or_second_ones_left_out() -> None:
    who = {"name": "who", "required": True, "description": "first"}
    alike = {"name": "who", "description": "second"}
    offer = read(
        prompts=[
            {"name": "greet", "arguments": [{"name": "a"}, who, alike, {"name": 5}, None]},
            {"name": "greet", "title": "second"},
            {"title": "nameless"},
        ],
        resources=[
            {"uri": "memo://1\x07", "name": "one", "size": 12, "mimeType": "text/plain"},
            {"uri": "memo://2", "size": -1},
            "odd",
        ],
        templates=[{"uriTemplate": "memo://{day}", "name": "day"}, {"name": "odd"}],
    )
    [prompt] = offer.prompts
    assert (prompt.name, prompt.title) == ("greet", "")
    first, second = prompt.arguments
    assert first.name == "a"
    assert second == PromptArgument("who", required=True, description="first")
    assert [(r.uri, r.size) for r in offer.resources] == [("memo://1␇", 12), ("memo://2", None)]
    assert [template.uri_template for template in offer.templates] == ["memo://{day}"]
    assert not offer.is_empty
