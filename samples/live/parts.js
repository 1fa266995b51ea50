// Common parts of pages with a fit: numbers in the address, the dispatches of a step, and the error
// message of a page that cannot continue.

import { HostError } from "./shaderad.js";

export const NO_WEBGPU = "this page needs WebGPU, which this browser does not give it; try Chrome, "
  + "Edge, or a recent Safari or Firefox, over https or on localhost";

const query = new URLSearchParams(location.search);

export const find = (id) => document.getElementById(id);

/** A number in the address. */
export function asked(name, otherwise, least = 0) {
  const value = Number(query.get(name) ?? otherwise);
  if (value >= least && value < Infinity) return value;
  throw new HostError(`${name}=${query.get(name)} in the address is no number from ${least} on`);
}

/** One line per program, with the number of its runs in a step. */
export function* dispatches(files) {
  for (const file of new Set(files)) {
    const link = Object.assign(document.createElement("a"), { href: file });
    link.textContent = file.replace(/^.*\/|\.wgsl$/g, "");
    const times = files.filter((one) => one === file).length;
    const item = document.createElement("li");
    item.append(link, times > 1 ? `, ${times} times` : "");
    yield item;
  }
}

/** Shows the first error, and none of those that follow from it. */
export function fail(failure) {
  if (document.body.dataset.state === "failed") return;
  const isKnown = failure instanceof HostError;
  find("message").textContent = isKnown ? `Sorry: ${failure.message}.` : failure.stack;
  find("message").hidden = false;
  document.querySelector("main").hidden = true;
  document.body.dataset.state = "failed";
}
