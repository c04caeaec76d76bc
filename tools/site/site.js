// The dark theme's switch, buttons that copy code, and the kernel beside its lesson.
DoxygenAwesomeDarkModeToggle.init();
DoxygenAwesomeFragmentCopyButton.init();

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
