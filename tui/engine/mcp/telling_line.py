"""The line that matters in what a program wrote before it ended."""

import re
from collections.abc import Sequence
from typing import Final

MAX_LINE: Final = 300
"""Characters of a line that are looked at and shown."""

MAX_LISTED: Final = 20
"""Lines that are shown with one that ends in a bracket."""

MAX_SUMMED: Final = 3
"""Last lines of a program in the summary of a server; its details have all."""

_FRAMES: Final = re.compile(
    r"\s+at \S|\s*https?://|\s*\^+\s*$|\s*File \"|Traceback |Node\.js v"
    r"|note: run with `RUST_BACKTRACE|goroutine \d|exit status \d|\s*[{}\[\]()]+,?\s*$"
    r"|npm (?:ERR!|error)(?: (?:code|path|dest|errno|syscall|command|[45]\d\d)"
    r"| A complete log.*| in:.*)?\s*(?:\S+\s*)?$|\[notice\]"
    r"|See '.* --help'|(?:mise ERROR )?Run (?:with|`)|BEGIN failed--"
)
"""Lines around an error that do not say what it is."""

_TELLING: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"Caused by: |[\s|>-]*(?:Uncaught |Unhandled exception\. |Exception in thread \"[^\"]*\" )?"
        r"(?:\w+[.:$])*(?:[A-Z]\w*(?:Error|Exception|Exit|Fault)|Error)(?: \[\w+\])?(?:: |$)",
        r"npm (?:ERR!|error) |(?:docker|dyld|error|fatal|panic|abort)(?:\[\w+\])?: "
        r"|\s*ERR_[A-Z]+_|\s*[×╰]─?[▶]? ?[^\s─]|thread '.*' panicked",
        r".*(?:: (?:command )?not found|: No such file or directory|Permission denied)$"
        r"|.*\b(?:FATAL|ERROR|CRITICAL|SEVERE)\b",
        r"(?i).*\b(?:error|fatal|fail(?:ed|ure)?|no (?:module|version)|cannot|can't|could not"
        r"|unable|invalid|missing|required|must|refused|denied|unknown"
        r"|not (?:defined|enough|found))\b",
        r"(?i)\s*usage\b",
    )
)
"""What an error looks like, the surest first: exceptions, reports of tools, shells, plain words."""


def readable(lines: Sequence[str]) -> Sequence[str]:
    """Return the last lines for a summary, without those that only surround an error."""
    return [line for line in lines if not _FRAMES.match(line[:MAX_LINE])][-MAX_SUMMED:]


def telling_line(lines: Sequence[str]) -> str:
    """Return the line that says why a program ended; "" if none does.

    Of what npm and docker report, the first line tells most; of exceptions, the last.
    """
    known = [(line[:MAX_LINE].rstrip(), at) for at, line in enumerate(lines)]
    said = [(line, at) for line, at in known if line and not _FRAMES.match(line)]
    for number, pattern in enumerate(_TELLING):
        found = [(line, at) for line, at in said if pattern.match(line)]
        if found:
            line, at = found[0 if number == 1 else -1]
            if line.endswith((":", "[")):  # an exception that lists what is wrong, a panic
                more = lines[at + 1 : at + 2 if line.endswith(":") else at + MAX_LISTED]
                line = " ".join([line, *(one[:MAX_LINE].strip() for one in more)])[:MAX_LINE]
            return line.strip(" |│\t")
    return ""
