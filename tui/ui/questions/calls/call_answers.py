"""The answers to the question about tool calls, as data."""

from typing import Final

from tui.model.consent import Choice, GrantScope
from tui.ui.questions.answers import Answer

NOT_LASTING: Final = (
    "not offered: nothing identifies this server later on",
    "not for this server",
)
"""Says why no answer that lasts is offered, in many words and in few."""

SCOPES: Final = tuple(GrantScope)
"""The scopes in the order in which their key goes through them."""

SHORT_SCOPES: Final = {
    GrantScope.SESSION: "session",
    GrantScope.FOLDER: "folder",
    GrantScope.EVERYWHERE: "everywhere",
}

ONCE: Final = Answer("once", "o", "Once", "allow this call", Choice.ONCE)
DENY: Final = Answer("deny", "d,escape", "Deny", "deny this call", Choice.DENY)
JSON: Final = Answer(
    "json", "j", "Exact JSON", "show the arguments as JSON, or to be read", short="JSON"
)
MORE: Final = Answer("more", "full_stop", "More", "show all answers", key_display=".")
EDIT: Final = Answer("edit", "e", "Edit", "edit the arguments first")
UNDO: Final = Answer(
    "undo-edit",
    "u",
    "Model's",
    "switch between the model's arguments and your edit",
    short="Undo",
)
WITH_REASON: Final = Answer(
    "deny-with-reason",
    "w",
    "Deny, say why",
    "deny this call and tell the model why",
    short="Why",
)


def _always(kind: str, key: str, choice: Choice) -> Answer:
    return Answer(
        f"always-{kind}",
        key,
        f"Always this {kind}",
        f"always this {kind}",
        choice,
        short=kind.title(),
        brief=f"always {kind}",
        twice=True,
        scoped=True,
    )


ALWAYS_TOOL: Final = _always("tool", "t", Choice.ALWAYS_TOOL)
ALWAYS_SERVER: Final = _always("server", "s", Choice.ALWAYS_SERVER)
SCOPE: Final = Answer(
    "scope", "m", GrantScope.SESSION, "switch how long and where always holds", scoped=True
)
NEXT: Final = Answer("next-call", "c", "Next", "show the next call")
ALLOW_SEEN: Final = Answer(
    "allow-seen",
    "a",
    "Allow seen",
    "allow each call that was shown to its end, once",
    Choice.ONCE,
    short="Seen",
    twice=True,
)
DENY_REST: Final = Answer(
    "deny-rest",
    "n",
    "Deny rest",
    "deny this and all further calls of this turn",
    Choice.DENY_REST_OF_TURN,
    short="Rest",
)
STOP: Final = Answer(
    "stop",
    "x",
    "Stop turn",
    "deny this and all further calls, and stop the turn",
    Choice.DENY,
    short="Stop",
)
ANSWERS: Final = (
    (ONCE, ALWAYS_TOOL, DENY, JSON, MORE),
    (EDIT, UNDO, ALWAYS_SERVER, SCOPE),
    (WITH_REASON, NEXT, ALLOW_SEEN, DENY_REST, STOP),
)
"""All of them, in rows: first those that are used most."""
