"""From evidence to numbers: pure functions of rows, timelines and server samples."""
