"""``python3 -m tests.support.lowest``: prints pip's constraints for the lowest versions allowed.

It reads them from `pyproject.toml`, for the package itself and for the extra ``test``, so that a
run under them tells whether the lower bounds are true.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[2] / "pyproject.toml"

BOUND: Final = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?\s*(?:>=|==|~=)\s*(?P<version>[\w.]+)")
"""A requirement that names its lowest version first."""


def lowest(requirements: list[str]) -> list[str]:
    """Pin each requirement to the lowest version that it allows.

    Raises:
        ValueError: If a requirement has no lower bound.
    """
    pins = []
    for requirement in requirements:
        found = BOUND.match(requirement)
        if found is None:
            raise ValueError(f"{requirement} has no lower bound")
        pins.append(f"{found['name']}=={found['version']}")
    return pins


def main() -> int:
    """Print the constraints."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    requirements = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    print("\n".join(lowest(requirements)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
