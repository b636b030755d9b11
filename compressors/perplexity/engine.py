"""Asking an OpenAI-compatible engine for the log-probabilities of prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ...middleware.errors import BackendError
from .alignment import aligned

if TYPE_CHECKING:
    import httpx

Ask = Literal["prompt_logprobs", "echo"]
Listed = tuple[list[str | None], list[float | None]]
"""Tokens and their log-probabilities, as an engine lists them."""

_ASKED: Mapping[Ask, Mapping[str, Any]] = {
    "prompt_logprobs": {"prompt_logprobs": 0},
    "echo": {"echo": True, "logprobs": 1},
}
_WHO = (
    "vLLM and SGLang return them, llama.cpp's server and chat APIs do not;"
    " use one that does, or Perplexity, which needs no engine"
)


@dataclass(frozen=True, slots=True)
class Known:
    """A token's characters in its prompt and its -ln p in nats."""

    start: int
    end: int
    nats: float


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text, and its ids with their characters where the engine's tokenizer is known."""

    text: str
    ids: Sequence[int] = ()
    offsets: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Engine:
    """An engine's completions API; see ``RemotePerplexity`` for the options."""

    base_url: str
    model: str
    api_key: str | None = field(repr=False)
    ask: Ask
    batch_size: int
    timeout: float

    def ask_all(self, prompts: Sequence[Prompt]) -> list[list[Known]]:
        """Return the tokens of each prompt whose probability the engine knows, in order.

        Raises BackendError as ``RemotePerplexity`` says.
        """
        import httpx

        found: list[list[Known]] = []
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        with httpx.Client(timeout=self.timeout, headers=headers) as client:
            for at in range(0, len(prompts), self.batch_size):
                found += self._ask(client, prompts[at : at + self.batch_size])
        return found

    def _ask(self, client: httpx.Client, prompts: Sequence[Prompt]) -> list[list[Known]]:
        import httpx

        body: dict[str, Any] = {
            "model": self.model,
            "prompt": [list(prompt.ids) or prompt.text for prompt in prompts],
            "max_tokens": 1,
            "temperature": 0,
            **_ASKED[self.ask],
        }
        try:
            response = client.post(f"{self.base_url.rstrip('/')}/completions", json=body)
        except httpx.TimeoutException as error:
            raise BackendError(
                f"{self.base_url} did not answer within {self.timeout:g} s;"
                " raise timeout or lower batch_size",
                retryable=True,
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise BackendError(
                f"cannot reach {self.base_url}: {_line(error)}; check the URL", retryable=True
            ) from error
        choices = self._choices(response, len(prompts))
        return [self._known(c, prompt) for c, prompt in zip(choices, prompts, strict=True)]

    def _choices(self, response: httpx.Response, number: int) -> list[Mapping[str, Any]]:
        if response.status_code >= 400:
            said = _line(response.text.replace(self.api_key or "\0", "***"))
            hint = f"; {_WHO}" if "echo" in said.lower() or "logprob" in said.lower() else ""
            status = response.status_code
            raise BackendError(
                f"{self.base_url} answered {status}: {said}{hint}",
                retryable=status in (408, 429) or (status >= 500 and not hint),
            )
        try:
            choices = list(response.json()["choices"])
            choices.sort(key=lambda choice: choice.get("index", 0))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackendError(
                f"{self.base_url} did not answer like OpenAI's completions API:"
                f" {_line(response.text)}; check that the URL ends in /v1"
            ) from error
        if len(choices) != number:
            raise BackendError(
                f"{self.base_url} gave {len(choices)} answers to {number} prompts; lower batch_size"
            )
        return choices

    def _known(self, choice: Mapping[str, Any], prompt: Prompt) -> list[Known]:
        if not prompt.text:
            return []
        try:
            found = _of_vllm(choice) or _of_openai(choice)
        except (AttributeError, TypeError, ValueError) as error:
            raise BackendError(
                f"{self.base_url} returned log-probabilities of an unknown form: {_line(error)}"
            ) from error
        if found is None:
            raise BackendError(
                f"{self.base_url} returned no log-probabilities of the prompt for"
                f" {self.ask!r}; {_WHO}"
            )
        tokens, logprobs = found
        offsets = self._offsets(prompt, tokens, logprobs)
        return [
            Known(start, end, max(-value, 0.0))
            for (start, end), value in zip(offsets, logprobs, strict=False)
            if value is not None and end > start
        ]

    def _offsets(
        self, prompt: Prompt, tokens: Sequence[str | None], logprobs: Sequence[float | None]
    ) -> Sequence[tuple[int, int]]:
        if not prompt.ids:
            if len(tokens) > 1 and tokens[0] is None:
                return _after_unnamed(prompt.text, [token or "" for token in tokens])
            return aligned(prompt.text, [token or "" for token in tokens])
        if len(logprobs) not in (len(prompt.ids), len(prompt.ids) + 1):
            raise BackendError(
                f"{self.base_url} read {len(logprobs)} tokens where {len(prompt.ids)} were sent;"
                " check that tokenizer= is the model's own"
            )
        return prompt.offsets


def _of_vllm(choice: Mapping[str, Any]) -> Listed | None:
    """Read a list with one {id: {logprob, decoded_token, ...}} a token, null for the first.

    Where more than one candidate is listed, the prompt's own is the first.
    """
    entries: list[dict[str, dict[str, Any]] | None] = choice.get("prompt_logprobs") or []
    empty: dict[str, Any] = {}
    own = [next(iter(entry.values()), empty) if entry else empty for entry in entries]
    if not own:
        return None
    return [e.get("decoded_token") for e in own], [e.get("logprob") for e in own]


def _of_openai(choice: Mapping[str, Any]) -> Listed | None:
    """Read the two lists of the legacy completions API, the generated token at their end."""
    echoed: dict[str, list[Any]] = choice.get("logprobs") or {}
    logprobs = echoed.get("token_logprobs")
    return (list(echoed.get("tokens") or ()), list(logprobs)) if logprobs else None


def _after_unnamed(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Match tokens of which the first is not named: a word's, or a special one before the text."""
    try:
        return aligned(text, tokens)
    except BackendError:
        return [(0, 0), *aligned(text, tokens[1:])]


def _line(said: object) -> str:
    text = " ".join(str(said).split())
    return text[:200] or type(said).__name__
