#!/usr/bin/env bash
# Pictures of the site's main pages at a laptop's and a phone's width, in both themes, to be looked at:
# tools/site/screenshots.sh FOLDER, after ./lab docs. Needs Chromium.
set -euo pipefail
[ $# = 1 ] || { echo "usage: screenshots.sh FOLDER" >&2; exit 2; }
site=$(cd "$(dirname "$0")/../.." && pwd)/build/docs/html
mkdir -p "$1"

shopt -s nullglob
pages=("$site"/{index,docs-simulator,docs-profiling,docs-results,files,classconvladder_1_1Stage}.html
  "$site"/chapters-*.html)
for page in "${pages[@]}"; do
  [ -f "$page" ] || continue
  for size in 1366,900 390,844; do
    for theme in 0-dark 1-light; do
      chromium --headless --no-sandbox --hide-scrollbars --virtual-time-budget=5000 --window-size="$size" \
        --blink-settings="preferredColorScheme=${theme%-*}" \
        --screenshot="$1/$(basename "$page" .html)-${size%,*}-${theme#*-}.png" "file://$page" 2>/dev/null
    done
  done
done
