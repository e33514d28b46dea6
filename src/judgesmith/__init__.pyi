"""The public names and where they live: for type checkers, and for `__init__.py`, which imports a name on first use."""

from judgesmith.agreement.comparison import compare as compare
from judgesmith.agreement.correlation import CorrelationSum as CorrelationSum
from judgesmith.agreement.estimation import estimate as estimate
from judgesmith.agreement.meta.evaluation import meta_evaluate as meta_evaluate
from judgesmith.agreement.metric import Agreement as Agreement
from judgesmith.datasets.loading import read_labels as read_labels
from judgesmith.datasets.records import Labels as Labels
from judgesmith.errors import JudgesmithError as JudgesmithError
from judgesmith.errors import LabelsError as LabelsError
from judgesmith.errors import ModelError as ModelError
from judgesmith.errors import OptionError as OptionError
from judgesmith.optimizers.front import compile as compile
from judgesmith.optimizers.search.few_shot import LabeledFewShot as LabeledFewShot
from judgesmith.optimizers.search.optuna import OptunaSearch as OptunaSearch
from judgesmith.optimizers.search.proposals import GEPASearch as GEPASearch
from judgesmith.optimizers.search.random import (
    CorrelationRandomSearch as CorrelationRandomSearch,
)
from judgesmith.programs.active_critic.critic import ActiveCritic as ActiveCritic
from judgesmith.programs.as_metric import as_metric as as_metric
from judgesmith.programs.aspects import aspects as aspects
from judgesmith.programs.comparing.pairwise import (
    PairwiseDirectScorer as PairwiseDirectScorer,
)
from judgesmith.programs.judge import Judge as Judge
from judgesmith.programs.loading import load as load
from judgesmith.programs.method import Method as Method
from judgesmith.programs.models.lm import Connection as Connection
from judgesmith.programs.models.lm import language_model as language_model
from judgesmith.programs.openlgauge.judge import OpeNLGauge as OpeNLGauge
from judgesmith.programs.panel.judge import Panel as Panel
from judgesmith.programs.pointwise.direct import DirectScorer as DirectScorer
from judgesmith.programs.pointwise.geval import GEval as GEval
from judgesmith.programs.readings.judge import ModelReadings as ModelReadings
from judgesmith.programs.simple import judge as judge
from judgesmith.rooms.adapters.asserting import assert_agreement as assert_agreement
from judgesmith.rooms.adapters.asserting import assert_judged as assert_judged
from judgesmith.rows import Item as Item
from judgesmith.signatures.values import Criterion as Criterion
from judgesmith.signatures.values import ErrorSpan as ErrorSpan
from judgesmith.signatures.values import Scale as Scale
from judgesmith.signatures.values import Verdict as Verdict

__version__: str
