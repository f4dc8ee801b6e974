import logging
import stat
from collections.abc import Iterator

import pytest

from tui.engine import logs
from tui.engine.paths import log_dir


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Put the root logger back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def test_every_log_file_is_private_also_after_a_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_BYTES", 200)
    logs.log_to_file()
    for number in range(10):
        logging.getLogger("some").warning("line %s of many", number)
    files = list(log_dir().iterdir())
    assert len(files) > 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert "line 9 of many" in (log_dir() / logs.LOG_NAME).read_text()
