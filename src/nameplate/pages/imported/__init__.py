"""Pages of results of other tools: their numbers by their definitions, our checks and our verdict beside them."""
