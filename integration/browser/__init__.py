"""The pages in a real browser, and the evidence that they are made from."""
