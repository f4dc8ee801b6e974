"""Addresses that servers want opened: what is refused, what is warned of, what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rows import row
from tui.model.input.addresses import MAX_URL, Address, AddressError, check_address


def test_a_plain_address_is_taken_as_it_is() -> None:
    url = "https://example.com:8443/a/b?c=d%20e&f=(g)#h"
    assert check_address(url) == Address(url, "example.com", "example.com")


def test_C09_what_could_mislead_or_harm_is_refused() -> None:
    for url, reason in [
        ("file:///etc/passwd", "neither http nor https"),
        ("example.com", "neither http nor https"),
        ("https:///path", "has no host"),
        ("https://accounts.google.com@evil.example/", "contains a user name"),
        ("https://@example.com/", "contains a user name"),
        ("https://example.com/\x1b]52;c;eA==\x07", "control characters"),
        ("https://example.com/a b", "whitespace"),
        ("https://example.com\\@evil.example/", "backslashes"),
        ("https://example.com:99999/", "is malformed"),
        ("https://[::1", "is malformed"),
        ("https://ex%61mple.com/", "host is malformed"),
        ("https://a..b/", "host is malformed"),
        ("https://" + "a" * 300 + ".com/", "host is malformed"),
        ("https://example.com/" + "ä" * (MAX_URL // 2), "longer than"),
    ]:
        with row(url):
            with pytest.raises(AddressError, match=reason) as caught:
                check_address(url)
            assert "evil" not in str(caught.value)


def test_foreign_letters_are_shown_both_ways_and_warned_of() -> None:
    spelled = check_address("https://xn--pple-43d.com/x")
    assert (spelled.host, spelled.shown_host) == ("xn--pple-43d.com", "\u0430pple.com")
    assert "imitate" in spelled.warning
    written = check_address("https://\u0430pple.com/x")
    assert written == spelled
    assert check_address("https://example.com/ä?ö=ü").url.isascii()


def test_what_is_odd_is_said() -> None:
    for url, warning in [
        ("http://example.com/", "not encrypted"),
        ("https://127.0.0.1/", "this computer"),
        ("https://[::1]:80/", "this computer"),
        ("http://localhost:7777/", "this computer"),
        ("https://app.localhost./", "this computer"),
        ("https://192.0.2.7/", "bare number"),
        ("https://0x7f000001/", "bare number"),
        ("https://example.com/", ""),
    ]:
        with row(url):
            found = check_address(url).warning
            assert warning in found
            assert bool(found) is bool(warning)


@given(st.text(max_size=60), st.sampled_from(["https://", "http://", "https://a.example/", ""]))
def test_whatever_comes_is_refused_or_plain_ascii(text: str, start: str) -> None:
    try:
        address = check_address(start + text)
    except AddressError:
        return
    assert address.url.isascii()
    assert address.url.isprintable()
    assert " " not in address.url
    assert address.url.split("/")[2].startswith((address.host, "["))
    assert check_address(address.url) == address
