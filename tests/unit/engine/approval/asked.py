"""A gate with a desk before it, and what it asks."""

import asyncio

from tests.unit.engine.chats.support import make_inquiry, make_policy
from tui.engine.approval.gate import Gate
from tui.engine.approval.grants import GrantBook
from tui.engine.approval.inquiry import Denial, TurnRecord
from tui.engine.desk import Desk
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, Permit
from tui.model.chat import EntryId
from tui.model.consent import Choice, Decision, RequestId
from tui.model.events import Event, RequestRaised, RequestSettled
from tui.model.requests import ConfirmationRequest

CALL = EntryId("e1")


class Asked:
    """A gate, its events, and the questions that are open."""

    def __init__(self, book: GrantBook | None = None) -> None:
        self.events: list[Event] = []
        self.policy = make_policy(book)
        self.desk = Desk(self.events.append)
        self.gate = Gate(self.desk, self.events.append, self.policy)

    async def ask(
        self,
        tool: OfferedTool,
        *others: OfferedTool,
        arguments: JsonObject | None = None,
        turn: TurnRecord | None = None,
    ) -> tuple["asyncio.Task[Permit | Denial]", RequestId]:
        """Ask in a task; give it and the question, which is empty where nobody is asked."""
        before = len(self.requests)
        inquiry = make_inquiry(tool, *others, arguments=arguments, turn=turn)
        task = asyncio.create_task(self.gate.decide(inquiry))
        await asyncio.sleep(0)
        new = self.requests[before:]
        return task, new[0].request.id if new else RequestId("")

    @property
    def questions(self) -> list[ConfirmationRequest]:
        found = (event.request for event in self.requests)
        return [request for request in found if isinstance(request, ConfirmationRequest)]

    @property
    def requests(self) -> list[RequestRaised]:
        return [event for event in self.events if isinstance(event, RequestRaised)]

    @property
    def settled(self) -> list[RequestId]:
        return [event.request for event in self.events if isinstance(event, RequestSettled)]

    async def answer(
        self, tool: OfferedTool, choice: Choice, *others: OfferedTool
    ) -> Permit | Denial:
        task, request = await self.ask(tool, *others)
        self.desk.answer(request, Decision(choice))
        return await task

    async def passes(self, tool: OfferedTool) -> bool:
        """Tell whether a call passes unasked; a question is withdrawn again."""
        task, request = await self.ask(tool)
        task.cancel()
        await asyncio.wait({task})
        return not request


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def ended(*tasks: "asyncio.Task[Permit | Denial]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
