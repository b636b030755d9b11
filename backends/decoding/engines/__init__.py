"""Automata of other libraries behind one shape: an engine compiles, a template makes matchers."""
