"""Result files of llm-inference-bench: read into our result, and written from it."""
