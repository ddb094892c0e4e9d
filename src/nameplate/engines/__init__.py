"""One adapter a server kind: identity, state from its metrics page, limits, flush, abort, tokenise."""
