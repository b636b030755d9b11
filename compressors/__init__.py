"""Fewer input tokens: score, select, render; and rerankers for documents."""
