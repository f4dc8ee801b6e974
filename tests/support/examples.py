"""How many examples property tests try, and which; a plug-in of pytest.

In CI they are the same in each run, so that a run fails by what was changed alone. By hand they
are new ones; ``pytest --hypothesis-profile=many`` looks longer.
"""

import os

from hypothesis import HealthCheck, settings

ANY_MACHINE = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)

settings.register_profile("ci", ANY_MACHINE, derandomize=True, database=None)
settings.register_profile("here", ANY_MACHINE)
settings.register_profile("many", ANY_MACHINE, max_examples=5_000)
settings.load_profile("ci" if os.environ.get("CI") else "here")
