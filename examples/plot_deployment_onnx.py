"""
From a notebook to production
=============================

There are two ways to ship a fitted pipeline: as a model file, which this package opens again without running any code from it, and
as an ONNX graph, which onnxruntime scores without Python. Both make the model's decisions.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel.plot import ScoreDistributionDisplay

task = rk.datasets.load_task("Seed2")
kernel = rk.ReferenceKernel(rk.RBF(scale=3.0), references="case2", random_state=0)
model = make_pipeline(rk.TargetScaler(), rk.SVDD(kernel, nu=0.1)).fit(task.X_train, task.y_train)
expected = model.decision_function(task.X_test)

# %%
# A model file
# ------------
# ``save`` writes the whole pipeline, with notes for later. ``read_about`` reads the notes without opening the model.

with tempfile.TemporaryDirectory() as folder:
    path = rk.save(model, Path(folder) / "seeds.rk", about={"task": task.name, "split": task.split})
    loaded = rk.load(path)
    about = rk.read_about(path)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB, {about['model'].rpartition('.')[2]} of {about['n_features_in']} features")
print(f"made for {about['about']}, with scikit-learn {about['versions']['scikit-learn']}")
print(f"loaded: decision values equal bit for bit: {np.array_equal(loaded.decision_function(task.X_test), expected)}")

# %%
# An ONNX graph
# -------------
# The graph takes float32 samples unless you pass ``to_onnx`` samples of another type. Inside, it computes in double precision. Its
# outputs are the label and the decision value of every sample.

graph = rk.to_onnx(model).SerializeToString()
session = onnxruntime.InferenceSession(graph)
label, scores = (output.ravel() for output in session.run(None, {"X": task.X_test.astype(np.float32)}))
difference = np.abs(scores - expected).max() / np.ptp(expected)
print(f"ONNX graph: {len(graph) / 1024:.0f} kB")
print(f"onnxruntime: decision values differ by at most {difference:.0e} of their range")
print(f"onnxruntime: {np.sum(label == model.predict(task.X_test))} of {len(label)} labels are the same")

# %%
# The same picture from both
# --------------------------
# A display needs only decision values, so it can draw onnxruntime's too.

figure, axes = plt.subplots(1, 2, figsize=(12, 3.8), sharex=True, sharey=True, layout="constrained")
ScoreDistributionDisplay.from_estimator(loaded, task.X_test, task.y_test, ax=axes[0], legend=False)
ScoreDistributionDisplay(decisions=scores, is_target=task.y_test == 1).plot(axes[1])
axes[0].set(title="the loaded pipeline")
axes[1].set(title="onnxruntime", ylabel="")
plt.show()
