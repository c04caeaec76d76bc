#!/usr/bin/env bash
# Runs once, as root and with network, when Gradescope or the Dockerfile beside this folder builds the image: installs
# the packages, and builds all that a grading needs.
set -euo pipefail
cd /autograder/source

lab=$(cat lab-number)
chmod -R a+rX . # submissions are graded as the user nobody
status=0
bash convladder/lab --yes grade "$lab" || status=$?
if [ "$status" != 1 ]; then
  echo "setup.sh: the unsolved exercise of lab $lab should lose marks (status 1); the grader's status is $status" >&2
  exit 1
fi
