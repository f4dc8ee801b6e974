"""The user's own keys: which of them can hold, and why the others cannot."""

from collections.abc import Mapping, Sequence
from typing import Final

from textual.keys import format_key

from tui.ui.keymap import KEY_NAMES, KEYS, Key, Place, character, sent

_AROUND: Final[Mapping[Place, tuple[Place, ...]]] = {
    **dict.fromkeys((Place.GRANTS, Place.SESSIONS, Place.INSERT), (Place.LIST,)),
    Place.TOOLS: (Place.LIST, Place.MARKS),
    Place.SERVERS: (Place.MARKS,),
    **dict.fromkeys((Place.PROMPTS, Place.RESOURCES), (Place.LIST, Place.INSERT)),
    **dict.fromkeys((Place.MESSAGE, Place.QUEUE, Place.CONVERSATION, Place.SEARCH), (Place.CHAT,)),
    **dict.fromkeys((Place.VIEWER, Place.HELP, Place.CALL), (Place.DIALOG,)),
    Place.RUN: (Place.VIEWER, Place.DIALOG),
    Place.LOG: (Place.ACTIVITY,),
    Place.PROTOCOL: (Place.LIST,),
}
"""Places whose keys work as well in a place."""

_TYPED: Final = (Place.CHAT, Place.MESSAGE, Place.SEARCH)
"""Places where letters are typed."""

_ANSWERS: Final = ("escape", "enter", "tab", "ctrl+c", "ctrl+s", "ctrl+d", "ctrl+y")
"""Keys of questions that are no letters: they must get there."""

_MOVING: Final = ("up", "down", "left", "right", "pageup", "pagedown", "home", "end")
"""Keys that move in questions."""

_SAME: Final = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace"}
_MODIFIERS: Final = frozenset({"ctrl", "alt", "shift"})


def check_keys(own: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Say why keys of one's own cannot hold: the words by binding id. All others hold together."""
    from tui.model.input.typed import nearest  # noqa: PLC0415 - only where there are any

    known = {key.id: key for key in KEYS}
    if own.keys() - known:
        from tui.ui.questions.kinds import answer_keys  # noqa: PLC0415 - with every question

        known |= {key.id: key for key in answer_keys()}
    wrong: dict[str, str] = {}
    for name, keys in own.items():
        if (key := known.get(name)) is None:
            near = nearest(name, known)
            wrong[name] = "no action has this id" + (f"; did you mean {near}?" if near else "")
        elif said := next(filter(None, (_refusal(key, one) for one in keys)), ""):
            wrong[name] = said
    held = {name: sent(key.keys.split(",")) for name, key in known.items()}
    while True:
        now = {name: sent(own[name]) for name in own if name not in wrong}
        clashes = {
            name: f"{min(both)} belongs to {other}: {known[other].description}"
            for name in now
            for other in known
            if other != name
            and _meet(known[name], known[other])
            and (both := (now[name] - held[name]) & now.get(other, held[other]))
        }
        if not clashes:
            return wrong
        wrong |= clashes


def _meet(one: Key, other: Key) -> bool:
    """Tell whether two actions can be meant by one key."""
    places = one.place, other.place
    if places == (Place.QUESTION, Place.QUESTION):
        return one.id.partition(".")[0] == other.id.partition(".")[0]
    within = any(b is a or b in _AROUND.get(a, ()) for a, b in (places, places[::-1]))
    return within or one.is_always or other.is_always


def _refusal(key: Key, pressed: str) -> str:
    """Say why an action cannot have a key, or nothing."""
    *modifiers, base = pressed.split("+") if pressed != "+" else (pressed,)
    if pressed in key.keys.split(","):
        return ""
    if set(modifiers) - _MODIFIERS or not (base in KEY_NAMES or len(format_key(base)) == 1):
        return f"unknown key {pressed}: use names such as ctrl+y, f6 or pagedown"
    if pressed in _SAME:
        return f"terminals send {pressed} as {_SAME[pressed]}"
    if (pressed == "space" or len(character(pressed)) == 1) and (
        key.is_always or key.place in _TYPED
    ):
        return f"{pressed} types text here: use ctrl, alt or a function key such as f12"
    if (key.is_always or key.place is Place.QUESTION) and pressed in _ANSWERS:
        return f"{pressed} is reserved for answering questions"
    if key.place is Place.QUESTION and pressed in _MOVING:
        return f"{pressed} is reserved for moving in questions"
    return ""
