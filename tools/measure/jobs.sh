#!/usr/bin/env bash
# Sourced by scripts that measure much: a list of jobs, which the GPUs of a host, or those of CUDA_VISIBLE_DEVICES, take one
# by one, in order, until $BUDGET seconds have gone. OUT is the script's folder; `parts` a folder for what the jobs write.
#   left-out.txt   jobs that time did not suffice for, and those that failed
#   progress.txt   standard error of all jobs, and when each ran on which GPU
: "${OUT:?}" "${BUDGET:?}"
parts=$(mktemp -d)
jobs=()
names=()
SECONDS=0
: >"$OUT/left-out.txt" || exit
: >"$OUT/progress.txt" || exit

# job NAME COMMAND...: what it prints is in $parts/NAME.txt.
job() {
  names+=("$1")
  shift
  jobs+=("$(printf '%q ' "$@")")
}
# bench NAME ARGUMENT...: its rows are in $parts/NAME.json, without PyTorch's and Triton's. A bench that is ended has written
# nothing.
bench() {
  local name=$1
  shift
  job "$name" build/bin/convladder bench --backend gpu --json "$parts/$name.json" "$@" -- '--benchmark_filter=-/(torch|triton)'
}

take() { # the next job's number, for one GPU at a time
  flock 9
  next=$(<"$parts/next")
  echo $((next + 1)) >"$parts/next"
}
work() { # work GPU
  local next left begin
  export CUDA_VISIBLE_DEVICES=$1
  while { take; } 9>"$parts/lock" && [ "$next" -lt ${#jobs[@]} ]; do
    left=$((BUDGET - SECONDS)) begin=$SECONDS
    if [ "$left" -lt 15 ]; then echo "${jobs[next]}" >>"$OUT/left-out.txt" && continue; fi
    eval "timeout $left ${jobs[next]}" >"$parts/${names[next]}.txt" 2>>"$OUT/progress.txt" ||
      echo "${jobs[next]} (status $?)" >>"$OUT/left-out.txt"
    echo "$begin to $SECONDS s, GPU $1: ${jobs[next]}" >>"$OUT/progress.txt"
  done
}
run_jobs() {
  local gpu gpus=${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader)}
  echo 0 >"$parts/next"
  for gpu in ${gpus//,/ }; do work "$gpu" & done
  wait
  cat "$OUT/left-out.txt"
}
