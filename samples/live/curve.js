// Pairs of a step and its loss -> a curve, as SVG; the loss on a logarithmic axis.

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [310, 200];
const [LEFT, RIGHT, TOP, BOTTOM] = [38, 14, 8, 34];
const FEWEST_STEPS = 100;  // On the axis, so that the first points do not race along it.

export class Curve {
  #axes = made("g", { class: "axes" });
  #line = made("path", { class: "line" });
  #dot = made("circle", { class: "dot", r: 3.5 });
  #points = [];

  /** @param {SVGSVGElement} svg Empty; its style formats `.axes`, `.line` and `.dot`. */
  constructor(svg) {
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.replaceChildren(this.#axes, this.#line, this.#dot);
    this.#draw();
  }

  add(step, loss) {
    this.#points.push([step, loss]);
    this.#draw();
  }

  clear() {
    this.#points = [];
    this.#draw();
  }

  #draw() {
    const losses = this.#points.map(([, loss]) => Math.log10(Math.max(loss, 1e-12)));
    const high = Math.ceil(Math.max(-2, ...losses));
    const low = Math.min(Math.floor(Math.min(...losses)), high - 2);
    const last = Math.max(FEWEST_STEPS, this.#points.at(-1)?.[0] ?? 0);
    const right = (step) => LEFT + (step / last) * (WIDTH - LEFT - RIGHT);
    const down = (power) => TOP + ((high - power) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    const places = this.#points.map(([step], k) => [right(step), down(losses[k])]);
    this.#line.setAttribute("d", places.map(([x, y], k) => `${k ? "L" : "M"}${x},${y}`).join(""));
    const [x, y] = places.at(-1) ?? [-WIDTH, 0];
    this.#dot.setAttribute("cx", x);
    this.#dot.setAttribute("cy", y);
    this.#axes.replaceChildren(...axes(low, high, last, right, down));
  }
}

/** Lines and labels: one per power of ten, and about five for steps. */
function* axes(low, high, last, right, down) {
  for (let power = low; power <= high; power++) {
    const y = down(power);
    yield made("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y });
    yield label(LEFT - 6, y + 4, "end", `1e${power}`);
  }
  const step = roundStep(last / 5);
  for (let at = 0; at <= last; at += step) {
    yield label(right(at), HEIGHT - BOTTOM + 16, "middle", at);
  }
  yield label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, "middle", "step");
}

/** 1, 2 or 5 times a power of ten, from `least` on. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((digit) => digit * power >= least);
}

function label(x, y, anchor, text) {
  const found = made("text", { x, y, "text-anchor": anchor });
  found.textContent = text;
  return found;
}

function made(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
