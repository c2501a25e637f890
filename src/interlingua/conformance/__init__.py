"""
Laws that every dialect keeps, and the means to check them on a dialect of your own.

Import from its modules: `report` checks a dialect, `cases` reads recorded exchanges, `laws` and
`cross` are the laws, `canonical` and `strategies` (needs `hypothesis`) make values for them.
"""

__all__ = ["canonical", "cases", "cross", "laws", "report", "strategies"]
