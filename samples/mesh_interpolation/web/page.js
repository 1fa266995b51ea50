// The page: steps of the fit in each frame, its pictures, and its controls.
//
// In the address, `?fit=colors` chooses the attribute to fit, `size` the pixels along an edge of a
// target, `lr` the learning rate, `steps` the steps after which the page pauses, `pace` the steps
// per frame, `edge` the pixels along an edge of the canvas, and `samples` the picture's pixels
// along an edge of each of those; `direct` is 1 for a WebGPU canvas, 0 for a copied one.

import { Screen } from "./canvas.js";
import { Curve } from "./curve.js";
import { Fit } from "./fit.js";
import { asked, dispatches, fail, find, NO_WEBGPU } from "./parts.js";
import { sceneOf } from "./scene.js";
import { HostError } from "./shaderad.js";
import { turnable } from "./turning.js";

const STEPS_A_READ = 10;
const EDGE = 512;  // The edge of the canvas in pixels.
const [FEWEST_PIXELS, MOST_PIXELS] = [16, 2048];  // Along an edge.
const PAUSE_AFTER = 600;  // Steps, so that a forgotten page stops.

const query = new URLSearchParams(location.search);
const shown = () => document.querySelector("[name=show]:checked").value;

class Page {
  #scene;
  #screen;
  #fit;
  #size;
  #shownSize;
  #curve = new Curve(find("curve"));
  #resetView;
  #pauseAt;
  /** True if the canvas is out of date. */
  #isStale;
  /** The number of pending reads of losses and starts of fits. */
  #waits = 0;
  /** The start of the measurement of speed; undefined while paused. */
  #since;

  async open() {
    if (!(await navigator.gpu?.requestAdapter())) throw new HostError(NO_WEBGPU);
    this.#scene = await sceneOf(".");
    const { device } = this.#scene;
    device.lost.then(({ message }) => fail(new HostError(`the device was lost: ${message}`)));
    const isGpu = !device.adapterInfo?.isFallbackAdapter;
    const samples = asked("samples", isGpu ? 2 : 1, 1);
    this.#shownSize = samples * pixels("edge", EDGE);
    const isDirect = Boolean(asked("direct", isGpu));
    this.#screen = new Screen(device, find("picture"), this.#shownSize, samples, isDirect);
    for (const [name, { title }] of Object.entries(this.#scene.fits)) {
      find("attribute").append(new Option(title, name, false, name === query.get("fit")));
    }
    this.#listen();
    await this.#choose();
  }

  /** Starts the selected fit. */
  async #choose() {
    const name = find("attribute").value;
    const size = pixels("size", this.#scene.fits[name].size);
    const fit = await this.#awaited(Fit.of(this.#scene, name, size, this.#shownSize));
    if (name !== find("attribute").value) return;  // Another fit was selected in the meantime.
    [this.#fit, this.#size] = [fit, size];
    this.#setRate(asked("lr", this.#fit.lr));
    this.#tellAbout(name);
    this.#resetView();
    this.#reset();
    find("dispatches").replaceChildren(...dispatches(this.#fit.files));
  }

  #tellAbout(name) {
    const { device, fits, arrays } = this.#scene;
    const { corners, positions, views } = arrays[fits[name].model];
    const [faces, vertices] = [corners, positions].map((one) => one.shape[0].toLocaleString("en"));
    const { vendor, architecture } = device.adapterInfo ?? {};
    const made = [vendor, architecture].filter(Boolean).join(" ");
    const pictures = views ? `${views.shape[0]} pictures` : "one picture";
    const mesh = `${faces} triangles, ${vertices} vertices`;
    const sizes = `${pictures} of ${this.#size} x ${this.#size} pixels`;
    find("about").textContent = [mesh, sizes, made].filter(Boolean).join("; ");
  }

  // -- controls -----------------------------------------------------------------------------------

  #listen() {
    const { turn, lift, distance } = this.#scene.camera;
    this.#resetView = turnable(find("view"), { turn, lift, distance }, (view) => {
      this.#fit.lookFrom(view);
      this.#redraw();
    });
    find("show").addEventListener("change", () => this.#redraw());
    find("attribute").addEventListener("change", () => this.#choose().catch(fail));
    find("pause").addEventListener("click", () => this.#run(!this.#isRunning));
    find("step").addEventListener("click", () => this.#step());
    find("reset").addEventListener("click", () => this.#reset());
    find("lr").addEventListener("input", ({ target }) => this.#setRate(10 ** target.value));
  }

  get #isRunning() {
    return this.#fit.steps < this.#pauseAt;
  }

  #run(isRunning) {
    this.#pauseAt = isRunning ? this.#fit.steps + PAUSE_AFTER : this.#fit.steps;
    this.#since = undefined;
    this.#tell();
  }

  #setRate(lr) {
    this.#fit.lr = lr;
    find("lr").value = Math.log10(lr);
    find("lr-value").textContent = lr.toPrecision(2);
  }

  #reset() {
    this.#fit.reset();
    this.#pauseAt = asked("steps", PAUSE_AFTER);
    this.#since = undefined;
    this.#curve.clear();
    for (const one of ["psnr", "speed"]) find(one).textContent = "-";
    this.#tell();
    this.#redraw();
  }

  #redraw() {
    this.#isStale = true;
    document.body.dataset.state = "busy";
  }

  // -- frames -------------------------------------------------------------------------------------

  async frame() {
    for (let k = asked("pace", 1); k > 0 && this.#isRunning; k--) this.#step();
    if (this.#isStale) {
      this.#isStale = false;
      await this.#screen.show(await this.#fit.picture(shown()));
    }
    await this.#scene.device.queue.onSubmittedWorkDone();
    const isBusy = this.#isRunning || this.#isStale || this.#waits;
    document.body.dataset.state = isBusy ? "busy" : "at rest";
  }

  /** The page is busy meanwhile. */
  async #awaited(promise) {
    this.#waits += 1;
    document.body.dataset.state = "busy";
    return promise.finally(() => (this.#waits -= 1));
  }

  #step() {
    this.#fit.step();
    this.#redraw();
    const isRead = this.#fit.steps % STEPS_A_READ === 0 || this.#fit.steps === 1;
    if (isRead || !this.#isRunning) this.#note().catch(fail);
    this.#tell();
  }

  /** Reads the loss and shows it; frames continue in the meantime. */
  async #note() {
    const { steps } = this.#fit;
    const [fit, time] = [this.#fit, performance.now()];
    const loss = await this.#awaited(fit.loss());
    if (fit !== this.#fit || steps > fit.steps) return;  // Another fit began in the meantime.
    this.#curve.add(steps, loss);
    find("psnr").textContent = (-10 * Math.log10(loss)).toFixed(2);
    if (this.#since) {
      const { time: start, steps: done } = this.#since;
      find("speed").textContent = ((1000 * (steps - done)) / (time - start)).toPrecision(3);
    }
    this.#since = { time, steps };
  }

  #tell() {
    find("steps").textContent = this.#fit.steps;
    find("pause").textContent = this.#isRunning ? "Pause" : "Go on";
  }
}

/** A number of pixels along an edge in the address. */
function pixels(name, otherwise) {
  const value = asked(name, otherwise, FEWEST_PIXELS);
  if (Number.isInteger(value) && value <= MOST_PIXELS) return value;
  throw new HostError(`${name}=${value} in the address is no whole number up to ${MOST_PIXELS}`);
}

try {
  const page = new Page();
  await page.open();
  find("message").hidden = true;
  document.querySelector("main").hidden = false;
  while (document.body.dataset.state !== "failed") {
    await page.frame();
    await new Promise(requestAnimationFrame);
  }
} catch (failure) {
  fail(failure);
}
