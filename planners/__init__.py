"""Fewer sequential output tokens: plan the answer, then write its parts at the same time."""
