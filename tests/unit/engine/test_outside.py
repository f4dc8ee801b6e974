"""Which of the user's servers need the opened folder, and with what they start outside it."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World
from tests.support.definitions import define_server
from tests.support.waiting import PATIENCE
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.outside import Outside, needs_folder, outside_places, without_folder
from tui.engine.definitions.programs import FULL_PATH, shield_path
from tui.model.servers import Origin, ServerId, Transport


@pytest.fixture
def shop(world: World) -> Path:
    """Give an opened folder that holds everything by the names that packages and folders have."""
    folder = world.home / "shop"
    names = "@scope/name mcp-server-git owner/repo ghcr.io/owner/image data server http: -y 0"
    for name in names.split():
        (folder / name).mkdir(parents=True)
    (world.home / "link").symlink_to(folder)
    (world.home / "tools").mkdir()
    (world.home / "tools" / "deep").symlink_to(folder / "data")
    (folder / "out").symlink_to("/usr")
    return folder


def server(
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    **more: Any,  # noqa: ANN401
) -> ServerDefinition:
    return define_server(
        ServerId("s"),
        Origin.USER,
        Transport.STDIO,
        command=command,
        args=args,
        env=env or {},
        **{"program": f"/usr/bin/{command}" if "/" not in command else "", **more},
    )


QUIET = """
npx -y @scope/name
npx -y @modelcontextprotocol/server-everything@2025.9.1 stdio
npx -y chart.js
npx --yes owner/repo
bunx pkg@1.2.3
uvx mcp-server-git
uvx --from git+https://github.com/owner/repo.git@main name
uvx --from "pkg[extra]>=1.2,<2" name
docker run -i --rm -e TOKEN ghcr.io/owner/image:1.2.3
docker run -i --rm -v ~/other:/data -v /var/run/docker.sock:/var/run/docker.sock image
node ~/servers/index.js --port=3000 --flag
python -m server data
python -m mcp_server --log-level info --db postgresql://u@host/db
/usr/bin/python3 /opt/server/main.py
npx -y server-filesystem ~
npx -y server-filesystem ~/shopping /usr/share
npx mcp-remote https://example.com/a/../b/./server.py?x=../y --header X:1
sh -c "exec npx -y @scope/name"
uv --directory ~/servers/weather run weather
node --import tsx --max-old-space-size=512
git clone git@github.com:owner/repo.git
'npx -y @scope/name'
'"/opt/server/run" --flag'
"""

NEEDING = {
    "./server": "its command is ./server",
    "tools/server": "its command is tools/server",
    "../server": "its command is ../server",
    "~/shop/server": "its command is ~/shop/server",
    "~/link/server": "its command is ~/link/server",
    "python ./server.py": "argument 1 is ./server.py",
    "python server.py": "argument 1 is server.py",
    "node dist/index.js": "argument 1 is dist/index.js",
    "npx -y ./server.js": "argument 2 is ./server.js",
    "npx tsx server.ts": "argument 2 is server.ts",
    "uv run server.py": "argument 2 is server.py",
    "uv --directory . run x": "argument 2 is .",
    "java -jar target/server.jar": "argument 2 is target/server.jar",
    "cat -f../x": "argument 1 refers to ../x",
    "cat -fserver.json": "argument 1 refers to server.json",
    "cat -f~/shop/x": "argument 1 refers to ~/shop/x",
    "cat --config=server.toml": "argument 1 refers to server.toml",
    "cat --config=~/shop/x": "argument 1 refers to ~/shop/x",
    "npx -y pkg@./local": "argument 2 refers to ./local",
    "npx -y server-filesystem ~/shop": "argument 3 is ~/shop",
    "npx -y server-filesystem ~/tools/deep/x": "argument 3 is ~/tools/deep/x",
    "npx -y server-filesystem ~/other/../shop": "argument 3 is ~/other/../shop",
    "npx -y server-filesystem ~/shop/out/bin": "argument 3 is ~/shop/out/bin",
    "docker run -v ~/shop:/data image": "argument 3 refers to ~/shop",
    "docker run -v .:/data image": "argument 3 refers to .",
    "docker run --mount type=bind,src=~/shop/data,dst=/data image": (
        "argument 3 refers to ~/shop/data"
    ),
    "docker run --env-file .env image": "argument 3 is .env",
    "sh -c 'cd ~/shop && npx x'": "argument 2 refers to ~/shop",
    "sh -c 'exec \"~/shop/server\"'": "argument 2 refers to ~/shop/server",
    "sqlite --url sqlite:///~/shop/x.db": "argument 2 refers to ~/shop/x.db",
    "x postgresql://h/db?sslrootcert=~/shop/ca.pem": "argument 1 refers to a path in it",
    "x file://~/shop/data": "argument 1 refers to ~/shop/data",
    "x file://localhost~/sh%6fp/data": "argument 1 refers to ~/shop/data",
    'x \'{"root": "~/shop"}\'': "argument 1 refers to ~/shop",
    "x https://example.com,~/shop/x": "argument 1 refers to ~/shop/x",
}


def split(line: str, home: Path) -> list[str]:
    """Split a line, with the home in the place of a tilde that stands anywhere but at the front."""
    return [word[0] + word[1:].replace("~", str(home)) for word in shlex.split(line)]


@pytest.mark.parametrize("line", QUIET.strip().splitlines())
def test_packages_and_what_lies_elsewhere_need_no_folder(line: str, shop: Path) -> None:
    home = shop.parent
    for words in (split(line, home), [w.replace("~", str(home)) for w in shlex.split(line)]):
        assert needs_folder(server(*words), shop, home) == "", words


@pytest.mark.parametrize(("line", "reason"), NEEDING.items())
def test_A14_what_names_a_place_in_the_folder_needs_it(line: str, reason: str, shop: Path) -> None:
    found = needs_folder(server(*split(line, shop.parent)), shop, shop.parent)
    assert found == reason


def entry(**written: object) -> dict[str, Any]:
    return {"written": written}


def test_A14_a_variable_or_a_working_folder_may_need_the_folder(shop: Path) -> None:
    home, sub = shop.parent, shop / "sub"
    for env, why in {
        ("DATA", f"{shop}/data"): "the variable DATA refers to ~/shop/data",
        ("DATA", f"{home}/link/../link/x"): "the variable DATA refers to ~/link/../link/x",
        ("API_TOKEN", f"{shop}/tok"): "the variable API_TOKEN refers to a path in it",
        ("DATA", "./data"): "the variable DATA refers to ./data",
        ("PYTHONPATH", "src"): "the variable PYTHONPATH refers to src",
        ("PATH", f"/usr/bin:{shop}/.venv/bin"): "the variable PATH refers to ~/shop/.venv/bin",
        ("PYTHONPATH", ""): "",
        ("PYTHONPATH", ":/opt/lib:"): "",
        ("CONFIG", "config.json"): "",
        ("API_PATH", "v1/users"): "",
        ("ROOT", str(home)): "",
        ("URL", "https://example.com/~/shop/./x"): "",
        ("IMAGE", "owner/repo"): "",
    }.items():
        assert needs_folder(server("npx", env=dict([env])), shop, home) == why, env
    for more, why in [
        ({"cwd": sub, **entry(cwd="sub")}, "its cwd is relative"),
        ({"cwd": Path("sub")}, "its cwd is relative"),
        ({"cwd": sub, **entry(cwd=str(sub))}, "its cwd is ~/shop/sub"),
        ({"cwd": home / "link", **entry(cwd="~/link")}, "its cwd is ~/link"),
        ({"cwd": home / "tools", **entry(cwd="~/tools")}, ""),
        (entry(cwd="${PWD}"), "it uses ${PWD}"),
        (entry(args=["x", "--root=$PWD"]), "it uses ${PWD}"),
        (entry(env={"A": "${PWD:-/x}"}), "it uses ${PWD}"),
        (entry(headersCommand=["p", "$PWD/x"]), "it uses ${PWD}"),
        (entry(args=["$PWDX", "${PWDX}"], description="$PWD"), ""),
    ]:
        assert needs_folder(server("npx", **more), shop, home) == why, more


def test_A14_relative_words_count_from_where_the_entry_starts(shop: Path) -> None:
    home = shop.parent
    for words, cwd, why in [
        (("node", "./index.js", "src/x.py", "."), home / "tools", ""),
        (("node", "../shop/x.js"), home / "tools", "argument 1 is ../shop/x.js"),
        (("node", "shop/x.js"), home, "argument 1 is shop/x.js"),
        (("node", "deep/x.js"), home / "tools", "argument 1 is deep/x.js"),
        (("../shop/run",), home / "tools", "its command is ../shop/run"),
        (("./run",), home / "tools", ""),
    ]:
        assert needs_folder(server(*words, cwd=cwd), shop, home) == why, words


def test_A13_a_program_that_lies_in_the_folder_needs_it_by_whatever_name(shop: Path) -> None:
    home = shop.parent
    for program, why in {
        f"{shop}/.venv/bin/s": "its command is ~/shop/.venv/bin/s",
        f"{home}/tools/deep": "its command is ~/tools/deep",
        "/usr/bin/s": "",
    }.items():
        assert needs_folder(server("s", program=program), shop, home) == why


def test_in_the_home_whole_paths_are_the_users_own(shop: Path) -> None:
    home = shop.parent
    for opened in (home, home.parent, Path("/")):
        for words in (("node", f"{shop}/x.js"), (f"{home}/tools/run",), ("npx", "x", str(home))):
            assert needs_folder(server(*words), opened, home) == "", words
        for word in ("./x.js", "x.py", "."):
            assert needs_folder(server("node", word), opened, home) == f"argument 1 is {word}"
        environ = {"PATH": f"{home}/bin:bin:/bin", "HOME": str(home), "A": f"{shop}", "B": "./x"}
        kept, names = without_folder(environ, opened, home)
        assert kept == {"PATH": f"{home}/bin:/bin", "HOME": str(home), "A": str(shop)}
        assert names == ("B", "PATH")


def test_no_secret_gets_into_the_reason(shop: Path) -> None:
    one = server("x", f"--token={shop}/s3cret", f"--db={shop}/pass", secrets=frozenset({"pass"}))
    assert needs_folder(one, shop, shop.parent) == "argument 1 refers to a path in it"
    one = server("x", "y", env={"DATA": f"{shop}/pass"}, secrets=frozenset({f"{shop}/pass"}))
    assert needs_folder(one, shop, shop.parent) == "the variable DATA refers to a path in it"


def test_a_folder_with_blanks_is_found_in_every_word(world: World) -> None:
    home, folder = world.home, world.home / "my, own (shop)"
    folder.mkdir()
    (home / "a link").symlink_to(folder)
    for word in (f"{folder}:/data", f"src={folder},dst=/x", f"{home}/a link/x", f"-f{folder}/x"):
        assert needs_folder(server("x", word), folder, home), word
    assert not needs_folder(server("x", f"{home}/my, own", "own", "a link"), folder, home)


LONG = {"many": "/a b:" * 26_000, "deep": "/a" * 65_000, "up": "/a/.." * 700, "~": "~:" * 65_000}


@pytest.mark.parametrize("kind", LONG)
def test_E_of_a_long_value_no_more_is_looked_at_than_its_length(
    shop: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(os.path, "islink", looked.append)
    without_folder({"X": LONG[kind]}, shop, shop.parent)
    assert len(looked) <= len(LONG[kind])


def test_the_path_that_was_cleaned_before_is_named(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    monkeypatch.setenv("PATH", f"{shop}/bin:/usr/bin")
    monkeypatch.setenv(FULL_PATH, "")
    shield_path()
    assert os.environ["PATH"] == "/usr/bin"
    kept, names = without_folder({"PATH": "/usr/bin", FULL_PATH: os.environ[FULL_PATH]}, shop, shop)
    assert (kept["PATH"], names) == ("/usr/bin", ())  # opened is the home: nothing is guarded there
    environ = {"PATH": "/usr/bin", FULL_PATH: os.environ[FULL_PATH]}
    assert without_folder(environ, shop, shop.parent)[1] == ("PATH",)


def test_start_folders_lie_in_no_opened_folder(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, runtime, link = world.home, tmp_path / "run", tmp_path / "link"
    runtime.mkdir(mode=0o700)
    link.symlink_to(home)
    state = home / ".local" / "state"
    usual, other = state / "outside", runtime / "gemdeck" / "outside"
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert outside_places(None, home / "shop", home) == ()
    assert outside_places(state, home / "shop", home) == (usual,)
    assert outside_places(state, home, home) == outside_places(state, link, home) == (usual,)
    for opened in (home / ".local", state, usual, Path("/"), home.parent):
        assert outside_places(state, opened, home) == (), opened
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert outside_places(state, home / "shop", home) == (usual, other)
    assert outside_places(state, home, home) == outside_places(state, state, home) == (other,)
    assert outside_places(state, tmp_path, home) == (
        () if home.is_relative_to(tmp_path) else (usual,)
    )
    for value in ("run", "", f"{tmp_path}/link"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        assert outside_places(state, state, home) == ()
    runtime.chmod(0o750)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert outside_places(state, state, home) == ()


KILLED = """
import os, pathlib, signal, sys
from tui.engine.definitions.outside import Outside
folder, home, state = map(pathlib.Path, sys.argv[1:])
outside = Outside(folder, home, state)
made = outside.start_folder("s")
(made / "left").mkdir()
(made / "link").symlink_to(folder)
print(made, flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_J_two_gemdecks_share_no_start_folder_and_what_a_killed_one_left_goes(
    shop: Path, world: World
) -> None:
    place = world.state / "outside"
    words = [sys.executable, "-c", KILLED, str(shop), str(world.home), str(world.state)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        link = place / ".gemdeck-link.tmp"
        link.symlink_to(shop)
        for old in (theirs.parent, link):
            os.utime(old, (0, 0), follow_symlinks=False)
        ours = Outside(shop, world.home, world.state)
        mine = [ours.start_folder(name) for name in ("s", "s", "../../x")]
        assert len({theirs, *mine}) == 4
        for one in mine:
            assert one.parent == mine[0].parent != theirs.parent
            assert (one.stat().st_mode & 0o777, [*one.iterdir()]) == (0o700, [])
        assert (theirs / "left").is_dir()
        assert not link.is_symlink()
        (mine[0] / "link").symlink_to(shop)
        ours.drop(mine[0])
        ours.drop(shop)
        assert not mine[0].exists()
        other.stdin.close()
        assert other.wait(PATIENCE) == -signal.SIGKILL
    third = Outside(shop, world.home, world.state)
    third.start_folder("s")
    assert not theirs.exists()
    assert mine[1].exists()
    ours.close()
    third.close()
    assert not [*place.iterdir()]
    assert (shop / "data").is_dir()


def test_J_what_lies_at_the_place_of_start_folders_is_left_alone(shop: Path, world: World) -> None:
    place = world.state / "outside"
    for make in (lambda: place.symlink_to(shop), lambda: place.write_text("x")):
        world.state.mkdir(exist_ok=True)
        make()
        before = sorted(shop.iterdir())
        outside = Outside(shop, world.home, world.state)
        with pytest.raises(OSError, match=r"no(t a)? private folder|exists"):
            outside.start_folder("s")
        assert sorted(shop.iterdir()) == before
        place.unlink()
    with pytest.raises(OSError, match="no private folder"):
        Outside(shop, world.home, None).start_folder("s")
