#!/bin/sh
# Prolog: a node whose units compute wrong bits fails it, so that Slurm drains the node and queues the job again.
MXPROBE=${MXPROBE:-mxprobe}
"$MXPROBE" screen -q ${SCREEN_ARGUMENTS:-} --budget "${BUDGET:-1s}" --node "${SLURMD_NODENAME:-$(hostname -s)}" \
    --log "${LOG:-/var/log/mxprobe-screen.jsonl}" > /dev/null 2>&1
[ $? -ne 1 ]
