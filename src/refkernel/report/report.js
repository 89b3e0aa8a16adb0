"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const steps = data.thresholds.steps;
const charts = [];
let current = data.thresholds.own;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const percent = (share) => `${Number((100 * share).toPrecision(3))} %`;
const count = (number) => number.toLocaleString("en");
const axis = (text) => ({
  title: { display: true, text, color: () => colour("--quiet") },
  ticks: { color: () => colour("--quiet"), maxRotation: 0, autoSkipPadding: 12 },
  grid: { color: () => colour("--line"), tickLength: 4 },
  border: { color: () => colour("--line") },
});
const legend = { labels: { color: () => colour("--text"), boxWidth: 14, boxHeight: 10 } };
const ofPercent = (scale) => ({ ...scale, ticks: { ...scale.ticks, callback: (value) => `${Number((100 * value).toPrecision(3))} %` }, beginAtZero: true });

function show(id, config) {
  const canvas = byId(id);
  if (!canvas) return null;
  config.options = { animation: false, responsive: true, maintainAspectRatio: false, ...config.options };
  const chart = new Chart(canvas, config);
  charts.push(chart);
  return chart;
}

// The scores: bars for the table's rows, a line for training, and the threshold, which can be dragged.
const NAMES = { training: "training rows, left out", rows: "rows of the table", normal: "rows labelled normal or not at all", others: "rows labelled otherwise" };
if (data.thresholds.basis !== "new") NAMES.training = "training rows";
const FILLS = { rows: "--bars", normal: "--bars", others: "--others" };
function scoreSets() {
  const { edges, sets } = data.scores;
  const middles = edges.slice(1).map((edge, i) => (edge + edges[i]) / 2);
  return Object.entries(sets).map(([name, shares]) => {
    const points = shares.map((y, i) => ({ x: middles[i], y }));
    if (name === "training") {
      return { type: "line", label: NAMES[name], data: points, stepped: "middle", pointRadius: 0, borderWidth: 2, borderColor: () => colour("--text"), backgroundColor: "transparent", order: 0 };
    }
    return { type: "bar", label: NAMES[name], data: points, grouped: false, barPercentage: 1, categoryPercentage: 1, borderWidth: 1, borderColor: () => colour("--page"), backgroundColor: () => colour(FILLS[name]), order: 1 };
  });
}
const thresholdLine = {
  id: "threshold",
  afterDatasetsDraw(chart) {
    const x = chart.scales.x.getPixelForValue(clamped(chart, steps[current].score)), { top, bottom, left } = chart.chartArea, context = chart.ctx;
    context.save();
    context.fillStyle = colour("--flagged");
    context.globalAlpha = 0.14;
    context.fillRect(left, top, x - left, bottom - top);
    context.globalAlpha = 1;
    context.strokeStyle = colour("--threshold");
    context.lineWidth = 3;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, bottom);
    context.stroke();
    context.fillStyle = colour("--threshold");
    context.beginPath();
    context.arc(x, (top + bottom) / 2, 7, 0, 2 * Math.PI);
    context.fill();
    context.restore();
  },
};
const clamped = (chart, score) => Math.min(Math.max(score, chart.scales.x.min), chart.scales.x.max);
const scoreChart = data.scores.edges.length
  ? show("score-chart", {
      data: { datasets: scoreSets() },
      options: {
        interaction: { mode: "index", intersect: false },
        scales: {
          x: { ...axis(data.scores.below ? "score: flagged ← threshold → accepted (the first bar holds all lower scores too)" : "score: flagged ← threshold → accepted"), type: "linear", min: data.scores.edges[0], max: data.scores.edges.at(-1), offset: false },
          y: ofPercent(axis("share of the rows")),
        },
        plugins: {
          legend,
          tooltip: { callbacks: { title: (items) => (items.length ? `score ${items[0].parsed.x.toPrecision(3)}` : ""), label: (item) => `${item.dataset.label}: ${percent(item.parsed.y)}` } },
        },
      },
      plugins: [thresholdLine],
    })
  : null;

function nearestStep(score) {
  let best = 0;
  steps.forEach((step, i) => { if (Math.abs(step.score - score) < Math.abs(steps[best].score - score)) best = i; });
  return best;
}
if (scoreChart) {
  const canvas = scoreChart.canvas;
  let dragging = false;
  const move = (event) => choose(nearestStep(scoreChart.scales.x.getValueForPixel(event.clientX - canvas.getBoundingClientRect().left)));
  canvas.addEventListener("pointerdown", (event) => { dragging = true; canvas.setPointerCapture(event.pointerId); move(event); });
  canvas.addEventListener("pointermove", (event) => { if (dragging) move(event); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { dragging = false; });
}

// The plane: rows as points, and what is accepted behind them, interpolated between the points of the grid.
function drawRegion(chart) {
  const { grid, scores, x, y } = data.plane, { left, top, width, height } = chart.chartArea;
  const w = Math.round(width), h = Math.round(height);
  if (w < 2 || h < 2) return;
  const image = chart.ctx.createImageData(w, h), limit = steps[current].score;
  const [r, g, b] = colour("--region").match(/\d+/g).map(Number);
  const place = (scale, pixel, [from, to]) => Math.min(Math.max(((scale.getValueForPixel(pixel) - from) / (to - from)) * (grid - 1), 0), grid - 1.000001);
  const us = Array.from({ length: w }, (_, i) => place(chart.scales.x, left + i + 0.5, x));
  for (let j = 0; j < h; j++) {
    const v = place(chart.scales.y, top + j + 0.5, y), row = Math.floor(v), t = v - row;
    for (let i = 0; i < w; i++) {
      const column = Math.floor(us[i]), s = us[i] - column, at = row * grid + column;
      const low = scores[at] * (1 - s) + scores[at + 1] * s, high = scores[at + grid] * (1 - s) + scores[at + grid + 1] * s;
      if (low * (1 - t) + high * t >= limit) image.data.set([r, g, b, 255], 4 * (j * w + i));
    }
  }
  const buffer = document.createElement("canvas");
  buffer.width = w;
  buffer.height = h;
  buffer.getContext("2d").putImageData(image, 0, 0);
  chart.ctx.drawImage(buffer, left, top, width, height);
}
const planeChart = data.plane
  ? show("plane-chart", {
      type: "scatter",
      data: { datasets: [] },
      options: {
        scales: {
          x: { ...axis(data.plane.labels[0]), type: "linear", min: data.plane.x[0], max: data.plane.x[1] },
          y: { ...axis(data.plane.labels[1]), type: "linear", min: data.plane.y[0], max: data.plane.y[1] },
        },
        plugins: { legend, tooltip: { callbacks: { label: (item) => `row ${count(item.raw.row)}: score ${item.raw.score.toPrecision(4)}` } } },
      },
      plugins: [{ id: "region", beforeDatasetsDraw: drawRegion }],
    })
  : null;
function placePoints() {
  const { points, of_points, rows } = data.plane, limit = steps[current].score;
  const all = rows.map((row, i) => ({ x: points[0][i], y: points[1][i], row, score: of_points[i] }));
  const kind = (label, name, shape, chosen) => ({ label, data: chosen, pointStyle: shape, radius: 3.5, borderWidth: 1, borderColor: () => colour("--page"), backgroundColor: () => colour(name) });
  planeChart.data.datasets = [
    kind("accepted", "--bars", "circle", all.filter(({ score }) => score >= limit)),
    kind("flagged", "--flagged", "rectRot", all.filter(({ score }) => score < limit)),
    { label: "accepted region", data: [], pointStyle: "rect", backgroundColor: () => colour("--region"), borderColor: () => colour("--region") },
  ];
}

// A column in training and now.
const columnChart = byId("column-chart") && data.columns.length
  ? show("column-chart", {
      type: "bar",
      data: { labels: [], datasets: [] },
      options: {
        scales: { x: { ...axis(""), title: { display: false } }, y: ofPercent(axis("share of the rows with a value")) },
        plugins: { legend, tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${percent(item.raw)}` } } },
      },
    })
  : null;
function showColumn(name) {
  const column = data.columns.find((item) => item.name === name);
  if (!column || !columnChart) return;
  byId("column-name").textContent = `${name}, in training and now`;
  const set = (label, values, fill) => ({ label, data: values, backgroundColor: () => colour(fill) });
  columnChart.data = { labels: column.labels, datasets: [set("training", column.then, "--then"), set("now", column.now, "--bars")] };
  columnChart.update();
  for (const button of document.querySelectorAll("#drift-table .show")) button.setAttribute("aria-pressed", String(button.dataset.column === name));
}
for (const button of document.querySelectorAll("#drift-table .show")) button.addEventListener("click", () => showColumn(button.dataset.column));
if (columnChart) showColumn(data.columns[0].name);
else for (const canvas of document.querySelectorAll("#column-chart")) canvas.parentElement.hidden = true;

// The threshold in numbers.
function tell(id, text) {
  if (byId(id)) byId(id).textContent = text;
}
function ofRows(number, all) {
  return all ? `${count(number)} (${percent(number / all)})` : "0";
}
function choose(number) {
  current = number;
  const step = steps[current], slider = byId("slider");
  slider.value = current;
  slider.setAttribute("aria-valuetext", `score ${step.score.toPrecision(4)}` + (step.rate === null ? "" : `, ${percent(step.rate)}`));
  tell("out-score", step.score.toPrecision(5) + (current === data.thresholds.own ? " (the model’s own)" : ""));
  if (step.rate !== null) tell("out-rate", percent(step.rate));
  if (step.low !== null) tell("out-interval", `90 % interval ${percent(step.low)} to ${percent(step.high)}`);
  if (step.flagged !== null) tell("out-flagged", ofRows(step.flagged, data.rows));
  if (step.false_alarms !== null) tell("out-false", ofRows(step.false_alarms, data.normal_rows));
  if (step.caught !== null) tell("out-caught", ofRows(step.caught, data.other_rows));
  tell("use", current === data.thresholds.own ? "" : `To score with this threshold: refkernel score … --false-alarm-rate ${Number((step.rate + 1e-9).toPrecision(4))}`);
  for (const row of document.querySelectorAll("#worst-table tbody tr")) {
    const flagged = Number(row.dataset.score) < step.score;
    row.classList.toggle("flagged", flagged);
    row.querySelector(".decision").textContent = flagged ? "flagged" : "accepted";
  }
  filterRows();
  if (planeChart) placePoints();
  for (const chart of [scoreChart, planeChart]) if (chart) chart.update();
}
byId("slider").addEventListener("input", (event) => choose(Number(event.target.value)));
byId("reset").addEventListener("click", () => choose(data.thresholds.own));

// The cells of a row, made when they are asked for.
const cellsOf = (details) => data.cells.rows[Number(details.dataset.cells)];
function fillCells(details) {
  if (details.querySelector("dl")) return;
  const list = document.createElement("dl");
  data.cells.names.forEach((name, i) => {
    const pair = list.appendChild(document.createElement("div"));
    pair.appendChild(document.createElement("dt")).textContent = name;
    pair.appendChild(document.createElement("dd")).textContent = cellsOf(details)[i];
  });
  details.append(list);
}
for (const details of document.querySelectorAll("details[data-cells]")) details.addEventListener("toggle", () => fillCells(details));

// Filters.
function textOf(row) {
  const details = row.querySelector("details[data-cells]");
  return `${row.textContent} ${details ? cellsOf(details).join(" ") : ""}`.toLowerCase();
}
function filterTable(table, none, text, only, mark) {
  const wanted = text.trim().toLowerCase();
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    row.hidden = (only && !row.classList.contains(mark)) || !textOf(row).includes(wanted);
    shown += !row.hidden;
  }
  none.hidden = shown > 0;
  return shown;
}
function filterRows() {
  const table = byId("worst-table");
  if (!table) return;
  const shown = filterTable(table, byId("no-rows"), byId("filter").value, byId("only").checked, "flagged");
  byId("count").textContent = `${count(shown)} of ${count(table.tBodies[0].rows.length)} shown`;
}
function filterColumns() {
  filterTable(byId("drift-table"), byId("no-columns"), byId("column-filter").value, byId("only-drifted").checked, "found");
}
for (const [id, call] of [["filter", filterRows], ["only", filterRows], ["column-filter", filterColumns], ["only-drifted", filterColumns]]) {
  if (byId(id)) byId(id).addEventListener("input", call);
}

// Colours follow the system's, and paper is light.
const repaint = () => charts.forEach((chart) => chart.update());
for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", repaint);
addEventListener("beforeprint", () => charts.forEach((chart) => chart.resize()));
addEventListener("afterprint", () => charts.forEach((chart) => chart.resize()));
choose(current);
})();
