from __future__ import annotations

from hypothesis import settings

settings.register_profile("headrace", deadline=None)  # no test depends on timing
settings.load_profile("headrace")
