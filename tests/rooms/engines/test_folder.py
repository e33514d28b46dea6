"""The folder of a run --on ray, as kills leave it."""

import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from judgesmith.errors import OptionError
from judgesmith.rooms.engines.folder import Output


def laid(folder: Path, mark: str | None) -> Output:
    """A folder with the files of a run; mark: what stands in its run.json."""
    for name in ("rows/a.parquet", "done/a.parquet", "input/rows.parquet"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    if mark is not None:
        (folder / "run.json").write_text(mark)
    return Output(str(folder))


@pytest.mark.parametrize("mark", [None, "", '{"judge": "ab', "[1]", "null", "{}"])
def test_a_folder_without_a_readable_mark_can_be_begun_again(
    mark: str | None, tmp_path: Path
) -> None:
    output = laid(tmp_path, mark)
    assert output.begun() == {}
    output.clear()
    assert (output.begun(), output.files()) == (None, [])


def test_a_kill_while_the_mark_is_written_leaves_the_old_one(
    tmp_path: Path,
) -> None:
    output = laid(tmp_path, '{"judge": "ab"}')
    with pytest.raises(TypeError):
        output.write("run.json", "no bytes")  # type: ignore[arg-type]
    assert output.begun() == {"judge": "ab"}
    output.clean()
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["run.json"]
    output.write("run.json", json.dumps({"judge": "cd"}).encode())
    assert output.begun() == {"judge": "cd"}


@pytest.mark.parametrize("step", range(1, 6))
def test_a_kill_anywhere_in_an_overwrite_is_taken_up(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = laid(tmp_path, '{"judge": "ab"}')
    (tmp_path / "forgotten").mkdir()
    (tmp_path / "forgotten/ids.parquet").write_text("x")
    left = [step]

    class Dying:
        def __getattr__(self, name: str) -> object:
            def call(*given: object) -> object:
                if name.startswith("delete"):
                    left[0] -= 1
                    if not left[0]:
                        raise KeyboardInterrupt
                return getattr(system, name)(*given)

            return call

    system = output.system
    with monkeypatch.context() as patch:
        patch.setattr(output, "system", Dying())
        with pytest.raises(KeyboardInterrupt):
            output.clear()
    assert Output(str(tmp_path)).begun() == {}  # nothing is resumed in it
    Output(str(tmp_path)).clear()
    assert Output(str(tmp_path)).begun() is None


def test_other_files_are_never_ours(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/notes.txt").write_text("mine")
    with pytest.raises(OptionError, match="is no output of --on ray"):
        Output(str(tmp_path)).begun()
    (tmp_path / "rows/notes.txt").rename(tmp_path / "rows.parquet")
    with pytest.raises(OptionError, match="is no output of --on ray"):
        Output(str(tmp_path)).begun()
