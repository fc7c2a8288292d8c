"use strict";
// Learning curves that a reader draws anew: which measure, by which axis, which arms, which part of the axis.
(() => {
  const place = document.getElementById("curves-data");
  if (!place) return;
  const [{ arms, charts }] = JSON.parse(place.textContent);
  const form = document.getElementById("curves-form");
  const picture = document.getElementById("curves");
  const said = document.getElementById("curves-said");
  const { measure, axis, whole, every, none } = form.elements;
  const HEIGHT = 280;
  let width = 720; // of the picture on this screen, so that its words keep their size
  const EDGE = { left: 56, right: 14, top: 10, bottom: 40 };
  const DASHES = ["none", "7 3", "2 2"]; // they change every twelve arms, after which colours come again
  const COLOURS = 12;
  const BANDS = 3; // the number of arms up to which their ranges are drawn; more would cover each other
  let part = null; // the part of the axis that is shown: [from, to]; null: all of it
  let pressed = null; // where the pointer went down, on the axis

  const shown = (number) => short(number).replace(/^-/, "\u2212");
  const value = (at, x, y) => { // of a line between its points; null outside of them
    const k = x.findIndex((point) => point >= at);
    if (k < 0 || (k === 0 && x[0] > at)) return null;
    const share = k === 0 ? 1 : (at - x[k - 1]) / (x[k] - x[k - 1] || 1);
    return k === 0 ? y[0] : y[k - 1] + share * (y[k] - y[k - 1]);
  };
  const ticked = () => arms.map((arm, i) => ({ arm, i })).filter(({ i }) => form.elements[`arm-${i}`].checked);
  const lines = () =>
    ticked()
      .map(({ arm, i }) => ({ arm, i, x: arm.axes[axis.value], y: charts[measure.value].lines[i] }))
      .filter(({ x, y }) => x && y);
  const say = (where, values) => {
    const sorted = values.filter(([, number]) => number !== null).sort((a, b) => b[1] - a[1]);
    said.textContent = `${charts[measure.value].label} ${where}: ${sorted.map(([name, number]) => `${name} ${shown(number)}`).join(", ")}.`;
  };

  let toX = null; // from the picture to the axis, for the pointer
  let toPixel = null; // from the axis to the picture
  const draw = () => {
    const now = lines();
    whole.hidden = part === null;
    arms.forEach((arm, i) => {
      const drawable = charts[measure.value].lines[i] && arm.axes[axis.value];
      form.elements[`arm-${i}`].parentElement.classList.toggle("absent", !drawable);
    });
    picture.replaceChildren();
    width = Math.max(300, picture.clientWidth);
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    toX = null;
    const all = now.flatMap(({ x }) => x);
    const [from, to] = part ?? [Math.min(0, ...all), Math.max(...all)];
    const banded = now.length <= BANDS;
    const seen = now.flatMap(({ x, y }) =>
      (banded ? [y.low, y.high] : [y.mean]).flatMap((line) => [
        ...line.filter((_, k) => x[k] >= from && x[k] <= to), value(from, x, line), value(to, x, line),
      ]),
    ).filter((number) => number !== null);
    if (!seen.length) {
      said.textContent = ticked().length ? "None of these arms has logged this measure here." : "Tick an arm.";
      return;
    }
    const room = (Math.max(...seen) - Math.min(...seen)) / 20 || Math.abs(seen[0]) / 20 || 1;
    const [low, high] = [Math.min(...seen) - room, Math.max(...seen) + room];
    const across = width - EDGE.left - EDGE.right;
    const x = (at) => EDGE.left + ((at - from) / (to - from || 1)) * across;
    const y = (number) => HEIGHT - EDGE.bottom - ((number - low) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
    toPixel = x;
    toX = (pixel) => from + ((pixel - EDGE.left) / across) * (to - from);
    for (const number of ticks(low, high, 5)) {
      picture.append(
        drawn("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(number), y2: y(number), class: "rule" }),
        drawn("text", { x: EDGE.left - 6, y: y(number) + 4, "text-anchor": "end" }, shown(number)),
      );
    }
    for (const at of ticks(from, to, Math.max(3, width / 110))) {
      const anchor = x(at) > width - 40 ? "end" : "middle";
      picture.append(drawn("text", { x: anchor === "end" ? width : x(at), y: HEIGHT - 22, "text-anchor": anchor }, shown(at)));
    }
    picture.append(drawn("text", { x: EDGE.left + across / 2, y: HEIGHT - 5, "text-anchor": "middle" }, axis.value));
    const inside = drawn("clipPath", { id: "curves-inside" });
    inside.append(drawn("rect", { x: EDGE.left, y: 0, width: across, height: HEIGHT - EDGE.bottom }));
    const plot = drawn("g", { "clip-path": "url(#curves-inside)" });
    picture.append(inside, plot);
    const path = (ats, numbers) => ats.map((at, k) => `${x(at).toFixed(1)},${y(numbers[k]).toFixed(1)}`);
    for (const { arm, i, x: ats, y: line } of now) {
      const dashes = DASHES[Math.floor(i / COLOURS) % DASHES.length];
      const range = [...path(ats, line.low), ...path(ats, line.high).reverse()].join(" ");
      if (banded) plot.append(drawn("polygon", { points: range, fill: arm.colour, opacity: 0.15 }));
      plot.append(
        drawn("polyline", {
          points: path(ats, line.mean).join(" "),
          stroke: arm.colour, "stroke-width": 2, "stroke-dasharray": dashes, fill: "none",
        }),
      );
    }
    plot.append(drawn("rect", { class: "dragged", y: EDGE.top, height: HEIGHT - EDGE.top - EDGE.bottom, width: 0 }));
    plot.append(drawn("line", { class: "pointer", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" }));
    rest();
    picture.setAttribute("aria-label", said.textContent);
  };
  const rest = () => {
    const end = (ats) => ats.findLastIndex((at) => part === null || at <= part[1]);
    say(part ? "at each arm's last point in this part" : "at each arm's last point", lines().map(({ arm, x, y }) => [arm.name, y.mean[end(x)] ?? null]));
    picture.querySelector(".pointer")?.setAttribute("visibility", "hidden");
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
  picture.addEventListener("pointermove", (event) => {
    if (!toX) return;
    const here = at(event);
    const line = picture.querySelector(".pointer");
    for (const end of ["x1", "x2"]) line.setAttribute(end, toPixel(here));
    line.setAttribute("visibility", "visible");
    const place = toX(width) - toX(0) < 20 ? here : Math.round(here);
    say(`at ${shown(place)} ${axis.value}`, lines().map(({ arm, x, y }) => [arm.name, value(here, x, y.mean)]));
    if (pressed === null) return;
    const [left, right] = [toPixel(pressed), toPixel(here)].sort((a, b) => a - b);
    const dragged = picture.querySelector(".dragged");
    dragged.setAttribute("x", left);
    dragged.setAttribute("width", right - left);
  });
  picture.addEventListener("pointerup", (event) => {
    if (pressed === null || !toX) return;
    const [from, to] = [pressed, at(event)].sort((a, b) => a - b);
    pressed = null;
    if (toPixel(to) - toPixel(from) > 8) part = [from, to]; // less is a click
    draw();
  });
  picture.addEventListener("pointerleave", () => toX && pressed === null && rest());
  const all = () => {
    part = null;
    draw();
  };
  const tick = (checked) => {
    arms.forEach((_, i) => { form.elements[`arm-${i}`].checked = checked; });
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
  every.addEventListener("click", () => tick(true));
  none.addEventListener("click", () => tick(false));
  addEventListener("resize", draw);
  draw();
})();
