"""Sections of gemini-cli's settings beside its servers."""

from typing import Any, Final

from pydantic import Field, model_validator

from tui.model.settings_types import ContextName, ModelName, Section

MAX_CONTEXT_NAMES: Final = 20
"""Most names in `context.fileName`."""


class ModelSettings(Section):
    """gemini-cli's ``model``."""

    name: ModelName | None = Field(None, description="Model to use, unless `gemdeck.model` is set.")


class ContextSettings(Section):
    """gemini-cli's ``context``."""

    file_name: tuple[ContextName, ...] | None = Field(
        None,
        max_length=MAX_CONTEXT_NAMES,
        description="Names of the files whose text goes to the model in every turn, in `~/.gemini` "
        "and in trusted projects. If not set, GEMINI.md.",
    )

    @model_validator(mode="before")
    @classmethod
    def _as_list(cls, data: Any) -> Any:  # noqa: ANN401  (pydantic: anything can come)
        """Accept one name as a list with one item."""
        match data:
            case {"fileName": str(name)}:
                return {**data, "fileName": [name]}
        return data
