"""`python -m feelgood`."""

from feelgood.cli import main

if __name__ == "__main__":
    main()
