"""Tests of the page of a comparison."""
