#!/usr/bin/env bash
# Tests on a GPU of sm_90: columns of pixels (im2col), boxes with steps, and wgmma in the forms that plain programs have,
# each against plain loops on the host. Times nothing. Writes $OUT/cores.json.
set -uo pipefail
. tools/measure/empty-out.sh
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
results=()
note() { # NAME STATUS TEXT
  results+=("$(python3 -c 'import json,sys; print(json.dumps({"name": sys.argv[1], "status": int(sys.argv[2]), "output": sys.argv[3][-3000:]}))' "$1" "$2" "$3")")
}
text=$(timeout 100 build/bin/stage-tests-gpu -tc="hopper: tensor*,hopper: columns*" 2>&1); note "stage-tests-gpu hopper copies" $? "$text"
for program in im2col wgmma_forms; do
  source=tests/sim/programs/$program.cu
  text=$("$nvcc" -std=c++17 -gencode arch=compute_90a,code=sm_90a -o "/tmp/$program" "$source" 2>&1 && timeout 60 "/tmp/$program" > "/tmp/$program.out" 2>&1 &&
    diff <(sed -n 's/^\/\/ > //p' "$source") "/tmp/$program.out")
  note "$program" $? "$text$(cat "/tmp/$program.out" 2>/dev/null)"
done
(IFS=,; echo "[${results[*]}]") > "$OUT/cores.json"
cat "$OUT/cores.json"
