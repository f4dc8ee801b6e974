"""Arguments laid out to be read: complete, and nothing passes for something else."""

from collections.abc import Mapping
from dataclasses import replace

from textual.content import Content
from textual.geometry import Size
from textual.selection import SELECT_ALL

from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.ui.consent.samples import asked
from tests.ui.hands import confirming
from tui.model.consent import Choice, Decision
from tui.model.requests import FileChange, TextEdit
from tui.ui.questions.calls.argument_lines import MAX_REVIEWED, ArgumentsText, argument_lines
from tui.ui.themes import DARK, SIXTEEN
from tui.ui.widgets.text.difference import marked
from tui.ui.widgets.text.folded_text import FoldedText


class Unmounted(ArgumentsText):
    """Lays text out without a screen."""

    def scroll_home(self, **_: object) -> None:
        """Stay, for there is nothing to scroll in."""


def rows(
    values: Mapping[str, object], change: FileChange | None = None, width: int = 60
) -> list[str]:
    """Lay arguments out as wide as this, and select all of it."""
    view = Unmounted()
    view.show_lines(argument_lines(values, change))
    empty = Size(0, 0)
    view.get_content_height(empty, empty, width + view.scrollbar_size_vertical + FoldedText.AIR)
    selected = view.get_selection(SELECT_ALL)
    assert selected is not None
    return [row.rstrip() for row in selected[0].split("\n")]


def test_a_long_value_is_selected_as_one_line_without_the_cells_of_its_label() -> None:
    url = "https://login.example.com/authorize?client_id=gemdeck&state=" + "abcdef0123" * 8
    assert rows({"url": url}, width=30) == [f"url  {url}"]


def test_short_arguments_come_first_and_texts_line_by_line() -> None:
    values = {
        "content": "import os\n\nprint()\n",
        "path": "new.py",
        "mode": 420,
        "tags": ["a", "b"],
    }
    assert rows(values) == [
        "path     new.py",
        "mode     420",
        'tags     ["a", "b"]',
        "content  3 lines",
        "1  import os",
        "2",
        "3  print()",
    ]


def test_a_text_that_looks_like_another_value_stands_in_quotes() -> None:
    for value in ("true", "12", "null", "", " a", "[1]", '"x"', "{}"):
        (row,) = rows({"x": value})
        assert row.startswith('x  "'), value


def test_what_is_hidden_is_drawn() -> None:
    text = "a\u200bb\u202ec\td\u00a0e\x1b[31m\r\n" + " " * 50 + "x" + " " * 9 + "y\n"
    shown = rows({"text": text}, width=200)
    assert shown[1] == "1  a\\u200bb\\u202ec→   d\\u00a0e\\u001b[31m\\r"
    assert shown[2] == f"2  {'·' * 50}x{'·' * 9}y"


def test_blank_lines_that_push_text_out_of_sight_are_counted() -> None:
    assert rows({"text": "a\n" + "\n" * 4_000 + "rm -rf /"}) == [
        "text  4,002 lines, no line break at the end",
        "   1  a",
        "      4,000 blank lines, 2 to 4001",
        "4002  rm -rf /",
    ]


def test_what_is_sent_never_stands_where_names_and_numbers_do() -> None:
    for row in rows({"a": "x" * 56 + "path  safe.txt", "text": "y" * 300 + "\n9  z"})[1:]:
        assert row.startswith((" ", "text  ", "1  ", "2  ")), row


def test_a_long_name_is_told_in_full() -> None:
    name = "n" * 40 + "-end"
    told = "".join(rows({name: 1})).replace(" ", "")
    assert told.count(name) == 1
    assert told.endswith("-end1")


def test_texts_inside_of_lists_and_objects_are_laid_out_by_their_path() -> None:
    values = {"edits": [{"old": "a\nb", "new": "c", "x y": "d"}, {"old": "e"}]}
    assert rows(values, width=100) == [
        "edits[0].new     c",
        'edits[0]["x y"]  d',
        'edits[1]         {"old": "e"}',
        "edits[0].old     2 lines, no line break at the end",
        "1  a",
        "2  b",
    ]


def test_the_difference_stands_between_the_lines() -> None:
    signs = ((" ", "a"), ("-", "b"), ("+", "c"), (" ", "d"))
    change = FileChange("path", "text", "overwrites · +1 -1", signs)
    assert rows({"mode": 1, "path": "f.txt", "text": "a\nc\nd\n"}, change) == [
        "path  f.txt   overwrites · +1 -1",
        "mode  1",
        "text  3 lines",
        "1    a",
        "2 -  b",
        "2 +  c",
        "3    d",
    ]


def test_an_edit_is_a_difference_and_what_else_it_says_stays() -> None:
    lines = (("-", "import os"), ("+", "import sys"), (" ", ""))
    known = TextEdit("edits[0]", ("old", "new"), "line 3", 3, lines)
    unknown = TextEdit("edits[1]", ("old", "new"), "", 0, (("-", "a\u200b"), ("+", "")))
    change = FileChange("path", "", "edits · +2 -2", (), (known, unknown))
    first = {"old": "import os\n", "new": "import sys\n", "all": True}
    values = {"edits": [first, {"old": "a\u200b", "new": ""}], "path": "f.py"}
    assert rows(values, change) == [
        "path          f.py   edits · +2 -2",
        "edits[0].all  true",
        "edits[0]      line 3",
        "3 -  import os",
        "3 +  import sys",
        "4",
        "edits[1]",
        "  -  a\\u200b",
        "  +",
    ]
    whole = TextEdit("", ("old", "new"), "", 0, (("-", "a"), ("+", "b")))
    change = FileChange("", "", "edits · +1 -1", (), (whole,))
    assert rows({"old": "a", "new": "b"}, change) == ["old → new", " -  a", " +  b"]


def test_an_edit_that_is_not_what_would_be_sent_is_not_shown_as_one() -> None:
    lines = (("-", "a"), ("+", "b"))
    change = FileChange("", "", "", (), (TextEdit("", ("old", "new"), "", 0, lines),))
    for values in ({"old": "a", "new": "b\nc"}, {"old": "", "new": "b"}, {"old": "a"}):
        assert rows(values, change) == rows(values)


def changing(before: list[str], after: list[str], at: int) -> FileChange:
    """Say that the one line at this place becomes another one."""
    signs = [(" ", "")] * len(after)
    signs[at : at + 1] = [("-", before[at]), ("+", "")]
    return FileChange("path", "text", "overwrites · +1 -1", tuple(signs))


def test_lines_that_did_not_change_are_shown_as_well_since_they_are_sent() -> None:
    after = [f"line {number}" for number in range(1, 41)]
    change = changing([*after[:29], "old", *after[30:]], after, 29)
    shown = rows({"path": "f.txt", "text": "\n".join(after) + "\n"}, change)[2:]
    unchanged = [f"{number:2}    line {number}" for number in range(1, 41)]
    assert shown == [*unchanged[:29], "30 -  old", "30 +  line 30", *unchanged[30:]]


def words_of(line: Content) -> list[str]:
    """The words that are marked in a line."""
    return [line.plain[a:b] for a, b, style in line.spans if str(style).endswith("-word")]


def test_changed_words_are_marked_in_lines_that_are_alike() -> None:
    for old, new, gone, come in (
        ("def f(name: str):", "def f(names: list[str]):", ["name"], ["names", "list[", "]"]),
        ("same before x", "same before", [" x"], []),
        ("all of it", "nothing alike", [], []),
        ("y" * 3_000, "y" * 3_000 + "z", [], []),
        (f"go {'a b ' * 80}x", f"go {'c d ' * 80}x", [], []),
    ):
        (_, one), (_, other) = marked([("-", Content(old)), ("+", Content(new))])
        assert (one.plain, other.plain) == (old, new)
        assert (words_of(one), words_of(other)) == (gone, come), old[:20]


async def test_a_difference_stands_on_its_ground_in_colours_and_by_its_signs_without() -> None:
    before, after = ["keep", "def f(name):"], ["keep", "def f(names):"]
    asking = replace(asked({"path": "f.txt", "text": "\n".join(after)}))
    asking = replace(asking, change=changing(before, after, 1))
    async with confirming(asking) as hands:
        for theme, grounds in ((DARK, 4), (SIXTEEN, 1)):
            hands.app.register_theme(theme)
            hands.app.theme = theme.name
            await hands.pilot.pause()
            view = hands.modal.arguments
            lines = [view.render_line(y) for y in (3, 4)]
            assert [line.text.split()[:2] for line in lines] == [["2", "-"], ["2", "+"]]
            parts = [(part.text, part.style) for line in lines for part in line if part.style]
            assert len({style.bgcolor for _, style in parts}) == grounds, theme.name
            marks = {text for text, style in parts if style.underline}
            assert marks == (set() if grounds > 1 else {"name", "names"})


async def test_a_difference_of_hostile_lines_does_not_hold_up_the_loop(
    loop_watch: LoopWatch,
) -> None:
    async with confirming(asked({"a": "b"})) as hands:
        for line in ("a" * 1_900, "a b " * 470, "漢" * 1_900, "a, " * 600):
            before = [f"{number}{line}" for number in range(9)]
            after = [f"{line}{number}" for number in range(9)]
            signs = (*(("-", one) for one in before), *(("+", "") for _ in after))
            hostile = asked({"path": "f.txt", "text": "\n".join(after)})
            loop_watch.clear()
            change = FileChange("path", "text", "overwrites", signs)
            await hands.ask_next(replace(hostile, change=change), armed=False)
            loop_watch.assert_smooth(HANG_SECONDS)


def test_a_difference_that_is_not_of_this_text_is_left_out() -> None:
    change = FileChange("path", "text", "overwrites · +1 -1", ((" ", "a"),))
    assert "1  a" in rows({"path": "f.txt", "text": "a\nc\n"}, change)


async def test_arguments_in_either_view_count_as_read() -> None:
    async with confirming(asked({"text": "line\n" * 60}), armed=True) as hands:
        # Either view counts as read.
        assert "  1  line" in hands.text
        await hands.press("o")
        assert hands.decisions == []
        await hands.press("end", "o")
        assert hands.decisions == [Decision(Choice.ONCE)]
        await hands.ask_next(asked({"text": "line\n" * 60}))
        await hands.press("j")
        assert '"text": "line\\nline' in hands.text
        await hands.press("o")
        assert hands.decisions == [Decision(Choice.ONCE)]
        await hands.ask_next(asked({"text": "line\n" * 60}))
        await hands.press("j", "escape")
        assert "  1  line" in hands.text, "Esc leaves the JSON first"
        assert hands.decisions == []
        await hands.press("escape")
        assert hands.decisions == [Decision(Choice.DENY)]
        # Arguments too long to be laid out are json.
        await hands.ask_next(asked({"text": "x\n" * MAX_REVIEWED}))
        assert '"text": "x\\nx' in hands.text


async def test_hostile_code_does_not_hold_up_the_loop(loop_watch: LoopWatch) -> None:
    async with confirming(asked({"path": "a.md", "text": "x = 1\n"})) as hands:
        for suffix in ("java", "yaml", "md"):
            await hands.ask_next(asked({"path": f"a.{suffix}", "text": "x = 1\n"}), armed=False)
            loop_watch.clear()
            for piece in ("\n", "/*\n", "word ", "*"):
                text = piece * (19_000 // len(piece)) + "\n"
                hostile = asked({"path": f"a.{suffix}", "text": text})
                await hands.ask_next(hostile, armed=False)
                loop_watch.assert_smooth(HANG_SECONDS)
