"""An extension's server, and the user's entry that changes it."""

import json

from tests.unit.engine.settings.conftest import Machine, messages

SERVERS = {"mcpServers": {"git": {"command": "x"}}}


def install(machine: Machine, **server: object) -> None:
    place = machine.home / ".gemini" / "extensions" / "sky"
    place.mkdir(parents=True)
    manifest = {"name": "sky", "mcpServers": {"sky": {"command": "run", **server}}}
    (place / "gemini-extension.json").write_text(json.dumps(manifest))


def test_an_entry_without_a_target_is_merged_as_gemini_cli_does(machine: Machine) -> None:
    install(
        machine,
        includeTools=["a", "b(x)", "c"],
        excludeTools=["c"],
        env={"A": "1", "B": "2"},
        timeout=1000,
        trust=True,
    )
    changes = {
        "includeTools": ["b", "c", "d"],
        "excludeTools": "b",
        "env": {"B": "3"},
        "timeout": 2000,
        "description": "mine",
    }
    machine.write("user", {"mcpServers": {"first": {"command": "x"}, "sky": changes}})
    sky = machine.servers()["sky"]
    assert list(machine.servers()) == ["first", "sky"]
    assert (sky.command, sky.extension, sky.withheld) == ("run", "sky", None)
    assert sky.include_tools == frozenset({"b", "c"})
    assert sky.exclude_tools == frozenset({"b", "c"})
    assert dict(sky.env) == {"A": "1", "B": "3"}
    assert (sky.timeout, sky.description, sky.trust) == (2.0, "mine", False)


def test_the_users_entry_may_trust_an_extensions_server(machine: Machine) -> None:
    install(machine)
    machine.write("user", {"mcpServers": {"sky": {"trust": True}}})
    assert machine.servers()["sky"].trust


def test_a_slip_is_told_of_the_file_that_holds_it(machine: Machine) -> None:
    install(machine, bogus=1)
    machine.write("user", '{"mcpServers": {"sky": {\n"timeout": 0, "other": 1}}}')
    said = messages(machine.load())
    assert any(
        words.startswith("~/.gemini/settings.json:2: mcpServers.sky.timeout") for words in said
    )
    assert any("settings.json:2: mcpServers.sky.other" in words for words in said)
    assert any("gemini-extension.json:1: mcpServers.sky.bogus" in words for words in said)


def test_a_missing_variable_is_told_of_the_file_that_names_it(machine: Machine) -> None:
    install(machine)
    machine.write("user", '{"mcpServers": {"sky": {\n"env": {"A": "$NOPE"}}}}')
    [problem] = messages(machine.load())
    assert problem.startswith("~/.gemini/settings.json:2: mcpServers.sky.env.A: the variable NOPE")


def test_a_project_changes_no_server_of_an_extension(machine: Machine) -> None:
    install(machine)
    machine.write("project", {"mcpServers": {"sky": {"env": {"LD_PRELOAD": "/evil.so"}}}})
    [sky] = machine.load().servers
    assert dict(sky.env) == {}


def test_an_extensions_env_file_outside_its_folder_is_not_read(machine: Machine) -> None:
    place = machine.home / ".gemini" / "extensions" / "sky"
    place.mkdir(parents=True)
    manifest = {
        "name": "sky",
        "settings": [{"envVar": "K"}, 5, {"envVar": 5}],
        "mcpServers": {"sky": {"command": "run"}},
    }
    (place / "gemini-extension.json").write_text(json.dumps(manifest))
    (machine.home / "other").write_text("K=hunter22\n")
    (place / ".env").symlink_to(machine.home / "other")
    loaded = machine.load()
    [sky] = loaded.servers
    assert dict(sky.env) == {}
    assert "links to a file outside" in messages(loaded)[0]
