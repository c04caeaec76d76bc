// The search over all pages, in search-index.js: [file, title, kind, [[anchor, heading, text], ...]] for each page.
document.addEventListener("DOMContentLoaded", () => {
  const field = document.getElementById("MSearchField");
  const WEIGHTS = { Lesson: 5, Guide: 1.2, Lab: 1, API: 0.8, Solution: 0.5 };
  const PAGES = 20, SECTIONS = 3; // that are listed
  let panel, loading;

  const load = () => loading ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = "search-index.js";
    script.onload = resolve;
    document.head.append(script);
  });

  const words = (query) => query.trim().split(/\s+/).filter(Boolean);
  const pattern = (text) => new RegExp(`(?<![\\p{L}\\p{N}])${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`, "giu");

  // 0 where a word is nowhere in the section; else the more, the more prominent its words are.
  const score = ([, heading, text], title, patterns, phrase) => {
    let sum = 0;
    for (const word of patterns) {
      const count = (where) => where.match(word)?.length ?? 0;
      const found = 16 * Math.min(count(title), 1) + 8 * Math.min(count(heading), 1) + Math.min(count(text), 6);
      if (found === 0) return 0;
      sum += found;
    }
    return sum + (phrase ? 10 * Math.min((heading + " " + text).match(phrase)?.length ?? 0, 3) : 0);
  };

  const search = (query) => {
    const patterns = words(query).map(pattern);
    if (patterns.length === 0) return [];
    const phrase = patterns.length > 1 ? pattern(words(query).join(" ")) : null;
    const pages = searchIndex.map(([file, title, kind, sections]) => {
      const found = sections.map((section) => ({ section, score: score(section, title, patterns, phrase) }))
        .filter((hit) => hit.score > 0).sort((a, b) => b.score - a.score);
      const rest = found.slice(1).reduce((sum, hit) => sum + hit.score, 0); // a page that speaks of it all along
      return { file, title, kind, found, score: ((found[0]?.score ?? 0) + 0.5 * Math.min(rest, 20)) * WEIGHTS[kind] };
    });
    return pages.filter((page) => page.score > 0).sort((a, b) => b.score - a.score);
  };

  const element = (tag, text, attributes = {}) => Object.assign(document.createElement(tag), { textContent: text },
    attributes);

  // The words around the first that was looked for, those marked.
  const excerpt = (text, patterns) => {
    const places = patterns.map((word) => text.search(word)).filter((place) => place >= 0);
    const at = places.length ? Math.min(...places) : 0;
    const shown = text.slice(Math.max(0, at - 60), at + 140);
    const line = element("p", at > 60 ? "… " : "");
    const all = new RegExp(patterns.map((word) => word.source).join("|"), "giu");
    let end = 0;
    for (const match of shown.matchAll(all)) {
      line.append(shown.slice(end, match.index), element("mark", match[0]));
      end = match.index + match[0].length;
    }
    line.append(shown.slice(end) + (text.length > at + 140 ? " …" : ""));
    return line;
  };

  const show = (query) => {
    const patterns = words(query).map(pattern), pages = search(query);
    panel.replaceChildren();
    panel.hidden = patterns.length === 0;
    panel.append(element("p", pages.length === 0 ? "Nothing is found." : `${pages.length} pages`, { role: "status" }));
    for (const { file, title, kind, found } of pages.slice(0, PAGES)) {
      const head = element("h2", "");
      head.append(element("a", title, { href: file }), element("small", kind));
      panel.append(head);
      for (const { section: [anchor, heading, text] } of found.slice(0, SECTIONS)) {
        if (anchor) panel.append(element("a", heading, { href: `${file}#${anchor}` }));
        if (text) panel.append(excerpt(text, patterns));
      }
    }
    panel.scrollTop = 0;
  };

  field.addEventListener("focus", load);
  field.addEventListener("input", () => load().then(() => {
    if (!panel) {
      panel = element("div", "", { id: "search-results" });
      panel.addEventListener("click", (event) => { if (event.target.closest("a")) panel.hidden = true; });
      document.body.append(panel);
    }
    show(field.value);
  }));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape" && panel) {
      panel.hidden = true;
    } else if (event.key === "Enter" && event.target === field) {
      panel?.querySelector("a")?.click();
    } else if (event.key === "ArrowDown" && event.target === field && panel && !panel.hidden) {
      event.preventDefault();
      panel.querySelector("a")?.focus();
    }
  });
});
