#!/bin/sh
# Epilog: a node whose units compute wrong bits after a job fails it, so that Slurm drains the node.
MXPROBE=${MXPROBE:-mxprobe}
"$MXPROBE" screen -q ${SCREEN_ARGUMENTS:-} --budget "${BUDGET:-1s}" --node "${SLURMD_NODENAME:-$(hostname -s)}" \
    --log "${LOG:-/var/log/mxprobe-screen.jsonl}" > /dev/null 2>&1
[ $? -ne 1 ]
