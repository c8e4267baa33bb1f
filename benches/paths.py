"""The ways in which contestants are asked, and what brute force answers to them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contestants import DEPTH, Ability, Contestant, Plain, best
from workload import KINDS, SHARES, Memory, Question, Workload, analysed, fused, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

K = 10

_LEGS = {"text": Ability.TEXT, "vector": Ability.VECTOR, "hybrid": Ability.TEXT | Ability.VECTOR}


@dataclass(frozen=True)
class Reading:
    """A way to ask for the best ten: by one leg or both, of all memories or of those with a tag."""

    name: str
    leg: str
    tag: str | None = None

    @property
    def needs(self) -> Ability:
        """What a contestant must be able to do."""
        return _LEGS[self.leg] | (Ability.NONE if self.tag is None else Ability.FILTER)

    def ask(self, contestant: Contestant, question: Question) -> list[int]:
        """What a contestant answers."""
        asked: Callable[..., list[int]] = getattr(contestant, self.leg)
        return asked(question, K, self.tag)


LEGS = tuple(Reading(leg, leg) for leg in _LEGS)
READINGS = (
    *LEGS,
    *(
        Reading(f"{leg}, {kind} {share * 100:g} %", leg, tag(kind, share))
        for leg in ("vector", "hybrid")
        for kind in KINDS
        for share in SHARES
    ),
)


def widest(can: Ability) -> Reading | None:
    """Both legs, for those who have them; or the one, if there is one."""
    return next((reading for reading in reversed(LEGS) if reading.needs in can), None)


def ask_widest(contestant: Contestant, question: Question) -> list[int]:
    """What a contestant answers, asked by all that it has; one that has keys alone looks one up."""
    reading = widest(contestant.can)
    if reading is None:
        contestant.lookup(0)
        return []
    return reading.ask(contestant, question)


class Truth:
    """What brute force answers. The scores of a question are worked out once, for all readings."""

    def __init__(self, exact: Plain, questions: Sequence[Question]) -> None:
        self._exact = exact
        self._questions = questions
        self._text = functools.cache(lambda at: exact.text_scores(questions[at]).astype("float32"))
        self._vector = functools.cache(lambda at: exact.vector_scores(questions[at]))

    def shared(self, reading: Reading, answers: Sequence[Any]) -> float:
        """The share of the best answers that is among `answers`: one to each question, from the first on."""
        found = wanted = 0
        for at, answer in enumerate(answers):
            truth = self._answer(reading, at)
            found += len({*truth} & {*answer})
            wanted += len(truth)
        return found / wanted if wanted else 1.0

    def _answer(self, reading: Reading, at: int) -> list[int]:
        among = self._exact.among(reading.tag)
        depth = DEPTH if reading.leg == "hybrid" else K
        legs = []
        if reading.leg != "vector":
            scores = self._text(at)
            legs.append([place for place in best(scores, depth, among) if scores[place] > 0])
        if reading.leg != "text":
            legs.append(best(self._vector(at), depth, among))
        return fused(legs, K) if len(legs) > 1 else legs[0]


class Fresh:
    """Memories that are written one by one, each with a word of its own."""

    def __init__(self, load: Workload) -> None:
        self._load = load
        self._next = len(load)

    def memory(self) -> Memory:
        """Another one."""
        self._next += 1
        like = self._next % len(self._load)
        text = f"fresh{self._next} {self._load.texts[like]}"
        return Memory(self._next, text, self._load.tags[like], self._load.vectors[like])


def remembered(contestant: Contestant, memory: Memory) -> None:
    """Writes a memory, and raises if the next question does not find it."""
    contestant.remember(memory)
    word = memory.text.partition(" ")[0]
    answer = ask_widest(contestant, Question(word, analysed(word), memory.vector))
    if memory.ordinal not in answer:
        raise LookupError("what was written is not found")
