"""What holds for all tests."""

import os

from hypothesis import settings

# No deadlines: how fast an example runs says something about the machine, not about the code.
# Where nobody can look at a new failure at once, the examples are the same in every run.
settings.register_profile("berth", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("berth")
