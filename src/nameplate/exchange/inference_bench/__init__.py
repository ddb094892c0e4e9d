"""Result files of llm-inference-bench: read, judged cell by cell by our rules, and written."""
