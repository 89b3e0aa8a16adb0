"use strict";
// Sorting: a press on a column's name sorts the body of its table, the second press the other way round.
function key(row, column) {
  const text = row.cells[column].dataset.sort;
  const number = Number(text);
  return text === "" || text === undefined ? null : Number.isNaN(number) ? text : number;
}
function order(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}
function sortBy(header) {
  const table = header.closest("table"), body = table.tBodies[0], column = header.cellIndex;
  const first = column === 0 ? "ascending" : "descending"; // names from the start, values from the best
  const now = header.getAttribute("aria-sort");
  const wanted = now === null ? first : now === "ascending" ? "descending" : "ascending";
  const sign = wanted === "ascending" ? 1 : -1;
  const rows = Array.from(body.rows).map((row) => ({ row, value: key(row, column) }));
  rows.sort((a, b) => (a.value === null) - (b.value === null) || (a.value === null ? 0 : sign * order(a.value, b.value)));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", wanted);
  body.append(...rows.map(({ row }) => row));
}
for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}
