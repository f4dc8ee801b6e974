"""Whether a text repeats what another server said."""

from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.mcp.callbacks.sampling_prompt import MAX_PROMPT
from tui.engine.mcp.catalog.offered_tool import TextPart
from tui.engine.mcp.quotes import MAX_REMEMBERED, MAX_TEXT, MIN_QUOTE, Quotes
from tui.model.servers import ServerId

SHOP, BANK, MALL = ServerId("shop"), ServerId("bank"), ServerId("mall")
SAID = "The order of 12 May was paid with the card that ends in 4711; it leaves on Friday."


def heard(*texts: str, server: ServerId = SHOP) -> Quotes:
    quotes = Quotes()
    for text in texts:
        quotes.note(server, (TextPart(text),))
    return quotes


@given(st.integers(0, len(SAID) - MIN_QUOTE), st.text(max_size=60))
def test_any_forty_characters_in_a_row_are_a_quotation(start: int, before: str) -> None:
    words = SAID[start : start + MIN_QUOTE].strip()
    words = words if len(words) == MIN_QUOTE else SAID[:MIN_QUOTE]
    assert heard("something else before", SAID).sources(f"{before}{words}", BANK) == (SHOP,)


@pytest.mark.parametrize(
    "text", ["", SAID[: MIN_QUOTE - 1], "-" * 500, "Words of its own, and as long as it pleases."]
)
def test_what_is_shorter_or_its_own_is_none(text: str) -> None:
    assert heard(SAID, "-" * 200).sources(text, BANK) == ()


def test_a_server_may_repeat_itself_and_blanks_make_no_difference() -> None:
    quotes = heard(SAID)
    assert quotes.sources(SAID, SHOP) == ()
    assert quotes.sources(SAID.replace(" ", "\n  "), BANK) == (SHOP,)


def test_the_oldest_words_are_forgotten_first() -> None:
    quotes = heard(SAID, *("".join(map(str, range(n, n + 20_000))) for n in range(6)))
    assert quotes._size <= MAX_REMEMBERED
    assert quotes.sources(SAID, BANK) == ()


def test_a_hostile_text_costs_no_more_than_its_length() -> None:
    block = "abcdefghijklmnopqrst"
    quotes = heard(block * 5_000)
    began = thread_time()
    quotes.sources(f"{block[:-1]}#{block}#" * 3_000, BANK)
    assert thread_time() - began < 1


def test_a_server_that_says_it_as_well_hides_nothing() -> None:
    quotes = heard(SAID)
    for server in (BANK, MALL):
        quotes.note(server, (TextPart(SAID),))
    assert quotes.sources(SAID, BANK) == (SHOP, MALL)


def test_own_words_before_the_quotation_hide_nothing() -> None:
    own = " ".join(map(str, range(10_000, 20_000)))
    quotes = heard(SAID)
    quotes.note(BANK, (TextPart(own),))
    assert quotes.sources(f"{own} {SAID}", BANK) == (SHOP,)


def test_lone_blocks_of_the_same_words_before_the_quotation_hide_nothing() -> None:
    assert heard(SAID).sources(f"{SAID[:20]}#" * 9_000 + SAID, BANK) == (SHOP,)


def test_the_end_of_a_long_prompt_is_compared() -> None:
    assert MAX_TEXT > MAX_PROMPT
    assert heard(SAID).sources("-" * (MAX_PROMPT - len(SAID)) + SAID, BANK) == (SHOP,)
