"""The rule for names of models, wherever one is given."""

import re
from typing import Final

_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}")


def check_model_name(name: str) -> str:
    """Give the name of a model back if it can stand in a request's path.

    Raises:
        ValueError: If it cannot.
    """
    if not _MODEL_NAME.fullmatch(name) or ".." in name or "//" in name:
        raise ValueError("must be the name of a model, such as gemini-3.8-flash")
    return name
