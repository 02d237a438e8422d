"""Every program captured in these tests is verified after each pass."""

import os

os.environ["ARGOSY_VERIFY"] = "1"
