"""What trainers and trackers write by themselves is read as they meant it, and is hostile without effect."""

import asyncio
import io
import json
import math
import sqlite3
import time
from collections import defaultdict
from contextlib import closing, suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from analysis.study import consoles, document, formats, trackio
from analysis.study.judge import command, judge
from encore.errors import UserError

DUMP = Path(__file__).parent / "trackio.sql"  # of what trackio 0.43.0 wrote: two runs, three steps each
MARKUP = "<img src=x onerror=alert(1)>"
LONG = 200_000  # characters of a hostile line


def series(rows, metric):
    """The values of a metric by step."""
    return rows[rows.metric == metric].set_index("step").value.to_dict()


@pytest.fixture
def database(tmp_path):
    """A database of trackio, to be changed before it is read."""
    path = tmp_path / "sums.db"
    with closing(sqlite3.connect(path)) as written:
        written.executescript(DUMP.read_text(encoding="utf-8"))
    return path


def changed(database, *statements):
    with closing(sqlite3.connect(database)) as written, written:
        for statement in statements:
            written.execute(statement)


def test_a_database_of_trackio_has_the_curves_of_all_its_runs(database):
    before = database.read_bytes()
    rows = formats.read_log(database, None)
    assert series(rows, "a-1 - train/reward") == {1: 0.1, 2: 0.25, 3: 0.5}
    assert series(rows, "b-1 - train/reward") == {1: 0.1, 2: 0.25, 3: 0.4}
    assert math.isnan(series(rows, "a-1 - loss")[3])
    assert series(rows, "a-1 - nested/x") == {3: 2.0}
    assert not [name for name in rows.metric if "note" in name]
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_the_step_of_trackio_may_be_one_that_was_logged(database):
    changed(
        database, """UPDATE metrics SET metrics = '{"train/global_step": ' || (step * 10) || ', "x": 1}'"""
    )
    assert series(formats.read_log(database, "train/global_step"), "a-1 - x") == {10: 1.0, 20: 1.0, 30: 1.0}


def test_rows_that_trackio_has_not_moved_out_of_its_journal_are_read(database):
    with closing(sqlite3.connect(database)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.execute("UPDATE metrics SET step = step + 1")
        running.commit()
        assert database.with_name("sums.db-wal").stat().st_size
        assert series(formats.read_log(database, None), "a-1 - train/reward") == {2: 0.1, 3: 0.25, 4: 0.5}


def test_a_database_of_trackio_is_judged_run_by_run(database, tmp_path):
    """Each run of trackio is an arm and a seed by its name; markup in a name stays text on the page."""
    rows = [
        (f"{arm}-{seed}", step, json.dumps({"reward": level + seed / 100 + step / 10}))
        for arm, level in (("a", 0.5), ("b", 0.1), (MARKUP, 0.1))
        for seed in range(1, 9)
        for step in range(1, 3 if arm == MARKUP else 6)
    ]
    with closing(sqlite3.connect(database)) as written, written:
        written.execute("DELETE FROM metrics")
        statement = (
            "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?1, '', ?1, ?2, ?3)"
        )
        written.executemany(statement, rows)
    test = {"metric": "last/reward", "of": "a/train", "against": "b/train", "direction": "higher"}
    study = {
        "title": "Trackio",
        "runs": {"train": {"files": ["sums.db"], "columns": "{arm}-{seed} - {metric}"}},
        "claims": {"higher": {"says": "A is higher.", "primary": True, "test": test | {"margin": 0.1}}},
    }
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(study), encoding="utf-8")
    (verdict,) = judge(document.load(path), tmp_path).verdicts
    assert (verdict.word, verdict.n, verdict.estimate) == ("shown", 8, pytest.approx(0.4))
    assert any(MARKUP in line for line in command(path, None))
    page = (tmp_path / "study/index.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS id, 'a' AS run_name FROM n"
HUGE = "CREATE TABLE metrics (id, run_name, step, metrics AS (zeroblob(900000000)))"
DROP = "DROP TABLE metrics"


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["UPDATE metrics SET run_name = 'a-1'"], "two runs have the name 'a-1'"),
        ([DROP], "no such table: metrics"),
        ([DROP, "CREATE TABLE metrics (id)", "INSERT INTO metrics VALUES (1)"], "No item with that key"),
        ([DROP, f"CREATE VIEW metrics AS {ENDLESS}"], "interrupted"),
        ([DROP, HUGE, "INSERT INTO metrics VALUES (1, 'a-1', 1)"], "string or blob too big"),
        (["UPDATE metrics SET run_name = CAST(x'ff' AS TEXT)"], "Could not decode"),
    ],
)
def test_what_is_no_database_of_trackio_is_told_in_one_line(statements, said, database, monkeypatch):
    monkeypatch.setattr(trackio, "PATIENCE", 0.5)
    changed(database, *statements)
    with pytest.raises(UserError) as error:
        formats.read_log(database, None)
    assert said in str(error.value)
    assert len(error.value.lines) == 1


@given(st.binary(max_size=300), st.integers(0, 20_000))
def test_a_damaged_database_raises_nothing_else(tmp_path_factory, damage, place):
    path = tmp_path_factory.mktemp("log") / "sums.db"
    with closing(sqlite3.connect(path)) as written:
        written.executescript(DUMP.read_text(encoding="utf-8"))
    content = path.read_bytes()
    path.write_bytes(content[:place] + damage + content[place + len(damage) :])
    with suppress(UserError):
        formats.read_log(path, None)


@pytest.mark.parametrize("cell", ["[1]", "x", "[" * 50_000, '{"a":' * 50_000], ids=lambda cell: cell[:5])
def test_a_cell_that_is_no_object_has_no_numbers(cell, database):
    with closing(sqlite3.connect(database)) as written, written:
        written.execute("UPDATE metrics SET metrics = ? WHERE step = 2", [cell])
    assert series(formats.read_log(database, None), "a-1 - train/reward") == {1: 0.1, 3: 0.5}


class FileMonitor:
    """The writer of prime-rl's `metrics.jsonl`.

    Its methods are those of src/prime_rl/monitors/file.py and `sanitize` of src/prime_rl/utils/utils.py, of
    PrimeIntellect-ai/prime-rl at commit 559b44772e471d1538537b8805cc77f3824a5e64.
    """

    def __init__(self, path):
        self.file = path.open("a", buffering=1)

    async def log_metrics(self, metrics, step):
        finite = {key: value for key, value in metrics.items() if math.isfinite(value)}
        row = {"step": step, "time": time.time(), **finite}
        self.file.write(json.dumps(row) + "\n")


def test_the_metrics_of_prime_rl_are_read(tmp_path):
    """Several calls have one step, as its trainer and its evaluations make them."""
    path = tmp_path / "metrics.jsonl"
    monitor = FileMonitor(path)
    for step, reward in enumerate((0.1, 0.25, 0.5)):
        asyncio.run(monitor.log_metrics({"train/agg/effective/reward/mean": reward, "step": step}, step))
        asyncio.run(monitor.log_metrics({"optim/grad_norm": math.nan if step == 1 else 1.0}, step))
    monitor.file.close()
    rows = formats.read_log(path, None)
    assert series(rows, "train/agg/effective/reward/mean") == {0: 0.1, 1: 0.25, 2: 0.5}
    assert series(rows, "optim/grad_norm") == {0: 1.0, 2: 1.0}


def format_value(value):
    if isinstance(value, float):
        if abs(value) < 1e-5:
            return f"{value:.2e}"
        return f"{value:.2f}"
    return str(value)


def print_rich_single_line_metrics(metrics, console):
    """Print as open-instruct does, to a console that is given.

    This is the function of open_instruct/model_utils.py, of allenai/open-instruct at commit
    e6c3044aa6201c8bfa4573c1b03142af599e730d.
    """
    table = Table(show_header=False, box=None)
    table.add_column("Category", style="cyan")
    table.add_column("Values", style="magenta")
    grouped_metrics = defaultdict(list)
    for key, value in metrics.items():
        category = key.split("/")[0] if "/" in key else "other"
        grouped_metrics[category].append((key, value))
    for category in sorted(grouped_metrics.keys()):
        values = grouped_metrics[category]
        value_strings = []
        for key, value in values:
            parts = key.split("/")
            display_name = "/".join(parts[1:]) if len(parts) > 1 else key
            value_strings.append(f"{display_name}: {format_value(value)}")
        values_str = " | ".join(value_strings)
        table.add_row(category, values_str)
    console.print(Panel(table, title="Metrics", expand=False, border_style="bold green"))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_console_of_open_instruct_is_read(width, tmp_path):
    """At each width of rich, which breaks lines; an evaluation is of the step that was printed before it."""
    console = Console(file=io.StringIO(), width=width)
    for step, reward in enumerate((0.1, 0.25, 0.5), 1):
        metrics = {"episode": 64 * step, "global_step": 64 * step, "training_step": step, "epoch": 0.01}
        metrics |= {"learner_tokens_per_second_overall": 123.456, "scores": reward, "loss/kl_avg": 0.0}
        metrics |= {
            "loss/policy_avg": -3e-7,
            "objective/verifiable_correct_rate": reward,
            "val/ratio": math.nan,
        }
        metrics |= {"val/" + "x" * 200: 1.0}
        print_rich_single_line_metrics(metrics, console)
        console.print("2026-08-20 22:05:01 - INFO - grpo_fast.py:1 - a | b")
        if step == 2:
            print_rich_single_line_metrics({"eval/scores": 0.75, "eval/stop_rate": 1.0}, console)
    print_rich_single_line_metrics({"training_step": 4, "scores": 9.0}, console)
    text = console.file.getvalue()
    path = tmp_path / "log"
    path.write_text("a, b\n" + text[: text.rindex("╰")], encoding="utf-8")  # the last panel is cut off
    rows = formats.read_log(path, None)
    curve = {1: 0.1, 2: 0.25, 3: 0.5}
    assert series(rows, "scores") == series(rows, "objective/verifiable_correct_rate") == curve
    assert series(rows, "loss/policy_avg") == dict.fromkeys(curve, -3e-7)
    assert series(rows, "eval/scores") == {2: 0.75}
    assert series(rows, "learner_tokens_per_second_overall") == dict.fromkeys(curve, 123.46)
    assert all(map(math.isnan, series(rows, "val/ratio").values()))
    assert not [name for name in rows.metric if "…" in name]
    assert series(formats.read_log(path, "episode"), "scores") == {64: 0.1, 128: 0.25, 192: 0.5}


@pytest.mark.parametrize(
    "text",
    [
        "step:1 - a:" + "1" * LONG + "x",
        "step:1 - a:" + " " * LONG + "x",
        "step:1 " * LONG,
        "╭─ Metrics ─╮\n│  a  " + "b: " * LONG + "│\n╰",
        "╭─ Metrics ─╮\n" + "│" * LONG + "\n╰",
        "╭" + "─" * LONG + " Metrics",
        "a,b\n" + "\n" * LONG + "x",
        '{"step": 1, "a": 1' + "0" * 4000 + "}",
        '{"step": NaN, "a": 1}',
    ],
    ids=lambda text: text[:12].strip(),
)
def test_a_hostile_text_takes_no_time(text, tmp_path):
    """A parser that goes over a line once for each of its characters would take minutes."""
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8")
    started = time.process_time()
    with suppress(UserError):
        formats.read_log(path, None)
    assert time.process_time() - started < 20


@given(st.text(alphabet="╭─╮│╰ Metricstraining_step:1.|…\n", max_size=400))
def test_no_panel_raises(body):
    list(consoles.of_open_instruct(f"╭─ Metrics ─╮\n│ {body}│\n╰", consoles.TRAINING_STEP))
