"""The line that matters in what a program wrote before it ended."""

import re
from collections.abc import Sequence
from typing import Final

MAX_LINE: Final = 300
"""Characters of a line that are looked at and shown."""

MAX_SUMMED: Final = 3
"""Last lines of a program in the summary of a server; its details have all."""

_FRAMES: Final = re.compile(
    r"\s+at \S|\s*\^+\s*$|\s*File \"|Traceback |Node\.js v|note: run with `RUST_BACKTRACE"
    r"|goroutine \d|exit status \d|\s*[{}\[\]()]+,?\s*$|npm (?:ERR!|error)(?: (?:code|path|errno"
    r"|syscall|command|[45]\d\d)| A complete log.*| in:.*)?\s*(?:\S+\s*)?$|\[notice\]"
    r"|See '.* --help'"
)
"""Lines around an error that do not say what it is."""

_TELLING: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"Caused by: |[\s|]*(?:Uncaught |Exception in thread \"[^\"]*\" )?(?:\w+[.:$])*[A-Z]\w*"
        r"(?:Error|Exception|Exit|Fault)(?: \[\w+\])?(?:: |$)",
        r"npm (?:ERR!|error) |(?:docker|error|fatal|panic|abort)(?:\[\w+\])?: |\s*[×╰]─?[▶]? ?\S"
        r"|thread '.*' panicked",
        r".*(?:: (?:command )?not found|: No such file or directory|Permission denied)$"
        r"|.*\b(?:FATAL|ERROR|CRITICAL|SEVERE)\b",
        r"(?i).*\b(?:error|fatal|fail(?:ed|ure)?|no module|cannot|can't|could not|unable|invalid"
        r"|missing|required|refused|denied|unknown|usage)\b",
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
            follows = lines[at + 1][:MAX_LINE].strip() if at + 1 < len(lines) else ""
            return follows if line.endswith(":") and follows else line.strip(" |\t")
    return ""
