"""Whether the engine's inner work takes more instructions than it did: a loss that a busy machine's clock hides.

    python benches/instructions.py [--update] [--if-present]

Runs the kernels of `rust/index/benches/kernels.rs` under valgrind and compares what each takes with
`benches/instructions.json`. More than 3 % above it fails. More than 3 % below it fails too, until `--update` has
written down what was won. From run to run a count moves by less than 0.05 %, since hash tables draw their seeds anew.
What was done before, and how it left memory, can move one by 2 %: zeroed memory is free where nothing has been yet.

Counts hold for one compiler and one set of kernels. With others they are printed, and nothing fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_KEPT = _ROOT / "benches" / "instructions.json"
_TOLERANCE = 0.03
# A call in callgrind's file: of which function, how often, and what it took, all that it called included.
_CALL = re.compile(r"^cfn=kernels::counted::(\w+)\ncalls=1 .*\n\S+ (\d+)$", re.MULTILINE)
_UPDATE = "python benches/instructions.py --update"
_NO_VALGRIND = """valgrind is not installed, and without it no instructions are counted. To install it:
    Debian, Ubuntu: apt-get install -y valgrind
    Fedora:         dnf install valgrind
    Arch:           pacman -S valgrind
With --if-present this check is left out where valgrind is missing."""


def output_of(*command: str | Path) -> str:
    """What a program of ours prints; it ends this one when it fails."""
    ended = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - ours
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {ended.returncode}")
    return ended.stdout


def built() -> str:
    """The kernels, built with the features of the whole workspace as every other build is."""
    build = "cargo bench --locked --workspace --bench kernels --no-run --message-format=json-render-diagnostics"
    messages = [json.loads(line) for line in output_of(*build.split()).splitlines()]
    programs = [message["executable"] for message in messages if message.get("executable")]
    assert len(programs) == 1, programs  # noqa: S101 - one bench was asked for
    return str(programs[0])


def counted(valgrind: str, program: str) -> tuple[str, dict[str, int]]:
    """The kernels that the processor was given, and what each counted function took with all that it calls."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "callgrind")
        options = ["--quiet", "--tool=callgrind", "--compress-strings=no", f"--callgrind-out-file={out}"]
        printed = output_of(valgrind, *options, program)
        calls = _CALL.findall(out.read_text(encoding="utf-8"))
    return printed.strip(), dict(sorted((name, int(count)) for name, count in calls))


def verdict(before: int | None, now: int | None) -> str | None:
    """What is wrong with a count, if anything is."""
    if before is None or now is None:
        return "new" if before is None else "gone"
    share = now / before - 1
    if abs(share) <= _TOLERANCE:
        return None
    return "takes more" if share > 0 else "takes less"


def main() -> None:
    """Prints a table, and ends with an error when a count has moved."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--update", action="store_true", help="keep the counts of this run")
    parser.add_argument("--if-present", action="store_true", help="do nothing where valgrind is missing")
    wanted = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print(_NO_VALGRIND, file=sys.stderr)
        sys.exit(0 if wanted.if_present else 1)
    kernels, counts = counted(valgrind, built())
    rustc = output_of("rustc", "--version").strip()
    found = {"rustc": rustc, "kernels": f"{platform.machine()} {kernels}", "instructions": counts}
    if wanted.update:
        _KEPT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    kept = json.loads(_KEPT.read_text(encoding="utf-8"))
    before: dict[str, int] = kept["instructions"]
    print("| kernel | instructions before | now | | |\n|---|---|---|---|---|")
    verdicts = {name: verdict(before.get(name), counts.get(name)) for name in sorted({*before, *counts})}
    for name, wrong in verdicts.items():
        was, now = before.get(name, 0), counts.get(name, 0)
        print(f"| {name} | {was:,} | {now:,} | {now / was - 1 if was else 0:+.2%} | {wrong or ''} |")
    others = [f"{what}: {kept[what]}, here {found[what]}" for what in ("rustc", "kernels") if kept[what] != found[what]]
    if others:
        print(f"The counts before were made with another build, so that nothing fails here ({'; '.join(others)}).")
    elif any(verdicts.values()):
        sys.exit(f"Counts moved by more than {_TOLERANCE:.0%}. If that is meant, keep them: {_UPDATE}")


if __name__ == "__main__":
    main()
