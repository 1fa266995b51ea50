// The page: steps of the fit in each frame, its pictures, and its controls.
//
// In the address, `?steps=600` sets the steps after which the page pauses, and `pace` the steps per
// frame; `direct` is 1 for a WebGPU canvas, 0 for one to which pixels are copied.

import { Screen } from "./canvas.js";
import { Curve } from "./curve.js";
import { asked, dispatches, fail, find, NO_WEBGPU } from "./parts.js";
import { HostError } from "./shaderad.js";
import { Training } from "./training.js";

const STEPS_A_READ = 5;

class Page {
  #training;
  #screen;
  #curve = new Curve(find("curve"));
  #pauseAt;
  /** What is shown, a film picture by picture, and how many of them were. */
  #film = { count: 0 };
  #shownCount = 0;
  /** True if there was a step, or another choice, since the film was made. */
  #isStale;
  /** The number of losses that are being read. */
  #waits = 0;
  /** The start of the measurement of speed; undefined while paused. */
  #since;

  async open() {
    if (!(await navigator.gpu?.requestAdapter())) throw new HostError(NO_WEBGPU);
    this.#training = await Training.of(".");
    const { device, told, files } = this.#training;
    device.lost.then(({ message }) => fail(new HostError(`the device was lost: ${message}`)));
    document.title = find("title").textContent = told.title;
    find("text").textContent = told.text;
    find("show").append(...Object.keys(told.views).map(choice));
    find("dispatches").replaceChildren(...dispatches(files));
    const isDirect = Boolean(asked("direct", !device.adapterInfo?.isFallbackAdapter));
    this.#screen = new Screen(device, find("picture"), told.size, 1, isDirect, false);
    this.#listen();
    this.#reset();
  }

  #listen() {
    find("show").addEventListener("change", () => this.#redraw());
    find("pause").addEventListener("click", () => this.#run(!this.#isRunning));
    find("step").addEventListener("click", () => this.#step());
    find("reset").addEventListener("click", () => this.#reset());
  }

  get #isRunning() {
    return this.#training.steps < this.#pauseAt;
  }

  #run(isRunning) {
    const { steps, told } = this.#training;
    this.#pauseAt = isRunning ? steps + told.steps : steps;
    this.#since = undefined;
    this.#tell();
  }

  #reset() {
    this.#training.reset();
    this.#pauseAt = asked("steps", this.#training.told.steps);
    this.#since = undefined;
    this.#curve.clear();
    for (const one of ["psnr", "speed"]) find(one).textContent = "-";
    this.#tell();
    this.#redraw();
  }

  /** Shows the chosen view from its beginning. */
  #redraw() {
    this.#isStale = true;
    this.#shownCount = this.#film.count;
    document.body.dataset.state = "busy";
  }

  async frame() {
    for (let k = asked("pace", 1); k > 0 && this.#isRunning; k--) this.#step();
    if (this.#shownCount >= this.#film.count && (this.#isStale || this.#isRunning)) {
      this.#isStale = false;
      this.#film = film(await this.#training.view(chosen()));
      this.#shownCount = 0;
    }
    if (this.#shownCount < this.#film.count) {
      await this.#screen.show(this.#film.picture(this.#shownCount++));
    }
    await this.#training.device.queue.onSubmittedWorkDone();
    const isPlaying = this.#shownCount < this.#film.count;
    const isBusy = this.#isRunning || this.#isStale || isPlaying || this.#waits;
    document.body.dataset.state = isBusy ? "busy" : "at rest";
  }

  #step() {
    this.#training.step();
    this.#isStale = true;
    document.body.dataset.state = "busy";
    const { steps } = this.#training;
    if (steps % STEPS_A_READ === 0 || steps === 1 || !this.#isRunning) this.#note().catch(fail);
    this.#tell();
  }

  /** Reads the loss and shows it; frames continue in the meantime. */
  async #note() {
    const { steps } = this.#training;
    const time = performance.now();
    this.#waits += 1;
    const loss = await this.#training.loss().finally(() => (this.#waits -= 1));
    if (steps > this.#training.steps) return;  // The fit was restarted in the meantime.
    this.#curve.add(steps, loss);
    find("psnr").textContent = (-10 * Math.log10(loss)).toFixed(2);
    if (this.#since) {
      const { time: start, steps: done } = this.#since;
      find("speed").textContent = ((1000 * (steps - done)) / (time - start)).toPrecision(3);
    }
    this.#since = { time, steps };
  }

  #tell() {
    find("steps").textContent = this.#training.steps;
    find("pause").textContent = this.#isRunning ? "Pause" : "Go on";
  }
}

const chosen = () => document.querySelector("[name=show]:checked").value;

/** The control that chooses a view. */
function choice(name, k) {
  const label = document.createElement("label");
  const button = Object.assign(document.createElement("input"), { type: "radio", name: "show" });
  Object.assign(button, { value: name, checked: k === 0 });
  const text = Object.assign(document.createElement("span"), { textContent: name });
  label.append(button, text);
  return label;
}

/** Pictures that are stored one after the other. */
function film(array) {
  const count = array.shape.length > 2 ? array.shape[0] : 1;
  const byteCount = array.byteCount / count;
  return { count, picture: (k) => ({ ...array, byteCount, offset: k * byteCount }) };
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
