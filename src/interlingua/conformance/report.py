"""
The outcome of checks: a score for each law, and what was found.

Reports of dialects, adapters and endpoints have the same form, as text, JSON and JUnit XML.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TypeVar
from xml.etree import ElementTree as ET

import msgspec

from interlingua.conformance.probes import NotApplicableError, ProblemError
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, NetworkError

__all__ = ["Report", "Score", "Violation", "as_json", "as_junit", "as_markdown", "as_text"]

_SHOWN_DETAILS = 3


class Violation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One case that violates one law."""

    law: str
    """The law."""
    case: str
    """The name of the case."""
    details: tuple[str, ...]
    """What was found; for an endpoint, what came back."""
    sent: str = ""
    """What was sent, for an endpoint or an adapter."""
    required: str = ""
    """What the law requires: what to fix."""


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of one law, counted."""

    law: str
    """The law."""
    passed: int = 0
    """How many cases satisfy it."""
    failed: int = 0
    """How many cases violate it."""
    not_applicable: int = 0
    """Cases that have nothing that the law is about."""
    reason: str = ""
    """Why it was not applicable, if that is known."""

    @property
    def status(self) -> str:
        """`failed` if one case failed, `passed` if one passed, else `not applicable`."""
        return "failed" if self.failed else "passed" if self.passed else "not applicable"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The checks that were run, and their violations."""

    dialect: str
    """The dialect."""
    cases: int
    """How many cases there were."""
    checks: int
    """How many checks were run."""
    violations: tuple[Violation, ...]
    """What was found."""
    scores: tuple[Score, ...] = ()
    """The outcomes of each law."""
    subject: str = ""
    """What was checked, if it is not only a dialect: an adapter, or the address of a server."""

    @property
    def percent(self) -> float:
        """The share of the applicable checks that passed; 100 if none was applicable."""
        passed = sum(score.passed for score in self.scores)
        failed = sum(score.failed for score in self.scores)
        return 100.0 * passed / (passed + failed) if passed + failed else 100.0

    def __str__(self) -> str:
        counts = f"{self.checks} checks on {self.cases} cases, {len(self.violations)} broken"
        lines = [f"{self.dialect}: {counts}"]
        for violation in self.violations:
            lines.append(f"  law {violation.law}: {violation.case}")
            lines += [f"    {detail}" for detail in violation.details[:_SHOWN_DETAILS]]
        return "\n".join(lines)


def as_text(report: Report) -> str:
    """Return the report as text: the score, a line for each law, then each finding."""
    title = f"{report.subject} ({report.dialect})" if report.subject else report.dialect
    width = max((len(score.law) for score in report.scores), default=0)
    lines = [f"{title}: {report.percent:.0f} %"]
    lines += [f"  {score.law:{width}}  {_counts(score)}" for score in report.scores]
    for violation in report.violations:
        lines += ["", f"{violation.law}: {violation.case}", *_finding(violation)]
    return "\n".join(lines)


def _counts(score: Score) -> str:
    counts = f"{score.passed:5} passed {score.failed:5} failed {score.not_applicable:5} n/a"
    return f"{counts}  ({score.reason})" if score.reason else counts


def _finding(violation: Violation) -> Iterator[str]:
    if violation.sent:
        yield f"  sent:     {violation.sent}"
    for index, detail in enumerate(violation.details[:_SHOWN_DETAILS]):
        yield f"  {'found:' if index == 0 else '':9} {detail}"
    if len(violation.details) > _SHOWN_DETAILS:
        yield f"            and {len(violation.details) - _SHOWN_DETAILS} more"
    if violation.required:
        yield f"  required: {violation.required}"


def as_markdown(report: Report) -> str:
    """Return the report as Markdown: a table of laws, then a list of findings."""
    lines = [
        f"**{report.dialect}: {report.percent:.0f} %**",
        "",
        "| check | passed | failed | not applicable |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {score.law} | {score.passed or ''} | {score.failed or ''} "
        f"| {score.reason or score.not_applicable or ''} |"
        for score in report.scores
    ]
    for violation in report.violations:
        found = " ".join("; ".join(violation.details[:_SHOWN_DETAILS]).split())
        lines += ["", f"- **{violation.law}** ({violation.case}): {violation.required}"]
        lines += [f"  Found: `{found.replace('`', chr(39))}`"]
    return "\n".join(lines)


def as_json(report: Report) -> dict[str, Json]:
    """Return the report as a JSON object, with `percent`."""
    document: dict[str, Json] = msgspec.to_builtins(report)
    return {**document, "percent": round(report.percent, 2)}


def as_junit(reports: Iterable[Report]) -> str:
    """Return the reports as JUnit XML: a suite for each report, a test case for each law."""
    root = ET.Element("testsuites")
    for report in reports:
        states = [score.status for score in report.scores]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_xml_text(f"{report.dialect} {report.subject}".strip()),
            tests=str(len(states)),
            failures=str(states.count("failed")),
            skipped=str(states.count("not applicable")),
        )
        for score in report.scores:
            _add_case(suite, report, score)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ET.Element, report: Report, score: Score) -> None:
    element = ET.SubElement(suite, "testcase", classname=report.dialect, name=score.law)
    if score.status == "not applicable":
        ET.SubElement(element, "skipped", message=score.reason or "nothing to check")
    for violation in report.violations:
        if violation.law == score.law:
            message = _xml_text(violation.required or violation.case)
            failure = ET.SubElement(element, "failure", message=message)
            failure.text = _xml_text("\n".join((violation.case, *_finding(violation))))


def _xml_text(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


T = TypeVar("T")


def choose(
    checks: Mapping[str, Callable[[T], Awaitable[None]]], names: Iterable[str] | None
) -> Mapping[str, Callable[[T], Awaitable[None]]]:
    """Return the checks of these names; `ConfigurationError` for an unknown name."""
    if names is None:
        return checks
    chosen = list(names)
    for name in chosen:
        if name not in checks:
            raise ConfigurationError(f"No check {name!r}. There are {', '.join(checks)}.")
    return {name: checks[name] for name in chosen}


async def run_check(
    name: str, check: Callable[[T], Awaitable[None]], subject: T, *, is_first: bool = False
) -> tuple[Score, list[Violation]]:
    """
    Run a check; returns its score and what it found.

    If the first check cannot connect, nothing is there to be checked: `NetworkError` is raised.
    """
    case = (check.__doc__ or "").strip()
    try:
        await check(subject)
    except NotApplicableError as error:
        return Score(law=name, not_applicable=1, reason=str(error)), []
    except ProblemError as problem:
        violation = Violation(
            law=name,
            case=case,
            details=(problem.received,),
            sent=problem.sent,
            required=problem.required,
        )
    except Exception as error:
        if is_first and isinstance(error, NetworkError):
            raise
        violation = Violation(
            law=name,
            case=case,
            details=(f"{type(error).__name__}: {error}",),
            required="reply completely, without an exception",
        )
    else:
        return Score(law=name, passed=1), []
    return Score(law=name, failed=1), [violation]
