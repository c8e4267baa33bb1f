"""Seeded memories and questions for the benchmarks: texts, tags and unit vectors, and no corpus of anybody's.

:func:`scattered` is the plainest: every vector lies anywhere. :func:`clustered` has the structure of real memories:
topics, whose vectors lie together and whose texts share words, and tags that go with the topic or do not.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

DIM = 384
# What `scattered` draws a memory's tag from.
TAGS = 10

_SEED = 7
_WORDS = 5_000
_CONSONANTS = "bdfgklmnrt"
_VOWELS = "aeiou"

_TOPICS = 200
_TOPIC_WORDS = 40
_TOPIC_WORDS_SHARE = 0.4
# Cosines to the own centre are about 0.7 and 0.8: neighbours of a question are of its topic, and not all of them.
_MEMORY_SPREAD = 1.0
_QUESTION_SPREAD = 0.75
# A tenth of a per cent of 10,000 memories are as many as an answer has.
SHARES = (0.6, 0.1, 0.01, 0.001)
KINDS = ("random", "correlated")

# Characters of which Japanese words are made here, two to a word, and what stands between words and at the end.
_KANJI = (
    "本番反映火曜時間会議資料提出期限担当者変更確認手順書類管理計画進行報告障害対応検証環境設定更新記録保存通知予定"
    "開始終了承認依頼作業工程品質検査出荷在庫倉庫港湾船舶灯台点灯消灯気象観測潮位波浪風速燃料補給整備修理部品交換"
    "契約請求支払価格見積顧客訪問連絡電話番号住所氏名部門課長社員研修休暇勤務交代夜間緊急避難訓練安全規則責任判断"
)
_PARTICLES = ("は", "が", "を", "に", "で", "の", "と", "から", "まで", "も")
_ENDINGS = ("した。", "する。", "している。", "が決まった。", "を待つ。", "は不要。")


@dataclass(frozen=True)
class Question:
    """One question, with what each kind of contestant needs of it."""

    text: str
    words: str
    vector: Matrix


@dataclass(frozen=True)
class Memory:
    """One memory, as it is written alone."""

    ordinal: int
    text: str
    tags: list[str]
    vector: Matrix


@dataclass(frozen=True)
class Workload:
    """Memories by their ordinal, and questions."""

    texts: list[str]
    tags: list[list[str]]
    vectors: Matrix
    questions: list[str]
    question_vectors: Matrix

    def __len__(self) -> int:
        return len(self.texts)

    def items(self) -> list[dict[str, Any]]:
        """As ``remember_many`` takes them."""
        rows = zip(self.texts, self.tags, self.vectors, strict=True)
        return [{"context_id": "c", "summary": text, "tags": tags, "embedding": vector} for text, tags, vector in rows]

    def asked(self) -> list[Question]:
        """The questions, analysed."""
        rows = zip(self.questions, self.question_vectors, strict=True)
        return [Question(text, analysed(text), vector) for text, vector in rows]


def scattered(memories: int, questions: int) -> Workload:
    """Zipf texts and vectors without structure; each memory has one tag of ten, ``tag0`` to ``tag9``."""
    chance = random.Random(_SEED)  # noqa: S311 - a workload, not a secret
    words = [_word(chance, number) for number in range(_WORDS)]
    weights = _zipf(_WORDS)
    texts = [" ".join(chance.choices(words, weights, k=chance.randint(8, 40))) for _ in range(memories)]
    tags = [[f"tag{chance.randrange(TAGS)}"] for _ in range(memories)]
    asked = [" ".join(chance.choices(words, weights, k=6)) for _ in range(questions)]
    generator = np.random.default_rng(_SEED)
    return Workload(
        texts=texts,
        tags=tags,
        vectors=_unit(generator.standard_normal((memories, DIM), dtype=np.float32)),
        questions=asked,
        question_vectors=_unit(generator.standard_normal((questions, DIM), dtype=np.float32)),
    )


def clustered(memories: int, questions: int, *, japanese: bool = False) -> Workload:
    """Memories and questions of 200 topics. A memory has the tag :func:`tag` of each selection that it is in."""
    chance = random.Random(_SEED)  # noqa: S311 - a workload, not a secret
    generator = np.random.default_rng(_SEED)
    words = _japanese_words(chance) if japanese else [_word(chance, number) for number in range(_WORDS)]
    write = _japanese_text if japanese else _english_text
    topics = generator.integers(_TOPICS, size=memories + questions)
    own_words = [chance.sample(words[_TOPIC_WORDS:], _TOPIC_WORDS) for _ in range(_TOPICS)]
    lengths = [chance.randint(8, 40) for _ in range(memories)] + [6] * questions
    weights, own_weights = _zipf(_WORDS), _zipf(_TOPIC_WORDS)
    texts = []
    for topic, length in zip(topics, lengths, strict=True):
        own = round(length * _TOPIC_WORDS_SHARE)
        drawn = chance.choices(own_words[topic], own_weights, k=own) + chance.choices(words, weights, k=length - own)
        chance.shuffle(drawn)
        texts.append(write(chance, drawn))
    spreads = np.repeat(np.array([_MEMORY_SPREAD, _QUESTION_SPREAD], dtype=np.float32), [memories, questions])
    vectors = _around_centres(generator, topics, spreads)
    return Workload(
        texts=texts[:memories],
        tags=_selected(generator, topics[:memories]),
        vectors=vectors[:memories],
        questions=texts[memories:],
        question_vectors=vectors[memories:],
    )


def tag(kind: str, share: float) -> str:
    """The tag of the memories that a filter keeps: `share` of all, at random or ``correlated`` with the topic."""
    return f"{kind}{round(share * 1000)}"


def analysed(text: str) -> str:
    """The words of `text` between spaces: itself, or overlapping pairs of characters where there are no spaces."""
    if text.isascii():
        return text
    return " ".join(text[at : at + 2] for at in range(len(text) - 1))


def seconds_of(call: Callable[[], object]) -> float:
    """How long `call` takes."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def fused(legs: Sequence[Sequence[int]], k: int) -> list[int]:
    """The best `k` by the sum of reciprocal ranks, with the usual constant of 60."""
    scores: dict[int, float] = {}
    for leg in legs:
        for rank, at in enumerate(leg, 1):
            scores[at] = scores.get(at, 0.0) + 1 / (60 + rank)
    return sorted(scores, key=lambda at: (-scores[at], at))[:k]


def _zipf(count: int) -> list[float]:
    """Few words are frequent and most are rare, as in any language."""
    return [1 / (rank + 2) for rank in range(count)]


def _word(chance: random.Random, number: int) -> str:
    """A word of letters that no other number gives: its digits as syllables, and one more by chance."""
    syllables = [
        _CONSONANTS[int(digit)] + _VOWELS[(number + place) % len(_VOWELS)] for place, digit in enumerate(str(number))
    ]
    return "".join([*syllables, chance.choice(_CONSONANTS)])


def _japanese_words(chance: random.Random) -> list[str]:
    characters = sorted(set(_KANJI))
    return chance.sample([first + second for first in characters for second in characters], _WORDS)


def _english_text(_chance: random.Random, words: Sequence[str]) -> str:
    return " ".join(words)


def _japanese_text(chance: random.Random, words: Sequence[str]) -> str:
    return "".join(word + chance.choice(_PARTICLES) for word in words[:-1]) + words[-1] + chance.choice(_ENDINGS)


def _around_centres(generator: np.random.Generator, topics: Any, spreads: Any) -> Matrix:  # noqa: ANN401 - arrays
    """Unit vectors about the centres of their `topics`, as far off as `spreads` says beside the centre's own length."""
    centres = _unit(generator.standard_normal((_TOPICS, DIM), dtype=np.float32))
    noise = _unit(generator.standard_normal((len(topics), DIM), dtype=np.float32))
    return _unit(centres[topics] + noise * spreads[:, None])


def _selected(generator: np.random.Generator, topics: Any) -> list[list[str]]:  # noqa: ANN401 - an array
    """The tags of each memory. A correlated selection takes whole topics, one after the other, until it is full."""
    order = generator.permutation(_TOPICS)[topics] + generator.random(len(topics))
    ranks = {"random": generator.permutation(len(topics)), "correlated": np.argsort(np.argsort(order))}
    tags: list[list[str]] = [[] for _ in topics]
    for kind in KINDS:
        for share in SHARES:
            for at in np.flatnonzero(ranks[kind] < max(round(len(topics) * share), 1)):
                tags[at].append(tag(kind, share))
    return tags


def _unit(matrix: Matrix) -> Matrix:
    unit: Matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit
