"""Records gemini-cli's verdicts anew. It is installed for that from the npm registry.

python3 -m tests.unit.engine.approval.verdicts.record [VERSION]
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final
from unittest.mock import patch

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Turncoat, tool
from tests.support.node import NPM, node_executable
from tests.unit.engine.approval.verdicts import RECORDED, ROWS, STARTS, TOOLS, Case, cases

VERSION: Final = "0.61.0"

SCRIPT: Final = """
import { readdirSync, readFileSync } from 'node:fs';
const [, bundle, cases] = process.argv;
const module = readdirSync(bundle).find((name) => /^core-.*\\.js$/.test(name));
const core = await import(bundle + '/' + module);
const verdicts = {};
for (const one of JSON.parse(readFileSync(cases, 'utf-8'))) {
  const config = await core.createPolicyEngineConfig(
    one.settings, one.mode, undefined, one.interactive);
  const engine = new core.PolicyEngine(config);
  if (one.session)
    engine.addRule({ toolName: 'mcp_git_*', decision: 'allow', priority: 3.95 });
  verdicts[one.name] = {};
  for (const tool of one.tools) {
    const name = 'mcp_' + tool.replace('.', '_');
    const call = { name, args: { text: 'main' } };
    verdicts[one.name][tool] = (await engine.check(call, tool.split('.')[0])).decision;
  }
}
const keys = [];
const walk = (node, above) => {
  for (const [name, one] of Object.entries(node)) {
    if (one.properties) walk(one.properties, above + name + '.');
    else keys.push(above + name);
  }
};
const isSchema = (name) =>
  /^chunk-.*\\.js$/.test(name) &&
  readFileSync(bundle + '/' + name, 'utf-8').includes('  getSettingsSchema,');
const schema = await import(bundle + '/' + readdirSync(bundle).find(isSchema));
walk(schema.getSettingsSchema(), '');
process.stdout.write('\\nVERDICTS ' + JSON.stringify({ keys, verdicts }) + '\\n');
process.exit(0);
"""

SAVED: Final = '[[rule]]\ndecision = "allow"\ntoolName = "mcp_git_*"\npriority = 950\n'


def given(case: Case, folder: Path) -> dict[str, object]:
    """Return a case as the script takes it."""
    row = ROWS[case.row]
    place = folder / case.name.replace(" ", "-").replace("|", "")
    saved = SAVED if case.permission == "saved" else ""
    for name, text in (("user", row.user + saved), ("admin", row.admin)):
        (place / name).mkdir(parents=True)
        (place / name / "rules.toml").write_text(text, "utf-8")
    allowed = {"allowed": ["mcp_git_push", "mcp_git_pull"]} if case.permission == "allowed" else {}
    trusts = case.permission == "trust"
    settings = {
        **row.settings,
        **row.settings.get("security", {}),
        "tools": {**allowed, **row.settings.get("tools", {})},
        "mcpServers": {"git": {"command": "x", "trust": trusts}},
        "policyPaths": [str(place / "user")],
        "adminPolicyPaths": [str(place / "admin")],
    }
    return {
        "name": case.name,
        "settings": settings,
        "mode": "yolo" if case.permission == "yolo" else row.mode,
        "interactive": case.interactive,
        "session": case.permission == "session",
        "tools": TOOLS,
    }


async def started(command: list[str], folder: Path) -> dict[str, object]:
    """Run each start; return its exit code, requests and whether the tool was offered."""
    found: dict[str, object] = {}
    for name, start in STARTS.items():
        home = folder / name
        (home / ".gemini").mkdir(parents=True)
        server = Turncoat("notes", home)
        server.offer(tool("add_note"))
        start.write(home / ".gemini", server.entry)
        steps = [[Call([("mcp_notes_add_note", {"text": "milk"})])]] * 3
        async with FakeGemini([*steps, [Say("done")]]) as gemini:
            environ = {"PATH": os.environ["PATH"], "HOME": str(home), "GEMINI_API_KEY": KEY}
            process = await asyncio.create_subprocess_exec(
                *command,
                env={**environ, "GOOGLE_GEMINI_BASE_URL": gemini.url, **start.environ},
                cwd=home,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
            )
            code = await asyncio.wait_for(process.wait(), 120)
            offered = any("mcp_notes_add_note" in str(one.body["tools"]) for one in gemini.requests)
            found[name] = {"code": code, "requests": len(gemini.requests), "offered": offered}
    return found


def main() -> None:
    version = sys.argv[1] if len(sys.argv) > 1 else VERSION
    with tempfile.TemporaryDirectory() as name:
        node, package = str(node_executable()), f"@google/gemini-cli@{version}"
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        install = [node, str(NPM), "install", *quiet, "--prefix", name, package]
        subprocess.run(install, cwd=name, check=True)
        questions = Path(name, "cases.json")
        questions.write_text(json.dumps([given(case, Path(name)) for case in cases()]), "ascii")
        bundle = Path(name, "node_modules/@google/gemini-cli/bundle")
        done = subprocess.run(
            [node, "--input-type=module", "--eval", SCRIPT, str(bundle), str(questions)],
            env={**os.environ, "HOME": name},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        words = ("-p", "x", "--yolo", "--skip-trust", "-m", "gemini-2.5-flash")
        with patch("tests.fakes.gemini.check_request"):  # what it sends is not judged here
            starts = asyncio.run(started([node, str(bundle / "gemini.js"), *words], Path(name)))
        Path(name, ".gemini").mkdir(exist_ok=True)
        Path(name, ".gemini/settings.json").write_text('{"security": {"disableYoloMode": true}}')
        refused = subprocess.run(
            [node, str(bundle / "gemini.js"), "-p", "x", "--yolo", "--skip-trust"],
            env={**os.environ, "HOME": name, "GEMINI_API_KEY": "none"},
            cwd=name,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    said = json.loads(done.stdout.rpartition("VERDICTS ")[2])
    head = f'"version": "{version}", "exit code of --yolo": {refused.returncode}'
    keys = ",\n".join(f"  {json.dumps(key)}" for key in said["keys"])
    tables = {"starts": starts, "verdicts": said["verdicts"]}
    written = (f'"{part}": {{\n{_lines(table)}\n}}' for part, table in tables.items())
    text = ",\n".join([head, f'"keys": [\n{keys}\n]', *written])
    RECORDED.write_text(f"{{{text}}}\n", "ascii")


def _lines(table: dict[str, object]) -> str:
    return ",\n".join(f"  {json.dumps(name)}: {json.dumps(table[name])}" for name in table)


if __name__ == "__main__":
    main()
