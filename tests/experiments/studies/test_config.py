"""Settings of a study's arms as they are kept."""

from judgesmith.experiments.studies.config import check_settings


def test_what_a_part_makes_of_a_value_stays_as_it_was_given() -> None:
    rules = {"chance": 0.1, "least": 12}
    assert check_settings({"racing": rules}, "an arm") == {"racing": rules}  # an object of the race's own
    assert check_settings({"racing": "yes"}, "an arm") == {"racing": "yes"}
    assert check_settings({"temperatures": "0.2,0.7"}, "an arm") == {"temperatures": [0.2, 0.7]}
    assert check_settings({"objective": "auc"}, "an arm") == {"objective": "auc"}
