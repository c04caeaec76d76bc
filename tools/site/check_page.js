// What is wrong with the page that a browser shows, as sentences: check_pages.py runs this file in each page, and then
// calls what it needs of `checks`.
"use strict";

window.checks = (() => {
  const SILENT = "script, style, noscript, template, select, .main-menu-btn, .MathJax_Preview, .MJX_Assistive_MathML";
  // Declarations, too, as Doxygen lists them: a pointer to a pointer has two asterisks.
  const VERBATIM = "code, pre, kbd, samp, .fragment, table.diff, svg, .MathJax_SVG, title, " +
    ".memItemLeft, .memItemRight, .memproto, td.entry";
  const CODE = ".fragment > *, table.diff td";
  const LITERAL = [["**", /\*\*/], ["a row of a table", /^\s*\|.*\|/m], ["a rule of a table", /\|\s*:?-{3,}/],
    ["a link", /\]\(\S+\)/], ["a comment", /<!--/],
    ["a command of Doxygen", /[\\@](htmlonly|endhtmlonly|ref|subpage|image)\b/]];
  const MOST = 5; // sentences of a kind that are told of a page

  const brief = (text) => `'${text.trim().replace(/\s+/g, " ").slice(0, 50)}'`;
  // Each sentence once, and of each kind the first.
  const told = (sentences) => {
    const all = [...new Set(sentences)];
    return all.length > MOST ? [...all.slice(0, MOST), `… and ${all.length - MOST} more like these`] : all;
  };

  // The texts that somebody sees: what is folded is opened before. They and the styles of boxes are kept until the
  // layout changes.
  let root = "body", seen = null;
  const styles = new Map();
  const fresh = () => {
    styles.clear();
    seen = null;
  };

  const isShown = (element) => !element.closest(SILENT) &&
    element.checkVisibility({visibilityProperty: true, opacityProperty: true});

  function texts() {
    if (seen) return seen;
    seen = [];
    const shown = new Map();
    const walker = document.createTreeWalker(document.querySelector(root), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      if (!parent || !node.data.trim()) continue;
      if (!shown.has(parent)) shown.set(parent, isShown(parent));
      if (shown.get(parent)) seen.push(node);
    }
    return seen;
  }

  // What of a box's style bounds its content.
  const style = (element) => {
    if (!styles.has(element)) {
      const {overflowX, overflowY, position, display} = getComputedStyle(element);
      styles.set(element, {overflowX, overflowY, position, display});
    }
    return styles.get(element);
  };

  function literal() {
    return told(texts().filter((node) => !node.parentElement.closest(VERBATIM)).flatMap((node) =>
      LITERAL.filter(([, pattern]) => pattern.test(node.data))
        .map(([name]) => `shows ${name} as it was written: ${brief(node.data)}`)));
  }

  // ---- Layout -------------------------------------------------------------------------------------------------------

  function rectOf(node) {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getBoundingClientRect();
  }

  // A text is cut off where a box that does not scroll ends before it.
  function cutOff() {
    const wrong = [];
    for (const box of [document.scrollingElement, document.getElementById("doc-content")])
      if (box && box.scrollWidth > box.clientWidth + 1)
        wrong.push(`is ${box.scrollWidth - box.clientWidth} px wider than its window`);
    for (const node of texts()) {
      if (node.parentElement.closest(CODE)) continue; // its frame scrolls
      let {left, right, top, bottom} = rectOf(node);
      if (right - left < 2 || bottom - top < 2) continue; // for screen readers alone
      let box = node.parentElement;
      for (; box && box !== document.documentElement; box = box.parentElement) {
        const {overflowX, overflowY, position, display} = style(box);
        if (display === "inline" || display === "contents") continue;
        const clips = [overflowX, overflowY].map((way) => way === "hidden" || way === "clip");
        const scrolls = [overflowX, overflowY].map((way) => way === "auto" || way === "scroll");
        if (clips.some(Boolean) || scrolls.some(Boolean)) {
          const edge = box.getBoundingClientRect();
          if (clips[0] && (right > edge.right + 1 || left < edge.left - 1) ||
              clips[1] && (bottom > edge.bottom + 3 || top < edge.top - 3)) break;
          if (scrolls[0]) ({left, right} = edge);
          if (scrolls[1]) ({top, bottom} = edge);
        }
        if (position === "fixed") {
          box = null;
          break;
        }
      }
      if (box && box !== document.documentElement || right > innerWidth + 1 || left < -1)
        wrong.push(`cuts off ${brief(node.data)}`);
    }
    return told(wrong);
  }

  // Tables stand in frames; a wide one fits there, a narrow one scrolls, says so, and keeps its first column in sight.
  function tables(wide) {
    const wrong = [];
    for (const table of document.querySelectorAll(".contents table.markdownTable, .contents table.diff")) {
      const frame = table.closest(".table-frame");
      const name = `the table ${brief(table.rows[0]?.innerText || "")}`;
      const lengths = [...table.rows].map((row) => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0));
      if (new Set(lengths).size > 1) wrong.push(`${name} has rows that differ in length`);
      if (!frame) {
        wrong.push(`${name} has no frame`);
        continue;
      }
      if (!frame.checkVisibility() || table.offsetWidth === 0) continue;
      const over = frame.scrollWidth - frame.clientWidth;
      if (table.getBoundingClientRect().right > frame.getBoundingClientRect().right + 1 && over <= 1)
        wrong.push(`${name} stands out of its frame`);
      if (over <= 1) {
        if (frame.classList.contains("scrolls")) wrong.push(`${name} says that it scrolls, and does not`);
        continue;
      }
      if (wide && !table.classList.contains("diff")) wrong.push(`${name} is ${over} px wider than its frame`);
      if (!frame.classList.contains("scrolls")) wrong.push(`${name} does not say that it scrolls`);
      if (!["auto", "scroll"].includes(getComputedStyle(frame).overflowX)) wrong.push(`${name} does not scroll`);
      const cell = table.classList.contains("diff") ? null : table.rows[table.rows.length - 1].cells[0];
      if (cell) {
        frame.scrollLeft = over;
        if (cell.getBoundingClientRect().left < frame.getBoundingClientRect().left - 1)
          wrong.push(`${name} scrolls its first column out of sight`);
        frame.scrollLeft = 0;
      }
    }
    return told(wrong);
  }

  const frames = () => told([...document.querySelectorAll(".fragment")].filter((frame) =>
    frame.scrollWidth > frame.clientWidth + 1 && !["auto", "scroll"].includes(getComputedStyle(frame).overflowX) &&
      !frame.closest("aside")).map((frame) => `cuts off the code ${brief(frame.textContent)}`));

  const pictures = () => told([...document.images].filter((image) => image.checkVisibility())
    .filter((image) => !image.complete || image.naturalWidth === 0).map((image) => `does not show ${image.src}`));

  // ---- Contrast, as WCAG 2 reckons it -------------------------------------------------------------------------------

  function colour(text) {
    const numbers = (text.match(/-?[\d.]+(e-?\d+)?/g) || []).map(Number);
    if (text.startsWith("color(")) return [...numbers.slice(0, 3).map((part) => part * 255), numbers[3] ?? 1];
    return text.startsWith("rgb") ? [...numbers.slice(0, 3), numbers[3] ?? 1] : [0, 0, 0, 0];
  }
  const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
  const luminance = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  function ratio(front, back) {
    const [light, dark] = [luminance(over(front, back)), luminance(back)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  }

  // The colour behind an element, of itself and what it stands in.
  function background(element, known) {
    if (!element) return [255, 255, 255, 1];
    if (!known.has(element)) {
      const own = colour(getComputedStyle(element).backgroundColor);
      known.set(element, own[3] === 1 ? own : over(own, background(element.parentElement, known)));
    }
    return known.get(element);
  }

  function tooFaint(front, back, size, bold) {
    const least = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5, found = ratio(front, back);
    return found < least ? `${found.toFixed(2)} : 1, less than ${least} : 1` : "";
  }

  function contrast() {
    const wrong = [], known = new Map(), behind = new Map();
    for (const node of texts()) {
      const element = node.parentElement;
      const key = !element.closest(CODE) ? element : // code has many elements alike
        [element, element.parentElement].map((one) => one.localName + one.className).join();
      if (!known.has(key)) {
        const own = getComputedStyle(element), svg = element.namespaceURI.endsWith("svg");
        const back = background(svg ? element.closest("svg") : element, behind);
        known.set(key, tooFaint(colour(svg ? own.fill : own.color), back, parseFloat(own.fontSize), own.fontWeight >= 700));
      }
      if (known.get(key))
        wrong.push(`${brief(node.data)} (${element.localName}) has a contrast of ${known.get(key)}`);
    }
    for (const field of document.querySelectorAll("input[placeholder]")) {
      const {color} = getComputedStyle(field, "::placeholder");
      const found = tooFaint(colour(color), background(field, behind), 16, false);
      if (found) wrong.push(`'${field.placeholder}' has a contrast of ${found}`);
    }
    return told(wrong);
  }

  // ---- The player, the drawings, the search ---------------------------------------------------------------------

  function player() {
    const wrong = [];
    for (const figure of document.querySelectorAll("figure.trace")) {
      const said = () => figure.querySelector("[aria-live]")?.textContent ?? "";
      const next = figure.querySelector('[aria-label="one event on"]');
      const {events} = JSON.parse(figure.querySelector("script").textContent);
      const key = new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true});
      if (!next || !said()) {
        wrong.push("its player does not load");
        continue;
      }
      figure.querySelector('[aria-label="first event"]').click();
      for (let i = 1; i < Math.min(events.length, 40); ++i) {
        const before = said();
        if (i % 2) next.click();
        else figure.querySelector(".player").dispatchEvent(key);
        if (said() === before || !said().startsWith(`${i + 1} of ${events.length}.`))
          wrong.push(`its player does not step on from event ${i}`);
        if (figure.querySelectorAll(".source .lit").length !== 1)
          wrong.push(`its player lights no line at event ${i + 1}`);
        if (!figure.querySelector("svg rect")) wrong.push(`its player draws nothing at event ${i + 1}`);
      }
    }
    return told(wrong);
  }

  // Each slider changes what its figure says.
  function sliders() {
    const wrong = [];
    for (const figure of document.querySelectorAll("figure.sliders")) {
      const ranges = [...figure.querySelectorAll('input[type="range"]')];
      if (!ranges.length) wrong.push("its sliders do not load");
      for (const range of ranges) {
        const results = figure.querySelector("table"), before = results.textContent, start = range.value;
        range.value = start === range.max ? range.min : range.max;
        range.dispatchEvent(new Event("input"));
        if (results.textContent === before) wrong.push("one of its sliders changes nothing");
        range.value = start;
        range.dispatchEvent(new Event("input"));
      }
    }
    return told(wrong);
  }

  // A drawing in the widest font that a reader may have: every text inside it, and dark or light enough for what is
  // under it.
  function drawing(name, source, back) {
    const host = document.createElement("div");
    host.style.cssText = `position: fixed; inset: 0 auto auto 0; width: max-content; background: ${back}`;
    document.body.append(host);
    const root = host.attachShadow({mode: "open"}), wrong = [];
    root.innerHTML = source;
    const svg = root.querySelector("svg");
    const size = svg.viewBox.baseVal.width;
    svg.setAttribute("width", size);
    svg.setAttribute("height", svg.viewBox.baseVal.height);
    const font = document.createElement("style");
    font.textContent = `text, tspan { font-family: "DejaVu Sans" !important }`;
    root.append(font);
    const edge = svg.getBoundingClientRect();
    const solid = [...svg.querySelectorAll("rect, circle, ellipse, polygon, path")]
      .filter((shape) => !shape.closest("defs, pattern"))
      .map((shape) => [shape, shape.getBoundingClientRect(), getComputedStyle(shape)])
      .filter(([, , own]) => own.fill.startsWith("rgb") && own.display !== "none");
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect(), own = getComputedStyle(text);
      if (!text.textContent.trim() || own.display === "none" || own.visibility === "hidden") continue;
      if (box.left < edge.left - 1 || box.right > edge.right + 1 ||
          box.top < edge.top - 1 || box.bottom > edge.bottom + 1)
        wrong.push(`${name} cuts off ${brief(text.textContent)}`);
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      let under = colour(back);
      for (const [shape, its, look] of solid) {
        if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
        if (x < its.left || x > its.right || y < its.top || y > its.bottom) continue;
        const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
        if (!shape.isPointInFill(point)) continue;
        const fill = colour(look.fill);
        under = over([...fill.slice(0, 3), fill[3] * look.fillOpacity * look.opacity], under);
      }
      const found = tooFaint(colour(own.fill), under, parseFloat(own.fontSize), own.fontWeight >= 700);
      if (found) wrong.push(`${name}: ${brief(text.textContent)} has a contrast of ${found}`);
    }
    host.remove();
    return told(wrong);
  }

  // Shows a page of Doxygen's own making, which has no scripts to run, in the frame of the page that is open.
  const show = (source) => {
    const page = new DOMParser().parseFromString(source, "text/html");
    for (const part of ["div.header", "div.contents"])
      document.querySelector(part).replaceWith(document.adoptNode(page.querySelector(part)));
    root = "#doc-content"; // what is around it was looked at
    fresh();
  };

  const search = async (query) => {
    const field = document.getElementById("MSearchField");
    document.getElementById("search-results")?.replaceChildren();
    field.value = query;
    field.dispatchEvent(new Event("input"));
    for (let i = 0; i < 100 && !document.querySelector("#search-results h2 small"); ++i)
      await new Promise((resolve) => setTimeout(resolve, 20));
    return [...document.querySelectorAll("#search-results h2")]
      .map((head) => ["a", "small"].map((part) => head.querySelector(part).textContent));
  };

  // Formulas are set, and what is folded is open.
  const ready = () => new Promise((resolve) => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    if (window.MathJax?.Hub) MathJax.Hub.Queue(resolve);
    else resolve();
  });
  const theme = (dark) => {
    if (typeof DoxygenAwesomeDarkModeToggle !== "undefined") DoxygenAwesomeDarkModeToggle.enableDarkMode(dark);
  };

  return {ready, theme, show, fresh, literal, cutOff, frames, tables, pictures, contrast, player, sliders, drawing,
    search};
})();

// The side bar unfolds at once, not slowly.
document.addEventListener("DOMContentLoaded", () => { if (window.jQuery) jQuery.fx.off = true; });
