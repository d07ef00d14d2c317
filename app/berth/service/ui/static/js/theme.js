// Not a module: it runs before anything is drawn, so that a chosen theme does not flash.
(() => {
  const stored = localStorage.getItem("theme");
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
})();
