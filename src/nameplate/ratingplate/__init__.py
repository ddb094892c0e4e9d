"""The rating plate: what a machine was rated for, as a drawing, a picture, Markdown and plain text."""
