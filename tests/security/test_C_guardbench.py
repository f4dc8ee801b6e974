"""The cases of MCP-GuardBench, and what real servers say of their tools."""

import json
from pathlib import Path

from tests.cli.running import library, run, write_settings
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.security.guardbench import CASES, REAL
from tui.engine.mcp.catalog.marks import marks_of

MOST_MARKED = 0.02
LEAST_TOOLS = 200


def configure(tmp_path: Path) -> None:
    """Configure one server that offers what all cases do."""
    tools = {name: one for case in CASES.values() for name, one in case["tools"].items()}
    said = {name: text for case in CASES.values() for name, text in case.get("results", {}).items()}
    results = {n: {"content": [{"type": "text", "text": text}]} for n, text in said.items()}
    entry = library(tools=dict.fromkeys(tools, ()), definitions=tools, results=results)
    write_settings({"mcpServers": {"bench": {**entry, "cwd": str(tmp_path)}}})


async def test_C18_the_attacks_of_guardbench_are_marked_and_nothing_else_of_it(
    tmp_path: Path,
) -> None:
    configure(tmp_path)
    listed = (await run("mcp", "tools", "bench", "--json", code=0)).json["tools"]
    found = {tool["name"] for tool in listed if tool["marks"]}
    called = [name for case in CASES.values() for name in case.get("results", {})]
    for name in called:
        result = (await run("mcp", "call", "bench", name, "--json", code=0)).json
        found |= {name} if result["marks"] else set()
    hostile = {name for case in CASES.values() for name in case.get("marked", [])} | {*called}
    clean = len(listed) - len(hostile)
    print(f"\nattacks in words: {len(found & hostile)} of {len(hostile)} marked")
    print(f"their other tools: {len(found - hostile)} of {clean} marked")
    assert found == hostile


async def test_A08_a_run_without_a_rule_makes_no_harmful_call_of_guardbench(
    tmp_path: Path, gemini: FakeGemini
) -> None:
    configure(tmp_path)
    harmful = [name for case in CASES.values() for name in case.get("harmful", [])]
    gemini.steps = [[Call([(name, {}) for name in harmful])], [Say("done")]]
    calls = (await run("-p", "go", "-o", "json", gemini=gemini)).json["tool_calls"]
    denied = [call["tool"] for call in calls if call["status"] == "denied"]
    print(f"\nharmful calls: {len(denied)} of {len(harmful)} denied")
    assert denied == harmful


def test_C18_few_tools_of_real_servers_are_marked() -> None:
    real = json.loads(REAL.read_text(encoding="utf-8"))
    tools = [(server, name, said) for server, own in real.items() for name, said in own.items()]
    found = [
        f"{server} {name}: {said}" for server, name, texts in tools for said in marks_of(texts)
    ]
    print(f"\ntools of {len(real)} real servers: {len(found)} of {len(tools)} marked")
    assert len(tools) >= LEAST_TOOLS
    assert len(found) <= MOST_MARKED * len(tools), found
