"""The plugin makes a test of each law, and prints the score."""

import subprocess
import sys
import textwrap

from interlingua.conformance import adapter, endpoint, laws
from interlingua.simulator import Simulator, serve_in_thread, use_tools, within_limits


def pytest_run(folder, source, *arguments):
    (folder / "conftest.py").write_text('pytest_plugins = ["interlingua.conformance.plugin"]\n')
    (folder / "test_it.py").write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", *arguments]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), str(folder)],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


DIALECT = """
    import pytest
    from interlingua import dialects
    from interlingua.conformance.laws import Case
    from interlingua.dialects import WireCall

    class Broken:
        def __getattr__(self, name):
            return getattr(dialects.get("openai_chat"), name)
        def {broken}:
            return {value}

    CASE = Case(name="hi", call=WireCall(body={{"model": "m", "messages": []}}))

    @pytest.mark.conformance(dialect=Broken(), cases=[CASE])
    def test_conforms(conformance):
        conformance()
"""


def test_a_dialect(tmp_path):
    """Laws about streams are skipped for a case without one; the others pass or fail."""
    good = DIALECT.format(broken="nothing(self)", value="None")
    code, output = pytest_run(tmp_path, good)

    assert code == 0, output
    assert "4 passed, 5 skipped" in output
    assert "conformance of openai_chat: 100 % (4 of 4 checks)" in output

    bad = DIALECT.format(broken="decode_request(self, call)", value="1 / 0")
    code, output = pytest_run(tmp_path, bad)

    assert code == 1
    assert "raised ZeroDivisionError" in output
    assert "conformance of openai_chat: 25 % (1 of 4 checks)" in output


def test_an_adapter_and_a_server(tmp_path):
    """Both are asked over HTTP."""
    app = Simulator(within_limits(use_tools), key="sk-k", models=["m"])
    source = """
        import pytest
        from interlingua import HttpAdapter

        def mine():
            return HttpAdapter("anthropic", "sk-k", base_url="{url}")

        @pytest.mark.conformance(adapter=mine, model="m")
        @pytest.mark.conformance(url="{url}", dialect="gemini_generate", model="m", key="sk-k")
        def test_conforms(conformance):
            conformance()
    """
    with serve_in_thread(app) as server:
        code, output = pytest_run(tmp_path, source.replace("{url}", server.url))

    count = len(adapter.CHECKS)
    assert code == 0, output
    assert f"conformance of mine: 100 % ({count} of {count} checks)" in output
    whole = len(endpoint.CHECKS)
    assert f"conformance of {server.url}: 100 % ({whole} of {whole} checks)" in output


def test_a_test_without_a_mark_is_an_error(tmp_path):
    """It says what to write."""
    code, output = pytest_run(tmp_path, "def test_it(conformance): conformance()")

    assert code != 0
    assert "needs the mark conformance with dialect= and cases=" in output


def test_every_law_has_a_sentence_that_findings_show():
    """What a finding requires is the sentence of its law."""
    for law in laws.LAWS.values():
        assert ": " in (law.__doc__ or ""), law
