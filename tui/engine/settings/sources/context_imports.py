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
"""Words of one file of context that are looked up, those of imported files among them."""

MAX_FILE: Final = 100_000
"""Largest file that is imported, in bytes."""

_CODE: Final = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)|`[^`\n]*`")
_IMPORT: Final = re.compile(r"(?<!\S)@([\w./][^\s`]*\.md)(?=[\s.,;:)]|\Z)")


class Imports:
    """The imports of one file of context.

    Args:
        inside: The folder that no import leads out of.
    """

    def __init__(self, inside: Path) -> None:
        self._inside = Path(os.path.normpath(inside)), Path(os.path.realpath(inside))
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
        if not self._left:
            return word
        self._left -= 1
        try:
            target = self._resolved(path.parent / word[1:])
            if not os.path.isfile(target):  # noqa: PTH113 - that of a path can raise
                return word
            self._check(target, chain)
            text = read_regular(target, MAX_FILE).decode("utf-8-sig", "replace").strip()
        except ValueError:
            return word
        except (OSError, UnfitFileError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return f"<!-- {word} is not imported: {reason} -->"
        inner = self.put_in(text, target, chain)
        return f"<!-- Imported from {word[1:]} -->\n{inner}\n<!-- End of {word[1:]} -->"

    def _resolved(self, path: Path) -> Path:
        """Return the real path; what lies outside by its name is not even looked up."""
        named = Path(os.path.normpath(path))
        if any(named.is_relative_to(folder) for folder in self._inside):
            real = Path(os.path.realpath(named))
            if real.is_relative_to(self._inside[-1]):
                return real
        raise UnfitFileError("it lies outside the folder")

    def _check(self, target: Path, chain: tuple[str, ...]) -> None:
        if str(target) in chain:
            raise UnfitFileError("it imports itself")
        if len(chain) > MAX_DEPTH:
            raise UnfitFileError("it is nested too deep")
