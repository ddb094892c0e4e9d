"""`python -m nameplate`: the same command."""

from nameplate.cli.main import main

main()
