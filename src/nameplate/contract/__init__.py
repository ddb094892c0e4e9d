"""What is promised and asked: frozen, typed values, read once at the edge and never changed after."""
