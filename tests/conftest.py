"""Settings for every test."""

import os

from hypothesis import settings

# A slow machine is no failure. Where a run decides over a change, it is the same run each time.
settings.register_profile("interlingua", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("interlingua")
