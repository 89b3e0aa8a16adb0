/* SVDD and the one-class SVM in the plane, exactly, for the explorer: the formulas of the theory pages, for at most some hundred samples.
 * tests/test_explorer.py holds its decision values to those of the library. Samples are arrays of numbers; nothing here touches the page. */
"use strict";

const refkernel = (() => {
  const FLOOR = 1e-6; // eigenvalues below it are dropped, as in the library
  const TOLERANCE = 1e-11; // largest violation of optimality, as a share of the kernel's size
  const MOST_MOVES = 400000;
  const MOST_SWEEPS = 60;

  const dot = (u, v) => u.reduce((sum, value, j) => sum + value * v[j], 0);
  const squaredDistance = (u, v) => u.reduce((sum, value, j) => sum + (value - v[j]) ** 2, 0);
  const distanceL1 = (u, v) => u.reduce((sum, value, j) => sum + Math.abs(value - v[j]), 0);

  const meanOverPairs = (rows, distance) => {
    let sum = 0;
    for (const u of rows) for (const v of rows) sum += distance(u, v);
    return sum / rows.length ** 2;
  };

  /* A base kernel whose width is `scale` times the mean distance of the rows, or 1 if all rows are equal. */
  const baseKernel = (name, scale, rows) => {
    if (name === "linear") return { k: dot, width: null, vanishes: false };
    if (name === "laplacian") {
      const width = scale * meanOverPairs(rows, distanceL1) || 1;
      return { k: (u, v) => Math.exp(-distanceL1(u, v) / width), width, vanishes: true };
    }
    const width = Math.sqrt(scale * meanOverPairs(rows, squaredDistance)) || 1;
    return { k: (u, v) => Math.exp(-squaredDistance(u, v) / (2 * width * width)), width, vanishes: true };
  };

  const gram = (k, rows, columns = rows) => rows.map((u) => columns.map((v) => k(u, v)));

  /* Eigenvalues, largest first, and eigenvectors in the columns of U, by Jacobi's rotations. */
  const eigen = (matrix) => {
    const m = matrix.length;
    const A = matrix.map((row) => row.slice());
    const U = A.map((_, i) => A.map((__, j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < MOST_SWEEPS; sweep += 1) {
      let off = 0;
      let size = 0;
      for (let p = 0; p < m; p += 1) {
        size += A[p][p] ** 2;
        for (let q = 0; q < p; q += 1) off += A[p][q] ** 2;
      }
      if (off <= 1e-32 * (size + off)) break;
      for (let p = 0; p < m - 1; p += 1) for (let q = p + 1; q < m; q += 1) rotate(A, U, p, q);
    }
    const order = A.map((_, i) => i).sort((i, j) => A[j][j] - A[i][i]);
    return { values: order.map((i) => A[i][i]), U: U.map((row) => order.map((i) => row[i])) };
  };

  const rotate = (A, U, p, q) => {
    if (A[p][q] === 0) return;
    const theta = (A[q][q] - A[p][p]) / (2 * A[p][q]);
    const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
    const c = 1 / Math.sqrt(t * t + 1);
    const s = t * c;
    for (let i = 0; i < A.length; i += 1) {
      [A[i][p], A[i][q]] = [c * A[i][p] - s * A[i][q], s * A[i][p] + c * A[i][q]];
      [U[i][p], U[i][q]] = [c * U[i][p] - s * U[i][q], s * U[i][p] + c * U[i][q]];
    }
    for (let i = 0; i < A.length; i += 1) [A[p][i], A[q][i]] = [c * A[p][i] - s * A[q][i], s * A[p][i] + c * A[q][i]];
  };

  /* Phi(x): whitened kernel values against the references, centred on their mean if asked for. */
  const referenceMap = (base, R, center) => {
    const m = R.length;
    const K = gram(base.k, R);
    const mean = center ? R.map((_, j) => K.reduce((sum, row) => sum + row[j], 0) / m) : R.map(() => 0);
    const whole = center ? mean.reduce((sum, value) => sum + value, 0) / m : 0;
    const { values, U } = eigen(K.map((row, i) => row.map((value, j) => value - mean[i] - mean[j] + whole)));
    const kept = values.filter((value) => value >= FLOOR).length;
    const project = (row) => {
      const shifted = row.map((value, j) => value - mean[j]);
      const average = center ? shifted.reduce((sum, value) => sum + value, 0) / m : 0;
      const features = new Array(kept).fill(0);
      for (let j = 0; j < m; j += 1) {
        for (let r = 0; r < kept; r += 1) features[r] += ((shifted[j] - average) * U[j][r]) / Math.sqrt(values[r]);
      }
      return features;
    };
    return {
      phi: (x) => project(R.map((r) => base.k(x, r))),
      far: base.vanishes ? project(R.map(() => 0)) : null,
      eigenvalues: values.map((value) => Math.max(value, 0)),
      rank: kept,
    };
  };

  /* min ½ b'Kb + p'b  subject to  Σ b = total, 0 <= b <= upper: moves of pairs, chosen by how much they gain. */
  const solve = (K, p, total, upper) => {
    const n = K.length;
    const b = new Array(n).fill(total / n);
    const G = K.map((row, i) => dot(row, b) + p[i]);
    const size = Math.max(...K.map((row, i) => Math.abs(row[i])), 1e-300) * Math.max(total, 1);
    let moves = 0;
    for (; moves < MOST_MOVES; moves += 1) {
      let grow = -1;
      let largest = -Infinity;
      for (let t = 0; t < n; t += 1) {
        if (b[t] < upper && (grow < 0 || G[t] < G[grow])) grow = t;
        if (b[t] > 0) largest = Math.max(largest, G[t]);
      }
      if (grow < 0 || largest - G[grow] <= TOLERANCE * size) break;
      let shrink = -1;
      let best = 0;
      for (let t = 0; t < n; t += 1) {
        const violation = G[t] - G[grow];
        if (b[t] <= 0 || violation <= 0) continue;
        const gain = violation ** 2 / Math.max(K[t][t] + K[grow][grow] - 2 * K[t][grow], 1e-12);
        if (gain > best) [best, shrink] = [gain, t];
      }
      if (shrink < 0) break;
      const curvature = Math.max(K[shrink][shrink] + K[grow][grow] - 2 * K[shrink][grow], 1e-12 * size);
      const step = Math.min((G[shrink] - G[grow]) / curvature, b[shrink], upper - b[grow]);
      b[grow] = step === upper - b[grow] ? upper : b[grow] + step;
      b[shrink] = step === b[shrink] ? 0 : b[shrink] - step;
      for (let t = 0; t < n; t += 1) G[t] += step * (K[t][grow] - K[t][shrink]);
    }
    return { b, G: K.map((row, i) => dot(row, b) + p[i]), moves };
  };

  /* The common gradient of free weights; without free weights, the midpoint of the interval that optimality allows. */
  const multiplier = (b, G, upper) => {
    const free = G.filter((_, t) => b[t] > 0 && b[t] < upper);
    if (free.length) return free.reduce((sum, value) => sum + value, 0) / free.length;
    const lowest = Math.max(...G.filter((_, t) => b[t] > 0));
    const highest = Math.min(...G.filter((_, t) => b[t] < upper));
    if (!Number.isFinite(highest)) return lowest;
    return Number.isFinite(lowest) ? 0.5 * (lowest + highest) : highest;
  };

  /* Describe samples X. `settings`: method "svdd" or "ocsvm", kernel, scale, nu, references (null or rows), center. */
  const fit = (X, settings) => {
    const { method, kernel, scale, nu, references, center } = settings;
    const base = baseKernel(kernel, scale, references || X);
    const map = references ? referenceMap(base, references, center) : null;
    const features = map ? X.map(map.phi) : X;
    const k = map ? dot : base.k;
    const K = gram(k, features);
    const n = X.length;
    const ball = method === "svdd";
    const upper = ball ? 1 / (nu * n) : 1;
    const total = ball ? 1 : nu * n;
    const { b, G, moves } = solve(K, K.map((row, i) => (ball ? -0.5 * row[i] : 0)), total, upper);
    const quadratic = b.reduce((sum, weight, i) => sum + weight * dot(K[i], b), 0);
    const rho = multiplier(b, G, upper);
    const threshold = ball ? Math.min(2 * rho - quadratic, 0) : rho;
    const support = b.map((_, i) => i).filter((i) => b[i] > 1e-12 * upper);
    const score = (z) => {
      const sum = support.reduce((value, i) => value + b[i] * k(features[i], z), 0);
      return ball ? 2 * sum - k(z, z) - quadratic : sum;
    };
    const gap = b.reduce((sum, w, i) => sum + Math.max((G[i] - rho) * w, (G[i] - rho) * (w - upper)), 0);
    const largest = Math.max(...K.map((row, i) => row[i]));
    return {
      decide: (x) => score(map ? map.phi(x) : x) - threshold,
      farDecision: map && map.far ? score(map.far) - threshold : null,
      degenerate: !ball && quadratic <= 1e-6 * total * total * largest,
      support,
      weights: b,
      upper,
      width: base.width,
      eigenvalues: map ? map.eigenvalues : null,
      rank: map ? map.rank : null,
      gap,
      moves,
    };
  };

  return { fit, FLOOR };
})();

if (typeof module !== "undefined") module.exports = refkernel;
