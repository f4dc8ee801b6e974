"""The conversation: cancelling, queueing, clearing, changing the model."""

import asyncio
from collections.abc import Sequence

from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Action, Call, Fail, Say, Sleep, Stall
from tests.unit.engine.chats.support import (
    Chat,
    both,
    fetched,
    make_tool,
    open_backend,
    talking,
    text_result,
)
from tui.engine.chats.history import MAX_RESPONSE_MEDIA
from tui.engine.chats.turn import MessageContent
from tui.engine.mcp.catalog.offered_tool import JsonObject, MediaPart, TextPart, ToolResult
from tui.model import events as e
from tui.model.chat import ToolCallStatus, TurnOutcome, UserMessage


async def cancelled(chat: Chat) -> e.TurnFinished:
    chat.conversation.cancel()
    await chat.idle()
    assert chat.last_turn.outcome is TurnOutcome.CANCELLED
    return chat.last_turn


@both
async def test_cancelling_ends_running_calls_and_keeps_what_has_ended() -> None:
    stopped: list[str] = []

    async def slow(_: JsonObject) -> ToolResult:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("slow")
            raise
        return text_result("never")

    steps = [(Call([("fast", {}), ("slow", {})]),), (Say("fine"),)]
    async with talking(steps, make_tool("fast"), make_tool("slow")) as chat:
        chat.tools.runs["slow"] = slow
        chat.send("x")
        await chat.wait_for(e.ToolCallChanged, 3)  # both run, one has ended
        await cancelled(chat)
        assert stopped == ["slow"]
        assert [c.status for c in chat.calls] == [ToolCallStatus.OK, ToolCallStatus.CANCELLED]
        assert chat.calls[1].seconds is not None
        await chat.say("y")
    contents = chat.fake.requests[1].contents
    answers = [p["functionResponse"]["response"] for p in contents[2]["parts"]]
    assert answers == [{"output": "fast ran"}, {"error": "The user stopped this call."}]
    assert contents[3]["role"] == "model"


@both
async def test_messages_wait_for_the_running_turn_in_order() -> None:
    async with talking([(Say("1"), Sleep(0.01)), (Say("2"),), (Say("3"),)]) as chat:
        chat.send("a")
        await chat.wait_for(e.TextStreamed)
        chat.send("b")
        await chat.say("c")
    assert [entry.text for entry in chat.entries(UserMessage)] == ["a", "b", "c"]
    assert chat.answer == "123"
    queues = [event.queued for event in chat.all(e.QueueChanged)]
    assert queues == [("a",), (), ("b",), ("b", "c"), ("c",), ()]


@both
async def test_a_message_that_comes_as_the_turns_end_is_sent() -> None:
    async with talking([(Say("1"),), (Say("2"),)]) as chat:
        save, late = chat.context.save, iter(["b"])

        async def save_as_a_message_comes() -> None:
            await save()
            if chat.all(e.TurnFinished) and (text := next(late, "")):
                asyncio.get_running_loop().call_soon(chat.send, text)

        chat.context.save = save_as_a_message_comes
        await chat.say("a")
        await chat.wait_for(e.TurnFinished, 2)
    assert chat.answer == "12"


@both
async def test_a_message_that_waits_is_taken_back_dropped_or_comes_back_with_the_turn() -> None:
    async with talking([(Say("1"), Stall()), (Say("2"),)]) as chat:
        for text in ("a", "b", "c", "b", "d"):
            chat.send(text)
        chat.conversation.send(fetched("/again", MessageContent("shown", (TextPart("sent"),))))
        await chat.wait_for(e.TextStreamed)
        chat.conversation.unqueue("b", give_back=True)
        chat.conversation.unqueue("d", give_back=False)
        chat.conversation.unqueue("a", give_back=True)  # it runs already
        assert chat.store.state.conversation.queued == ("b", "c", "/again")
        assert [event.text for event in chat.all(e.MessageReturned)] == ["b"]
        assert (await cancelled(chat)).unsent == "b\n\nc\n\n/again"
    assert len(chat.fake.requests) == 1


@both
async def test_clearing_cancels_the_running_turn_first_and_forgets_everything() -> None:
    async with talking([(Say("a"),), (Say("so "), Stall()), (Say("b"),)]) as chat:
        await chat.say("w")
        chat.conversation.clear()
        assert chat.transcript == ()
        chat.send("x")
        await chat.wait_for(e.TextStreamed, 2)
        chat.send("queued")
        chat.conversation.clear()
        chat.conversation.clear()  # once more, before the turn has ended
        assert chat.store.state.conversation.queued == ()
        await chat.wait_for(e.ConversationCleared, 2)
        await chat.idle()
        assert (chat.transcript, chat.store.state.conversation.unsent.texts) == ((), ("queued",))
        await chat.say("y")
    assert [len(request.contents) for request in chat.fake.requests] == [1, 1, 1]


async def test_another_model_answers_from_the_next_turn_on_without_old_signatures() -> None:
    again: Sequence[Action] = (Say("a"), Sleep(0.01), Say("a"))
    async with (
        FakeGemini([(Say("b"),)]) as other,
        talking([(Call([("go", {})]),), (Say("a", signed=True),), again], make_tool("go")) as chat,
    ):
        first = chat.context.backend
        await chat.say("w")
        chat.send("x")
        await chat.wait_for(e.TextStreamed, 2)  # a choice waits for the end of the turn
        second = await open_backend(other.url, model="gemini-3.5-flash")
        chat.conversation.use_backend(chat.context, second)
        await chat.say("y")
        assert first is not chat.context.backend
        await first.aclose()
    assert (other.requests[0].model, other.violations) == ("gemini-3.5-flash", [])
    assert "thoughtSignature" not in str(other.requests[0].contents)
    assert chat.answer == "aaab"
    assert (len(chat.fake.requests), len(other.requests)) == (3, 1)


@both
async def test_a_message_may_be_shown_in_another_form_than_the_model_gets() -> None:
    png, large = MediaPart("image/png", "iVBORw0KGgo="), "A" * (MAX_RESPONSE_MEDIA + 4)
    odd = (MediaPart("application/x-odd", "AAAA"), MediaPart("image/png", large))
    parts = (TextPart("[a resource]\ud800"), png, *odd)
    refused = (Fail(400, "INVALID_ARGUMENT", "no"),)
    async with talking([(Say("fine"),), refused, refused]) as chat:
        for _ in range(2):
            chat.conversation.send(fetched("/greet", MessageContent("/greet Ada", parts)))
            await chat.idle()
    assert [started.message.text for started in chat.all(e.TurnStarted)] == ["/greet"] * 2
    assert [entry.text for entry in chat.entries(UserMessage)] == ["/greet Ada"] * 2
    assert chat.fake.requests[0].contents[0]["parts"] == [
        {"text": "[a resource]\ufffd"},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
        {"text": "[The application/x-odd is left out: the model cannot read it.]"},
        {"text": "[The image/png is left out: it is too large.]"},
    ]
    assert (chat.last_turn.outcome, chat.last_turn.unsent) == (TurnOutcome.FAILED, "/greet")
