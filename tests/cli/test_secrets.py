"""Secrets by reference: kept, named by entries, filled in when a server starts, never seen."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from tests.cli.running import Result, notes_server, run, run_process, write_settings
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.servers.web import RawServer
from tests.support.leaks import FIXTURE_SECRET
from tests.support.terminal import Terminal
from tests.unit.engine.mcp.support import FOLDER
from tui.cli.output import ExitCode
from tui.engine.files.paths import usable_state_dir
from tui.engine.keys.key_store import CredentialError
from tui.engine.keys.secret_store import SecretStore, without_literals

SECRET: Final = f"{FIXTURE_SECRET}of-github"

keeps_secrets = pytest.mark.writes_secrets("credentials.json")


async def type_in(name: str, value: str) -> Result:
    """Keep a secret that is piped in."""
    return await run_process("secret", "set", name, stdin=f"{value}\n".encode())


def keep(name: str, value: str = SECRET) -> None:
    SecretStore(usable_state_dir(), pytest.fail).set(name, value)


async def trusting(*words: str, **more: Any) -> Result:  # noqa: ANN401
    """Run a command in a folder whose code may run."""
    return await run(*words, "--trust-folder", str(Path.home().resolve()), **more)


async def listed() -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in (await trusting("mcp", "list", "--json")).json["servers"]}


def entries() -> dict[str, Any]:
    path = Path.home() / ".gemini" / "settings.json"
    found: dict[str, Any] = json.loads(path.read_text())["mcpServers"]
    return found


def telling(**env: str) -> dict[str, Any]:
    """Make the entry of a server with a tool that gives its environment, and that writes it."""
    script = f'env >&2; exec "{sys.executable}" "{FOLDER / "raw.py"}"'
    return {"command": "sh", "args": ["-c", script], "env": env}


@keeps_secrets
async def test_a_secret_is_kept_listed_by_its_name_and_forgotten() -> None:
    assert (await run("secret", "list")).stdout == "There are no secrets.\n"
    typed = await type_in("github", SECRET)
    assert (typed.code, SECRET in typed.stdout + typed.stderr) == (ExitCode.OK, False)
    file = Path(os.environ["GEMDECK_HOME"]) / "credentials.json"
    assert json.loads(file.read_text())["secret github"] == SECRET
    assert file.stat().st_mode & 0o777 == 0o600
    keep("another", "1234")
    keep("another")
    assert (await run("secret", "list", "--json")).json == {"names": ["another", "github"]}
    wrong = await run("secret", "forget", "githup")
    assert (wrong.code, "Did you mean github?" in wrong.stderr) == (ExitCode.NOT_FOUND, True)
    assert (await run("secret", "forget", "github")).stdout == "github was forgotten.\n"
    assert (await run("secret", "list")).stdout == "another\n"
    assert SECRET in file.read_text(), "that of the other one"
    refused = await type_in("short", "abc")
    assert (refused.code, "4 to 16,384 characters" in refused.stderr) == (ExitCode.ERROR, True)
    cut = await run_process("secret", "set", "cut", stdin=b"abcd\xffefgh")
    assert (cut.code, "must be UTF-8" in cut.stderr) == (ExitCode.ERROR, True)
    with pytest.raises(CredentialError, match="name may contain only letters"):
        keep("a b")
    assert (await run("secret", "list")).stdout == "another\n"


@keeps_secrets
def test_a_secret_is_typed_unseen() -> None:
    typing = (sys.executable, "-m", "tui", "secret", "set", "github")
    with Terminal(typing, cwd=Path.home()) as terminal:
        terminal.wait_for("Secret")
        terminal.send(f"{SECRET}\n".encode())
        assert terminal.wait_for_exit() == 0
        assert SECRET.encode() not in terminal.raw


@keeps_secrets
async def test_a_secret_is_in_nothing_written_or_said(gemini: FakeGemini, tmp_path: Path) -> None:
    keep("github")
    given = {"TOKEN": "${keyring:github}", "PLAIN": "a ${keyring:github} b"}
    write_settings({"mcpServers": {"tells": telling(**given)}})
    trace = tmp_path / "trace.jsonl"
    gemini.steps = [[Call([("environment", {})])], [Say(f"It is {SECRET}.")]]
    options = ("--allowed-tools", "tells", "--trace", str(trace), "--debug")
    turn = await trusting("-p", "look", "-o", "stream-json", *options, gemini=gemini)
    assert turn.code == ExitCode.OK, turn.stderr
    said = [
        await trusting("mcp", "show", "tells", "--json"),
        await trusting("mcp", "logs", "tells", "--json"),
        await trusting("doctor", "--offline", "--json"),
        await run("settings", "show", "--json"),
        await trusting("mcp", "call", "tells", "die", "--json"),
    ]
    assert "TOKEN=***" in said[1].stdout
    for one in (turn, *said):
        assert SECRET not in one.stderr
    assert "TOKEN" in json.dumps(gemini.requests[-1].body)
    assert all(SECRET not in one.stdout for one in said[:4])
    places = [Path.home(), tmp_path, Path(os.environ["GEMDECK_HOME"])]
    files = {file for place in places for file in place.rglob("*") if file.is_file()}
    holding = {file.name for file in files if SECRET.encode() in file.read_bytes()}
    assert holding == {"credentials.json"}
    assert trace in files
    assert any(file.suffix == ".jsonl" for file in files - {trace}), "the session"


@keeps_secrets
async def test_only_the_servers_wait_whose_secret_is_not_there() -> None:
    wrong = {"command": "x", "args": ["${keyring:github}"]}
    named = {"tells": telling(TOKEN="${keyring:github}"), "never": telling(T="${keyring:my; key}")}
    write_settings({"mcpServers": {**named, "notes": notes_server(), "wrong": wrong}})
    found = await listed()
    assert (found["notes"]["status"], found["tells"]["status"]) == ("ready", "failed")
    assert "needs the secret github, which is not in the private file" in found["tells"]["reason"]
    assert "gemdeck secret set github" in found["tells"]["advice"]
    assert "needs the secret my; key, which is not a valid name" in found["never"]["reason"]
    assert "only letters, digits and ._-" in found["never"]["advice"]
    assert found["wrong"]["status"] == "invalid"
    assert "works only in env, headers and the secrets of oauth" in found["wrong"]["reason"]
    keep("github")
    again = await listed()
    assert again["tells"]["status"] == "ready"


class LockedKeyring(KeyringBackend):
    """A keyring that is locked, unless it is told otherwise."""

    priority = 5
    kept: dict[str, str] | None = None

    def get_password(self, service: str, username: str) -> str | None:
        if self.kept is None:
            raise KeyringLocked(SECRET)
        return self.kept.get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.kept is None:
            raise KeyringLocked(SECRET)
        self.kept[f"{service} {username}"] = password


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[LockedKeyring]:
    monkeypatch.delenv("GEMDECK_HOME")
    before, made = keyring.get_keyring(), LockedKeyring()  # type: ignore[no-untyped-call]
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


async def test_a_locked_keyring_is_said_and_holds_up_no_other_server(ring: LockedKeyring) -> None:
    named = {"tells": telling(TOKEN="${keyring:github}"), "notes": notes_server()}
    write_settings({"mcpServers": named})
    found = await listed()
    assert (found["notes"]["status"], found["tells"]["status"]) == ("ready", "failed")
    assert found["tells"]["reason"] == "The keyring cannot be read."
    assert "Unlock the keyring" in found["tells"]["advice"]
    ring.kept = {"gemdeck secret github": SECRET}
    again = await listed()
    assert again["tells"]["status"] == "ready"


@keeps_secrets
async def test_a_header_is_filled_in_and_a_changed_secret_is_no_other_server() -> None:
    keep("github")
    async with RawServer() as server:
        headers = {"Authorization": "Bearer ${keyring:github}"}
        write_settings({"mcpServers": {"web": {"url": server.url, "headers": headers}}})
        assert (await run("mcp", "list")).code == ExitCode.OK
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        keep("github", f"{SECRET}2")
        assert (await run("mcp", "list")).code == ExitCode.OK
        assert server.requests[-1].headers["authorization"] == f"Bearer {SECRET}2"
        keep("github", "two\nlines")
        broken = await run("mcp", "list")
        assert "has a header 'Authorization' with characters that cannot be sent" in broken.stdout


@keeps_secrets
async def test_what_comes_with_a_folder_or_an_extension_gets_no_secret(tmp_path: Path) -> None:
    keep("github")
    folder, written = tmp_path / "shop", tmp_path / "written"
    (folder / ".gemini").mkdir(parents=True)
    script = f'env > "{written}"'
    server = {"command": "sh", "args": ["-c", script], "env": {"A": "${keyring:github}"}}
    hidden = {**server, "env": {"A": "${NOT_SET:-${keyring:github}}"}}
    indirect = {**server, "env": {"A": "$INDIRECT"}}
    own = {"mcpServers": {"plain": server, "hidden": hidden, "indirect": indirect}}
    (folder / ".gemini" / "settings.json").write_text(json.dumps(own))
    (folder / ".env").write_text("INDIRECT='${keyring:github}'\n")
    place = Path.home() / ".gemini" / "extensions" / "sky"
    place.mkdir(parents=True)
    manifest = {"name": "sky", "mcpServers": {"sky": server, "mine": server}}
    (place / "gemini-extension.json").write_text(json.dumps(manifest))
    write_settings({"mcpServers": {"mine": {"env": {"A": "${keyring:github}"}}}})
    trusts = ("--trust-folder", str(folder.resolve()))
    listed = await run("mcp", "list", "--json", *trusts, cwd=folder)
    found = {one["name"]: one for one in listed.json["servers"]}
    for name in ("plain", "hidden", "sky"):
        assert found[name]["status"] == "invalid", name
        assert "only your own settings can refer to your secrets" in found[name]["reason"]
    told = written.read_text() if written.exists() else ""
    assert "A=${keyring:github}" in told or SECRET in told
    written.unlink(missing_ok=True)
    await run("mcp", "show", "indirect", *trusts, cwd=folder)
    assert "A=${keyring:github}\n" in written.read_text()
    await run("mcp", "show", "mine", *trusts, cwd=folder)
    assert f"A={SECRET}\n" in written.read_text(), "the user's own entry gives it"
    written.unlink()
    adding = ("mcp", "add", "--no-check", "-e", "A_TOKEN=hunter2222", "--keyring", "a", "x")
    refused = await run(*adding, cwd=folder)
    assert (refused.code, "your secrets. Add -s user." in refused.stderr) == (ExitCode.USAGE, True)


@keeps_secrets
async def test_secrets_of_an_entry_are_kept_apart_when_it_is_added_or_imported() -> None:
    adding = ("mcp", "add", "-s", "user", "--no-check")
    token = f"A_TOKEN={SECRET}"
    literal = await run(*adding, "-e", "PLAIN=1", "-e", "A_TOKEN=$SET", "a", "x")
    assert literal.stderr == ""
    asked = await run(*adding, "-y", "-e", "A_TOKEN=hunter2222", "a", "x")
    assert asked.stderr.endswith("--keyring stores it in the keyring\n")
    moved = await run(*adding, "-y", "--keyring", "-e", token, "-e", "PLAIN=1", "a", "x", "--json")
    assert entries()["a"]["env"] == {"A_TOKEN": "${keyring:a-A_TOKEN}", "PLAIN": "1"}
    assert SECRET not in moved.stdout + moved.stderr
    header = f"Authorization: Bearer {SECRET}"
    await run(*adding, "--keyring", "w b", "http://127.0.0.1:9/mcp", "-H", header)
    names = (await run("secret", "list")).stdout.split()
    assert (names[0], names[1][:-6]) == ("a-A_TOKEN", "w-b-Authorization-")
    bearer = entries()["w b"]["headers"]
    assert bearer == {"Authorization": f"Bearer ${{keyring:{names[1]}}}"}
    cookie = f"Cookie: session={SECRET}; theme=dark"
    await run(*adding, "--keyring", "k", "http://127.0.0.1:9/mcp", "-H", cookie)
    assert entries()["k"]["headers"] == {"Cookie": "${keyring:k-Cookie}"}
    cursor = Path.home() / ".cursor" / "mcp.json"
    cursor.parent.mkdir()
    oauth = {"clientId": "me", "clientSecret": "hunter3333"}
    servers = {
        "c": {"command": "x", "env": {"C_KEY": "hunter4444"}},
        "d": {"url": "http://127.0.0.1:9/mcp", "oauth": oauth},
        "thief": {"command": "x", "env": {"A": "${keyring:a-A_TOKEN}"}},
        "odd": {"command": "x", "env": ["A_TOKEN=hunter5555"]},
    }
    cursor.write_text(json.dumps({"mcpServers": servers}))
    shown = await run("import", "cursor")
    assert "--keyring stores their secrets in the keyring" in shown.stdout
    assert "Omitted, because only you can pass it on: keyring:a-A_TOKEN." in shown.stdout
    taken = await run("import", "cursor", "--all", "--keyring")
    assert (taken.stderr, entries()["c"]["env"]) == ("", {"C_KEY": "${keyring:c-C_KEY}"})
    assert entries()["d"]["oauth"] == {**oauth, "clientSecret": "${keyring:d-clientSecret}"}
    assert entries()["thief"]["env"] == {"A": ""}
    into = ("--keyring", "-s", "project")
    await run("import", "cursor", "--all", *into, code=ExitCode.USAGE)


@pytest.mark.writes_secrets("token.sh")
async def test_a_program_that_prints_headers_waits_for_its_folder(tmp_path: Path) -> None:
    folder, trace = tmp_path / "shop", tmp_path / "trace.jsonl"
    (folder / ".gemini").mkdir(parents=True)
    script = folder / "token.sh"
    said = json.dumps({"Authorization": f"Bearer {SECRET}", "X-Own": "${OWN}"})
    script.write_text(f"#!/bin/sh\ntouch ran\necho '{said}'\necho {SECRET} >&2\n")
    script.chmod(0o755)
    trusts = ("--trust-folder", str(folder.resolve()))
    async with RawServer() as server:
        entry = {"url": server.url, "headersCommand": ["./token.sh"]}
        write_settings({"mcpServers": {"web": entry}})
        waiting = await run("mcp", "list", "--json", cwd=folder)
        assert waiting.json["servers"][0]["status"] == "untrusted"
        assert not (folder / "ran").exists()
        options = (*trusts, "--trace", str(trace))
        shown = await run("--debug", "mcp", "show", "web", "--json", *options, cwd=folder)
        assert shown.json["status"] == "ready", shown.stdout
        first = server.requests[0].headers
        assert (first["authorization"], first["x-own"]) == (f"Bearer {SECRET}", "${OWN}")
        logs = await run("mcp", "logs", "web", *trusts, cwd=folder)
        doctor = await run("doctor", "--offline", *trusts, cwd=folder)
        assert "***" in logs.stdout
        for one in (shown, logs, doctor):
            assert SECRET not in one.stdout + one.stderr
        script.write_text(script.read_text() + "#")
        (folder / "ran").unlink()
        server.requests.clear()
        means = {"tls": {"caFile": "/etc/none.pem"}, "oauth": {"identityTokenFile": str(script)}}
        own = {**entry, **means}
        write_settings({})
        (folder / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": {"p": own}}))
        listed = await run("mcp", "list", "--json", *trusts, cwd=folder)
        assert listed.json["servers"][0]["status"] == "ready", listed.stdout
        assert "authorization" not in server.requests[0].headers
        assert not (folder / "ran").exists()
        told = json.dumps(listed.json["warnings"])
        for key in ("headersCommand", "tls", "oauth.identityTokenFile"):
            assert f"mcpServers.p.{key}: has no effect in a project's file" in told


def test_each_secret_that_is_moved_gets_a_name_of_its_own() -> None:
    given = [
        ("my srv", {"env": {"API_TOKEN": "hunter1111"}}),
        ("my-srv", {"env": {"API_TOKEN": "hunter2222"}}),
        ("x", {"headers": {"Api-Token": "hunter3333"}}),
        ("x-Api", {"headers": {"Token": "hunter4444"}}),
        ("y", {"env": {"Authorization": "hunter5555"}, "headers": {"Authorization": "hunter6666"}}),
    ]
    moved = [without_literals(server, entry) for server, entry in given]
    kept = {name: secret for _, found in moved for name, secret in found.items()}
    assert sorted(kept.values()) == [f"hunter{n}{n}{n}{n}" for n in range(1, 7)]
    assert without_literals(*given[0]) == moved[0], "the same each time"
    entry = {"env": {"API_TOKEN": "x" * 16_385}}
    assert without_literals("z", entry) == (entry, {}), "it could not be kept"
