"""How many examples property tests try, and which.

In CI they are few and the same in each run, so that a run fails by what was changed alone. By
hand there are 100 new ones; ``pytest --hypothesis-profile=many`` looks longer.
"""

import os

from hypothesis import HealthCheck, settings

ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("ci", ANY_MACHINE, derandomize=True, max_examples=25, database=None)
settings.register_profile("here", ANY_MACHINE, max_examples=100)
settings.register_profile("many", ANY_MACHINE, max_examples=5_000)
settings.load_profile("ci" if os.environ.get("CI") else "here")
