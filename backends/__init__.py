"""Where a request is answered."""

from .base import Backend, Capabilities, Job

__all__ = ["Backend", "Capabilities", "Job"]
