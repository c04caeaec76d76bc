// Plays what a block did, event by event: the figure.trace of a lesson, whose data is the JSON in it (tools/traces.py).
// Lanes above, memory below, one line of 128 bytes a row; the source line lit; a strip of all events by warp. Steps by
// buttons, a slider and keys, and says each event in words.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const CELL = 18, WORDS = 32, ROWS = 8, LEFT = 92, STRIP = 7;
  const VERBS = {
    load: "loads", store: "stores", atomic: "updates", bulk_load: "starts a copy to", bulk_store: "starts a copy from",
    wgmma: "starts a wgmma", arrive: "arrives at the mbarrier", wait: "waits at the mbarrier",
    complete: "completes a phase of the mbarrier", barrier: "passes the barrier",
  };
  const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;

  function element(name, attributes = {}, text = "") {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  }

  function button(label, title, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.title = title;
    made.setAttribute("aria-label", title);
    made.addEventListener("click", act);
    return made;
  }

  // The numbers of the lanes that take part, and the first byte that each of them accesses.
  const lanesOf = (event) => [...Array(32).keys()].filter((lane) => (event.lanes >>> lane) & 1);
  const bytesOf = (event, lanes) => event.at || lanes.map((_, i) => event.from + i * (event.step || 0));

  function sentence(event, lanes) {
    const who = lanes.length === 32 ? `Warp ${event.warp}` :
      lanes.length === 1 ? `Warp ${event.warp}, lane ${lanes[0]},` : `Warp ${event.warp}, ${lanes.length} lanes,`;
    const verb = VERBS[event.what];
    if (event.what === "barrier") return "All threads of the block have come to the barrier, and pass it.";
    if (event.what === "wgmma") return `${who} ${verb} of 64 rows and ${event.bytes} columns, by all four warps of its warpgroup.`;
    const place = `${event.object}${event.from === undefined ? "" : `, byte ${event.from}`}`;
    if (event.what === "complete") return `The last arrival or copy is there: the mbarrier in ${place} completes a phase.`;
    if (["arrive", "wait"].includes(event.what)) return `${who} ${verb} in ${place}.`;
    if (event.what.startsWith("bulk"))
      return `${who} ${verb} ${place}: ${event.bytes} bytes, ${count(event.cost, "sector")} of global memory, by one instruction.`;
    const size = `${lanes.length} × ${event.bytes} bytes`;
    const cost = event.space === "global" ? `: ${count(event.cost, "sector")}` :
      event.space === "shared" ? `: ${event.cost ? count(event.cost, "extra pass").replace(/passs$/, "passes") + ", by bank conflicts" : "no bank conflict"}` : "";
    return `${who} ${verb} ${size} ${event.what === "load" ? "of" : "to"} ${event.object}${cost}.`;
  }

  // Of each lane its colour: of a global request by the sector of its first byte, of a shared one by the pass that
  // serves it.
  function shades(event, lanes, places) {
    if (event.space !== "shared") {
      const sectors = [...new Set(places.map((at) => Math.floor((at + event.origin) / 32)))].sort((a, b) => a - b);
      return places.map((at) => sectors.indexOf(Math.floor((at + event.origin) / 32)) % 2);
    }
    const together = event.bytes <= 4 ? 32 : 128 / event.bytes, taken = new Map();
    return places.map((at, i) => {
      const group = Math.floor(lanes[i] / together), word = Math.floor((at + event.origin) / 4), bank = word % 32;
      const key = `${group} ${bank}`, words = taken.get(key) || [];
      if (!words.includes(word)) words.push(word);
      taken.set(key, words);
      return Math.min(words.indexOf(word), 3);
    });
  }

  function drawRequest(svg, event, lanes) {
    const places = bytesOf(event, lanes), shade = shades(event, lanes, places);
    const text = (x, y, string, anchor = "end") => svg.append(element("text", {x, y, "text-anchor": anchor}, string));
    text(LEFT - 8, 24, "lanes");
    for (let lane = 0; lane < 32; ++lane) {
      const i = lanes.indexOf(lane);
      svg.append(element("rect", {x: LEFT + lane * CELL, y: 10, width: CELL - 2, height: CELL - 2,
        class: i < 0 ? "idle" : `shade${shade[i]}`}));
      if (lane % 8 === 0) text(LEFT + lane * CELL + 1, 42, String(lane), "start");
    }
    // Which lane's colour a word has; a word of a sector that is fetched for nobody has none.
    const words = new Map(), sectors = new Set();
    places.forEach((at, i) => {
      const first = at + event.origin;
      for (let byte = first - first % 4; byte < first + event.bytes; byte += 4)
        if (!words.has(byte / 4)) words.set(byte / 4, shade[i]);
      for (let sector = Math.floor(first / 32); sector <= Math.floor((first + event.bytes - 1) / 32); ++sector)
        sectors.add(sector);
    });
    const rows = [...new Set([...words.keys()].map((word) => Math.floor(word / WORDS)))].sort((a, b) => a - b);
    text(LEFT - 8, 64, event.space === "shared" ? "bank" : "byte");
    for (let word = 0; word < WORDS; word += 8)
      text(LEFT + word * CELL + 1, 64, String(event.space === "shared" ? word : word * 4), "start");
    rows.slice(0, ROWS).forEach((row, place) => {
      const y = 72 + place * (CELL + 4);
      text(LEFT - 8, y + 13, `${row * 128 - event.origin}`);
      for (let word = 0; word < WORDS; ++word) {
        const at = row * WORDS + word, fetched = event.space === "global" && sectors.has(Math.floor(at / 8));
        svg.append(element("rect", {x: LEFT + word * CELL, y, width: CELL - 2, height: CELL - 2,
          class: words.has(at) ? `shade${words.get(at)}` : fetched ? "wasted" : "idle"}));
      }
    });
    const shown = Math.min(rows.length, ROWS);
    if (rows.length > ROWS) text(LEFT, 72 + shown * (CELL + 4) + 14, `and ${rows.length - ROWS} lines more`, "start");
  }

  function drawOther(svg, event) {
    const y = 84;
    svg.append(element("rect", {x: LEFT, y: y - 24, width: 32 * CELL - 2, height: 40, class: `kind-${event.what}`}));
    svg.append(element("text", {x: LEFT + 16 * CELL, y, "text-anchor": "middle"}, event.what.replace("_", " ")));
  }

  // All events, a row for each warp; the width of one follows from how many there are.
  function drawStrip(svg, events, choose) {
    const warps = [...new Set(events.map((event) => event.warp))].sort((a, b) => a - b);
    const width = Math.min(10, (32 * CELL) / events.length), height = 14 + warps.length * (STRIP + 2);
    svg.setAttribute("viewBox", `0 0 ${LEFT + 32 * CELL} ${height}`);
    warps.forEach((warp, row) => {
      if (warps.length > 12 && row % 4) return;
      svg.append(element("text", {x: LEFT - 8, y: row * (STRIP + 2) + STRIP + 1, "text-anchor": "end", class: "small"}, `warp ${warp}`));
    });
    events.forEach((event, i) => {
      const all = event.what === "barrier";
      const mark = element("rect", {x: LEFT + i * width, y: all ? 0 : warps.indexOf(event.warp) * (STRIP + 2),
        width: Math.max(width - 0.5, 0.8), height: all ? warps.length * (STRIP + 2) - 2 : STRIP,
        class: `kind-${event.what} space-${event.space || "none"}`});
      mark.addEventListener("click", () => choose(i));
      svg.append(mark);
    });
    const cursor = element("path", {class: "cursor"});
    svg.append(cursor);
    return (i) => cursor.setAttribute("d", `M${LEFT + (i + 0.5) * width} 0 V${height - 4}`);
  }

  function start(figure) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const events = data.events.map((event) => ({lanes: 0, origin: 0, cost: 0, bytes: 0, object: "", ...event}));
    const stage = document.createElement("div");
    stage.className = "player";
    stage.tabIndex = 0;
    stage.setAttribute("role", "group");
    stage.setAttribute("aria-label", `What a block of ${data.kernel} does, event by event; arrow keys step`);
    const said = document.createElement("p");
    said.setAttribute("aria-live", "polite");
    const picture = element("svg", {viewBox: `0 0 ${LEFT + 32 * CELL} 266`, "aria-hidden": "true"});
    const strip = element("svg", {"aria-hidden": "true", class: "strip"});
    const code = document.createElement("pre");
    code.className = "source";
    const slider = document.createElement("input");
    Object.assign(slider, {type: "range", min: 0, max: events.length - 1, value: 0});
    slider.setAttribute("aria-label", "event");

    let at = 0, playing = null;
    const stop = () => { clearInterval(playing); playing = null; play.textContent = "▶"; };
    const place = drawStrip(strip, events, (i) => { stop(); show(i); });
    function show(i) {
      at = Math.max(0, Math.min(events.length - 1, i));
      const event = events[at], lanes = lanesOf(event);
      picture.replaceChildren();
      if (event.bytes && (event.at || event.from !== undefined) && !event.what.startsWith("bulk"))
        drawRequest(picture, event, lanes);
      else
        drawOther(picture, event);
      said.textContent = `${at + 1} of ${events.length}. ${sentence(event, lanes)}`;
      slider.value = at;
      slider.setAttribute("aria-valuetext", said.textContent);
      place(at);
      code.replaceChildren();
      const source = data.files[event.file];
      for (let line = Math.max(event.line - 4, 1); line <= event.line + 4; ++line) {
        if (source.lines[line] === undefined) continue;
        const row = document.createElement("span");
        row.className = line === event.line ? "lit" : "";
        row.textContent = `${String(line).padStart(4)}  ${source.lines[line]}\n`;
        code.append(row);
      }
      code.setAttribute("aria-label", `${source.name}, line ${event.line}`);
    }
    const step = (by) => { stop(); show(at + by); };
    const play = button("▶", "play or pause", () => {
      if (playing) return stop();
      play.textContent = "❚❚";
      playing = setInterval(() => (at + 1 < events.length ? show(at + 1) : stop()), 700);
    });
    const controls = document.createElement("div");
    controls.className = "controls";
    controls.append(button("|◀", "first event", () => step(-events.length)), button("−1", "one event back", () => step(-1)),
      play, button("+1", "one event on", () => step(1)), button("▶|", "last event", () => step(events.length)), slider);
    slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
    stage.addEventListener("keydown", (event) => {
      const by = {ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -events.length, End: events.length}[event.key];
      if (by === undefined || event.target === slider) return;
      event.preventDefault();
      step(by);
    });
    stage.append(controls, said, picture, code, strip);
    figure.querySelector("figcaption").before(stage);
    show(data.first || 0);
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("figure.trace").forEach(start));
})();
