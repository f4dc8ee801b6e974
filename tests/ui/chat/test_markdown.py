"""Markdown as blocks: what is drawn, what is refused, and what it costs."""

from time import thread_time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Offset
from textual.selection import SELECT_ALL, Selection
from textual.style import Style

from tui.model.chat import EntryId, ModelText
from tui.ui.widgets.chat.entries import (
    MAX_MARKDOWN,
    MAX_MARKDOWN_LINES,
    MAX_SHOWN_LINES,
    GrowingMarkdown,
    ModelEntry,
    markdown_part,
    shown_part,
)
from tui.ui.widgets.text.blocks import BULLETS, COPY, MIN_COLUMN, share_width, stack
from tui.ui.widgets.text.links import links_in
from tui.ui.widgets.text.markdown import MAX_BRACKETS, code_in, parse_markdown
from tui.ui.widgets.text.plain import written


def drawn(text: str, width: int = 60) -> list[str]:
    return [line.plain.rstrip() for line in stack(parse_markdown(text).blocks, width)]


def test_a_list_hangs_its_text_beside_the_bullet_and_nests() -> None:
    lines = drawn("- a line that is long enough to wrap\n  - inner\n- last", 20)
    assert lines == [
        f"{BULLETS[0]} a line that is",
        "  long enough to",
        "  wrap",
        f"  {BULLETS[1]} inner",
        f"{BULLETS[0]} last",
    ]


def test_a_numbered_list_counts_on_from_its_first_number() -> None:
    assert drawn("9. nine\n9. ten") == [" 9. nine", "10. ten"]


def test_a_table_aligns_its_columns_and_sets_numbers_to_the_right() -> None:
    lines = drawn("| name | count |\n|---|---:|\n| a | 5 |\n| longer | 12 |")
    assert lines == ["name    count", "──────  ─────", "a           5", "longer     12"]


def test_a_table_that_cannot_fit_becomes_records() -> None:
    text = "|" + "|".join("abcdef") + "|\n" + "|-" * 6 + "|\n|" + "|".join("123456") + "|"
    assert drawn(text, 20)[:2] == ["a: 1", "b: 2"]


@given(st.lists(st.integers(0, 200), min_size=1, max_size=8), st.integers(40, 120))
def test_columns_share_the_room_and_none_gets_more_than_it_wants(
    natural: list[int], room: int
) -> None:
    widths = share_width(natural, room, [MIN_COLUMN] * len(natural))
    assert sum(widths) <= max(room, len(natural))
    assert all(width <= max(1, wanted) for width, wanted in zip(widths, natural, strict=True))


def test_code_names_its_language_and_marks_where_a_long_line_goes_on() -> None:
    lines = drawn("```\nab\n\n" + "x" * 25 + "\n```", 12)
    assert lines == [" code  copy", " ab", "", " xxxxxxxxxx", " ↳ xxxxxxxx", " ↳ xxxxxxx"]
    lines = drawn("```py\nx = some words + 漢字漢字漢字漢字\n```", 16)
    assert lines == [" py        copy", " x = some words", " ↳ + 漢字漢字漢", " ↳ 字漢字"]


def test_a_click_copies_the_code_as_it_was_written() -> None:
    text = "- item\n\n  ```py\n  a = 1\n\n  b = 2\n  ```\n\n> ~~~\n> quoted\n> ~~~\n\n    indented"
    code = ["a = 1\n\nb = 2", "quoted", "indented"]
    assert code_in(text, whole=True) == code
    assert code_in(text, whole=False) == code[:2], "fenced ones alone"
    lines = stack(parse_markdown(text).blocks, 40)
    spans = [span.style for line in lines for span in line.spans]
    metas = [style.meta.get(COPY) for style in spans if isinstance(style, Style)]
    assert [meta for meta in metas if meta] == code


PARAGRAPH: Final = "The quick brown fox jumps over the lazy dog and runs through the forest."
COMMAND: Final = "docker run --rm   -it --name very-long-name --volume /var/lib/data:/data"
SEEN_AS_WRITTEN: Final = (
    PARAGRAPH,
    f"{PARAGRAPH}\n\n{PARAGRAPH}",
    f"• {PARAGRAPH}\n  ◦ {PARAGRAPH}",
    "see https://example.com/a/very/long/address/that/goes/on/over/rows there",
    "漢字" * 20,
)


@pytest.mark.parametrize("width", [12, 24, 80])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text.replace("•", "-").replace("◦", "-"), text) for text in SEEN_AS_WRITTEN),
        (f"> {PARAGRAPH}", PARAGRAPH),
        (f"```sh\n{COMMAND}\n```", COMMAND),
        ("```py\ndef a():\n    return 1\n\nb\n```", "def a():\n    return 1\n\nb"),
        (f"- x\n\n  ```\n  {COMMAND}\n    b\n  ```", f"• x\n\n{COMMAND}\n  b"),
    ],
)
def test_what_the_mouse_selects_is_copied_as_it_was_written(
    text: str, expected: str, width: int
) -> None:
    rows = stack(parse_markdown(text).blocks, width)
    assert written(rows.__getitem__, len(rows), SELECT_ALL) == expected


def test_a_part_is_copied_from_the_first_to_the_last_letter_that_is_selected() -> None:
    rows = stack(parse_markdown(f"```\n{COMMAND}\n```").blocks, 24)
    assert [row.plain.strip() for row in rows][1:3] == [
        "docker run --rm   -it",
        "↳ --name",
    ]
    part = Selection(Offset(8, 1), Offset(9, 2))
    assert written(rows.__getitem__, len(rows), part) == "run --rm   -it --name"
    assert written(rows.__getitem__, len(rows), Selection(Offset(0, 2), Offset(2, 2))) == ""


def test_a_block_that_is_drawn_in_part_is_copied_whole() -> None:
    code = "\n".join(f"line_{number} = [{number}]" for number in range(1, 3_000))
    text = f"First:\n\n```py\na\n```\n\n~~~\n{code}\n~~~\nEnd"
    view = ModelEntry(ModelText(EntryId("m"), text))
    assert view.codes() == ["a", code]
    metas = [
        span.style.meta.get(COPY)
        for line in stack(view.blocks(), 80)
        for span in line.spans
        if isinstance(span.style, Style)
    ]
    first, cut = (meta for meta in metas if meta)
    assert len(cut) < len(code)
    assert (view.whole_code(first), view.whole_code(cut)) == ("a", code)


def test_a_table_keeps_words_whole_by_shrinking_the_columns_that_can() -> None:
    text = "| name | note |\n|---|---|\n| read_file | a note of many words that may wrap |"
    assert drawn(text, 30) == [
        "name       note",
        "─────────  ───────────────────",
        "read_file  a note of many",
        "           words that may wrap",
    ]
    wide = "|" + "abcdefghij|" * 4 + "\n|" + "-|" * 4 + "\n|" + "abcdefghij|" * 4
    assert drawn(wide, 46)[0] == "abcdefghij  " * 3 + "abcdefghij"
    assert drawn(wide, 40)[0].split()[0] == "abcdefgh", "eight letters are better than records"
    assert drawn(wide, 20)[:2] == ["abcdefghij:", "abcdefghij"]


def test_no_line_is_wider_than_the_view() -> None:
    text = "# 漢字漢字漢字\n\n> 漢字 " + "漢" * 40 + "\n\n- " + "é" * 50 + "\n\n`" + "x" * 60 + "`"
    for width in (10, 17, 33):
        assert max(line.cell_length for line in stack(parse_markdown(text).blocks, width)) <= width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[**good.example**](https://evil.example)", "good.example (https://evil.example)"),
        ("[good.example](https://good.example@evil.example)", "good.example (evil.example)"),
        ("<https://\u0430.example>", "https://\u0430.example (https://xn--80a.example)"),
        ("![good.example](https://evil.example)", "[image: good.example] (https://evil.example)"),
        ("[https://good.example](javascript:x)", "[https://good.example](javascript:x)"),
        (f"[it](https://{'g.example.' * 9}evil/)", f"it (https://{'g.example.' * 9}evil/)"),
        (f"[it](https://a.example/{'x' * 60})", f"it (https://a.example/{'x' * 41}…)"),
    ],
)
def test_a_link_whose_text_is_not_its_target_shows_that(text: str, shown: str) -> None:
    assert drawn(text, 200) == [shown]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2*3*4, 2**3**4 and a*b", ["2*3*4, 2**3**4 and a*b"]),
        ("__init__.py, __name__, a_b_c", ["__init__.py, __name__, a_b_c"]),
        ("**/*.py and **/*.ts, /* c */ src/*", ["**/*.py and **/*.ts, /* c */ src/*"]),
        ("**Yes**/**No**, *it*. __bold words__", ["Yes/No, it. bold words"]),
        ("**重要。**文本 これは**「字」**です", ["重要。文本 これは「字」です"]),
        ("one<br>two <BR /> three `<br>`", ["one", "two", "three <br>"]),
        ("|a|b|\n|-|-|\n|one<br>two three|x|", ["a          b", "─" * 9 + "  ─"]),
        (r"$A \rightarrow B$ and \(\lambda \leq \beta\)", ["A → B and λ ≤ β"]),
        (r"$x^2 + a_{10}^{-1}$, $n$, $O(n \log n)$", ["x² + a₁₀⁻¹, n, O(n log n)"]),
        ("$$\n\\frac{a+b}{2} \\neq \\sqrt{x}\n$$", ["(a+b)/2 ≠ √x"]),
        (r"\[\mathbb{R}^n \text{ is } \{0\}\]", ["ℝⁿ is {0}"]),
        (r"$\hat{y}$, $\begin{x}$, $\rlm x$", [r"$\hat{y}$, $\begin{x}$, $\rlm x$"]),
        ("$5 and $6, $10/$5, $HOME/$USER, `$x`$", ["$5 and $6, $10/$5, $HOME/$USER, $x$"]),
        ("|a|b|\n|-|-|\n|`x|y`|2|\n|`x\\|y`|3|", ["a    b", "───  ─", "x|y  2", "x|y  3"]),
        ("[1]: https://a.example\n\na [b][1]", ["[1]: https://a.example", "", "a [b][1]"]),
        (r"C:\new\table, \(foo\)", [r"C:\new\table, (foo)"]),
        ("a&rlm;b &#x202E;c &#8203;d &amp; &copy;", ["a&rlm;b &#x202E;c &#8203;d & ©"]),
    ],
)
def test_what_models_write_beyond_the_standard_is_drawn_as_it_is_meant(
    text: str, shown: list[str]
) -> None:
    assert drawn(text)[: len(shown)] == shown


def test_a_list_in_many_lists_is_drawn_to_its_last_word() -> None:
    lines = drawn("".join(f"{'  ' * depth}- word{depth}\n" for depth in range(15)))
    assert [line.split()[-1] for line in lines] == [f"word{depth}" for depth in range(15)]


def test_links_are_data_and_never_actions() -> None:
    lines = stack(
        parse_markdown("[text](https://a.example/x) ![alt](https://b.example)").blocks, 80
    )
    assert links_in(lines) == ["https://a.example/x", "https://b.example"]
    assert "@click" not in repr(lines)
    assert lines[0].plain == ("text (https://a.example/x) [image: alt] (https://b.example)")


@pytest.mark.parametrize(
    "text", ["[@click=app.quit]x[/]", "[/x]", "<script>alert(1)</script>", "ftp://bare.example"]
)
def test_markup_and_html_stay_text(text: str) -> None:
    lines = stack(parse_markdown(text).blocks, 80)
    assert lines[0].plain == text
    assert links_in(lines) == []


@pytest.mark.parametrize(
    "text",
    [
        "a://" * 20_000,
        "http://a" * 2_500,
        "Resource Link: at " * 1_000,
        "[" * MAX_MARKDOWN,
        "![" * 10_000,
        "[[](" * 5_000,
        "*a_ " * 5_000,
        ">" * MAX_MARKDOWN,
        "- a\n" * 5_000,
        "- " * 5_000,
        "|a|b|\n|-|-|\n" + "|`a" * 5_000,
        "| a " * 5_000 + "\n" + "|-" * 5_000,
        "|a|b|\n|-|-|\n" + "|a|b|\n" * 3_000,
        "`" * MAX_MARKDOWN,
        "\n" * 5_000,
        "x" * 1_000_000,
        "$" * MAX_MARKDOWN,
        r"$a\(b\[c" * 2_000,
        "$" + "^{a}" * 4_900 + "$",
        "$" + r"\frac{a}{" * 2_000 + "$",
        "__a" * 6_000,
        "&rlm;<br>" * 2_000,
    ],
    ids=range(22),
)
def test_D10_D11_hostile_markdown_is_drawn_without_holding_up_the_loop(text: str) -> None:
    parse_markdown("warm *up*")
    began = thread_time()
    growing = GrowingMarkdown()
    growing.update(text, complete=True)
    stack(growing.blocks, 80)
    assert thread_time() - began < 0.8  # what grows with the square takes many seconds


def test_a_terminal_gets_the_address_of_a_link_if_that_is_plain() -> None:
    text = (
        "see https://a.example/x_y_(z). [b](https://b.example) <https://\u0430.example>"
        " [c](https://good.example@evil.example) [d](ftp://d.example) `http://e.example/`"
    )
    lines = stack(parse_markdown(text).blocks, 400)
    styles = [span.style for span in lines[0].spans if isinstance(span.style, Style)]
    sent = [style.link for style in styles if style.link]
    plain = ["http://e.example/", "https://a.example/x_y_(z)", "https://b.example"]
    assert sorted(sent) == [*plain, "https://xn--80a.example"]
    code = stack(parse_markdown("```py\ndef f(): pass\n```").blocks, 40)
    assert not [span for line in code for span in line.spans if "underline" in str(span.style)]


def test_too_many_brackets_are_shown_as_they_stand() -> None:
    text = "[a](b)" * (MAX_BRACKETS + 1)
    assert links_in(stack(parse_markdown(text).blocks, 80)) == []


def test_the_parsed_part_ends_with_a_line_and_within_the_limits() -> None:
    long = "word " * 10 + "\n"
    part = markdown_part(long * 1_000)
    assert len(part) <= MAX_MARKDOWN
    assert part.endswith("\n")
    assert markdown_part("a\n" * 5_000).count("\n") == MAX_MARKDOWN_LINES
    assert markdown_part("x" * 50_000) == "x" * MAX_MARKDOWN


def test_a_shown_part_counts_what_is_left_out() -> None:
    assert shown_part("short") == ("short", 0)
    part, left_out = shown_part("\n" * 5_000)
    assert part.count("\n") == MAX_SHOWN_LINES - 1
    assert left_out == 5_000 - len(part)


SOURCE = """# Title

Some *text* with `code` and a [link](https://a.example).

- one
- two
  - inner
    with a second line
- three

1. first
2. second

   more of the second
3. third

> a quote
> of two lines

| a | b |
|---|--:|
| 1 | 2 |
| 3 | 4 |

```python
def f():
    return 1

```

Setext
------

The end **of it
"""


@given(st.lists(st.integers(0, len(SOURCE)), max_size=12))
def test_a_text_that_grew_by_any_pieces_is_drawn_as_if_it_came_at_once(cuts: list[int]) -> None:
    growing = GrowingMarkdown()
    for cut in sorted(cuts):
        growing.update(SOURCE[:cut], complete=False)
        assert growing.text == SOURCE[:cut]
    growing.update(SOURCE, complete=True)
    assert growing.text == SOURCE
    grown = [line.plain for line in stack(growing.blocks, 50)]
    assert grown == [line.plain for line in stack(parse_markdown(SOURCE).blocks, 50)]


@given(st.text(alphabet="ab #*-`[]()|\n1.>_~", max_size=120), st.integers(1, 9))
def test_any_text_can_grow_and_no_letter_of_it_is_lost(text: str, step: int) -> None:
    growing = GrowingMarkdown()
    for end in range(step, len(text) + step, step):
        growing.update(text[:end], complete=False)
        shown = "".join(line.plain for line in stack(growing.blocks, 500))
        assert shown.count("a") <= text[:end].count("a")
    growing.update(text, complete=True)
    once = stack(parse_markdown(text).blocks, 40)
    assert [line.plain for line in stack(growing.blocks, 40)] == [line.plain for line in once]


def test_while_it_grows_a_list_looks_as_it_will_when_complete() -> None:
    text = "Intro\n\n" + "".join(f"{number}. item {number}\n" for number in range(3, 9)) + "\nEnd\n"
    growing = GrowingMarkdown()
    for end in range(len(text) + 1):
        growing.update(text[:end], complete=False)
    before = [line.plain for line in stack(growing.blocks, 40)]
    growing.update(text, complete=True)
    assert [line.plain for line in stack(growing.blocks, 40)] == before
    assert "End" in before


def test_a_text_beyond_the_limit_goes_on_as_plain_text() -> None:
    text = "*word* and more\n\n" * 2_000
    growing = GrowingMarkdown()
    for end in range(0, len(text), 3_000):
        growing.update(text[:end], complete=False)
    growing.update(text, complete=True)
    lines = [line.plain for line in stack(growing.blocks, 80)]
    assert lines[0] == "word and more"
    assert lines[-1] in {"", "*word* and more"}
    assert any(line == "*word* and more" for line in lines)
    shown = "".join(lines)
    assert growing.left_out > 0
    assert len(shown) < len(text)
