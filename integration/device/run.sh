#!/usr/bin/env bash
# Tries GPU sharing on this machine's GPU, or on a fake one with --fake, and writes a report: see README.md.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec "${PYTHON:-python3}" "$(dirname "$0")/measure.py" "$@"
