// Sorts the table of locks, and shows the details of a lock or of a wait.
"use strict";
const table = document.getElementById("lock-table");
for (const button of table?.querySelectorAll("button[data-sort]") ?? []) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const name = button.dataset.sort;
    const ascending = head.getAttribute("aria-sort") === "descending";
    for (const other of table.querySelectorAll("th[aria-sort]")) {
      other.removeAttribute("aria-sort");
    }
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const value = (body) => Number(body.dataset[name]);
    const bodies = [...table.tBodies];
    bodies.sort((a, b) => (ascending ? value(a) - value(b) : value(b) - value(a)));
    table.append(...bodies);
  });
}
for (const row of table?.querySelectorAll("tr.lock") ?? []) {
  const toggle = () => {
    const isOpen = row.getAttribute("aria-expanded") === "true";
    row.setAttribute("aria-expanded", String(!isOpen));
    row.nextElementSibling.hidden = isOpen;
  };
  row.addEventListener("click", toggle);
  row.addEventListener("keydown", (event) => {
    if (event.key === "Enter") toggle();
  });
}
const picked = document.getElementById("picked");
for (const wait of document.querySelectorAll("button.wait")) {
  wait.addEventListener("click", () => {
    document.querySelector("button.wait.chosen")?.classList.remove("chosen");
    wait.classList.add("chosen");
    const template = document.getElementById(`wait-${wait.dataset.wait}`);
    picked.replaceChildren(template.content.cloneNode(true));
  });
}
