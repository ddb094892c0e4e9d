"""Prompts of a wanted length, unique or with a stated shared part, and the request bodies that carry them."""
