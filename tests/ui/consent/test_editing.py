"""Arguments that the user changes before a call runs."""

import json
from dataclasses import replace

import pytest
from textual import events
from textual.widgets import Input, Select

from tests.ui.chat.samples import request
from tests.ui.consent.samples import VALUES, asked
from tests.ui.hands import Confirming, confirming
from tui.model import events as e
from tui.model.consent import Choice, Decision, GrantScope
from tui.model.input.arguments import canonical_json
from tui.model.requests import ConfirmationRequest
from tui.ui.dialogs.help import HelpScreen
from tui.ui.questions.calls.steps import EditArgumentsScreen
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.widgets.forms.argument_form import FORM, INCOMPLETE
from tui.ui.widgets.forms.json_area import MAX_EDITABLE

DEV = '{"branch": "dev"}'


async def test_texts_are_edited_as_they_are_and_escaped_where_they_do_not_show() -> None:
    values = {**VALUES, "text": "two\nlines", "deep": {"list": [1, None]}}
    async with confirming(asked(values)) as hands:
        # A form changes what was touched and nothing is sent before the answer.
        await hands.edit()
        assert "2 more are not in this form" in hands.text
        await hands.press("enter", "backspace", "4", "2")
        await hands.finish()
        assert hands.decisions == []
        assert "your edit" in hands.text
        assert "amount  42" in hands.text
        await hands.press("end", "o")
        assert hands.sent() == {**values, "amount": 42}
        (decision,) = hands.decisions
        assert decision.arguments == canonical_json({**values, "amount": 42})
        # The one long text is edited as it is.
        values = {"branch": "two\nlines", "amount": 3}
        await hands.ask_next(asked(values))
        await hands.edit()
        assert hands.app.focused is hands.editor.text
        assert hands.editor.text.text == "two\nlines"
        await hands.press("x", '"')
        await hands.press("ctrl+t")
        rows = [row.field.default for row in hands.editor.form.rows]
        assert rows == [r'"x\"two\nlines"', 3, None]
        await hands.press("ctrl+t")
        assert json.loads(hands.editor.json.text) == {"branch": 'x"two\nlines', "amount": 3}
        hands.editor.json.load_text('{"branch": "a\\nb", "amount": 4}')
        await hands.press("ctrl+t")
        assert hands.editor.text.text == "a\nb"
        await hands.press("c")
        await hands.finish()
        await hands.press("o")
        assert hands.sent() == {"branch": "ca\nb", "amount": 4}
        # Characters that do not show are escapes in the editor.
        await hands.ask_next(asked({"branch": "ma\u200bin"}))
        area = await hands.edit_as_json()
        assert '"ma\\u200bin"' in area.text
        area.select_all()
        hands.app.post_message(events.Paste('{"branch": "\u202edev\U000e0041\u3164"}'))
        await hands.pilot.pause()
        assert area.text == '{"branch": "\\u202edev\\udb40\\udc41\\u3164"}'
        await hands.finish()
        await hands.press("o")
        assert hands.sent() == {"branch": "\u202edev\U000e0041\u3164"}
        # Arguments too long to edit stay as they are.
        await hands.ask_next(asked({"branch": "x" * MAX_EDITABLE}))
        await hands.press("e")
        assert "Too long to edit here" in hands.hint
        assert isinstance(hands.app.screen, ConfirmationQuestion)
        # A long text that was not changed is no edit.
        await hands.ask_next(asked({"branch": "two\nlines"}))
        await hands.edit()
        await hands.finish()
        assert "your edit" not in hands.text
        await hands.edit()
        await hands.press("x", "escape")
        assert "again to drop what you changed" in hands.text


EDITED = canonical_json(json.loads(DEV))


async def test_an_edit_goes_with_answers_that_allow_until_the_engine_takes_it() -> None:
    async with confirming() as hands:
        # Answers that allow send the edited arguments and no other does.
        for keys, decision in (
            ("mtt", Decision(Choice.ALWAYS_TOOL, scope=GrantScope.FOLDER, arguments=EDITED)),
            ("n", Decision(Choice.DENY_REST_OF_TURN)),
        ):
            await hands.ask_next(asked())
            await hands.edit_as_json(DEV)
            await hands.finish()
            await hands.press(*keys)
            assert hands.decisions == [decision]
        # Keys held in the editor or as it closes answer nothing.
        await hands.ask_next(asked())
        await hands.edit()
        await hands.pilot.press(*["enter"] * 3)
        hands.editor.json.focus()
        await hands.pilot.press("ctrl+t", *["enter"] * 5)
        hands.editor.json.load_text(DEV)
        await hands.pilot.press("ctrl+s", "o", "enter", "t", "t")
        await hands.until(lambda: isinstance(hands.app.screen, ConfirmationQuestion))
        await hands.pilot.press("o", "enter")
        assert hands.decisions == []
        # An edit the engine refuses is still there to be edited.
        refused = replace(asked(problem="branch: 'dev' is protected"), refusals=1)
        await hands.ask_next(asked())
        await hands.edit_as_json(DEV)
        await hands.finish()
        await hands.press("o")
        await refuse(hands, refused)
        await hands.pilot.press("o", "o", "enter")
        await hands.arm()
        await hands.press("e")
        await hands.until(lambda: isinstance(hands.app.screen, EditArgumentsScreen))
        await hands.pilot.pause()
        assert "branch: 'dev' is protected" in hands.text
        assert json.loads(hands.editor.json.text) == {"branch": "dev"}
        hands.editor.form.query(Input).first().value = "topic"
        await hands.finish()
        assert "! Not sent yet: branch: 'dev' is protected" in hands.text
        await hands.press("o")
        assert len(hands.decisions) == 2
        assert json.loads(hands.decisions[1].arguments or "") == {"branch": "topic"}
        await refuse(hands, replace(refused, refusals=2))  # with the same words


async def test_an_edit_is_read_mended_dropped_or_sent_as_it_is_shown() -> None:
    async with confirming() as hands:
        # The end of edited arguments has to be seen too.
        await hands.edit_as_json(json.dumps({"branch": "dev", "list": list(range(100))}))
        await hands.finish()
        await hands.press("o")
        assert hands.decisions == []
        assert "more below" in hands.hint
        await hands.press("end", "o")
        assert len(hands.decisions) == 1
        # Json says where it is wrong as it is typed and stays open.
        await hands.ask_next(asked())
        area = await hands.edit_as_json('{\n  "branch": main\n}')
        assert "line 2, column 13: expecting value" in hands.text
        await hands.press("ctrl+t", "ctrl+s")
        assert isinstance(hands.app.screen, EditArgumentsScreen)
        assert area.text == '{\n  "branch": main\n}'
        area.move_cursor((1, 12))
        await hands.press('"', "end", '"')
        assert "Valid JSON" in hands.text
        await hands.finish()
        await hands.press("o")
        assert hands.sent() == {"branch": "main"}
        # Esc drops changes only when it is pressed twice.
        await hands.ask_next(asked())
        area = await hands.edit_as_json(DEV)
        await hands.press("escape")
        assert "again to drop what you changed" in hands.text
        await hands.press("x", "escape")
        assert area.text != DEV, "what was typed since is asked about anew"
        await hands.press("escape")
        await hands.until(lambda: isinstance(hands.app.screen, ConfirmationQuestion))
        await hands.arm()
        await hands.press("o")
        assert hands.decisions == [Decision(Choice.ONCE)]
        # What is on the screen is what is sent the models or the users.
        await hands.ask_next(asked())
        await hands.edit_as_json(json.dumps(VALUES))
        await hands.finish()
        assert "your edit" not in hands.text, "it ends where it began"
        await hands.press("u")
        assert "you changed nothing" in hands.hint
        await hands.edit_as_json(DEV)
        await hands.finish()
        assert "branch  dev" in hands.text
        await hands.pilot.press("u")
        assert not hands.modal.armed, "what is shown changed"
        await hands.arm()
        assert "branch  main" in hands.text
        assert "your edit" not in hands.text
        await hands.press("u")
        assert "branch  dev" in hands.text
        await hands.arm()
        await hands.press("u")
        await hands.arm()
        await hands.press("o")
        assert hands.decisions == [Decision(Choice.ONCE)]
        # A form that is wrong says so and is not left.
        await hands.ask_next(asked())
        await hands.edit()
        await hands.press("enter", "backspace", "-", "ctrl+s")
        assert isinstance(hands.app.screen, EditArgumentsScreen)
        assert "Enter a whole number." in hands.text
        await hands.press("ctrl+t")
        assert hands.editor.current == FORM
        assert INCOMPLETE in hands.text
        await hands.press("backspace", "7")
        assert "Enter a whole number." not in hands.text, "it is mended"
        assert INCOMPLETE not in hands.text


async def test_text_is_kept_when_switching_between_form_and_json() -> None:
    async with confirming() as hands:
        await hands.edit()
        hands.editor.form.query(Input).first().value = "feature"
        await hands.press("ctrl+t")
        area = hands.editor.json
        assert json.loads(area.text) == {**VALUES, "branch": "feature"}
        area.load_text('{ "branch": "other",\n\n "colour": "b", "extra": 1 }')
        await hands.press("ctrl+t")
        await hands.until(lambda: hands.editor.current == FORM)
        assert hands.editor.form.query(Input).first().value == "other"
        assert hands.editor.form.query_one(Select).value == 2
        await hands.press("ctrl+t")
        assert area.text == '{ "branch": "other",\n\n "colour": "b", "extra": 1 }'


async def test_json_that_could_not_be_sent_as_it_reads_is_refused() -> None:
    async with confirming() as hands:
        area = await hands.edit_as_json()
        before = area.text
        hands.app.post_message(events.Paste("x" * MAX_EDITABLE))
        await hands.pilot.pause()
        assert area.text == before
        assert "At most 20,000 characters" in hands.text
        for text, reason in (
            ("[1]", "must be an object"),
            ('{"a": 1, "a": 2}', "duplicate key"),
            ('{"a": NaN}', "NaN is not a JSON number"),
            ('{"a": 1e999}', "out of range"),
            ('{"a": "\\ud800"}', "lone surrogate"),
            ("", "line 1, column 1"),
        ):
            area.load_text(text)
            await hands.pilot.press("ctrl+s")
            assert reason in hands.text, text
            assert isinstance(hands.app.screen, EditArgumentsScreen), text


async def refuse(hands: Confirming, refused: ConfirmationRequest) -> None:
    """Let the engine ask again, and wait for its reason."""
    hands.app.store.dispatch(e.RequestRaised(refused))
    await hands.until(lambda: hands.modal.request == refused)
    await hands.until_shown(f"! Not sent yet: {refused.problem}")


async def test_the_editor_goes_with_its_question_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with confirming() as hands:
        said: list[str] = []
        monkeypatch.setattr(hands.app, "notify", lambda words, **_: said.append(words))
        await hands.edit_as_json(DEV)
        await hands.settle()
        assert len(hands.app.screen_stack) == 1
        assert hands.decisions == []
        assert "went away" in said[0]
        await hands.ask(asked())
        await hands.edit()
        await hands.app.push_screen(HelpScreen((), "keys", hands.app.commands))
        await hands.settle()
        assert isinstance(hands.app.screen, HelpScreen)
        await hands.press("escape")
        await hands.until(lambda: len(hands.app.screen_stack) == 1)


async def test_the_editor_stays_as_another_question_comes_which_gets_nothing_of_it() -> None:
    async with confirming() as hands:
        area = await hands.edit_as_json(DEV)
        hands.app.store.dispatch(e.RequestRaised(request(1)))
        await hands.pilot.pause(0.05)
        assert isinstance(hands.app.screen, EditArgumentsScreen)
        assert area.text == DEV
        await hands.settle()
        await hands.until(lambda: hands.modal.request == request(1))
        await hands.arm()
        assert "edited by you" not in hands.text
        await hands.press("o")
        assert hands.decisions == [Decision(Choice.ONCE)]


@pytest.mark.parametrize("as_json", [True, False])
async def test_a_resize_keeps_what_was_written_and_its_keys(as_json: bool) -> None:
    async with confirming(size=(120, 36)) as hands:
        if as_json:
            await hands.edit_as_json(DEV)
        else:
            await hands.edit()
            hands.editor.form.query(Input).first().value = "dev"
        for size in ((40, 10), (80, 24)):
            await hands.resize(size)
            assert "to the question" in hands.text, size
            assert hands.editor.size.height >= 3, size
        await hands.finish()
        await hands.press("end", "o")
        assert hands.sent() == ({"branch": "dev"} if as_json else {**VALUES, "branch": "dev"})


async def test_keys_of_one_burst_work_in_the_order_in_which_they_were_pressed() -> None:
    async with confirming(asked({"branch": "main"})) as hands:
        area = await hands.edit_as_json()
        burst = [("down", None), ("end", None), *[("backspace", None)] * 5]
        for key, character in (*burst, *((letter, letter) for letter in "dev"), ('"', '"')):
            hands.app.post_message(events.Key(key, character))
        await hands.until(lambda: "dev" in area.text)
        await hands.pilot.pause(0.1)
        assert area.text == '{\n  "branch": "dev"\n}'


async def test_what_the_form_cannot_show_is_edited_as_json() -> None:
    long = dict.fromkeys(("branch", "colour"), "two\nlines")
    many: dict[str, object] = {"properties": {f"p{number}": {} for number in range(60)}}
    async with confirming() as hands:
        for values, schema, words in (
            (long, many, "it has more than 50 fields"),
            ({"branch": "two\nli\u200bnes"}, {}, "No form fits"),
            (VALUES, {}, "No form fits"),
        ):
            hands.app.commands.offer(schema)
            await hands.ask_next(asked(values))
            await hands.edit()
            assert hands.app.focused is hands.editor.json
            await hands.press("ctrl+t")
            assert words in hands.text
            assert hands.app.focused is hands.editor.json
            await hands.press("escape")
