"""``python -m mxprobe`` is the command."""

from ._command import main

main()
