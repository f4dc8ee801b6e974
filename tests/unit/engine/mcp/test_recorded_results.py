"""Results of real servers, as recorded: each character once, and nothing lost."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.engine.mcp import recorded
from tests.unit.engine.mcp.test_content import convert_raw
from tui.engine.chats.history import FunctionResponse, History
from tui.engine.mcp.catalog.offered_tool import STRUCTURED, FunctionCall

FILES: Final = sorted(Path(recorded.__file__).parent.glob("*.json"))
RECORDED: Final = [
    pytest.param(one["tool"], one["result"], id=f"{file.stem}-{number}-{one['tool']}")
    for file in FILES
    for number, one in enumerate(json.loads(file.read_text(encoding="utf-8")))
]
ADDED: Final = {"delete_entities": {"success": True, "message": "[as in the text above]"}}
"""What structured content adds to the text, by tool; elsewhere the text says all of it."""


def own_texts(block: dict[str, Any]) -> list[str]:
    """Give the text of a block that is nothing else, or of a resource in it."""
    text = block.get("text", block.get("resource", {}).get("text"))
    return [] if text is None else [text]


def test_all_servers_are_recorded() -> None:
    names = ["everything", "filesystem", "git", "memory", "playwright", "sqlite"]
    assert [file.stem for file in FILES] == names
    assert sum(file.stat().st_size for file in FILES) < 150_000


@pytest.mark.parametrize(("tool", "raw"), RECORDED)
def test_a_recorded_result_reaches_the_model_whole_and_once(tool: str, raw: dict[str, Any]) -> None:
    result = convert_raw(raw)
    history = History()
    call = FunctionCall(tool, {})
    answer = FunctionResponse(result.parts, result.is_error)
    history.add_responses([(call, answer)], inline_media=True)
    [content] = history.contents
    [part] = content["parts"]
    response = part["functionResponse"]
    is_error = raw.get("isError", False)
    assert list(response["response"]) == ["error" if is_error else "output"]
    [output] = response["response"].values()

    texts = [text for block in raw["content"] for text in own_texts(block)]
    rest, _, structured = output.partition(f"\n{STRUCTURED}\n")
    before = 0
    for text in texts:
        assert rest.find(text, before) >= 0, "a text is lost, cut or out of order"
        before = rest.find(text, before) + len(text)
        assert len(text) < 10 or output.count(text) == 1
    if all(block["type"] == "text" for block in raw["content"]):
        assert rest == "\n".join(texts)
    assert (json.loads(structured) if structured else None) == ADDED.get(tool)

    media = [block["data"] for block in raw["content"] if "data" in block]
    sent = [one["inlineData"]["data"] for one in response.get("parts", [])]
    assert sent == media
    assert not any(data in output for data in media)
