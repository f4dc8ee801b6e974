"""Makes the data classes of gemdeck really frozen, as each says it is; a plug-in of pytest.

`tui.model.frozen` leaves that to mypy, since it saves time at the start. Here the standard library
makes them, so that setting a field fails. It has to be imported before anything of `tui` that
makes such a class, and does nothing where `SHIPPED` is set: what is measured is what users run.
"""

import dataclasses
import os
from functools import partial
from typing import Final

from tui.model import frozen

SHIPPED: Final = "TESTS_SHIPPED_DATA"
"""The environment variable that keeps the classes as users have them."""

if SHIPPED not in os.environ:
    frozen.make = partial(dataclasses.dataclass, frozen=True, slots=True)
