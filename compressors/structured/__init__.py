"""Texts with a structure that must survive: JSON by key, logs, tool schemas."""
