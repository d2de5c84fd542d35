"""``python -m mxprobe`` runs the command."""

from ._command import main

main()
