"""Computes torch_metrics.h5: values of torchmetrics' classes after two updates.

Run: python make_torch_metrics.py   (torch 2.11.0, torchmetrics 1.8.2, h5py; writes torch_metrics.h5 beside
this file). The outputs are scores; torchmetrics gets their sigmoid where it would guess what they are.
"""
import pathlib
import warnings

import h5py
import torch
import torchmetrics
import torchmetrics.classification as classification
from torchmetrics.retrieval import RetrievalRecall

warnings.simplefilter("ignore")  # of labels without positive targets, which are meant
generator = torch.Generator().manual_seed(0)
LABELS, CLASSES, SAMPLES = 4, 5, 13


def scores(*shape):
    return 2 * torch.randn(shape, generator=generator)


def labels(*shape):
    return (torch.rand(shape, generator=generator) < 0.3).long()


def case(file, kind, metric, batches, preds=lambda x: x, **parameters):
    group = file.create_group(f"case_{len(file)}")
    group.attrs["title"] = f"{kind} {parameters}"
    group.attrs["kind"] = kind
    group.attrs.update({"rtol": 1e-5, "atol": 1e-6})
    for name, value in parameters.items():
        group.attrs[name] = value
    for i, (outputs, target) in enumerate(batches):
        metric.update(preds(outputs), target)
        group.create_dataset(f"in/outputs_{i}", data=outputs.numpy(), track_times=False)
        group.create_dataset(f"in/target_{i}", data=target.numpy(), track_times=False)
    value = metric.compute()
    group.create_dataset("out/values", data=value.double().reshape(-1).numpy(), track_times=False)


def with_ignored(target, classes):
    target = target.clone()
    target.view(-1)[::classes] = -100
    return target


def binaries(file):
    batches = [(scores(SAMPLES, 1), labels(SAMPLES)) for _ in range(2)]
    ignored = [(x, with_ignored(y, 4)) for x, y in batches]
    pairs = [(scores(SAMPLES, 2), labels(SAMPLES)) for _ in range(2)]
    first, of_pair = lambda x: x[:, 0].sigmoid(), lambda x: x.softmax(1)[:, 1]
    for kind in ("F1Score", "Precision", "Recall"):
        make = getattr(classification, "Binary" + kind)
        case(file, "Binary" + kind, make(), batches, first)
        case(file, "Binary" + kind, make(threshold=0.8), batches, first, threshold=0.8)
        case(file, "Binary" + kind, make(ignore_index=-100), ignored, first)
        case(file, "Binary" + kind, make(), pairs, of_pair)
        case(file, "Binary" + kind, make(), [(x, torch.zeros_like(y)) for x, y in batches], first)
    for kind in ("AUROC", "AveragePrecision"):
        make = getattr(classification, "Binary" + kind)
        for points in (5, 200):
            case(file, "Binary" + kind, make(thresholds=points), batches, first, thresholds=points)
        case(file, "Binary" + kind, make(thresholds=50), pairs, of_pair, thresholds=50)
        case(file, "Binary" + kind, make(thresholds=50, ignore_index=-100), ignored, first, thresholds=50)


def multiclasses(file):
    batches = [(scores(SAMPLES, CLASSES), torch.randint(CLASSES - 1, (SAMPLES,), generator=generator))
               for _ in range(2)]
    for outputs, _ in batches:
        outputs[:, CLASSES - 1] = -10  # a class that is neither wanted nor predicted
    pixels = [(scores(2, CLASSES, 3, 4), torch.randint(CLASSES, (2, 3, 4), generator=generator))] * 2
    ignored = [(x, with_ignored(y, 3)) for x, y in pixels]
    for kind in ("F1Score", "Precision", "Recall"):
        make = getattr(classification, "Multiclass" + kind)
        for average in ("macro", "micro", "weighted", "none"):
            case(file, "Multiclass" + kind, make(CLASSES, average=average), batches,
                 num_classes=CLASSES, average=average)
        case(file, "Multiclass" + kind, make(CLASSES, ignore_index=-100), ignored, num_classes=CLASSES)
    matrix = classification.MulticlassConfusionMatrix
    for normalize in ("none", "true", "pred", "all"):
        case(file, "ConfusionMatrix", matrix(CLASSES, normalize=normalize), batches, num_classes=CLASSES,
             normalize=normalize)
    case(file, "ConfusionMatrix", matrix(CLASSES, ignore_index=-100), ignored, num_classes=CLASSES)


def multilabels(file):
    batches = [(scores(SAMPLES, LABELS), labels(SAMPLES, LABELS)) for _ in range(2)]
    lacking = [(x, y * torch.tensor([1, 1, 0, 1])) for x, y in batches]  # a label without positive targets
    images = [(scores(3, LABELS, 2, 2), labels(3, LABELS, 2, 2)) for _ in range(2)]
    say = dict(num_labels=LABELS)
    for kind in ("F1Score", "Precision", "Recall"):
        make = getattr(classification, "Multilabel" + kind)
        for average in ("macro", "micro", "weighted", "none"):
            case(file, "Multilabel" + kind, make(LABELS, average=average), batches, torch.sigmoid,
                 average=average, **say)
        case(file, "Multilabel" + kind, make(LABELS), lacking, torch.sigmoid, **say)
        case(file, "Multilabel" + kind, make(LABELS, threshold=0.3), images, torch.sigmoid, threshold=0.3,
             **say)
    for kind in ("AUROC", "AveragePrecision"):
        make = getattr(classification, "Multilabel" + kind)
        for average in ("macro", "micro", "weighted", "none"):
            case(file, "Multilabel" + kind, make(LABELS, average=average, thresholds=20), batches,
                 torch.sigmoid, average=average, thresholds=20, **say)
        case(file, "Multilabel" + kind, make(LABELS, thresholds=200), lacking, torch.sigmoid, thresholds=200,
             **say)
        case(file, "Multilabel" + kind, make(LABELS, thresholds=7), images, torch.sigmoid, thresholds=7,
             **say)


class RecallOfRows:
    """A query a sample."""

    def __init__(self, **how):
        self.metric, self.rows = RetrievalRecall(**how), 0

    def update(self, preds, target):
        rows = torch.arange(self.rows, self.rows + len(preds)).repeat_interleave(preds.size(1))
        self.rows += len(preds)
        self.metric.update(preds.reshape(-1), target.reshape(-1), indexes=rows)

    def compute(self):
        return self.metric.compute()


def recalls(file):
    batches = [(scores(SAMPLES, LABELS), labels(SAMPLES, LABELS)) for _ in range(2)]
    for k in (1, 2, 9):
        case(file, "RetrievalRecall", RecallOfRows(top_k=k), batches, torch.sigmoid, top_k=k)
    case(file, "RetrievalRecall", RecallOfRows(top_k=2, empty_target_action="skip"), batches, torch.sigmoid,
         top_k=2, empty_target_action="skip")


def regressions(file):
    one = [(scores(SAMPLES, 1), scores(SAMPLES)) for _ in range(2)]
    first = lambda x: x[:, 0]
    noise = lambda x: x + 0.3 * torch.tensor([1, 3, 5]) * scores(*x.shape)
    several = [(x, noise(x)) for x in (scores(SAMPLES, 3), scores(9, 3))]
    flat = [(x[:, 0] * 0 + y[:, 0], y[:, 0]) for x, y in several]
    for kind in ("MeanAbsoluteError", "MeanSquaredError", "R2Score"):
        case(file, kind, getattr(torchmetrics, kind)(), one, first)
        case(file, kind, getattr(torchmetrics, kind)(), flat)
    case(file, "MeanAbsoluteError", torchmetrics.MeanAbsoluteError(), several)
    case(file, "MeanSquaredError", torchmetrics.MeanSquaredError(), several)
    for how in ("uniform_average", "variance_weighted"):
        case(file, "R2Score", torchmetrics.R2Score(multioutput=how), several, num_outputs=3, multioutput=how)


with h5py.File(pathlib.Path(__file__).with_name("torch_metrics.h5"), "w", libver="latest") as file:
    for part in (binaries, multiclasses, multilabels, recalls, regressions):
        part(file)
