"""The public names and where they live: for type checkers, and for `__init__.py`, which imports a name on first use."""

from judgesmith.agreement.correlation import CorrelationSum as CorrelationSum
from judgesmith.agreement.correlation import correlate as correlate
from judgesmith.agreement.discernment import discernment as discernment
from judgesmith.agreement.estimation import estimate as estimate
from judgesmith.agreement.meta.evaluation import MetaEvaluation as MetaEvaluation
from judgesmith.agreement.meta.evaluation import meta_evaluate as meta_evaluate
from judgesmith.agreement.metric import Agreement as Agreement
from judgesmith.agreement.replacement import way_to_rater as way_to_rater
from judgesmith.datasets.loading import read_labels as read_labels
from judgesmith.datasets.records import Labels as Labels
from judgesmith.errors import ArtifactError as ArtifactError
from judgesmith.errors import BudgetError as BudgetError
from judgesmith.errors import CallError as CallError
from judgesmith.errors import JudgesmithError as JudgesmithError
from judgesmith.errors import LabelsError as LabelsError
from judgesmith.errors import ModelError as ModelError
from judgesmith.errors import NoScoreError as NoScoreError
from judgesmith.errors import OptionError as OptionError
from judgesmith.errors import OutageError as OutageError
from judgesmith.optimizers.budget import Budget as Budget
from judgesmith.optimizers.front import compile as compile
from judgesmith.optimizers.search.few_shot import LabeledFewShot as LabeledFewShot
from judgesmith.optimizers.search.optuna import OptunaSearch as OptunaSearch
from judgesmith.optimizers.search.proposals import GEPASearch as GEPASearch
from judgesmith.optimizers.search.random import (
    CorrelationRandomSearch as CorrelationRandomSearch,
)
from judgesmith.programs.active_critic.critic import ActiveCritic as ActiveCritic
from judgesmith.programs.active_critic.task import TaskInference as TaskInference
from judgesmith.programs.as_metric import as_metric as as_metric
from judgesmith.programs.aspects import aspects as aspects
from judgesmith.programs.baselines.pairs import PairS as PairS
from judgesmith.programs.comparing.pairwise import (
    PairwiseDirectScorer as PairwiseDirectScorer,
)
from judgesmith.programs.comparing.pairwise import pairwise_score as pairwise_score
from judgesmith.programs.judge import Judge as Judge
from judgesmith.programs.loading import load as load
from judgesmith.programs.method import Method as Method
from judgesmith.programs.models.lm import Connection as Connection
from judgesmith.programs.models.lm import LanguageModel as LanguageModel
from judgesmith.programs.models.lm import Sampling as Sampling
from judgesmith.programs.models.lm import language_model as language_model
from judgesmith.programs.openlgauge.grounding import ground as ground
from judgesmith.programs.openlgauge.judge import Member as Member
from judgesmith.programs.openlgauge.judge import OpeNLGauge as OpeNLGauge
from judgesmith.programs.outcome import Outcome as Outcome
from judgesmith.programs.panel.judge import Panel as Panel
from judgesmith.programs.pointwise.direct import DirectScorer as DirectScorer
from judgesmith.programs.pointwise.geval import GEval as GEval
from judgesmith.programs.readings.judge import ModelReadings as ModelReadings
from judgesmith.programs.simple import judge as judge
from judgesmith.rooms.adapters.asserting import assert_agreement as assert_agreement
from judgesmith.rooms.adapters.asserting import assert_judged as assert_judged
from judgesmith.rooms.engines.batches import BatchScorer as BatchScorer
from judgesmith.rooms.labelling.suggestion import suggest as suggest
from judgesmith.rooms.mlflow.logging import mlflow_scorer as mlflow_scorer
from judgesmith.rooms.training.distilled.judge import Distilled as Distilled
from judgesmith.rooms.training.distilling import distill as distill
from judgesmith.signatures.values import Criterion as Criterion
from judgesmith.signatures.values import CriterionScore as CriterionScore
from judgesmith.signatures.values import ErrorSpan as ErrorSpan
from judgesmith.signatures.values import Item as Item
from judgesmith.signatures.values import Opinion as Opinion
from judgesmith.signatures.values import Scale as Scale
from judgesmith.signatures.values import Usage as Usage
from judgesmith.signatures.values import Verdict as Verdict

__version__: str
