"""Simulate a continuous-batching LLM server: a pure engine, its HTTP face, and a metronome for benchmarks."""
