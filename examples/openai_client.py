"""Wrap an OpenAI client: the same call with a shorter prompt.

Works with any OpenAI-compatible server: set OPENAI_BASE_URL (and OPENAI_API_KEY if it wants one).
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from openai import AsyncOpenAI

from headrace import Compress, Message, Request


class Compressed:
    """A client whose chat calls send fewer tokens; everything else is the client's own."""

    def __init__(self, client: AsyncOpenAI, rate: float) -> None:
        self._client = client
        self._stage = Compress(rate, last_user="context")

    async def create(self, messages: Sequence[dict[str, Any]], **options: Any) -> Any:
        """Call ``client.chat.completions.create`` with the messages compressed."""
        request = Request(tuple(Message.from_dict(message) for message in messages))
        request = await self._stage.transform(request)
        print(request.report.stages[-1].decision)
        sent: Any = [message.to_dict() for message in request.messages]
        return await self._client.chat.completions.create(messages=sent, **options)


async def main() -> None:
    """Ask about a long text."""
    client = AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"))
    model = (await client.models.list()).data[0].id
    log = "\n".join(
        f"2024-05-0{d} worker {d} finished job {d * 17} without errors" for d in range(1, 9)
    )
    text = f"{log}\n2024-05-09 worker 9 failed job 153: disk full\n\nWhich job failed?"
    answer = await Compressed(client, rate=0.7).create(
        [{"role": "user", "content": text}], model=model, max_tokens=30
    )
    print(answer.choices[0].message.content)


asyncio.run(main())
