// Search and filters of the runs of a night. Talks to nothing outside the page.
"use strict";
(() => {
  const runs = [...document.querySelectorAll("ul.runs > li[data-verdict]")];
  const search = document.getElementById("search");
  const filters = [...document.querySelectorAll("select[data-filter]")];
  const texts = new Map(runs.map((run) => [run, run.textContent.toLowerCase()]));

  function holds(run, filter) {
    const value = run.dataset[filter.dataset.filter];
    const values = filter.dataset.filter === "fault" ? value.split(",") : [value];
    return !filter.value || values.includes(filter.value);
  }

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const run of runs) {
      const text = texts.get(run);
      run.hidden = !(words.every((word) => text.includes(word)) && filters.every((one) => holds(run, one)));
      count += run.hidden ? 0 : 1;
    }
    document.getElementById("shown").textContent = count + " of " + runs.length + (runs.length === 1 ? " run" : " runs");
  }

  search.addEventListener("input", show);
  for (const filter of filters) filter.addEventListener("change", show);
  document.getElementById("clear").addEventListener("click", () => {
    search.value = "";
    for (const filter of filters) filter.value = "";
    show();
  });
  document.getElementById("filters").hidden = runs.length === 0;
  show();
})();
