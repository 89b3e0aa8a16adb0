"use strict";
// Filters: whole tables by classifier and route, their rows by data set.
const form = document.querySelector(".filters");
function matches(element, names) {
  return names.every((name) => !form.elements[name].value || element.dataset[name] === form.elements[name].value);
}
function filter() {
  const tables = Array.from(document.querySelectorAll("section.table"));
  for (const table of tables) table.hidden = !matches(table, ["classifier", "route"]);
  for (const row of document.querySelectorAll("section.table tbody tr")) row.hidden = !matches(row, ["dataset"]);
  const shown = tables.filter((table) => !table.hidden && table.querySelector("tbody tr:not([hidden])"));
  document.getElementById("nothing").hidden = shown.length > 0;
  const active = Array.from(form.querySelectorAll("select")).some((select) => select.value);
  document.getElementById("shown").textContent = active ? `${shown.length} of ${tables.length} tables; averages are over all tasks` : "";
}
if (form) {
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
