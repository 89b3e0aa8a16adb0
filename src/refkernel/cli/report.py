"""The command that writes the page of a model and a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .shared import app, clear_errors, names
from .tables import Decimal, Delimiter, Encoding, Header, ModelFile, Sheet, _form, share_bar
from .words import say


@app.command()
def report(
    model: ModelFile,
    data: Annotated[
        Path | None, typer.Argument(help="CSV, Parquet or Excel file with the model's columns, to be scored for the page.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The page: one .html file that opens anywhere.")] = Path("report.html"),
    features: Annotated[str, typer.Option(help="Two numeric columns for the plane, separated by a comma; else principal components.")] = "",
    target_column: Annotated[str | None, typer.Option(help="Column that labels the rows; by default that of fit, if it is there.")] = None,
    target: Annotated[str | None, typer.Option(help="Its value for normal rows.")] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
    sheet: Sheet = None,
) -> None:
    """Write a page about a model, and about a table: scores, a threshold to drag, the worst rows and why, a plane, drift."""
    with clear_errors():
        if model.is_dir():
            raise ValueError(f"{model} is a folder; a model file is needed. The page of an experiment's folder: refkernel article-report.")
        from ..report import report_file
        from ..tables import load_table_model

        saved = load_table_model(model)
        form = _form(delimiter, decimal, encoding, header, sheet)
        with share_bar("report") as progress:
            report_file(
                saved, data, out, form=form, features=names(features), target_column=target_column, target=target, progress=progress
            )
        say(f"Page: {out}")
