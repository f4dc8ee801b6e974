"""Scripts run as a user without privileges: root passes over the permissions of files."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
NOBODY: Final = 65_534

_PREAMBLE: Final = """
import os, sys
if os.geteuid() == 0:
    import tui.engine.keys.key_store, tui.engine.files.preferences, tui.engine.mcp.manager
    import keyring.backends.fail
    os.setgroups([])
    os.setgid({nobody})
    os.setuid({nobody})
"""


def as_somebody(script: str) -> dict[str, Any]:
    """Run a script that prints JSON in a folder of its own, given as its argument.

    Root becomes nobody first, after the imports, for nobody may not read them everywhere.
    """
    folder = Path(tempfile.mkdtemp(prefix="gemdeck-test-"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        completed = subprocess.run(
            [sys.executable, "-c", _PREAMBLE.format(nobody=NOBODY) + script, str(folder)],
            cwd=ROOT,
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert completed.returncode == 0, completed.stderr.decode()
        result: dict[str, Any] = json.loads(completed.stdout)
        return result
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
