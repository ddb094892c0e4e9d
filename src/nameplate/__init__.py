"""Rate an OpenAI-compatible LLM server, from evidence that anyone can recompute."""

__version__ = "0.3.0"
