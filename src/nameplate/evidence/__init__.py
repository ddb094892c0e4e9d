"""The files of one trial: their format, their writer, their reader, their manifest."""
