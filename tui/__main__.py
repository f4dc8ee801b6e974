"""``python -m tui`` is the ``gemdeck`` command."""

from tui.cli import main

if __name__ == "__main__":
    main()
