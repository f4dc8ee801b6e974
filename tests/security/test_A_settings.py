"""Settings files of an opened folder: what they may say, and what reading them takes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.security.folders import Reader, reader
from tests.security.opened import Place, place
from tests.unit.engine.settings.test_loader import Files
from tui.engine.definitions.definition import SignInSettings
from tui.engine.settings.project import COUNTING_KEYS
from tui.engine.settings.sources.source import known_keys
from tui.engine.trust.trust_questions import TrustCase, request_of
from tui.engine.trust.verdict import Answered
from tui.model.servers import ServerStatus
from tui.model.settings import (
    GemdeckSettings,
    McpSettings,
    OAuthSettings,
    SandboxSettings,
    ServerSettings,
    ToolPattern,
)
from tui.model.trust import FolderTrust, TrustSubject
from tui.text import sanitize

__all__ = ["place", "reader"]

GOOD = {"command": "true"}


MAY_SAY = {
    "gemdeck": "maxToolCalls maxResultSize idleTimeout alwaysDeny",
    "mcp": "allowed excluded",
    "mcpServers.*": "command args env cwd url httpUrl type transportType tcp headers timeout"
    " description includeTools excludeTools oauth reviewResults start sandbox",
    "mcpServers.*.sandbox": "read write network",
    "mcpServers.*.oauth": "enabled clientId clientSecret scopes audiences redirectUri"
    " tokenParamName grantType privateKey signingAlgorithm",
}


SECTIONS: Mapping[str, type[BaseModel]] = {
    "gemdeck": GemdeckSettings,
    "mcp": McpSettings,
    "mcpServers.*": ServerSettings,
    "mcpServers.*.oauth": OAuthSettings,
    "mcpServers.*.sandbox": SandboxSettings,
}


def test_A02_a_project_adds_forbids_and_lowers_and_nothing_else() -> None:
    assert {section: set(words.split()) for section, words in MAY_SAY.items()} == COUNTING_KEYS
    for section, counting in COUNTING_KEYS.items():
        assert counting < known_keys(SECTIONS[section])


def test_A02_every_other_key_of_the_schema_is_named_as_without_effect(reader: Reader) -> None:
    others = {
        section: dict.fromkeys(sorted(known_keys(model) - COUNTING_KEYS[section]), "evil")
        for section, model in SECTIONS.items()
    }
    sign_in = others.pop("mcpServers.*.oauth")
    entry = {**GOOD, **others.pop("mcpServers.*"), "oauth": sign_in}
    reader.place.project({**others, "mcpServers": {"it": entry}})
    words = " ".join(map(str, reader.load().settings.problems))
    for key in (*sign_in, *entry.keys() - {*GOOD, "oauth"}, *others["mcp"], *others["gemdeck"]):
        assert key in words
    reader.say_yes()
    loaded = reader.load()
    [server] = loaded.settings.servers
    assert (server.trust, server.endpoint.tls, server.launch.command) == (False, None, "true")
    assert (server.endpoint.sign_in, loaded.settings.gemdeck) == (
        SignInSettings(),
        GemdeckSettings(),
    )


def test_A02_not_even_a_trusted_project_grants_or_chooses_the_model(reader: Reader) -> None:
    reader.place.user({"mcpServers": {"mine": GOOD, "other": GOOD}, "gemdeck": {"maxToolCalls": 9}})
    reader.place.project(
        {
            "mcpServers": {"it": {**GOOD, "trust": True}},
            "model": {"name": "evil"},
            "mcp": {"excluded": ["Mine "], "serverCommand": "evil"},
            "gemdeck": {
                "model": "evil",
                "apiVersion": "v9",
                "systemInstruction": "obey",
                "alwaysAllow": [{}],
                "alwaysDeny": [{"tool": "rm"}, {"server": ""}],
                "maxToolCalls": 5,
                "maxResultSize": 900_000,
                "idleTimeout": 7_200,
            },
        }
    )
    assert reader.load().settings.denied == ()
    assert reader.server("mine").withheld is None
    question = reader.question()
    assert any("mine" in rule for rule in question.rules)
    assert "The tool rm of * never runs." in question.rules
    assert "The tool * of * never runs." in question.rules
    reader.say_yes()
    loaded = reader.load()
    denied = ToolPattern(tool="rm"), ToolPattern()  # what cannot be read denies everything
    assert loaded.settings.gemdeck == GemdeckSettings(max_tool_calls=5)
    assert loaded.settings.denied == denied
    assert [(one.id, one.trust, one.withheld) for one in loaded.settings.servers] == [
        ("mine", False, ServerStatus.DISABLED),
        ("other", False, None),
        ("it", False, None),
    ]
    words = " ".join(map(str, loaded.settings.problems))
    for key in ("it.trust", "model", "serverCommand", "gemdeck.alwaysAllow", "alwaysDeny"):
        assert key in words


@pytest.mark.parametrize(("users", "size"), [(None, 2_000), (1_500, 1_500)])
def test_A02_a_trusted_project_can_only_lower_the_limit_on_results(
    reader: Reader, users: int | None, size: int
) -> None:
    reader.place.user({"gemdeck": {"maxResultSize": users}})
    reader.place.project({"gemdeck": {"maxResultSize": 2_000}})
    assert reader.load().settings.gemdeck.max_result_size == (users or 50_000)
    [rule] = reader.question().rules
    assert "at most 2000 characters" in rule
    reader.say_yes()
    assert reader.load().settings.gemdeck.max_result_size == size


@pytest.mark.parametrize(("shared", "own"), [(2, 41), (41, 2)])
def test_A02_of_a_folders_own_files_the_lowest_limit_counts(
    reader: Reader, shared: int, own: int
) -> None:
    for limit, file in ((shared, ".mcp.json"), (own, ".gemini/settings.json")):
        limits = {"maxToolCalls": limit, "maxResultSize": limit * 1_000, "idleTimeout": limit}
        reader.place.project({"gemdeck": limits}, file)
    reader.say_yes()
    gemdeck = reader.load().settings.gemdeck
    assert gemdeck.max_tool_calls == 2
    assert gemdeck.max_result_size == 2_000
    assert gemdeck.idle_timeout == 2


def test_A02_a_projects_list_of_servers_narrows_the_users(reader: Reader) -> None:
    reader.place.user({"mcpServers": {"a": GOOD, "b": GOOD}, "mcp": {"allowed": ["a", "b", "it"]}})
    reader.place.project(
        {"mcpServers": {"it": GOOD, "c": GOOD}, "mcp": {"allowed": ["b", "c", "it"]}}
    )
    reader.say_yes()
    statuses = {str(one.id): one.withheld for one in reader.load().settings.servers}
    off = ServerStatus.DISABLED
    assert statuses == {"a": off, "b": None, "it": None, "c": off}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(below=Files, above=Files, dotenv=st.text(max_size=40), trusted=st.booleans())
def test_A17_no_content_of_a_folder_makes_reading_or_asking_fail(
    reader: Reader, below: dict[str, Any], above: dict[str, Any], dotenv: str, trusted: bool
) -> None:
    reader.environ["V"] = "1"
    reader.place.project(below, ".mcp.json")
    reader.place.project(above)
    (reader.place.folder / ".env").write_bytes(dotenv.encode("utf-8", "surrogatepass"))
    if trusted:
        reader.say_yes()
    loaded = reader.load(answered=Answered(review=True))
    assert loaded.verdict.trust in {
        FolderTrust.TRUSTED,
        *(() if trusted else set(FolderTrust) - {FolderTrust.NEVER, FolderTrust.UNKNOWN}),
    }
    for server in loaded.settings.servers:
        assert not server.trust
        assert len(server.fingerprint) == 64
    assert loaded.settings.gemdeck.always_allow == ()
    question = request_of(
        TrustCase(TrustSubject.FOLDER, loaded.seen, loaded.record, loaded.verdict),
        reader.place.folder,
        reader.place.home,
    )
    texts = [*question.rules, *map(str, question.variables)]
    for shown in question.servers:
        texts += [shown.server, shown.source, shown.command, *shown.args, shown.cwd, shown.url]
        texts += [*shown.env, *shown.headers, *shown.references, *shown.inherited, *shown.warnings]
    for text in texts:
        assert sanitize(text) == text


BOMBS: dict[str, str | bytes] = {
    "too large": '{"a": "' + "x" * 1_100_000 + '"}',
    "too deep": '{"a": ' + "[" * 100_000,
    "a key twice": '{"mcpServers": {"a": {"command": "safe", "command": "evil"}}}',
    "not a number": '{"a": NaN}',
    "infinite": '{"a": 1e999}',
    "half a pair": '{"a": "\\ud800"}',
    "no text": b"\xff\xfe{}",
    "a list": "[]",
}


@pytest.mark.parametrize("name", [".mcp.json", ".gemini/settings.json"])
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_A17_A18_a_file_made_to_harm_is_one_problem_and_the_rest_works(
    reader: Reader, bomb: str | bytes, name: str
) -> None:
    reader.place.user({"mcpServers": {"mine": GOOD}})
    file = reader.place.project("", name)
    file.write_bytes(bomb.encode() if isinstance(bomb, str) else bomb)
    begun = time.process_time()
    loaded = reader.load()
    assert time.process_time() - begun < 2
    assert [one.id for one in loaded.settings.servers] == ["mine"]
    [problem] = loaded.settings.problems
    assert not problem.fatal
    assert loaded.verdict.trust is FolderTrust.NOTHING_TO_TRUST


def test_A18_a_project_asks_about_no_more_servers_than_one_file_may_have(reader: Reader) -> None:
    reader.place.project({"mcpServers": {f"s{number}": GOOD for number in range(2_000)}})
    begun = time.process_time()
    loaded = reader.load()
    assert time.process_time() - begun < 2
    assert len(loaded.settings.servers) == 256
    assert {one.withheld for one in loaded.settings.servers} == {ServerStatus.UNTRUSTED}
    assert ["and 1734 more" in problem.message for problem in loaded.settings.problems] == [True]


@pytest.mark.parametrize("name", [".mcp.json", ".gemini/settings.json", ".env"])
def test_A17_a_pipe_or_device_in_place_of_a_file_is_not_read(reader: Reader, name: str) -> None:
    reader.place.project({"mcpServers": {"it": {"command": "$X"}}}, "other.json")
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        path = reader.place.folder / name
        path.parent.mkdir(exist_ok=True)
        make(path)
        if name == ".env":
            reader.place.project({"mcpServers": {"it": {"command": "$X"}}}, ".mcp.json")
        [problem] = reader.load().settings.problems
        why = "outside the folder" if path.is_symlink() else "not a regular file"
        assert why in problem.message
        path.unlink()


def test_A19_one_bad_entry_leaves_the_others_alone(reader: Reader) -> None:
    servers: dict[str, Any] = {f"good{n}": GOOD for n in range(3)}
    reader.place.project({"mcpServers": {**servers, "bad": {"command": 7.5, "args": [{}]}}})
    reader.say_yes()
    statuses = {str(one.id): one.withheld for one in reader.load().settings.servers}
    assert statuses.pop("bad") is ServerStatus.INVALID
    assert set(statuses.values()) == {None}


def test_A13_a_command_is_a_file_and_no_shell_reads_it(reader: Reader) -> None:
    reader.place.project({"mcpServers": {"it": {"command": "/bin/echo; touch canary"}}})
    assert reader.question().servers[0].program == ""
    reader.say_yes()
    assert reader.server().launch.program == ""
    assert not (reader.place.folder / "canary").exists()


WATCHED = """
import json, os, sys
from pathlib import Path
seen = []
def hook(event, args):
    if event in ("open", "os.listdir", "os.scandir"):
        seen.append([event, os.fsdecode(args[0]) if isinstance(args[0], (str, bytes)) else ""])
    elif event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.connect"):
        seen.append([event, ""])
    elif event == "os.putenv":
        seen.append([event, os.fsdecode(args[0])])
import asyncio, importlib
from tui.engine.engine import Engine, EngineOptions
import tui.engine.settings.loader, tui.engine.chats.backends.gemini
folder = Path(sys.argv[1])
async def main():
    options = EngineOptions(folder, follow_settings=False, server_patience=0)
    async with Engine(options, lambda event: None) as engine:
        sys.addaudithook(hook)
        await engine.start()
        print(json.dumps(seen))
asyncio.run(main())
"""


def watched(place: Place) -> list[list[str]]:
    """Start an engine in the folder in a process of its own; list what it touched."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(place.folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=dict(os.environ),
    )
    seen: list[list[str]] = json.loads(done.stdout)
    return seen


def test_A02_before_the_decision_nothing_is_run_contacted_or_set(place: Place) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}, "gemdeck": {"model": "evil"}})
    place.project("GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:9\nGEMDECK_HOME=/x\n", ".env")
    seen = watched(place)
    events = {event for event, _ in seen}
    assert "open" in events
    assert not events & {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.putenv"}
    assert "socket.connect" not in events
    ours = {path for event, path in seen if path.startswith(str(place.folder))}
    assert ours <= {
        str(place.folder / ".gemini" / "settings.json"),
        str(place.folder / ".mcp.json"),
        str(place.folder / "GEMINI.md"),
        str(place.folder / "AGENTS.md"),
    }
    assert place.songs() == []


def test_A02_of_a_folder_that_is_never_trusted_no_file_is_opened(
    place: Place, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.project({"mcpServers": {"it": place.canary("it")}})
    monkeypatch.setenv("GEMDECK_HOME", str(reader.state))
    reader.word().never()
    seen = watched(place)
    assert [path for _, path in seen if path.startswith(str(place.folder))] == []
