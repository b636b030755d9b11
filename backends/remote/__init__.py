"""Constraints on other people's servers: which field, does it hold, and what when it does not."""
