"""What servers ask of us, over real processes and in both eras."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.servers.asking import ADDRESS
from tests.servers.pushy import STORM
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.asking import ERAS, Stage, asking, staged
from tests.unit.engine.mcp.support import call, eventually, script
from tui.engine.desk import MAX_WAITING
from tui.engine.mcp.catalog.offered_tool import FunctionCall, PromptMessage, TextPart, ToolCallError
from tui.engine.mcp.context import Generation, GenerationError
from tui.engine.mcp.session import call_timeout
from tui.model.requests import (
    FormRequest,
    FormValue,
    Reply,
    ReplyAction,
    SamplingRequest,
    SamplingReview,
    UrlRequest,
)
from tui.model.servers import ProtocolEra, ServerId
from tui.model.servers import ServerStatus as S

DECLINE, CANCEL = ReplyAction.DECLINE, ReplyAction.CANCEL


def start(stage: Stage, tool: str, **arguments: object) -> "asyncio.Task[str]":
    async def run() -> str:
        return (await call(stage.manager, tool, arguments)).display

    return asyncio.create_task(run())


async def result(task: "asyncio.Task[str]") -> Any:  # noqa: ANN401
    with anyio.fail_after(PATIENCE):
        return json.loads(await task)


@pytest.mark.parametrize("era", ERAS)
async def test_a_form_is_filled_in_corrected_and_sent(era: ProtocolEra) -> None:
    async with asking(era) as stage:
        calling = start(stage, "form")
        form = await stage.asked(FormRequest)
        assert (form.server, form.message, form.problem) == ("asking", "Who are you?", "")
        [odd] = [field for field in form.fields if field.title == "raw key"]
        content: dict[str, FormValue] = {
            "name": "Ada",
            "age": "old",
            "days": ("mo",),
            odd.key: "x",
            "size": "1.5",
        }
        stage.desk.answer(form.id, Reply(ReplyAction.ACCEPT, content))
        await eventually(lambda: any(getattr(r, "problem", "") for r in stage.pending()))
        [again] = stage.pending()
        assert isinstance(again, FormRequest)
        assert again.id == form.id
        [age] = [field for field in form.fields if field.title == "age"]
        assert (again.problem, again.wrong) == ("is not a whole number", age.key)
        stage.desk.answer(form.id, Reply(ReplyAction.ACCEPT, {**content, "age": "36"}))
        assert await result(calling) == {
            "action": "accept",
            "content": {
                "name": "Ada",
                "mail": "a@example.com",
                "age": 36,
                "size": 1.5,
                "agree": True,
                "days": ["mo"],
                "raw\x1b[31m key": "x",
            },
        }
        await stage.quiet()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", [DECLINE, CANCEL])
async def test_a_form_may_be_declined_or_dismissed(era: ProtocolEra, action: ReplyAction) -> None:
    async with asking(era) as stage:
        calling = start(stage, "form")
        await stage.answer(FormRequest, action, content={"name": "secret"})
        assert await result(calling) == {"action": action.value}


@pytest.mark.parametrize("era", ERAS)
async def test_C09_an_address_is_opened_only_after_consent(era: ProtocolEra) -> None:
    async with asking(era) as stage:
        calling = start(stage, "visit")
        request = await stage.asked(UrlRequest)
        assert (request.url, request.host, request.message) == (ADDRESS, "example.com", "Sign in")
        assert stage.opened == []
        stage.desk.answer(request.id, Reply(ReplyAction.ACCEPT))
        assert await result(calling) == {"action": "accept"}
        assert stage.opened == [ADDRESS]
        if era is ProtocolEra.HANDSHAKE:
            told = "asking reports that you are done at example.com."
            await eventually(lambda: told in stage.notices())
        declined = start(stage, "visit")
        await stage.answer(UrlRequest, DECLINE)
        assert await result(declined) == {"action": "decline"}
        assert stage.opened == [ADDRESS]


async def test_an_address_that_cannot_be_opened_is_given_to_the_user() -> None:
    async with asking(ProtocolEra.STATELESS) as stage:
        calling = start(stage, "visit", url="https://nobrowser.example/")
        await stage.answer(UrlRequest)
        assert await result(calling) == {"action": "accept"}
        assert stage.notices() == ["No browser could be opened for asking."]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://bank.example@evil.example/"])
async def test_a_dangerous_address_is_refused_without_a_question(url: str) -> None:
    async with asking(ProtocolEra.HANDSHAKE) as stage:
        with pytest.raises(ToolCallError, match="address is refused"), anyio.fail_after(PATIENCE):
            await start(stage, "visit", url=url)
        assert stage.raised() == 0
        assert stage.opened == []


@pytest.mark.parametrize("by_server", [False, True])
async def test_a_call_that_needs_an_address_first_is_made_once_more(by_server: bool) -> None:
    async with asking(ProtocolEra.HANDSHAKE) as stage:
        calling = start(stage, "protected")
        await stage.answer(UrlRequest)
        waiting = await stage.asked(FormRequest)
        assert waiting.fields == ()
        assert "protected" in waiting.message
        if by_server:
            await call(stage.manager, "complete_address")
        else:
            stage.desk.answer(waiting.id, Reply(ReplyAction.ACCEPT))
        with anyio.fail_after(PATIENCE):
            assert await calling == "try 2"
        assert stage.pending() == []
        assert stage.opened == [ADDRESS]


@pytest.mark.parametrize("step", [UrlRequest, FormRequest])
async def test_a_call_whose_address_is_declined_was_not_run(
    step: type[UrlRequest | FormRequest],
) -> None:
    async with asking(ProtocolEra.HANDSHAKE) as stage:
        calling = start(stage, "protected")
        if step is FormRequest:
            await stage.answer(UrlRequest)
        await stage.answer(step, DECLINE)
        with pytest.raises(ToolCallError, match="was not run"):
            await calling
        assert json.loads((await call(stage.manager, "counts")).display)["tries"] == 1


@pytest.mark.parametrize("era", ERAS)
async def test_C07_text_is_generated_under_the_users_eyes(era: ProtocolEra) -> None:
    async with asking(era) as stage:
        calling = start(stage, "generate", max_tokens=70)
        prompt = await stage.asked(SamplingRequest)
        assert (prompt.system, prompt.max_tokens, prompt.model) == ("Be brief.", 70, "scripted")
        assert prompt.hints == ("some-model",)
        assert [(m.role, m.text) for m in prompt.messages] == [("user", "Say hello.")]
        assert stage.model.asked == []
        stage.desk.answer(prompt.id, Reply(ReplyAction.ACCEPT))
        review = await stage.asked(SamplingReview)
        [asked] = stage.model.asked
        assert asked.messages == [PromptMessage("user", (TextPart("Say hello."),))]
        assert (asked.system, asked.max_tokens) == ("Be brief.", 70)
        assert asked.declarations == ()
        assert (review.text, review.model) == ("hello", "scripted")
        stage.desk.answer(review.id, Reply(ReplyAction.ACCEPT))
        answer = await result(calling)
        assert answer["content"] == {"type": "text", "text": "hello"}
        assert (answer["model"], answer["stopReason"]) == ("scripted", "endTurn")


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_of_the_server_may_be_called_in_what_is_generated(era: ProtocolEra) -> None:
    async with asking(era) as stage:
        stage.model.answer = Generation(
            "Let me see.", (FunctionCall("look_up_", {"word": "x"}, "c1"),), "scripted"
        )
        calling = start(stage, "generate", with_tools=True)
        prompt = await stage.answer(SamplingRequest)
        assert prompt.tools == ("look up!",)
        review = await stage.asked(SamplingReview)
        assert review.text == 'Let me see.\n[call of look up!] {"word": "x"}'
        stage.desk.answer(review.id, Reply(ReplyAction.ACCEPT))
        answer = await result(calling)
        assert answer["stopReason"] == "toolUse"
        assert answer["content"] == [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "c1", "name": "look up!", "input": {"word": "x"}},
        ]
        [asked] = stage.model.asked
        assert [d["name"] for d in asked.declarations] == ["look_up_"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("step", [SamplingRequest, SamplingReview])
async def test_what_the_user_refuses_does_not_get_out(
    era: ProtocolEra, step: type[SamplingRequest | SamplingReview]
) -> None:
    async with asking(era) as stage:
        calling = start(stage, "generate")
        if step is SamplingReview:
            await stage.answer(SamplingRequest)
        await stage.answer(step, DECLINE)
        words = "was refused" if era is ProtocolEra.STATELESS else "rejected"
        with pytest.raises(ToolCallError, match=words), anyio.fail_after(PATIENCE):
            await calling
        assert len(stage.model.asked) == (1 if step is SamplingReview else 0)


async def test_a_model_that_fails_is_told_to_the_user_and_not_to_the_server() -> None:
    async with asking(ProtocolEra.HANDSHAKE) as stage:
        stage.model.answer = GenerationError("The key sk-123 is not valid.")
        calling = start(stage, "generate")
        await stage.answer(SamplingRequest)
        with pytest.raises(ToolCallError, match="could not answer") as caught:
            await calling
        assert "sk-123" not in str(caught.value)
        assert "sk-123" in stage.notices()[0]


async def test_C07_each_prompt_and_each_answer_is_asked_about() -> None:
    async with asking(ProtocolEra.HANDSHAKE) as stage:
        for turn in range(2):
            calling = start(stage, "generate")
            await stage.answer(SamplingRequest)
            assert len(stage.model.asked) == turn + 1
            await stage.answer(SamplingReview)
            assert (await result(calling))["content"]["text"] == "hello"
        assert stage.raised() == 4


async def test_a_prompt_goes_to_no_model_that_the_user_did_not_see() -> None:
    async with asking(ProtocolEra.HANDSHAKE) as stage:
        calling = start(stage, "generate")
        await stage.asked(SamplingRequest)
        stage.model.model = "another"
        await stage.answer(SamplingRequest)
        again = await stage.asked(SamplingRequest)
        assert (again.model, stage.model.asked) == ("another", [])
        await stage.answer(SamplingRequest)
        await stage.answer(SamplingReview)
        await result(calling)
        assert [asked.system for asked in stage.model.asked] == ["Be brief."]


@pytest.mark.parametrize("era", ERAS)
async def test_C11_the_only_root_is_the_workspace(era: ProtocolEra, tmp_path: Path) -> None:
    folder = tmp_path / "a b ä"
    folder.mkdir()
    async with asking(era, workspace=folder) as stage:
        said = await result(start(stage, "roots"))
        assert said["roots"] == [{"uri": folder.as_uri(), "name": "a b ä"}]
        assert said["roots"][0]["uri"].endswith("/a%20b%20%C3%A4")
        assert stage.raised() == 0


async def test_a_server_that_withdraws_its_question_takes_it_off_the_screen() -> None:
    async with asking(ProtocolEra.HANDSHAKE) as stage:
        calling = start(stage, "give_up")
        await stage.asked(FormRequest)
        await call(stage.manager, "enough")
        with anyio.fail_after(PATIENCE):
            assert await calling == "gave up"
        await stage.quiet()


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_takes_its_question_with_it(era: ProtocolEra) -> None:
    async with asking(era) as stage:
        calling = start(stage, "form")
        await stage.asked(FormRequest)
        calling.cancel()
        await stage.quiet()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "end",
    [lambda s: s.manager.stop(ServerId("asking")), lambda s: s.manager.restart(ServerId("asking"))],
)
async def test_a_server_that_goes_takes_its_questions_with_it(
    era: ProtocolEra, end: Callable[[Stage], None]
) -> None:
    async with asking(era) as stage:
        calling = start(stage, "form")
        form = await stage.asked(FormRequest)
        end(stage)
        await stage.quiet()
        stage.desk.answer(form.id, Reply(ReplyAction.ACCEPT, {"name": "Ada", "age": 3}))
        with pytest.raises(ToolCallError), anyio.fail_after(PATIENCE):
            await calling


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_dies_takes_its_questions_with_it(era: ProtocolEra) -> None:
    async with asking(era) as stage:
        calling = start(stage, "generate")
        await stage.asked(SamplingRequest)
        with pytest.raises(ToolCallError):
            await call(stage.manager, "die")
        await stage.quiet()
        with pytest.raises(ToolCallError), anyio.fail_after(PATIENCE):
            await calling


async def test_a_question_that_stays_open_does_not_time_the_call_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_timeout, "IDLE_TIMEOUT", 0.2)
    async with asking(ProtocolEra.HANDSHAKE, timeout=3.0) as stage:  # it starts in that, too
        calling = start(stage, "ask_in_vain", seconds=0.0)
        form = await stage.asked(FormRequest)
        done, _ = await asyncio.wait({calling}, timeout=3.5)
        assert not done
        stage.desk.answer(form.id, Reply(ReplyAction.ACCEPT))
        with anyio.fail_after(PATIENCE):
            assert await calling == "done"
        slow = start(stage, "ask_in_vain", seconds=20.0)
        await stage.answer(FormRequest)
        with pytest.raises(ToolCallError, match=r"no further progress within 0\.2 s"):
            await slow


async def test_C10_requests_before_the_handshake_are_refused_unseen(tmp_path: Path) -> None:
    record = tmp_path / "record"
    definition = script("pushy", "early", env={"PUSHY_RECORD": str(record)})
    async with staged(definition) as stage:
        await eventually(lambda: len(answers(record)) == 3)
        for answer in answers(record).values():
            assert "before initialization" in answer["error"]["message"]
        assert stage.raised() == 0


async def test_a_storm_of_questions_is_one_question_and_eight_waiting(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with staged(script("pushy", env={"PUSHY_RECORD": str(record)})) as stage:
        await call(stage.manager, "storm")
        await eventually(lambda: len(answers(record)) == STORM - 1 - MAX_WAITING)
        assert all(a["result"] == {"action": "decline"} for a in answers(record).values())
        assert len(stage.pending()) == 1
        for _ in range(1 + MAX_WAITING):
            await stage.answer(FormRequest, CANCEL)
        await eventually(lambda: len(answers(record)) == STORM)
        assert stage.pending() == []


@pytest.mark.parametrize(("tool", "code"), [("nested", -32602), ("unknown", -32601)])
async def test_what_is_no_form_or_no_request_is_refused_unseen(
    tmp_path: Path, tool: str, code: int
) -> None:
    record = tmp_path / "record"
    async with staged(script("pushy", env={"PUSHY_RECORD": str(record)})) as stage:
        await call(stage.manager, tool)
        await eventually(lambda: len(answers(record)) == 1)
        assert answers(record)[tool]["error"]["code"] == code
        assert stage.raised() == 0


async def test_without_a_model_sampling_is_not_declared() -> None:
    def without(stage: Stage) -> None:
        stage.context.generator = None

    async with asking(ProtocolEra.HANDSHAKE, prepare=without) as stage:
        with pytest.raises(ToolCallError, match="not supported"), anyio.fail_after(PATIENCE):
            await start(stage, "generate")
        assert stage.raised() == 0
        assert stage.watcher.statuses("asking")[-1] is S.READY


def answers(record: Path) -> dict[str, Any]:
    """Give what the server was answered, by the ids of its requests."""
    if not record.exists():
        return {}
    read = [json.loads(line) for line in record.read_text().splitlines()]
    return {answer["id"]: answer for answer in read}
