"""Puts this folder on the path, for the helpers that tests share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
