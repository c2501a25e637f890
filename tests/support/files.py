"""What another process does to a file between two looks of ours, at a place that a test chooses."""

from pathlib import Path


def after_stat(monkeypatch, path, action, count=1):
    """Do something once, right after the file was looked at for the given time."""
    original, left = Path.stat, [count]

    def stat(self, **options):
        try:
            return original(self, **options)
        finally:
            if self == Path(path):
                left[0] -= 1
                if left[0] == 0:
                    action()

    monkeypatch.setattr(Path, "stat", stat)
