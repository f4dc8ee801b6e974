"""Resources and paths that a message mentions."""

import time
from collections.abc import Mapping

import pytest

from tui.model.catalog import Catalog, ResourceTemplateView, ResourceView
from tui.model.input.mentions import (
    PathMention,
    ResourceMention,
    find_resource,
    mentions,
    typed_mention,
)
from tui.model.servers import ServerId

NOTES = ServerId("notes")
LISTED = ("memo://today", "memo://what?", "memo://very/deep/er/file.md", "memo://other/file.md")


def library(*uris: str, templates: tuple[str, ...] = ()) -> Catalog:
    return Catalog(
        resources=tuple(ResourceView(uri, uri) for uri in uris),
        templates=tuple(ResourceTemplateView(template, template) for template in templates),
    )


def named(text: str, catalogs: Mapping[ServerId, Catalog]) -> list[tuple[str, str]]:
    """Return the resources that a text mentions."""
    found = (one for one in mentions(text, catalogs) if isinstance(one, ResourceMention))
    return [(one.server, one.uri) for one in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@notes:memo://today", [("notes", "memo://today")]),
        ("@notes:x://1?b=2&c=(d), @other:y.", [("notes", "x://1?b=2&c=(d),"), ("other", "y.")]),
        ("(@notes:y) and @notes:y)", [("notes", "y)")]),
        ("@my server:1:x", [("my server:1", "x")]),
        ("open @notes:file:///my list.txt now", [("notes", "file:///my list.txt")]),
        *(("mail me@notes:now", []), ("@nobody:else", []), ("@notes", []), ("@notes: that", [])),
        ('open @notes:"x://a b?c=1" now', [("notes", "x://a b?c=1")]),
        *(('open @"notes:x://a b", now', [("notes", "x://a b")]), ('@notes:"no end', [])),
    ],
)  # fmt: skip
def test_a_mention_names_a_server_and_a_uri(text: str, found: list[tuple[str, str]]) -> None:
    catalogs = {
        NOTES: library("file:///my list.txt"),
        ServerId("other"): Catalog(),
        ServerId("my server:1"): Catalog(),
    }
    assert named(text, catalogs) == found


@pytest.mark.slow
def test_many_mentions_in_a_long_text_are_found_in_linear_time() -> None:
    catalogs = {NOTES: library(*(f"file:///{number} x" for number in range(1_000)))}
    began = time.process_time()
    assert len(mentions("@notes:a @notes:b " * 5_000 + "x" * 4_000_000, catalogs)) == 2
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("typed_uri", "uri"),
    [
        *(("memo://today", "memo://today"), ("memo://today,", "memo://today")),
        *(("memo://what?", "memo://what?"), ("page://Foo_(bar)", "page://Foo_(bar)")),
        *(("page://Foo_(bar)).", "page://Foo_(bar)"), ("page://other)", "page://other")),
        *(("//today", "memo://today"), ("//today.", "memo://today"), ("memo://tomorrow", "")),
        *(("page://a/b", ""), ("//one", "page://one"), ("//a/b/c", "")),
        ("//deep/er/file.md", "memo://very/deep/er/file.md"),
        *(("er/file.md", "memo://very/deep/er/file.md"), ("file.md", "")),
    ],
)
def test_a_resource_is_found_with_and_without_the_punctuation_after_it(
    typed_uri: str, uri: str
) -> None:
    catalog = library(*LISTED, templates=("page://{name}", "{broken"))
    assert find_resource(typed_uri, catalog) == uri


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see @src/a.py, please", [("src/a.py,", "src/a.py")]),
        ("(@src/a.py)", [("src/a.py)", "src/a.py")]),
        (r"@my\ file.txt and @b", [("my file.txt", "my file.txt"), ("b", "b")]),
        ('@"my file.txt" and @~/b', [("my file.txt", "my file.txt"), ("~/b", "~/b")]),
        ("@a @a @notes:x", [("a", "a")]),
        ("me@example.com, a@b", []),
        ('@"open', []),
        ("@ alone", []),
    ],
)
def test_a_word_after_an_at_may_be_a_path(text: str, paths: list[tuple[str, str]]) -> None:
    found = [one for one in mentions(text, {NOTES: Catalog()}) if isinstance(one, PathMention)]
    assert [(one.path, one.trimmed) for one in found] == paths


@pytest.mark.parametrize("target", ["src/a.py", "my file.txt", "x://a?b"])
def test_what_is_typed_for_a_target_mentions_it(target: str) -> None:
    assert named(f"see {typed_mention(target, 'notes')} now", {NOTES: Catalog()}) == [
        (NOTES, target)
    ]
    assert mentions(f"see {typed_mention(target)} now", {}) == [PathMention(target, target)]
