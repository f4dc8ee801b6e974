"""Ways of an untrusted folder into what counts that are neither its files nor its plain path."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.security.folders import Reader, reader
from tests.security.opened import Place, opened, place
from tests.unit.cli.conftest import Run, run
from tests.unit.engine.mcp.support import eventually
from tui.engine.definitions.outside import without_folder
from tui.engine.definitions.programs import search_path
from tui.engine.files.paths import state_dir
from tui.model.servers import ServerId, ServerStatus
from tui.model.trust import TrustAnswer
from tui.ui.editor import edit

__all__ = ["place", "reader", "run"]


@pytest.fixture
def second_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder another name, as where the case of letters is ignored, or by a mount."""
    other, real_stat = place.home / "CLONE", os.stat

    def looked_at(path: Any, *rest: Any, **more: Any) -> os.stat_result:  # noqa: ANN401
        if isinstance(path, str | os.PathLike):
            path = os.fspath(path).replace(str(other), str(place.folder))
        return real_stat(path, *rest, **more)

    monkeypatch.setattr(os, "stat", looked_at)
    return other


def test_A05_A14_another_name_of_the_folder_leads_into_it(
    reader: Reader, second_name: Path
) -> None:
    home, folder = reader.place.home, reader.place.folder
    reader.place.user(
        {
            "mcpServers": {
                "program": {"command": f"{second_name}/server"},
                "argument": {"command": "sh", "args": [f"{second_name}/server"]},
                "elsewhere": {"command": "sh", "args": [f"{home}/CLONED/server"]},
            }
        }
    )
    assert reader.load().seen.needs.keys() == {"program", "argument"}
    assert search_path(f"{second_name}/bin:/usr/bin", (folder,)) == "/usr/bin"
    environ = {"PYTHONPATH": f"{second_name}/src", "PATH": f"/bin:{second_name}"}
    kept, gone = without_folder(environ, folder, home)
    assert (kept, gone) == ({"PATH": "/bin"}, ("PATH", "PYTHONPATH"))


@pytest.mark.parametrize(
    "text",
    [
        'exec "{home}"/clone/server',
        "exec '{home}'/clone/server",
        "exec {home}/'clone'/server",
        r"exec {home}/cl\one/server",
        "curl http+unix://{encoded}%2Fsocket/mcp",
        "psql postgresql://me@{encoded}/db",
    ],
)
def test_A14_a_place_is_found_that_a_shell_puts_together_or_an_address_encodes(
    reader: Reader, text: str
) -> None:
    home = reader.place.home
    word = text.format(home=home, encoded=f"{home}/clone".replace("/", "%2F"))
    reader.place.user({"mcpServers": {"it": {"command": "sh", "args": ["-c", word]}}})
    assert reader.load().seen.needs.keys() == {"it"}


def test_A14_a_certificate_of_the_folder_counts_only_after_the_yes(reader: Reader) -> None:
    address = {"httpUrl": "https://example.com/mcp"}
    inside = {"caFile": f"{reader.place.folder}/ca.pem"}
    reader.place.user(
        {
            "mcpServers": {
                "its": {**address, "tls": inside},
                "own": {**address, "tls": {"caFile": f"{reader.place.home}/ca.pem"}},
            }
        }
    )
    needs = {ServerId("its"): "its tls names ~/clone/ca.pem"}
    assert reader.load().seen.needs == needs


def test_A02_a_link_of_the_folder_gives_servers_no_further_folder(reader: Reader) -> None:
    home, folder = reader.place.home, reader.place.folder
    for name in ("private", "shared"):
        (home / name).mkdir()
    (folder / "docs").mkdir()
    (folder / "lib").symlink_to(home / "private")
    words = ["lib", "docs", "lib/../private", "../shared", "~/clone/lib", f"{folder}/lib"]
    reader.place.user({"context": {"includeDirectories": words}})
    found = reader.load().settings
    said = found.context.said.include_directories
    assert said == (str(folder / "docs"), str(home / "shared"))
    assert len(found.problems) == 4


@pytest.mark.parametrize("value", ["system.json", "{folder}/system.json", "../clone/system.json"])
def test_A02_no_variable_makes_a_file_of_the_folder_the_systems(
    reader: Reader, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reader.place.folder)
    reader.place.project({"mcpServers": {"evil": {"command": "true"}}}, "system.json")
    for variable in ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"):
        reader.environ[variable] = value.format(folder=reader.place.folder)
    found = reader.load().settings
    assert found.servers == ()
    assert sum("outside the opened folder" in str(one) for one in found.problems) == 2


def test_A02_no_variable_makes_a_folder_of_the_folder_the_state_folder(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMDECK_HOME", ".gemdeck")
    with pytest.raises(OSError, match="no whole path"):
        state_dir()
    assert [*place.folder.iterdir()] == []


def test_A16_what_a_folder_brings_is_taken_over_only_by_its_name(run: Run) -> None:
    brought = (Path(".mcp.json"), Path(".cursor", "mcp.json"))
    for path, name in (*((one, "evil") for one in brought), (Path.home() / ".claude.json", "mine")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"mcpServers": {name: {"command": "true"}}}))
    for words in (("--all",), ("cursor", "--all")):
        result = run("import", *words)
        assert "evil" not in (Path.home() / ".gemini" / "settings.json").read_text()
        assert "What this folder brings is taken over only by name" in result.stdout
    assert run("import", "cursor", "evil", "--json").json["written"] == ["evil"]
    into_its_own = run("import", "--all", "-s", "project", "--json")
    assert into_its_own.json["written"] == ["mine", "evil"]


class _Suspended:
    """An app whose terminal an editor may have."""

    def suspend(self) -> "_Suspended":
        return self

    batch_update = suspend

    def refresh(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


async def test_A14_an_editor_starts_beside_its_file_without_a_word_of_the_folder(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = place.home / "seen"
    for path, word in ((place.home / "bin", "own"), (place.folder / "bin", "evil")):
        path.mkdir()
        editor = path / "nano"
        editor.write_text(f'#!/bin/sh\necho {word} "$PWD" "$PYTHONPATH" > {seen}\n')
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    file = place.home / "drafts" / "message.md"
    file.parent.mkdir()
    monkeypatch.setenv("PATH", f"bin:{place.folder}/bin:{place.home}/bin:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", str(place.folder))
    monkeypatch.delenv("VISUAL", raising=False)
    for named in ("", "nano", "bin/nano", "./bin/nano", f"{place.folder}/bin/nano -w"):
        monkeypatch.setenv("EDITOR", named)
        if named == "bin/nano":
            with pytest.raises(ValueError, match="bin/nano cannot be run"):
                await edit(_Suspended(), file, 1)  # type: ignore[arg-type]
            continue
        await edit(_Suspended(), file, 1)  # type: ignore[arg-type]
        assert seen.read_text() == f"own {file.parent} \n"
        seen.unlink()


async def test_A05_A22_nothing_starts_in_a_folder_that_took_the_place_of_the_trusted_one(
    place: Place,
) -> None:
    place.user({"mcpServers": {"mine": {"command": sys.executable, "args": ["server.py"]}}})
    place.script("server.py", "good")
    async with opened(place, follow=False) as deck:  # as where no file can be watched
        deck.engine.review_folder()
        await deck.answer(TrustAnswer.TRUST)
        await deck.reach("mine", ServerStatus.READY)
        place.folder.rename(place.home / "away")
        place.script("server.py", "evil")
        deck.engine.servers.restart_all()
        await eventually(lambda: deck.server("mine").failure)
        failure = deck.server("mine").failure
        assert failure is not None
        assert "is now a different folder" in failure.reason
    assert place.words() == ["good"]
