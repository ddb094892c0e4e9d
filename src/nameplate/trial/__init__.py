"""One trial's life: prompts, flush, readiness, load, drain, measurement, seal."""
