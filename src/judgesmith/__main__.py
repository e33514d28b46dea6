"""`python -m judgesmith`, the command line: what starts several processes wants a module's name."""

from .cli.main import main

if __name__ == "__main__":
    main()
