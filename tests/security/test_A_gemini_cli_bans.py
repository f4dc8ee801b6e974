"""What gemini-cli forbids beyond single tools holds here, or nothing runs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.cli.running import Result, notes_server, run, write_settings
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.security.opened import Place, opened, place
from tests.unit.engine.approval.verdicts import STARTS, recorded
from tests.unit.engine.mcp.support import eventually
from tui.cli.output import ExitCode
from tui.model.chat import BackendKind, ChatNotice
from tui.model.servers import ServerStatus
from tui.store import selectors

__all__ = ["place"]

NOTHING: Mapping[str, Any] = MappingProxyType({})
ADD = [Call([("add_note", {"text": "milk"})])]
GIT = {"type": "git", "source": "https://example.com/acme/notes.git"}


def install(installed: Mapping[str, Any] | None = None, **more: object) -> None:
    """Install an extension with the notes server; tell how, as gemini-cli does."""
    folder = Path.home() / ".gemini" / "extensions" / "es"
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {"name": "es", "version": "1", "mcpServers": {"notes": notes_server()}, **more}
    (folder / "gemini-extension.json").write_text(json.dumps(manifest))
    if installed is not None:
        (folder / ".gemini-extension-install.json").write_text(json.dumps(installed))


async def turn(
    gemini: FakeGemini,
    settings: Mapping[str, Any],
    *flags: str,
    steps: Sequence[Any] = (ADD, [Say("done")]),
    env: Mapping[str, str] = NOTHING,
    cwd: Path | None = None,
) -> Result:
    """Run a turn in which the model adds a note; all that needs a yes has it."""
    gemini.steps, gemini.requests = [*steps], []
    write_settings(dict(settings))
    flags = flags or ("--allowed-tools", "notes")
    return await run("-p", "x", "-o", "json", *flags, gemini=gemini, env=env, cwd=cwd)


def ran(result: Result) -> bool:
    calls = result.json.get("tool_calls") or ()
    return any(call["status"] == "ok" for call in calls)


def user(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"mcpServers": {"notes": {**notes_server(), "trust": True}}, **more}


@pytest.mark.parametrize(
    ("security", "installed", "is_used"),
    [
        ({"allowedExtensions": ["^https://example\\.com/acme/"]}, GIT, True),
        ({"allowedExtensions": ["acme"], "blockGitExtensions": True}, GIT, True),
        ({"allowedExtensions": ["^https://example\\.com/other/"]}, GIT, False),
        ({"allowedExtensions": ["acme"]}, None, False),
        ({"allowedExtensions": ["acme"]}, {"type": "git", "source": "x\nacme"}, False),
        ({"allowedExtensions": ["acme"]}, {"type": "git", "source": ["acme"]}, False),
        ({"allowedExtensions": [".*"]}, {"type": "git", "source": ""}, False),
        ({"allowedExtensions": ["("]}, GIT, False),
        ({"allowedExtensions": "acme"}, GIT, False),
        ({"allowedExtensions": []}, GIT, True),
        ({"blockGitExtensions": True}, GIT, False),
        ({"blockGitExtensions": "true"}, {**GIT, "type": "github-release"}, False),
        ({"blockGitExtensions": True}, {"type": "local", "source": "/x"}, True),
        ({"blockGitExtensions": True}, {"type": ["git"]}, True),
        ({"blockGitExtensions": False}, GIT, True),
    ],
)
async def test_A27_an_extension_that_gemini_cli_does_not_load_starts_no_server(
    gemini: FakeGemini,
    security: Mapping[str, Any],
    installed: Mapping[str, Any] | None,
    is_used: bool,
) -> None:
    install(installed)
    result = await turn(gemini, {"security": security})
    assert ran(result) is is_used
    listed = (await run("mcp", "list", "--json")).json["servers"]
    assert [one["name"] for one in listed] == (["notes"] if is_used else [])
    said = (await run("settings", "check")).stdout
    assert (f"security.{next(iter(security))} in ~/.gemini/settings.json" in said) is not is_used


@pytest.mark.parametrize("name", ["add_note", "mcp_notes_add_note", "mcp_notes_*", "add_note(x)"])
async def test_A27_what_an_extension_excludes_is_neither_offered_nor_run(
    gemini: FakeGemini, name: str
) -> None:
    install(excludeTools=[name])
    result = await turn(gemini, {}, "--yolo")
    assert not ran(result)
    assert '"add_note"' not in str(gemini.requests[0].body.get("tools"))
    install(excludeTools=["other"])
    assert ran(await turn(gemini, {}, "--yolo"))


PLAN = {"general": {"defaultApprovalMode": "plan"}}


async def test_A27_plan_mode_offers_no_tool_until_the_command_line_names_a_mode(
    gemini: FakeGemini,
) -> None:
    for settings in (PLAN, {"tools": {"approvalMode": "plan"}}):
        result = await turn(gemini, user(**settings))
        assert not ran(result)
        assert '"add_note"' not in str(gemini.requests[0].body.get("tools"))
    where = "plan mode (general.defaultApprovalMode in ~/.gemini/settings.json)"
    for word, name in (("notes", "notes.*"), ("notes.add_note", "notes.add_note")):
        [warning] = (await turn(gemini, user(**PLAN), "--allowed-tools", word)).json["warnings"]
        assert warning == f"{name} is not available: {where}. Add --approval-mode default."
    told = await run("mcp", "call", "notes", "add_note", "text=x")
    assert f"Denied: {where} denies every tool; start with --approval-mode" in told.stderr
    assert ran(await turn(gemini, user(**PLAN), "--approval-mode", "default"))
    assert ran(await turn(gemini, user(**PLAN), "--yolo"))
    off = {"general": {**PLAN["general"], "plan": {"enabled": False}}}
    assert ran(await turn(gemini, user(**off))), "there is no plan mode"
    for mode in ("auto_edit", "yolo"):
        edits = user(general={"defaultApprovalMode": mode})
        assert "lets no tool run here" in (await turn(gemini, edits)).stderr


async def test_A27_plan_mode_tells_when_it_comes_and_that_it_stays(place: Place) -> None:
    place.user({})
    async with opened(place) as deck:
        told = deck.state.notices
        place.user(PLAN)
        where = "general.defaultApprovalMode in ~/.gemini/settings.json"
        await eventually(lambda: [one.text for one in deck.state.notices[len(told) :]])
        assert deck.state.notices[-1].text == f"Plan mode is on ({where}): no tool runs."
        told = deck.state.notices
        place.user({})
        await eventually(lambda: [one.text for one in deck.state.notices[len(told) :]])
        stays = "Prohibitions removed from your settings apply until a restart."
        assert deck.state.notices[-1].text == stays


async def test_A27_a_way_to_sign_in_that_is_not_the_enforced_one_is_refused(
    gemini: FakeGemini,
) -> None:
    for enforced in ("oauth-personal", "vertex-ai", "compute-default-credentials", 5):
        result = await turn(gemini, user(security={"auth": {"enforcedType": enforced}}))
        assert (result.code, gemini.requests) == (ExitCode.NO_KEY, []), enforced
        where = "security.auth.enforcedType in ~/.gemini/settings.json"
        assert f"{where} allows only {enforced}" in result.json["error"]["message"]
    for allowed in ("gemini-api-key", "gateway", ""):
        assert ran(await turn(gemini, user(security={"auth": {"enforcedType": allowed}})))


async def test_A27_a_session_ends_after_the_requests_that_gemini_cli_allows(
    gemini: FakeGemini,
) -> None:
    steps = [*[ADD] * 3, [Say("done")]]
    for turns, code in ((2, 53), ("3", 53), (0, 53), (4, 0), (-1, 0), (None, 0)):
        result = await turn(gemini, user(model={"maxSessionTurns": turns}), steps=steps)
        assert result.code == code, turns
        assert len(gemini.requests) == (int(turns or 0) if code else 4)
    result = await turn(gemini, user(model={"maxSessionTurns": "many"}), steps=steps)
    assert "model.maxSessionTurns: must be a whole number" in result.stderr
    for unread in ("many", 1.5):
        result = await turn(gemini, user(model={"maxSessionTurns": unread}), steps=steps)
        assert (result.code, gemini.requests) == (53, []), "it was meant to limit"
        assert "no request is sent until this is corrected" in result.stderr


DISTRUSTS = [("GEMINI_RESTRICTED_MODE", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "FALSE")]


@pytest.mark.parametrize(("name", "value"), DISTRUSTS)
@pytest.mark.parametrize("is_in_file", [False, True])
async def test_A27_where_no_folder_is_trusted_no_server_runs(
    gemini: FakeGemini,
    name: str,
    value: str,
    is_in_file: bool,
) -> None:
    env = {} if is_in_file else {name: value}
    (Path.home() / ".gemini").mkdir(exist_ok=True)
    (Path.home() / ".gemini" / ".env").write_text(f"{name}={value}\n" if is_in_file else "")
    result = await turn(gemini, user(), env=env)
    assert (result.code, gemini.requests) == (55, [])
    assert result.json["error"]["type"] == "FatalUntrustedWorkspaceError"
    [listed] = (await run("mcp", "list", "--json", env=env)).json["servers"]
    assert listed["status"] == "disabled"
    assert name in json.dumps(listed)
    assert not (Path.home() / "notes.db").exists()
    other = {name: "false" if value == "true" else "true"}
    (Path.home() / ".gemini" / ".env").unlink()
    assert ran(await turn(gemini, user(), env=other))


@pytest.mark.parametrize(
    ("asks", "env", "is_held"),
    [
        ({"tools": {"sandbox": True}}, {}, True),
        ({"tools": {"sandbox": "docker"}}, {}, True),
        ({"tools": {"sandbox": {"enabled": True, "command": "podman"}}}, {}, True),
        ({"sandbox": "true"}, {}, True),
        ({}, {"GEMINI_SANDBOX": "docker"}, True),
        ({"tools": {"sandbox": False}}, {"GEMINI_SANDBOX": "1"}, True),
        ({"tools": {"sandbox": True}}, {"GEMINI_SANDBOX": "false"}, False),
        ({"tools": {"sandbox": True}}, {"SANDBOX": "sandbox-exec"}, False),
        ({"tools": {"sandbox": {"enabled": False}}}, {}, False),
        ({"tools": {"sandbox": "0"}}, {}, False),
        ({"tools": {"sandbox": True}, "gemdeck": {"sandbox": "none"}}, {}, False),
    ],
)
async def test_A27_without_the_sandbox_that_was_asked_for_no_program_starts(
    gemini: FakeGemini,
    asks: Mapping[str, Any],
    env: Mapping[str, str],
    is_held: bool,
) -> None:
    result = await turn(gemini, user(**asks), env=env)
    if not is_held:
        assert ran(result)
        return
    assert (result.code, gemini.requests) == (44, [])
    assert 'set gemdeck.sandbox to "none"' in result.stderr
    listed = (await run("mcp", "list", "--json", env=env)).json["servers"]
    assert "asks for a sandbox" in json.dumps(listed)
    assert not (Path.home() / "notes.db").exists()


async def test_A27_on_the_screen_each_server_says_why_it_is_held(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = {"it": place.canary("sang"), "net": {"url": "http://127.0.0.1:9/mcp"}}
    place.user({"mcpServers": servers, "tools": {"sandbox": True}})
    async with opened(place) as deck:
        await deck.reach("it", ServerStatus.DISABLED)
        assert deck.server("net").status is not ServerStatus.DISABLED, "it is no program here"
        why = deck.server("it").failure
        assert why is not None
        words = "tools.sandbox in ~/.gemini/settings.json asks for a sandbox, and gemdeck has none"
        assert words in why.reason
    monkeypatch.setenv("GEMINI_RESTRICTED_MODE", "true")
    async with opened(place) as deck:
        await eventually(lambda: set(deck.statuses().values()) == {ServerStatus.DISABLED})
    assert place.words() == []


async def test_A27_on_the_screen_a_session_that_is_over_gives_the_message_back(
    place: Place, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
    place.user({"model": {"maxSessionTurns": 1}})
    gemini.steps = [[Say("one")], [Say("two")]]
    async with opened(place) as deck:
        for text in ("first", "second"):
            deck.engine.send(text)
            await deck.engine.wait_idle()
            if text == "first":
                deck.engine.clear_conversation()  # which gives no further ones
        assert len(gemini.requests) == 1
        notices = [one for one in selectors.entries(deck.state) if isinstance(one, ChatNotice)]
        assert (
            "The limit of 1 model request per run is reached (model.maxSessionTurns)"
            in notices[-1].text
        )


HOOK = {"hooks": {"BeforeTool": [{"matcher": "add_note", "hooks": [{"command": "x"}]}]}}


async def test_A27_a_projects_hook_asks_unless_the_user_says_to_ignore_it(
    gemini: FakeGemini, tmp_path: Path
) -> None:
    project = tmp_path / "shop"
    (project / ".gemini").mkdir(parents=True)
    file = project / ".gemini" / "settings.json"
    rows: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
        (HOOK, {}, False),
        (HOOK, {"projectHooks": "ask"}, False),
        (HOOK, {"projectHooks": "ignore"}, True),
        ({**HOOK, "gemdeck": {"projectHooks": "ignore"}}, {}, False),
        ({"tools": {"confirmationRequired": ["add_note"]}}, {"projectHooks": "ignore"}, False),
    ]
    for content, own, is_run in rows:
        file.write_text(json.dumps(content))
        trusts = ("--trust-folder", str(project), "--allowed-tools", "notes")
        result = await turn(gemini, user(gemdeck=own), *trusts, cwd=project)
        assert ran(result) is is_run, (content, own)
        by_hook = f"a BeforeTool hook in {file} would check this tool, and gemdeck runs no hooks."
        assert (by_hook in result.stderr) is (not is_run and "tools" not in content), result.stderr
    write_settings(user(gemdeck={"projectHooks": "ignore"}, **HOOK))
    assert not ran(await turn(gemini, user(gemdeck={"projectHooks": "ignore"}, **HOOK))), "yours"


@pytest.mark.parametrize("name", STARTS)
async def test_A27_a_start_that_gemini_cli_refuses_is_refused_with_its_code(
    gemini: FakeGemini, name: str
) -> None:
    start, theirs = STARTS[name], recorded("starts")[name]
    start.write(Path.home() / ".gemini", notes_server())
    gemini.steps = [*[ADD] * 3, [Say("done")]]
    result = await run("-p", "x", "--yolo", gemini=gemini, env=start.environ)
    offered = any('"add_note"' in json.dumps(one.body.get("tools")) for one in gemini.requests)
    assert offered is theirs["offered"]
    if theirs["code"] == 1:  # it ends over an extension that it cannot judge
        assert result.code == 0
        return
    assert (result.code, len(gemini.requests)) == (theirs["code"], theirs["requests"])


async def test_A27_on_the_screen_no_other_way_to_sign_in_is_taken(
    place: Place, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    place.user({"security": {"auth": {"enforcedType": "vertex-ai"}}})
    async with opened(place) as deck:
        assert deck.state.model.backend is BackendKind.DEMO
        said = "enforcedType in ~/.gemini/settings.json allows only vertex-ai"
        assert [said in one.text for one in deck.state.notices].count(True) == 1
        deck.engine.choice.use_api_key(KEY)
        await eventually(lambda: [said in one.text for one in deck.state.notices].count(True) == 2)
        assert deck.state.model.backend is BackendKind.DEMO
    assert (gemini.requests, gemini.checks) == ([], [])
    for command in (("doctor", "--offline"), ("key", "show")):
        told = await run(*command, env={"GEMINI_API_KEY": KEY})
        assert told.code == 1
        assert said in told.stdout + told.stderr


SANDBOX = "`-p` is refused (exit 44) and stdio servers stay disabled"


@pytest.mark.parametrize(
    ("asks", "env", "line"),
    [
        ({"tools": {"sandbox": True}}, {}, f"~/.gemini/settings.json:1: tools.sandbox: {SANDBOX}"),
        ({}, {"GEMINI_SANDBOX": "docker"}, f"GEMINI_SANDBOX: {SANDBOX}"),
        ({}, {"GEMINI_RESTRICTED_MODE": "true"}, "`-p` is refused (exit 55) and all servers"),
        ({"security": {"auth": {"enforcedType": "vertex-ai"}}}, {}, "refused (exit 41) unless"),
        (PLAN, {}, "general.defaultApprovalMode: no tool runs; --approval-mode default lifts it"),
    ],
)
async def test_A27_what_keeps_a_run_from_starting_is_named_to_who_asks(
    asks: Mapping[str, Any], env: Mapping[str, str], line: str
) -> None:
    write_settings(dict(asks))
    for command in (("settings", "check"), ("doctor", "--offline")):
        assert line in (await run(*command, env=env)).stdout
