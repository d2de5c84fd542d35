#!/bin/sh
# HealthCheckProgram: drains this node if a unit computes wrong bits.
MXPROBE=${MXPROBE:-mxprobe}
SCONTROL=${SCONTROL:-scontrol}
node=${SLURMD_NODENAME:-$(hostname -s)}
line=$("$MXPROBE" screen -q ${SCREEN_ARGUMENTS:-} --budget "${BUDGET:-2s}" --node "$node" --format npd \
    --log "${LOG:-/var/log/mxprobe-screen.jsonl}" 2> /dev/null)
code=$?
if [ "$code" -eq 1 ]; then
    "$SCONTROL" update NodeName="$node" State=DRAIN Reason="mxprobe: $(printf '%.200s' "$line")"
fi
# A screen that could not judge the node is in the log, and does not drain it.
[ "$code" -ne 1 ]
