"""The step that says a rule in words before it is kept."""

import json
from dataclasses import replace

import pytest

from tests.ui.consent.samples import PATH, asked, writing
from tests.ui.hands import Confirming, confirming
from tests.ui.harness import NARROW
from tui.model.consent import Choice, Condition, ConditionKind, Decision, GrantScope
from tui.ui.questions.calls.rules import RuleStep, options_of
from tui.ui.widgets.text.folded_text import FoldedText

IS, FOLDER, STARTS, ANY = ConditionKind


def shown(hands: Confirming) -> str:
    assert isinstance(hands.app.screen, RuleStep)
    view = hands.app.screen.query_one(FoldedText)
    return " ".join(str(hands.app.screen.words()).split()) if view.row_count else ""


@pytest.mark.parametrize("size", [NARROW, (120, 36)])
async def test_a_rule_is_made_of_the_call_and_said_before_it_is_kept(size: tuple[int, int]) -> None:
    async with confirming(writing(), size=size) as hands:
        await hands.press("end", "m", "v")
        await hands.until(lambda: isinstance(hands.app.screen, RuleStep))
        assert 'content is "buy milk today" mode is 7' in shown(hands)
        assert f'path is "{PATH}"' in shown(hands) or f"path is {json.dumps(PATH)}" in shown(hands)
        await hands.press("right")
        assert 'content starts with "buy milk today"' in shown(hands)
        await hands.press("right")
        assert 'content starts with "buy milk "' in shown(hands)
        await hands.press("right", "right", "left", "left")
        assert 'content starts with "buy milk "' in shown(hands)
        await hands.press("left", "left", "left")
        assert "content is anything or missing" in shown(hands), "after the last comes the first"
        await hands.press("up", "right")
        assert "path is in /home/ada/shop/docs" in shown(hands)
        await hands.press("right")
        assert shown(hands).endswith("path is in /home/ada/shop")
        assert ", saved for this folder, where" in shown(hands)
        await hands.press("pagedown", "pagedown", "ctrl+s")
        await hands.until(lambda: hands.decisions)
    conditions = (
        *(Condition("content", ANY), Condition("mode", IS, "7")),
        Condition("path", FOLDER, "/home/ada/shop"),
    )
    assert hands.decisions == [
        Decision(Choice.ALWAYS_THESE, scope=GrantScope.FOLDER, conditions=conditions)
    ]


async def test_a_rule_is_kept_once_it_was_read_and_of_what_can_have_one() -> None:
    async with confirming(writing()) as hands:
        # Back keeps nothing and what is edited or empty makes no rule.
        await hands.press("end", "v")
        await hands.until(lambda: isinstance(hands.app.screen, RuleStep))
        await hands.press("escape")
        assert hands.decisions == []
        await hands.edit_as_json(json.dumps({"path": "/etc"}))
        await hands.finish()
        await hands.press("end", "v")
        assert not isinstance(hands.app.screen, RuleStep)
        assert "Not available" in hands.text
        await hands.ask_next(asked({}))
        await hands.press("v")
        assert not isinstance(hands.app.screen, RuleStep)
        await hands.ask_next(replace(writing(), not_lasting="nothing identifies it"))
        await hands.press("end", "v")
        assert not isinstance(hands.app.screen, RuleStep)
        # What is read only by the servers word is counted and takes its key twice.
        await hands.ask_next(replace(asked(), read_only=2))
        await hands.arm()
        await hands.press("r")
        said = "Press r again: always allow the 2 tools declared read-only, this session"
        assert said in hands.text
        assert hands.decisions == []
        await hands.press("r")
        await hands.until(lambda: hands.decisions)
        assert hands.decisions == [Decision(Choice.ALWAYS_READ_ONLY)]
        await hands.ask_next(asked())
        await hands.press("end", "r", "r")
        assert hands.decisions == []
        # A rule that is long is read to its end before it is kept.
        values = {f"argument{number:02}": "word " * 60 for number in range(20)}
        await hands.ask_next(asked(values))
        await hands.press("end", "v")
        await hands.until(lambda: isinstance(hands.app.screen, RuleStep))
        await hands.press("ctrl+s")
        assert hands.decisions == []
        await hands.press(*["pagedown"] * 40, "ctrl+s")
        await hands.until(lambda: hands.decisions)


async def test_a_rule_without_a_condition_is_kept_at_the_second_press() -> None:
    async with confirming(asked({"x": [*range(400)]})) as hands:
        await hands.press("end", "m", "m", "v")
        await hands.until(lambda: isinstance(hands.app.screen, RuleStep))
        await hands.press("ctrl+s")
        words = "again to always allow any arguments, saved everywhere"
        assert words in hands.text
        assert hands.decisions == []
        await hands.press("ctrl+s")
        await hands.until(lambda: hands.decisions)
        assert hands.decisions[0].scope is GrantScope.EVERYWHERE


async def test_the_answers_to_a_long_rule_stay_in_sight() -> None:
    named = {f"argument_{number}": "long " * 20 for number in range(30)}
    async with confirming(asked(named)) as hands:
        for height in (12, 15, 20, 23, 24, 36):
            await hands.resize((80, height))
            await hands.ask_next(asked(named))
            await hands.press("end", "v")
            await hands.until(lambda: isinstance(hands.app.screen, RuleStep))
            screen = hands.app.screen
            frame = screen.query_one(".step").content_region
            for button in screen.query("Button"):
                assert frame.contains_region(button.region)
            await hands.press("ctrl+s")
            assert "Read to the end first" in hands.text
            await hands.resize((80, height + 1))
            assert "Read to the end first" not in hands.text
            await hands.press("end", "ctrl+s")
            await hands.until(lambda: hands.decisions)


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("x" * 600, [STARTS, ANY]),
        (["a"], [IS, ANY]),
        ("", [IS, ANY]),
        (None, [IS, ANY]),
        ([*range(400)], [ANY]),
        ("a b", [IS, STARTS, ANY]),
    ],
)
def test_what_is_offered_of_a_value_can_be_shown_whole(
    value: object, kinds: list[ConditionKind]
) -> None:
    [options] = options_of(asked({"x": value}))
    assert list(dict.fromkeys(one.kind for one in options)) == kinds
    assert all(one.is_valid for one in options)


def test_a_name_that_cannot_be_shown_makes_no_rule() -> None:
    for values in ({}, {"x" * 501: 1}, {f"x{number}": 1 for number in range(31)}):
        with pytest.raises(ValueError, match="a rule needs"):
            options_of(asked(values))
