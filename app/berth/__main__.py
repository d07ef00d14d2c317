"""``python -m berth`` and the ``berth`` command."""

import sys

from berth.cli import run


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
