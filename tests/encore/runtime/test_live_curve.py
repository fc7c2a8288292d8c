"""The curve of a training under way: the rows of the final one, step by step."""

from encore.runtime import curves, live_curve

HISTORY = [
    {"step": n, "loss": 1 / n, "reward": 0.1 * n, "step_time": 2.0, "epoch": 0.1, "length": None}
    for n in range(1, 8)
]


def test_it_grows_to_the_final_one_and_is_cut_to_where_training_goes_on(tmp_path):
    folder = tmp_path / "checkpoints"
    live_curve.begin(folder, [])
    for done, entry in enumerate(HISTORY, start=1):
        live_curve.add(folder, entry)
        final = curves.text(curves.deterministic(curves.rows(HISTORY[:done])))
        assert live_curve.path(folder).read_text() == final
    live_curve.begin(folder, HISTORY[:4])
    assert live_curve.path(folder).read_text().splitlines()[-1] == "4,reward,0.4"
    for entry in HISTORY[4:]:
        live_curve.add(folder, entry)
    assert live_curve.path(folder).read_text() == final


def test_of_several_processes_the_first_one_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    live_curve.begin(tmp_path, HISTORY)
    live_curve.add(tmp_path, HISTORY[0])
    assert not live_curve.path(tmp_path).exists()
