"""A lesson's player on its page: docs/traces/NN.json and the source that it names, as a figure for player.js."""
import html
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEAR = 5  # lines of source that are shown around a line


def figure(number):
    """The figure of a lesson by its number."""
    path = ROOT / f"docs/traces/{number:02}.json"
    trace = json.loads(path.read_text())
    named = {}
    for event in trace["events"]:
        named.setdefault(event["file"], set()).update(range(event["line"] - NEAR, event["line"] + NEAR + 1))
    files = []
    for i, name in enumerate(trace["files"]):
        lines = (ROOT / name).read_text().splitlines()
        wanted = {line: lines[line - 1] for line in sorted(named.get(i, ())) if 0 < line <= len(lines)}
        files.append({"name": name, "lines": wanted})
    data = json.dumps({**trace, "files": files}, separators=(",", ":")).replace("</", "<\\/")
    block = ",".join(map(str, trace["block"]))
    return (f'<figure class="trace"><script type="application/json">{data}</script>'
            f'<noscript><p>With JavaScript this figure steps through what one block does; '
            f'<code>./lab trace {number} --shape {trace["shape"]}</code> prints the same.</p></noscript>'
            f'<figcaption><b>Step by step</b>: block ({block}) of <code>{html.escape(trace["kernel"])}</code> on '
            f'{html.escape(trace["shape"])}, in the simulator. {html.escape(trace["look"])}</figcaption></figure>')
