"""The states of the deck that `gallery` draws; they are those of the tests, and no time shows."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.snapshots.decks import NEVER
from tests.support.samples import TURN, confirmation
from tests.ui.consent.samples import asked
from tests.ui.requests.samples import form
from tests.ui.shell import decks
from tui.engine.approval.inquiry import file_change
from tui.model import events as e
from tui.model.catalog import Catalog
from tui.model.chat import (
    BackendKind,
    ConversationId,
    EntryId,
    ModelView,
    Progress,
    ToolCall,
    ToolCallStatus,
    TurnOutcome,
    TurnPhase,
    Usage,
    UserMessage,
)
from tui.model.consent import Effect, GrantId, GrantView, RequestId
from tui.model.imports import ImportOffer, ImportState
from tui.model.input.arguments import canonical_json
from tui.model.requests import (
    ConfirmationRequest,
    FieldKind,
    FieldOption,
    FileChange,
    FormField,
    FormRequest,
)
from tui.model.servers import ServerId, ServerStatus, Transport
from tui.model.sessions import ConversationOpened, SessionId, SessionView
from tui.store.store import Store

README: Final = """# Notes

Servers keep **small** things here.

- one note a line
- `add_note` writes one

```python
def add(text: str) -> int:
    return len(notes)
```
"""

SESSION: Final = SessionView(
    SessionId("20260102-030405-abcdef"),
    "/shop",
    first="list the open branches",
    model="gemini-3.8-flash",
    tokens=12_345,
    changed=decks.EPOCH,
)

ANSWER: Final = """Two of them are old; the oldest is from March.

| branch | commits ahead | last change |
|---|---:|---|
| main | 0 | today |
| next | 12 | yesterday |
| fix/typo-in-the-guide | 1 | three weeks ago |

1. Merge `next`:
   - wait for the tests
   - then [ask for a review](https://example.com/review)
2. Delete the last one.

> A branch that nobody has touched for a month is asked about.

```sh
git merge --no-ff next && git push origin main && git branch --delete fix/typo-in-the-guide
```
"""

OLDER: Final = tuple(
    replace(
        SESSION,
        id=SessionId(f"2026010{day}-030405-abcdef"),
        first=words,
        tokens=tokens,
        changed=decks.EPOCH + day * 86_400,
    )
    for day, words, tokens in ((3, "why does the build fail?", 81_200), (4, "say hello", 950))
)

LINK: Final = "https://example.com/review?branch=next"

IMPORT: Final = ImportOffer(
    "Cursor",
    "~/.cursor/mcp.json",
    "files",
    ImportState.NEW,
    command=("npx", "-y", "@acme/files", "~/shop"),
    env=("TOKEN",),
    warnings=("Not pinned (@acme/files).",),
)


def empty_store() -> Store:
    """Give the store of a deck without servers."""
    store = decks.new_store()
    decks.configure(store)
    return store


def quiet_store() -> Store:
    """Give the store of a deck whose only server offers nothing yet."""
    store = decks.new_store()
    decks.configure(store, decks.server(decks.GIT))
    return store


def talking_store() -> Store:
    """Give the store of a deck in which one turn has ended and another one runs."""
    store = decks.full_store()

    def call(number: int, arguments: str) -> ToolCall:
        return ToolCall(EntryId(f"call-{number}"), decks.GIT, "branch_list", arguments)

    happened: tuple[e.Event, ...] = (
        e.TurnStarted(TURN, UserMessage(EntryId("user-1"), "list the open branches"), NEVER),
        e.ThoughtStreamed(EntryId("thought-1"), "**Look first**\n\nThe repository comes first."),
        e.EntryCompleted(EntryId("thought-1"), 1.2),
        e.ToolCallRequested(call(1, '{\n  "repo_path": "."\n}')),
        e.ToolCallChanged(
            EntryId("call-1"), ToolCallStatus.OK, 0.042, "main\nnext\nfix/typo-in-the-guide"
        ),
        e.ToolCallRequested(call(2, '{\n  "repo_path": "/etc"\n}')),
        e.ToolCallChanged(
            EntryId("call-2"), ToolCallStatus.ERROR, 0.007, "Access denied: outside the repository"
        ),
        e.TextStreamed(EntryId("text-1"), f"There are three branches.\n\n{README}"),
        e.EntryCompleted(EntryId("text-1")),
        e.UsageReported(Usage(prompt=5_400, output=620, thoughts=180)),
        e.TurnFinished(TURN, TurnOutcome.COMPLETED, seconds=2.4),
    )
    for event in happened:
        store.dispatch(event)
    return store


def queued_store() -> Store:
    """Give the store of a deck in which messages wait for the end of a turn."""
    store = talking_store()
    store.dispatch(e.TurnStarted(TURN, UserMessage(EntryId("user-2"), "and the tags"), NEVER))
    store.dispatch(e.QueueChanged(("then the stashes", "which of them are older than a year?")))
    return store


def working_store() -> Store:
    """Give the store of a deck with an answer of many kinds of blocks, and a tool that runs."""
    store = talking_store()
    call = EntryId("call-3")
    happened: tuple[e.Event, ...] = (
        e.TurnStarted(TURN, UserMessage(EntryId("user-3"), "which are old?\nand why?"), NEVER),
        e.TextStreamed(EntryId("text-3"), ANSWER),
        e.EntryCompleted(EntryId("text-3")),
        e.ToolCallRequested(ToolCall(call, decks.EVERYTHING, "longRunningOperation", "{}")),
        e.ToolCallChanged(call, ToolCallStatus.RUNNING),
        e.ToolCallProgressed(call, Progress(2, 5, "step 2")),
        e.TurnPhaseChanged(TURN, TurnPhase.TOOLS),
    )
    for event in happened:
        store.dispatch(event)
    return store


PRICES: Final = """from decimal import Decimal


def total(items: list[Item]) -> Decimal:
    cost = Decimal(0)
    for item in items:
        cost += round(item.price * item.count)
    return cost
"""

FIXED: Final = PRICES.replace("round(item.price * item.count)", "item.price * item.count").replace(
    "return cost", "return round(cost, 2)"
)

SAYS: Final = """`4f1c2aa` did: since then `total` rounds each item to a whole number.
It should round once, at the end, to cents."""


def work_store() -> Store:
    """Give the store of a deck in which a turn has used two servers, and wants to change a file."""
    store = decks.new_store()
    files, browser, tracker = map(ServerId, ("files", "browser", "tracker"))
    decks.configure(
        store,
        decks.server(decks.GIT),
        decks.server(files),
        decks.server(browser, ServerStatus.ASLEEP),
        decks.server(tracker, transport=Transport.HTTP),
    )
    decks.start(store, tracker)
    store.dispatch(e.ServerStatusChanged(tracker, ServerStatus.NEEDS_SIGN_IN))
    named = ("list_directory", "read_text_file", "search_files", "write_file")
    decks.make_ready(store, decks.GIT, Catalog(tools=decks.GIT_TOOLS))
    decks.make_ready(store, files, Catalog(tools=tuple(map(decks.tool, named))))
    arguments = {"path": "src/prices.py", "content": FIXED}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, arguments["path"])
        path.parent.mkdir()
        path.write_text(PRICES, "utf-8")
        change = file_change(Path(folder), {**arguments})
    log, read, write = (
        ToolCall(EntryId(name), server, name, canonical_json(given))
        for name, server, given in (
            ("log", decks.GIT, {"path": "src/prices.py", "max_count": 2}),
            ("read_text_file", files, {"path": "src/prices.py"}),
            ("write_file", files, arguments),
        )
    )
    commits = "4f1c2aa Show whole prices in the list\n91be07d Add up a basket"
    question = ConfirmationRequest(
        *(RequestId("r1"), write.id, files, write.tool, "Create or overwrite a file."),
        *(write.arguments, ("destructive",)),
        change=change,
    )
    asked = UserMessage(EntryId("m1"), "which commit broke the total of a basket? fix it")
    happened: tuple[e.Event, ...] = (
        e.ModelSelected(ModelView("gemini-3.8-flash", BackendKind.GEMINI)),
        e.UsageReported(Usage(prompt=6_200, context=6_200, context_limit=1_000_000)),
        e.TurnStarted(TURN, asked, NEVER),
        e.ToolCallRequested(log),
        e.ToolCallChanged(log.id, ToolCallStatus.OK, 0.042, commits),
        e.ToolCallRequested(read),
        e.ToolCallChanged(read.id, ToolCallStatus.OK, 0.007, PRICES),
        e.TextStreamed(EntryId("t1"), SAYS),
        e.EntryCompleted(EntryId("t1")),
        e.ToolCallRequested(write),
        e.ToolCallChanged(write.id, ToolCallStatus.ASKING),
        e.RequestRaised(question),
    )
    for event in happened:
        store.dispatch(event)
    return store


def ruled_store() -> Store:
    """Give the store of a deck with rules for tools."""
    store = decks.full_store()
    store.dispatch(
        e.GrantsChanged(
            (
                GrantView(GrantId("g1"), Effect.ALLOW, "git", "branch_list", "this session", "you"),
                GrantView(GrantId("g2"), Effect.DENY, "git", "*", "saved", "~/.gemini/policies"),
            )
        )
    )
    return store


def tabbed_store() -> Store:
    """Give the store of a deck with conversations that run, ask and are done in other tabs."""
    store = talking_store()
    for key, text in (
        ("runs", "which of them are older than a year?"),
        ("asks", "fix the failing test"),
        ("done", "write the release notes"),
    ):
        conversation = ConversationId(key)
        store.dispatch(ConversationOpened(conversation))
        message = UserMessage(EntryId(f"user-{key}"), text)
        store.dispatch(e.TurnStarted(TURN, message, NEVER, conversation=conversation))
    store.dispatch(e.TurnFinished(TURN, TurnOutcome.COMPLETED, conversation=conversation))
    asks = ConversationId("asks")
    store.dispatch(e.RequestRaised(replace(confirmation(), conversation=asks)))
    return store


def greeting() -> ConfirmationRequest:
    """Make a question about a call that changes a longer file in two places."""
    head = ['"""Greets."""', "", "import sys", *(f"import part_{n}" for n in range(14))]
    tail = ['    return f"Hello, {name}!"', *(f"    # note {n}" for n in range(9))]
    before = [*head, "def greet(name: str) -> str:", *tail, "print(greet(sys.argv[1]))"]
    after = [*head, "def greet(names: list[str]) -> str:", *tail, "print(greet(sys.argv[1:]))"]
    changed = len(head), len(before) - 1
    lines: list[tuple[str, str]] = []
    for number, line in enumerate(before):
        lines += [("-", line), ("+", "")] if number in changed else [(" ", "")]
    change = FileChange("path", "content", "overwrites · +2 -2", tuple(lines))
    made = asked({"path": "hello.py", "content": "\n".join(after) + "\n"})
    made = replace(made, server=ServerId("files"), tool="write_file", change=change)
    return replace(made, claims=("destructive",), origin="your settings", title="Write File")


def many() -> ConfirmationRequest:
    """Make a question about a call with many arguments, and something to attend to."""
    values = {f"option_{number}": f"value {number}" for number in range(30)}
    made = asked({"query": "all notes of the shop", "limit": 50, **values})
    return replace(
        made, notes=("This turn has read data from search.",), claims=("read-only", "open world")
    )


def prefilled() -> FormRequest:
    """Make a form as the reference server's, most of it filled in by the server."""
    titles = (FieldOption("h1", "Superman"), FieldOption("h2", "Batman"))
    line = "It was a dark and stormy night; the rain fell in torrents."
    return form(
        (
            FormField("name", FieldKind.TEXT, "Name", "Your legal name.", required=True),
            FormField("agree", FieldKind.BOOLEAN, "Agree", "Whether you agree."),
            FormField("line", FieldKind.TEXT, "First line", "Of a story.", default=line),
            FormField("mail", FieldKind.TEXT, "Email", "Where to reach you.", format="email"),
            FormField("site", FieldKind.TEXT, "Homepage", format="uri"),
            FormField("born", FieldKind.TEXT, "Birthdate", format="date"),
            FormField("whole", FieldKind.INTEGER, "Whole number", default=42, minimum=1),
            FormField("hero", FieldKind.CHOICE, "Hero", options=titles, default="h1"),
            FormField("heroes", FieldKind.CHOICES, "Heroes", options=titles, default=("h1",)),
        ),
        message="Please provide inputs for the following fields:",
    )
