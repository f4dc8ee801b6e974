"""``python3 -m tests.benchmarks``: runs all benchmarks, alone so that nothing disturbs them.

Arguments go to pytest.
"""

import os
import sys
from pathlib import Path

from tests.__main__ import main
from tests.support.frozen import SHIPPED

if __name__ == "__main__":
    os.environ[SHIPPED] = "1"
    sys.exit(main([str(Path(__file__).parent), *sys.argv[1:]], default=()))
