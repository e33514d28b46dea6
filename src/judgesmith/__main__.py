"""`python -m judgesmith`, the command line."""

from judgesmith.cli.main import main

if __name__ == "__main__":
    main()
