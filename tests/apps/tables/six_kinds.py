"""Six tables as people keep them, generated: path, target, and the columns that tell it."""

import numpy as np
import openpyxl
import pandas as pd

LIKERT = ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree")


def german_export(folder, rng, n=220):
    """Windows-1252, decimal commas, a line of units with dashes below it, levels in two cases."""
    size, year = rng.normal(95, 25, n).clip(25).round(1), rng.integers(1950, 2020, n)
    place, balcony = rng.choice(["gut", "mittel", "einfach"], n), rng.choice(["ja", "nein"], n)
    price = 20_000 + 2413 * size + 900 * (year - 1950) + 30_000 * (place == "gut")
    price += 15_000 * (balcony == "ja") - 25_000 * (place == "einfach") + rng.normal(0, 9000, n)
    lage = np.where(rng.random(n) < 0.15, np.char.capitalize(place), place)
    columns = {"Objekt": 70_000_000 + 37 * np.arange(n), "Wohnfläche": size, "Baujahr": year, "Lage": lage}
    columns |= {"Balkon": balcony, "Zimmer": rng.integers(1, 7, n), "Heizung": rng.choice(["Gas", "Öl"], n)}
    columns |= {"Makler": rng.choice([*"ABCDEF"], n), "Hausgeld": rng.uniform(150, 400, n).round(2)}
    table = pd.DataFrame(columns | {"Kaufpreis": price.round(2)})
    table.loc[[3, 40], "Hausgeld"] = np.nan
    head, rows = table.to_csv(sep=";", decimal=",", na_rep="-", index=False).split("\n", 1)
    path = folder / "wohnungen.csv"
    path.write_bytes(f"{head}\n;[m²];;;;;;;€;(€)\n{rows}".encode("cp1252"))
    return path, "Kaufpreis", {"Wohnfläche", "Baujahr", "Lage", "Balkon"}


def titled_sheet(folder, rng, n=160):
    """A workbook with two title lines, and a header of two lines with merged groups."""
    tenure, team = rng.integers(0, 25, n), rng.choice(["Sales", "IT", "Law"], n)
    grade, scores = rng.choice([*"ABCD"], n), rng.integers(1, 11, (3, n))
    age, hours = rng.integers(21, 64, n), rng.normal(38, 4, n).round(1)
    salary = 30_000 + 1200 * tenure + 4000 * (team == "Law") - 2500.0 * (grade == "D")
    salary += 2500 * (grade == "A") + 800 * scores[1] + rng.normal(0, 2500, n)
    sheet = (book := openpyxl.Workbook()).active
    for line in (["Staff review 2025"], ["Confidential: HR only"], []):
        sheet.append(line)
    sheet.append(["Staff no.", "Person", None, None, "Job", None, "Scores", None, None, "Salary"])
    sheet.append([None, "Age", "Tenure", "Hours", "Team", "Grade", "Teamwork", "Results", "Safety", None])
    for area in ("A4:A5", "B4:D4", "E4:F4", "G4:I4", "J4:J5"):
        sheet.merge_cells(area)
    columns = (1001 + rng.permutation(n), age, tenure, hours, team, grade, *scores, salary.round(2))
    for row in zip(*(column.tolist() for column in columns)):
        sheet.append(row)
    book.save(path := folder / "staff.xlsx")
    return path, "Salary", {"Person Tenure", "Job Team", "Job Grade", "Scores Results"}


def hospital(folder, rng, n=600, weak=False):
    """Patients: record numbers, gaps in many columns, 999 for a missing value, and few who came back.

    Weak effects of smoking and of days are within a standard error of what may be left out.
    """
    age, creatinine, stay = (
        rng.normal(62, 14, n).round(),
        rng.gamma(4, 0.3, n).round(2),
        1 + rng.poisson(5, n),
    )
    smoker = rng.choice(["yes", "no"], n)
    odds = -9.2 + 0.08 * (age - 62) + 2.4 * creatinine + 0.4 * stay + 2.6 * (smoker == "yes")
    if weak:
        odds = -7.2 + 0.06 * (age - 62) + 2.2 * creatinine + 0.25 * stay + 1.4 * (smoker == "yes")
    columns = {"MRN": rng.permutation(9 * 10**6)[:n] + 10**6, "Age": age, "Creatinine (mg/dL)": creatinine}
    columns |= {"Admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 360, n), "D")}
    columns |= {"Pulse": rng.normal(80, 12, n).round(), "Potassium": rng.normal(4.2, 0.4, n).round(2)}
    columns |= {"Days": stay, "Smoker": smoker, "Ward": rng.choice(["A1", "B2", "C3"], n)}
    back = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    table = pd.DataFrame({**columns, "Sex": rng.choice([*"FM"], n), "Readmitted": back})
    for name in ("Creatinine (mg/dL)", "Pulse", "Potassium"):
        table[name] = table[name].mask(rng.random(n) < 0.08)
    table["Age"] = table["Age"].mask(rng.random(n) < 0.02, 999)
    table.to_csv(path := folder / "patients.csv", na_rep="n/a", index=False)
    return path, "Readmitted", {"Age", "Creatinine (mg/dL)", "Days", "Smoker"}


def likert_survey(folder, rng, n=300):
    """Answers in words, some left out, and a respondent number."""
    answers = rng.integers(0, 5, (n, 14))
    rating = answers[:, 1] + 0.8 * answers[:, 5] - 0.9 * answers[:, 9] + rng.normal(0, 1.0, n)
    names = [f"Q{j + 1}: The staff were helpful and took the time my case {j} needed" for j in range(14)]
    table = pd.DataFrame(np.array(LIKERT)[answers], columns=names).mask(rng.random((n, 14)) < 0.04)
    table.insert(0, "Respondent", 40_000 + 3 * np.arange(n))
    table.insert(1, "Size", rng.choice(["S", "M", "L", "XL"], n))
    table.assign(Overall=(10 + rating).round(1)).to_csv(path := folder / "survey.csv", index=False)
    return path, "Overall", {names[1], names[5], names[9]}


def wide_omics(folder, rng, n=90, d=1500):
    """Few samples and many genes, in tabs."""
    X, true = rng.normal(7, 2, (n, d)).round(3), rng.choice(d, 4, replace=False)
    table = pd.DataFrame(X, columns=[f"ENSG{j:06d}" for j in range(d)], index=[f"S{i:03d}" for i in range(n)])
    y = X[:, true] @ [1.5, -1.3, 1.2, 1.1] + rng.normal(0, 0.8, n)
    path = folder / "expression.tsv"
    table.assign(response=y.round(3)).to_csv(path, sep="\t", index_label="sample")
    return path, "response", {f"ENSG{j:06d}" for j in true}


def daily_sales(folder, rng, n=240):
    """One row a day, prices with a sign, a promotion, and a total and an average below."""
    days, warm = pd.date_range("2024-03-01", periods=n), rng.normal(14, 6, n).round(1)
    promo, price = rng.choice(["yes", "no"], n, p=[0.3, 0.7]), rng.normal(4.5, 0.5, n).round(2)
    weekday = (np.arange(n) + 4) % 7
    sales = 900 + 260 * (promo == "yes") + 18 * warm + 60 * weekday - 120 * price + rng.normal(0, 60, n)
    dollars = [f"${value:,.2f}" for value in (*sales, sales.sum(), sales.mean())]
    columns = {"Date": days.strftime("%m/%d/%Y"), "Promo": promo, "Temp °C": warm}
    columns |= {"Price": [f"${value}" for value in price], "Staff": rng.integers(3, 9, n)}
    table = pd.DataFrame(columns | {"Receipt no": 81_000 + 7 * np.arange(n), "Sales": dollars[:n]})
    below = pd.DataFrame({"Date": ["Total", "Average"], "Sales": dollars[n:]})
    pd.concat([table, below]).to_csv(path := folder / "sales.csv", index=False)
    return path, "Sales", {"Date", "Promo", "Temp °C", "Price"}


SIX = (german_export, titled_sheet, hospital, likert_survey, wide_omics, daily_sales)
