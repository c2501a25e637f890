"""
A pytest plugin: each law, or each check, is a test of its own, and the score is in the summary.

In `conftest.py`: `pytest_plugins = ["interlingua.conformance.plugin"]`. In a test file, one of:

    @pytest.mark.conformance(dialect=postcard, cases=[case])
    @pytest.mark.conformance(adapter=make_adapter, model="m")
    @pytest.mark.conformance(url="http://127.0.0.1:8080", dialect="my_dialect", model="m")
    def test_it_conforms(conformance):
        conformance()

`adapter` is a function that makes the adapter. A check that does not apply is skipped.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

try:
    import pytest
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "`interlingua.conformance.plugin` needs pytest. Install it with `pip install pytest`.",
        name=error.name,
    ) from error

from interlingua.conformance import adapter as adapters
from interlingua.conformance import endpoint as endpoints
from interlingua.conformance.laws import LAWS, check
from interlingua.conformance.report import Report, as_text
from interlingua.spec.errors import ConfigurationError

__all__ = [
    "conformance",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_terminal_summary",
]

_PROPERTY = "conformance"
_FORMS = "dialect= and cases=, adapter= and model=, or url=, dialect= and model="


class _Check(NamedTuple):
    subject: str
    law: str
    run: Callable[[], Report]


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    line = f"conformance(...): check a dialect, an adapter or a server; give {_FORMS}"
    config.addinivalue_line("markers", line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each law or check of the mark `conformance`."""
    if "conformance" not in metafunc.fixturenames:
        return
    checks = [
        each
        for mark in metafunc.definition.iter_markers("conformance")
        for each in _checks(dict(mark.kwargs))
    ]
    if not checks:
        raise ConfigurationError(f"A test of conformance needs the mark conformance with {_FORMS}.")
    ids = [f"{each.subject}-{each.law}" for each in checks]
    metafunc.parametrize("conformance", checks, ids=ids, indirect=True)


def _checks(given: dict[str, Any]) -> list[_Check]:
    if "url" in given:
        make = partial(_check_endpoint, given)
        return [_Check(given["url"], name, partial(make, name)) for name in endpoints.CHECKS]
    if "adapter" in given:
        subject = getattr(given["adapter"], "__name__", "adapter")
        run = partial(_check_adapter, given)
        return [_Check(subject, name, partial(run, name)) for name in adapters.CHECKS]
    if "dialect" in given and "cases" in given:
        dialect, cases = given["dialect"], list(given["cases"])
        laws = given.get("laws", LAWS)
        return [
            _Check(dialect.NAME, name, partial(check, dialect, cases, {name: law}))
            for name, law in laws.items()
        ]
    raise ConfigurationError(f"The mark conformance needs {_FORMS}.")


def _check_endpoint(given: dict[str, Any], name: str) -> Report:
    return asyncio.run(endpoints.check_endpoint(**{"checks": [name], **given}))


def _check_adapter(given: dict[str, Any], name: str) -> Report:
    async def run() -> Report:
        made = given["adapter"]()
        try:
            return await adapters.check_adapter(made, given.get("model", ""), checks=[name])
        finally:
            closed = close() if (close := getattr(made, "close", None)) else None
            if inspect.isawaitable(closed):
                await closed

    return asyncio.run(run())


@pytest.fixture
def conformance(request: pytest.FixtureRequest) -> Callable[[], None]:
    """A function that runs the check of this test: it fails with the finding, or skips."""
    each: _Check = request.param

    def run() -> None:
        report = each.run()
        score = report.scores[0]
        counts = [score.passed, score.failed, score.not_applicable]
        request.node.user_properties.append((_PROPERTY, [each.subject, each.law, *counts]))
        if report.violations:
            pytest.fail(as_text(report), pytrace=False)
        if score.status == "not applicable":
            pytest.skip(score.reason or "no case has anything that the law is about")

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the score of each subject."""
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == _PROPERTY and report.when == "call":
                    passed[value[0]] += value[2]
                    failed[value[0]] += value[3]
    for subject in sorted({*passed, *failed}):
        whole = passed[subject] + failed[subject]
        share = 100 * passed[subject] / whole if whole else 100
        terminalreporter.write_line(
            f"conformance of {subject}: {share:.0f} % ({passed[subject]} of {whole} checks)"
        )
