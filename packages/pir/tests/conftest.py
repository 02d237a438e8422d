"""Makes the helpers next to the tests importable, and keeps property tests short and steady."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("steady", deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
settings.load_profile("steady")
