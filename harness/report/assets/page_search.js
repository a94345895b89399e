// Contents, permalinks and the search within the page. Talks to nothing outside the page.
"use strict";
(() => {
  const contents = document.getElementById("contents");
  const field = document.getElementById("find");
  const found = document.getElementById("found");
  const status = document.getElementById("find-status");
  const wide = matchMedia("(min-width: 1400px)");
  const SHOWN_MAX = 40, WORDS_MAX = 140;

  // Beside the page there is room for it at all times; above the page it would push all away.
  const fold = () => { contents.open = wide.matches; };
  fold();
  wide.addEventListener("change", fold);

  function reveal(part) {
    for (let folded = part.closest("details"); folded; folded = folded.parentElement.closest("details"))
      folded.open = true;
    part.scrollIntoView({ block: part.matches("tr") ? "center" : "start" });
  }

  function follow() {
    const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (part) reveal(part);
  }
  addEventListener("hashchange", follow);
  // A second click on the same link changes nothing in the address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link) return;
    if (link.closest("summary")) event.stopPropagation();
    if (link.hash === location.hash) follow();
    if (!wide.matches && link.closest("#contents")) contents.open = false;
  });
  follow();

  const rows = () => [...document.querySelectorAll("[data-find]")].map((row) => {
    const section = row.closest("section")?.querySelector("h2");
    const where = section ? section.firstChild.textContent.trim() : "";
    const text = [...row.cells].map((cell) => cell.textContent.replace(/^\s*#/, "").trim()).join("  ");
    return { where, text: text.replace(/\s+/g, " "), go: () => mark(row) };
  });
  const operations = () => (globalThis.operationsView?.views ?? []).flatMap((view, number) =>
    view.label.map((label, at) => ({
      where: "Operation", text: `${label}, ${view.rows[view.row[at]]}, index ${view.index[at]}${view.key ? ", " + view.key : ""}`,
      go: () => globalThis.operationsView.reveal(number, at),
    })));
  let all;

  function mark(row) {
    for (const other of document.querySelectorAll(".found")) other.classList.remove("found");
    row.classList.add("found");
    reveal(row);
  }

  function search() {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.replaceChildren();
    status.textContent = "";
    if (!wanted.length) return;
    all ??= [...rows(), ...operations()].map((one) => ({ ...one, plain: one.text.toLowerCase() }));
    const hits = all.filter((one) => wanted.every((word) => one.plain.includes(word)));
    status.textContent = hits.length > SHOWN_MAX
      ? `${hits.length.toLocaleString("en")} found, the first ${SHOWN_MAX} are shown` : `${hits.length} found`;
    for (const hit of hits.slice(0, SHOWN_MAX)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${hit.where}: ${hit.text.slice(0, WORDS_MAX)}`;
      button.addEventListener("click", () => {
        if (!wide.matches) contents.open = false;
        hit.go();
      });
      const item = document.createElement("li");
      item.append(button);
      found.append(item);
    }
  }
  field.addEventListener("input", search);
})();
