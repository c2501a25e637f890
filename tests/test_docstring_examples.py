"""The examples in docstrings, which the reference shows, run."""

import ast
import asyncio
import importlib
import json
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

import interlingua
from interlingua import batch, set_default_client, stores, sync, tool
from interlingua.simulator import scripted
from support import reader

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from docs_build import reference, source  # noqa: E402

PNG = b"\x89PNG\r\n\x1a\n"
CODE = re.compile(r"(?:^    .*(?:\n|\Z)|^\n(?=    ))+", re.MULTILINE)
EXAMPLES = {
    f"{module}.{name}": textwrap.dedent("\n".join(blocks))
    for module, names in reference.placed().items()
    for name in names
    if (blocks := [code for code in CODE.findall(source.find(module, name).doc) if code.strip()])
}
NOT_RUN = {
    "interlingua.LocalAdapter": "it starts the real model; the tutorial is run with it",
    "interlingua.mcp.mcp_tools": "it starts another program; the page about MCP has its own",
    "interlingua.sync.mcp_tools": "as above",
}
DOCUMENTS = 'documents = ["Jane Austen wrote Emma.", "Oslo is in Norway."]'
BEFORE = {
    "interlingua.catalog.Registry": """
        entry = {"aliases": ["opus"], "adapter": "openai"}
        Path("m.yaml").write_text(json.dumps({"adapters": {"openai": {}}, "models": {"m": entry}}))
        registry = Client.from_file("m.yaml", {}).registry""",
    "interlingua.serving.SealedState": """
        from interlingua.dialects import get
        upstream, client = get("anthropic_messages"), get("openai_responses")
        key, call = bytes(16), client.encode_request(Request(model="m", messages="Hi."))
        async def ask_upstream(request):
            return await Client.from_env().complete(Request(model=MODEL, messages="Hi."))""",
    "interlingua.dialects.StreamAccumulator": 'events = [e async for e in stream(MODEL, "Hi.")]',
    "interlingua.integrations.sdk.blocking_http_client": """
        import anthropic
        from interlingua.integrations import sdk
        client = Client.from_env()""",
    "interlingua.integrations.sdk.http_client": """
        import openai
        from interlingua.integrations import sdk
        client = Client.from_env()""",
    **{
        f"{module}.{name}": f"""
        from {module} import embed, run
        Path("books.csv").write_text("title\\nEmma\\n")"""
        for module in ("interlingua.bulk", "interlingua.bulk.sync")
        for name in ("embed", "run")
    },
    **{
        f"{module}.{name}": f"""
        from {module} import read_rows
        Path("books.jsonl").write_text('{{"title": "Emma"}}')
        {wait}run("books.jsonl", "genres.jsonl", model=MODEL, prompt="Genre of {{title}}?")"""
        for module, wait in (("interlingua.bulk", "await "), ("interlingua.bulk.sync", ""))
        for name in ("export", "read_rows", "status")
    },
    "interlingua.bulk.Worker": """
        from interlingua import bulk
        job = Job(model="openai:gpt-5.2", prompt="Genre of {title}?")
        def WorkerConfig(**settings):
            return bulk.WorkerConfig(**{**settings, "ledger": "ledger.sqlite"})""",
    "interlingua.batch.status": """
        made = await submit({"a": "Hi."}, "openai:gpt-5.2")
        def status(_reference):
            return batch.status(made.reference)""",
    "interlingua.batch.results": """
        made = await submit({"a": "Hi."}, "openai:gpt-5.2")
        def results(_reference):
            return batch.results(made.reference)""",
    "interlingua.media.ImageResult": """
        result = await generate_image("openai:gpt-image-2", "A lighthouse.")""",
    "interlingua.media.rank": """
        texts = ["red bicycle", "sea"]
        query = await embed("openai:text-embedding-3-small", "bicycle")
        documents = await embed_many("openai:text-embedding-3-small", texts)""",
    "interlingua.media.rerank": DOCUMENTS,
    "interlingua.sync.media.rerank": DOCUMENTS,
    "interlingua.sync.batch.results": """
        made = submit({"a": "Hi."}, "openai:gpt-5.2")
        def results(_reference):
            return sync.batch.results(made.reference)""",
    "interlingua.sync.batch.status": """
        made = submit({"a": "Hi."}, "openai:gpt-5.2")
        def status(_reference):
            return sync.batch.status(made.reference)""",
}
"""What an example takes for granted that the names below do not have."""


@dataclass
class Person:
    """A record that objects are asked for."""

    name: str
    age: int


@tool
def get_weather(city: str = "Oslo") -> str:
    """The weather in a city."""
    return f"{city}: 4 C, rain"


class Player:
    """Plays sound."""

    write = staticmethod(len)


def names_of_the_reader(module):
    """What a program has imported and defined that uses the names of a module."""
    is_blocking = ".sync" in module
    imported = [
        ("interlingua", interlingua.__all__),
        ("interlingua.errors", interlingua.errors.__all__),
        *([("interlingua.sync", sync.__all__)] if is_blocking else []),
        (module, source.names_of(module)),
    ]
    names = {
        name: getattr(importlib.import_module(owner), name)
        for owner, listed in imported
        for name in listed
    }
    own = {
        "MODEL": "anthropic:claude-haiku-4-5",
        "Path": Path,
        "Person": Person,
        "Recipe": Person,
        "adapters": {"openai": interlingua.OpenAIAdapter("a-key")},
        "asyncio": asyncio,
        "batch": batch,
        "data": PNG,
        "get_weather": get_weather,
        "json": json,
        "key_a": "a-key",
        "key_b": "another-key",
        "look": get_weather,
        "model": "openai:gpt-5.2",
        "player": Player(),
        "prompt": "Hello.",
        "prompts": ["Hello.", "Goodbye."],
        "read_rows": lambda: iter(["Hello.", "Goodbye."]),
        "save": len,
        "show": str,
        "store": stores.MemoryStore(),
        "sync": sync,
        "texts": ["Hello.", "Goodbye."],
        "tools": [get_weather],
    }
    return {**names, **own}


@pytest.fixture
def reader_environment(monkeypatch, tmp_path):
    """The files and the providers of a reader."""
    monkeypatch.chdir(tmp_path)
    for name, head in {"lighthouse.png": PNG, "call.mp3": b"ID3", "talk.mp4": b""}.items():
        Path(name).write_bytes(head.ljust(100, b"\0"))
    with reader.simulated_providers(monkeypatch) as server:
        monkeypatch.setenv("GROQ_BASE_URL", f"{server.url}/v1")
        set_default_client(scripted(reader.answer))
        yield


@pytest.mark.usefixtures("reader_environment")
@pytest.mark.parametrize("place", sorted(EXAMPLES.keys() - NOT_RUN))
def test_it_runs(place):
    """With simulated models, and what it takes for granted."""
    names = names_of_the_reader(place.rpartition(".")[0])
    before = textwrap.dedent(BEFORE.get(place, ""))
    code = textwrap.indent(f"{before}\n{EXAMPLES[place]}", "    ")
    if place.startswith("interlingua.sync."):
        exec(f"def example():\n{code}", names)  # noqa: S102 -- our own docstrings
        names["example"]()
    else:
        exec(f"async def example():\n{code}", names)  # noqa: S102 -- our own docstrings
        asyncio.run(names["example"]())


def test_those_that_do_not_run_compile():
    """What is listed exists, and is Python."""
    assert NOT_RUN.keys() | BEFORE.keys() <= EXAMPLES.keys()
    for place in NOT_RUN:
        ast.parse("async def example():\n" + textwrap.indent(EXAMPLES[place], "    "))
    assert len(EXAMPLES) > 50
