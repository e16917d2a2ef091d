"""``python -m sim``: the command ``fairwall``, where its script is not on the path."""

from sim.cli.start import main

if __name__ == "__main__":
    main()
