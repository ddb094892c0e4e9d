"""Property tests without a deadline: how long an example takes on a busy machine says nothing of the code."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
