"""The public names and where they live: read by type checkers, and by lazy_loader when a name is first used."""

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
from .programs.readings.judge import ReadingsJudge as ReadingsJudge
from .signatures.values import Criterion as Criterion
from .signatures.values import ErrorSpan as ErrorSpan
from .signatures.values import Scale as Scale
from .signatures.values import Verdict as Verdict

__version__: str
