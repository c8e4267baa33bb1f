"""Any server that speaks OpenAI's ``/embeddings``: OpenAI, Ollama, vLLM, llama.cpp, LM Studio and gateways.

On the standard library alone. Asked for by name only; a key is never shown and never part of the fingerprint.
"""

from __future__ import annotations

import array
import base64
import json
import os
import sys
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from memkura.errors import EmbedderFailed, EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from http.client import HTTPMessage, HTTPResponse
    from typing import IO

    from memkura.embedders.protocol import Kind, Vector

_OPENAI_URL = "https://api.openai.com/v1"
_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_ANSWER_BYTES_MAX = 256 << 20
_PART_BYTES = 1 << 16
_SHOWN_CHARS = 200


class OpenAICompatible:
    """Embeddings over HTTP.

    Args:
        model: the model's name at the server.
        url: the server's base address, up to ``/v1``.
        api_key: by default the environment's ``MEMKURA_EMBEDDINGS_API_KEY``; ``OPENAI_API_KEY`` is used for OpenAI's
            own address only, so that it never travels to another host.
        dim: components of a vector; known for OpenAI's models, otherwise found with one probe text.
        timeout: seconds to wait for the server to answer, and again for the whole answer.
        max_batch: texts in one call.
        query_prefix: put before each question, for models that want it.
        document_prefix: put before each memory's text, likewise.

    Example:
        >>> from memkura.embedders.openai_compatible import OpenAICompatible
        >>> OpenAICompatible("nomic-embed-text", url="http://localhost:11434/v1", dim=768, api_key="secret")
        <OpenAICompatible 'http://localhost:11434/v1#nomic-embed-text/1'>
    """

    remote = True

    def __init__(
        self,
        model: str,
        *,
        url: str = _OPENAI_URL,
        api_key: str | None = None,
        dim: int | None = None,
        timeout: float = 30.0,
        max_batch: int = 64,
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> None:
        self._endpoint, shown = _addresses(url)
        self._api_key = api_key or _key_for(self._endpoint)
        self._model = model
        self._dim = dim or (_DIMENSIONS.get(model) if url == _OPENAI_URL else None)
        self._timeout = timeout
        self._prefixes = {"query": query_prefix, "document": document_prefix}
        self.max_batch = max_batch
        prefixes = f"+{query_prefix}|{document_prefix}" if query_prefix or document_prefix else ""
        self.id = f"{'openai:' if url == _OPENAI_URL else f'{shown}#'}{model}{prefixes}/1"

    @property
    def dim(self) -> int:
        """Components of a vector; the first use may ask the server."""
        if self._dim is None:
            self._dim = len(self._ask(["probe"])[0])
        return self._dim

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Iterable[Vector]:
        """One vector a text.

        Raises:
            EmbedderFailed: the server cannot be reached, refuses, or answers with something else than vectors.
        """
        prefix = self._prefixes[kind]
        return self._ask([prefix + _encodable(text) for text in texts])

    def _ask(self, texts: list[str]) -> list[Vector]:
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        request = Request(self._endpoint, body, headers)  # noqa: S310 - the scheme was checked
        try:
            with _opener.open(request, timeout=self._timeout) as answer:
                read = self._whole(answer)
        except HTTPError as error:
            with error:
                raise self._failed(f"the server answered {error.code}: {self._said(error.read(4096))}") from None
        except (HTTPException, OSError) as error:
            raise self._failed(f"the server cannot be reached: {getattr(error, 'reason', error)}") from None
        return self._vectors(read, len(texts))

    def _whole(self, answer: HTTPResponse) -> bytes:
        """The body, unless it is too large or takes too long: the socket's own timeout begins anew with every byte."""
        until = time.monotonic() + self._timeout
        read = bytearray()
        while part := answer.read1(_PART_BYTES):
            read += part
            if len(read) > _ANSWER_BYTES_MAX:
                raise self._failed("the server's answer is too large")
            if time.monotonic() > until:
                raise self._failed(f"the server's answer took longer than {self._timeout} seconds")
        return bytes(read)

    def _vectors(self, read: bytes, expected: int) -> list[Vector]:
        try:
            rows = sorted(json.loads(read)["data"], key=lambda row: row["index"])
            vectors = [_vector(row["embedding"]) for row in rows]
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise self._failed(f"the server did not answer with embeddings: {self._said(read)}") from None
        if [row["index"] for row in rows] != list(range(expected)):
            raise self._failed(f"the server answered {expected} texts with {len(rows)} vectors")
        return vectors

    def _said(self, read: bytes) -> str:
        """The server's words, without our key in case it repeats it."""
        text = " ".join(read.decode("utf-8", "replace").split())
        # Before it is cut: half a key is too much of it.
        return (text.replace(self._api_key, "***") if self._api_key else text)[:_SHOWN_CHARS]

    def _failed(self, message: str) -> EmbedderFailed:
        return EmbedderFailed(f"{self.id}: {message}")

    def __repr__(self) -> str:
        return f"<OpenAICompatible {self.id!r}>"


class _StayHere(HTTPRedirectHandler):
    """A redirected request would carry the key and the texts to a host that nobody named."""

    def redirect_request(
        self,
        req: Request,  # noqa: ARG002 - the signature is the library's
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: HTTPMessage,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        return None


_opener = build_opener(_StayHere)


def _addresses(url: str) -> tuple[str, str]:
    """The endpoint to call, and the address to show: without a user or password."""
    try:
        parts = urlsplit(url.rstrip("/"))
    except ValueError:  # brackets without an address in them
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise EmbedderUnavailable(
            "is not an http(s) address", field="embedder", advice="Give one such as http://localhost:11434/v1"
        )
    if parts.username or parts.password:
        raise EmbedderUnavailable(
            "the address holds a password",
            field="embedder",
            advice="Pass it as api_key, or set MEMKURA_EMBEDDINGS_API_KEY",
        )
    shown = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path}/embeddings", parts.query, "")), shown


def _key_for(endpoint: str) -> str | None:
    key = os.environ.get("MEMKURA_EMBEDDINGS_API_KEY")
    if key is None and endpoint.startswith(f"{_OPENAI_URL}/"):
        key = os.environ.get("OPENAI_API_KEY")
    return key


def _vector(embedding: Any) -> array.array[float]:  # noqa: ANN401 - JSON
    """A list of numbers, or base64 of little-endian float32, which some servers send unasked."""
    if not isinstance(embedding, str):
        return array.array("f", embedding)
    vector = array.array("f", base64.b64decode(embedding, validate=True))
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
