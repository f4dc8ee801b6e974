"""An engine in a process of its own, in a FOLDER, that does what it is told.

Each line of its input is a JSON array, a command and its arguments; each of its output an object.
"""

import asyncio
import json
import sys
from pathlib import Path

from tui.engine.engine import Engine, EngineOptions
from tui.model.chat import ChatNotice, UserMessage
from tui.model.events import Event, NoticeRaised
from tui.model.sessions import ConversationRestored, SessionId, SessionsListed


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def hear(event: Event) -> None:
    match event:
        case NoticeRaised(notice):
            tell(notice=notice.text)
        case SessionsListed(sessions):
            tell(listed=[view.id for view in sessions])
        case ConversationRestored(entries):
            asked = [entry.text for entry in entries if isinstance(entry, UserMessage)]
            said = [entry.text for entry in entries if isinstance(entry, ChatNotice)]
            tell(restored=asked, remarks=" ".join(said))


async def obey(engine: Engine, command: list[str]) -> None:
    match command:
        case ["send", text]:
            engine.send(text)
            await engine.wait_idle()
            tell(session=engine.sessions.recorder.session)
        case ["open"]:
            engine.conversations.open()
        case ["resume", session]:
            engine.sessions.resume(session)
        case ["rename", session, title]:
            engine.sessions.rename(SessionId(session), title)
        case ["delete", session]:
            engine.sessions.delete(SessionId(session))


async def main(folder: str) -> None:
    options = EngineOptions(
        Path(folder), follow_settings=False, demo_without_key=False, attended=True, allows_all=True
    )
    async with Engine(options, hear) as engine:
        await engine.start()
        await engine.wait_ready()
        tell(ready=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            await obey(engine, json.loads(line))


asyncio.run(main(*sys.argv[1:]))
