#!/usr/bin/env bash
# Sourced by every script here: OUT is a folder, made here, without results of an earlier run. They would pass for this
# run's where a step fails.
mkdir -p "${OUT:?must name a folder for the results}" || exit 2
if [ -n "$(ls -A "$OUT")" ]; then
  echo "${0##*/}: $OUT is not empty: empty it, or name another folder in OUT" >&2
  exit 2
fi
