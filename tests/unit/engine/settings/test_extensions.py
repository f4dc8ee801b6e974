"""The servers of gemini-cli extensions, and imports in files of context."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.settings.conftest import Machine, messages
from tui.engine.settings.prohibitions import voids
from tui.engine.settings.sources import context_places
from tui.engine.settings.sources.source import Report, manifest_files
from tui.model.servers import Origin, ServerStatus

RULES = ("allow", "ask_user", "deny")


def install(machine: Machine, name: str, servers: object, folder: str = "", **more: Any) -> Path:  # noqa: ANN401
    """Install an extension as gemini-cli does."""
    place = machine.home / ".gemini" / "extensions" / (folder or name)
    place.mkdir(parents=True, exist_ok=True)
    manifest = {"name": name, "version": "1.0.0", "mcpServers": servers, **more}
    (place / "gemini-extension.json").write_text(json.dumps(manifest))
    return place


def enablement(machine: Machine, content: object) -> None:
    file = machine.home / ".gemini" / "extensions" / "extension-enablement.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def test_a_server_of_an_extension_is_loaded_with_its_paths_expanded(machine: Machine) -> None:
    machine.environ["TOKEN"] = "t0ken"
    args = ["${extensionPath}${/}dist${/}server.js", "${workspacePath}"]
    entry = {"command": "node", "args": args, "cwd": "${extensionPath}", "env": {"KEY": "$TOKEN"}}
    place = install(machine, "weather", {"sky": entry})
    loaded = machine.load()
    [sky] = loaded.servers
    assert messages(loaded) == []
    assert (sky.id, sky.entry.origin, sky.entry.extension) == ("sky", Origin.EXTENSION, "weather")
    assert sky.launch.args == (f"{place}/dist/server.js", str(machine.folder))
    assert sky.launch.cwd == place
    assert dict(sky.launch.env) == {"KEY": "t0ken"}
    assert sky.withheld is None


def test_an_extension_never_makes_itself_trusted(machine: Machine) -> None:
    install(machine, "weather", {"sky": {"command": "node", "trust": True}})
    loaded = machine.load()
    assert not loaded.servers[0].trust
    [problem] = messages(loaded)
    assert "trust: has no effect in an extension" in problem
    machine.write("user", {"mcpServers": {"sky": {"trust": True}}})
    assert machine.servers()["sky"].trust, "the user's entry may trust it"


def test_the_policies_of_an_extension_restrict_and_give_no_permission(machine: Machine) -> None:
    place = install(machine, "weather", {"sky": {"command": "node"}}) / "policies"
    place.mkdir()
    rules = [f'[[rule]]\ndecision = "{word}"\ntoolName = "mcp_sky_{word}"' for word in RULES]
    (place / "a.toml").write_text("\n".join(rules))
    loaded = machine.load()
    assert {(rule.tool, len(voids(rule))) for rule in loaded.gemdeck.always_deny} >= {
        ("mcp_sky_deny", 0),
        ("mcp_sky_ask_user", 3),
    }
    [problem] = messages(loaded)
    assert problem.endswith("allows nothing here: mcp_sky_allow")


def test_the_users_server_of_the_same_name_wins_silently(machine: Machine) -> None:
    install(machine, "weather", {"sky": {"command": "theirs"}, "sea": {"command": "theirs"}})
    machine.write("user", {"mcpServers": {"sky": {"command": "mine"}}})
    loaded = machine.load()
    assert messages(loaded) == []
    mine, theirs = ("sky", "mine", Origin.USER), ("sea", "theirs", Origin.EXTENSION)
    assert [(s.id, s.launch.command, s.entry.origin) for s in loaded.servers] == [mine, theirs]


def test_of_two_extensions_the_first_keeps_the_name(machine: Machine) -> None:
    install(machine, "b", {"sky": {"command": "second"}})
    install(machine, "a", {"sky": {"command": "first"}})
    loaded = machine.load()
    assert [(s.id, s.launch.command) for s in loaded.servers] == [("sky", "first")]
    [problem] = messages(loaded)
    assert "b/gemini-extension.json" in problem
    assert "the extension a defines a server with the same name" in problem


def test_two_folders_with_one_extensions_name_are_one_extension(machine: Machine) -> None:
    install(machine, "a", {"one": {"command": "x"}})
    install(machine, "a", {"two": {"command": "x"}}, folder="copy-of-a")
    loaded = machine.load()
    assert [server.id for server in loaded.servers] == ["one"]
    assert "another extension has the same name, a" in messages(loaded)[0]


def test_a_project_neither_replaces_nor_changes_a_server_of_an_extension(machine: Machine) -> None:
    install(machine, "weather", {"sky": {"command": "theirs"}})
    for entry in ({"command": "evil"}, {"env": {"LD_PRELOAD": "/evil.so"}}):
        machine.write("project", {"mcpServers": {"sky": entry}})
        [sky] = machine.load().servers
        assert (sky.launch.command, dict(sky.launch.env)) == ("theirs", {})


def test_the_rules_over_all_servers_hold_for_extensions(machine: Machine) -> None:
    install(machine, "weather", {"sky": {"command": "x"}, "sea": {"command": "x"}})
    machine.write("user", {"mcp": {"excluded": ["sky"]}})
    servers = machine.servers()
    assert servers["sky"].withheld is ServerStatus.DISABLED
    assert servers["sea"].withheld is None


def test_a_bad_manifest_is_reported_and_harms_nobody(machine: Machine) -> None:
    for manifest, word in [
        ('{"mcpServers": {"a": {"command": "x",', "not valid JSON"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {}}}', "duplicate key"),
        ('{"mcpServers": 5}', "must be an object"),
        ('{"mcpServers": {"a": {"args": []}}}', "needs one of command, url and httpUrl"),
    ]:
        place = install(machine, "bad", {})
        (place / "gemini-extension.json").write_text(manifest)
        install(machine, "good", {"sky": {"command": "x"}})
        loaded = machine.load()
        assert any(word in message for message in messages(loaded)), manifest
        assert all(s.withheld in {None, ServerStatus.INVALID} for s in loaded.servers), manifest
        assert [s.id for s in loaded.servers if s.withheld is None] == ["sky"], manifest


def test_a_folder_without_a_manifest_and_a_file_are_passed_over(machine: Machine) -> None:
    place = install(machine, "good", {"sky": {"command": "x"}})
    (place.parent / "empty").mkdir()
    (place.parent / "note.txt").write_text("x")
    loaded = machine.load()
    assert messages(loaded) == []
    assert [server.id for server in loaded.servers] == ["sky"]


def test_a_linked_extension_is_read_where_it_is(machine: Machine, tmp_path: Path) -> None:
    place = install(machine, "dev", {})
    (place / "gemini-extension.json").unlink()
    real = tmp_path / "checkout"
    real.mkdir()
    (real / "gemini-extension.json").write_text(
        json.dumps({"name": "dev", "mcpServers": {"sky": {"command": "${extensionPath}/run"}}})
    )
    link = {"type": "link", "source": str(real)}
    (place / ".gemini-extension-install.json").write_text(json.dumps(link))
    [sky] = machine.load().servers
    assert sky.launch.command == f"{real}/run"
    assert manifest_files(machine.home) == [real / "gemini-extension.json"]


def test_an_extension_that_gemini_cli_has_disabled_here_is_left_alone(machine: Machine) -> None:
    rows: list[tuple[list[Any], bool]] = [
        *(([], True), (["!{folder}/"], False), (["!{folder}/*"], False), (["!{home}/*"], False)),
        *((["!{home}/"], True), (["!{home}/*", "{folder}/"], True), (["!/*"], False)),
        *((["!{folder}x/*"], True), (["!", 5], True)),
    ]
    install(machine, "weather", {"sky": {"command": "x"}})
    for rules, enabled in rows:
        places = {"folder": str(machine.folder), "home": str(machine.home)}
        written = [rule.format(**places) if isinstance(rule, str) else rule for rule in rules]
        enablement(machine, {"weather": {"overrides": written}, "other": 5})
        assert bool(machine.load().servers) is enabled, rules


def test_no_extension_is_used_while_it_is_unknown_which_are_enabled(machine: Machine) -> None:
    install(machine, "weather", {"sky": {"command": "x"}})
    enablement(machine, "{")
    loaded = machine.load()
    assert loaded.servers == ()
    assert "no extension is used until this is fixed" in messages(loaded)[0]


SKY = {"mcpServers": {"sky": {"command": "run"}}}


def with_sky(machine: Machine, **server: object) -> None:
    install(machine, "sky", {"sky": {"command": "run", **server}})


def test_an_entry_without_a_target_is_merged_as_gemini_cli_does(machine: Machine) -> None:
    tools = {"includeTools": ["a", "b(x)", "c"], "excludeTools": ["c"]}
    with_sky(machine, **tools, env={"A": "1", "B": "2"}, timeout=1000, trust=True)
    tools = {"includeTools": ["b", "c", "d"], "excludeTools": ["b"]}
    changes = {**tools, "env": {"B": "3"}, "timeout": 2000, "description": "mine"}
    machine.write("user", {"mcpServers": {"first": {"command": "x"}, "sky": changes}})
    sky = machine.servers()["sky"]
    assert list(machine.servers()) == ["first", "sky"]
    assert (sky.launch.command, sky.entry.extension, sky.withheld) == ("run", "sky", None)
    assert sky.include_tools == frozenset({"b", "c"})
    assert sky.exclude_tools == frozenset({"b", "c"})
    assert dict(sky.launch.env) == {"A": "1", "B": "3"}
    assert (sky.timeout, sky.description, sky.trust) == (2.0, "mine", False)


def test_a_slip_is_told_of_the_file_that_holds_it(machine: Machine) -> None:
    with_sky(machine, bogus=1)
    slips = '"timeout": 0, "other": 1, "env": {"A": "$NOPE"}'
    machine.write("user", '{"mcpServers": {"sky": {\n' + slips + "}}}")
    said = "\n".join(messages(machine.load()))
    for words in ("timeout", "other", "env.A: the variable NOPE"):
        assert f"~/.gemini/settings.json:2: mcpServers.sky.{words}" in said
    assert "gemini-extension.json:1: mcpServers.sky.bogus" in said


def test_an_extensions_env_file_outside_its_folder_is_not_read(machine: Machine) -> None:
    place = machine.home / ".gemini" / "extensions" / "sky"
    place.mkdir(parents=True)
    manifest = {"name": "sky", "settings": [{"envVar": "K"}, 5, {"envVar": 5}], **SKY}
    (place / "gemini-extension.json").write_text(json.dumps(manifest))
    (machine.home / "other").write_text("K=hunter22\n")
    (place / ".env").symlink_to(machine.home / "other")
    loaded = machine.load()
    [sky] = loaded.servers
    assert dict(sky.launch.env) == {}
    assert "links to a file outside" in messages(loaded)[0]


def test_a_sensitive_setting_is_looked_for_where_gemini_cli_keeps_it(machine: Machine) -> None:
    """By `getExtensionId` and `getKeychainStorageName` of gemini-cli 0.61."""
    settings = [
        *({"envVar": "K", "sensitive": True}, {"envVar": "SET", "sensitive": True}),
        *({"envVar": "PLAIN"}, {"envVar": "no name", "sensitive": True}),
    ]
    entry = {"url": "https://h/$K", "headers": {"X": "Bearer ${K}"}, "env": {"E": "$SET$PLAIN"}}
    place = install(machine, "sky", {"sky": entry}, settings=settings)
    (place / ".env").write_text("SET='plain words'\n")
    machine.environ["K"] = "own"
    [sky] = machine.load().servers
    assert (sky.endpoint.url, dict(sky.endpoint.headers), dict(sky.launch.kept)) == (
        *("https://h/${K}", {"X": "Bearer ${K}"}),
        {"K": "own"},
    )
    assert "${K}" not in sky.secrets
    assert "plain words" in sky.secrets
    assert sky.launch.env["SET"] == "plain words"
    rows = {
        None: "sky",
        ("git", "https://github.com/a/b.git"): "https://github.com/a/b",
        ("github-release", "a/b"): "https://github.com/a/b",
        ("git", "git@github.com:a/b.git"): "https://github.com/a/b",
        ("git", "https://gitlab.com/a/b"): "https://gitlab.com/a/b",
        ("local", "/src/a"): "/src/a",
    }
    for how, whole in rows.items():
        if how is not None:
            made = json.dumps({"type": how[0], "source": how[1]})
            (place / ".gemini-extension-install.json").write_text(made)
        number = hashlib.sha256(whole.encode()).hexdigest()
        assert machine.servers()["sky"].launch.keychain == f"Gemini CLI Extensions sky {number}", (
            how
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "shop"
    (made / "docs").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("SECRET")
    (made / "docs" / "style.md").write_text("Write plainly. See @more.md")
    (made / "docs" / "more.md").write_text("And briefly.")
    (made / "token.txt").write_text("TOKEN")
    return made


def imported(folder: Path, text: str) -> str:
    return context_places.Imports(folder).put_in(text, folder / "GEMINI.md")


def test_an_import_stands_for_its_file_and_its_own_imports(folder: Path) -> None:
    text = imported(folder, "Rules: @./docs/style.md, and\nno more.")
    inner = "<!-- Imported from more.md -->\nAnd briefly.\n<!-- End of more.md -->"
    start, end = "<!-- Imported from ./docs/style.md -->", "<!-- End of ./docs/style.md -->"
    assert text == f"Rules: {start}\nWrite plainly. See {inner}\n{end}, and\nno more."


def test_what_is_no_import_stays_as_it_is(folder: Path) -> None:
    for text in [
        *("write to @ada or ada@docs/style.md", "@docs/none.md", "@no.txt", "`@docs/style.md`"),
        *("```\n@docs/style.md\n```", f"@{'long' * 100}.md", "@docs/\0.md"),
        *("@docs/style.md/deeper.md", "~~~~ md\n@docs/style.md\n~~~\n@docs/style.md"),
    ]:
        assert imported(folder, text) == text
    left_out = "<!-- @token.txt is not imported: only .md files can be imported -->"
    assert imported(folder, "See @token.txt, please.") == f"See {left_out}, please."


def test_code_ends_where_its_fence_does(folder: Path) -> None:
    text = imported(folder, "```\n@docs/more.md\n```\n@docs/more.md")
    assert text.startswith("```\n@docs/more.md\n```\n<!-- Imported from docs/more.md -->")


def test_nothing_outside_the_folder_is_imported(folder: Path) -> None:
    (folder / "link.md").symlink_to(folder.parent / "secret.md")
    outside = folder.parent / "secret.md"
    for word in ("@../secret.md", "@link.md", f"@{outside}", "@docs/../../secret.md"):
        text = imported(folder, word)
        assert "outside the folder" in text
        assert "SECRET" not in text


def test_what_lies_outside_is_never_looked_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    for name in ("stat", "lstat"):
        real = getattr(os, name)

        def spy(path: object, *args: object, real: object = real, **kwargs: object) -> object:
            looked.append(str(path))
            return real(path, *args, **kwargs)  # type: ignore[operator]

        monkeypatch.setattr(os, name, spy)
    for name in ("secret.md", "none.md"):
        word = f"@../{name}"
        reason = "it is outside the folder"
        assert imported(folder, word) == f"<!-- {word} is not imported: {reason} -->"
    assert looked
    assert not any("secret" in path or "none" in path for path in looked)
    looked.clear()
    words = " ".join(f"@{number}.md" for number in range(context_places.MAX_IMPORTS + 5))
    assert imported(folder, words) == words
    assert any(path.endswith(f"/{context_places.MAX_IMPORTS - 1}.md") for path in looked)
    assert not any(path.endswith(f"/{context_places.MAX_IMPORTS}.md") for path in looked)


def test_refusals_are_bounded(folder: Path) -> None:
    text = imported(folder, "@../secret.md " * (context_places.MAX_IMPORTS + 5) + "@docs/more.md")
    assert text.count("outside the folder") == context_places.MAX_IMPORTS
    assert text.endswith("@../secret.md @docs/more.md")


def test_a_folder_that_is_a_link_holds_what_is_named_through_it(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    for name in ("docs/more.md", f"{link}/docs/more.md", f"{folder}/docs/more.md"):
        assert "And briefly." in context_places.Imports(link).put_in(f"@{name}", link / "GEMINI.md")


def test_circles_depth_and_number_are_bounded(folder: Path) -> None:
    (folder / "GEMINI.md").write_text("@a.md")
    (folder / "a.md").write_text("A @GEMINI.md")
    assert "imports itself" in imported(folder, "@a.md")
    for number in range(context_places.MAX_DEPTH + 3):
        (folder / f"d{number}.md").write_text(f"deep{number} @d{number + 1}.md")
    text = imported(folder, "@d0.md")
    assert f"deep{context_places.MAX_DEPTH - 1}" in text
    assert f"deep{context_places.MAX_DEPTH + 1}" not in text
    (folder / "b.md").write_text("@docs/more.md " * 20)
    assert 0 < imported(folder, "@b.md " * 20).count("And briefly.") < context_places.MAX_IMPORTS


def test_files_of_context_hold_what_they_import(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "sub").mkdir()
    for place in (folder, folder / "sub"):
        (place / "GEMINI.md").write_text("@../shop/docs/more.md @../docs/more.md")
    places = context_places.ContextPlaces(
        project=(folder / "GEMINI.md", folder / "sub" / "GEMINI.md")
    )
    top, sub = context_places.project_context(places, folder / "sub", Report(folder.parent))
    assert "And briefly." in top.text
    assert "And briefly." in sub.text
    [own] = context_places.read_context([folder / "sub" / "GEMINI.md"], folder.parent)
    assert "And briefly." not in own.text


def test_a_repository_at_the_home_opens_no_more_than_the_folder(folder: Path) -> None:
    home = folder.parent
    (home / ".git").mkdir()
    (folder / "GEMINI.md").write_text("@../secret.md @docs/more.md")
    (folder / "docs" / "GEMINI.md").write_text("@more.md @../GEMINI.md")
    places = context_places.find_context((), (), folder / "docs", Report(home))
    assert {path.parent for path in places.project} == {folder / "docs"}
    [docs] = context_places.project_context(places, folder / "docs", Report(home))
    assert "And briefly." in docs.text
    assert "GEMINI.md is not imported: it is outside" in docs.text
    places = context_places.find_context((), (), folder, Report(home))
    [whole] = context_places.project_context(places, folder, Report(home))
    assert "And briefly." in whole.text
    assert "SECRET" not in whole.text
