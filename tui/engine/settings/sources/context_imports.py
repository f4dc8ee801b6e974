"""Imports in files of context: ``@docs/style.md`` stands for that file, as in gemini-cli.

What is in code is no import, and neither is a word that names no Markdown file.
"""

import os
import re
from pathlib import Path
from typing import Final

from tui.engine.files.atomic import UnfitFileError, read_regular

MAX_DEPTH: Final = 5
"""Files that are imported within each other."""

MAX_IMPORTS: Final = 50
"""Imports of one file of context, those of imported files among them."""

MAX_FILE: Final = 100_000
"""Largest file that is imported, in bytes."""

_CODE: Final = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)|`[^`\n]*`")
_IMPORT: Final = re.compile(r"(?<!\S)@([\w./][^\s`]*\.md)(?=[\s.,;:)]|\Z)")


class Imports:
    """The imports of one file of context.

    Args:
        inside: The real path of the folder that no import leads out of.
    """

    def __init__(self, inside: Path) -> None:
        self._inside = inside
        self._left = MAX_IMPORTS

    def put_in(self, text: str, path: Path, chain: tuple[str, ...] = ()) -> str:
        """Return the text of a file with what it imports in place. Blocks.

        Args:
            text: The text.
            path: The file.
            chain: The real paths of the files that import it.
        """
        chain = (*chain, os.path.realpath(path))
        done, at = [], 0
        for code in _CODE.finditer(text):
            done += [self._outside_code(text[at : code.start()], path, chain), code[0]]
            at = code.end()
        return "".join((*done, self._outside_code(text[at:], path, chain)))

    def _outside_code(self, text: str, path: Path, chain: tuple[str, ...]) -> str:
        return _IMPORT.sub(lambda found: self._imported(found[0], path, chain), text)

    def _imported(self, word: str, path: Path, chain: tuple[str, ...]) -> str:
        """Return what stands for a word with ``@``: a file, why it is left out, or the word."""
        target = Path(os.path.realpath(path.parent / word[1:]))
        if not target.is_file():
            return word
        if reason := self._refusal(target, chain):
            return f"<!-- {word} is not imported: {reason} -->"
        self._left -= 1
        try:
            text = read_regular(target, MAX_FILE).decode("utf-8-sig", "replace").strip()
        except (OSError, UnfitFileError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return f"<!-- {word} is not imported: {reason} -->"
        inner = self.put_in(text, target, chain)
        return f"<!-- Imported from {word[1:]} -->\n{inner}\n<!-- End of {word[1:]} -->"

    def _refusal(self, target: Path, chain: tuple[str, ...]) -> str:
        if not target.is_relative_to(self._inside):
            return "it lies outside the folder"
        if str(target) in chain:
            return "it imports itself"
        if len(chain) > MAX_DEPTH or not self._left:
            return "there are too many imports"
        return ""
