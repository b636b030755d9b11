"""The pipeline, its vocabulary, its stages and its mouths (SDK, CLI, LangChain)."""
