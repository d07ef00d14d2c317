"""``python -m berth``, ``berth`` and ``kubectl berth``."""

import sys

from berth.cli import run


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
