// Learning curves: an arm a colour, a seed a thin line, the mean of the seeds a thick one; a chart a measure.

import { drawn, short, ticks } from "./svg.js";

const [WIDTH, HEIGHT] = [360, 190];
const EDGE = { left: 44, right: 8, top: 8, bottom: 24 };
const DASHES = ["none", "5 2", "1.5 1.5"]; // they change every half palette, so no two arms look alike
const HALF = 6;

// The smallest and the largest; apart from each other, also where all values are one.
const range = (values) => {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const room = (high - low) / 20 || Math.abs(high) / 20 || 1;
  return [low - room, high + room];
};

const style = (arms, name) => {
  const place = arms.findIndex((arm) => arm.name === name);
  return {
    stroke: arms[place].colour,
    "stroke-dasharray": DASHES[Math.floor(place / HALF) % DASHES.length],
    fill: "none",
  };
};

export const swatch = (arms, name) => {
  const made = drawn("svg", { viewBox: "0 0 26 14", class: "swatch", "aria-hidden": "true" });
  made.append(drawn("line", { x1: 1, x2: 25, y1: 7, y2: 7, "stroke-width": 3, ...style(arms, name) }));
  return made;
};

// The mean of each arm over its seeds, at the steps that half of them have reached; of one seed there is none.
const means = (lines) => {
  const averages = [];
  for (const [arm, seeds] of Map.groupBy(lines, (line) => line.arm)) {
    const values = new Map();
    for (const line of seeds) {
      line.steps.forEach((step, i) => values.set(step, [...(values.get(step) ?? []), line.values[i]]));
    }
    const reached = [...values].filter(([, there]) => 2 * there.length >= seeds.length).sort(([a], [b]) => a - b);
    if (seeds.length === 1 || !reached.length) continue;
    averages.push({
      arm,
      of: seeds.length,
      steps: reached.map(([step]) => step),
      values: reached.map(([, there]) => there.reduce((sum, value) => sum + value, 0) / there.length),
    });
  }
  return averages;
};

const spoken = (label, lines) => {
  const alone = lines.filter((line) => lines.every((other) => other === line || other.arm !== line.arm));
  const ends = [...alone, ...means(lines)].map((line) => `${line.arm} ${short(line.values.at(-1))}`);
  return `${label}, by step. At the end: ${ends.join(", ")}.`;
};

// Seeds step back behind the mean of their arm; one that still runs stands out.
const seen = (line, lines) => {
  if (line.running || lines.filter((other) => other.arm === line.arm).length === 1) return 1;
  return 0.28;
};

const picture = (label, lines, arms) => {
  const made = drawn("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "drawn", role: "img", "aria-label": spoken(label, lines),
  });
  const last = Math.max(1, ...lines.map((line) => line.steps.at(-1)));
  const [low, high] = range(lines.flatMap((line) => line.values));
  const x = (step) => EDGE.left + (step / last) * (WIDTH - EDGE.left - EDGE.right);
  const y = (value) => HEIGHT - EDGE.bottom - ((value - low) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
  for (const value of ticks(low, high, 4)) {
    made.append(
      drawn("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(value), y2: y(value), class: "rule" }),
      drawn("text", { x: EDGE.left - 5, y: y(value) + 4, "text-anchor": "end" }, short(value)),
    );
  }
  for (const step of ticks(0, last, 4)) {
    const anchor = step > 0.9 * last ? "end" : "middle";
    made.append(drawn("text", { x: x(step), y: HEIGHT - 8, "text-anchor": anchor }, step ? short(step) : "step 0"));
  }
  for (const line of [...lines, ...means(lines)]) {
    const points = line.steps.map((step, i) => `${x(step).toFixed(1)},${y(line.values[i]).toFixed(1)}`);
    if (points.length === 1) points.push(`${x(line.steps[0]) + 2},${y(line.values[0])}`); // else it is not seen
    const path = drawn("polyline", {
      points: points.join(" "), "stroke-width": line.of ? 2.2 : 1.1, "stroke-opacity": line.of ? 1 : seen(line, lines),
      ...style(arms, line.arm),
    });
    const whose = line.of ? `mean of ${line.of} seeds` : `seed ${line.seed}`;
    path.append(drawn("title", {}, `${line.arm}, ${whose}: ${short(line.values.at(-1))}`));
    made.append(path);
  }
  return made;
};

export const draw = (place, charts, arms, hidden) => {
  const shown = charts
    .map((chart) => ({ label: chart.label, lines: chart.lines.filter((line) => !hidden.has(line.arm)) }))
    .filter((chart) => chart.lines.length);
  place.replaceChildren(
    ...shown.map((chart) => {
      const figure = document.createElement("figure");
      const title = document.createElement("h3");
      title.textContent = chart.label;
      figure.append(title, picture(chart.label, chart.lines, arms));
      return figure;
    }),
  );
};
