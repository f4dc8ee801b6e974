"""Calls by hand: the form of a tool, and what a call gave."""

import json
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from time import monotonic
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Input

from tui.model.chat import EntryId, ToolCallStatus
from tui.model.input.arguments import reveal
from tui.model.runs import SavedCall, ToolRun
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.selectors import saved_calls
from tui.store.selectors import server as find_server
from tui.text import counted
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.choices import pick
from tui.ui.dialogs.viewer import ViewerScreen
from tui.ui.panes import FollowLink, PaneName, RunTool, ShowPane, ShowRun
from tui.ui.questions.calls.steps import EditingScreen
from tui.ui.widgets.chat.tool_call import CALL_LOOKS, arguments_line, progress_line
from tui.ui.widgets.forms.argument_form import ArgumentEditor
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.json_tree import JsonTree, json_in
from tui.ui.widgets.text.labelled_text import LabelledText
from tui.ui.widgets.text.links import linked, links_in
from tui.ui.widgets.text.plain import PlainText, duration, one_line

MAX_DRAFTS: Final = 50
"""Forms whose arguments are kept."""

MAX_READ: Final = 100_000
"""Characters of a result in which links are looked for, which may begin as a tree, or are compared,
and up to which what was sent is indented."""

NONE_SAVED: Final = "No call of this tool is saved. The key n on a result saves one."

_STYLES: Final[Mapping[ToolCallStatus, str]] = {
    ToolCallStatus.OK: "$text-success",
    ToolCallStatus.ERROR: "$text-error",
    ToolCallStatus.DENIED: "$text-warning",
}


class ToolFormScreen(EditingScreen):
    """The arguments of a call by hand; what was typed is there when it opens again.

    Args:
        bridge: Provides the state.
        commands: Makes the form, and runs the tool.
        drafts: What was typed into forms, by server and tool.
        server: The server.
        tool: The tool.
        arguments: The arguments to begin with; None for the draft.
        opener: The widget that shows the call.
    """

    WAYS = (
        ("done", "^S", "Run", "Run"),
        ("switch", "^T", "", ""),
        ("saved", "^O", "Saved calls", "@"),
        ("leave", "Esc", "Close", "Back"),
    )
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(
        only=("call.run", "call.switch", "call.saved", "call.leave", *keymap.HELP)
    )

    def __init__(
        self,
        bridge: StoreBridge,
        commands: Commands,
        drafts: MutableMapping[tuple[ServerId, str], str],
        server: ServerId,
        tool: str,
        arguments: str | None,
        *,
        opener: Widget,
    ) -> None:
        super().__init__()
        self.heading = f"Run {tool} of {server}"
        self._bridge = bridge
        self._commands = commands
        self._drafts = drafts
        self._tool = server, tool
        self._first = drafts.get(self._tool) if arguments is None else arguments
        self._opener = opener
        self.editor = ArgumentEditor(commands, server, tool, None, beside=True)

    def compose_about(self) -> ComposeResult:
        yield PlainText(Content("\n").join(self._about()), classes="step-about")

    def _about(self) -> Iterator[Content]:
        """Say what the tool does, in a line, and what to mind."""
        server, tool = self._tool
        view = find_server(self._bridge.state, server)
        tools = view.catalog.tools if view is not None else ()
        if (found := next((one for one in tools if one.name == tool), None)) is None:
            yield Content.styled("The server no longer has this tool.", "$text-error")
            return
        if words := found.description.strip().partition("\n")[0]:
            yield Content.styled(words, "$text-muted")
        if "destructive" in found.claims:
            yield Content.styled("! The server says that this tool destroys.", "$text-warning")
        if found.problem or found.changed:
            reason = found.problem or "it has changed; v in its pane reviews that"
            yield Content.styled(f"! It cannot run: {one_line(reason)}", "$text-warning")

    async def on_mount(self) -> None:
        if self._first is not None:
            with suppress(ValueError):  # it was left as JSON that is not complete
                await self.editor.load(self._first)
        self.show_status()
        self.editor.focus_first()

    def action_done(self) -> None:
        try:
            arguments = self.editor.finished()
        except ValueError as error:
            self.say(str(error), wrong=True)
        else:
            self.run_worker(self._run(arguments), exclusive=True)

    async def _run(self, arguments: str) -> None:
        """Run the tool if its schema finds nothing wrong."""
        runs = self._commands.engine.runs
        if faults := await runs.check(*self._tool, arguments):
            self.say(" · ".join(map(one_line, faults)), wrong=True)
            return
        shown = ShowRun(runs.start(*self._tool, arguments), monotonic())
        self.action_leave()
        self._opener.post_message(shown)

    def action_saved(self) -> None:
        """Let a saved call be chosen, and fill it in."""
        calls = saved_calls(self._bridge.state, *self._tool)
        if not calls:
            self.say(NONE_SAVED)
            return

        async def fill_in(call: SavedCall) -> None:
            await self.editor.load(call.arguments)
            self.show_status()

        offered = ((f"@{one.name}  {arguments_line(one.arguments)}", one) for one in calls)
        self.app.push_screen(pick("Saved calls", "saved call", offered, fill_in))

    def action_leave(self) -> None:
        """Close, and keep what was typed."""
        self._drafts.pop(self._tool, None)
        self._drafts[self._tool] = self.editor.draft()
        while len(self._drafts) > MAX_DRAFTS:
            self._drafts.pop(next(iter(self._drafts)))
        self.dismiss(None)


class RunScreen(ViewerScreen):
    """Follow a call by hand, and show what it gave.

    Args:
        bridge: Provides the call.
        commands: Cancels it, and makes it again.
        run: The call.
        begun: When it was made, by `time.monotonic`, if that is known.
        opener: The widget that does what is to be done elsewhere.
    """

    KIND = "viewer -whole"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.RUN)

    _commands: Commands

    facts = query_one(".facts", PlainText)
    name_line = query_one(Input)

    def __init__(
        self,
        bridge: StoreBridge,
        commands: Commands,
        run: EntryId,
        begun: float | None,
        *,
        opener: Widget,
    ) -> None:
        self._bridge = bridge
        self._entry = run
        self._begun = begun
        self._opener = opener
        self._run = made = bridge.state.runs.get(run)
        self._filled: ToolRun | None = None
        self._links: list[str] = []
        what = made.call if made is not None else None
        super().__init__(
            f"{what.server} · {what.tool}" if what else "A call by hand", "", None, commands
        )
        self._note = ""  # its size stands with the rest that is known of it
        self._views = []

    def compose_body(self) -> ComposeResult:
        yield PlainText(classes="facts")
        yield Vertical(classes="resource-body")
        line = Input(placeholder="a name for this call", compact=True)
        line.display = False
        yield line

    @property
    def body(self) -> Widget:
        return self.query_one(".resource-body")

    def on_mount(self) -> None:
        self._clock = self.set_interval(1, self._draw, pause=True)
        self._bridge.watch(self, lambda state: state.runs.get(self._entry), self._show)

    def _show(self, run: ToolRun | None) -> None:
        self._run = run
        self._draw()
        is_over = run is None or run.call.status.is_over
        (self._clock.pause if is_over else self._clock.resume)()
        if run is not None and is_over and run is not self._filled:
            self._filled = run
            self.call_next(self._fill, run)
        self.refresh_bindings()

    async def _fill(self, run: ToolRun) -> None:
        """Show the result, as what it is."""
        text = self._text = run.call.result
        self._links = links_in([linked(Content(text[:MAX_READ]))])
        self._pictures = run.call.pictures
        self._views = [("text", lambda: FoldedText(text))]
        if run.raw is not None:
            structured = run.raw.get("structuredContent")
            is_tree = len(text) <= MAX_READ and bool(structured or json_in(text))
            tree = lambda: JsonTree(structured or json_in(text) or run.raw)  # noqa: E731
            self._views.insert(0 if is_tree else 1, ("tree", tree))
            self._views.append(("raw", lambda: FoldedText(_raw_text(run))))
        self.begin_with_picture()
        await self.show_view()

    def _draw(self) -> None:
        """Say how the call stands."""
        lines = list(self._facts(self._run)) if self._run else [Content("It is no longer kept.")]
        self.facts.update(Content("\n").join(lines))

    def _facts(self, run: ToolRun) -> Iterator[Content]:
        call = run.call
        glyph, verb, _ = CALL_LOOKS[call.status]
        seconds = call.seconds
        if seconds is None and self._begun is not None and not call.status.is_over:
            seconds = float(int(monotonic() - self._begun))
        lines = call.result.count("\n") + 1 if call.result else 0
        facts = (
            duration(seconds) if seconds is not None else "",
            counted(lines, "line") if lines else "",
            counted(len(call.result), "character") if lines else "",
        )
        status = Content.styled(f"{glyph} {verb}  ", _STYLES.get(call.status, "$text-accent"))
        yield Content.assemble(status, (" · ".join(filter(None, facts)), "$text-muted"))
        if arguments := arguments_line(call.arguments):
            yield Content.styled(arguments, "$text-muted")
        if call.progress is not None and not call.status.is_over:
            yield Content(progress_line(call.progress, self.app.size.width).plain)
        for fault in run.faults:
            yield Content.styled(f"! against its output schema: {one_line(fault)}", "$text-warning")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done now."""
        run, is_over = self._run, self._run is not None and not self._is_running
        can_open = bool(self._pictures or self._links)
        can_save = run is not None and run.raw is not None
        can_use = is_over and (can_open if parameters == ("open",) else can_save)
        return {
            "leave": self._is_running,
            "use": can_use,
            "compare": is_over and self._before() is not None,
            **dict.fromkeys(("again", "send", "copy"), is_over),
            **dict.fromkeys(("edit", "name", "command"), run is not None),
            "switch": len(self._views) > 1,
        }.get(action, True)

    def action_label(self, action: str) -> str | None:
        match action:
            case "close" if self._is_running:
                return "cancel"
            case "use('open')" if not self._shows("picture"):
                return "links"
            case "switch":
                return self._views[1][0]
            case _:
                return None

    def _shows(self, *names: str) -> bool:
        return bool(self._views) and self._views[0][0] in names

    @property
    def _is_running(self) -> bool:
        return self._run is not None and not self._run.call.status.is_over

    def action_leave(self) -> None:
        self.dismiss()

    def action_close(self) -> None:
        """Leave the line for the name, else cancel what runs, on its server too, else close."""
        if self.name_line.display:
            self.name_line.display = False
            self.body.children[0].focus()
        elif self._is_running:
            self._commands.engine.runs.cancel(self._entry)
        else:
            self.dismiss()

    def action_again(self) -> None:
        """Make the same call again, and follow that one."""
        if self._run is not None:
            call = self._run.call
            self._entry = self._commands.engine.runs.start(call.server, call.tool, call.arguments)
            self._begun = monotonic()
            self._show(self._bridge.state.runs.get(self._entry))

    def action_edit(self) -> None:
        """Go back to the form with these arguments."""
        if self._run is not None:
            call = self._run.call
            self.dismiss()
            self._opener.post_message(RunTool(call.server, call.tool, call.arguments))

    def _before(self) -> ToolRun | None:
        """Return the run of the same tool before this one."""
        found, run = None, self._run
        for one in self._bridge.state.runs.values():
            if run is None or one.call.id == run.call.id:
                break
            is_same = (one.call.server, one.call.tool) == (run.call.server, run.call.tool)
            found = one if is_same and one.call.status.is_over else found
        return found

    async def action_compare(self) -> None:
        """Show what differs from the run before, in arguments and result."""
        from tui.engine.definitions.definition_diff import compared_lines  # noqa: PLC0415 - late
        from tui.ui.questions.trust import difference_lines  # noqa: PLC0415 - ditto

        before, run = self._before(), self._run
        if before is None or run is None:
            return
        sides = (f"{one.call.arguments}\n\n{one.call.result[:MAX_READ]}" for one in (before, run))
        lines = compared_lines(*(side.split("\n") for side in sides))
        if all(line.sign == " " for line in lines):
            self.say("It gave the same with the same arguments.")
            return
        view = LabelledText()
        view.show_lines([*difference_lines(lines)])
        self._views = [one for one in self._views if one[0] != "difference"]
        self._views.insert(0, ("difference", lambda: view))
        await self.show_view()

    def action_use(self, what: str) -> None:
        """Open or save the picture that is shown, else a link, or the result."""
        if self._shows("picture") or self._run is None:
            super().action_use(what)
        elif what == "save":
            as_json = self._shows("raw", "tree")
            self._commands.engine.features.save_result(self._run, as_json=as_json)
        elif len(self._links) == 1:
            self._follow(self._links[0])
        else:
            offered = ((url, url) for url in self._links)
            self.app.push_screen(pick("Links", "link", offered, self._follow))

    def _follow(self, url: str) -> None:
        server = None if self._run is None else self._run.call.server
        self._opener.post_message(FollowLink(url, server))

    def action_send(self) -> None:
        """Send it into the conversation, and go there."""
        if self._run is not None:
            self._commands.engine.runs.send(self._run)
            self.dismiss()
            self._opener.post_message(ShowPane(PaneName.CHAT))

    def action_command(self) -> None:
        if self._run is not None:
            call = self._run.call
            runs = self._commands.engine.runs
            self.app.copy_to_clipboard(runs.command(call.server, call.tool, call.arguments))
            self.say("Copied.")

    def action_name(self) -> None:
        """Ask for a name to save the call under."""
        self.name_line.display = True
        self.name_line.focus()

    @on(Input.Submitted)
    def _on_named(self, event: Input.Submitted) -> None:
        event.stop()
        if self._run is None:
            return
        call, name = self._run.call, event.value.strip()
        try:
            self._commands.engine.runs.save_call(call.server, name, call.tool, call.arguments)
        except ValueError as error:
            self.say(str(error))
            return
        self.action_close()
        self.say(f"Saved: gemdeck mcp call {call.server} @{name}")


def _raw_text(run: ToolRun) -> str:
    """Write what the server sent as JSON in which nothing is hidden; a long one in one line."""
    if run.size > MAX_READ:
        return json.dumps(run.raw)
    return reveal(json.dumps(run.raw, indent=2, ensure_ascii=False))
