"""The rules: a trial's gates and SLOs, a level, a boundary. Studies decide by them and `verify` checks by them."""
