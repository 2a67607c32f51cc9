"""What several tests share."""

from small_results import ran

__all__ = ["ran"]
