"""``python -m berth``, ``berth`` and ``kubectl berth``."""

import sys

from berth import cli


def main() -> None:
    sys.exit(cli.main(sys.argv[1:]))


if __name__ == "__main__":
    main()
