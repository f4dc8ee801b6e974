"""The rules that the server side brings."""

from tui.engine.chat.arguments import load_argument_rules

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
}


async def test_the_rules_of_the_server_side_coerce_and_check() -> None:
    rules = await load_argument_rules()
    coerced = rules.coerce(SCHEMA, {"count": 2.0})
    assert coerced == {"count": 2}
    assert isinstance(coerced["count"], int)
    assert rules.check(SCHEMA, coerced) == []
    assert "count" in rules.check(SCHEMA, {})[0]
