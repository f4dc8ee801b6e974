"""Draws the pictures of the README: ``python3 screenshots/make.py [FOLDER]``.

With ``--all FOLDER [PATTERN]`` it draws every pane, question and empty state instead, in every
look and size, or those whose names match a pattern such as ``tools-*-80x24``: see `gallery`.
A second run writes the same bytes.
"""

import asyncio
import os
import sys
from pathlib import Path

import click

# Textual reads the environment when it is imported.
os.environ.update(TEXTUAL_ANIMATIONS="none", COLORTERM="truecolor", LANG="C.UTF-8", TZ="UTC")
sys.path.insert(0, str(Path(__file__).parent.parent))

from gallery import draw_all, draw_chosen


def main() -> None:
    """Write the pictures beside this file, or into the folder that is named."""
    words = [word for word in sys.argv[1:] if word != "--all"]
    folder = Path(words[0]) if words else Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    if "--all" in sys.argv:
        drawing = draw_all(folder, words[1] if len(words) > 1 else "*")
    else:
        drawing = draw_chosen(folder)
    for path in asyncio.run(drawing):
        click.echo(path)


if __name__ == "__main__":
    main()
