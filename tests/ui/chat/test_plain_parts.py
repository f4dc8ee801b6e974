"""The parts of the chat that need no screen: window, history, completion, links, summaries."""

import json
from itertools import pairwise
from time import thread_time

import pytest
from textual.content import Content
from textual.geometry import Size

from tests.ui.chat.samples import completed, notes
from tui.model.catalog import PromptArgument, PromptView, ResourceView
from tui.model.servers import ServerStatus, ServerView
from tui.ui.widgets.chat.completion import MAX_COMPLETIONS, complete
from tui.ui.widgets.chat.composer import MAX_HISTORY, HistoryStorage, MessageHistory
from tui.ui.widgets.chat.tool_call import MAX_SCANNED, arguments_line, result_line
from tui.ui.widgets.key_bar import whole_parts
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.links import examine, is_plain_http, target_beside
from tui.ui.widgets.text.plain import cuts, duration


def test_history_keeps_each_new_message_once_and_the_newest_only() -> None:
    kept: list[str] = []
    history = MessageHistory(HistoryStorage(append=kept.append))
    for number in range(MAX_HISTORY + 5):
        history.add(f"message {number}")
        history.add(f"message {number}")
    assert len(kept) == MAX_HISTORY + 5
    recalled = [history.back("") for _ in range(MAX_HISTORY + 1)]
    assert recalled[-2:] == ["message 5", None]


TO = PromptArgument("to", required=True)
CC = PromptArgument("cc", required=False)


def server(status: ServerStatus = ServerStatus.READY) -> ServerView:
    prompts = (PromptView("write", arguments=(TO, CC)), PromptView("rewrite"))
    resources = tuple(ResourceView(f"notes://{n}", f"note {n}") for n in range(20))
    return notes(status, prompts=prompts, resources=resources)


def test_a_slash_at_the_start_offers_prompts_those_that_begin_with_the_word_first() -> None:
    offered = complete("/wri", [server()])
    assert offered is not None
    assert [completion.label for completion in offered.completions] == [
        "/write --to [--cc]",
        "/rewrite",
    ]


@pytest.mark.parametrize("text", ["say /wri", "/zzz", "", "a/b", "/write", "mail@x", "/write to"])
def test_other_words_are_left_alone(text: str) -> None:
    assert "/write " not in completed(text, server())
    assert complete("plain words", [server()]) is None


def test_an_at_sign_offers_resources_anywhere_by_address_or_name_up_to_ten() -> None:
    offered = complete("look at @", [server()])
    assert offered is not None
    assert offered.start == len("look at ")
    assert len(offered.completions) == MAX_COMPLETIONS
    assert completed("@note", server())[0] == "@notes:notes://0 "


def test_servers_that_are_not_ready_offer_nothing() -> None:
    assert complete("/", [server(ServerStatus.FAILED)]) == complete("/", []), "own commands alone"
    assert complete("@", [server(ServerStatus.FAILED)]) is None


@pytest.mark.parametrize(
    "url",
    [
        *("https://a.example:99999/", "https:///nohost", "https://[::1"),
        *("ssh://-oProxyCommand=x", "file:///etc/passwd", "javascript:alert(1)"),
        *("--renderer-cmd-prefix=x", "https://good.example@evil.example/"),
        *("https://a.example/\n", "https://a.example/\u202e", "https://a.example/" + "x" * 3_000),
        *("https://evil.example\\.good.example/", "https://evil.example%2f.good.example/"),
    ],
)
def test_D09_only_plain_web_addresses_may_be_opened(url: str) -> None:
    assert examine(url).refusal
    for plain in ("https://a.example/path?q=1", "http://127.0.0.1:8080/", "https://[::1]:8080/"):
        assert not examine(plain).refusal, plain


def test_D08_a_host_of_other_letters_is_shown_as_the_name_service_sees_it() -> None:
    assert examine("https://\u0430pple.example/").host.startswith("xn--")
    assert examine("https://a.example:8443/").host == "a.example:8443"


@pytest.mark.parametrize(
    "label",
    [
        *("here", "good.com→", "good.com…", "»good.com«", "good.com|x", "@good.com", "a@good.com"),
        *("localhost:8080", "see localhost", "[2001:db8::1]", "2001:db8::1", "good\u2024com"),
        *("good。com", "\uff47ood.com", "1.2/good.com", "1:2:3/good.com", "good.com/a"),
        *("(10.0.0.1)", "https://good.com→", "http://intranet", "www.good.com", "_good.com_"),
        *("see www.good.com!", "x" * 3_000 + " a.de"),
    ],
)
def test_D08_a_text_that_is_not_the_target_has_it_beside_it(label: str) -> None:
    assert target_beside(label, "https://evil.example/") == " (https://evil.example/)"


def test_D08_another_page_or_an_address_inside_an_address_is_not_the_target() -> None:
    assert target_beside("good.com", "https://evil.example/://good.com")
    assert target_beside("good.com", "https://evil.example/good.com")
    assert target_beside("good.com/a", "https://good.com/b")
    assert target_beside("1.2.3.4", "http://4.3.2.1")


@pytest.mark.parametrize(
    ("label", "url"),
    [
        *((label, "https://good.com/") for label in ("good.com", "GOOD.com:")),
        ("https://good.com/a_(b)", "https://good.com/a_(b)"),
        ("good.com/x.de", "https://good.com/x.de"),
        ("Good.com", "https://good.com/page"),
        ("good%2ecom", "https://good.com/"),
        ("[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080/x"),
        ("localhost:8080", "http://localhost:8080/a"),
        ("a.b@good.com", "mailto:a.b@good.com"),
    ],
)
def test_a_text_that_is_the_target_or_its_host_stands_alone(label: str, url: str) -> None:
    assert target_beside(label, url) == ""


@pytest.mark.parametrize(
    "part", ["a", "a.", "1.2/", "a@", "1:", ":", "://", "good.com ", "_", "[::1]"]
)
def test_a_hostile_text_of_a_link_costs_no_more_than_its_length(part: str) -> None:
    began = thread_time()
    target_beside(part * 50_000, "https://evil.example/" + "x" * 50_000)
    assert thread_time() - began < 2


def test_an_unencrypted_address_is_told_unless_it_is_this_machine() -> None:
    assert is_plain_http(examine("http://a.example/"))
    assert not is_plain_http(examine("http://127.0.0.1/"))
    assert not is_plain_http(examine("http://localhost:7777/"))
    assert not is_plain_http(examine("https://a.example/"))


def test_durations_are_written_briefly() -> None:
    assert [duration(one) for one in (0.042, 1.26, 125)] == ["42 ms", "1.3 s", "2 m 05 s"]


@pytest.mark.parametrize(
    ("line", "width", "rows"),
    [
        ("read from line 4 on", 12, ["read from ", "line 4 on"]),
        ("mcp__files__read_multiple_files", 20, ["mcp__files__read_", "multiple_files"]),
        (
            "see https://a.example/long/path.html",
            18,
            ["see https://a.", "example/long/path.", "html"],
        ),
        ("getWeatherForecastByCity", 12, ["getWeather", "ForecastBy", "City"]),
        ("  deep/in/a/folder", 10, ["  deep/in/", "a/folder"]),
        ("漢字漢字 abcd", 7, ["漢字漢", "字 abcd"]),
        ("👩\u200d💻👩\u200d💻", 3, ["👩\u200d💻", "👩\u200d💻"]),
        ("x" * 12, 5, ["xxxxx", "xxxxx", "xx"]),
        ("", 5, [""]),
    ],
)
def test_a_line_breaks_between_words_and_a_long_name_at_its_joints(
    line: str, width: int, rows: list[str]
) -> None:
    places = [0, *cuts(line, width), len(line)]
    assert [line[start:end] for start, end in pairwise(places)] == rows


async def test_a_text_is_folded_once_for_each_width_that_a_layout_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folded: list[int] = []
    make = FoldedText._make_fold

    def make_fold(view: FoldedText, width: int) -> object:
        folded.append(width)
        return make(view, width)

    monkeypatch.setattr(FoldedText, "_make_fold", make_fold)
    view = FoldedText("a\n" * 5_000)
    none = Size(0, 0)
    for width in (60, 61, 60, 61, 60):
        assert view.get_content_height(none, none, width) > 5_000 - 1
    assert len(folded) == 2


@pytest.mark.parametrize(
    ("line", "width", "shown"),
    [
        ("Tab moves · Esc refuses", 23, "Tab moves · Esc refuses"),
        ("Tab moves · Esc refuses", 22, "Tab moves"),
        ("Press a again: allow these two once", 20, "Press a again:…"),
        ("漢字漢字 · Esc", 9, "漢字漢字"),
        ("漢字漢字漢字", 6, "漢字 …"),
    ],
)
def test_no_hint_is_shown_in_part(line: str, width: int, shown: str) -> None:
    assert whole_parts(Content(line), width).plain == shown


def test_no_key_is_shown_without_what_it_does() -> None:
    line = Content("↵ open  esc close  F forget folder")
    for width in range(6, line.cell_length):
        shown = whole_parts(line, width).plain
        assert shown in {"↵ open", "↵ open  esc close"}
        assert len(shown) <= width


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, ""),
        ({"path": "long.txt", "head": 10, "all": False}, "path=long.txt  head=10  all=false"),
        ({"text": "buy milk", "empty": "", "none": None}, 'text="buy milk"  empty=""'),
        ({"content": "a\nb\nc\n", "path": "new.py"}, "path=new.py  content=3 lines"),
        (
            {"deep": {"path": "x"}, "all": [1, 2], "ids": [], "n": 1},
            "ids=[]  n=1  deep={…}  all=[…]",
        ),
        ({"long": "x" * 100, "a": 1}, f"a=1  long={'x' * 59}…"),
        ({"a": "\x1b[31mred\u202e"}, "a=red⟨U+202E⟩"),
        # Only the beginning of long ones is read.
        ({"a": 1, "content": "x" * 10 * MAX_SCANNED, "b": 2}, "a=1  content=…"),
    ],
    ids=range(8),
)
def test_arguments_stand_in_one_line_with_short_ones_first(
    arguments: dict[str, object], line: str
) -> None:
    assert arguments_line(json.dumps(arguments, indent=2)) == line


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "not json",
        '  "a": ',
        '  "a": "\\',
        "{" * 100_000,
        '  "a": ' + "[" * 9_000 + "]" * 9_000,
    ],
)
def test_arguments_that_cannot_be_read_name_nothing_false(text: str) -> None:
    assert "=" not in arguments_line(text).removeprefix("a=")


def test_a_result_stands_in_one_line() -> None:
    for result, line in (
        ("Added note 1", "Added note 1"),
        ("\n  first \nsecond\n", "2 lines · first"),
        ("a\tb\t\tc", "a b c"),
        ('{\n  "a": [\n    1\n  ]\n}', '5 lines · { "a": [ 1 ] }'),
        ("", ""),
    ):
        assert result_line(result) == line
