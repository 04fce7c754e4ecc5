"""Figures of the pages, from the tables in docs/figures: `python docs/figures.py` writes them into the pages.

A table of a page stands between `<!-- table: EXPRESSION -->` and `<!-- end -->`. In a sentence,
`<!--= EXPRESSION -->9.9<!---->` is a figure. Expressions are Python. In those of sentences the name of a CSV
file of that folder gives its rows, `fits["problem", "method"].ratio` is a cell, and `| .2f` behind an
expression chooses the format. `python benchmarks/run.py CASE --write` makes the CSV files; `--check` changes
no page and fails where one does not say what was measured.
"""

import csv
import re
import sys
from pathlib import Path
from statistics import mean

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = sorted([ROOT / "README.md", *HERE.glob("*.md"), *HERE.glob("[!_]*/*.md")])
BLOCK = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.S)
FIGURE = re.compile(r"(<!--= (.+?) -->).*?(<!---->)", re.S)
COMMANDS = {
    "dask": "python benchmarks/dask_faults.py all --write",
    "text": "python benchmarks/run.py text --repeats 1 --write",
}


class Row(dict):
    """A row of measurements; its columns are attributes, numbers where they can be."""

    def __getattr__(self, name):
        value = self[name]
        try:
            return float(value)
        except ValueError:
            return value


class Case:
    """The rows of a CSV file by problem, method and number of threads (one, if none is said)."""

    def __init__(self, name):
        with open(HERE / "figures" / f"{name}.csv", encoding="utf-8", newline="") as lines:
            self.name, self.rows = name, [Row(row) for row in csv.DictReader(lines)]

    def __getitem__(self, key):
        problem, method, threads = (*key, "1")[:3]
        found = [
            row
            for row in self.rows
            if (row["problem"], row["method"], row["threads"]) == (problem, method, threads)
        ]
        if len(found) != 1:
            raise KeyError(
                f"{self.name}.csv has {len(found)} rows of {problem}, {method}, {threads} thread(s)"
            )
        return found[0]

    def get(self, problem, method, column="ratio", form="", threads="1"):
        """A cell as text; nothing where it was not measured."""
        same = [
            r for r in self.rows if (r["problem"], r["method"], r["threads"]) == (problem, method, threads)
        ]
        value = same[0].get(column) if same else None
        return (format(float(value), form) if form else short(float(value))) if value else ""

    def problems(self):
        """Names of the problems, in the order of the file."""
        return list(dict.fromkeys(row["problem"] for row in self.rows))


CASES = {path.stem: Case(path.stem) for path in sorted((HERE / "figures").glob("*.csv"))}


def short(value):
    """A number with two or three digits; text stays."""
    if not isinstance(value, float | int):
        return str(value)
    return f"{value:.2f}" if abs(value) < 2 else f"{value:.1f}" if abs(value) < 20 else f"{value:,.0f}"


def span(values, form=""):
    """The least and the largest, as text."""
    told = list(
        dict.fromkeys(format(value, form) if form else short(value) for value in (min(values), max(values)))
    )
    return " to ".join(told)


def table(head, rows):
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines) + "\n"


def source(name, command=None):
    """What stands below a table: the command, the machine, the commit and the day, and the file."""
    rows, command = (
        CASES[name].rows,
        command or COMMANDS.get(name, f"python benchmarks/run.py {name} --write"),
    )
    said = {
        key: ", ".join(dict.fromkeys(row[key] for row in rows if row.get(key)))
        for key in ("processor", "blas", "commit", "date")
    }
    blas = f"OPENBLAS_CORETYPE={said['blas']}" if said["blas"] else ""
    busy = "other programs ran" if any(row.get("machine") == "busy" for row in rows) else ""
    when = " of ".join(
        part for part in (f"commit {said['commit']}" if said["commit"] else "", said["date"]) if part
    )
    told = [f"`{command}`" if command else "", said["processor"], blas, busy, when]
    link = f"[all figures](figures/{name}.csv)"
    return "*" + "; ".join(part for part in (*told, link) if part) + ".*\n\n"


# -- the tables of the pages --------------------------------------------------------------------------------


def drop_in():
    """Times as fast as scikit-learn, by program."""
    case, rows = CASES["drop_in"], []
    names = {"OMP": "`OrthogonalMatchingPursuit`", "OMPCV": "`OrthogonalMatchingPursuitCV`"}
    for problem in case.problems():
        kind, _, size = problem.partition(" ")
        numbers = re.match(r"(\d+) (\d+)(?: (\d+))?(.*)", size)
        if kind in names and numbers:
            n, d, k, more = numbers.groups()
            told = f"{names[kind]}, {n} x {d}" + (f", k={k}" if k else "")
            told += more.replace(" F", ", F order")
        else:
            told = re.sub(r"(\d+) fits (\d+) (\d+) (\d+)", r"\1 fits of \2 x \3, k=\4", problem)
        rows.append((told, case.get(problem, "skpursuit")))
    return table(("program", "times as fast"), rows) + source("drop_in")


def coder():
    """Times as fast as SPAMS."""
    case, rows = CASES["coder"], {}
    for problem in case.problems():
        shape, k, signals, dtype = problem.split(", ")
        key = shape, k.removeprefix("k="), f"{int(signals.split()[0]):,}"
        cells = [case.get(problem, way) for way in ("omp", "gain", "positive")]
        rows.setdefault(key, {})[dtype] = cells
    ways = [f"{way}, {bits}" for way in ("OMP", "gain", "positive") for bits in (32, 64)]
    empty = ["", "", ""]
    lines = [
        (
            *key,
            *(cell for pair in zip(*(found.get(d, empty) for d in ("float32", "float64"))) for cell in pair),
        )
        for key, found in rows.items()
    ]
    return table(("atoms (n x d)", "k", "signals", *ways), lines) + source("coder")


def gain_cost(shape):
    """How many times as long gain takes as OMP, over all of a shape."""
    case = CASES["coder"]
    found = [p for p in case.problems() if p.startswith(shape + ",") and case.get(p, "gain")]
    return span([case[p, "omp"].ratio / case[p, "gain"].ratio for p in found], ".2f")


def fits_cost():
    """How many times as long as `minimize` the estimators take."""
    of = ("OrthogonalMatchingPursuit", "PursuitRegressor")
    return [1 / CASES["fits"]["a fit of 50 atoms", one].ratio for one in of]


def ours_beside_numpy():
    """Times as fast as plain NumPy where that is in the table."""
    rows = {row["method"]: row for row in CASES["coder"].rows if row["problem"].startswith("2304 x 16384")}
    return rows["omp"].ratio / rows["NumPy, lock-step"].ratio


def lasso(signals):
    """Times as fast as a loop over Lasso, which codes every 25th signal."""
    return 25 * CASES["splice"][f"512 x 10000, {signals} signals", "positive"].ratio


def gain_times():
    """How many times as long OMP by gain takes with gram selection."""
    rows = CASES["greedy"].rows
    return [1 / row.ratio for row in rows if row["problem"].startswith("gain,") and row["method"] == "gain"]


def coder_span():
    """The least and the largest ratio to SPAMS."""
    ways = ("omp", "gain", "positive")
    return span([row.ratio for row in CASES["coder"].rows if row["method"] in ways])


def threads():
    """Two threads against one, and what Amdahl's law makes of it."""
    names = {
        "coder": "`PursuitCoder`", "certified prepared/C order": "certified, prepared",
        "certified fresh/C order": "certified, fresh", "selectors/exact, fresh": "exact, fresh",
        "selectors/exact, prepared": "exact, prepared", "dictionary learning": "`DictionaryLearner`",
    }  # fmt: skip
    rows = []
    for problem, told in names.items():
        two = CASES["threads"][problem, "default", "2"].ratio
        shared = 2 * (1 - 1 / two)
        more = [f"{1 / (1 - shared + shared / count):.2g}" if two > 1 else "" for count in (8, 32)]
        rows.append((told, f"{two:.2f}", *more))
    rows.sort(key=lambda row: -float(row[1]))
    head = ("fit", "2 threads", "8, model", "32, model")
    return table(head, rows) + source("threads", "OMP_NUM_THREADS=2 python benchmarks/run.py threads --write")


def greedy():
    """F of the support, by rule and kind of columns."""
    case, kinds = CASES["greedy"], ("gaussian", "AR(.9)", "AR(.95)", "near")
    names = {
        "OMP": "`OMP`", "OMP, gain": '`OMP(score="gain")`', "OMP, swaps": "`OMP(swaps=True)`",
        "CoSaMP": "`CoSaMP`", "CoSaMP, prune by gain": '`CoSaMP(prune="gain")`',
        "CoSaMP, refit": "`CoSaMP(refit=True)`",
        "CoSaMP, refit, by gain": '`CoSaMP(refit=True, prune="gain")`',
        "subspace pursuit": "`SubspacePursuit`",
        "subspace pursuit, by gain": '`SubspacePursuit(prune="gain")`',
    }  # fmt: skip
    rows = [(told, *(case.get(kind, rule, "F", ".2f") for kind in kinds)) for rule, told in names.items()]
    return table(("rule", "Gaussian", *kinds[1:]), rows) + source("greedy")


def text():
    """Accuracy with 50 words, two classes."""
    case, rows = CASES["text"], []
    for name in ("hitech", "la2", "ohscal", "classic"):
        problem, ours = f"{name}, two classes", "PursuitClassifier, ovr_shared"
        cells = [case.get(problem, one, "accuracy", ".1%") for one in (ours, "L1", "abess")]
        rows.append((name, *cells, case.get(problem, ours, "ratio", ".0f") + "x"))
    head = ("collection", "PursuitClassifier", "L1, liblinear", "abess", "abess takes")
    return table(head, rows)


def text_classes():
    """Accuracy with 50 words shared by all classes."""
    case, rows = CASES["text"], []
    for name in ("hitech", "la2", "ohscal", "classic"):
        problem, ways = (
            f"{name}, all classes",
            ("PursuitClassifier, ovr_shared", "PursuitClassifier, multinomial"),
        )
        cells = [case.get(problem, one, "accuracy", ".1%") for one in (*ways, "abess")]
        rows.append((name, *cells, ", ".join(case.get(problem, one, "ratio", ".0f") + "x" for one in ways)))
    head = ("collection", "one-vs-rest", "multinomial", "abess", "abess takes (one-vs-rest, multinomial)")
    return table(head, rows) + source("text")


def text_margin():
    """Points of accuracy above abess, most and least, over all tasks and ways."""
    rows = [row for row in CASES["text"].rows if row["method"].startswith("Pursuit")]
    return [100 * (row.accuracy - CASES["text"][row["problem"], "abess"].accuracy) for row in rows]


def selectors():
    """Whole fits by selector."""
    case, rows = CASES["selectors"], []
    for name in ("certified", "gram", "quantized", "halving", "greedy 2%", "greedy 5%"):
        cells = [case.get(problem, name) for problem in ("fresh", "prepared")]
        cells += [case.get("fresh", name, column, ".2%") for column in ("atoms", "bytes")]
        rows.append((f"`{name}`", *cells[:2], *(re.sub(r"\.?0*%", "%", cell) for cell in cells[2:])))
    head = ("selector", "with preparation", "prepared", "atoms of exact", "bytes of X a step")
    return table(head, rows) + source("selectors")


def certified():
    """Certified against exact BLAS selection, by design."""
    case, rows = CASES["certified"], []
    for problem in case.problems():
        name, _, state = problem.rpartition(", ")
        if state == "fresh":
            cells = case.get(problem, "certified"), case.get(f"{name}, prepared", "certified")
            rows.append((DESIGNS.get(name, name), *cells))
    return table(("X", "with preparation", "prepared"), rows) + source("certified")


DESIGNS = {
    "gaussian": "Gaussian, 5000 x 10000, 50 atoms", "k=100": "100 atoms", "k=200": "200 atoms",
    "20000x20000": "20000 x 20000", "AR(.7)": "neighbours correlate .7", "t(4)": "heavy tails, t(4)",
    "near": "columns in nearly equal pairs", "cauchy": "Cauchy", "correlated": "all columns correlate .9",
    "SNR 1": "signal to noise 1", "tall": "100000 x 2000", "wide": "500 x 200000", "music": "pieces of music",
}  # fmt: skip


def defaults(kind, measures):
    """Default models beside L1 and abess."""
    case, rows = CASES["defaults"], []
    rivals = ("L1", "abess") if kind in ("regression", "classes") else ("L1",)
    for problem in [one for one in case.problems() if one.startswith(f"{kind}, ")]:
        found = {name: case[problem, name] for name in (*rivals, "ours")}
        cells = []
        for row in found.values():
            said = [f"{row.features:.0f}", *([f"F {row.F:.2f}"] if row["F"] else [])]
            cells.append(f"{' / '.join(f'{float(row[m]):.3f}' for m in measures)} ({', '.join(said)})")
        less = []
        for measure in measures:
            best = max if measure != "log loss" else min
            rival = best(rivals, key=lambda name: float(found[name][measure]))
            error = found["ours"].get(f"{measure} - {rival}'s ±") or "0"
            less.append(
                f"{float(found['ours'][f'{measure} - {rival}' + chr(39) + 's']):+.3f} ± {float(error):.3f}"
            )
        time = 1 / found["ours"].ratio
        rows.append((problem.removeprefix(f"{kind}, "), *cells, " / ".join(less), f"{time:.2g}"))
    return table(("data", *rivals, "ours", "difference", "time"), rows)


def default(name):
    """Our row of a kind of data, by its name."""
    found = [p for p in CASES["defaults"].problems() if p.endswith(f", {name}")]
    return CASES["defaults"][found[0], "ours"]


def fewer_worst():
    """The largest change of a score, as a share of the standard error of its row."""
    return max(abs(row.difference) / getattr(row, "row ±") for row in CASES["fewer_features"].rows)


def nothing():
    """Share of fits of pure noise that answer "nothing"."""
    case = CASES["defaults"]
    rows = [
        (
            p.removeprefix("pure noise, "),
            *(case.get(p, kind, "nothing", ".0%") for kind in ("regression", "classes")),
        )
        for p in case.problems()
        if p.startswith("pure noise")
    ]
    return table(("data", "regression", "classes"), rows)


def fewer():
    """What fewer features cost the default models."""
    rows = [
        (f"{r['problem']} ({r['splits']})", f"{r['best features']}, {r['best score']}",
         f"{r['taken features']}, {r['taken score']}", f"{r['difference']} ± {r['difference ±']}", r["row ±"])
        for r in CASES["fewer_features"].rows
    ]  # fmt: skip
    return table(("data", "best", "taken", "taken - best", "standard error of the row"), rows)


def audits():
    """rho by selector and kind of columns: the least, and the mean."""
    case, kinds = CASES["guarantees"], ("Gaussian", "AR(.9)", "near-duplicate", "text", "gene-like")
    rows = []
    for name in ("exact", "certified", "quantized", "halving", "importance", "greedy", "uniform"):
        cells = [
            [case.get(kind, name, column, ".4g") for column in ("rho_min", "rho_mean")] for kind in kinds
        ]
        rows.append((name, *(", ".join(map(near_one, pair)) if pair[0] else "" for pair in cells)))
    return table(("selector", *kinds), rows)


def near_one(text):
    """Two digits, more where it is nearly one."""
    value = float(text)
    return text if value > 0.99 else f"{value:.2g}" if value > 1e-4 else f"{value:.5f}"


def proofs():
    """Sizes proven, and OKRidge with the same seconds."""
    rows = []
    for r in CASES["guarantees"].rows:
        if r["method"] in ("certify", "okridge"):
            sizes = [f"{float(r[c]) * r.sizes:.0f}" for c in ("within_1_percent", "optimal")]
            name = "OKRidge" if r["method"] == "okridge" else "`certify`"
            rows.append(
                (
                    r["problem"],
                    name,
                    *sizes,
                    f"{r.gap_mean:.2g}" if r.gap_mean > 1e-6 else "0",
                    f"{r.seconds_per_size:.2g}",
                )
            )
    return table(("data", "", "within 1 %", "optimal", "mean gap", "seconds a size"), rows) + source(
        "guarantees"
    )


def files():
    """Bytes read from a file over its size, for three limits of memory."""
    case, limits = CASES["files"], ("20MB", "60MB", "100MB")
    places = [f"{order} order, {target}" for order in "CF" for target in ("signal", "noise")]
    rows = []
    for name in ("exact", "gram", "certified", "auto"):
        cells = [
            " / ".join(f"{case[f'{place}, {limit}', name]['MB read']}" and
                       f"{float(case[f'{place}, {limit}', name]['MB read']) / 80:.1f}" for limit in limits)
            for place in places
        ]  # fmt: skip
        rows.append((f"`{name}`", *cells))
    return table(("20000 x 500 float64, 80 MB, 10 atoms", *places), rows) + source("files")


def dask_faults():
    """What was seen when workers, the scheduler or memory failed."""
    case = CASES["dask"]
    names = {
        "kill": "`kill`: kill -9 of a random worker at a random moment, {method}",
        "lost": "`lost`: {method}, with `no-workers` of 10 s and a `deadline` of 15 s",
        "memory": "`memory`: {method}", "beyond": "`beyond`: X of {MB of X} MB, {method} each",
    }  # fmt: skip
    seen = {
        "kill": "{equal} of {fits} fits have equal bits; a fit takes {s} s, the slowest {s more} s more",
        "lost": "error after {s} s; the checkpoint goes on, {equal} of {fits} with equal bits",
        "memory": "{MB} MB of anonymous memory", "beyond": "at most {MB} MB in a worker",
    }  # fmt: skip
    rows = [r | {key: short(getattr(r, key)) for key in ("s", "s more") if r.get(key)} for r in case.rows]
    lines = [
        (names[r["problem"]].format(**r), seen[r["problem"]].format(**r))
        for r in rows
        if r["problem"] in names
    ]
    return table(("what", "seen"), lines) + source("dask")


def dask_model(size=100e9, tiles=400, sent=16e6):
    """Seconds of a step of exact selection on a cluster, by what was measured of its parts."""
    known, rows = {row["problem"]: row.value for row in CASES["trials"].rows}, []
    trips = 2 * (known["a trip to the cluster"] + tiles * known["a task of a trip"])
    for workers in (1, 10, 100):
        parts = size / known["products"] / workers, trips, sent / known["sending"]
        rows.append((workers, *(f"{part:.2f} s" for part in (*parts, sum(parts)))))
    return table(("workers", "reading X", "two trips", "16 MB of r and the column", "step"), rows)


def dask_beside():
    """One machine against two workers on it."""
    found = {r["method"]: short(r.s) + " s" for r in CASES["dask"].rows if r["problem"] == "beside"}
    pairs = dict.fromkeys(name.rpartition(", ")[0] for name in found)
    rows = [(*pair.split(", "), *(found.get(f"{pair}, {where}", "") for where in ("array", "two workers")))
            for pair in pairs]  # fmt: skip
    return table(("X", "selector", "array", "two workers"), rows)


def landing():
    """Seconds and bytes by the number of atoms, for the README."""
    case, rows = CASES["landing"], []
    for k in (10, 50, 200):
        exact, auto = (case[f"k={k}", name] for name in ("exact", "auto"))
        rows.append((k, f"{exact.ms / 1e3:.2f} s", f"{auto.ms / 1e3:.2f} s", f"{exact.ms / auto.ms:.1f}",
                     f"{exact.bytes / 1e9:.1f} GB", f"{auto.bytes / 1e9:.2f} GB"))  # fmt: skip
    return table(
        ("atoms", "exact, BLAS", "the default", "times as fast", "exact reads", "the default reads"), rows
    )


def landing_source():
    """What was measured for the front page, for its section in the results."""
    return source("landing").replace("](figures/", "](../figures/")


def demo():
    """What `skpursuit demo` prints."""
    return f"```\n{(HERE / 'figures' / 'demo.txt').read_text(encoding='utf-8').strip()}\n```\n"


def families():
    """Share of exact's atoms, and of X that a step reads, by selector and kind of columns."""
    kinds = {}
    for row in CASES["families"].rows:
        kinds.setdefault(row["design"], {}).setdefault(row["method"], []).append(row)
    methods = ["greedy", "uniform", "importance", "halving", "halving-doubling", "certified"]
    share = lambda rows, column: f"{mean(float(row[column]) for row in rows):.0%}"  # noqa: E731
    cell = lambda rows: f"{share(rows, 'same_atoms')} ({share(rows, 'share_read')})"  # noqa: E731
    cells = [(kind, *(cell(found[method]) for method in methods)) for kind, found in kinds.items()]
    return table(("columns", *methods), cells)


# -- pages --------------------------------------------------------------------------------------------------


def figure_of(mark):
    """The text of a figure in a sentence."""
    expression, _, form = mark.partition(" | ")
    value = eval(expression, {**globals(), **CASES})
    return format(value, form.strip()) if form else short(value)


def filled(text):
    """The text of a page with the figures that were measured last."""
    text = BLOCK.sub(lambda found: f"{found[1]}{eval(found[2])}{found[3]}", text)
    return FIGURE.sub(lambda found: found[1] + figure_of(found[2]) + found[3], text)


def main():
    """Write the pages, or say which are stale."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    stale = {page: new for page, text in texts.items() if (new := filled(text)) != text}
    print("\n".join(str(page.relative_to(ROOT)) for page in stale) or "every page says what was measured")
    if "--check" in sys.argv:
        return int(bool(stale))
    for page, text in stale.items():
        page.write_text(text, encoding="utf-8")
    from pictures import draw_all

    draw_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
