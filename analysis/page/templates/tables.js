"use strict";
// Tables sort by any column, and the long ones show the rows that fit a filter, the first few of many. Without
// JavaScript, and in print, all rows stand.
(() => {
  const LONG = 12; // rows from which a table gets a filter
  const FIRST = 30; // rows that are shown of more, until all are asked for
  const key = (row, column) => row.cells[column].textContent.trim().replaceAll("\u2212", "-").replaceAll(",", "");
  const compare = (a, b) => {
    const numbers = [parseFloat(a), parseFloat(b)];
    if (numbers.every(Number.isFinite)) return numbers[0] - numbers[1];
    if (Number.isFinite(numbers[0]) !== Number.isFinite(numbers[1])) return Number.isFinite(numbers[0]) ? -1 : 1;
    return a.localeCompare(b, "en", { numeric: true });
  };
  const sort = (table, column, header) => {
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => compare(key(a, column), key(b, column)) * (down ? -1 : 1));
    body.append(...rows);
    table.dispatchEvent(new Event("sorted"));
  };
  for (const table of document.querySelectorAll("table")) {
    if (!table.tHead || table.tBodies[0].rows.length < 3) continue;
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      if (!header.textContent.trim()) return; // a button needs a name
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, column, header));
    });
  }
  const filter = (form, table) => {
    const more = document.createElement("button");
    more.type = "button";
    form.append(more);
    let all = false;
    const show = () => {
      const rows = [...table.tBodies[0].rows];
      const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of rows) {
        const fits = words.every((word) => row.textContent.toLowerCase().includes(word));
        row.hidden = !fits;
        row.classList.toggle("later", fits && !all && count >= FIRST);
        count += fits;
      }
      more.hidden = all || count <= FIRST;
      more.textContent = `Show all ${count}`;
      form.elements.count.value = `${count} of ${rows.length}` + (more.hidden ? "" : `, the first ${FIRST} shown`);
    };
    more.addEventListener("click", () => {
      all = true;
      show();
    });
    table.addEventListener("sorted", show);
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
  };
  for (const table of document.querySelectorAll(".wide > table")) {
    if (table.tBodies[0].rows.length < LONG) continue;
    const form = document.createElement("form");
    form.setAttribute("aria-label", `Filter: ${table.parentElement.getAttribute("aria-label")}`);
    form.innerHTML =
      '<label>Words <input type="search" name="words" autocomplete="off"></label>' +
      '<output name="count" aria-live="polite"></output>';
    table.parentElement.before(form);
    filter(form, table);
  }
})();
