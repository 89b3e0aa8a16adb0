/* The explorer's page: points that move, controls, and what solver.js says about them. */
"use strict";

(() => {
  const WIDTH = 400, HEIGHT = 300, UNIT = 50; // pixels of the plane for one unit of the data; the origin is its middle
  const MOST = 80; // samples: more would not be drawn while dragging
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(`ex-${id}`);
  const state = { samples: [], own: [], drawn: [], model: null };

  /* The same draws on every visit (Lehmer's generator, Box and Muller's normals). */
  const randomness = (seed) => {
    let value = seed;
    const uniform = () => (value = (value * 48271) % 2147483647) / 2147483647;
    return { uniform, normal: () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()) };
  };

  const DATA = {
    moon: ({ uniform, normal }) => {
      const turn = Math.PI * uniform();
      return [2.2 * Math.cos(turn) + 0.18 * normal(), 2.4 * Math.sin(turn) - 1.2 + 0.18 * normal()];
    },
    ring: ({ uniform, normal }) => {
      const turn = 2 * Math.PI * uniform();
      return [1.9 * Math.cos(turn) + 0.15 * normal(), 1.9 * Math.sin(turn) + 0.15 * normal()];
    },
    two: ({ uniform, normal }) => [(uniform() < 0.5 ? -1.7 : 1.7) + 0.45 * normal(), 0.5 * normal()],
    blob: ({ normal }) => [0.9 * normal(), 0.7 * normal()],
  };
  const inPlane = ([x, y]) => [Math.min(Math.max(x, -3.9), 3.9), Math.min(Math.max(y, -2.9), 2.9)];
  const draw = (make, count, seed) => {
    const chance = randomness(seed);
    return Array.from({ length: count }, () => inPlane(make(chance)));
  };

  const settings = () => {
    const kind = byId("references").value;
    const references = {
      none: null,
      samples: state.samples,
      half: state.samples.filter((_, i) => i % 2 === 0),
      draws: state.drawn,
      own: state.own,
    }[kind];
    return {
      kind,
      method: byId("method").value,
      kernel: byId("kernel").value,
      scale: 10 ** Number(byId("scale").value),
      nu: Number(byId("nu").value),
      center: byId("center").checked,
      references,
    };
  };

  const toPage = ([x, y]) => [WIDTH / 2 + UNIT * x, HEIGHT / 2 - UNIT * y];
  const toPlane = (event) => {
    const box = byId("points").getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH, y = ((event.clientY - box.top) / box.height) * HEIGHT;
    return inPlane([(x - WIDTH / 2) / UNIT, (HEIGHT / 2 - y) / UNIT]);
  };

  /* The accepted region, its boundary darker. */
  const drawRegion = (model) => {
    const canvas = byId("region"), context = canvas.getContext("2d");
    const columns = 120, rows = 90;
    const values = new Float64Array((columns + 1) * (rows + 1));
    for (let r = 0; r <= rows; r += 1) {
      for (let c = 0; c <= columns; c += 1) {
        values[r * (columns + 1) + c] = model.decide([((c / columns) * WIDTH - WIDTH / 2) / UNIT, (HEIGHT / 2 - (r / rows) * HEIGHT) / UNIT]);
      }
    }
    const at = (x, y) => {
      const c = Math.min(Math.floor(x), columns - 1), r = Math.min(Math.floor(y), rows - 1), u = x - c, v = y - r, k = r * (columns + 1) + c;
      return (1 - v) * ((1 - u) * values[k] + u * values[k + 1]) + v * ((1 - u) * values[k + columns + 1] + u * values[k + columns + 2]);
    };
    const dark = document.documentElement.dataset.theme === "dark";
    const image = context.createImageData(canvas.width, canvas.height);
    const inside = new Uint8Array(canvas.width * canvas.height);
    for (let y = 0, i = 0; y < canvas.height; y += 1) {
      for (let x = 0; x < canvas.width; x += 1, i += 1) {
        inside[i] = at((x / (canvas.width - 1)) * columns, (y / (canvas.height - 1)) * rows) >= 0 ? 1 : 0;
      }
    }
    for (let i = 0; i < inside.length; i += 1) {
      const edge = inside[i] && (i % canvas.width) && i >= canvas.width && (!inside[i - 1] || !inside[i + 1] || !inside[i - canvas.width] || !inside[i + canvas.width]);
      const colour = edge ? (dark ? [140, 205, 255, 255] : [0, 114, 178, 255]) : inside[i] ? [86, 180, 233, dark ? 80 : 95] : [0, 0, 0, 0];
      image.data.set(colour, 4 * i);
    }
    context.putImageData(image, 0, 0);
  };

  const element = (name, attributes, parent) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (parent) parent.append(made);
    return made;
  };

  /* Points are made once and moved afterwards, so that the one in hand or in focus stays the same element. */
  const drawPoints = (model, chosen) => {
    const svg = byId("points");
    const movable = chosen.kind === "own";
    const shown = [
      ...(chosen.references && chosen.kind !== "samples" && chosen.kind !== "half" ? chosen.references : []).map((point, i) => ({ point, i, kind: "reference" })),
      ...state.samples.map((point, i) => ({ point, i, kind: "sample" })),
    ];
    while (svg.children.length > shown.length) svg.lastChild.remove();
    shown.forEach(({ point, i, kind }, place) => {
      const group = svg.children[place] || newPoint(svg);
      const [x, y] = toPage(point);
      const isReference = kind === "reference" || chosen.kind === "samples" || (chosen.kind === "half" && i % 2 === 0);
      const supports = kind === "sample" && model.support.includes(i);
      const held = group.classList.contains("held") ? " held" : "";
      group.setAttribute("class", `point ${kind}${supports ? " support" : ""}${kind === "reference" && !movable ? " fixed" : ""}${held}`);
      group.setAttribute("transform", `translate(${x} ${y})`);
      group.dataset.kind = kind;
      group.dataset.index = i;
      group.setAttribute("tabindex", kind === "reference" && !movable ? -1 : 0);
      const what = kind === "reference" ? "Reference" : supports ? "Support vector" : "Sample";
      group.setAttribute("aria-label", `${what} ${i + 1} at ${point[0].toFixed(1)}, ${point[1].toFixed(1)}`);
      group.children[2].setAttribute("d", kind === "reference" ? "M0 -5 L5 0 L0 5 L-5 0 Z" : "M-3.2 0 a3.2 3.2 0 1 0 6.4 0 a3.2 3.2 0 1 0 -6.4 0");
      group.children[3].setAttribute("visibility", kind === "sample" && isReference ? "visible" : "hidden");
    });
  };

  const newPoint = (svg) => {
    const group = element("g", { role: "button" }, svg);
    element("circle", { r: 13, class: "hit" }, group);
    element("circle", { r: 7, class: "ring" }, group);
    element("path", { class: "mark" }, group);
    element("path", { d: "M0 -6.5 L6.5 0 L0 6.5 L-6.5 0 Z", fill: "none", stroke: "var(--reference)", "stroke-width": 1.3 }, group);
    return group;
  };

  const drawSpectrum = (model) => {
    const svg = byId("spectrum");
    svg.replaceChildren();
    svg.parentElement.hidden = !model.eigenvalues;
    if (!model.eigenvalues) return;
    const low = -9, high = Math.max(1, Math.ceil(Math.log10(model.eigenvalues[0] || 1)));
    const y = (value) => 100 - (100 * (Math.min(Math.max(Math.log10(Math.max(value, 1e-300)), low), high) - low)) / (high - low);
    const step = 230 / model.eigenvalues.length;
    model.eigenvalues.forEach((value, i) => {
      const top = y(value);
      element("rect", { x: 28 + i * step, y: top, width: Math.max(step - 0.6, 0.6), height: Math.max(100 - top, 0.5), class: i < model.rank ? "kept" : "dropped" }, svg);
    });
    element("line", { x1: 28, x2: 258, y1: y(refkernel.FLOOR), y2: y(refkernel.FLOOR) }, svg);
    [high, -3, -6].forEach((power) => (element("text", { x: 0, y: y(10 ** power) + 3 }, svg).textContent = `1e${power}`));
    byId("spectrum-said").textContent = `Spectrum of ${model.eigenvalues.length} references: ${model.rank} directions are above the floor.`;
  };

  const say = (model, chosen) => {
    const outside = state.samples.filter((x) => model.decide(x) < -1e-9).length;
    const parts = [`${state.samples.length - outside} of ${state.samples.length} samples are accepted, ${model.support.length} are support vectors.`];
    const traps = [];
    if (model.degenerate) traps.push("Degenerate: w is nearly 0, so the decision is noise. Switch off centring, or take SVDD.");
    else if (model.farDecision !== null && model.farDecision >= 0) traps.push("Everything far away is accepted. Take a wider kernel, or references that reach further.");
    byId("said").replaceChildren(parts.join(" "), ...traps.map((text) => Object.assign(document.createElement("span"), { className: "trap", textContent: ` ${text}` })));
    byId("python").textContent = inPython(chosen);
  };

  const inPython = (chosen) => {
    const scale = Number(chosen.scale.toPrecision(3));
    const base = { rbf: `rk.RBF(scale=${scale})`, laplacian: `rk.kernels.Laplacian(scale=${scale})`, linear: `"linear"` }[chosen.kernel];
    const names = { samples: `"training"`, half: "X[::2]", draws: `"case2"`, own: "R" };
    const kernel = chosen.kind === "none" ? base : `rk.ReferenceKernel(${base}, references=${names[chosen.kind]}, center=${chosen.center ? "True" : "False"})`;
    const classifier = chosen.method === "svdd" ? "rk.SVDD" : "rk.OneClassSVM";
    return `import refkernel as rk\n\nmodel = ${classifier}(${kernel}, nu=${chosen.nu}, threshold="training")\nmodel.fit(X).predict(new)`;
  };

  let waiting = false;
  const update = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const chosen = settings();
      byId("scale-out").textContent = chosen.scale.toPrecision(2);
      byId("nu-out").textContent = chosen.nu.toFixed(2);
      byId("scale").disabled = chosen.kernel === "linear";
      byId("center").disabled = chosen.kind === "none";
      byId("add-reference").disabled = chosen.kind !== "own";
      state.model = refkernel.fit(state.samples, chosen);
      drawRegion(state.model);
      drawPoints(state.model, chosen);
      drawSpectrum(state.model);
      say(state.model, chosen);
    });
  };

  const listOf = (group) => (group.dataset.kind === "reference" ? state.own : state.samples);
  const least = (list) => (list === state.own ? 2 : 3);
  const moveTo = (group, point) => {
    listOf(group)[Number(group.dataset.index)] = inPlane(point);
    update();
  };

  const restart = () => {
    state.samples = draw(DATA[byId("data").value], 40, 7);
    state.drawn = draw(({ normal }) => [normal(), normal()], 40, 11);
    state.own = draw(({ uniform }) => [7 * uniform() - 3.5, 5 * uniform() - 2.5], 10, 5);
    update();
  };

  const svg = byId("points");
  let held = null;
  let onPoint = false; // whether the last press was on a point: the click that ends it adds nothing
  svg.addEventListener("pointerdown", (event) => {
    const group = event.target.closest(".point:not(.fixed)");
    onPoint = Boolean(group);
    if (!group) return;
    held = group;
    held.classList.add("held");
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
    group.focus({ preventScroll: true });
  });
  svg.addEventListener("pointermove", (event) => held && moveTo(held, toPlane(event)));
  const release = () => {
    if (held) held.classList.remove("held");
    held = null;
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("click", (event) => {
    if (!onPoint && state.samples.length < MOST) {
      state.samples.push(toPlane(event));
      update();
    }
  });
  svg.addEventListener("keydown", (event) => {
    const group = event.target.closest(".point");
    const step = event.shiftKey ? 0.5 : 0.1;
    const way = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (!group || !(way || event.key === "Delete" || event.key === "Backspace")) return;
    event.preventDefault();
    event.stopPropagation(); // the site's own keys turn pages
    const list = listOf(group), index = Number(group.dataset.index);
    if (way) moveTo(group, [list[index][0] + way[0], list[index][1] + way[1]]);
    else if (list.length > least(list)) {
      list.splice(index, 1);
      update();
    }
  });

  const add = (list) => {
    if (list.length < MOST) list.push(inPlane([0.3 * (list.length % 5) - 0.6, 0.3 * (list.length % 3) - 0.3]));
    update();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const kind = list === state.own ? "reference" : "sample";
      [...svg.querySelectorAll(`.point.${kind}`)].pop()?.focus({ preventScroll: true });
    }));
  };
  byId("add").addEventListener("click", () => add(state.samples));
  byId("add-reference").addEventListener("click", () => add(state.own));
  byId("reset").addEventListener("click", restart);
  byId("data").addEventListener("change", restart);
  for (const id of ["method", "kernel", "scale", "nu", "references", "center"]) byId(id).addEventListener("input", update);
  new MutationObserver(update).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  restart();
})();
