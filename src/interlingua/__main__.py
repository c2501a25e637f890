"""`python -m interlingua`: the command line."""

from interlingua.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
