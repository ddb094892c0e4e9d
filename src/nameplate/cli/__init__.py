"""The command line: text becomes values once, here; everything heavy is imported when it is needed."""
