"""A soak measured as a stream: windows, fates, parts, and their sum over segments."""
