"""Every example in the documentation runs."""

import re
from pathlib import Path

import pytest

from interlingua.api.default import set_default_client
from interlingua.simulator import Simulator, serve_in_thread, text, use_tools

ROOT = Path(__file__).resolve().parents[1]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def providers(monkeypatch):
    """Keys and addresses in the environment, as a reader would have them; the simulator answers."""

    def answer(request):
        if request.response_format is not None:
            return text('{"name": "Alice", "age": 30}')
        return use_tools(request)

    with serve_in_thread(Simulator(answer)) as server:
        for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
            monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-the-reader")
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
        yield
        set_default_client(None)


@pytest.mark.usefixtures("providers")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page):
    """The Python blocks of a page run one after another, in one namespace."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    namespace = {"__name__": page.stem}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102 -- our own pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Relative links name files that exist."""
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
