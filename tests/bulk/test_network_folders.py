"""A ledger in a SQLite file is refused in a folder of another machine."""

import asyncio
from pathlib import Path

import pytest

from interlingua.bulk.ledger import sqlite
from interlingua.bulk.ledger.open import open_ledger
from interlingua.errors import ConfigurationError

MOUNTS = """\
22 1 252:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
25 22 0:23 / /proc rw,nosuid - proc proc rw
41 22 0:37 / /mnt/team rw,relatime shared:20 - nfs4 files:/export/team rw,vers=4.2,hard
42 41 8:16 / /mnt/team/local rw,relatime - xfs /dev/sdb rw
43 22 0:38 / /mnt/My\\040Share rw,relatime - cifs //files/share rw,username=me
44 22 0:39 / /mnt/far rw - fuse.sshfs me@far:/data rw,user_id=0
45 22 0:40 / /mnt/twice rw - nfs files:/old rw
46 22 0:41 / /mnt/twice rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me", None),
        ("/mnt/team", "nfs4"),
        ("/mnt/team/jobs/today", "nfs4"),
        ("/mnt/team/local/jobs", None),
        ("/mnt/teamwork", None),
        ("/mnt/My Share/jobs", "cifs"),
        ("/mnt/far/jobs", "sshfs"),
        ("/mnt/twice", None),
    ],
)
def test_the_file_system_of_a_folder_is_known(folder, kind):
    """The innermost mount counts, and the last of those at one place."""
    assert sqlite.network_type(Path(folder), MOUNTS) == kind


def test_a_ledger_on_a_network_folder_is_refused(tmp_path, monkeypatch):
    """The message says where it can be; nothing is made in the folder."""
    mounts = tmp_path / "mounts"
    folder = tmp_path / "shared"
    folder.mkdir()
    mounts.write_text(f"{MOUNTS}47 22 0:42 / {folder.resolve()} rw - nfs4 files:/export rw\n")
    monkeypatch.setattr(sqlite, "_MOUNTS", mounts)

    async def work(path):
        ledger = open_ledger(str(path))
        try:
            await ledger.open()
        finally:
            await ledger.close()

    with pytest.raises(ConfigurationError, match=r"network folder \(nfs4\).*local disk"):
        asyncio.run(work(folder / "ledger.sqlite"))
    assert not list(folder.iterdir())
    asyncio.run(work(tmp_path / "ledger.sqlite"))
