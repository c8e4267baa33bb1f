"""Time: expiry is an instant in every read, and no reading of the clock breaks an order or a score."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import each_leg, files_with, ids
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from memkura import Engine

TOKYO = timezone(timedelta(hours=9))
END = datetime(2030, 1, 16, tzinfo=TOKYO)
INSTANT = datetime(2030, 1, 15, 15, tzinfo=UTC)
SAME_INSTANT: list[Any] = [
    END,
    INSTANT,
    "2030-01-16T00:00:00+09:00",
    "2030-01-15T15:00:00Z",
    "2030-01-15T07:00:00-08:00",
    datetime(2030, 1, 15, 20, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
]


def _reads(engine: Engine, memory_id: str) -> dict[str, bool]:
    """Which reads show the memory."""
    found = {leg: memory_id in ids(engine.recall("c", "the offer", legs=[leg])) for leg in ("text", "vector", "key")}
    return {
        **found,
        "fused": memory_id in ids(engine.recall("c", "the offer")),
        "superseded": memory_id in ids(engine.recall("c", "the offer", include_superseded=True)),
        "get": engine.get("c", memory_id) is not None,
        "get by key": engine.get("c", key="the offer") is not None,
        "list": memory_id in ids(engine.list("c")),
        "count": engine.count("c") == 1,
    }


@pytest.mark.parametrize("expires_at", SAME_INSTANT, ids=str)
def test_expiry_is_an_instant_in_every_read(
    engine: Engine, clock: FrozenClock, store_path: Path, expires_at: Any
) -> None:
    """A second before its end a memory is in every read; at its end it is in none, though nothing swept it."""
    memory_id = engine.remember("c", "the offer ends soon", key="the offer", expires_at=expires_at)
    memory = engine.get("c", memory_id)
    assert memory is not None
    assert memory.expires_at == INSTANT
    clock.set(INSTANT - timedelta(seconds=1))
    assert set(_reads(engine, memory_id).values()) == {True}
    clock.set(INSTANT - timedelta(microseconds=1))
    assert set(_reads(engine, memory_id).values()) == {True}
    clock.set(INSTANT)
    assert set(_reads(engine, memory_id).values()) == {False}
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=clock) as again:
        assert set(_reads(again, memory_id).values()) == {False}
    with pytest.raises(errors.NotFound):
        engine.update_memory("c", memory_id, importance=0.9)


def test_expiry_holds_after_compacting_and_for_history_reads(engine: Engine, clock: FrozenClock) -> None:
    """What expired stays out when files are tidied, and a key whose memory expired can be written again."""
    memory_id = engine.remember("c", "the offer ends soon", key="the offer", expires_at=INSTANT)
    clock.set(INSTANT + timedelta(seconds=1))
    engine.compact()
    engine.maintain()
    assert set(_reads(engine, memory_id).values()) == {False}
    engine.remember("c", "the offer was renewed", key="the offer")
    memory = engine.get("c", key="the offer")
    assert memory is not None
    assert (memory.summary, memory.expires_at, engine.count("c")) == ("the offer was renewed", None, 1)


def test_expired_row_is_in_no_figure(engine: Engine, clock: FrozenClock) -> None:
    """`stats` counts what a recall may return, in the store and in the context."""
    engine.remember("c", "the offer ends soon", expires_at=INSTANT)
    engine.remember("c", "the shop stays")
    assert (engine.stats().memories, engine.stats("c").memories) == (2, 2)
    clock.set(INSTANT)
    assert (engine.stats().memories, engine.stats("c").memories) == (1, 1)
    assert (engine.stats().more["expired"], engine.stats("c").more["expired"]) == (1, 1)


@pytest.mark.parametrize("purge", [False, True])
def test_expired_row_can_be_forgotten(
    engine: Engine,
    clock: FrozenClock,
    store_path: Path,
    purge: bool,  # noqa: FBT001
) -> None:
    """What no read shows is still there to be removed: by filters, by its id, and with everything."""
    made = [
        engine.remember("c", f"the offer zulu991{number}", tags=["offer"], expires_at=INSTANT) for number in range(3)
    ]
    kept = engine.remember("c", "the shop stays")
    clock.set(INSTANT)
    assert engine.forget("c", filters={"expires_at": {"lt": INSTANT}}, purge=purge) == []
    assert engine.forget("c", made[0], purge=purge) == made[:1]
    assert engine.forget("c", filters={"expires_at": {"lte": INSTANT}}, purge=purge) == made[1:]
    assert ids(engine.list("c")) == [kept]
    assert engine.stats().more["expired"] == 0
    engine.compact()
    assert files_with(store_path, b"zulu991") == []
    assert engine.forget("c", everything=True) == [kept]


@pytest.mark.parametrize("sealed", [False, True])
def test_compacting_removes_what_has_expired(
    engine: Engine,
    clock: FrozenClock,
    store_path: Path,
    sealed: bool,  # noqa: FBT001
) -> None:
    """Its text, its history and its words are in no file, replaced or not; what has not expired stays."""
    gone = engine.remember("c", "the offer is zulu991", tags=["zulu992"], expires_at=INSTANT)
    engine.update_memory("c", gone, summary="the offer is zulu993")
    replaced = engine.remember("c", "the price is zulu994", expires_at=INSTANT)
    kept = engine.remember("c", "the price is forty", supersedes=replaced, expires_at=INSTANT + timedelta(seconds=1))
    if sealed:
        engine.compact()
    clock.set(INSTANT)
    assert engine.maintain()["embedded"] == 0
    assert len(engine.history("c", gone)) == 2
    engine.compact()
    assert files_with(store_path, b"zulu99") == []
    for memory_id in (gone, replaced):
        assert [state["action"] for state in engine.history("c", memory_id)] == ["purge"]
    assert ids(engine.recall("c", "price", include_superseded=True)) == [kept]
    assert engine.stats().more["expired"] == 0
    assert engine.doctor().is_sound


def test_key_of_an_expired_memory_is_free(store_path: Path, clock: FrozenClock) -> None:
    """I10: what takes it is another memory, which has none of the old one's text in its history."""
    with memkura.open(store_path, embedder=None, clock=clock) as engine:
        old = engine.remember("c", "kanpo4711 is the code", key="code", expires_at=clock() + timedelta(hours=1))
        clock.advance(timedelta(hours=2))
        new = engine.remember("c", "there is no code", key="code")
        assert (new.created, new == old) == (True, False)
        assert [state["summary"] for state in engine.history("c", new)] == ["there is no code"]
        engine.compact()
        assert [memory.summary for memory in engine.list("c")] == ["there is no code"]
    assert files_with(store_path, b"kanpo4711") == []


def test_expired_text_goes_to_no_embedder(store_path: Path, clock: FrozenClock) -> None:
    """Neither to fill in what waits for a vector, nor to embed all anew; and both count the same."""
    shown: list[str] = []

    class Watching(ToyEmbedder):
        def embed(self, texts: Sequence[str], *, kind: Any) -> Any:
            shown.extend(texts)
            return super().embed(texts, kind=kind)

    with memkura.open(store_path, embedder=None, clock=clock) as engine:
        engine.remember("c", "the offer is zulu991", expires_at=INSTANT)
        engine.remember("c", "the shop stays")
    clock.set(INSTANT)
    with memkura.open(store_path, embedder=Watching(), clock=clock) as engine:
        assert engine.stats().unembedded == 1
        assert engine.maintain()["embedded"] == 1
        assert (engine.stats().unembedded, shown) == (0, ["the shop stays"])
        report = engine.reindex(Watching(name="other"))
        assert (report.state, report.total, report.done) == ("complete", 1, 1)
        assert engine.stats().unembedded == 0
        assert shown == ["the shop stays"] * 2


@pytest.mark.parametrize("before", [timedelta(0), timedelta(microseconds=1), timedelta(days=400)])
def test_end_that_has_passed_is_refused(engine: Engine, clock: FrozenClock, before: timedelta) -> None:
    """A memory that no read would ever show is a mistake, told when it is made; nothing is written."""
    with pytest.raises(errors.InvalidInput) as caught:
        engine.remember("c", "the offer", expires_at=clock() - before)
    assert caught.value.field == "expires_at"
    rows: list[dict[str, Any]]
    rows = [{"context_id": "c", "summary": "tea"}, {"context_id": "c", "summary": "x", "expires_at": clock() - before}]
    with pytest.raises(errors.InvalidInput) as caught:
        engine.remember_many(rows)
    assert caught.value.field == "[1].expires_at"
    assert engine.contexts() == []
    end = clock() + timedelta(minutes=1)
    first = engine.remember("c", "the offer", expires_at=end, idempotency_key="once")
    clock.set(end)
    assert engine.remember("c", "the offer", expires_at=end, idempotency_key="once") == first


@pytest.mark.parametrize("as_own", [False, True])
def test_row_that_has_expired_is_left_out_of_an_import(
    tmp_path: Path,
    engine: Engine,
    clock: FrozenClock,
    as_own: bool,  # noqa: FBT001
) -> None:
    """It would never be shown, so it does not come in; and it is counted."""
    engine.remember("c", "the offer", expires_at=INSTANT)
    engine.remember("c", "the shop stays")
    engine.export(tmp_path / "rows.jsonl")
    clock.set(INSTANT)
    with memkura.open(tmp_path / "other.memkura", embedder=None, clock=clock) as other:
        report = other.import_file(tmp_path / "rows.jsonl", as_own=as_own)
        assert (report.rows, report.added, report.known, report.left_out) == (2, 1, 0, 1)
        assert other.stats().more["expired"] == 0


def test_expiry_can_be_set_moved_and_cleared(engine: Engine, clock: FrozenClock) -> None:
    """An update moves the end of a memory, or takes it away."""
    moved, cleared = (engine.remember("c", f"offer {number}", expires_at=INSTANT) for number in range(2))
    engine.update_memory("c", moved, expires_at=INSTANT + timedelta(days=1))
    engine.update_memory("c", cleared, expires_at=None)
    clock.set(INSTANT)
    assert set(ids(engine.list("c"))) == {moved, cleared}
    clock.set(INSTANT + timedelta(days=1))
    assert ids(engine.recall("c", "offer")) == [cleared]


@each_leg
def test_expired_rows_take_no_place_in_an_answer(
    engine: Engine, clock: FrozenClock, legs: Sequence[str] | None
) -> None:
    """With most of the best rows expired, k still brings k of those that live."""
    for number in range(50):
        engine.remember("c", f"the offer {number}", expires_at=INSTANT)
    alive = {engine.remember("c", f"the offer and other words {number}") for number in range(5)}
    clock.set(INSTANT)
    assert set(ids(engine.recall("c", "the offer", k=5, legs=legs))) == alive


class Zone(tzinfo):
    """Somebody's own, which may answer with anything."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def utcoffset(self, _: datetime | None) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def dst(self, _: datetime | None) -> None:
        return None

    def tzname(self, _: datetime | None) -> str:
        return "odd"


ODD_ZONES = ["an hour", 1, timedelta(days=2), ValueError("no such zone")]


@pytest.mark.parametrize("answer", ODD_ZONES, ids=repr)
def test_zone_that_names_no_offset_is_refused_by_the_field(engine: Engine, answer: object) -> None:
    """Wherever a time is taken, the clock included."""
    odd = datetime(2030, 1, 16, tzinfo=Zone(answer))
    verbs: dict[str, Callable[[], object]] = {
        "event_time": lambda: engine.remember("c", "the offer", event_time=odd),
        "expires_at": lambda: engine.remember("c", "the offer", expires_at=odd),
        "as_of": lambda: engine.recall("c", "the offer", as_of=odd),
        "filters.event_time": lambda: engine.count("c", filters={"event_time": {"gte": odd}}),
        "clock": lambda: memkura.open(":memory:", embedder=None, clock=lambda: odd),
    }
    for field, verb in verbs.items():
        with pytest.raises(errors.InvalidInput, match="names no instant") as caught:
            verb()
        assert str(caught.value.field).startswith(field)


@pytest.mark.parametrize("field", ["expires_at", "event_time"])
@pytest.mark.parametrize(
    "value",
    [
        datetime(2030, 1, 16),  # noqa: DTZ001 - that is the point
        "2030-01-16T00:00:00",
        "2030-01-16",
        "tomorrow",
        "",
        1_900_000_000,
        1.5,
        INSTANT.date(),
        "2030-02-30T00:00:00Z",
        "99999-01-01T00:00:00Z",
    ],
    ids=repr,
)
def test_time_that_names_no_instant_is_refused(engine: Engine, field: str, value: Any) -> None:
    """A time without an offset, a date or a number is refused by name; nothing is written."""
    with pytest.raises(errors.InvalidInput) as caught:
        engine.remember("c", "the offer", **{field: value})
    assert caught.value.field == field
    assert engine.count("c") == 0


ZONED = """
import sys, time, memkura
from datetime import datetime, timedelta, timezone
from memkura.testing import FrozenClock
clock = FrozenClock(datetime(2030, 1, 15, 14, 59, 59, tzinfo=timezone.utc))
with memkura.open(sys.argv[1], embedder=None, clock=clock) as engine:
    row = engine.remember("c", "the offer", expires_at="2030-01-16T00:00:00+09:00",
                          event_time=datetime(2030, 3, 10, 2, 30, tzinfo=timezone(timedelta(hours=-8))))
    memory = engine.get("c", row)
    print(memory.expires_at.isoformat(), memory.event_time.isoformat(), memory.created_at.isoformat())
    print(engine.count("c", filters={"event_time": {"gte": "2030-03-10T10:30:00Z"}}), engine.count("c"))
    clock.advance(1)
    print(engine.count("c"), list(engine.recall("c", "offer")))
"""


def test_results_do_not_depend_on_the_process_time_zone(tmp_path: Path) -> None:
    """The same program gives the same answers in Greenwich, Tokyo and Los Angeles."""
    answers = set()
    for zone in ("UTC", "Asia/Tokyo", "America/Los_Angeles"):
        command = [sys.executable, "-c", ZONED, str(tmp_path / zone.replace("/", "-"))]
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, env={"TZ": zone, "PATH": ""}
        )
        answers.add(child.stdout)
    assert len(answers) == 1
    assert answers.pop().splitlines()[1:] == ["1 1", "0 []"]


AHEAD = [10, 30, 3650]


@pytest.mark.parametrize("days", AHEAD)
@pytest.mark.parametrize("how", ["clock", "event_time"])
@pytest.mark.parametrize("freshness", [None, "linear", "exponential"])
def test_rows_from_the_future_are_as_fresh_as_new_ones(
    store_path: Path, days: int, how: str, freshness: str | None
) -> None:
    """A time ahead of the clock gives exactly the freshness of now: no bonus, no NaN, nothing negative."""
    clock = FrozenClock()
    ahead = clock() + timedelta(days=days)
    if how == "clock":
        wrong = FrozenClock(ahead)
        with memkura.open(store_path, embedder=ToyEmbedder(), clock=wrong) as engine:
            rows = [engine.remember("c", "the very same tea")]
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=clock) as engine:
        if how == "event_time":
            rows = [engine.remember("c", "the very same tea", event_time=ahead)]
        rows.append(engine.remember("c", "the very same tea"))
        hits = engine.recall("c", "the very same tea", explain=True, freshness=freshness)
        assert set(ids(hits)) == set(rows)
        assert [hit.explanation["freshness_factor"] for hit in hits] == [1.0, 1.0]
        assert hits[0].score == hits[1].score
        assert all(math.isfinite(hit.score) and hit.score >= 0 for hit in hits)


@pytest.mark.parametrize("days", [0, 1, 50, 99, 100, 101, 10_000, 100_000])
@pytest.mark.parametrize("freshness", ["linear", "exponential"])
@pytest.mark.parametrize("decay_rate", [0.0, 0.01, 0.5, 1.0])
def test_age_never_raises_or_breaks_a_score(
    engine: Engine, clock: FrozenClock, days: int, freshness: str, decay_rate: float
) -> None:
    """However old, the factor stays within 0 and 1, and the score between 0 and the undecayed one."""
    engine.remember("c", "tea", decay_rate=decay_rate)
    (new,) = engine.recall("c", "tea", explain=True, freshness=freshness)
    clock.advance(timedelta(days=days))
    (old,) = engine.recall("c", "tea", explain=True, freshness=freshness)
    assert 0.0 <= old.explanation["freshness_factor"] <= 1.0
    assert 0.0 <= old.score <= new.score
    if days == 0 or decay_rate == 0.0:
        assert old.score == new.score


def test_writes_are_right_after_the_clock_steps_back(engine: Engine, clock: FrozenClock) -> None:
    """An hour's step back changes no outcome: the last update holds, what was forgotten stays so, order is kept."""
    first = engine.remember("c", "the first")
    second = engine.remember("c", "the second")
    clock.advance(-3600)
    engine.update_memory("c", first, summary="the first, changed")
    third = engine.remember("c", "the third")
    engine.forget("c", second)
    assert ids(engine.list("c")) == [first, third]
    memory = engine.get("c", first)
    assert memory is not None
    assert memory.summary == "the first, changed"
    assert [revision["summary"] for revision in engine.history("c", first)] == ["the first", "the first, changed"]
    assert first < second < third
    assert ids(engine.recall("c", "second")) != [second]


@pytest.mark.parametrize("reopen", [False, True], ids=["same handle", "reopened"])
def test_rows_of_a_clock_that_stepped_back_survive_reopening(
    engine: Engine,
    clock: FrozenClock,
    store_path: Path,
    reopen: bool,  # noqa: FBT001
) -> None:
    """Order comes from a sequence: after a step back, newer writes are newer, here and in the next process."""
    row = engine.remember("c", "version 1", key="k")
    clock.advance(-3600)
    if reopen:
        engine.close()
        engine = memkura.open(store_path, embedder=ToyEmbedder(), clock=clock)  # noqa: PLW2901, RUF100
    engine.remember("c", "version 2", key="k")
    engine.remember("c", "version 3", key="k")
    memory = engine.get("c", key="k")
    assert memory is not None
    assert (memory.memory_id, memory.summary, memory.version) == (row, "version 3", 3)
    history = engine.history("c", row)
    assert [revision["summary"] for revision in history] == ["version 1", "version 2", "version 3"]
    engine.close()


def test_row_is_gone_at_the_latest_its_lifetime_after_a_step_back(engine: Engine, clock: FrozenClock) -> None:
    """A step back does not lengthen a life: a row with a minute to live is gone a minute after the step."""
    row = engine.remember("c", "the offer", expires_at=clock() + timedelta(minutes=1))
    clock.advance(-3600)
    assert ids(engine.recall("c", "the offer")) == [row]
    clock.advance(60)
    assert engine.get("c", row) is None
    assert ids(engine.recall("c", "the offer")) == []
    assert engine.count("c") == 0


def test_expired_row_does_not_come_back_when_the_clock_steps_back(engine: Engine, clock: FrozenClock) -> None:
    """What one read found expired, no later read of the handle shows."""
    row = engine.remember("c", "the offer", expires_at=clock() + timedelta(minutes=1))
    clock.advance(61)
    assert engine.get("c", row) is None
    clock.advance(-3600)
    assert engine.get("c", row) is None
    assert engine.count("c") == 0


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_extreme_years_are_kept(engine: Engine, year: int) -> None:
    """Any instant that a datetime can name comes back and can be filtered by."""
    when = datetime(year, 6, 1, 12, 30, 15, 123456, tzinfo=UTC)
    row = engine.remember("c", "the offer", event_time=when)
    memory = engine.get("c", row)
    assert memory is not None
    assert memory.event_time == when
    assert engine.count("c", filters={"event_time": when}) == 1
    assert engine.count("c", filters={"event_time": {"gt": when}}) == 0
    (hit,) = engine.recall("c", "offer")
    assert math.isfinite(hit.score)


def test_steps_back_that_are_mended_leave_no_trace(engine: Engine, clock: FrozenClock) -> None:
    """However often, and however far."""
    row = engine.remember("c", "the offer", expires_at=clock() + timedelta(hours=5))
    for hours in (1, 1, 1, 1, 1, 1, 500_000):
        for step in (-hours, hours):
            clock.advance(3600 * step)
            assert engine.count("c") == 1
    new = engine.remember("c", "the next offer")
    memory = engine.get("c", new)
    assert memory is not None
    assert memory.created_at == clock()
    assert set(ids(engine.recall("c", "offer", as_of=clock()))) == {row, new}
