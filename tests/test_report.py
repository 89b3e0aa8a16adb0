"""The report is one file that stands alone, shows what there is, and works in a browser at desktop and phone width."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

pytest.importorskip("jinja2")

from exact import read_csv
from refkernel.experiments.article.protocol import ARTICLE_CLASSIFIERS, ROUTES, VARIANTS
from refkernel.experiments.article.report import build_report
from refkernel.experiments.article.statements import FAILS, HOLDS, OPEN, findings
from refkernel.experiments.article.tables import printed, write_tables
from refkernel.experiments.statistics import average_ranks, paired_p

LIMIT = 3_000_000
RUN = {
    "settings": {"splits": "authors", "solver": "article", "tasks": ["Iris1", "Ion1"], "seed": 0},
    "versions": {"numpy": np.__version__},
    "machine": {"cores": 2},
    "commit": "0123abc",
    "seconds": 50.0,
    "fits": 1_000_000,
    "stages": {"distances": 2.0, "solving": 30.0},
}


def write_results(folder, seed=0, runs=3, keep=None, run=RUN):
    """A results folder whose runs scatter about the printed values; `keep` chooses cells."""
    rng = np.random.default_rng(seed)
    cells = printed() if keep is None else printed().query(keep)
    table = cells.loc[cells.index.repeat(runs)].reset_index(drop=True)
    table["gmean"] = np.clip((table["gmean"] + rng.normal(size=len(table)) * table["std"]) / 100, 0, 1)
    table["rank"] = table["rank"].astype(int)
    table = table.drop(columns=["std", "bold"]).assign(split=0, repeat=np.arange(len(table)) % runs, tpr=0.5, tnr=0.5)
    table = table.assign(scale=rng.choice([0.1, 1.0], len(table)), parameter=rng.choice([0.1, 0.6], len(table)), seed=1, seconds=0.1)
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "rows.csv", index=False)
    if run is not None:
        (folder / "run.json").write_text(json.dumps(run))
    return folder


class Page(HTMLParser):
    """What a page asks for and holds: addresses in attributes, ids, svg elements and their alternative texts, table ids."""

    def __init__(self, path):
        super().__init__()
        self.addresses, self.ids, self.tables, self.opened, self.svgs, self.text = [], [], [], [], [], path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [v for k, v in attrs if k in ("src", "href", "xlink:href", "srcset", "action", "data", "poster")]
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.tables += [attributes["id"]] if tag == "table" else []
        self.svgs += [dict(attributes, title="", desc="")] if tag == "svg" else []
        self.opened.append(tag)

    def handle_endtag(self, tag):
        if tag in self.opened:
            while self.opened.pop() != tag:
                pass

    def handle_data(self, data):
        if self.opened and self.opened[-1] in ("title", "desc") and "svg" in self.opened:
            self.svgs[-1][self.opened[-1]] += data


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """The report of a whole run."""
    return build_report(write_results(tmp_path_factory.mktemp("full")))


def test_the_report_is_one_light_file_that_asks_for_nothing(full):
    page = Page(full)
    assert full.name == "report.html"
    assert full.stat().st_size < LIMIT
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest", page.text)


def test_ids_are_unique_and_every_reference_inside_the_page_is_answered(full):
    page = Page(full)
    assert len(page.ids) == len(set(page.ids))
    wanted = set(re.findall(r"url\(#([^)]+)\)", page.text)) | {a[1:] for a in page.addresses if a.startswith("#")}
    assert wanted <= set(page.ids)


def test_every_figure_has_a_title_and_a_description_with_numbers(full):
    svgs = Page(full).svgs
    assert len(svgs) == 4
    for svg in svgs:
        assert svg["role"] == "img"
        assert svg["title"]
        assert re.search(r"\d", svg["desc"])


def test_every_table_and_every_section_is_there(full):
    page = Page(full)
    expected = {f"table-{classifier}_{route}" for classifier in ARTICLE_CLASSIFIERS for route in ROUTES}
    assert set(page.tables) == expected
    assert {"averages", "statements", "tables", "ranks", "degenerate", "time", "made"} <= set(page.ids)
    assert "20,000" in page.text  # 1,000,000 fits in 50 s
    assert "0123abc" in page.text
    assert "nan" not in re.sub(r"<[^>]*>", " ", page.text).lower().split()


def test_the_report_opens_with_the_answer(full):
    """Before any table: how many cells and how many statements of the article are confirmed."""
    text = full.read_text(encoding="utf-8")
    opening = text[text.index("<h1>") : text.index("<nav")]
    within, cells = re.search(r"(\d+) of the article’s (\d+) cells", opening).groups()
    assert 0 <= int(within) <= int(cells) == 448
    tested, *verdicts = map(int, re.findall(r"(?:Of |, | and )(\d+) ", opening[opening.index("Of ") :]))
    assert tested == sum(verdicts)


def test_texts_from_outside_are_escaped(tmp_path):
    run = {"settings": {"solver": "<script>alert(1)</script>"}, "stages": {"<b>x": 1.0}}
    folder = write_results(tmp_path, runs=1, keep="variant == 'case2' and route == 'kernel'", run=run)
    text = build_report(folder).read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<b>x" not in text


TINY = "task == 'Iris1' and classifier == 'svdd' and route == 'kernel' and variant == 'base'"
WITHOUT = {"machine": "a laptop", "settings": None, "stages": None}


@pytest.mark.parametrize(
    ("keep", "run"), [(TINY, None), (TINY, WITHOUT), ("task == 'Son2' and route == 'kernel'", {}), ("variant == 'case2'", None)]
)
def test_tiny_runs_are_shown_and_what_is_missing_is_said(tmp_path, keep, run):
    page = build_report(write_results(tmp_path, runs=1, keep=keep, run=run), out=tmp_path / "other name.html")
    text = page.read_text(encoding="utf-8")
    assert page.name == "other name.html"
    assert "ranks need at least three variants" in text
    assert "no times by stage" in text
    assert "needs at least six" in text or "not in this run" in text


def test_a_full_disk_leaves_the_old_report_and_tables_and_names_the_file(tmp_path, little_room):
    folder = write_results(tmp_path, runs=1, keep="task == 'Iris1'")
    page, tables = build_report(folder), write_tables(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write_results(tmp_path, seed=1, runs=1, keep="task == 'Iris1'")
    before[folder / "rows.csv"] = (folder / "rows.csv").read_bytes()
    with little_room(page.stat().st_size // 2), pytest.raises(OSError, match=r"was not written: .*report\.html"):
        build_report(folder)
    with little_room(100), pytest.raises(OSError, match=rf"was not written: .*{tables[0].name}"):
        write_tables(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_unprinted_cells_are_shown_without_a_comparison(tmp_path):
    folder = write_results(tmp_path, runs=2, keep="task == 'Iris1'")
    rows = read_csv(folder / "rows.csv").assign(task="Wine1")
    rows.to_csv(folder / "rows.csv", index=False)
    text = build_report(folder).read_text(encoding="utf-8")
    assert "nothing to compare with" in text
    assert "Wine" in text


def cells_of(values):
    """Task means as cells: {(classifier, route, variant): values by task}."""
    return pd.DataFrame(
        [(*column, f"T{i}", value) for column, column_values in values.items() for i, value in enumerate(column_values)],
        columns=["classifier", "route", "variant", "task", "gmean"],
    )


def verdict(values, name):
    return next(found.verdict for found in findings(cells_of(values)) if found.statement.name == name)


@pytest.mark.parametrize(("shift", "expected"), [(5.0, HOLDS), (-5.0, FAILS), (0.0, OPEN)])
def test_random_references_are_judged_by_the_sign_of_a_clear_difference(shift, expected):
    base = np.linspace(40, 90, 10)
    values = {("svdd", route, variant): base + (shift if variant == "case2" else 0) for route in ROUTES for variant in ("base", "case2")}
    assert verdict(values, "Random references help SVDD") == expected


def test_equality_is_shown_not_assumed():
    base = np.linspace(40, 90, 10)
    name = "NPT equals case 1"
    columns = [(classifier, "mapping", variant) for classifier in ARTICLE_CLASSIFIERS for variant in ("base", "case1")]
    assert verdict(dict.fromkeys(columns, base), name) == HOLDS
    assert verdict({column: base + (3 if column[2] == "case1" else 0) for column in columns}, name) == FAILS
    assert verdict(dict.fromkeys(columns, base[:3]), name) == OPEN  # three equal tasks are no proof
    assert verdict(dict.fromkeys(columns[:2], base), name) == OPEN  # nor is one classifier of two


def test_one_better_rival_refutes_the_best_variant():
    base = np.linspace(40, 60, 12)
    values = {("ocsvm", route, variant): base + (5 if variant == "case5" else 0) for route in ROUTES for variant in VARIANTS}
    assert verdict(values, "Case 5 is best for the one-class SVM") == HOLDS
    values["ocsvm", "kernel", "case7"] = base + 9
    assert verdict(values, "Case 5 is best for the one-class SVM") == FAILS


@pytest.mark.parametrize("seed", range(4))
def test_paired_p_is_scipys_exact_one(seed):
    d = np.random.default_rng(seed).normal(0.4, 1.0, size=14)
    for alternative in ("greater", "less", "two-sided"):
        assert paired_p(d, alternative) == pytest.approx(wilcoxon(d, alternative=alternative, method="exact").pvalue)


def test_paired_p_counts_the_sign_patterns_when_ranks_are_tied():
    d = np.array([1.0, -2.0, 2.0, 4.0, 0.0, 4.0, 6.5])
    ranks = [1, 2.5, 2.5, 4.5, 4.5, 6]
    sums = np.array([sum(r for r, bit in zip(ranks, f"{pattern:06b}", strict=True) if bit == "1") for pattern in range(64)])
    greater, less = np.mean(sums >= 18.5), np.mean(sums <= 18.5)
    assert paired_p(d, "greater") == pytest.approx(greater)
    assert paired_p(d, "less") == pytest.approx(less)
    assert paired_p(d, "two-sided") == pytest.approx(2 * min(greater, less))
    assert paired_p(np.zeros(5), "two-sided") == 1.0


def test_average_ranks_are_those_counted_by_hand():
    found = average_ranks(pd.DataFrame({"base": [3.0, 1.0], "case1": [2.0, 2.0], "case2": [1.0, 2.0]}))
    assert found.to_dict() == {"base": 2.0, "case1": 1.75, "case2": 2.25}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark"), (320, "light")])
def test_the_page_opens_without_complaints_and_fits_its_width(full, browser, width, scheme):
    browser.open(full, width, scheme)
    assert browser.run("innerWidth") == width
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    assert [address for address in browser.requested() if not address.startswith(("file:", "data:"))] == []


def test_text_stands_out_from_the_page_in_light_and_dark(full, browser):
    brightness = "(c => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0) / 765)"
    contrast = {}
    for scheme in ("light", "dark"):
        browser.open(full, 1280, scheme)
        contrast[scheme] = browser.run(
            f"{brightness}(getComputedStyle(document.body).color) - {brightness}(getComputedStyle(document.body).backgroundColor)"
        )
    assert contrast["light"] < -0.6
    assert contrast["dark"] > 0.6


def column(browser, index):
    """The sort values of the shown rows of a column of the first table."""
    rows = "Array.from(document.querySelectorAll('#table-svdd_kernel tbody tr:not([hidden])'))"
    return browser.run(f"{rows}.map(row => Number(row.cells[{index}].dataset.sort))")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_press_on_a_header_sorts_and_a_second_press_turns_the_order(full, browser, width):
    browser.open(full, width)
    before = column(browser, 2)
    press = "document.querySelectorAll('#table-svdd_kernel thead button')[2].click()"
    browser.run(press)
    assert column(browser, 2) == sorted(before, reverse=True) != before
    assert browser.run("document.querySelectorAll('#table-svdd_kernel thead th')[2].getAttribute('aria-sort')") == "descending"
    browser.run(press)
    assert column(browser, 2) == sorted(before)
    browser.run("document.querySelector('#table-svdd_kernel thead button').click()")
    assert column(browser, 2) == before
    assert browser.complaints() == []
