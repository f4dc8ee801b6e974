"""The README and the manual, which tell of gemdeck as it is, and `gemdeck help`, which shows it."""

import itertools
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import jsonschema
import pytest

from tests.support.manual_tables import BLOCK, PAGES, README, TABLES, renewed
from tests.support.terminal import Terminal
from tests.unit.cli.conftest import Run
from tui.cli.main import main
from tui.cli.output import ExitCode
from tui.engine.settings.origins import settings_schema
from tui.engine.settings.sources.document import parse_document
from tui.manual import TOPICS, page

MAX_WORDS: Final = 1_000
"""Words of the README, as `wc -w` counts them."""

MAX_MANUAL: Final = 11_950
"""Words of all pages of the manual together; 950 of them came with the pages on the sandbox and on
other clients."""

MAX_KEYS: Final = 1_500
"""Words of the page on keys."""

MAX_LINE: Final = 81
"""Characters of a line of the manual, which no terminal wraps; rows of tables are laid out."""

TEXTS: Final = {path: path.read_text("utf-8") for path in (README, *PAGES.values())}
CODE: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN: Final = re.compile(r"`(gemdeck [^`\n]*)`")
LINK: Final = re.compile(r"\]\(([^)]+)\)")
HEAD: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)


def test_the_readme_is_a_page() -> None:
    assert len(TEXTS[README].split()) <= MAX_WORDS


def test_the_manual_is_short() -> None:
    words = {topic: len(TEXTS[path].split()) for topic, path in PAGES.items()}
    assert sum(words.values()) <= MAX_MANUAL, words
    assert words["keys"] <= MAX_KEYS


def test_the_tables_are_current() -> None:
    written = [TEXTS[path] for path in PAGES.values()]
    stands = Counter(name for text in written for _, name, _ in BLOCK.findall(text))
    assert stands == dict.fromkeys(TABLES, 1)
    renew = "run: python3 -m tests.support.manual_tables"
    assert [renewed(text) for text in written] == written, renew


def commands() -> Iterator[str]:
    """Give every command line of the README and the manual, without comments."""
    for text in TEXTS.values():
        blocks = [code for kind, code in CODE.findall(text) if kind == "sh"]
        typed = (part for block in blocks for part in re.split(r"\n| && | \| ", block))
        for line in itertools.chain(typed, SPAN.findall(CODE.sub("", text))):
            words = re.split(r" #| >", line)[0].strip()
            if words.startswith("gemdeck ") and "COMMAND" not in words:
                yield words.replace("\\|", "|")


def fault(line: str) -> str:
    """Say which command or option of a line there is not."""
    command: click.Command = main
    words = shlex.split(line.replace("…", "x"))[1:]
    while words and isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            if not words[0].startswith("-"):
                return f"there is no command {words[0]}: {line}"
            break
        command, words = found, words[1:]
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    given = itertools.takewhile(lambda word: word not in {"--", "uvx", "npx"}, words)
    named = {word.partition("=")[0] for word in given if re.match(r"--?[a-z]", word)}
    unknown = named - options - {"--help", "--version", "-y"}
    return f"there is no {unknown}: {line}" if unknown else ""


def test_every_command_is_there_with_its_options() -> None:
    lines = sorted(set(commands()))
    assert len(lines) > 50
    assert [*filter(None, map(fault, lines))] == []
    assert fault("gemdeck mcp lst") == "there is no command lst: gemdeck mcp lst"
    assert fault("gemdeck mcp list --jsn") == "there is no {'--jsn'}: gemdeck mcp list --jsn"


def test_every_example_of_settings_is_one() -> None:
    examples = [
        code for text in TEXTS.values() for kind, code in CODE.findall(text) if kind == "jsonc"
    ]
    assert len(examples) >= 5
    rules = settings_schema()
    for example in examples:
        jsonschema.validate(dict(parse_document(example).content), rules)


def anchors(text: str) -> set[str]:
    """Give the names by which the heads of a page are linked."""
    heads = (re.sub(r"[^\w\- ]", "", head.lower()) for head in HEAD.findall(CODE.sub("", text)))
    return {head.replace(" ", "-") for head in heads}


def test_every_link_leads_somewhere() -> None:
    wrong = []
    for path, text in TEXTS.items():
        for link in LINK.findall(CODE.sub("", text)):
            name, _, head = link.partition("#")
            target = (path.parent / name).resolve()
            if not target.exists() or (head and head not in anchors(target.read_text("utf-8"))):
                wrong.append(f"{path.name}: {link}")
    assert wrong == []
    linked = set(LINK.findall(TEXTS[README]))
    assert {f"tui/help/{topic}.md" for topic in TOPICS} <= linked


def test_a_page_begins_with_what_it_is_about_and_fits_a_terminal() -> None:
    for path in PAGES.values():
        title, summary, *lines = filter(None, TEXTS[path].splitlines())
        assert (title[:2], summary[-1]) == ("# ", "."), path
        assert [line for line in lines if len(line) > MAX_LINE and line[0] != "|"] == [], path


def test_help_prints_pages_and_finds_words(run: Run) -> None:
    listed = run("help", code=0)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [*TOPICS]
    shown = run("help", "Sign-In").stdout
    assert shown.startswith("# Signing in\n")
    assert shown.rstrip() == page("sign-in").rstrip()
    keys = run("help", "keys").stdout
    assert re.search(r"^  deck\.servers +F2$", keys, re.MULTILINE)
    assert "<!--" not in keys
    found = run("help", "client_credentials")
    assert found.code == 0
    assert found.stdout.startswith("## Your own client\n"), "the only section that has the word"
    lazy = run("help", "lazy")
    assert re.match("servers +Lazy servers\n", lazy.stdout)
    assert 'gemdeck help "Lazy servers"' in lazy.stderr
    assert run("help", "Externally-man").stdout.startswith("## Install\n"), "in any case, and parts"


@pytest.mark.parametrize(
    ("title", "begins"),
    [
        ("Lazy servers", "## Lazy servers\n"),
        ("running tools yourself", "## Running tools yourself\n"),
        ("Another service", "### Another service\n"),
        ("Command line", "# Command line\n"),
        ("key-bindings", "## Key bindings\n"),
    ],
)
def test_help_prints_a_section_by_its_title(run: Run, title: str, begins: str) -> None:
    shown = run("help", title, code=0).stdout
    assert shown.startswith(begins)
    whole = title == "Command line"
    assert (len(HEAD.findall(CODE.sub("", shown))) > 1) == whole


def test_what_the_manual_does_not_have_is_said_with_what_it_has(run: Run) -> None:
    missed = run("help", "setings", code=ExitCode.USAGE)
    assert "Did you mean settings?" in missed.stderr
    assert "troubleshooting" in missed.stderr
    assert missed.stdout == ""


@pytest.mark.slow
def test_a_terminal_gets_a_page_as_plain_text(tmp_path: Path) -> None:
    environment: dict[str, Any] = {"PAGER": "cat", "GEMDECK_HOME": str(tmp_path)}
    command = (sys.executable, "-m", "tui", "help", "start")
    with Terminal(command, columns=80, rows=200, env=environment, cwd=README.parent) as terminal:
        terminal.wait_for_exit()
        shown = terminal.screen
    lines = shown.splitlines()
    assert lines[0] == "Start"
    assert "    python3 -m venv --without-pip .venv" in lines
    assert any(re.match(r"`openai` +`OPENAI_API_KEY`, sent to", line) for line in lines)
    assert "Vertex AI: set `GOOGLE_CLOUD_PROJECT`" in shown
    assert not re.search(r"^\||```|\]\(|<!--|\*\*", shown, re.MULTILINE)
