"""`gemdeck doctor`: what it finds, and that it tells no secret."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.cli.running import environment, notes_server, run, write_settings
from tests.fakes.completions import KEY as COMPLETIONS_KEY
from tests.fakes.completions import FakeCompletions
from tests.fakes.gemini import KEY, FakeGemini
from tests.support import warm
from tui.cli.output import ExitCode

SECRET = "hunter22hunter22"


@pytest.fixture
def odd(tmp_path: Path) -> None:
    """Set up a server that works, one that shouts and ends, and one that is not there."""
    script = tmp_path / "dies.py"
    script.write_text(f"import sys; print('no disk for {SECRET}', file=sys.stderr); sys.exit(3)")
    env = {"API_KEY": SECRET, "OTHER": "$GEMDECK_NOT_SET"}
    dies = {"command": warm.python(), "args": [str(script)], "env": env}
    gone = {"command": "gemdeck-unknown-program"}
    write_settings({"mcpServers": {"notes": notes_server(), "dies": dies, "gone": gone}})


def by_title(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {section["title"]: section for section in report["sections"]}


def words(section: dict[str, Any]) -> str:
    return json.dumps(section["findings"])


@pytest.mark.usefixtures("odd")
async def test_each_server_is_examined_step_by_step_and_no_secret_told(gemini: FakeGemini) -> None:
    result = await run("doctor", "--json", gemini=gemini, code=ExitCode.ERROR)
    found = by_title(result.json)
    assert result.json["failed"] == ["Server dies", "Server gone"]
    notes = found["Server notes"]
    assert (notes["status"], notes["tools"]) == ("ready", 5)
    assert "5 tools" in words(notes)
    steps = [step["what"] for step in notes["steps"]]
    assert steps[0] == "starting"
    assert steps.index("sent request tools/list") < steps.index("received answer tools/list")
    assert "ready" in steps
    seconds = [step["seconds"] for step in notes["steps"]]
    assert seconds == sorted(seconds)
    dies = found["Server dies"]
    assert "exited with code 3" in dies["reason"]
    assert any("no disk for" in line for line in dies["output"])
    assert "command not found" in found["Server gone"]["reason"]
    assert "GEMDECK_NOT_SET is not set" in words(found["Settings"])
    for said in ("credentials from GEMINI_API_KEY", "service accepts the credentials", gemini.url):
        assert said in words(found["Model"])
    brief, whole = await run("doctor", gemini=gemini), await run("doctor", "-v", gemini=gemini)
    servers = brief.stdout.partition("Servers\n")[2].splitlines()
    named = [line.split()[:2] for line in servers if "→" not in line][:3]
    assert named == [["failed", "dies"], ["failed", "gone"], ["ok", "notes"]]
    assert servers[-3].endswith("ready · 5 tools")
    assert any("→" in line for line in servers)
    assert ("tools/list" in whole.stdout, "tools/list" in brief.stdout) == (True, False)
    for secret in (SECRET, KEY, str(Path.home())):
        assert secret not in brief.stdout + whole.stdout + result.stdout


@pytest.mark.writes_secrets("settings.json")
async def test_what_a_local_model_takes_is_said() -> None:
    async with FakeCompletions() as fake:
        fake.pages = {
            "/api/show large": {
                "capabilities": ["completion", "vision"],
                "model_info": {"llama.context_length": 8_192},
            }
        }
        service = {"url": fake.url, "key": COMPLETIONS_KEY}
        write_settings({"gemdeck": {"model": "fake/large", "services": {"fake": service}}})
        result = await run("doctor", "--json")
    said = words(by_title(result.json)["Model"])
    assert "context 8,192, no tools, pictures" in said
    assert "does not support tools" in said


async def test_one_server_is_examined_alone(tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    other = {"command": "touch", "args": [str(canary)]}
    write_settings({"mcpServers": {"notes": notes_server(), "other": other}})

    result = await run("doctor", "notes", "--json", "--offline", code=ExitCode.OK)
    titles = by_title(result.json).keys()
    assert [title for title in titles if title.startswith("Server")] == ["Server notes"]
    assert not canary.exists()
    missing = await run("doctor", "nots", "--offline")
    assert (missing.code, missing.stdout) == (ExitCode.NOT_FOUND, "")
    assert "Did you mean notes?" in missing.stderr


async def test_a_request_that_a_server_refuses_is_no_answer_among_its_steps(tmp_path: Path) -> None:
    (says := tmp_path / "says.json").write_text("{}", encoding="utf-8")
    library = Path(servers.__file__).with_name("library.py")
    entry = {"command": warm.python(), "args": [f"{library}", f"{says}"]}
    write_settings({"mcpServers": {"old": entry}})
    result = await run("doctor", "old", "--json", "--offline")

    steps = {step["what"] for step in by_title(result.json)["Server old"]["steps"]}
    refused = "received error server/discover: method not found"
    assert {refused, "received answer initialize"} <= steps


async def test_broken_settings_and_a_refused_key_are_findings(gemini: FakeGemini) -> None:
    folder = Path.home() / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text("{\n", encoding="utf-8")
    env = environment(gemini) | {"GEMINI_API_KEY": "AIza-refused"}

    result = await run("doctor", "--json", env=env)

    assert (result.code, result.json["failed"]) == (ExitCode.ERROR, ["Settings", "Model"])
    assert "~/.gemini/settings.json:" in words(by_title(result.json)["Settings"])


async def test_keys_that_cannot_hold_are_findings() -> None:
    keys = {"deck.tools": "f12", "servers.restart": ["z", "x"], "deck.toolz": "f11"}
    write_settings({"gemdeck": {"keys": keys}})

    result = await run("doctor", "--json", "--offline")

    problems = by_title(result.json)["Settings"]["problems"]
    toolz, restart = sorted(problems, key=lambda one: "servers." in one["message"])
    assert "did you mean deck.tools?" in toolz["message"]
    assert "x belongs to servers.enable" in restart["message"]
    assert toolz["line"] > 0
    assert problems == (await run("settings", "check", "--json")).json["problems"]


async def test_a_folder_beside_the_home_keeps_its_name_and_its_servers_come_second() -> None:
    home = Path.home()
    write_settings({"mcpServers": {"notes": notes_server()}})
    beside = home.with_name(f"{home.name}-beside")
    (beside / ".gemini").mkdir(parents=True)
    theirs = beside / ".gemini" / "settings.json"
    theirs.write_text('{"mcpServers": {"notes": {"command": "x"}}}', encoding="utf-8")

    result = await run("doctor", "--json", "--offline", cwd=beside)

    settings = words(by_title(result.json)["Settings"])
    assert f"{theirs}: project, read" in settings
    own = r"mcpServers\.notes  ~/\.gemini/settings\.json:\d+ \(overrides "
    assert re.search(rf"{own}{re.escape(str(theirs))}:\d+\)", settings)
