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
const rounded = (value) => String(Number(value.toPrecision(4)) + 0); // + 0 makes -0 a 0
const axis = (text) => ({
  title: { display: true, text, color: () => colour("--quiet") },
  ticks: { color: () => colour("--quiet"), maxRotation: 0, autoSkipPadding: 12, includeBounds: false },
  grid: { color: () => colour("--line"), tickLength: 4, offset: false },
  border: { color: () => colour("--line") },
});
const legend = { labels: { color: () => colour("--text"), boxWidth: 14, boxHeight: 10 } };
const ofNumbers = (scale) => ({ ...scale, type: "linear", ticks: { ...scale.ticks, callback: rounded } });
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
function line(chart, axis, score) {
  const { top, bottom, left, right } = chart.chartArea, context = chart.ctx, at = chart.scales[axis].getPixelForValue(clamped(chart.scales[axis], score));
  context.save();
  context.strokeStyle = colour("--threshold");
  context.lineWidth = 3;
  context.beginPath();
  context.moveTo(axis === "x" ? at : left, axis === "x" ? top : at);
  context.lineTo(axis === "x" ? at : right, axis === "x" ? bottom : at);
  context.stroke();
  context.restore();
}
const thresholdLine = {
  id: "threshold",
  afterDatasetsDraw(chart) {
    const x = chart.scales.x.getPixelForValue(clamped(chart.scales.x, steps[current].score)), { top, bottom, left } = chart.chartArea, context = chart.ctx;
    context.save();
    context.fillStyle = colour("--flagged");
    context.globalAlpha = 0.14;
    context.fillRect(left, top, x - left, bottom - top);
    context.globalAlpha = 1;
    line(chart, "x", steps[current].score);
    context.fillStyle = colour("--threshold");
    context.beginPath();
    context.arc(x, (top + bottom) / 2, 7, 0, 2 * Math.PI);
    context.fill();
    context.restore();
  },
};
// The slider lies under the axis: its knob is below the line.
const KNOB = 16;
const slider = byId("slider");
const sliderLine = {
  id: "slider",
  afterLayout({ chartArea: { left, width } }) {
    slider.style.width = `${width + KNOB}px`;
    slider.style.marginLeft = `${left - KNOB / 2}px`;
  },
};
const clamped = ({ min, max }, score) => Math.min(Math.max(score, min), max);
const scoreChart = data.scores.edges.length
  ? show("score-chart", {
      data: { datasets: scoreSets() },
      options: {
        interaction: { mode: "index", intersect: false },
        scales: {
          x: { ...ofNumbers(axis(data.scores.below ? "score: flagged ← threshold → accepted (the first bar holds all lower scores too)" : "score: flagged ← threshold → accepted")), min: data.scores.edges[0], max: data.scores.edges.at(-1), offset: false },
          y: ofPercent(axis("share of the rows")),
        },
        plugins: {
          legend,
          tooltip: { callbacks: { title: (items) => (items.length ? `score ${items[0].parsed.x.toPrecision(3)}` : ""), label: (item) => `${item.dataset.label}: ${percent(item.parsed.y)}` } },
        },
      },
      plugins: [thresholdLine, sliderLine],
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
          x: { ...ofNumbers(axis(data.plane.labels[0])), min: data.plane.x[0], max: data.plane.x[1] },
          y: { ...ofNumbers(axis(data.plane.labels[1])), min: data.plane.y[0], max: data.plane.y[1] },
        },
        plugins: { legend, tooltip: { callbacks: { label: (item) => `row ${count(item.raw.row)}: score ${item.raw.score.toPrecision(4)}` } } },
      },
      plugins: [{ id: "region", beforeDatasetsDraw: drawRegion }],
    })
  : null;
function groups(points) {
  const limit = steps[current].score;
  const kind = (label, name, shape, chosen) => ({ label, data: chosen, pointStyle: shape, radius: 3.5, borderWidth: 1, borderColor: () => colour("--page"), backgroundColor: () => colour(name) });
  return [
    kind("accepted", "--bars", "circle", points.filter(({ score }) => score >= limit)),
    kind("flagged", "--flagged", "rectRot", points.filter(({ score }) => score < limit)),
  ];
}
function placePoints() {
  const { points, of_points, rows } = data.plane;
  const all = rows.map((row, i) => ({ x: points[0][i], y: points[1][i], row, score: of_points[i] }));
  planeChart.data.datasets = [
    ...groups(all),
    { label: "accepted region", data: [], pointStyle: "rect", backgroundColor: () => colour("--region"), borderColor: () => colour("--region") },
  ];
}

// Scores over time. The ticks of dates are whole minutes, hours, days, or months.
const MINUTE = 6e4, DAY = 864e5;
const SPANS = [1, 5, 15, 30, 60, 180, 360, 720].map((minutes) => minutes * MINUTE).concat([1, 2, 4, 7, 14].map((days) => days * DAY));
function dateTicks(scale) {
  const most = Math.max(3, Math.floor(scale.width / 90)), span = SPANS.find((each) => (scale.max - scale.min) / each <= most), ticks = [];
  if (span) for (let at = Math.ceil(scale.min / span) * span; at <= scale.max; at += span) ticks.push({ value: at });
  else {
    const months = [1, 2, 3, 6, 12, 24, 60, 120, 600].find((each) => (scale.max - scale.min) / (each * 30.44 * DAY) <= most) || 6000;
    const number = (date) => 12 * date.getUTCFullYear() + date.getUTCMonth();
    for (let month = Math.ceil(number(new Date(scale.min)) / months) * months; ; month += months) {
      const at = Date.UTC(Math.floor(month / 12), month % 12);
      if (at > scale.max) break;
      if (at >= scale.min) ticks.push({ value: at });
    }
  }
  scale.ticks = ticks;
  scale.byMinutes = span && span < DAY;
}
const dated = (at, byMinutes = true) => new Date(at).toISOString().slice(0, byMinutes ? 16 : 10).replace("T", " ");
function ofTime({ name, dates, at }) {
  const scale = { ...axis(name), min: Math.min(...at), max: Math.max(...at) };
  if (!dates) return ofNumbers(scale);
  return { ...scale, type: "linear", afterBuildTicks: dateTicks, ticks: { ...scale.ticks, callback(at) { return dated(at, this.byMinutes); } } };
}
const timeChart = data.time
  ? show("time-chart", {
      type: "scatter",
      data: { datasets: [] },
      options: {
        scales: { x: ofTime(data.time), y: { ...ofNumbers(axis("score")), suggestedMin: data.scores.edges[0] } },
        plugins: {
          legend,
          tooltip: { callbacks: { label: ({ raw }) => `row ${count(raw.row)}, ${data.time.dates ? dated(raw.x) : rounded(raw.x)}: score ${raw.score.toPrecision(4)}` } },
        },
      },
      plugins: [{ id: "level", afterDatasetsDraw(chart) { line(chart, "y", steps[current].score); } }],
    })
  : null;
function placeTimes() {
  const { at, scores, rows } = data.time, lowest = data.scores.edges[0];
  timeChart.data.datasets = groups(rows.map((row, i) => ({ x: at[i], y: Math.max(scores[i], lowest), row, score: scores[i] })));
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
  const step = steps[current];
  slider.value = step.score;
  slider.setAttribute("aria-valuetext", `score ${step.score.toPrecision(4)}` + (step.rate === null ? "" : `, ${percent(step.rate)}`));
  tell("out-score", step.score.toPrecision(5) + (current === data.thresholds.own ? " (the model’s own)" : ""));
  if (step.rate !== null) tell("out-rate", percent(step.rate));
  const bounds = step.low ? `${percent(step.low)} to ${percent(step.high)}` : `at most ${percent(step.high)}`;
  if (step.low !== null) tell("out-interval", `${bounds}, whichever threshold you pick (95 %)`);
  tell("out-wrong", step.wrong === null ? "–" : step.wrong < 1 ? `at most ${percent(step.wrong)}` : "not known");
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
  if (timeChart) placeTimes();
  for (const chart of [scoreChart, planeChart, timeChart]) if (chart) chart.update();
}
const range = scoreChart ? scoreChart.scales.x : { min: steps[0].score, max: steps.at(-1).score };
slider.min = range.min;
slider.max = range.max;
slider.addEventListener("input", () => choose(nearestStep(Number(slider.value))));
slider.addEventListener("keydown", (event) => {
  const last = steps.length - 1, by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -last, End: last }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  choose(Math.min(Math.max(current + by, 0), last));
});
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
