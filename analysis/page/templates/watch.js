// The page of `encore watch`. What comes from a run is untrusted: it reaches the page as text nodes only.
import { draw, swatch } from "./charts.js";

const EVERY = 2000; // milliseconds between two looks
const STATES = { running: "▶", done: "✓", failed: "✗", stopped: "❚❚", waiting: "·" };
const part = (name) => document.getElementById(name);
const hidden = new Set(); // the arms that are switched off
const picked = new Set(); // the lists in which a person has chosen
const told = {}; // what each part of the page was last drawn from

const element = (tag, className, ...content) => {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content); // strings become text nodes
  return made;
};
const short = (value) => (value === null ? "none" : String(Number(value.toFixed(3))));
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const duration = (seconds) => {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} days`;
};
const place = (job) => `${job.run} ${job.arm} seed ${job.seed}`;

// Calls `drawing` unless it was last called for the same.
const unlike = (name, value, drawing) => {
  const text = JSON.stringify(value);
  if (told[name] === text) return;
  told[name] = text;
  drawing();
};
// `follow`: the first is chosen, not what was chosen before.
const fill = (select, values, labels = values, follow = false) => {
  unlike(select.id, [values, labels], () => {
    const chosen = select.value;
    select.replaceChildren(...values.map((value, i) => new Option(labels[i], value)));
    if (values.includes(chosen)) select.value = chosen;
  });
  if (follow && values.length) [select.value] = values;
};

// -- now ------------------------------------------------------------------------------------------------------

const card = (job, now) => {
  const made = element("article", "card");
  const title = element("h3", "", element("span", `badge ${job.state}`, job.state), `${job.name} `);
  title.append(element("small", "", place(job)));
  made.append(title);
  const parts = [];
  if (job.total) {
    const bar = element("progress", "");
    [bar.max, bar.value] = [job.total, Math.min(job.counted, job.total)];
    bar.setAttribute("aria-label", `${job.name}, ${place(job)}`);
    made.append(bar);
  }
  const counts = job.what === "step"; // else it is an evaluation, which tells of its completions
  if (job.what) parts.push(`${job.what} ${job.counted}${job.total ? ` of ${job.total}` : ""}${counts ? "" : ` ${job.measured}`}`);
  if (job.rate) parts.push(`${job.rate} tokens/s`);
  if (job.left && job.state === "running") parts.push(`${job.left} left`);
  parts.push(`last sign ${duration(now - job.changed)} ago`);
  made.append(element("p", "measured", parts.join(" · ")));
  if (job.measured && counts) made.append(element("p", "measured", job.measured));
  for (const text of job.warnings) made.append(element("p", "warning", `⚠ ${text}`));
  if (job.ended) made.append(element("p", "ended", job.ended));
  return made;
};

const showNow = (news) => {
  const running = news.active.filter((job) => job.state === "running");
  const ended = news.active.filter((job) => job.state !== "running");
  const counts = {};
  for (const run of news.runs) {
    for (const [state, count] of Object.entries(run.counts)) counts[state] = (counts[state] ?? 0) + count;
  }
  part("folder").textContent = news.folder;
  part("headline").textContent = Object.keys(STATES)
    .filter((state) => counts[state] || state === "running")
    .map((state) => `${counts[state] ?? 0} ${state}`)
    .join(" · ");
  document.title = `${running.length} running · Encore`;
  const left = news.seconds_left === null ? "" : `About ${duration(news.seconds_left)} left of the run that was started last. `;
  part("left").textContent = left + (counts.waiting ? `${plural(counts.waiting, "job")} still to start.` : "");
  unlike("now", [running, ended, Math.floor(news.now / 2)], () => {
    part("now").replaceChildren(...running.map((job) => card(job, news.now)));
    part("ended-jobs").replaceChildren(...ended.slice(0, 100).map((job) => card(job, news.now)));
  });
  part("nothing").hidden = running.length > 0;
  if (part("ended").hidden && ended.some((job) => job.state === "failed")) part("ended").open = true;
  part("ended").hidden = ended.length === 0;
  part("ended-count").textContent = `Failed or stopped: ${plural(ended.length, "job")}; the same command goes on from what they saved`;
  const names = news.runs.map((run) => run.name);
  const goesOn = (name) => news.runs.some((run) => run.name === name && run.counts.running);
  fill(part("run"), names, names, !picked.has("run") && !goesOn(part("run").value) && goesOn(names[0]));
  const chosen = news.runs.find((run) => run.name === part("run").value);
  part("counts").value = chosen ? Object.entries(chosen.counts).map(([state, count]) => `${count} ${state}`).join(", ") : "";
};

// -- jobs and curves ------------------------------------------------------------------------------------------

const mark = (job, arm, seed) => {
  const name = job.kind === "eval" ? `evaluation ${job.name}` : job.name;
  const made = element("span", `job ${job.state}`, element("span", "", STATES[job.state]));
  made.firstChild.setAttribute("aria-hidden", "true");
  made.append(element("span", "unseen", `${name} ${job.state} `));
  made.title = `${arm}, seed ${seed}: ${name} ${job.state}`;
  return made;
};

const showGrid = (run) => {
  const table = element("table", "");
  const head = table.createTHead().insertRow();
  head.append(...["Arm", ...run.seeds.map((seed) => `seed ${seed}`)].map((text) => element("th", "", text)));
  for (const cell of head.cells) cell.scope = "col";
  const body = table.createTBody();
  for (const row of run.rows) {
    const line = body.insertRow();
    const arm = element("th", "", row.arm);
    arm.scope = "row";
    line.append(arm);
    row.cells.forEach((jobs, i) => {
      line.insertCell().append(...jobs.map((job) => mark(job, row.arm, run.seeds[i])));
    });
  }
  part("grid").replaceChildren(table);
  part("key").replaceChildren(
    "A mark is a job: first the stages, then the evaluations.",
    ...Object.keys(STATES).flatMap((state) => [element("span", `job ${state}`, STATES[state]), ` ${state}`]),
  );
};

const showArms = (run) => {
  const drawn = new Set(run.charts.flatMap((chart) => chart.lines.map((line) => line.arm)));
  part("arms").replaceChildren(
    ...run.arms.filter(({ name }) => drawn.has(name)).map(({ name }) => {
      const box = element("input", "");
      box.type = "checkbox";
      box.checked = !hidden.has(name);
      box.addEventListener("change", () => {
        if (box.checked) hidden.delete(name);
        else hidden.add(name);
        draw(part("charts"), run.charts, run.arms, hidden);
      });
      return element("label", "", box, swatch(run.arms, name), name);
    }),
  );
};

const showRun = (run) => {
  if (!run) return;
  unlike("grid", [run.seeds, run.rows], () => showGrid(run));
  fill(part("stage"), run.stages);
  part("stage").value = run.stage;
  unlike("arms", [run.name, run.charts], () => {
    const focused = document.activeElement?.closest("#arms label")?.textContent;
    showArms(run);
    for (const label of part("arms").children) if (label.textContent === focused) label.firstChild.focus();
    draw(part("charts"), run.charts, run.arms, hidden);
  });
  part("flat").hidden = run.charts.length > 0;
  part("warned").hidden = run.warnings.length === 0;
  part("warned-count").textContent = `${plural(run.warnings.length, "warning")} of the jobs that are done`;
  unlike("warnings", run.warnings, () => {
    part("warnings").replaceChildren(
      ...run.warnings.slice(0, 500).map(({ id, text }) => element("li", "", `${id}: ${text}`)),
    );
  });
  fill(part("job"), run.sampled, run.sampled.map((id) => id.slice(run.name.length + 1)), !picked.has("job"));
  part("looked").hidden = run.sampled.length === 0;
};

// -- the last rollout -----------------------------------------------------------------------------------------

const completion = (row, largest) => {
  const made = element("article", "card");
  const parts = Object.entries(row.rewards).map(([name, value]) => `${name} ${short(value)}`);
  const head = element("p", "head");
  const facts = [`reward ${short(row.reward)}${parts.length > 1 ? ` (${parts.join(", ")})` : ""}`];
  if (row.advantage !== null) facts.push(`advantage ${short(row.advantage)}`);
  if (row.tokens !== null) facts.push(plural(row.tokens, "token"));
  if (row.ended === false) facts.push("cut at the cap");
  if (row.kept === false) facts.push("left out of the update");
  head.append(...facts.map((fact) => element("span", "", fact)));
  made.append(head, element("pre", "", row.text));
  if (row.advantage) {
    made.classList.add(row.advantage > 0 ? "up" : "down");
    made.style.setProperty("--weight", `${Math.round((100 * Math.abs(row.advantage)) / largest)}%`);
  }
  return made;
};

const showRollout = (rollout) => {
  const questions = rollout?.questions ?? [];
  fill(part("question"), questions.map((_, i) => String(i)), questions.map((_, i) => `${i + 1} of ${questions.length}`));
  const asked = questions[Number(part("question").value)];
  unlike("rollout", [rollout?.step, asked], () => {
    const said = part("said");
    part("prompt").hidden = !asked;
    if (!asked) {
      said.textContent = "No training of this run has sampled anything, or it is not on the disk yet: it is written every few steps.";
      part("group").replaceChildren();
      return;
    }
    said.replaceChildren(
      `Step ${rollout.step}, ${plural(asked.group.length, "completion")} of one question. `,
      element("span", "scale up", "Made likelier"), " ", element("span", "scale down", "made less likely"),
      ", by the advantage, deeper where it is larger. The files keep one advantage for a completion: where tokens have their own, it is their mean.",
    );
    part("prompt").textContent = asked.answer ? `${asked.prompt}\nanswer: ${asked.answer}` : asked.prompt;
    const largest = Math.max(...asked.group.map((row) => Math.abs(row.advantage ?? 0))) || 1;
    part("group").replaceChildren(...asked.group.map((row) => completion(row, largest)));
    for (const text of document.querySelectorAll("pre")) text.tabIndex = text.scrollHeight > text.clientHeight ? 0 : -1;
  });
};

// -- again and again ------------------------------------------------------------------------------------------

const ask = async (name, words = {}) => {
  const answer = await fetch(`${name}.json?${new URLSearchParams(words)}`);
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer.json();
};

const look = async () => {
  showNow(await ask("jobs"));
  showRun(await ask("run", { run: part("run").value, stage: part("stage").value }));
  showRollout(await ask("rollout", { job: part("job").value }));
};

let timer = 0;
let looking = false;
const again = async () => {
  clearTimeout(timer);
  if (looking) return;
  looking = true;
  try {
    if (!document.hidden) await look();
    part("lost").hidden = true;
  } catch (error) {
    part("lost").textContent = `No answer: has encore watch ended? (${error.message})`;
    part("lost").hidden = false;
  }
  looking = false;
  timer = setTimeout(again, EVERY);
};

for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
for (const name of ["run", "stage", "job", "question"]) {
  part(name).addEventListener("change", () => {
    picked.add(name);
    if (name === "run") picked.delete("job");
    again();
  });
}
document.addEventListener("visibilitychange", again);
again();
