"""What `tui.engine` gives to those who use it as a library."""

# ruff: noqa: PLC0414 - "as" marks what is public

from tui.engine.bus import EventStream as EventStream
from tui.engine.chats.backends.backend import ModelBackend as ModelBackend
from tui.engine.chats.backends.backend import ModelChunk as ModelChunk
from tui.engine.chats.backends.backend import ModelError as ModelError
from tui.engine.chats.backends.backend import ModelRequest as ModelRequest
from tui.engine.chats.backends.backend import ModelTraits as ModelTraits
from tui.engine.chats.backends.backend import Provider as Provider
from tui.engine.engine import Engine as Engine
from tui.engine.mcp.catalog.offered_tool import OfferedTool as OfferedTool
from tui.engine.mcp.catalog.offered_tool import ToolCallError as ToolCallError
from tui.engine.mcp.catalog.offered_tool import ToolResult as ToolResult
from tui.engine.options import EngineOptions as EngineOptions
from tui.model.chat import ChatNotice as ChatNotice
from tui.model.chat import ConversationId as ConversationId
from tui.model.chat import Severity as Severity
from tui.model.chat import ToolCall as ToolCall
from tui.model.chat import ToolCallStatus as ToolCallStatus
from tui.model.chat import TurnOutcome as TurnOutcome
from tui.model.chat import Usage as Usage
from tui.model.events import ChatNoticeAdded as ChatNoticeAdded
from tui.model.events import Event as Event
from tui.model.events import MessageReturned as MessageReturned
from tui.model.events import ModelSelected as ModelSelected
from tui.model.events import NoticeRaised as NoticeRaised
from tui.model.events import ServerStatusChanged as ServerStatusChanged
from tui.model.events import TextStreamed as TextStreamed
from tui.model.events import ToolCallChanged as ToolCallChanged
from tui.model.events import ToolCallRequested as ToolCallRequested
from tui.model.events import TurnFinished as TurnFinished
from tui.model.models import ModelOffer as ModelOffer
from tui.model.servers import ServerId as ServerId
from tui.model.servers import ServerStatus as ServerStatus
from tui.model.sessions import ConversationOpened as ConversationOpened
