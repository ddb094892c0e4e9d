"""Named checks that a trial or a study is what it claims to be, from its evidence alone."""
