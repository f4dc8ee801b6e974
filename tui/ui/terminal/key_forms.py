"""The forms in which terminals send keys, and one for all of them."""

import re
from typing import Final

_OTHER_FORMS: Final = {
    "\x1b\r": "\x1b[13;3u",  # Alt+Enter, and Shift+Enter as Claude Code sets VS Code up
    "\x1b\n": "\x1b[13;3u",
    "\x1bOb": "\x1b[1;5B",  # for Textual it is Up
    "\x1bOX": "=",
    "\x1bOl": ",",
    # Alt with a digit, for which Textual gives what a Mac's keyboard has there, such as ™
    **{f"\x1b{digit}": f"\x1b[{ord(digit)};3u" for digit in "123456789"},
}

_SHORT: Final = re.compile(r"\x1b[O\[](\d?)([A-DFHP-S])")
_RXVT: Final = re.compile(r"\x1b\[(\d+)([$^@])")
_REPORT: Final = re.compile(r"\x1b\[([\d:;]+)([u~A-HP-S])")

_SHIFT, _ALT, _CAPS_LOCK, _COMMANDS = 1, 2, 64, 62
"""Bits of the modifiers; `_COMMANDS` are those that type nothing."""

_RELEASED: Final = 3
_BACKSPACE: Final = 127

_TYPED: Final = {8: _BACKSPACE, **dict(enumerate(map(ord, "0123456789./*-+\r=,"), 57399))}
"""What xterm's Backspace and the keys of the keypad type."""

_UNHEARD: Final = {*range(57358, 57361), *range(57441, 57455)}
"""Locks, and modifiers alone."""


def in_one_form(sequence: str) -> str:
    """Write a key as kitty's protocol does, with the text that it types; nothing if it is none.

    Terminals send keys in the forms of xterm, rxvt, PuTTY and the Linux console, of xterm's
    modifyOtherKeys, and of kitty's protocol with or without events, alternates and text.
    """
    if sequence[:1] != "\x1b":
        return sequence
    sequence = _OTHER_FORMS.get(sequence, sequence)
    if (found := _SHORT.fullmatch(sequence)) is not None:
        sequence = f"\x1b[1;{found[1] or 1}{found[2]}"
    elif (found := _RXVT.fullmatch(sequence)) is not None:
        sequence = f"\x1b[{found[1]};{' $  ^@'.index(found[2]) + 1}~"
    if (found := _REPORT.fullmatch(sequence)) is None:
        return sequence
    numbers, end = found.groups()
    fields = [[int(one or 0) for one in field.split(":")] for field in numbers.split(";")]
    if end == "~" and fields[0] == [27] and len(fields) == 3:  # modifyOtherKeys
        fields, end = [fields[2], fields[1]], "u"
    codes, states, text = (*fields, [0], [0])[:3]
    (code, shifted, base), (modifiers, kind) = (*codes, 0, 0)[:3], (*states, 0)[:2]
    bits = max(0, modifiers - 1)
    if kind == _RELEASED or code in _UNHEARD:
        return ""
    if end == "u":
        code = _TYPED.get(code, code)
        if code == _BACKSPACE:
            bits &= ~_SHIFT
        if bits & _COMMANDS & ~_ALT:
            text = [0]
            code = base if base and code > 127 else code  # a layout without Latin letters
        elif not any(text) and not bits & _COMMANDS and chr(code).isprintable():
            is_capital = bits & (_SHIFT | _CAPS_LOCK) in {_SHIFT, _CAPS_LOCK}
            upper = chr(code).upper() if is_capital else ""
            text = [shifted or ord(upper if len(upper) == 1 else chr(code))]
            bits &= ~_SHIFT
    bits &= _SHIFT | _COMMANDS
    typed = ";" + ":".join(map(str, text)) if any(text) else ""
    return f"\x1b[{code};{bits + 1}{typed}{end}"
