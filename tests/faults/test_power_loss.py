"""Loss of power at any moment: the folder is rebuilt with what had been synced by then, or a random part of the rest.

What was acknowledged before that moment is there, whole, and found by id and by both legs.
"""

from __future__ import annotations

import copy
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from children import KILLED, TIMES, Nursery
from disk import FAILED, LISTING, Disk, Event, File, events
from oracle import Ledger, check, check_file, check_rebuilt
from shim import Manner, built_shim
from writing import opened, write

from memkura import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

RUNS = 3 * TIMES
# Of each run, beside one for every acknowledgement.
STRICT_IMAGES = 20
RANDOM_IMAGES = 40
FULL_CHECK_EVERY = 12

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(built_shim(tmp_path_factory.mktemp("shim"))) as opened_nursery:
        yield opened_nursery


class Marks:
    """What each writer of a child said of its operations, in the order in which they began."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}

    def follow(self, happened: Iterable[Event]) -> None:
        for event in happened:
            writer, bar, line = event.path.partition("|")
            if event.kind == "k" and bar:
                self.lines.setdefault(writer, []).append(line)

    def tell(self, ledger: Ledger) -> None:
        for lines in self.lines.values():
            ledger.read(lines)


class Recording:
    """What a child did to the files in a folder, and what the folder held before it."""

    def __init__(self, nursery: Nursery, tmp_path: Path, seed: str, *, is_new: bool = False, **options: Any) -> None:
        self.nursery = nursery
        self.folder = tmp_path / "disk"
        self.folder.mkdir()
        self.images = tmp_path / "images"
        self.images.mkdir()
        self.before = Ledger()
        if not is_new:
            journal = tmp_path / "before.journal"
            write(str(self.folder / "agent.memkura"), str(journal), seed, operations=12, verbs="rruc")
            self.before.read(journal.read_text().splitlines())
        self.disk = Disk(self.folder)
        self.log = tmp_path / "log"
        self.events: list[Event] = []
        self.made = 0
        self.status = self.record(seed, **options)

    def record(self, seed: str, **options: Any) -> int:
        """Lets a child work, by default for 60 operations, and returns how it ended. Once more goes on from there."""
        ledger = copy.deepcopy(self.before)
        marks = Marks()
        marks.follow(self.events)
        marks.tell(ledger)
        status = self.nursery.run("shim.record", str(self.folder), str(self.log), seed, ledger.known(), **options)
        self.events = list(events(self.log.read_bytes()))
        return status

    def moments(self, chance: random.Random, share: float) -> dict[int, list[random.Random | None]]:
        """After which events power is lost, and what is left each time: what was synced, or some of the rest."""
        last = next(at for at, event in enumerate(self.events) if event.path == "end")
        moments: dict[int, list[random.Random | None]] = {}
        for at, event in enumerate(self.events[:last]):
            if event.kind == "k" and "|done" in event.path and chance.random() < share:
                moments.setdefault(at, []).append(None)
        for _ in range(round(STRICT_IMAGES * share)):
            moments.setdefault(chance.randrange(last), []).append(None)
        for _ in range(round(RANDOM_IMAGES * share)):
            moments.setdefault(chance.randrange(last), []).append(random.Random(chance.random()))
        return moments

    def check_images(self, chance: random.Random, share: float = 1.0) -> None:
        """Loses power at many moments, or a share of as many, and looks each time."""
        moments = self.moments(chance, share)
        marks = Marks()
        for at, event in enumerate(self.events):
            self.disk.follow(event)
            marks.follow([event])
            for left in moments.get(at, ()):
                ledger = copy.deepcopy(self.before)
                marks.tell(ledger)
                self.check_image(ledger, left, chance)

    def check_image(self, ledger: Ledger, left: random.Random | None, chance: random.Random) -> None:
        """What is left opens, holds what was acknowledged, and takes a write."""
        image = self.images / f"{self.made}"
        self.made += 1
        self.disk.image(image, left)
        store = image / "agent.memkura"
        with opened(store, create=not ledger.live and not ledger.gone) as engine:
            check(engine, ledger, chance)
            memory_id = engine.remember("other", "goes on")
            assert engine.get("other", memory_id) is not None
        if self.made % FULL_CHECK_EVERY == 0:
            check_file(store)
            check_rebuilt(store, ledger, chance)
        shutil.rmtree(image)


@pytest.mark.parametrize("run", range(RUNS))
def test_acknowledged_writes_survive_loss_of_power(nursery: Nursery, tmp_path: Path, run: int) -> None:
    """A run with updates, forgetting, sealing and a reopening, cut off at a hundred moments."""
    recording = Recording(nursery, tmp_path, f"run {run}")
    assert recording.status == 0
    recording.check_images(random.Random(run))
    assert recording.made >= 100
    # The log had everything in it.
    files = {str(path.relative_to(recording.folder)): path for path in recording.folder.rglob("*") if path.is_file()}
    assert recording.disk.now() == {name: path.read_bytes() for name, path in files.items()}


@pytest.mark.parametrize("run", range(4 * TIMES))
def test_loss_of_power_after_a_kill_loses_nothing(nursery: Nursery, tmp_path: Path, run: int) -> None:
    """A writer is killed in the middle of a call, the next one goes on from what it left, and then power is lost."""
    chance = random.Random(100 + run)
    recording = Recording(nursery, tmp_path, "killed", position=chance.randint(1, 2000), manner=Manner.KILL)
    assert recording.status == KILLED
    assert recording.record("next", deeds="ruruffc|ruf") == 0
    recording.check_images(chance, share=0.25)


@pytest.mark.parametrize("run", range(4 * TIMES))
def test_loss_of_power_after_a_failed_sync_loses_nothing(nursery: Nursery, tmp_path: Path, run: int) -> None:
    """One sync fails, what it should have written is gone for good, and what was acknowledged after it is there."""
    chance = random.Random(200 + run)
    recording = Recording(nursery, tmp_path, "failed", position=chance.randint(1, 2000), manner=Manner.SYNC_EIO)
    assert recording.status == 0
    assert any(event.kind == "s" and event.number == FAILED for event in recording.events)
    recording.check_images(chance, share=0.25)


@pytest.mark.parametrize("run", range(2 * TIMES))
def test_threads_that_share_a_sync_survive_loss_of_power(nursery: Nursery, tmp_path: Path, run: int) -> None:
    """Three threads at once: none is told of success before the sync that they share."""
    recording = Recording(nursery, tmp_path, f"threads {run}", threads=3, deeds="rrufrurufru|rufruc")
    assert recording.status == 0
    recording.check_images(random.Random(300 + run), share=0.5)


@pytest.mark.parametrize("run", range(2 * TIMES))
def test_threads_share_a_failed_sync(nursery: Nursery, tmp_path: Path, run: int) -> None:
    """One sync fails for all who share it."""
    chance = random.Random(400 + run)
    deeds = "rrufrurufru|rufruc"
    recording = Recording(
        nursery, tmp_path, "failed", threads=3, deeds=deeds, position=chance.randint(1, 500), manner=Manner.SYNC_EIO
    )
    recording.check_images(chance, share=0.25)


def test_new_store_survives_loss_of_power(nursery: Nursery, tmp_path: Path) -> None:
    """The first writes of a store that was just made."""
    recording = Recording(nursery, tmp_path, "new", is_new=True)
    recording.check_images(random.Random(7))


def test_half_made_store_is_made_whole(nursery: Nursery, tmp_path: Path) -> None:
    """Power is lost at every moment of the first opening, and after each the store opens and works."""
    recording = Recording(nursery, tmp_path, "new", is_new=True)
    chance = random.Random(9)
    first = next(at for at, event in enumerate(recording.events) if event.kind == "k")
    for event in recording.events[:first]:
        recording.disk.follow(event)
        # Whether the store's own name is there: with an empty folder there is nothing to see.
        recording.disk.top.sync()
        recording.check_image(Ledger(), None, chance)
        recording.check_image(Ledger(), chance, chance)
    assert recording.made > 50


def test_purged_text_does_not_come_back(nursery: Nursery, tmp_path: Path) -> None:
    """Once compact has returned, no file holds a purged text, not even one that the loss of power brings back."""
    recording = Recording(nursery, tmp_path, "purging", deeds="rrrruucpc|ruprpc")
    ledger = copy.deepcopy(recording.before)
    purged: set[str] = set()
    removed: set[str] = set()
    chance = random.Random(10)
    for event in recording.events:
        recording.disk.follow(event)
        if event.kind == "k":
            line = event.path.partition("|")[2]
            ledger.read([line] if line else [])
            if line.startswith("done purge"):
                memory_id = line.split()[2]
                purged |= {word for one, word in ledger.stale if one == memory_id}
            removed = set(purged) if line == "compacted" else removed
            for left in (None, chance):
                image = tmp_path / "image"
                recording.disk.image(image, left)
                held = {path: path.read_bytes() for path in image.rglob("*") if path.is_file()}
                shutil.rmtree(image)
                found = {path.name for path, data in held.items() if any(word.encode() in data for word in removed)}
                assert not found
    assert len(removed) >= 3


@pytest.mark.parametrize(
    "options",
    [{"swallow": True}, {"durability": "process_crash"}, {"fault": "acknowledges early"}],
    ids=["syncs that do nothing", "weaker durability", "early acknowledgement"],
)
def test_check_finds_writes_that_were_not_synced(nursery: Nursery, tmp_path: Path, options: dict[str, Any]) -> None:
    """Planted: what is acknowledged without being on disk is missed."""
    recording = Recording(nursery, tmp_path, "planted", **options)
    with pytest.raises((AssertionError, errors.MemkuraError)):
        recording.check_images(random.Random(8))


def test_disk_keeps_what_was_synced(tmp_path: Path) -> None:
    """The model itself: bytes by the file's sync, names by the folder's."""
    root = tmp_path / "root"
    root.mkdir()
    disk = Disk(root)
    for event in (
        Event("o", 1, 1, f"{root}/a", b""),
        Event("w", 1, 0, f"{root}/a", b"x" * 1000),
        Event("s", 1, 0, f"{root}/a", b""),
    ):
        disk.follow(event)
    disk.image(tmp_path / "nameless")
    assert not list((tmp_path / "nameless").iterdir())
    disk.follow(Event("s", 9, LISTING, str(root), b"1 a\0"))
    disk.follow(Event("w", 1, 500, f"{root}/a", b"y" * 1000))
    disk.image(tmp_path / "synced")
    assert (tmp_path / "synced" / "a").read_bytes() == b"x" * 1000
    file = disk.top.durable["a"]
    assert isinstance(file, File)
    held = {file.image(random.Random(seed)) for seed in range(50)}
    assert {b"x" * 1000, b"x" * 500 + b"y" * 1000} < held
    assert b"x" * 512 + b"y" * 488 in {one[:1000] for one in held}, "torn between sectors"
    for number in (FAILED, 0):
        disk.follow(Event("s", 1, number, f"{root}/a", b""))
    assert file.image(random.Random(0)) == b"x" * 1000, "what a failed sync left out is gone"
