"""URI templates: the examples of RFC 6570, and what hostile ones cost."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import InvalidUriTemplate
from mcp import UriTemplate as SdkTemplate

from tests.support.rows import row
from tui.model.input import uri_templates

VALUES = {
    **{"var": "value", "hello": "Hello World!", "half": "50%", "base": "http://example.com/home/"},
    **{"path": "/foo/bar", "list": "red,green,blue", "v": "6", "x": "1024", "y": "768"},
    **{"empty": "", "who": "fred", "dub": "me/too", "pct": "a%20b%", "name.first": "Zoë"},
}

EXAMPLES = {
    # RFC 6570, 3.2.2: simple string expansion
    **{"{var}": "value", "{hello}": "Hello%20World%21", "O{empty}X": "OX", "O{undef}X": "OX"},
    **{"{x,y}": "1024,768", "?{x,undef}": "?1024", "?{undef,y}": "?768", "{var:3}": "val"},
    "{list*}": "red,green,blue",
    # 3.2.3: reserved expansion
    **{"{+hello}": "Hello%20World!", "{+half}": "50%25"},
    **{"{+base}index": "http://example.com/home/index", "{+path}/here": "/foo/bar/here"},
    **{"{+path,x}/here": "/foo/bar,1024/here", "{+path:6}/here": "/foo/b/here"},
    "{+pct}": "a%20b%25",
    # 3.2.4: fragment expansion
    **{"{#hello}": "#Hello%20World!", "foo{#empty}": "foo#"},
    **{"{#path,x}/here": "#/foo/bar,1024/here", "{#list*}": "#red,green,blue"},
    # 3.2.5: label expansion
    **{"{.who,who}": ".fred.fred", "X{.empty}": "X.", "X{.undef}": "X"},
    "www{.list*}": "www.red.green.blue",
    # 3.2.6: path segments
    **{"{/who,who}": "/fred/fred", "{/who,dub}": "/fred/me%2Ftoo", "{/var,undef}": "/value"},
    **{"{/var,x}/here": "/value/1024/here", "{/list*}": "/red/green/blue"},
    # 3.2.7: path-style parameters
    **{"{;who}": ";who=fred", "{;empty}": ";empty", "{;v,empty,who}": ";v=6;empty;who=fred"},
    **{"{;v,undef,who}": ";v=6;who=fred", "{;list*}": ";list=red;list=green;list=blue"},
    # 3.2.8 and 3.2.9: form-style queries
    **{"{?x,y,empty}": "?x=1024&y=768&empty=", "{?undef}": "", "{?var:3}": "?var=val"},
    **{"{?list*}": "?list=red&list=green&list=blue", "?fixed=yes{&x}": "?fixed=yes&x=1024"},
    **{"{&x,y,empty}": "&x=1024&y=768&empty=", "{&list*}": "&list=red&list=green&list=blue"},
    # literals and names
    "file:///ä b%20c/{name.first}": "file:///%C3%A4%20b%20c/Zo%C3%AB",
    "plain://x?y=[1]#z": "plain://x?y=[1]#z",
}


def test_a_template_is_filled_in_as_the_standard_says_and_matches_that() -> None:
    assert {one: uri_templates.parse_template(one).expand(VALUES) for one in EXAMPLES} == EXAMPLES
    for template, filled in EXAMPLES.items():
        assert uri_templates.parse_template(template).matches(filled), template


def test_a_uri_fits_a_template_or_not() -> None:
    for template, uri, fits in [
        *(("memo://{day}", "memo://monday", True), ("memo://{day}", "memo://", True)),
        *(("memo://{day}", "memo://a/b", False), ("memo://{+path}", "memo://a/b", True)),
        *(("memo://x{/path*}", "memo://x/a/b", True), ("memo://x{/path*}", "memo://xa/b", False)),
        *(("memo://x{?q}", "memo://x", True), ("memo://x{?q}", "memo://x?q=a/b", True)),
        ("memo://{a}-{b}.txt", "memo://1-2-3.txt", True),
        *(("memo://{a}-{b}.txt", "memo://1-2-3.md", False), ("memo://ä/{a}", "memo://ä/ö", True)),
        *(("memo://all", "memo://all", True), ("memo://all", "memo://all2", False)),
    ]:
        assert uri_templates.parse_template(template).matches(uri) is fits


def test_matching_costs_no_more_than_the_lengths() -> None:
    variables = (f"{{+v{n}}}-" for n in range(uri_templates.MAX_VARIABLES))
    template = uri_templates.parse_template(f"{''.join(variables)}!")
    began = time.process_time()
    assert not template.matches("-" * 10_000)
    assert time.process_time() - began < 5


def test_variables_are_named_once_with_what_a_form_has_to_know() -> None:
    template = uri_templates.parse_template("x://{id}{/path*}{?q,id,tags*}{+rest:9}")
    assert template.variables == (
        uri_templates.Variable("id", required=True, is_list=False),
        uri_templates.Variable("path", required=False, is_list=True),
        uri_templates.Variable("q", required=False, is_list=False),
        uri_templates.Variable("tags", required=False, is_list=True),
        uri_templates.Variable("rest", required=True, is_list=False),
    )
    assert uri_templates.parse_template("memo://all").variables == ()


def test_what_is_no_template_is_refused() -> None:
    for template in [
        "{", "}", "a{b", "a}b", "{}", "{a}}", "{{a}}", "{a{b}}", "{,}", "{a,}", "{a b}", "{a:0}",
        "{a:12345}", "{a:}", "{a**}", "{a*:3}", "{=a}", "{!a}", "{|a}", "{a..b}", "{.}", "{ä}",
        "{%zz}", "x" * (uri_templates.MAX_TEMPLATE + 1),
        "".join(f"{{v{n}}}" for n in range(uri_templates.MAX_VARIABLES + 1)),
    ]:  # fmt: skip
        with row(template), pytest.raises(uri_templates.UriTemplateError):
            uri_templates.parse_template(template)


def test_a_uri_that_would_be_too_long_is_refused() -> None:
    template = uri_templates.parse_template("{a}" * 2)
    assert len(template.expand({"a": "x" * (uri_templates.MAX_URI // 2)})) == uri_templates.MAX_URI
    with pytest.raises(uri_templates.UriTemplateError, match="longer"):
        template.expand({"a": "x" * (uri_templates.MAX_URI // 2 + 1)})


def test_a_hostile_template_costs_no_more_than_its_size() -> None:
    for inner in ("a" * 1_990 + "!", "a." * 990, "%41" * 600 + "%", "+a}" + "{+a}" * 488 + "{+a"):
        began = time.process_time()
        for _ in range(20):
            with suppress(uri_templates.UriTemplateError):
                uri_templates.parse_template(f"{{{inner}}}").expand({"a": "%" * 30})
        assert time.process_time() - began < 1, inner[:9]


names = st.sampled_from(["a", "b_c", "d.e"])
operators = st.sampled_from(["", "+", "#", ".", "/", ";", "?", "&"])
expressions = st.builds(
    lambda operator, listed: "{" + operator + ",".join(listed) + "}",
    operators,
    st.lists(names, min_size=1, max_size=3, unique=True),
)
templates = st.lists(
    expressions | st.text(st.characters(categories=["L", "Nd"]), max_size=3), max_size=5
).map("".join)


@given(templates, st.dictionaries(names, st.text()))
def test_what_the_sdk_can_fill_in_comes_out_the_same(template: str, values: dict[str, str]) -> None:
    values = {name: value.encode(errors="replace").decode() for name, value in values.items()}
    try:
        expected = SdkTemplate.parse(template).expand(values)
    except InvalidUriTemplate:
        expected = None
    filled_in = uri_templates.parse_template(template).expand(values)
    assert filled_in.isascii()
    if expected is not None and template.isascii():
        assert filled_in == expected
