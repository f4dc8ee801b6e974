"""The commands on the model: which one answers, how, and what fills its context."""

from dataclasses import replace
from math import isfinite, nan

from tui.model.models import ModelOptions
from tui.ui.commands.reports import describe_model_context, describe_options
from tui.ui.commands.session_commands import SessionRunner
from tui.ui.commands.usage import UsageError


class ModelRunner(SessionRunner):
    """Chooses models and their options, and shows and shrinks the context."""

    async def run_model(self, name: str) -> None:
        """Use a model, or choose one of the service's list."""
        from tui.ui.dialogs.choices import ModelsScreen  # noqa: PLC0415 - on first use

        if name:
            self._commands.engine.model.use_model(name)
        else:
            self._deck.app.push_screen(ModelsScreen(self._bridge, self._commands))

    async def run_context(self, _: str) -> None:
        """Show what fills the context, and its files, read anew."""
        self._commands.engine.model.measure()
        self._commands.engine.context_files.refresh()
        self.show(
            "Context",
            lambda state: (
                state.context_parts,
                state.conversation.usage,
                state.context,
                state.cost,
            ),
            lambda view: describe_model_context(*view),
        )

    async def run_compress(self, _: str) -> None:
        self._commands.engine.model.compress()

    async def run_options_show(self, _: str) -> None:
        """Show how the model answers in this conversation."""
        self.show("Options", lambda state: state.options, describe_options)

    async def run_options_thinking(self, level: str) -> None:
        """Set a level, or for Gemini 2.5 a budget in tokens; nothing leaves it to the service."""
        self._set(replace(self._bridge.state.options, thinking=level.lower() or None))

    async def run_options_temperature(self, number: str) -> None:
        self._set(replace(self._bridge.state.options, temperature=_number(number)))

    async def run_options_output(self, tokens: str) -> None:
        value = _number(tokens)
        limit = int(value) if value is not None else None
        self._set(replace(self._bridge.state.options, max_output=limit))

    def _set(self, options: ModelOptions) -> None:
        self._commands.engine.model.set_options(options)


def _number(text: str) -> float | None:
    """Read a number; None if there is none.

    Raises:
        UsageError: If it is something else.
    """
    try:
        number = float(text) if text else None
    except ValueError:
        number = nan
    if number is not None and not isfinite(number):
        raise UsageError(f"{text} is not a number.")
    return number
