"""Settings of a study's arms as they are kept."""

from judgesmith.experiments.studies.config import check_settings


def test_values_are_kept_as_the_declaration_makes_them() -> None:
    assert check_settings({"racing": "yes"}, "an arm") == {"racing": True}
    assert check_settings({"variants": "fine,coarse"}, "an arm") == {"variants": ["fine", "coarse"]}
    assert check_settings({"objective": "auc"}, "an arm") == {"objective": "auc"}
