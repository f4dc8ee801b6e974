"""Calls by hand: the form of a tool, and what a call gave."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from functools import partial
from time import localtime, strftime, time
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Input

from tui.model.chat import ToolCallStatus
from tui.model.input.arguments import reveal
from tui.model.runs import SavedCall, ToolRun
from tui.model.servers import ServerId
from tui.store.selectors import saved_calls
from tui.store.selectors import server as find_server
from tui.text import counted
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.choices import pick, use_one
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.dialogs.viewer import FetchedScreen
from tui.ui.messages import FollowLink, RunTool, ShowRun, ShowSent
from tui.ui.questions.calls.steps import EditingScreen
from tui.ui.widgets.chat.tool_call import CALL_LOOKS, arguments_line, progress_line
from tui.ui.widgets.forms.argument_form import ArgumentEditor
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.json_tree import JsonTree, json_in
from tui.ui.widgets.text.labelled_text import LabelledText, difference_lines
from tui.ui.widgets.text.links import linked, links_in
from tui.ui.widgets.text.plain import PlainText, duration, one_line

MAX_DRAFTS: Final = 50
"""Forms whose arguments are kept."""

MAX_READ: Final = 100_000
"""Characters of a result in which links are looked for, which may begin as a tree, or are compared,
and up to which what was sent is indented."""

_STYLES: Final[Mapping[ToolCallStatus, str]] = {
    ToolCallStatus.OK: "$text-success",
    ToolCallStatus.ERROR: "$text-error",
    ToolCallStatus.DENIED: "$text-warning",
}


class ToolFormScreen(EditingScreen):
    """The arguments of a call by hand; what was typed is there when it opens again.

    Args:
        bridge: Provides the state, and runs the tool.
        drafts: What was typed into forms, by server and tool.
        server: The server.
        tool: The tool.
        arguments: The arguments to begin with; None for the draft.
    """

    BINDINGS = keymap.bindings("call.run", "call.switch", "call.saved")

    def __init__(
        self,
        bridge: StoreBridge,
        drafts: MutableMapping[tuple[ServerId, str], str],
        server: ServerId,
        tool: str,
        arguments: str | None,
    ) -> None:
        super().__init__(f"Run {tool} ({server})")
        self._bridge = bridge
        self._drafts = drafts
        self._tool = server, tool
        self._first = drafts.get(self._tool) if arguments is None else arguments
        self.editor = ArgumentEditor(bridge.commands, server, tool, None, beside=True)

    def compose_about(self) -> ComposeResult:
        yield PlainText(Content("\n").join(self._about()), classes="step-about")

    def _about(self) -> Iterator[Content]:
        """Say what the tool does, in a line, and what to mind."""
        server, tool = self._tool
        view = find_server(self._bridge.state, server)
        tools = view.catalog.tools if view is not None else ()
        if (found := next((one for one in tools if one.name == tool), None)) is None:
            yield Content.styled("The server no longer offers this tool.", "$text-error")
            return
        if words := found.description.strip().partition("\n")[0]:
            yield Content.styled(words, "$text-muted")
        if "destructive" in found.claims:
            yield Content.styled("! The server declares this tool destructive.", "$text-warning")
        if found.changed:
            words = "! The tool changed since you accepted it; press v in its pane to review."
            yield Content.styled(words, "$text-warning")
        elif found.problem:
            yield Content.styled(f"! Cannot run: {one_line(found.problem)}", "$text-warning")

    def on_mount(self) -> None:
        self.call_next(self._begin)

    async def _begin(self) -> None:
        if self._first is not None:
            with suppress(ValueError):  # it was left as JSON that is not complete
                await self.editor.load(self._first)
        self.show_status()
        self.editor.focus_first()

    def finish(self, arguments: str) -> None:
        self.run_worker(self._run(arguments), exclusive=True)

    async def _run(self, arguments: str) -> None:
        """Run the tool if its schema finds nothing wrong."""
        runs = self._bridge.commands.running.runs
        if faults := await runs.check(*self._tool, arguments):
            self.tell(" · ".join(map(one_line, faults)), wrong=True)
            return
        made = runs.start(*self._tool, arguments)
        deck = self.app.screen_stack[0]
        self.action_close()
        deck.post_message(ShowRun(self._bridge.state.runs[made]))

    def action_saved(self) -> None:
        """Let a saved call be chosen, and fill it in."""
        if not (calls := saved_calls(self._bridge.state, *self._tool)):
            self.tell("No saved calls for this tool. Press n on a result to save one.")
            return

        async def fill_in(call: SavedCall) -> None:
            await self.editor.load(call.arguments)
            self.show_status()

        offered = ((f"@{one.name}  {arguments_line(one.arguments)}", one) for one in calls)
        self.app.push_screen(pick("Saved calls", "saved call", offered, fill_in))

    def action_close(self) -> None:
        """Close, and keep what was typed."""
        self._drafts.pop(self._tool, None)
        self._drafts[self._tool] = self.editor.draft()
        while len(self._drafts) > MAX_DRAFTS:
            self._drafts.pop(next(iter(self._drafts)))
        self.dismiss()


class RunScreen(FetchedScreen):
    """Follow a call by hand, and show what it gave.

    Args:
        bridge: Provides the call, cancels it, and makes it again.
        run: The call.
    """

    AUTO_FOCUS = ""
    WAITING = ""
    BINDINGS = keymap.bindings(keymap.Place.VIEWER, keymap.Place.RUN)

    name_line = query_one(Input)

    def __init__(self, bridge: StoreBridge, run: ToolRun) -> None:
        super().__init__(bridge, f"{run.call.server} · {run.call.tool}")
        self._run = run
        self._filled: ToolRun | None = None
        self._links: list[str] = []

    def compose_body(self) -> ComposeResult:
        yield from super().compose_body()
        line = Input(placeholder="name for this call", compact=True)
        line.display = False
        yield line

    def on_mount(self) -> None:
        self._clock = self.set_interval(1, self._draw, pause=True)
        # one that is no longer kept stays as it was
        self._bridge.watch(self, lambda s: s.runs.get(self._run.call.id, self._run), self._show)

    def _show(self, run: ToolRun) -> None:
        self._run = run
        self._draw()
        (self._clock.resume if self._is_running else self._clock.pause)()
        if not self._is_running and run is not self._filled:
            self._filled = run
            self.call_next(self._fill, run)
        self.refresh_bindings()

    async def _fill(self, run: ToolRun) -> None:
        """Show the result, as what it is."""
        text = self.text = run.call.result
        self._links = links_in([linked(Content(text[:MAX_READ]))])
        self.pictures = run.call.pictures
        self.views = [("text", lambda: FoldedText(text))]
        if run.raw is not None:
            structured = run.raw.get("structuredContent")
            is_tree = len(text) <= MAX_READ and bool(structured or json_in(text))
            match structured:
                case dict() if [*structured.values()] == [text]:
                    is_tree = False  # it is the text once more, whose lines a tree would join
            tree = lambda: JsonTree(structured or json_in(text) or run.raw)  # noqa: E731
            self.views.insert(0 if is_tree else 1, ("tree", tree))
            self.views.append(("raw", lambda: FoldedText(_raw_text(run))))
        self.begin_with_picture()
        await self.show(self.views[0][1]())

    def _draw(self) -> None:
        """Say how the call stands."""
        self.facts.update(Content("\n").join(self._facts()))

    def _facts(self) -> Iterator[Content]:
        call = self._run.call
        glyph, verb, _ = CALL_LOOKS[call.status]
        seconds = call.seconds
        if seconds is None and self._run.begun and self._is_running:
            seconds = float(int(max(0, time() - self._run.begun)))
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
        for fault in self._run.faults:
            yield Content.styled(
                f"! result does not match the output schema: {one_line(fault)}", "$text-warning"
            )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done now."""
        is_over = not self._is_running
        can_open = bool(self.pictures or self._links)
        can_use = can_open if parameters == ("open",) else self._run.raw is not None
        return {
            "dismiss": self._is_running,
            "use": is_over and can_use,
            "compare": is_over and bool(self._others()),
            **dict.fromkeys(("again", "send", "copy"), is_over),
            "switch": len(self.views) > 1,
        }.get(action, True)

    def action_label(self, action: str) -> str | None:
        match action:
            case "close" if self._is_running:
                return "cancel"
            case "use('open')" if not self._shows("picture"):
                return "links"
            case _:
                return super().action_label(action)

    def _shows(self, *names: str) -> bool:
        return bool(self.views) and self.views[0][0] in names

    @property
    def _is_running(self) -> bool:
        return not self._run.call.status.is_over

    def action_close(self) -> None:
        """Leave the name or the difference, else cancel what runs on its server too, or close."""
        if self.name_line.display:
            self.name_line.display = False
            self.body.children[0].focus()
        elif self._shows("difference"):
            del self.views[0]
            self.call_next(self.show, self.views[0][1]())
        elif self._is_running:
            self._commands.engine.runs.cancel(self._run.call.id)
        else:
            self.dismiss()

    def action_again(self) -> None:
        """Make the same call again, and follow that one."""
        call = self._run.call
        made = self._commands.running.runs.start(call.server, call.tool, call.arguments)
        self._show(self._bridge.state.runs[made])

    def action_edit(self) -> None:
        """Go back to the form with these arguments."""
        call = self._run.call
        self.leave_for(RunTool(call.server, call.tool, call.arguments))

    def _others(self) -> list[ToolRun]:
        """Return the other runs of the same tool that have ended."""
        call = self._run.call
        return [
            one
            for one in self._bridge.state.runs.values()
            if one.call.status.is_over
            and one.call.id != call.id
            and (one.call.server, one.call.tool) == (call.server, call.tool)
        ]

    def action_compare(self) -> None:
        """Compare it with the only other run of the tool, or with one that is picked."""
        others = [(_run_words(one), one) for one in reversed(self._others())]
        use_one(self.app, "Compare with", "call", others, partial(self.call_later, self._compare))

    async def _compare(self, other: ToolRun) -> None:
        """Show what differs from another run, in arguments and result."""
        from tui.engine.definitions.definition_diff import compared_lines  # noqa: PLC0415 - late

        sides = (
            f"{one.call.arguments}\n\n{one.call.result[:MAX_READ]}" for one in (other, self._run)
        )
        lines = compared_lines(*(side.split("\n") for side in sides))
        if all(line.sign == " " for line in lines):
            self.say("Same arguments, same result.")
            return

        def view() -> LabelledText:
            made = LabelledText()
            made.show_lines([*difference_lines(lines)])
            return made

        self.views = [one for one in self.views if one[0] != "difference"]
        self.views.insert(0, ("difference", view))
        await self.show(view())

    def action_use(self, what: str) -> None:
        """Open or save the picture that is shown, else a link, or the result."""
        if self._shows("picture"):
            super().action_use(what)
        elif what == "save":
            as_json = self._shows("raw", "tree")
            self._commands.engine.features.save_result(self._run, as_json=as_json)
        else:
            use_one(self.app, "Links", "link", [(url, url) for url in self._links], self._follow)

    def _follow(self, url: str) -> None:
        self.app.screen_stack[0].post_message(FollowLink(url, self._run.call.server))

    def action_send(self) -> None:
        """Send it into the conversation, and go there."""
        self._commands.engine.runs.send(self._run)
        self.leave_for(ShowSent())

    def action_command(self) -> None:
        call = self._run.call
        self.app.copy_to_clipboard(
            self._commands.running.runs.command(call.server, call.tool, call.arguments)
        )

    def action_name(self) -> None:
        """Ask for a name to save the call under."""
        self.name_line.display = True
        self.set_focus(self.name_line)  # at once: what is typed next is meant for it

    @on(Input.Submitted)
    def _on_named(self, event: Input.Submitted) -> None:
        call, name = self._run.call, event.value.strip()
        try:
            self._commands.engine.runs.save_call(call.server, name, call.tool, call.arguments)
        except ValueError as error:
            self.say(str(error))
            return
        self.action_close()
        self.say(f"Saved: gemdeck mcp call {call.server} @{name}")


def run_list(runs: Iterable[ToolRun], use: Callable[[ToolRun], object]) -> ListDialog[ToolRun]:
    """Return the dialog that picks a call by hand, the newest first."""
    offered = ((_run_words(one), one) for one in reversed([*runs]))
    return pick("Tools you ran", "call", offered, use)


def _run_words(run: ToolRun) -> str:
    call = run.call
    glyph, verb, _ = CALL_LOOKS[call.status]
    when = strftime("%H:%M:%S", localtime(run.begun)) if run.begun else ""
    took = duration(call.seconds) if call.seconds is not None else ""
    words = when, f"{glyph} {call.tool}", call.server, arguments_line(call.arguments), verb, took
    return "  ".join(filter(None, (*words, call.result)))


def _raw_text(run: ToolRun) -> str:
    """Write what the server sent as JSON in which nothing is hidden; a long one in one line."""
    if run.size > MAX_READ:
        return json.dumps(run.raw)
    return reveal(json.dumps(run.raw, indent=2, ensure_ascii=False))
