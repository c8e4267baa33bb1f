"""The ``memkura`` command.

Exit codes: 0 done; 1 nothing was found; 2 the command or its input is wrong, and nothing was written; 3 the store
cannot be used; 4 done, but something is degraded (``doctor``, ``maintain``, ``reindex``); 70 a fault of ours;
130 interrupted.

Each command's file is loaded when the command is named; help is printed without the engine.
"""

from memkura.cli.commands import main

__all__ = ["main"]
