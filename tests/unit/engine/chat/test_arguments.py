"""The rules that the server side brings."""

from tui.engine.chat.call_arguments import SERVER_RULES

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
}


def test_the_rules_of_the_server_side_coerce_and_check() -> None:
    rules = SERVER_RULES
    coerced = rules.coerce(SCHEMA, {"count": 2.0})
    assert coerced == {"count": 2}
    assert isinstance(coerced["count"], int)
    assert rules.check(SCHEMA, coerced) == []
    assert "count" in rules.check(SCHEMA, {})[0]
