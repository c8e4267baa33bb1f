"""The table of commands, and the one way out for every error."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from memkura.cli import exits, screen
from memkura.errors import MemkuraError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Each command: the file in this folder and the function in it.
_HOMES = {
    "init": ("keep", "init"),
    "remember": ("keep", "remember"),
    "recall": ("find", "recall"),
    "show": ("find", "show"),
    "list": ("find", "list_memories"),
    "forget": ("keep", "forget"),
    "import": ("transfer", "import_file"),
    "export": ("transfer", "export"),
    "stats": ("health", "stats"),
    "doctor": ("health", "doctor"),
    "maintain": ("upkeep", "maintain"),
    "reindex": ("upkeep", "reindex"),
    "compact": ("upkeep", "compact"),
    "verify": ("health", "verify"),
    "backup": ("upkeep", "backup"),
    "restore": ("upkeep", "restore"),
    "eval": ("measure", "evaluate"),
}


# What click raises when no command was given; before version 8.2 it prints the help itself.
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Commands(click.Group):
    """Commands that are loaded when they are named, and errors that end in one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order in which a newcomer needs them."""
        return list(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """The command of that name."""
        if cmd_name not in _HOMES:
            return None
        module, name = _HOMES[cmd_name]
        command: click.Command = getattr(import_module(f"memkura.cli.{module}"), name)
        return command

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **options: Any,  # noqa: ANN401 - click's
    ) -> NoReturn:
        """Runs the command and exits."""
        options["standalone_mode"] = False
        screen.prepare()
        stdout = sys.stdout
        try:
            code = super().main(args, prog_name, **options)
            sys.stdout.flush()
        except click.ClickException as error:
            code = _refused(error)
        except MemkuraError as error:
            screen.complain(_spoken(str(error)))
            code = exits.code_of(error)
        except (click.Abort, KeyboardInterrupt):
            screen.complain("interrupted")
            code = exits.INTERRUPTED
        except OSError as error:
            code = _system(error)
        except SystemExit:
            # When the reader has gone click puts another stream in place, and exits as if nothing had been found.
            if sys.stdout is stdout:
                raise
            code = _reader_gone()
        except Exception as error:
            if os.environ.get("MEMKURA_TRACEBACK"):
                raise
            screen.complain(f"a fault of ours, please report it: {type(error).__name__}: {error}")
            code = exits.FAULT
        sys.exit(code if isinstance(code, int) else exits.OK)


# What exceptions advise whoever calls from Python, and what it is on the command line.
IN_WORDS_OF_THE_COMMAND = {
    "or raise busy_timeout": "when the other process has written",
    "; or say allow_network=True and let one process at a time use it": "",
    "Name one: reindex(embedder=…)": "Name one with --embedder",
    "needs memory ids, filters or everything=True, and only one of them": (
        "needs an id, --filter or --everything, and only one of them"
    ),
    "Name ids or filters; to empty a context say everything=True": "Give an id, --filter or --everything",
    "Give its dimension (dim=…), or open with embedder=None (--embedder none) and run maintain later": (
        "Give --embedder none, and run memkura maintain when it answers"
    ),
}


def _spoken(said: str) -> str:
    for python, command in IN_WORDS_OF_THE_COMMAND.items():
        said = said.replace(python, command)
    return said


def _refused(error: click.ClickException) -> int:
    if isinstance(error, _HELP):
        screen.aside(error.format_message())
        return exits.BAD_INPUT
    if isinstance(error, click.UsageError) and error.ctx is not None:
        screen.aside(error.ctx.get_usage())
    screen.complain(error.format_message())
    return exits.BAD_INPUT


def _reader_gone() -> int:
    """As in `memkura list | head`; the interpreter must not complain of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.OK


def _system(error: OSError) -> int:
    if error.errno == errno.EPIPE:
        return _reader_gone()
    where = f"{error.filename}: " if error.filename else ""
    screen.complain(f"{where}{error.strerror or error}")
    return exits.BAD_INPUT if isinstance(error, FileNotFoundError | IsADirectoryError) else exits.STORE_TROUBLE


@click.group(
    name="memkura",
    cls=Commands,
    epilog=exits.HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="memkura", message="memkura %(version)s")
def main() -> None:
    """Long-term memory for agents, in a folder of your own.

    The store is named by --store or MEMKURA_STORE, the context by --context or MEMKURA_CONTEXT.
    """
