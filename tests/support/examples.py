"""How many examples property tests try, and which; a plug-in of pytest.

In CI they are the same in each run, so that a run fails by what was changed alone. By hand they
are new ones; ``pytest --hypothesis-profile=many`` looks longer.
"""

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

ANY_MACHINE = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)

settings.register_profile("ci", ANY_MACHINE, derandomize=True, database=None)
settings.register_profile("here", ANY_MACHINE)
settings.register_profile("many", ANY_MACHINE, max_examples=5_000)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def any_json(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Give all that JSON can say, with these texts in it."""
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=6,
    )
