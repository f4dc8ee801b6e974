"""What a command is, and which command of the screen was typed."""

import pytest

from tui.model.input.own_commands import (
    OWN_COMMANDS,
    Takes,
    TypedCommand,
    command_words,
    find_own_command,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/poem", ("poem", "")),
        ('  /poem --title="Gemini CLI" ', ("poem", '--title="Gemini CLI"')),
        *(("/srv.poem:2-b_c one", ("srv.poem:2-b_c", "one")), ("/föö", ("föö", ""))),
        *(("/詩 x  y", ("詩", "x  y")), ("/poem\nof two lines", ("", ""))),
        *(("/poem of\ntwo lines", ("", "")), ("/slow! x", ("", "")), ("/foo, x", ("", ""))),
        *(("/?", ("", "")), ("/etc/hosts is a file", ("", "")), ("/usr/ is a folder", ("", ""))),
        *(("// a comment", ("", "")), ("//review", ("", "")), ("/* a comment */", ("", ""))),
        *(("/", ("", "")), ("/ poem", ("", "")), ("", ("", "")), ("see /poem", ("", ""))),
    ],
)
def test_a_command_is_one_line_whose_first_word_is_a_slash_with_a_name(
    text: str, words: tuple[str, str]
) -> None:
    assert command_words(text) == words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/help", TypedCommand(("help",), Takes.NOTHING)),
        ("/help me", TypedCommand(("help",), Takes.NOTHING, "me")),
        ("/theme  two words ", TypedCommand(("theme",), Takes.THEME, "two words")),
        ("/mcp", TypedCommand(("mcp", "list"), Takes.SOME_SERVERS)),
        ("/mcp no tes", TypedCommand(("mcp", "list"), Takes.SOME_SERVERS, "no tes")),
        ("/mcp restart  my notes", TypedCommand(("mcp", "restart"), Takes.SERVER, "my notes")),
        ("/directory", TypedCommand(("directory", "show"), Takes.NOTHING)),
        ("/directory add ~/x", TypedCommand(("directory", "add"), Takes.FOLDER, "~/x")),
        ("/Help", None),
        ("/helper", None),
        ("/help\nme", None),
        ("help", None),
    ],
)
def test_the_command_of_the_screen_is_found_with_its_part(
    text: str, found: TypedCommand | None
) -> None:
    assert find_own_command(text) == found


def test_how_a_command_is_typed() -> None:
    assert OWN_COMMANDS["mcp"].usage == "mcp …"
    assert [OWN_COMMANDS[name].usage for name in ("theme", "quit")] == ["theme [THEME]", "quit"]
    typed = find_own_command("/mcp restart")
    assert typed is not None
    assert typed.usage == "/mcp restart SERVER"
