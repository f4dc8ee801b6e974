"""What servers ask of us, over real processes and in both eras."""

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.servers.asking import ADDRESS
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.asking import ERAS, Stage, asking, handshake, staged, stateless
from tests.unit.engine.mcp.support import call, eventually, script
from tui.engine.desk import MAX_WAITING
from tui.engine.mcp.catalog.offered_tool import FunctionCall, PromptMessage, TextPart, ToolCallError
from tui.engine.mcp.context import Generation, GenerationError
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
        with anyio.fail_after(PATIENCE):
            return (await call(stage.manager, tool, arguments)).display

    return asyncio.create_task(run())


async def result(task: "asyncio.Task[str]") -> Any:  # noqa: ANN401
    return json.loads(await task)


async def test_a_form_is_filled_in_corrected_and_sent(stage: Stage) -> None:
    calling = start(stage, "form")
    form = await stage.asked(FormRequest)
    assert (form.server, form.message, form.problem) == ("asking", "Who are you?", "")
    keys = {field.title: field.key for field in form.fields}
    content: dict[str, FormValue] = {"name": "Ada", "age": "old", "days": ("mo",), "size": "1.5"}
    content[keys["raw key"]] = "x"
    stage.desk.answer(form.id, Reply(ReplyAction.ACCEPT, content))
    await eventually(lambda: any(getattr(r, "problem", "") for r in stage.pending()))
    [again] = stage.pending()
    assert isinstance(again, FormRequest)
    expected = (form.id, "Enter a whole number.", keys["age"])
    assert (again.id, again.problem, again.wrong) == expected
    stage.desk.answer(form.id, Reply(ReplyAction.ACCEPT, {**content, "age": "36"}))
    sent = {"name": "Ada", "mail": "a@example.com", "age": 36, "size": 1.5, "agree": True}
    sent |= {"days": ["mo"], "raw\x1b[31m key": "x"}
    assert await result(calling) == {"action": "accept", "content": sent}
    for action in (DECLINE, CANCEL):
        calling = start(stage, "form")
        await stage.answer(FormRequest, action, content={"name": "secret"})
        assert await result(calling) == {"action": action.value}


async def test_C09_an_address_is_opened_only_after_consent(stage: Stage) -> None:
    calling = start(stage, "visit")
    request = await stage.asked(UrlRequest)
    assert (request.url, request.host, request.message) == (ADDRESS, "example.com", "Sign in")
    assert stage.opened == []
    stage.desk.answer(request.id, Reply(ReplyAction.ACCEPT))
    assert await result(calling) == {"action": "accept"}
    assert stage.opened == [ADDRESS]
    if stage.era is ProtocolEra.HANDSHAKE:
        told = "asking reports that you are done at example.com."
        await eventually(lambda: told in stage.notices())
    declined = start(stage, "visit")
    await stage.answer(UrlRequest, DECLINE)
    assert await result(declined) == {"action": "decline"}
    assert stage.opened == [ADDRESS]


@stateless
async def test_an_address_that_cannot_be_opened_is_given_to_the_user(stage: Stage) -> None:
    calling = start(stage, "visit", url="https://nobrowser.example/")
    await stage.answer(UrlRequest)
    assert await result(calling) == {"action": "accept"}
    assert stage.notices() == ["Could not open a browser for asking."]


@handshake
async def test_a_dangerous_address_is_refused_without_a_question(stage: Stage) -> None:
    for url in ("file:///etc/passwd", "https://bank.example@evil.example/"):
        with pytest.raises(ToolCallError, match="address is refused"):
            await start(stage, "visit", url=url)
    assert stage.raised() == 0
    assert stage.opened == []


@handshake
async def test_a_call_that_needs_an_address_first_is_made_once_more(stage: Stage) -> None:
    calling = start(stage, "protected", what="done")
    await stage.answer(UrlRequest)
    waiting = await stage.asked(FormRequest)
    assert waiting.fields == ()
    assert "protected" in waiting.message
    stage.desk.answer(waiting.id, Reply(ReplyAction.ACCEPT))
    assert await calling == "try 2"
    assert stage.pending() == []
    assert stage.opened == [ADDRESS]


@handshake
async def test_a_call_whose_address_is_declined_was_not_run(stage: Stage) -> None:
    for step in (UrlRequest, FormRequest):
        calling = start(stage, "protected", what=f"declined {step}")
        if step is FormRequest:
            await stage.answer(UrlRequest)
        await stage.answer(step, DECLINE)
        with pytest.raises(ToolCallError, match="was not run"):
            await calling
        assert (await result(start(stage, "counts")))[f"declined {step}"] == 1


async def test_C07_text_is_generated_under_the_users_eyes(stage: Stage) -> None:
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
    assert (asked.system, asked.max_tokens, asked.declarations) == ("Be brief.", 70, ())
    assert (review.text, review.model) == ("hello", "scripted")
    stage.desk.answer(review.id, Reply(ReplyAction.ACCEPT))
    answer = await result(calling)
    assert answer["content"] == {"type": "text", "text": "hello"}
    assert (answer["model"], answer["stopReason"]) == ("scripted", "endTurn")


async def test_a_tool_of_the_server_may_be_called_in_what_is_generated(stage: Stage) -> None:
    looking = FunctionCall("look_up_", {"word": "x"}, "c1")
    stage.model.answer = Generation("Let me see.", (looking,), "scripted")
    calling = start(stage, "generate", with_tools=True)
    prompt = await stage.answer(SamplingRequest)
    assert prompt.tools == ("look up!",)
    review = await stage.answer(SamplingReview)
    assert review.text == 'Let me see.\n[call of look up!] {"word": "x"}'
    answer = await result(calling)
    assert answer["stopReason"] == "toolUse"
    assert answer["content"] == [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "c1", "name": "look up!", "input": {"word": "x"}},
    ]
    [asked] = stage.model.asked
    assert [d["name"] for d in asked.declarations] == ["look_up_"]


async def test_what_the_user_refuses_does_not_get_out(stage: Stage) -> None:
    words = "was refused" if stage.era is ProtocolEra.STATELESS else "rejected"
    for step, asked in ((SamplingRequest, 0), (SamplingReview, 1)):
        calling = start(stage, "generate")
        if step is SamplingReview:
            await stage.answer(SamplingRequest)
        await stage.answer(step, DECLINE)
        with pytest.raises(ToolCallError, match=words):
            await calling
        assert len(stage.model.asked) == asked


@handshake
async def test_a_model_that_fails_is_told_to_the_user_and_not_to_the_server(stage: Stage) -> None:
    stage.model.answer = GenerationError("The key sk-123 is not valid.")
    calling = start(stage, "generate")
    await stage.answer(SamplingRequest)
    with pytest.raises(ToolCallError, match="could not answer") as caught:
        await calling
    assert "sk-123" not in str(caught.value)
    assert "sk-123" in stage.notices()[0]


@handshake
async def test_a_prompt_goes_to_no_model_that_the_user_did_not_see(stage: Stage) -> None:
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


async def test_C11_the_only_root_is_the_workspace(stage: Stage) -> None:
    [folder] = stage.context.workspaces
    [root] = (await result(start(stage, "roots")))["roots"]
    assert root == {"uri": folder.as_uri(), "name": "a b ä"}
    assert root["uri"].endswith("/a%20b%20%C3%A4")
    assert stage.raised() == 0


async def test_a_server_that_withdraws_its_question_takes_it_off_the_screen() -> None:
    async with staged(script("raw", "pushy")) as stage:
        await call(stage.manager, "forms", {"text": "1"})
        await stage.asked(FormRequest)
        await call(stage.manager, "forget")
        await stage.quiet()


async def test_a_cancelled_call_takes_its_question_with_it(stage: Stage) -> None:
    calling = start(stage, "form")
    await stage.asked(FormRequest)
    calling.cancel()
    await stage.quiet()


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_goes_takes_its_questions_with_it(era: ProtocolEra) -> None:
    async with asking(era) as stage:
        calling = start(stage, "form")
        question = await stage.asked(FormRequest)
        if era is ProtocolEra.HANDSHAKE:
            stage.manager.stop(ServerId("asking"))
        else:
            with pytest.raises(ToolCallError):
                await start(stage, "die")
        await stage.quiet()
        stage.desk.answer(question.id, Reply(ReplyAction.ACCEPT, {"name": "Ada", "age": 3}))
        with pytest.raises(ToolCallError):
            await calling


async def test_a_question_that_stays_open_does_not_time_the_call_out() -> None:
    definition = script("asking", protocol=ProtocolEra.HANDSHAKE, timeout=10.0)
    async with staged(definition) as stage:
        live = stage.manager._supervisors[definition.id].live
        assert live is not None
        live._call_timeout._limit = 1.0  # a server may take longer to start
        calling = start(stage, "ask_in_vain", seconds=0.0)
        form = await stage.asked(FormRequest)
        done, _ = await asyncio.wait({calling}, timeout=1.2)
        assert not done
        stage.desk.answer(form.id, Reply(ReplyAction.ACCEPT))
        assert await calling == "done"
        slow = start(stage, "ask_in_vain", seconds=20.0)
        await stage.answer(FormRequest)
        with pytest.raises(ToolCallError, match="no result within 1 s"):
            await slow


async def test_C10_what_none_may_ask_is_refused_and_of_a_storm_eight_wait(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with staged(script("raw", "pushy", env={"RAW_RECORD": str(record)})) as stage:
        for tool in ("nested", "unknown"):
            await call(stage.manager, tool)
        await eventually(lambda: len(answers(record)) == 5)
        given = {name: answer["error"] for name, answer in answers(record).items()}
        assert (given.pop("nested")["code"], given.pop("unknown")["code"]) == (-32602, -32601)
        for name in ("early-form", "early-sample", "early-roots"):
            assert "before initialization" in given[name]["message"]
        assert stage.raised() == 0
        await call(stage.manager, "forms", {"text": "30"})
        await eventually(lambda: len(answers(record)) == 5 + 30 - 1 - MAX_WAITING)
        declined = [a["result"] for name, a in answers(record).items() if name.startswith("form-")]
        assert all(one == {"action": "decline"} for one in declined)
        assert len(stage.pending()) == 1
        for _ in range(1 + MAX_WAITING):
            await stage.answer(FormRequest, CANCEL)
        await eventually(lambda: len(answers(record)) == 5 + 30)
        assert stage.pending() == []


async def test_without_a_model_sampling_is_not_declared() -> None:
    stage = Stage()
    stage.context.generator = None
    async with asking(ProtocolEra.HANDSHAKE, stage=stage):
        with pytest.raises(ToolCallError, match="not supported"):
            await start(stage, "generate")
        assert stage.raised() == 0
        assert stage.watcher.statuses("asking")[-1] is S.READY


def answers(record: Path) -> dict[str, Any]:
    """Give what the server was answered, by the ids of its requests."""
    read = [json.loads(line) for line in record.read_text().splitlines()]
    return {answer["id"]: answer for answer in read if "method" not in answer}
