"""Trials and soaks of ours as reports in the schema that llm-d's benchmark publishes."""
