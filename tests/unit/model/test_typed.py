"""What the user types: mentions, prompts and commands in it."""

import time
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tui.model.catalog import (
    Catalog,
    PromptArgument,
    PromptView,
    ResourceTemplateView,
    ResourceView,
)
from tui.model.input.mentions import (
    PathMention,
    ResourceMention,
    as_sent,
    as_text,
    dropped_pictures,
    find_resource,
    mentions,
    pasted,
    typed_mention,
    unnamed,
)
from tui.model.input.own_commands import (
    OWN_COMMANDS,
    Takes,
    TypedCommand,
    command_words,
    find_own_command,
)
from tui.model.input.typed import TypedPrompt, find_prompt, nearest, typed_command
from tui.model.servers import ServerId

NOTES = ServerId("notes")
LISTED = ("memo://today", "memo://what?", "memo://very/deep/er/file.md", "memo://other/file.md")


def library(*uris: str, templates: tuple[str, ...] = ()) -> Catalog:
    return Catalog(
        resources=tuple(ResourceView(uri, uri) for uri in uris),
        templates=tuple(ResourceTemplateView(template, template) for template in templates),
    )


def mentioned(text: str, catalogs: Mapping[ServerId, Catalog]) -> list[tuple[str, str]]:
    """Return the resources that a text mentions."""
    found = (one for one in mentions(text, catalogs) if isinstance(one, ResourceMention))
    return [(one.server, one.uri) for one in found]


def test_a_mention_names_a_server_and_a_uri() -> None:
    for text, found in [
        ("@notes:memo://today", [("notes", "memo://today")]),
        ("@notes:x://1?b=2&c=(d), @other:y.", [("notes", "x://1?b=2&c=(d),"), ("other", "y.")]),
        ("(@notes:y) and @notes:y)", [("notes", "y)")]),
        ("@my server:1:x", [("my server:1", "x")]),
        ("open @notes:file:///my list.txt now", [("notes", "file:///my list.txt")]),
        *(("mail me@notes:now", []), ("@nobody:else", []), ("@notes", []), ("@notes: that", [])),
        ('open @notes:"x://a b?c=1" now', [("notes", "x://a b?c=1")]),
        *(('open @"notes:x://a b", now', [("notes", "x://a b")]), ('@notes:"no end', [])),
    ]:
        others = {ServerId("other"): Catalog(), ServerId("my server:1"): Catalog()}
        assert mentioned(text, {NOTES: library("file:///my list.txt"), **others}) == found


@pytest.mark.slow
def test_many_mentions_in_a_long_text_are_found_in_linear_time() -> None:
    catalogs = {NOTES: library(*(f"file:///{number} x" for number in range(1_000)))}
    began = time.process_time()
    assert len(mentions("@notes:a @notes:b " * 5_000 + "x" * 4_000_000, catalogs)) == 2
    assert time.process_time() - began < 5


def test_a_resource_is_found_with_and_without_the_punctuation_after_it() -> None:
    for typed_uri, uri in [
        *(("memo://today", "memo://today"), ("memo://today,", "memo://today")),
        *(("memo://what?", "memo://what?"), ("page://Foo_(bar)", "page://Foo_(bar)")),
        *(("page://Foo_(bar)).", "page://Foo_(bar)"), ("page://other)", "page://other")),
        *(("//today", "memo://today"), ("//today.", "memo://today"), ("memo://tomorrow", "")),
        *(("page://a/b", ""), ("//one", "page://one"), ("//a/b/c", "")),
        ("//deep/er/file.md", "memo://very/deep/er/file.md"),
        *(("er/file.md", "memo://very/deep/er/file.md"), ("file.md", "")),
    ]:
        catalog = library(*LISTED, templates=("page://{name}", "{broken"))
        assert find_resource(typed_uri, catalog) == uri


def test_a_word_after_an_at_may_be_a_path() -> None:
    for text, paths in [
        ("see @src/a.py, please", [("src/a.py,", "src/a.py")]),
        ("(@src/a.py)", [("src/a.py)", "src/a.py")]),
        (r"@my\ file.txt and @b", [("my file.txt", "my file.txt"), ("b", "b")]),
        ('@"my file.txt" and @~/b', [("my file.txt", "my file.txt"), ("~/b", "~/b")]),
        *(("@a @a @notes:x", [("a", "a")]), ("me@example.com, a@b", []), ('@"open', [])),
        ("@ alone", []),
    ]:
        found = [one for one in mentions(text, {NOTES: Catalog()}) if isinstance(one, PathMention)]
        assert [(one.path, one.trimmed) for one in found] == paths, text


def test_what_is_typed_for_a_target_mentions_it() -> None:
    for target in ("src/a.py", "my file.txt", "x://a?b"):
        text = f"see {typed_mention(target, 'notes')} now"
        assert mentioned(text, {NOTES: Catalog()}) == [(NOTES, target)]
        assert mentions(f"see {typed_mention(target)} now", {}) == [PathMention(target, target)]


POEM = PromptView("poem", arguments=(PromptArgument("title", True), PromptArgument("mood", False)))


def typed(text: str, *prompts: PromptView) -> TypedPrompt:
    """Find the prompt that a text names."""
    found = find_prompt(text, [(NOTES, Catalog(prompts=prompts or (POEM,)))])
    assert found is not None, text
    return found


def prompt_of(text: str, *names: str) -> str | None:
    catalog = Catalog(prompts=tuple(PromptView(name) for name in names))
    found = find_prompt(text, [(NOTES, catalog)])
    return found.prompt.name if found else None


def test_a_prompt_is_found_by_its_whole_name_whatever_is_in_it() -> None:
    for text, name in [
        *(("/résumé of mine", "résumé"), ("/a/b", "a/b"), ("/fix! it", "fix!")),
        *(("/io.github.x/y_review", "io.github.x/y_review"), ("/code review this", "code review")),
        *(("/code reviews", "code"), ("/code\nreview", "code"), ("/coder", None), ("/a/bc", None)),
        *(("// a comment", None), ("see /code", None)),
    ]:
        names = ("résumé", "a/b", "fix!", "io.github.x/y_review", "code", "code review", "/ a")
        assert prompt_of(text, *names) == name


def test_arguments_are_named_or_in_declared_order_and_stay_as_typed() -> None:
    for text, values in [
        ("/poem", {}),
        ('/poem --title="Two words" --mood="calm"', {"title": "Two words", "mood": "calm"}),
        ('/poem "Gemini CLI" reverent', {"title": "Gemini CLI", "mood": "reverent"}),
        ('/poem "Gemini CLI" very reverent', {"title": "Gemini CLI", "mood": "very reverent"}),
        ("/poem --mood=sad two words", {"mood": "sad", "title": "two words"}),
        ("/poem two --mood=sad words", {"mood": "sad", "title": "two words"}),
        ("/poem --other=1", {"title": "--other=1"}),
        ('/poem --other="a b"', {"title": '--other="a b"'}),
        ("/poem don't stop", {"title": "don't", "mood": "stop"}),
        (r"/poem C:\temp\x", {"title": r"C:\temp\x"}),
        (r'/poem "C:\temp\x y"', {"title": r"C:\temp\x y"}),
        (r'/poem "a \"b\" \\ c"', {"title": r'a "b" \ c'}),
        ("/poem 'a \"b\" c'", {"title": 'a "b" c'}),
        ('/poem print("x y")', {"title": 'print("x', "mood": 'y")'}),
        ('/poem "open quote', {"title": '"open', "mood": "quote"}),
        ("/poem --title= --mood=''", {"title": "", "mood": ""}),
        ('/poem x say  "hello"\n  to all', {"title": "x", "mood": 'say  "hello"\n  to all'}),
    ]:
        found = typed(text)
        assert (found.values, found.rest) == (values, ""), text


def test_words_that_no_argument_takes_are_kept_and_only_what_is_required_can_be_missing() -> None:
    assert typed("/poem of\n mine", PromptView("poem")).rest == "of\n mine"
    found = typed("/poem --title=a --mood=b and more")
    assert (found.values, found.rest) == ({"title": "a", "mood": "b"}, "and more")
    missing = [typed(f"/poem {words}").missing for words in ("--mood=sad", "--title=", "x")]
    assert missing == [("title",), ("title",), ()]


@given(st.dictionaries(st.sampled_from(["title", "mood"]), st.text()))
def test_a_command_written_for_arguments_is_read_as_them(values: dict[str, str]) -> None:
    found = typed(typed_command("poem", values))
    assert (found.values, found.rest) == (values, "")


def test_a_long_text_after_a_prompt_is_read_in_linear_time() -> None:
    for piece in ('"a ', "'a ", '"\\" ', "--a= ", '--title="', "x "):
        began = time.process_time()
        typed("/poem " + piece * 100_000)
        assert time.process_time() - began < 5, piece


def test_the_nearest_name_is_one_that_is_like_it_and_is_found_in_little_time() -> None:
    known = ["x" * 5_000, "poem", "other"]
    assert [nearest(name, known) for name in ("peom", "zzz")] == ["poem", ""]
    known = [f"file:///{'similar/' * 24}{number:05}" for number in range(2_000)]
    began = time.process_time()
    assert nearest(known[7] + "x", known) in known
    assert time.process_time() - began < 2


def test_a_command_is_one_line_whose_first_word_is_a_slash_with_a_name() -> None:
    for text, words in [
        ("/poem", ("poem", "")),
        ('  /poem --title="Gemini CLI" ', ("poem", '--title="Gemini CLI"')),
        *(("/srv.poem:2-b_c one", ("srv.poem:2-b_c", "one")), ("/föö", ("föö", ""))),
        *(("/詩 x  y", ("詩", "x  y")), ("/poem\nof two lines", ("", ""))),
        *(("/poem of\ntwo lines", ("", "")), ("/slow! x", ("", "")), ("/foo, x", ("", ""))),
        *(("/?", ("", "")), ("/etc/hosts is a file", ("", "")), ("/usr/ is a folder", ("", ""))),
        *(("// a comment", ("", "")), ("//review", ("", "")), ("/* a comment */", ("", ""))),
        *(("/", ("", "")), ("/ poem", ("", "")), ("", ("", "")), ("see /poem", ("", ""))),
    ]:
        assert command_words(text) == words


def test_the_command_of_the_screen_is_found_with_its_part() -> None:
    for text, found in [
        ("/help", TypedCommand(("help",), Takes.NOTHING)),
        ("/help me", TypedCommand(("help",), Takes.NOTHING, "me")),
        *((f" /{name} ", TypedCommand(("help",), Takes.NOTHING)) for name in ("?", "help")),
        *((f"/{name}", TypedCommand(("quit",), Takes.NOTHING)) for name in ("exit", "quit")),
        *((f"/mcp {name}", TypedCommand(("mcp", "list"), Takes.SOME_SERVERS)) for name in ("ls",)),
        ("/theme  two words ", TypedCommand(("theme",), Takes.THEME, "two words")),
        ("/mcp", TypedCommand(("mcp", "list"), Takes.SOME_SERVERS)),
        ("/mcp no tes", TypedCommand(("mcp", "list"), Takes.SOME_SERVERS, "no tes")),
        ("/mcp restart  my notes", TypedCommand(("mcp", "restart"), Takes.SERVER, "my notes")),
        ("/directory", TypedCommand(("directory", "show"), Takes.NOTHING)),
        ("/directory add ~/x", TypedCommand(("directory", "add"), Takes.FOLDER, "~/x")),
        *(("/Help", None), ("/helper", None), ("/help\nme", None), ("help", None)),
    ]:
        assert find_own_command(text) == found


def test_how_a_command_is_typed() -> None:
    assert OWN_COMMANDS["mcp"].usage == "mcp …"
    assert [OWN_COMMANDS[name].usage for name in ("theme", "quit")] == ["theme [THEME]", "quit"]
    typed = find_own_command("/mcp restart")
    assert typed is not None
    assert typed.usage == "/mcp restart SERVER"


@given(st.text("ab@/\\\"'([{< \n:", max_size=30))
def test_a_text_of_somebody_else_mentions_and_commands_nothing(text: str) -> None:
    written = as_text(text)
    assert mentions(written, {ServerId("a"): Catalog()}) == []
    assert not written.startswith("/")
    assert written.replace("\\", "") == text.strip().replace("\\", "")


@given(st.text("ab@/\\\"'([{< \n:", max_size=30), st.text("ab@( ", max_size=9))
def test_a_text_in_a_piece_mentions_nothing_but_what_the_draft_does(text: str, draft: str) -> None:
    assert (mentions(unnamed(text), {}), as_sent(unnamed(text))) == ([], text)
    assert {*mentions(unnamed(text, draft), {})} <= {*mentions(text, {})} & {*mentions(draft, {})}
    assert as_sent(unnamed(as_sent(text), text)) == as_sent(text)


@given(*[st.text("ab@/\\\"'([{< \n", max_size=9)] * 4)
@example("@ ", "@", "", "<@<")
def test_a_paste_adds_no_whole_mention(text: str, before: str, replaced: str, after: str) -> None:
    written = pasted(text, before, replaced, after)
    there = {*mentions(before + replaced + after, {}), *mentions(after, {})}
    typed_on = [one for one in mentions(before + written + after, {}) if one not in there]
    assert len(typed_on) <= 1 + (replaced != "") * len(mentions(before + after, {}))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("/shop/a.png", "@/shop/a.png"),
        ("'/shop/a b.PNG' \n", '@"/shop/a b.PNG"'),
        ('"/shop/a.jpeg"', "@/shop/a.jpeg"),
        (r"/shop/a\ b.webp", '@"/shop/a b.webp"'),
        ("file:///shop/a%20b.heic", '@"/shop/a b.heic"'),
        ("file://localhost/shop/a.png", "@/shop/a.png"),
        ("~/a.png '/b c.jpg'", '@~/a.png @"/b c.jpg"'),
        ("a.png", ""),
        ("see /shop/a.png", ""),
        ("/shop/a.png is it", ""),
        ("/shop/.env", ""),
        ("/shop/a.svg", ""),
        ("'/shop/a.png", ""),
        ("file://elsewhere/a.png", ""),
        ("https://a.example/a.png", ""),
        ("file:///shop/.env%0a/a.png", ""),
        ("/shop/\u202ea.png", ""),
        ("'/shop/a\"b.png'", ""),
        ("/" + "x" * 5_000 + ".png", ""),
        ("", ""),
    ],
)
def test_only_the_path_of_a_picture_is_attached_when_it_is_pasted(text: str, named: str) -> None:
    assert dropped_pictures(text) == named
    assert len(mentions(named, {})) == named.count("@")


def test_a_paste_is_judged_in_its_place() -> None:
    for text, before, after, written in (
        *((".env", "@", "", "\n.env"), ("nv", "@.e", "", "\nnv"), ("n", "@.e", "v", "\nn")),
        *((".env", r"\@", "", ".env"), ("README.md", "@", "", "README.md")),
        *(("see @", "", "", r"see \@"), ("@", "", ".env", r"\@"), (" ", "x", "@.env", " \\")),
        *(("a.pem.", "@src/", "", "\na.pem."), ("/.", "@.env", "", "\n/."), ("@a", "x", "", "@a")),
    ):
        assert pasted(text, before, "", after) == written, text
