"""What the user has set beside an answer: how far it reaches, and other arguments."""

from dataclasses import dataclass, replace
from typing import Final

from tui.model.consent import GrantScope

SCOPES: Final = tuple(GrantScope)
"""The scopes in the order in which their key goes through them."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The state of the answer to one question, before it is given.

    Attributes:
        arguments: The model's arguments.
        scope: How far "always" reaches.
        edit: The arguments as edited; None where they are the model's.
        shows_edit: Whether the edited ones are on the screen, and are sent.
    """

    arguments: str = ""
    scope: GrantScope = GrantScope.SESSION
    edit: str | None = None
    shows_edit: bool = False

    @property
    def shown(self) -> str:
        """The arguments on the screen, which are the ones an answer is about."""
        return self.arguments if self.sent is None else self.sent

    @property
    def sent(self) -> str | None:
        """The user's own arguments where an answer is about them, else None."""
        return self.edit if self.shows_edit else None

    def with_next_scope(self) -> "Draft":
        """Reach further, or from the farthest the least."""
        following = (SCOPES.index(self.scope) + 1) % len(SCOPES)
        return replace(self, scope=SCOPES[following])

    def with_edit(self, text: str) -> "Draft":
        """Take arguments as edited; they are no edit where they are the model's again."""
        edit = text if text != self.arguments else None
        return replace(self, edit=edit, shows_edit=edit is not None)

    def turned(self) -> "Draft":
        """Show the model's arguments in place of the edited ones, or the other way round."""
        return replace(self, shows_edit=self.edit is not None and not self.shows_edit)

    def asked_again(self) -> "Draft":
        """Show what the user wrote once more."""
        return replace(self, shows_edit=self.edit is not None)
