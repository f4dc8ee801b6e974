"""Each row of the threat list that applies has a test that carries its id in its name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent

LAST_ROW: Final = {"A": 27, "B": 28, "C": 18, "D": 23, "J": 13}
"""The sections that are held here, and the number of their last row."""

ADDED: Final = {
    "A24": "shell completion puts a name of an untrusted folder into a command line, or reads it",
    "A25": "an entry from elsewhere names a variable or a secret of the user's, and gets it",
    "A26": "an ignore file of a folder takes ages to match, or shows what ours or the user's hides",
    "A27": "what gemini-cli's files and variables forbid beyond single tools is allowed, silently",
    "B17": "a rule on a folder is left by .., links, also ones bent after the question, spellings",
    "B18": "a rule on a value is met by another type: numbers as texts, arrays, nested objects",
    "B19": "a call has arguments that the rule does not name, or lacks some that it names",
    "B20": "a rule on the beginning of a text is met by what only looks like it, or climbs out",
    "B21": "a denial is evaded by case, Unicode forms, another way to a path, an array",
    "B22": "a rule on arguments that cannot be read, of a project or of another version, allows",
    "B23": "names and values of arguments make the words of a rule say something else, or hide it",
    "B24": "a server says that a tool only reads, and then changes it, adds another or contradicts",
    "B25": "a path with a link and `..` meets a rule on another file than its server opens",
    "B26": "the model gets a skill, or a file of one, that the user has not seen",
    "B27": "grants lie in a folder that others can write to, and permit once gemdeck has closed it",
    "B28": "a tool with marked words reaches the model before the user has seen it",
    "C15": "a text that comes in one piece names files, secrets too, that go along",
    "C16": "text that only a model reads is neither spelled out nor counted",
    "C17": "a catalog file edited by hand speaks for a server that sleeps",
    "C18": "words of a server speak to the model against the user, and nobody is told",
    "D21": "a server repeats the secret that it was given; a call carries the mask back",
    "D22": "bytes of the terminal end its reader: impossible sizes, wild numbers, cut sequences",
    "D23": "a form of a server asks for a secret under another name, or only forbids them",
    "E40": "an HTTP peer sends interim answers, heads or bodies without end, or in tiny pieces",
    "E41": "a hundred servers die as soon as they start, again and again",
    "E42": "a server lists a hundred thousand tools, and says over and over that they changed",
    "E43": "numbers of very many digits hold whoever reads or writes them",
    "E44": "many pictures at once, or one whose decoder lets nothing else run",
    "E45": "a form of a hostile schema has options, lines and words without end",
    "E46": "the event loop is held, and the key that quits does not end gemdeck",
    "E47": "a task, or a call, asks the user for input without end",
    "G40": "a server on the network is away for long, or the machine sleeps or changes its network",
    "I40": "the key of a service goes to another service, or to another address of its own",
    "I41": "a key that is kept for a service is had by another one, or at another address",
    "I42": "a server inherits the key of a service",
    "I43": "a project names a service, a model or an address, and gets what the user sends",
    "I44": "keys and headers of services stand in errors, logs, reports or what settings show",
    "I45": "a service answers although an administrator allows another way alone",
    "L01": "a client of another program runs a call that nobody saw, or that is not recorded",
    "L02": "a permission of one client, or of the chat, is used by another client",
    "L03": "a client calls itself like another one, or invents a token, and gets what lasts",
    "L04": "a client gets what the rules deny, or a profile leaves out",
    "L05": "a client floods an open deck, and others wait",
    "L06": "a client cancels, or goes, and the question about its call stays",
    "L07": "another user of the machine connects to an open deck, or puts a socket in its place",
    "L08": "a deck is killed, and its socket stops or misleads those that come later",
    "L09": "a client sends rubbish, or what never ends",
    "L10": "gemdeck serves itself, and what it lists grows without end",
    "L11": "a command gets of a deck what it may not start, or what another folder's entry says",
    "L12": "a command's consent lets more run than its call, or what the deck's rules deny",
    "L13": "a command or a deck goes in the middle of a call, and something hangs or runs twice",
    "L14": "a client reads a resource or gets a prompt that is denied, or that is not recorded",
    "L15": "a client goes on as if its own arguments had run, which the user changed",
    "L16": "a server floods a client with messages, or one client gets what another asked for",
    "L17": "a form is answered by a client that the user did not let, or that did not cause it",
    "L18": "many clients call beside a slow server: they wait for it, or get others' results",
    "L19": "a client fills the deck with questions, and nobody else's are asked",
    "L20": "a client reads nothing, and what waits for it grows without end",
    "L21": "a deck is suspended, and who calls it waits without end",
    "L22": "a deck, a gemdeck mcp serve or its client ends, and leaves servers or a socket behind",
    "L23": "the folder of the sockets is a link or open to others, or a socket is another's",
    "L24": "a client in a folder without trust, or put in another's place, gets what is another's",
    "L25": "a client cancels or answers what is another's, or uses an id or a permission twice",
    "L26": "a client's name hides that it is a claim, or has control characters",
    "L27": "a profile narrows or goes, and a client that is connected keeps what it left out",
    "L28": "a client whose calls are denied gets what a server logs about those of others",
    "L29": "a form that asks for a secret is answered by a client",
    "L30": "a command sees or ends the tasks of the chat, or of another command",
    "J13": "the home is read-only when gemdeck ends",
    "K01": "a sandboxed server reads keys, or changes what the shell or another server runs",
    "K02": "a sandboxed server without the network reaches loopback, by TCP or UDP",
    "K03": "a sandboxed server reaches the session bus, the keys' agent or an abstract socket",
    "K04": "a sandboxed server sees, ends or traces processes, gemdeck and its guard included",
    "K05": "a sandboxed server leaves by links, by /proc, or by what others have open",
    "K06": "a sandboxed server takes away or changes what is mounted, as root of its own namespace",
    "K07": "a sandboxed server writes what others run or obey in the opened folder",
    "K08": "a sandboxed server writes to the user's terminal, or types there",
    "K09": "a sandboxed server fills the disk",
    "K10": "a sandboxed server leaves a daemon, and ends the guard that would end it",
    "K11": "a sandboxed server inherits a descriptor",
    "K12": "npx or uvx runs in a sandbox what another server put into their cache",
}
"""Rows that came after the list, and what each is about."""

NOT_YET: Final = {
    "D20": "nothing is exported",
    "J09": "no session is kept",
    "J10": "no session is kept",
}
"""Rows about what gemdeck does not do."""

_NAME: Final = re.compile(r"def test_((?:[A-L][0-9]{2}_)+)")


def ids() -> Iterator[str]:
    """List the ids in the names of all tests."""
    for path in TESTS.rglob("test_*.py"):
        for match in _NAME.finditer(path.read_text(encoding="utf-8")):
            yield from match[1].rstrip("_").split("_")


def test_every_row_that_applies_has_a_test() -> None:
    held = {f"{key}{n:02}" for key, last in LAST_ROW.items() for n in range(1, last + 1)}
    rows, found = held | ADDED.keys(), set(ids())
    assert rows - found == set(NOT_YET)
    assert {row for row in found if row[0] in LAST_ROW} <= rows
