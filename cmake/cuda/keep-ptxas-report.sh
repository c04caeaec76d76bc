#!/usr/bin/env bash
# keep-ptxas-report.sh NVCC ARGUMENTS...: compiles. What nvcc says goes to OBJECT.ptxas, for tools/checks/ptxas_report.py.
# Printed is all of it if nvcc fails, else what is not of -Xptxas=-v.
set -euo pipefail

object=
previous=
for argument in "$@"; do
  [ "$previous" != -o ] || object=$argument
  previous=$argument
done

if "$@" 2>"$object.ptxas"; then
  grep -v -e '^ptxas info ' -e '^ *[0-9]* bytes stack frame' "$object.ptxas" >&2 || true
else
  status=$?
  cat "$object.ptxas" >&2
  exit "$status"
fi
