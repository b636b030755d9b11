"""Constraints while decoding."""
