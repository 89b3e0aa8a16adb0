"""A scoring service: ``MODEL=model.rk uvicorn app:app``. The model is read once; requests share it, in threads."""

import os
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException

import refkernel as rk

path = os.environ.get("MODEL", "model.rk")
model = rk.load(path)
if not isinstance(model, rk.TableDetector) or not hasattr(model, "calibration_"):
    raise SystemExit(f"{path} is not a TableDetector with p-values: make it with refkernel fit, without --model.")
dates = [column.name for column in model.columns_ if column.kind == "date"]
app = FastAPI(title="refkernel", version=rk.__version__)


@app.get("/health")
def health() -> dict[str, Any]:
    """What is served: the promised rate and the rows that it was learnt from."""
    return {"false_alarm_rate": model.card_["false_alarm_rate"], "training_rows": model.card_["targets"]}


@app.post("/score")
def score(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Label, p-value and, for flagged rows, reasons. Each row is a JSON object with the columns of training; null is a missing cell."""
    if not rows:
        return []
    try:
        frame = pd.DataFrame(rows)
        frame = frame.assign(**{name: pd.to_datetime(frame[name]) for name in dates if name in frame})
        labels, p_values, reasons = model.predict(frame), model.p_values(frame), model.reasons(frame)
    except (TypeError, ValueError, OverflowError) as error:  # a column is absent, or holds something else than in training
        raise HTTPException(422, str(error)) from error
    return [
        {"label": int(label), "p_value": float(p), "reasons": [str(why) for why in of_row] if label < 0 else []}
        for label, p, of_row in zip(labels, p_values, reasons, strict=True)
    ]
