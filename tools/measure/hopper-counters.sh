#!/usr/bin/env bash
# What Nsight Compute counts of the kernels of 31 to 35 that multiply, one launch each, for docs/hopper.md. In a checkout's
# root, with build/bin/convladder-gpu; ncu on the PATH or in /opt/nvidia. OUT is a folder; BUDGET seconds (default 240).
#   counters.json   goes to docs/results as NAME-hopper-counters.json
#   left-out.txt, progress.txt   see tools/measure/jobs.sh
set -u
. tools/measure/empty-out.sh
BUDGET=${BUDGET:-240}
. tools/measure/jobs.sh
ncu=$(command -v ncu || find /opt/nvidia/nsight-compute /usr/local/cuda/bin -maxdepth 2 -name ncu 2>/dev/null | sort | tail -n 1)
peak=avg.pct_of_peak_sustained_elapsed
metrics=gpu__time_duration.sum,sm__cycles_elapsed.avg.per_second,smsp__issue_active.$peak,sm__pipe_tensor_cycles_active.$peak
metrics+=,sm__pipe_fma_cycles_active.$peak,l1tex__data_pipe_lsu_wavefronts_mem_shared.$peak,l1tex__m_xbar2l1tex_read_bytes.sum
metrics+=,lts__t_sectors_srcunit_tex_op_write.sum,dram__bytes_read.sum,dram__bytes_write.sum
# The fourth launch of the kernel that multiplies, with caches as the launches before leave them.
kernels='regex:^(multiply|multiply_rows|multiply_tiles|multiply_lines|convolve|convolve_line)$'
# count NAME STAGE...: of a square layer, named as in the tables; what a name leaves out is C filters of 3 x 3.
layer='\(([0-9]+),([0-9]+),([0-9]+),[0-9]+\)(->([0-9]+) ([0-9]+)x)?'
count() {
  [[ $1 =~ $layer ]]
  local of=("${BASH_REMATCH[@]}") stage number
  for stage in "${@:2}"; do
    number=$(printf %03d ${#jobs[@]})
    job "$number" "${ncu:-ncu}" --clock-control none --cache-control none -k "$kernels" -s 3 -c 1 --csv --page raw \
      --print-units base --metrics "$metrics" build/bin/convladder-gpu run "$stage" --backend gpu \
      --shape "n=${of[1]},c=${of[2]},h=${of[3]},w=${of[3]},k=${of[5]:-${of[2]}},r=${of[6]:-3},s=${of[6]:-3}"
    echo "$stage $1" >"$parts/$number.name"
  done
}
count 'conv3 (128,128,28,28)' 32 34 31 35
count 'conv5 (128,512,7,7)' 32 34 31 35
count 'conv4 (128,256,14,14)' 32 33 34
count 'VGG (32,512,28,28)' 32 33
count 'conv3 (64,128,28,28)' 34
count 'conv4 (32,256,14,14)' 34
count '(32,64,56,56)->256 1x1' 32
count '(32,256,56,56)->64 1x1' 32
count '(32,2048,7,7)->512 1x1' 32
for name in 'image (1,64,224,224)' 'image (1,64,960,960)' 'conv2 (128,64,56,56)'; do count "$name" 31 32 33 34 35; done
run_jobs
python3 - "$parts" "$OUT/counters.json" <<'PY'
import csv, json, pathlib, sys
sys.path.insert(0, "tools")
from report import text_of
PEAK = "avg.pct_of_peak_sustained_elapsed"
# Of a column its heading, format, metric and factor. A stage multiplies on Tensor Cores or in the fp32 units.
COLUMNS = [("time under ncu (µs)", ".1f", "gpu__time_duration.sum", 1e-3),
           ("clock (GHz)", ".2f", "sm__cycles_elapsed.avg.per_second", 1e-9),
           ("cycles with an instruction issued (%)", ".0f", f"smsp__issue_active.{PEAK}", 1),
           ("Tensor Cores busy (%)", ".0f", f"sm__pipe_tensor_cycles_active.{PEAK}", 1),
           ("fp32 units busy (%)", ".0f", f"sm__pipe_fma_cycles_active.{PEAK}", 1),
           ("shared memory busy (%)", ".0f", f"l1tex__data_pipe_lsu_wavefronts_mem_shared.{PEAK}", 1),
           ("read through L2 (MB)", ".1f", "l1tex__m_xbar2l1tex_read_bytes.sum", 1e-6),
           ("written to L2 (MB)", ".1f", "lts__t_sectors_srcunit_tex_op_write.sum", 32e-6),
           ("read from DRAM (MB)", ".1f", "dram__bytes_read.sum", 1e-6),
           ("written to DRAM (MB)", ".1f", "dram__bytes_write.sum", 1e-6)]
OTHERS = {True: "fp32 units busy (%)", False: "Tensor Cores busy (%)"}
parts, rows, device = pathlib.Path(sys.argv[1]), [], None
for name in sorted(parts.glob("*.name")):
    log = name.with_suffix(".txt")
    lines = [line for line in csv.reader(log.read_text().splitlines() if log.exists() else []) if len(line) > 10]
    if len(lines) != 3:
        continue  # it was left out, or ncu said why it failed
    found, label = dict(zip(lines[0], lines[2])), name.read_text().strip()
    rows.append({"name": label, "values": [None if heading == OTHERS[label[:2] != "35"] else
                                           factor * float(found[metric].replace(",", ""))
                                           for heading, _, metric, factor in COLUMNS]})
    major, minor = found["CC"].split(".")
    device = {"name": found["device__attribute_display_name"], "compute_capability": 10 * int(major) + int(minor)}
if not rows:
    sys.exit("hopper-counters.sh: ncu counted nothing; see progress.txt")
pathlib.Path(sys.argv[2]).write_text(text_of({
    "device": device, "how": "tools/measure/hopper-counters.sh: ncu --clock-control none --cache-control none, the fourth launch of "
    "the kernel that multiplies in ./lab run STAGE --shape ... (of stage 35 the product alone, without its transforms); "
    + ", ".join(metric for _, _, metric, _ in COLUMNS) + " (sectors of 32 bytes)",
    "corner": "stage, workload", "columns": [heading for heading, *_ in COLUMNS], "format": [form for _, form, *_ in COLUMNS],
    "rows": rows}) + "\n")
print(len(rows), "rows")
PY
