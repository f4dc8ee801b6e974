"""Carries out the commands of the screen."""

from collections.abc import Awaitable, Callable

from tui.model.chat import ModelText
from tui.model.input.own_commands import Takes, TypedCommand
from tui.model.input.typed import nearest
from tui.store.selectors import entries
from tui.ui.app import GemdeckApp
from tui.ui.commands.model_commands import ModelRunner
from tui.ui.commands.reports import describe_folders, describe_stats
from tui.ui.commands.usage import UsageError
from tui.ui.panes import PaneName


class CommandRunner(ModelRunner):
    """Carries out commands: each is the method ``run_name``, which takes what stands after it."""

    async def run(self, typed: TypedCommand) -> None:
        """Carry out a command.

        Raises:
            UsageError: If it cannot be, as it was typed.
        """
        if typed.rest and typed.takes is Takes.NOTHING:
            raise UsageError(f"{typed.usage} takes nothing after it.")
        if not typed.rest and typed.takes and not typed.takes.startswith("["):
            raise UsageError(f"Type {typed.usage}")
        method: Callable[[str], Awaitable[None]] = getattr(self, "_".join(("run", *typed.words)))
        await method(typed.rest)

    async def run_help(self, _: str) -> None:
        await self._deck.run_action("app.help")

    async def run_new(self, _: str) -> None:
        self._commands.clear_conversation()

    run_clear = run_new

    async def run_tools(self, server: str) -> None:
        """Show the tools, narrowed to a server."""
        view = self.one_server(server) if server else None
        await self._deck.show_pane(PaneName.TOOLS, view.id if view is not None else None)

    async def run_copy(self, _: str) -> None:
        """Copy the last answer."""
        answers = [one.text for one in entries(self._bridge.state) if isinstance(one, ModelText)]
        if not answers:
            raise UsageError("There is no answer to copy yet.")
        self._deck.app.copy_to_clipboard(answers[-1])
        self.say("The last answer was copied.")

    async def run_stats(self, _: str) -> None:
        self.show(
            "Stats",
            lambda state: (state.conversation, state.cost),
            lambda view: describe_stats(*view),
        )

    async def run_theme(self, name: str) -> None:
        """Choose a theme, or show all."""
        app = self._deck.app
        if not name:
            app.action_change_theme()
        elif name in app.available_themes and isinstance(app, GemdeckApp):
            app.choose_theme(name)
        else:
            like = nearest(name, app.available_themes)
            raise UsageError(
                f"There is no theme {name}.",
                f"Did you mean {like}?" if like else "/theme shows all.",
            )

    async def run_directory_show(self, _: str) -> None:
        """List the folders that servers are told of."""
        self.show("Folders", lambda state: state.folders, describe_folders)

    async def run_directory_add(self, folder: str) -> None:
        self._commands.engine.features.add_folder(folder)

    async def run_quit(self, _: str) -> None:
        await self._deck.run_action("app.quit")
