"""Prompts after ``/`` and resources after ``@`` in a message, from real servers to the model."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.gemini_script import Action, Fail, Say, Stall
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.typed_deck import LIB, OFFER, Opens, Typed, at, opens
from tui.engine.chats.conversations import MAX_QUEUED
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.files.paths import state_dir
from tui.model.chat import ModelText, TurnPhase
from tui.model.events import ArgumentCompleted
from tui.model.input.mentions import MAX_MENTIONED

__all__ = ["at", "opens"]

SPACE = "Put a space after the ! to send it as a message."


async def test_a_prompt_is_rendered_with_its_typed_arguments(at: Typed) -> None:
    for text, sent in (
        ('/greet "Ada Lovelace"', ['greet {"name": "Ada Lovelace"}']),
        (r"/greet C:\temp\x don't ", [r'greet {"mood": "don' "'" r't", "name": "C:\\temp\\x"}']),
        ("/greet Ada be\nkind", ['greet {"mood": "be\\nkind", "name": "Ada"}']),
        ("/code review all", ['code review {"what": "all"}']),
        ("/fix!", ["fix! {}"]),
        ("/lib_clear", ["clear {}"]),
        ("/io.github.x/y", ["io.github.x/y {}"]),
        ("/review only\nthis file", ["review {}", "only\nthis file"]),
        ("/etc/hosts is a file", ["/etc/hosts is a file"]),
        ("/* a comment */", ["/* a comment */"]),
        ("/gret Ada\nand more", ["/gret Ada\nand more"]),
        ("/50% of it", ["/50% of it"]),
        ("! ls -l", ["! ls -l"]),
        ("!!", ["!!"]),
    ):
        await at.ask(text)
        assert at.sent == sent
        assert at.shown[-1].startswith(text.strip())


@pytest.mark.parametrize(
    "text", ['/greet "Ada Lovelace"', "/talk", "read  @lib:memo://today, then @hello.py please"]
)
async def test_a_message_is_sent_again_as_it_was_sent(text: str, home: Path, opens: Opens) -> None:
    steps: list[tuple[Action, ...]] = [(Say(f"answer {number}"),) for number in range(6)]
    prompts: dict[str, Any] = {"prompts": {**OFFER["prompts"], "talk": []}}
    async with opens(steps[:5], **prompts) as at:
        file = home / "work" / "hello.py"
        file.write_text("print('hello')\n")
        await at.ask("before")
        await at.ask(text)
        file.write_text("print('changed')\n")
        shown, asked = at.shown, at.asked()
        for model in ("", "gemini-2.5-pro", ""):
            await at.retry(model)
        first, *again = [request.contents for request in at.fake.requests[1:]]
        assert (again, at.fake.requests[-1].model) == ([first] * 3, "gemini-2.5-pro")
        assert (at.shown, at.asked()) == (shown, asked)
        session = at.engine.sessions.recorder.session
    library = SessionLibrary(state_dir())
    [older] = [view for view in library.sessions() if view.id != session]
    assert (older.title, older.parent) == ("before (before retry)", session)
    said = [one.text for one in library.read(older).entries if isinstance(one, ModelText)]
    assert said == ["answer 0", "answer 1"]
    async with opens(steps[5:], **prompts) as at:
        at.engine.sessions.resume(str(session))
        await eventually(lambda: at.shown == shown)
        await at.retry()
        assert at.fake.requests[-1].contents == first
        assert (at.shown, at.asked(), at.messages[-1].typed) == (shown, asked, text)
        assert at.messages[-1].servers == (LIB,)


async def test_an_edited_message_is_read_anew_and_what_was_stays(home: Path, opens: Opens) -> None:
    first, *others = [(Say(f"{number}"),) for number in range(7)]
    steps: list[tuple[Action, ...]] = [first, (Fail(400),), *others]
    async with opens(steps) as at:
        file = home / "work" / "hello.py"
        file.write_text("old")
        await at.ask("see @hello.py")
        await at.ask("and @lib:memo://today")
        assert at.unsent == at.messages[-1].typed == "and @lib:memo://today"
        await at.retry()  # it is in no history, so it is read again
        assert (at.sent[2], len(at.fake.requests[-1].contents)) == ("content of memo://today", 3)
        file.write_text("new")
        await at.retry(place=0)
        assert (at.sent[2], at.shown) == ("old", at.shown[:1])
        await at.retry(text="look at @hello.py")
        assert (at.sent[2], at.messages[0].typed) == ("new", "look at @hello.py")
        await at.retry()
        assert at.sent[2] == "new"
        await at.ask("more")
        await at.retry(place=0)  # a second time, but now something follows it
    titles = [view.title.replace(view.first, "") for view in SessionLibrary(state_dir()).sessions()]
    assert sorted(titles) == ["", " (before edit)", *[" (before retry)"] * 4]


async def test_what_is_no_command_or_resource_never_reaches_the_model(at: Typed) -> None:
    many = " ".join(f"@lib:memo://may/{number}" for number in range(MAX_MENTIONED + 1))
    own = Path.home() / ".gemini" / "commands" / "git"
    own.mkdir(parents=True)
    (own / "fix.toml").touch()
    for text, words in (
        ("/gret Ada and more", "There is no command /gret. Did you mean /greet?"),
        ("/hlep", "There is no command /hlep. Did you mean /help?"),
        ("/clear all", "/clear works only on the screen."),
        ("/?", "/help works only on the screen."),
        ("/about", "`gemdeck doctor` shows versions, settings and servers."),
        (
            "/git:fix now",
            "in gemini-cli; here, servers' prompts are commands (F4).",
        ),
        ("!", f"no shell: ! was not run. {SPACE}"),
        ("/greet help", "This is a prompt of lib. Type /greet --name [--mood]"),
        ("/zzzzz:1 x", "There is no command /zzzzz:1. F4 shows the prompts of your servers."),
        ("/föö", "There is no command /föö. F4 shows the prompts of your servers."),
        ("/greet", 'name="…"'),
        ("@lib:memo://tody", "no resource memo://tody. Did you mean @lib:memo://today?"),
        ("@lib:zzzz", "lib has no resource zzzz. F5 shows its resources."),
        ("@off:x", "cannot be called (disabled). Send the message once the server is ready."),
        ("!ls -l", f"no shell: !ls -l was not run. {SPACE}"),
        ("!important", f"no shell: !important was not run. {SPACE}"),
        (many, "can include at most 20 resources and files. Send several messages."),
    ):
        await at.ask(text)
        assert at.notice.endswith(words)
        assert at.returned[-1] == text
    assert (at.fake.requests, at.turn, at.chat.unsent.count) == ([], None, 17)
    for words in ("/review", "/hlep", "@lib:memo://tody"):
        at.engine.messages.send_resource(LIB, "memo://today", words)
        assert at.returned[-1] == words


async def test_a_folder_that_is_added_is_open_and_servers_are_told(home: Path, at: Typed) -> None:
    (home / "more").mkdir()
    assert [*at.store.state.folders] == ["~/work"]
    at.engine.features.add_folder("~/more")
    await eventually(lambda: at.store.state.folders == ("~/work", "~/more"))
    changed = "notifications/roots/list_changed"
    await at.recorded(changed)
    await at.told("~/more was added; the servers were notified.")
    for typed, words in (
        ("../more", "~/more is already open."),
        ("nowhere", "There is no folder nowhere."),
        ("a\0b", "There is no folder a␀b."),
    ):
        at.engine.features.add_folder(typed)
        await at.told(words)
    at.engine.features.open_link("https://example.com/")
    await at.told("No program to open links was found.")
    at.engine.features.complete_folder("1", "../mo")
    await eventually(lambda: at.store.state.completion == ArgumentCompleted("1", ("../more/",)))
    assert (len(at.store.state.folders), at.record.read_text().count(changed)) == (2, 1)


async def test_a_message_that_comes_back_leaves_the_running_turn_alone(opens: Opens) -> None:
    async with opens([(Say("so "), Stall()), (Say("two"),)]) as at:
        at.engine.send("hello")
        await at.fake.wait_for_stall()
        running = at.turn
        at.engine.send("/hlep")
        assert at.returned == ["/hlep"]
        assert at.turn is running
        at.engine.cancel_turn()
        with anyio.fail_after(PATIENCE):
            await at.fake.wait_for_gone()
        await at.idle()
        assert at.turn is None


async def test_a_server_that_does_not_answer_is_named_and_stopped_on_the_wire(at: Typed) -> None:
    for number, text in enumerate(("/slow", "read @lib:memo://slow"), 1):
        at.engine.clear_conversation()
        at.engine.send(text)
        at.engine.send("behind")
        at.engine.send("/review")
        await at.asking()
        assert (at.turn.server, at.chat.queued[0]) == (LIB, "behind")
        await at.recorded("prompts/get" if number == 1 else "resources/read")
        at.engine.cancel_turn()
        await at.idle()
        assert (at.unsent, at.turn) == (f"{text}\n\nbehind\n\n/review", None)
        assert not at.chat.queued
        await at.recorded("notifications/cancelled", number)
        await at.ask("again")
        assert (at.sent, at.shown, len(at.fake.requests)) == (["again"], [text, "again"], number)


async def test_what_waits_for_a_server_is_dropped_given_back_or_too_much(at: Typed) -> None:
    at.engine.send("one")
    at.engine.send("/review")
    at.engine.cancel_turn()  # before the first step
    assert at.returned == ["one", "/review"]
    await at.idle()
    assert (at.fake.requests, [*at.chat.unsent.texts]) == ([], ["one", "/review"])
    at.engine.send("/slow")
    at.engine.send("behind")
    await at.asking()
    at.engine.clear_conversation()
    await at.idle()
    await at.ask("fresh")
    assert at.shown == ["fresh"]
    assert at.fake.requests[-1].contents == [{"role": "user", "parts": [{"text": "fresh"}]}]
    assert [*at.chat.unsent.texts] == ["behind"]
    at.engine.send("/slow")
    await at.asking()
    for number in range(MAX_QUEUED):
        at.engine.send(f"{number}")
    at.engine.send("x" * 3_000)
    assert at.returned[3:] == ["x" * 3_000]
    assert at.notice == f"Not sent, because {MAX_QUEUED} messages are already waiting."
    at.engine.cancel_turn()
    await at.idle()


async def test_resources_go_along_with_the_words_that_name_them(at: Typed) -> None:
    text = "compare @lib:memo://today, @lib:memo://today (@lib:page://Foo_(bar)) @lib://monday."
    await at.ask(text)
    assert at.sent[0] == text
    uris = ["memo://today", "page://Foo_(bar)", "memo://monday"]
    assert [f"content of {uri}" in at.sent for uri in uris] == [True] * 3
    assert [one["uri"] for one in at.asked()] == uris
    assert at.shown[0].startswith(f"{text}\n\n[memo://today of lib: 23 characters]")
    await at.ask("@lib:memo://may/5 me@lib:x @nobody:else @todo: this")
    assert [one["uri"] for one in at.asked()][3:] == ["memo://may/5"]
    at.engine.messages.send_resource(LIB, "memo://today", "see @lib:memo://monday")
    await at.idle()
    assert at.sent[0] == "see @lib:memo://monday"
    assert [one["uri"] for one in at.asked()][4:] == ["memo://monday", "memo://today"]


async def test_the_documented_examples_work_word_for_word(opens: Opens) -> None:
    rendered = 'poem-writer {"mood": "reverent", "title": "Gemini CLI"}'
    steps = [(Say(f"{number}"),) for number in range(5)]
    async with opens(steps, name="server") as at:
        await at.ask('/poem-writer --title="Gemini CLI" --mood="reverent"')
        assert at.sent == [rendered]
        await at.ask('/poem-writer "Gemini CLI" reverent')
        assert at.sent == [rendered]
        await at.ask("@server://resource/path what is it?")
        assert at.sent[0] == "@server://resource/path what is it?"
        assert "content of doc://resource/path" in at.sent
        for text in ('@server:"memo://two words?at=1"', "see @server:memo://two words?at=1 now"):
            await at.ask(text)
            assert "content of memo://two words?at=1" in at.sent


async def test_files_go_along_with_resources_or_a_message_comes_back(home: Path, at: Typed) -> None:
    work = home / "work"
    (work / "src").mkdir()
    (work / "src" / "a.py").write_text("print(1)")
    (work / "my notes.md").write_text("a note")
    (work / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    text = 'compare @src/a.py, @"my notes.md" and @lib:memo://today, me@src/a.py @todo!'
    await at.ask(text)
    assert at.sent[:4] == [text, "[File src/a.py]", "print(1)", "[End of src/a.py]"]
    assert {"a note", "content of memo://today"} <= set(at.sent)
    assert len(at.sent) == 10
    assert "[src/a.py: 8 characters]\n\n[my notes.md: 6 characters]" in at.shown[0]
    await at.ask("what is on @dot.png?")
    media = at.fake.requests[-1].contents[-1]["parts"][-1]
    assert media == {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    await at.ask("write to @nobody or me@example.com")
    assert at.sent == ["write to @nobody or me@example.com"]
    (work / ".gitignore").write_text("*.key")
    (work / "own.key").write_text("hush")
    (work / "big.txt").write_text("x" * 1_000_001)
    (work / "data.bin").write_bytes(b"\0")
    for text, words in (
        ("see @own.key", "@own.key is ignored by .gitignore. Type \\@ for a plain @."),
        (
            "see @/etc/passwd",
            "@/etc/passwd is outside the opened folders. /directory add /etc opens it, for servers",
        ),
        ("see @big.txt", "@big.txt was not sent: 1,000,001 bytes"),
        ("see @data.bin", "@data.bin was not sent: it is not text, an image or a PDF."),
    ):
        await at.ask(text)
        assert at.error.startswith(words)
        assert at.unsent == text
    assert len(at.fake.requests) == 3
    at.engine.features.complete_path("1", "dta")
    await eventually(lambda: at.store.state.completion is not None)
    assert at.store.state.completion == ArgumentCompleted("1", ("data.bin",))


async def test_a_file_that_is_not_there_is_told_and_lines_mean_their_file(
    home: Path, at: Typed
) -> None:
    (home / "work" / "a.py").write_text("print(1)")
    for lines in (":2", ":2:5", ":1-2", "#L2", "#L1-L2"):
        await at.ask(text := f"explain @a.py{lines}, please")
        assert at.sent == [text, "[File a.py]", "print(1)", "[End of a.py]"]
    sent = len(at.fake.requests)
    await at.ask(text := "compare @gone.py with @src/*.py, @a.py, @types/node and @nobody")
    assert (at.sent[0], len(at.fake.requests)) == (text, sent + 1)
    assert at.error == "No such file here: gone.py, src/*.py. The message was sent without it."
    (home / "work" / "big.png").write_bytes(b"\0" * 7_000_001)
    await at.ask("see @.")
    assert at.error.startswith("@. was not sent: it is too large in total")


async def test_a_message_that_fails_on_its_way_comes_back_as_typed(at: Typed) -> None:
    text = f"/greet Ada be\nkind \u202e {'x' * 60_000}"
    await at.ask(text)
    assert "longer than 50000 characters" in at.error
    assert at.unsent == text
    features, values = at.engine.features, {"name": 'a\n"b"\\'}
    features.render_prompt("1", LIB, "greet", {**values, "mood": "x" * 60_000})
    await eventually(lambda: at.rendered("1"))
    assert "longer than 50000 characters" in at.rendered("1")[0].failure
    features.render_prompt("2", LIB, "slow", {})
    features.render_prompt("3", LIB, "greet", values)
    await eventually(lambda: at.rendered("3"))
    assert at.rendered("2") == []
    for token in ("1", "2", "no"):
        at.engine.messages.send_rendered(token)
        assert at.turn is None
    requests = len(at.fake.requests)
    at.engine.messages.send_rendered("3")
    await at.idle()
    assert len(at.fake.requests) == requests + 1
    assert at.sent == [part for one in at.rendered("3")[0].messages for part in one.parts]
    assert at.messages[-1].typed == '/greet --name="a\n\\"b\\"\\\\"'
    at.engine.messages.send_resource(LIB, "memo://today", "What is it?")
    await at.idle()
    assert at.sent == ["What is it?", *at.sent[1:]]
    assert "content of memo://today" in at.sent


async def test_a_prompt_waits_for_its_server_to_start(home: Path, opens: Opens) -> None:
    gate = home / "gate"
    async with opens(ready=False, gate=str(gate)) as at:
        at.engine.send("/io.github.x/y")
        at.engine.send("@lib:memo://today")
        await eventually(lambda: at.turn is not None and at.turn.phase is TurnPhase.SERVERS)
        gate.touch()
        await at.idle()
        first, second = at.fake.requests
        assert first.contents[-1]["parts"] == [{"text": "io.github.x/y {}"}]
        assert "content of memo://today" in str(second.contents[-1])


async def test_names_in_data_count_for_nothing(at: Typed) -> None:
    data = "/hlep @lib:memo://today"
    for text, sent in (
        ("/review this", ["review {}", f"this\n\n{data}"]),
        ("what is it?", [f"{data}\n\nwhat is it?"]),
        ("", [data]),
    ):
        at.engine.send(text, data=data)
        await at.idle()
        assert at.sent == sent
    at.engine.send("see @lib:memo://monday", data=data)
    await at.idle()
    assert at.sent[0] == f"{data}\n\nsee @lib:memo://monday"
    assert [one.get("uri", "") for one in at.asked()] == ["", "memo://monday"]
    at.engine.send("  ")
    await at.idle()
    assert len(at.fake.requests) == 4
