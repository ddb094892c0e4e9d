"""Plates for tests: of known studies, and of hostile and odd values."""
