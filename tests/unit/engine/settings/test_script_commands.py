"""Which script of node, npm and Python a command runs, and where that is not known."""

from pathlib import Path

import pytest

from tests.unit.engine.settings.test_command_files import (
    IMPORTS_MAIN,
    PACKAGE,
    folder,
    found,
    names,
)

__all__ = ["folder"]

WORKSPACES = "what workspaces of package.json run"
MAIN = f"{PACKAGE} lib/main.js ./"
ROOT = f".npmrc {PACKAGE} pre.js dist/index.js"
INSIDE = f"{ROOT} ws/a/{PACKAGE} ws/a/run.js"
PKG = "pkg/ pkg/__init__.py pkg/__main__.py"
UV = "pyproject.toml uv.lock"
IMPORTS_MOD = "what pkg.sub.mod imports"
RUN = "what run.js imports"


@pytest.mark.parametrize(
    ("line", "watched", "unwatched"),
    [
        ("node --no-warnings {own} .", "", ""),
        ("node --conditions development .", MAIN, IMPORTS_MAIN),
        ("node -C dev .", MAIN, IMPORTS_MAIN),
        ("node --input-type module .", MAIN, IMPORTS_MAIN),
        ("node --inspect .", MAIN, IMPORTS_MAIN),
        ("node --unknown more -- .", MAIN, IMPORTS_MAIN),
        ("node --no-warnings lib/main .", f"{PACKAGE} lib/main.js", IMPORTS_MAIN),
        ("node --run start", f"{PACKAGE} pre.js dist/index.js", "what scripts of package.json run"),
        ("node start", "", "what node runs"),
        ("node --unknown flag", "", "what node runs"),
        ("deno run -A npm:server", "", "what deno runs"),
        ("npm start -w ws/a", INSIDE, RUN),
        ("npm run start --workspace=./ws/a", INSIDE, RUN),
        ("pnpm --filter ./ws/a start", f"{INSIDE} ws/a/", RUN),
        ("npm start -w ws", ROOT, WORKSPACES),
        ("npm run start --workspace a", ROOT, WORKSPACES),
        ("pnpm --filter @it/a start", ROOT, WORKSPACES),
        ("yarn workspace a start", ROOT, WORKSPACES),
        ("pnpm -r start", ROOT, WORKSPACES),
        ("npm start -w ws/none", ROOT, WORKSPACES),
        ("npm --prefix=ws/a dev", f".npmrc ws/a/{PACKAGE}", "what npm runs"),
        ("yarn serve", f".npmrc {PACKAGE}", "what yarn runs"),
        ("bun nothing", f".npmrc {PACKAGE}", "what bun runs"),
        ("bun lib/main.js", f".npmrc {PACKAGE} lib/main.js", IMPORTS_MAIN),
        ("uv run -m pkg", f"{UV} {PKG}", "what pkg imports"),
        ("uv run -mpkg", f"{UV} {PKG}", "what pkg imports"),
        ("uv run --with x --module pkg.sub.mod", f"{UV} pkg/ pkg/sub/mod.py", IMPORTS_MOD),
        ("uv --directory pkg run -m sub.mod", f"{UV} pkg/sub/ pkg/sub/mod.py", "what uv downloads"),
        ("uv run -m tool.cli", f"{UV} src/tool/ src/tool/cli.py", "what tool.cli imports"),
        ("python --check-hash-based-pycs always -m pkg", PKG, "what pkg imports"),
        ("python --unknown word -m pkg", "", "what python runs"),
    ],
)
def test_a_script_is_found_or_said_not_to_be_watched(
    folder: Path, line: str, watched: str, unwatched: str
) -> None:
    code = found(folder, line.format(own=folder.parent / "own.py"))
    assert names(code, folder) == set(watched.split())
    assert unwatched in code.unwatched or not unwatched
    if not unwatched.endswith("runs"):
        assert not any(one.endswith(" runs") for one in code.unwatched)
