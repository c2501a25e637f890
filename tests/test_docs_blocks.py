"""Every block of code in the documentation has a test that runs it; here are the rarer kinds."""

import asyncio
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from interlingua import Client, sync
from support.http_calls import make_certificate, server_tls
from support.node import run_node
from support.reader import simulated_providers
from support.servers import Server

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.md")),
]
FENCE = re.compile(r"^ *(?:```|~~~)(.*)$")
NOTEBOOKS = "docs/howto/notebooks.md"

TESTS = {
    "python": r"README\.md|docs/.*",  # tests/test_docs.py: test_examples_run
    "console": r"README\.md|docs/.*",  # tests/cli/test_page.py: test_the_commands_run
    "py": r"docs/coming-from/.*|docs/reference/.*|docs/howto/observability\.md|"
    + re.escape(NOTEBOOKS),
    # tests/test_docs.py: test_the_code_of_other_libraries_runs
    # tests/test_reference.py: test_signatures_are_those_of_python, test_values_are_those_of_python
    # tests/test_examples.py: test_the_page_about_notebooks
    # below: test_the_exporter_of_spans, test_a_provider_package
    "toml": r"docs/howto/(?:provider-package|plugins)\.md",  # below; tests/cli/test_plugins.py
    "ts": r"docs/coming-from/vercel-ai\.md",  # below
    # below; tests/cli/test_configuration.py: test_the_file_of_the_page
    "yaml": r"docs/howto/(?:registry-file|configuration)\.md",
    "sh": r"docs/howto/command-line\.md",  # tests/cli/test_page.py, by its first words
    "text": "",  # what the block before it prints; if that prints nothing, it is in TEXTS
}
"""The pages on which blocks of a language are run, and where."""

TEXTS = {
    ("CONTRIBUTING.md", "cli/ "): "tests/test_docs.py: test_the_map_names_every_room",
    ("docs/howto/agents.md", "$ pip install"): "tests/cli/test_connect.py",
    ("docs/howto/agents.md", "$ export INTER"): "tests/cli/test_connect.py",
    ("docs/howto/bulk.md", "$ interlingua bulk run"): "tests/distributed/job.py",
    ("docs/howto/gateway.md", "pip install"): "tests/gateway/test_page.py",
    ("docs/howto/gateway.md", "Serving on"): "tests/gateway/test_page.py",
    ("docs/howto/gateway.md", "ANTHROPIC_BASE_URL="): "tests/gateway/test_page.py",
    ("docs/howto/gateway.md", "adapters:"): "tests/gateway/test_page.py",
    ("docs/howto/gateway.md", "claude-* ->"): "tests/gateway/test_page.py",
    ("docs/howto/gateway.md", "gateway:"): "tests/gateway/test_page.py",
    ("docs/howto/plugins.md", "$ interlingua plugins"): "tests/cli/test_plugins.py",
    ("docs/howto/plugins.md", "interlingua-tides/"): "tests/cli/test_plugins.py",
    ("docs/howto/recording.md", "$ interlingua record"): "tests/cli/test_page.py",
}
"""Texts that are not the output of the block before them, and who compares them."""


def blocks_of(page):
    """The language and the text of each block, and the prose around them, without its indent."""
    blocks, prose, inside = [], [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = FENCE.match(line)
        if fence and not inside:
            blocks.append((fence[1], []))
        elif inside and not fence:
            blocks[-1][1].append(line)
        elif not fence:
            prose.append(line)
        inside = inside != bool(fence)
    assert not inside, f"{page} has a block without an end"
    return [(language, "\n".join(lines)) for language, lines in blocks], prose


def is_tested(name, language, body, before):
    """Whether a test runs a block, or compares it."""
    if language != "text":
        return language in TESTS and re.fullmatch(TESTS[language], name)
    is_output = before == "python" or (before == "py" and name == NOTEBOOKS)
    return is_output or any(name == page and body.startswith(head) for page, head in TEXTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_has_a_test(page):
    """A block of another language, or on a page where it is not run, needs one: see above."""
    name = page.relative_to(ROOT).as_posix()
    before = None
    for language, body in blocks_of(page)[0]:
        assert is_tested(name, language, body, before), f"{name} has a block of {language}:\n{body}"
        before = language


def test_indented_code_is_only_in_docstrings():
    """Elsewhere code is fenced, so that it is run."""
    for page in PAGES:
        if page.parent != DOCS / "reference":  # tests/test_docstring_examples.py runs that
            _, prose = blocks_of(page)
            pairs = zip(["", *prose], prose, strict=False)
            assert [line for last, line in pairs if not last and line.startswith("    ")] == []


def test_a_block_without_a_test_is_found(tmp_path):
    """Unknown languages, no language, and texts that nothing prints."""
    page = tmp_path / "page.md"
    page.write_text("a\n```toml\na = 1\n```\n```\nb\n```\n```text\nc\n```\n", encoding="utf-8")

    blocks, prose = blocks_of(page)

    assert blocks == [("toml", "a = 1"), ("", "b"), ("text", "c")]
    assert prose == ["a"]
    assert not any(is_tested("docs/page.md", *block, "toml") for block in blocks)
    assert is_tested("docs/page.md", "python", "", None)
    assert not is_tested("CHANGELOG.md", "python", "", None)


def block_of(page, language):
    """All blocks of a language on a page, as one text."""
    found = [body for kind, body in blocks_of(DOCS / page)[0] if kind == language]
    assert found
    return "\n".join(found)


# A registry file.


def test_the_registry_file(tmp_path):
    """It is read as it is shown, and its models are found by the names that it gives them."""
    path = tmp_path / "models.yaml"
    path.write_text(block_of("howto/registry-file.md", "yaml"), encoding="utf-8")

    registry = Client.from_file(path, {"ANTHROPIC_API_KEY": "a-key"}).registry

    assert registry.find("best").can_delegate
    assert registry.find("best").wire_name == "claude-opus-4-6"
    assert registry.find("house-llama").adapter == "house"


# A package with a provider.


def test_a_provider_package(tmp_path):
    """Built as the page says and installed, it adds the provider to the library."""
    (first, *_), (project,) = (
        [
            body
            for kind, body in blocks_of(DOCS / "howto/provider-package.md")[0]
            if kind == language
        ]
        for language in ("python", "toml")
    )
    row = first.partition("client = ")[0]
    (tmp_path / "interlingua_acme.py").write_text(row, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(build, cwd=tmp_path, capture_output=True, check=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    program = (
        "from interlingua import Client, Request\n"
        "client = Client.from_env({'ACME_API_KEY': 'key'})\n"
        "print(client.explain(Request(model='acme:large', messages='Hi.')).url)\n"
    )
    path = os.pathsep.join((str(tmp_path / "installed"), str(ROOT / "src")))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )

    assert done.stdout == "https://api.acme.example/v1/chat/completions\n"


# A proxy.


def relay_to(port):
    """A script of a server that passes all bytes on to another one."""

    async def script(connection):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(
                pass_on(connection.reader, writer), pass_on(reader, connection.writer)
            )
        finally:
            writer.transport.abort()

    return script


def tunnel_to(port):
    """A script of a proxy whose tunnels all end there."""

    async def script(connection):
        await connection.read_request()
        await connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await relay_to(port)(connection)

    return script


async def pass_on(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def test_the_first_call_through_a_proxy(monkeypatch, tmp_path):
    """It goes to OpenAI's address through a proxy with another authority, as the page says."""
    certificate = make_certificate(tmp_path / "company.pem", name="api.openai.com")
    first = next(body for kind, body in blocks_of(DOCS / "howto/proxies.md")[0] if kind == "python")
    with (
        simulated_providers(monkeypatch, "Oslo.") as simulator,
        Server(relay_to(simulator.port), tls=server_tls(certificate)) as openai,
        Server(tunnel_to(openai.port)) as proxy,
    ):
        replaced = ("https_proxy", "no_proxy", "NO_PROXY", "OPENAI_BASE_URL")
        env = {name: value for name, value in os.environ.items() if name not in replaced}
        env["PYTHONPATH"] = str(ROOT / "src")
        env["HTTPS_PROXY"] = f"http://127.0.0.1:{proxy.port}"
        env["SSL_CERT_FILE"] = str(certificate)
        program = [sys.executable, "-c", first]  # a process loads the certificates once
        done = subprocess.run(program, env=env, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("Oslo.\n", "")
    (asked,) = proxy.requests
    assert (asked.method, asked.target) == ("CONNECT", "api.openai.com:443")


# Spans.


def test_the_exporter_of_spans(monkeypatch):
    """The program of the page, with an exporter that has the name and place of the real one."""
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    trace = pytest.importorskip("opentelemetry.trace")
    module = ModuleType("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    exporter = memory.InMemorySpanExporter()
    module.OTLPSpanExporter = lambda: exporter
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for depth in range(2, 6):
        parent = ".".join(module.__name__.split(".")[:depth])
        monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    providers = []
    monkeypatch.setattr(trace, "set_tracer_provider", providers.append)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: providers[-1])
    with simulated_providers(monkeypatch):
        exec(block_of("howto/observability.md", "py"), {})  # noqa: S102 -- our own page
        sync.generate("openai:gpt-5.2", "Hi.")
        providers[0].shutdown()

    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["attempt gpt-5.2", "chat gpt-5.2"]
    assert "gen_ai.input.messages" in spans[-1].attributes


# TypeScript.

PACKAGES = ("ai", "@ai-sdk/anthropic", "@ai-sdk/openai", "@ai-sdk/google", "zod")
"""`npm install --no-save` installs them in the folder of the project."""
REDIRECT = """
const send = globalThis.fetch;
globalThis.fetch = (address, options) =>
  send(String(address).replace(/^https:\\/\\/[^/]+/, process.env.SERVER), options);
"""


def test_the_typescript_is_valid(tmp_path):
    """Also where the library is not installed; what is wrong is found."""
    (tmp_path / "page.mjs").write_text(block_of("coming-from/vercel-ai.md", "ts"))
    (tmp_path / "wrong.mjs").write_text("const { text } = await;\n")

    assert run_node("--check", tmp_path / "page.mjs") == (0, "", "")
    assert run_node("--check", tmp_path / "wrong.mjs")[0] == 1


def test_the_typescript_runs(tmp_path, monkeypatch):
    """With the simulator at the addresses of the providers: it answers as the page says."""
    modules = ROOT / "node_modules"
    if not all((modules / package).is_dir() for package in PACKAGES):
        pytest.skip(f"not installed: npm install --no-save {' '.join(PACKAGES)}")
    (tmp_path / "node_modules").symlink_to(modules, target_is_directory=True)
    (tmp_path / "redirect.mjs").write_text(REDIRECT)
    shown = "\nconsole.log(JSON.stringify([text, object]));\n"
    (tmp_path / "page.mjs").write_text(block_of("coming-from/vercel-ai.md", "ts") + shown)
    with simulated_providers(monkeypatch) as server:
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):  # its own addresses, redirected
            monkeypatch.delenv(name)
        done = run_node(
            "--import",
            tmp_path / "redirect.mjs",
            tmp_path / "page.mjs",
            SERVER=server.url,
            GOOGLE_GENERATIVE_AI_API_KEY="a-key-of-the-reader",
        )

    assert (done[0], done[2]) == (0, "")
    assert "simulated answer" in done[1]
    assert '{"name":"Alice","age":30}' in done[1]
