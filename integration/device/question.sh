#!/usr/bin/env bash
# Answers one question about this machine's GPU by an experiment: see README.md.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec "${PYTHON:-python3}" "$(dirname "$0")/question.py" "$@"
