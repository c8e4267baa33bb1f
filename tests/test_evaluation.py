"""Measures against an independent implementation, intervals, files, and a run over a small corpus."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import ir_measures
import pytest

from memkura import errors, evaluation
from memkura.evaluation.metrics import MEASURES

if TYPE_CHECKING:
    from pathlib import Path

    from memkura import Engine

ORACLES = {
    "recall": ir_measures.R,
    "hit": ir_measures.Success,
    "precision": ir_measures.P,
    "ndcg": ir_measures.nDCG,
    "mrr": ir_measures.RR,
    "map": ir_measures.AP,
}


def _random_case(chance: random.Random) -> tuple[list[str], dict[str, int]]:
    ids = [f"d{number}" for number in range(40)]
    grades = {answer: chance.choice([-1, 0, 1, 1, 2, 3]) for answer in chance.sample(ids, chance.randint(1, 15))}
    grades[chance.choice(ids)] = 1
    return chance.sample(ids, chance.randint(0, 30)), grades


def test_every_measure_has_an_oracle() -> None:
    """A measure that is added without one fails here."""
    assert ORACLES.keys() == MEASURES.keys()


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("k", [1, 3, 10, 25])
def test_measures_agree_with_ir_measures(name: str, k: int) -> None:
    """200 random rankings with graded, zero and negative judgements."""
    chance = random.Random(f"{name}{k}")
    measure = ORACLES[name] @ k
    for _ in range(200):
        ranking, grades = _random_case(chance)
        qrels = [ir_measures.Qrel("q", answer, grade) for answer, grade in grades.items()]
        run = [ir_measures.ScoredDoc("q", answer, -place) for place, answer in enumerate(ranking)]
        expected = next((row.value for row in measure.iter_calc(qrels, run)), 0.0)
        assert MEASURES[name](ranking, grades, k) == pytest.approx(expected, abs=1e-9), (ranking, grades)


def test_interval_is_seeded_and_holds_the_mean() -> None:
    """The same values give the same interval; one value gives no width."""
    values = [random.Random(at).random() for at in range(50)]
    low, high = evaluation.bootstrap(values)
    assert (low, high) == evaluation.bootstrap(values)
    assert low < sum(values) / len(values) < high
    assert evaluation.bootstrap([0.5]) == (0.5, 0.5)


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8"])
def test_npy_is_read_as_numpy_writes_it(tmp_path: Path, kind: str) -> None:
    """float16, float32 and float64, row by row."""
    numpy = pytest.importorskip("numpy")
    matrix = numpy.linspace(-1, 1, 21).reshape(3, 7).astype(kind)
    numpy.save(tmp_path / "m.npy", matrix)
    rows = evaluation.read_npy(tmp_path / "m.npy")
    assert [list(row) for row in rows] == matrix.astype("f4").tolist()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"\x93NUMPY\x01\x00\x10\x00__import__('os')",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        b"\x93NUMPY\x01\x00\x3c\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (9, 9)}  \n\n",
        b"\x93NUMPY\x01\x00\x3c\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (9, 9)}   \n\n",
    ],
)
def test_npy_of_a_stranger_is_refused(tmp_path: Path, content: bytes) -> None:
    """Nothing is evaluated or unpickled, and nothing is allocated for a size that is only claimed."""
    (tmp_path / "m.npy").write_bytes(content)
    with pytest.raises(errors.InvalidInput):
        evaluation.read_npy(tmp_path / "m.npy")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: is not JSON"),
        ("[" * 100_000, "line 2: has more than 64 levels"),
        ("[]", "line 2: is not a JSON object"),
        ('{"text": "x"}', "line 2: has none of id, pid"),
        ('{"id": "a"}', "line 2: has neither summary nor text"),
        ('{"id": "ok", "text": "x"}', "line 2: the same id"),
        ('{"id": "b", "text": "x", "event_time": "soon"}', "line 2: event_time is no ISO 8601 time"),
    ],
)
def test_broken_corpus_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    """The message says which line."""
    (tmp_path / "c.jsonl").write_text('{"id": "ok", "text": "x"}\n' + line)
    with pytest.raises(errors.InvalidInput) as caught:
        evaluation.read_corpus(tmp_path / "c.jsonl")
    assert said in str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    corpus = [
        {"id": "tea", "text": "tea is brewed at 80 degrees"},
        {"pid": 2, "title": "Coffee", "text": "coffee is brewed at 94 degrees"},
        {"id": "other", "conv": "elsewhere", "text": "tea is drunk elsewhere"},
    ]
    queries = [
        {"qid": "1", "context": "evaluation", "question": "how is tea brewed", "rel": ["tea"], "category": "drinks"},
        {"qid": "2", "context": "evaluation", "question": "coffee", "rel": {"2": 2, "tea": 0}, "kind": "graded"},
        {"qid": "3", "conv": "elsewhere", "question": "tea", "rel": ["other"], "category": "drinks"},
        {"qid": "4", "question": "water", "rel": []},
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "corpus.jsonl", tmp_path / "queries.jsonl"


def test_evaluate_reports_by_category_and_overall(engine: Engine, files: tuple[Path, Path]) -> None:
    """Each question is asked in its own context; one without answers is left out, and said to be."""
    report = evaluation.evaluate(engine, *files, k=3)
    parts = report.as_dict()["parts"]
    assert {name: part["n"] for name, part in parts.items()} == {"overall": 3, "drinks": 2, "graded": 1}
    assert parts["overall"]["mrr"]["mean"] == 1.0
    assert report.left_out == 1
    assert json.loads(json.dumps(report.as_dict())) == report.as_dict()
    assert "recall@3" in report.table()
    assert "1.000 1.000..1.000" in report.table()


@pytest.mark.parametrize("context", [None, "nowhere"])
def test_question_to_no_context_of_the_corpus_is_refused(
    engine: Engine, files: tuple[Path, Path], context: str | None
) -> None:
    """It would score 0, and nobody would know why."""
    case = evaluation.Case("q9", context, "tea", {"tea": 1.0})
    with pytest.raises(errors.InvalidInput, match="question q9"):
        evaluation.evaluate(engine, files[0], [case])


def test_evaluate_takes_given_vectors(files: tuple[Path, Path]) -> None:
    """With vectors for both files no embedder is called."""
    import memkura
    from memkura.embedders.given import Given

    corpus = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    queries = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    with memkura.open(":memory:", embedder=Given(2)) as engine:
        report = evaluation.evaluate(engine, *files, k=1, vectors=(corpus, queries), legs=["vector"])
    assert report.mean("hit") == pytest.approx(2 / 3)
    assert not report.degraded


def test_lighthouse_collection_runs(engine: Engine) -> None:
    """The collection that comes with the project loads, and every question finds its context and filter."""
    from pathlib import Path

    folder = Path(__file__).parents[1] / "examples" / "lighthouse"
    report = evaluation.evaluate(engine, folder / "memories.jsonl", folder / "questions.jsonl", legs=["text"])
    parts = report.as_dict()["parts"]
    assert parts["overall"]["n"] == 115
    assert parts["code"]["hit"]["mean"] > 0.8


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{'descr': ['<f4'], 'fortran_order': False, 'shape': (2, 2)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 10**23)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 100000000000000000000000)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 0)}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': 5}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': ('2', '2')}",
    ],
)
def test_hostile_matrix_is_refused(tmp_path: Path, header: bytes) -> None:
    """By an exception of ours, before anything is read by a size that it claims."""
    file = tmp_path / "v.npy"
    file.write_bytes(b"\x93NUMPY" + (b"\1\0" + len(header).to_bytes(2, "little") + header if header else b""))
    with pytest.raises(errors.InvalidInput):
        evaluation.read_npy(file)


def test_grade_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    """Four hundred digits are no grade."""
    file = tmp_path / "q.jsonl"
    file.write_text(f'{{"qid": "1", "question": "x", "rel": {{"1": 1{"0" * 400}}}}}')
    with pytest.raises(errors.InvalidInput):
        evaluation.read_queries(file)
