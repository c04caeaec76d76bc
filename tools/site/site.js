// The dark theme's switch, buttons that copy code, what scrolls, the diff's two views, and the kernel beside its
// lesson.
DoxygenAwesomeDarkModeToggle.init();
DoxygenAwesomeFragmentCopyButton.init();

// A table or a drawing that is wider than its frame says that it scrolls.
document.addEventListener("DOMContentLoaded", () => {
  const FRAMES = ".table-frame, .drawing-frame";
  const watch = new ResizeObserver((entries) => {
    for (const frame of new Set(entries.map(({ target }) => target.closest(FRAMES))))
      frame.classList.toggle("scrolls", frame.scrollWidth > frame.clientWidth + 1);
  });
  for (const frame of document.querySelectorAll(FRAMES)) {
    watch.observe(frame);
    for (const inside of frame.children) watch.observe(inside); // formulas are set late, and change its width
  }
});

// The diff: the view that was chosen last, or what there is room for.
document.addEventListener("DOMContentLoaded", () => {
  const views = document.querySelectorAll('.changes input[name="diff"]');
  const chosen = localStorage.getItem("diff") ??
    (window.matchMedia("(min-width: 1100px)").matches ? "side-by-side" : "inline");
  for (const view of views) {
    view.checked = view.value === chosen;
    view.addEventListener("change", () => localStorage.setItem("diff", view.value));
  }
});

document.addEventListener("DOMContentLoaded", () => {
  const kernel = document.querySelector("aside.beside");
  if (!kernel) return;
  const hasRoom = () => window.matchMedia("(min-width: 1100px)").matches;
  const show = (beside) => document.documentElement.classList.toggle("beside", beside);
  const choose = (beside) => {
    show(beside);
    localStorage.setItem("beside", beside ? "yes" : "no"); // for the next chapter
  };
  const chosen = localStorage.getItem("beside");
  show(chosen ? chosen === "yes" : window.matchMedia("(min-width: 1700px)").matches);

  for (const link of document.querySelectorAll('a[href$="#kernel"]')) {
    link.addEventListener("click", (event) => {
      if (!hasRoom()) return; // it stands below: go there
      event.preventDefault();
      choose(!link.closest("nav") || !document.documentElement.classList.contains("beside"));
    });
  }
  for (const link of document.querySelectorAll("a.step")) {
    link.addEventListener("click", () => { if (hasRoom()) show(true); });
  }
  kernel.querySelector("button").addEventListener("click", () => choose(false));
});
