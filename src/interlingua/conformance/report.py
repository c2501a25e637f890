"""Run the laws over cases and count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from interlingua.conformance.cases import Case
from interlingua.conformance.laws import LAWS, Law
from interlingua.spec.contracts import Dialect


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One case that breaks one law."""

    law: str
    case: str
    details: tuple[str, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was run, and what broke."""

    dialect: str
    cases: int
    checks: int
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        head = f"{self.dialect}: {self.checks} checks on {self.cases} cases, "
        lines = [head + f"{len(self.violations)} broken"]
        for broken in self.violations:
            lines.append(f"  law {broken.law}: {broken.case}")
            lines += [f"    {detail}" for detail in broken.details[:3]]
        return "\n".join(lines)


def check(dialect: Dialect, cases: Iterable[Case], laws: Mapping[str, Law] | None = None) -> Report:
    """Every law on every case. An exception is a violation, named by its type."""
    chosen = LAWS if laws is None else laws
    seen, checks = 0, 0
    violations: list[Violation] = []
    for case in cases:
        seen += 1
        for name, law in chosen.items():
            checks += 1
            details = _run(law, dialect, case)
            if details:
                violations.append(Violation(law=name, case=case.name, details=tuple(details)))
    return Report(dialect=dialect.NAME, cases=seen, checks=checks, violations=tuple(violations))


def _run(law: Law, dialect: Dialect, case: Case) -> list[str]:
    try:
        return law(dialect, case)
    except Exception as error:  # noqa: BLE001 -- whatever escapes from a dialect is the finding
        return [f"raised {type(error).__name__}: {error}"]
