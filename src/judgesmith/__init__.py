"""judgesmith: turn a handful of human scores into a language-model judge, and say honestly how far to trust it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .datasets.loading import read_labels as read_labels
    from .datasets.records import Labels as Labels
    from .errors import JudgesmithError as JudgesmithError
    from .experiments.meta import MetaEvaluation as MetaEvaluation
    from .experiments.meta import meta_evaluate as meta_evaluate
    from .experiments.mlflow_logging import mlflow_scorer as mlflow_scorer
    from .optimizers.adapters import GEPASearch as GEPASearch
    from .optimizers.adapters import MIPROSearch as MIPROSearch
    from .optimizers.adapters import SIMBASearch as SIMBASearch
    from .optimizers.compiling import compile as compile
    from .optimizers.correlation import CorrelationSum as CorrelationSum
    from .optimizers.correlation import correlate as correlate
    from .optimizers.discernment import discernment as discernment
    from .optimizers.few_shot import KnnFewShot as KnnFewShot
    from .optimizers.few_shot import LabeledFewShot as LabeledFewShot
    from .optimizers.optuna_search import OptunaSearch as OptunaSearch
    from .optimizers.racing import Racing as Racing
    from .optimizers.random_search import CorrelationRandomSearch as CorrelationRandomSearch
    from .optimizers.report import Budget as Budget
    from .programs.artifact import load as load
    from .programs.aspects import aspects as aspects
    from .programs.committee import Committee as Committee
    from .programs.critic import ActiveCritic as ActiveCritic
    from .programs.direct import DirectScorer as DirectScorer
    from .programs.geval import GEval as GEval
    from .programs.grounding import ground as ground
    from .programs.judge import Judge as Judge
    from .programs.lm import Connection as Connection
    from .programs.lm import LanguageModel as LanguageModel
    from .programs.lm import Sampling as Sampling
    from .programs.lm import language_model as language_model
    from .programs.openlgauge import Member as Member
    from .programs.openlgauge import OpeNLGauge as OpeNLGauge
    from .programs.pairs import PairS as PairS
    from .programs.pairwise import PairwiseDirectScorer as PairwiseDirectScorer
    from .programs.pairwise import pairwise_score as pairwise_score
    from .programs.task import TaskInference as TaskInference
    from .signatures.values import Criterion as Criterion
    from .signatures.values import ErrorSpan as ErrorSpan
    from .signatures.values import Scale as Scale
    from .signatures.values import Verdict as Verdict

__version__ = "0.1.0"

#: Public names and where they live. They are imported on first use: DSPy alone takes seconds.
_PUBLIC = {
    "ActiveCritic": "programs.critic",
    "Budget": "optimizers.report",
    "Committee": "programs.committee",
    "Connection": "programs.lm",
    "CorrelationRandomSearch": "optimizers.random_search",
    "CorrelationSum": "optimizers.correlation",
    "Criterion": "signatures.values",
    "DirectScorer": "programs.direct",
    "ErrorSpan": "signatures.values",
    "GEPASearch": "optimizers.adapters",
    "GEval": "programs.geval",
    "Judge": "programs.judge",
    "JudgesmithError": "errors",
    "KnnFewShot": "optimizers.few_shot",
    "LabeledFewShot": "optimizers.few_shot",
    "Labels": "datasets.records",
    "LanguageModel": "programs.lm",
    "MIPROSearch": "optimizers.adapters",
    "Member": "programs.openlgauge",
    "MetaEvaluation": "experiments.meta",
    "OpeNLGauge": "programs.openlgauge",
    "OptunaSearch": "optimizers.optuna_search",
    "PairS": "programs.pairs",
    "PairwiseDirectScorer": "programs.pairwise",
    "Racing": "optimizers.racing",
    "SIMBASearch": "optimizers.adapters",
    "Sampling": "programs.lm",
    "Scale": "signatures.values",
    "TaskInference": "programs.task",
    "Verdict": "signatures.values",
    "aspects": "programs.aspects",
    "compile": "optimizers.compiling",
    "correlate": "optimizers.correlation",
    "discernment": "optimizers.discernment",
    "ground": "programs.grounding",
    "language_model": "programs.lm",
    "load": "programs.artifact",
    "meta_evaluate": "experiments.meta",
    "mlflow_scorer": "experiments.mlflow_logging",
    "pairwise_score": "programs.pairwise",
    "read_labels": "datasets.loading",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f".{_PUBLIC[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
