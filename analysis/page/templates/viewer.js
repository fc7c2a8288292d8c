"use strict";
// Completions are untrusted: they reach the page as text nodes only.
(() => {
  const rows = JSON.parse(document.getElementById("rollouts").textContent);
  const form = document.getElementById("viewer");
  const cards = document.getElementById("cards");
  const { arm, step, outcome, count } = form.elements;

  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    return made;
  };
  const short = (value) => (value === null ? "none" : String(Number(value.toFixed(3))));
  const fill = (select, values, labels) => {
    const chosen = select.value;
    select.replaceChildren(...values.map((value, i) => new Option(labels ? labels[i] : value, value)));
    if (values.map(String).includes(chosen)) select.value = chosen;
  };
  const steps = () => {
    const found = [...new Set(rows.filter((row) => row.arm === arm.value).map((row) => row.step))];
    fill(step, ["", ...found], ["all", ...found]);
  };
  const card = (row) => {
    const made = element("article", "card", "");
    const head = element("p", "head", "");
    const parts = Object.entries(row.rewards).map(([name, value]) => `${name} ${short(value)}`);
    const verdict = row.correct === null ? "not scored" : row.correct ? "correct" : "incorrect";
    head.append(
      element("span", `mark ${row.correct ? "right" : "wrong"}`, verdict),
      element("span", "", `step ${row.step}`),
      element("span", "", `reward ${short(row.reward)}${parts.length > 1 ? ` (${parts.join(", ")})` : ""}`),
    );
    if (row.tokens !== null) head.append(element("span", "", `${row.tokens} tokens`));
    made.append(head, element("pre", "prompt", row.prompt), element("pre", "", row.completion));
    if (row.answer) made.append(element("p", "answer", `answer ${row.answer}`));
    return made;
  };
  const show = () => {
    const shown = rows.filter(
      (row) =>
        row.arm === arm.value &&
        (step.value === "" || String(row.step) === step.value) &&
        (outcome.value === "" || String(row.correct) === outcome.value),
    );
    cards.replaceChildren(...shown.map(card));
    for (const text of cards.querySelectorAll("pre")) if (text.scrollHeight > text.clientHeight) text.tabIndex = 0;
    count.value = `${shown.length} shown`;
  };

  fill(arm, [...new Set(rows.map((row) => row.arm))]);
  steps();
  if (step.options.length > 1) step.selectedIndex = step.options.length - 1;
  arm.addEventListener("change", steps);
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
