"""Studies: generators that decide which trial comes next and never carry one out."""
