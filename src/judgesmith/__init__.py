"""judgesmith: turn a handful of human scores into a language-model judge, and say honestly how far to trust it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .datasets.loading import read_labels as read_labels
    from .datasets.records import Labels as Labels
    from .errors import JudgesmithError as JudgesmithError
    from .experiments.mlflow_logging import mlflow_scorer as mlflow_scorer
    from .optimizers.agreement.correlation import CorrelationSum as CorrelationSum
    from .optimizers.agreement.correlation import correlate as correlate
    from .optimizers.agreement.discernment import discernment as discernment
    from .optimizers.agreement.meta.evaluation import MetaEvaluation as MetaEvaluation
    from .optimizers.agreement.meta.evaluation import meta_evaluate as meta_evaluate
    from .optimizers.compiling import compile as compile
    from .optimizers.dspy.searches import GEPASearch as GEPASearch
    from .optimizers.dspy.searches import MIPROSearch as MIPROSearch
    from .optimizers.dspy.searches import SIMBASearch as SIMBASearch
    from .optimizers.report import Budget as Budget
    from .optimizers.search.few_shot import KnnFewShot as KnnFewShot
    from .optimizers.search.few_shot import LabeledFewShot as LabeledFewShot
    from .optimizers.search.optuna import OptunaSearch as OptunaSearch
    from .optimizers.search.racing import Racing as Racing
    from .optimizers.search.random import CorrelationRandomSearch as CorrelationRandomSearch
    from .programs.active_critic.critic import ActiveCritic as ActiveCritic
    from .programs.active_critic.task import TaskInference as TaskInference
    from .programs.artifact import load as load
    from .programs.aspects import aspects as aspects
    from .programs.comparing.pairs import PairS as PairS
    from .programs.comparing.pairwise import PairwiseDirectScorer as PairwiseDirectScorer
    from .programs.comparing.pairwise import pairwise_score as pairwise_score
    from .programs.ensemble import Committee as Committee
    from .programs.judge import Judge as Judge
    from .programs.models.lm import Connection as Connection
    from .programs.models.lm import LanguageModel as LanguageModel
    from .programs.models.lm import Sampling as Sampling
    from .programs.models.lm import language_model as language_model
    from .programs.openlgauge.grounding import ground as ground
    from .programs.openlgauge.judge import Member as Member
    from .programs.openlgauge.judge import OpeNLGauge as OpeNLGauge
    from .programs.pointwise.direct import DirectScorer as DirectScorer
    from .programs.pointwise.geval import GEval as GEval
    from .signatures.values import Criterion as Criterion
    from .signatures.values import ErrorSpan as ErrorSpan
    from .signatures.values import Scale as Scale
    from .signatures.values import Verdict as Verdict

__version__ = "0.1.0"

#: Public names and where they live. They are imported on first use: DSPy alone takes seconds.
_PUBLIC = {
    "ActiveCritic": "programs.active_critic.critic",
    "Budget": "optimizers.report",
    "Committee": "programs.ensemble",
    "Connection": "programs.models.lm",
    "CorrelationRandomSearch": "optimizers.search.random",
    "CorrelationSum": "optimizers.agreement.correlation",
    "Criterion": "signatures.values",
    "DirectScorer": "programs.pointwise.direct",
    "ErrorSpan": "signatures.values",
    "GEPASearch": "optimizers.dspy.searches",
    "GEval": "programs.pointwise.geval",
    "Judge": "programs.judge",
    "JudgesmithError": "errors",
    "KnnFewShot": "optimizers.search.few_shot",
    "LabeledFewShot": "optimizers.search.few_shot",
    "Labels": "datasets.records",
    "LanguageModel": "programs.models.lm",
    "MIPROSearch": "optimizers.dspy.searches",
    "Member": "programs.openlgauge.judge",
    "MetaEvaluation": "optimizers.agreement.meta.evaluation",
    "OpeNLGauge": "programs.openlgauge.judge",
    "OptunaSearch": "optimizers.search.optuna",
    "PairS": "programs.comparing.pairs",
    "PairwiseDirectScorer": "programs.comparing.pairwise",
    "Racing": "optimizers.search.racing",
    "SIMBASearch": "optimizers.dspy.searches",
    "Sampling": "programs.models.lm",
    "Scale": "signatures.values",
    "TaskInference": "programs.active_critic.task",
    "Verdict": "signatures.values",
    "aspects": "programs.aspects",
    "compile": "optimizers.compiling",
    "correlate": "optimizers.agreement.correlation",
    "discernment": "optimizers.agreement.discernment",
    "ground": "programs.openlgauge.grounding",
    "language_model": "programs.models.lm",
    "load": "programs.artifact",
    "meta_evaluate": "optimizers.agreement.meta.evaluation",
    "mlflow_scorer": "experiments.mlflow_logging",
    "pairwise_score": "programs.comparing.pairwise",
    "read_labels": "datasets.loading",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f".{_PUBLIC[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
