"""Does what ``python -m tui`` does, and starts the demo's servers with the Python named first.

It runs as ``python -P deck.py PYTHON ARGUMENT…``.
"""

import runpy
import sys

sys.executable = sys.argv.pop(1)
sys.path[0:0] = [""]
runpy.run_module("tui", run_name="__main__", alter_sys=True)
