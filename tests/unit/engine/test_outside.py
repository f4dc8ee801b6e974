"""Which of the user's servers need the opened folder, and with what they start outside it."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.outside import (
    needs_folder,
)
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
    command: str, *args: str, env: Mapping[str, str] | None = None, **more: Any
) -> ServerDefinition:
    return ServerDefinition(
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
    "cat -f../x": "argument 1 names ../x",
    "cat -fserver.json": "argument 1 names server.json",
    "cat -f~/shop/x": "argument 1 names ~/shop/x",
    "cat --config=server.toml": "argument 1 names server.toml",
    "cat --config=~/shop/x": "argument 1 names ~/shop/x",
    "npx -y pkg@./local": "argument 2 names ./local",
    "npx -y server-filesystem ~/shop": "argument 3 is ~/shop",
    "npx -y server-filesystem ~/tools/deep/x": "argument 3 is ~/tools/deep/x",
    "npx -y server-filesystem ~/other/../shop": "argument 3 is ~/other/../shop",
    "npx -y server-filesystem ~/shop/out/bin": "argument 3 is ~/shop/out/bin",
    "docker run -v ~/shop:/data image": "argument 3 names ~/shop",
    "docker run -v .:/data image": "argument 3 names .",
    "docker run --mount type=bind,src=~/shop/data,dst=/data image": (
        "argument 3 names ~/shop/data"
    ),
    "docker run --env-file .env image": "argument 3 is .env",
    "sh -c 'cd ~/shop && npx x'": "argument 2 names ~/shop",
    "sh -c 'exec \"~/shop/server\"'": "argument 2 names ~/shop/server",
    "sqlite --url sqlite:///~/shop/x.db": "argument 2 names a place in it",
    "x file://~/shop/data": "argument 1 names ~/shop/data",
    "x file://localhost~/sh%6fp/data": "argument 1 names ~/shop/data",
    'x \'{"root": "~/shop"}\'': "argument 1 names ~/shop",
    "x https://example.com,~/shop/x": "argument 1 names ~/shop/x",
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
