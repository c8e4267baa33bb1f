"""What the command's exit code says."""

from __future__ import annotations

from memkura import errors

OK = 0
NOTHING_FOUND = 1
BAD_INPUT = 2
STORE_TROUBLE = 3
DEGRADED = 4
FAULT = 70
INTERRUPTED = 130

HELP = (
    "Exit codes: 0 done; 1 nothing was found; 2 the command or its input is wrong, nothing was written; "
    "3 the store cannot be used, or is not sound (doctor, verify); 4 done, but something is degraded (doctor, "
    "maintain, reindex); 70 a fault of ours; 130 interrupted."
)


def code_of(error: errors.MemkuraError) -> int:
    """The exit code for one of our exceptions."""
    if isinstance(error, errors.InternalError):
        return FAULT
    if isinstance(error, errors.NotFound):
        return NOTHING_FOUND
    if isinstance(error, errors.InvalidInput | errors.EmbedderError | errors.KeyTaken):
        return BAD_INPUT
    return STORE_TROUBLE
