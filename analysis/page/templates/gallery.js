"use strict";
// The squares, rows and cards that fit what is picked. Without JavaScript all stand.
(() => {
  const form = document.getElementById("picks");
  if (!form) return;
  const rows = [...document.querySelectorAll("#squares tr[data-record]")];
  const cards = new Map([...document.querySelectorAll("#cards > [data-record]")].map((card) => [card.dataset.record, card]));
  const claims = document.querySelectorAll("#squares a[data-verdict]").length;
  const show = () => {
    const picked = [...form.querySelectorAll("select")].filter((select) => select.value);
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (node, select) => node.dataset[select.name] === select.value;
    const count = { rows: 0, claims: 0 };
    for (const row of rows) {
      const ofClaims = picked.filter((select) => !(select.name in row.dataset));
      const standing = picked.every((select) => ofClaims.includes(select) || fits(row, select));
      let shown = 0;
      for (const square of row.querySelectorAll("a[data-verdict]")) {
        const text = `${row.dataset.record} ${square.textContent}`.toLowerCase();
        const fitting = standing && ofClaims.every((select) => fits(square, select)) && words.every((word) => text.includes(word));
        square.hidden = !fitting;
        shown += fitting;
      }
      row.hidden = !standing || (!shown && ofClaims.length + words.length > 0);
      cards.get(row.dataset.record).hidden = row.hidden;
      count.rows += !row.hidden;
      count.claims += shown;
    }
    form.elements.count.value = `${count.claims} of ${claims} claims, ${count.rows} of ${rows.length} recipes`;
  };
  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("filter").hidden = false;
  show();
})();
