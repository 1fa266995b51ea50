// A pointer over a canvas, its wheel, and arrow keys -> the camera of a picture.

const RADIANS_A_PIXEL = 0.008;
const RADIANS_A_KEY = 0.1;
const HIGHEST = 1.5;  // In radians: just below the pole.
const [NEAREST, FARTHEST] = [2, 12];
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/**
 * Calls `look({ turn, lift, distance })` whenever the view changes.
 * @returns {() => void} A function that restores the first view.
 */
export function turnable(element, start, look) {
  let view = { ...start };

  function move(turn, lift, closer = 1) {
    view = {
      turn: view.turn + turn,
      lift: Math.min(HIGHEST, Math.max(-HIGHEST, view.lift + lift)),
      distance: Math.min(FARTHEST, Math.max(NEAREST, view.distance * closer)),
    };
    look(view);
  }

  function reset() {
    view = { ...start };
    look(view);
  }

  element.addEventListener("pointerdown", (event) => element.setPointerCapture(event.pointerId));
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    move(event.movementX * RADIANS_A_PIXEL, event.movementY * RADIANS_A_PIXEL);
  });
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    move(0, 0, 1.1 ** Math.sign(event.deltaY));
  }, { passive: false });
  element.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS)) return;
    event.preventDefault();
    const [right, up] = KEYS[event.key];
    move(RADIANS_A_KEY * right, RADIANS_A_KEY * up);
  });
  element.addEventListener("dblclick", reset);
  return reset;
}
