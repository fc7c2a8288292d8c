// Parts of a chart as SVG: an element, a number as text, and the round values of an axis.

export const drawn = (tag, attributes, text = "") => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
};

export const short = (value) => {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(1);
  return String(Number(value.toFixed(size < 1 ? 3 : size < 100 ? 2 : 0)));
};

// Round values between the two, about so many.
export const ticks = (low, high, count) => {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const rounded = [];
  for (let k = Math.ceil(low / step); k * step <= high && rounded.length < 12; k += 1) rounded.push(k * step);
  return rounded;
};
