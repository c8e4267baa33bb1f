# ruff: noqa: RUF001 - full-width letters are what is tested
"""Text search in every script, for identifiers, in equivalent forms, and for any query at all."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

import memkura
from asking import each_leg, each_life, ids, texts
from memkura import errors
from memkura.testing import FrozenClock, ToyEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from asking import Look
    from memkura import Engine

CJK = {
    "review": "週次レビューで検索の再現率を確認した",
    "manual": "デプロイ手順書は社内ウィキにある",
    "backup": "部署脚本每天凌晨三点备份数据库",
    "deploy": "배포는 매주 화요일에 진행한다",
    "tea": "茶比咖啡好",
}
FOUND = [
    ("再現率", "review"),
    ("検索", "review"),
    ("レビュー", "review"),
    ("検索の再現率", "review"),
    ("デプロイ", "manual"),
    ("手順書", "manual"),
    ("社内ウィキ", "manual"),
    ("备份数据库", "backup"),
    ("数据库", "backup"),
    ("凌晨三点", "backup"),
    ("배포", "deploy"),
    ("배포를", "deploy"),
    ("화요일", "deploy"),
    ("매주 화요일", "deploy"),
    ("茶", "tea"),
    ("咖啡", "tea"),
]
ABSENT = ["冷蔵庫", "冰箱", "결과", "냉장고", "冷凍食品", "プリンター", "打印机"]


@pytest.fixture(scope="module", params=["fresh", "compacted", "reopened"])
def east(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The five texts, in each state that an index can be in."""
    store_path = tmp_path_factory.mktemp("east") / "store"
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
        for text in CJK.values():
            engine.remember("c", text)
        if request.param != "fresh":
            engine.recall("c", "茶")
            engine.compact()
        if request.param != "reopened":
            yield engine
            return
    with memkura.open(store_path, embedder=ToyEmbedder(), clock=FrozenClock()) as engine:
        yield engine


@pytest.mark.parametrize(("query", "name"), FOUND)
def test_words_of_japanese_chinese_and_korean_are_found(east: Engine, query: str, name: str) -> None:
    """A word, a part of a compound, a single character and a word with another particle find their text first."""
    assert east.recall("c", query, legs=["text"])[0].summary == CJK[name]


@pytest.mark.parametrize("query", ABSENT)
def test_words_that_are_not_there_find_nothing(east: Engine, query: str) -> None:
    """Characters in common with a longer word are not enough."""
    assert texts(east.recall("c", query, legs=["text"])) == []


def test_single_characters_of_a_longer_word_do_not_admit(engine: Engine) -> None:
    """冷 alone must not bring up everything cold when a refrigerator was asked for, though it is found itself."""
    row = engine.remember("c", "冬は冷える")
    engine.remember("c", "倉庫の鍵")
    assert texts(engine.recall("c", "冷蔵庫", legs=["text"])) == []
    assert ids(engine.recall("c", "冷", legs=["text"])) == [row]


def _wide(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


FORMS = [
    (unicodedata.normalize("NFD", "パスワード"), "パスワード"),
    (unicodedata.normalize("NFD", "회의록"), "회의록"),
    (unicodedata.normalize("NFD", "Ångström"), "Ångström"),
    (_wide("PostgreSQL"), "PostgreSQL"),
    ("ﾃﾞｰﾀﾍﾞｰｽ", "データベース"),
    (_wide("E0382"), "E0382"),
    ("ﬁnal", "final"),
    ("STRASSE", "straße"),
    ("㈱", "(株)"),
    ("Ⅳ", "IV"),
    ("Ｃ＋＋", "C++"),
]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD", "as it is"])
@pytest.mark.parametrize(("one", "other"), FORMS)
def test_equivalent_forms_find_each_other(engine: Engine, one: str, other: str, form: Any) -> None:
    """Composition, width and compatibility forms are one text, stored one way and asked the other."""
    for at, (stored, asked) in enumerate(((one, other), (other, one))):
        if form != "as it is":
            asked = unicodedata.normalize(form, asked)  # noqa: PLW2901 - another dress of the same
        row = engine.remember(f"c{at}", f"{stored} 2")
        engine.remember(f"c{at}", "茶 and coffee")
        assert ids(engine.recall(f"c{at}", asked, legs=["text"])) == [row]


@each_life
def test_get_returns_exactly_the_code_points_given(engine: Engine, store_path: Path, look: Look) -> None:
    """Folding is for finding: what comes back is what was given, down to the code point."""
    rows = {engine.remember("c", f" {one}\t{other}\r\n"): f" {one}\t{other}\r\n" for one, other in FORMS}
    assert look(engine, store_path, "c", "x", list(rows))["get"] == rows


CODE = [
    "call parse_http_response() first",
    "getUserById is slow",
    "ORA-01555 snapshot too old",
    "ORA-01578 block corrupt",
    "needs Python 3.11.7",
    "needs Python 3.1.17",
    "edit /etc/app/conf.d/10-cache.toml",
    "parser in C++",
    "parser in C",
    "parser in C#",
    "see https://docs.example/v2/start?lang=en#top",
    "HTTPServer2 restarts at dawn",
    "the flag --dry-run=client is safe",
    "throughput is 3 GB/s",
]
CODE_QUERIES = [
    ("parse_http_response", 0),
    ("parse_http_response()", 0),
    ("getUserById", 1),
    ("getuserbyid", 1),
    ("GETUSERBYID", 1),
    ("ORA-01555", 2),
    ("ora-01578", 3),
    ("3.11.7", 4),
    ("3.1.17", 5),
    ("Python 3.11.7", 4),
    ("conf.d/10-cache.toml", 6),
    ("10-cache", 6),
    ("/etc/app/conf.d/10-cache.toml", 6),
    ("C++", 7),
    ("c++", 7),
    ("C#", 9),
    ("https://docs.example/v2/start?lang=en#top", 10),
    ("docs.example", 10),
    ("HTTPServer2", 11),
    ("httpserver2", 11),
    ("--dry-run=client", 12),
    ("dry-run", 12),
    ("GB/s", 13),
]


@pytest.fixture
def code(engine: Engine) -> Engine:
    """What agents really store."""
    for text in CODE:
        engine.remember("c", text)
    return engine


@pytest.mark.parametrize(("query", "place"), CODE_QUERIES)
@pytest.mark.parametrize("sealed", [False, True], ids=["fresh", "sealed"])
def test_identifiers_find_their_document_first(code: Engine, query: str, place: int, sealed: bool) -> None:  # noqa: FBT001
    """Identifiers, codes, versions, paths and flags are words of their own."""
    if sealed:
        code.recall("c", query)
        code.compact()
    assert code.recall("c", query, legs=["text"])[0].summary == CODE[place]


@pytest.mark.parametrize(
    ("query", "place"), [("http response", 0), ("user id", 1), ("parse response", 0), ("http server", 11)]
)
def test_parts_of_identifiers_are_found_below_exact_matches(code: Engine, query: str, place: int) -> None:
    """Words inside snake_case and CamelCase bring it into the first three, below a text that says it literally."""
    assert CODE[place] in texts(code.recall("c", query, legs=["text"], k=3))
    exact = code.remember("c", f"the {query} was late")
    hits = code.recall("c", query, legs=["text"], k=3)
    assert hits[0].memory_id == exact
    assert CODE[place] in texts(hits)


ANY = [
    '"',
    "(",
    ")",
    "foo AND",
    "NOT",
    "OR OR",
    "a:b",
    "x^2",
    "it's",
    "GB/s",
    "--dry-run=client",
    "pre-edit",
    "[",
    "]",
    "*",
    "~",
    "+",
    "-",
    "\\",
    "/",
    "?",
    "{",
    "}",
    "!",
    "&&",
    "||",
    "$1",
    "%",
    "_",
    "#",
    "a:b:c^9~",
    "[1 TO",
    "NEAR(a b)",
    "col:*",
    "^",
    "\x00",
    "a\x00b",
    "😀",
    "👨‍👩‍👧",
    "\u200b",
    "\ufeff",
    "\u202e",
    "a" * 10_000,
    "😀" * 5_000,
    "あ" * 10_000,
    "' OR 1=1; --",
    "\ud800",
    "a\udfffb",
    "\x1b[2J",
    "e" + "\u0301" * 50,
]


@pytest.mark.parametrize("query", ANY, ids=lambda query: ascii(query)[:20])
@each_leg
def test_any_text_is_a_legal_query(code: Engine, query: str, legs: Sequence[str] | None) -> None:
    """Query text is data, never syntax: no query raises, with words beside it or not."""
    code.recall("c", query, legs=legs)
    hits = code.recall("c", f"{query} getUserById", legs=["text"])
    assert CODE[1] in texts(hits)
    for context_id in ("never written", "empty"):
        assert list(code.recall(context_id, query, legs=legs)) == []


def test_function_words_are_not_thrown_away(engine: Engine) -> None:
    """A text made of nothing but function words is found by them."""
    row = engine.remember("c", "To be or not to be")
    engine.remember("c", "coffee")
    for query in ("to be or not to be", "not", "be"):
        assert ids(engine.recall("c", query, legs=["text"])) == [row]


@pytest.mark.parametrize("query", ["", " ", "\n", "\t \r\n", "\u3000", " \u3000\n", "\u2003\u00a0"], ids=ascii)
@each_leg
def test_blank_query_is_refused(engine: Engine, toy: ToyEmbedder, query: str, legs: Sequence[str] | None) -> None:
    """A blank query is a ValueError of its own kind, returns no row and calls no embedder."""
    engine.remember("c", "tea")
    calls = toy.calls
    with pytest.raises(errors.EmptyQuery):
        engine.recall("c", query, legs=legs)
    with pytest.raises(ValueError, match="query"):
        engine.recall("never written", query, legs=legs)
    assert toy.calls == calls


def test_no_query_and_no_vector_is_refused(engine: Engine) -> None:
    """`None` is as blank as an empty text."""
    with pytest.raises(errors.EmptyQuery):
        engine.recall("c")


@pytest.mark.parametrize("only", ["!!!", "—", "…", "()", "\u200b.", "\U000e0067!"], ids=ascii)
def test_store_without_a_word_answers(engine: Engine, only: str) -> None:
    """A text with nothing to search for is kept and read, and harms no query."""
    row = engine.remember("c", only)
    for _ in range(2):
        assert list(engine.recall("c", "x", legs=["text"])) == []
        memory = engine.get("c", row)
        assert memory is not None
        assert memory.summary == only
        engine.compact()


@pytest.mark.parametrize(
    ("sentence", "question", "filler"),
    [
        (" the spare key hangs behind the boiler ", "where is the spare key", "lorem ipsum dolor sit amet "),
        ("予備の鍵はボイラーの後ろにある。", "予備の鍵はどこ", "今日は天気がよいので散歩に行った。"),
        ("备用钥匙挂在锅炉后面。", "备用钥匙在哪里", "今天天气很好我们去公园散步。"),
        ("예비 열쇠는 보일러 뒤에 있다 ", "예비 열쇠는 어디", "오늘은 날씨가 좋아서 산책을 갔다 "),
    ],
    ids=["english", "japanese", "chinese", "korean"],
)
@each_leg
def test_sentence_inside_a_long_text_is_found_once(
    store_path: Path, sentence: str, question: str, filler: str, legs: Sequence[str] | None
) -> None:
    """A long memory is found by a sentence in its middle, first and once, and comes back whole."""
    # Wide vectors, so that no two of the few words here share a component.
    engine = memkura.open(store_path, embedder=ToyEmbedder(4096), clock=FrozenClock())
    half = (filler * (20_000 // len(filler) + 1))[:20_000]
    text = half + sentence + half
    row = engine.remember("c", "a long note", text)
    for number in range(1, 6):
        engine.remember("c", filler * number)
    hits = engine.recall("c", question, legs=legs)
    assert hits[0].memory_id == row
    assert ids(hits).count(row) == 1
    memory = engine.get("c", row)
    assert memory is not None
    assert memory.content == text
    engine.compact()
    assert ids(engine.recall("c", question, legs=legs))[0] == row
    engine.close()


def test_long_query_is_answered(engine: Engine) -> None:
    """A query of 40,000 characters is a query."""
    row = engine.remember("c", "the spare key hangs behind the boiler")
    assert ids(engine.recall("c", "where is the spare key " * 1800)) == [row]


def test_text_over_the_limit_is_refused_and_never_cut(engine: Engine) -> None:
    """The error says how long a text may be; the longest that may be comes back whole."""
    longest = memkura._core.limits()["content_bytes"]  # noqa: SLF001 - the documented figure
    with pytest.raises(errors.TextTooLong, match=str(longest)):
        engine.remember("c", "a long note", "x" * (longest + 1))
    assert engine.count("c") == 0
    row = engine.remember("c", "a long note", ("word " * longest)[:longest])
    memory = engine.get("c", row)
    assert memory is not None
    assert len(memory.content or "") == longest
