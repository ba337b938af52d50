"""Runs the command line from a checkout (``python cli.py ...``); not part of the installed package."""

from __future__ import annotations

import sys

from hwmodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
