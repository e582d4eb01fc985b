"""Write the golden files anew: ``python tests/golden/update.py``. Read the difference before you commit it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from llamarig.render.tree import write_tree
from tests.golden.cases import HERE, SPECS, wanted_of


def main() -> None:
    for host in SPECS:
        write_tree(wanted_of(host), HERE / "hosts" / host)


if __name__ == "__main__":
    main()
