"""``python -m memkura``: the command, where its script is not on the path."""

from memkura.cli import main

if __name__ == "__main__":
    main()
