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
# What could not be judged is in the log, and no reason to take the node away.
[ "$code" -ne 1 ]
