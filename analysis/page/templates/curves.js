"use strict";
// Learning curves that a reader draws anew: which measure, by which axis, which arms, which part of the axis.
(() => {
  const place = document.getElementById("curves-data");
  if (!place) return;
  const [{ arms, charts }] = JSON.parse(place.textContent);
  const form = document.getElementById("curves-form");
  const picture = document.getElementById("curves");
  const said = document.getElementById("curves-said");
  const { measure, axis, whole } = form.elements;
  const HEIGHT = 280;
  let width = 720; // of the picture on this screen, so that its words keep their size
  const EDGE = { left: 56, right: 10, top: 10, bottom: 40 };
  const DASHES = ["none", "7 3", "2 2"]; // they change every twelve arms, after which colours come again
  const COLOURS = 12;
  let part = null; // the part of the axis that is shown: [from, to]; null: all of it
  let pressed = null; // where the pointer went down, on the axis

  const drawn = (tag, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  const short = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(1);
    return String(Number(value.toFixed(size < 1 ? 3 : size < 100 ? 2 : 0)));
  };
  const ticks = (low, high, count) => {
    const power = 10 ** Math.floor(Math.log10((high - low) / count));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= (high - low) / count);
    const round = [];
    for (let k = Math.ceil(low / step); k * step <= high && round.length < 12; k += 1) round.push(k * step);
    return round;
  };
  const inside = (x) => part === null || (x >= part[0] && x <= part[1]);
  const lines = () => {
    const shown = charts[measure.value].lines;
    return arms
      .map((arm, i) => ({ arm, i, x: arm.axes[axis.value], y: shown[i] }))
      .filter(({ i, x, y }) => x && y && form.elements[`arm-${i}`].checked);
  };

  let toX = null; // from the picture to the axis, for the pointer
  const draw = () => {
    const now = lines();
    whole.hidden = part === null;
    const all = now.flatMap(({ x }) => x);
    const seen = now.flatMap(({ x, y }) => x.flatMap((at, k) => (inside(at) ? [y.low[k], y.high[k]] : [])));
    picture.replaceChildren();
    width = Math.max(300, picture.clientWidth);
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    toX = null;
    if (!seen.length) {
      said.textContent = "Nothing is logged here: choose another arm, measure or axis.";
      return;
    }
    const [from, to] = part ?? [Math.min(0, ...all), Math.max(...all)];
    const room = (Math.max(...seen) - Math.min(...seen)) / 20 || Math.abs(seen[0]) / 20 || 1;
    const [low, high] = [Math.min(...seen) - room, Math.max(...seen) + room];
    const across = width - EDGE.left - EDGE.right;
    const x = (at) => EDGE.left + ((at - from) / (to - from || 1)) * across;
    const y = (value) => HEIGHT - EDGE.bottom - ((value - low) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
    toX = (pixel) => from + ((pixel - EDGE.left) / across) * (to - from);
    for (const value of ticks(low, high, 5)) {
      picture.append(
        drawn("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value), class: "rule" }),
        drawn("text", { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
      );
    }
    for (const at of ticks(from, to, width / 110)) {
      picture.append(drawn("text", { x: x(at), y: HEIGHT - 22, "text-anchor": "middle" }, short(at)));
    }
    picture.append(drawn("text", { x: EDGE.left + across / 2, y: HEIGHT - 5, "text-anchor": "middle" }, axis.value));
    const path = (ats, values) => ats.map((at, k) => `${x(at).toFixed(1)},${y(values[k]).toFixed(1)}`);
    for (const { arm, i, x: every, y: line } of now) {
      const kept = every.map((_, k) => k).filter((k) => inside(every[k]));
      const pick = (values) => kept.map((k) => values[k]);
      const band = [...path(pick(every), pick(line.low)), ...path(pick(every), pick(line.high)).reverse()];
      const dashes = DASHES[Math.floor(i / COLOURS) % DASHES.length];
      picture.append(
        drawn("polygon", { points: band.join(" "), fill: arm.colour, opacity: 0.12 }),
        drawn("polyline", {
          points: path(pick(every), pick(line.mean)).join(" "),
          stroke: arm.colour, "stroke-width": 2, "stroke-dasharray": dashes, fill: "none",
        }),
      );
    }
    const ends = now.map(({ arm, x: every, y: line }) => {
      const last = every.findLastIndex(inside);
      return `${arm.name} ${last < 0 ? "none" : short(line.mean[last])}`;
    });
    said.textContent = `${charts[measure.value].label}, at the right end: ${ends.join(", ")}.`;
    picture.setAttribute("aria-label", said.textContent);
  };

  const at = (event) => {
    const box = picture.getBoundingClientRect();
    return toX(((event.clientX - box.left) / box.width) * width);
  };
  picture.addEventListener("pointerdown", (event) => {
    if (!toX) return;
    pressed = at(event);
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointerup", (event) => {
    if (pressed === null || !toX) return;
    const [from, to] = [pressed, at(event)].sort((a, b) => a - b);
    pressed = null;
    const some = lines().some(({ x }) => x.filter((value) => value >= from && value <= to).length > 1);
    if (some) {
      part = [from, to];
      draw();
    }
  });
  const all = () => {
    part = null;
    draw();
  };
  charts.forEach((chart, i) => measure.append(new Option(chart.label, i)));
  for (const name of new Set(arms.flatMap((arm) => Object.keys(arm.axes)))) axis.append(new Option(name, name));
  arms.forEach((arm, i) => {
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, name: `arm-${i}` });
    const swatch = drawn("svg", { viewBox: "0 0 26 14", class: "swatch", "aria-hidden": "true" });
    const dashes = DASHES[Math.floor(i / COLOURS) % DASHES.length];
    swatch.append(drawn("line", { x1: 1, x2: 25, y1: 7, y2: 7, stroke: arm.colour, "stroke-width": 3, "stroke-dasharray": dashes }));
    label.append(box, swatch, arm.name);
    document.getElementById("curves-arms").append(label);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => (event.target === axis ? all() : draw()));
  whole.addEventListener("click", all);
  addEventListener("resize", draw);
  draw();
})();
