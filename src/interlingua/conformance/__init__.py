"""
Laws that every dialect keeps, and the means to check them on a dialect of your own.

Import from its modules: `laws` checks a dialect on recorded exchanges, `recordings` reads those of
`interlingua record`, `canonical` checks that requests survive a dialect, `strategies` (needs
`hypothesis`) makes values for both. `endpoint` checks a running server over HTTP, `adapter` an
adapter, `plugin` runs any of these as tests of pytest, and `report` has the scores.
"""

__all__ = [
    "adapter",
    "canonical",
    "endpoint",
    "laws",
    "plugin",
    "recordings",
    "report",
    "strategies",
]
