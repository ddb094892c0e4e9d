"""The page of a speed matrix: heat tables, curves, every measurement, and what they rest on."""
