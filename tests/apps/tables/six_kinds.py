"""Six tables as people keep them, generated: each returns its path, its target and the columns that tell it.

They are messy in their own ways (units below the header, titles above it, gaps, identifiers of digits, words
for numbers, many columns, totals below), and what depends on what is known.
"""

import csv
import datetime

import numpy as np
import openpyxl

LIKERT = ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree")


def german_export(folder, rng, n=220):
    """Windows-1252, semicolons, decimal commas, a line of units with dashes below it, levels in two cases."""
    size, year, rooms = rng.normal(95, 25, n).clip(25), rng.integers(1950, 2020, n), rng.integers(1, 7, n)
    place, balcony = rng.choice(["gut", "mittel", "einfach"], n), rng.choice(["ja", "nein"], n)
    heating, agent = rng.choice(["Gas", "Fernwärme", "Wärmepumpe"], n), rng.choice([*"ABCDEF"], n)
    price = (
        20_000 + 2413 * size + 900 * (year - 1950) + 30_000 * (place == "gut") - 25_000 * (place == "einfach")
    )
    price += 15_000 * (balcony == "ja") + rng.normal(0, 9000, n)
    written = np.where(rng.random(n) < 0.15, np.char.capitalize(place), place)
    rows = []
    for i in range(n):
        row = [str(70_000_000 + 37 * i), german(size[i], 1), year[i], rooms[i], written[i], balcony[i]]
        row += [heating[i], agent[i], german(rng.uniform(150, 400), 2), german(rng.normal(12, 4), 1)]
        rows.append([*row, german(price[i], 2)])
    rows[3][8] = rows[9][9] = rows[40][8] = "-"
    head = ["Objekt", "Wohnfläche", "Baujahr", "Zimmer", "Lage", "Balkon", "Heizung", "Makler", "Hausgeld"]
    units = ["", "m²", "", "", "", "", "", "", "€", "km", "€"]
    lines = [[*head, "Entfernung Zentrum", "Kaufpreis"], units, *rows]
    path = folder / "wohnungen.csv"
    path.write_bytes("".join(";".join(map(str, line)) + "\r\n" for line in lines).encode("cp1252"))
    return path, "Kaufpreis", {"Wohnfläche", "Baujahr", "Lage", "Balkon"}


def german(value, digits):
    """Spell a number with a decimal comma and points between thousands."""
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def titled_sheet(folder, rng, n=160):
    """A workbook with two title lines, a header of two lines with merged groups, and an empty column."""
    age, tenure, hours = rng.integers(21, 64, n), rng.integers(0, 25, n), rng.normal(38, 4, n).round(1)
    team, grade = rng.choice(["Sales", "Support", "Finance"], n), rng.choice([*"ABCD"], n)
    scores = rng.integers(1, 11, (n, 3))
    salary = 30_000 + 1200 * tenure + 4000 * (team == "Finance") - 2500.0 * (grade == "D")
    salary += 2500 * (grade == "A") + 800 * scores[:, 1] + rng.normal(0, 2500, n)
    sheet = (book := openpyxl.Workbook()).active
    sheet.append(["Staff review 2025"])
    sheet.append(["Confidential: HR only"])
    sheet.append([])
    sheet.append(["Staff no.", "Person", None, None, "Job", None, "Scores", None, None, "Salary"])
    sheet.append([None, "Age", "Tenure", "Hours", "Team", "Grade", "Teamwork", "Results", "Safety", None])
    for area in ("A4:A5", "B4:D4", "E4:F4", "G4:I4", "J4:J5"):
        sheet.merge_cells(area)
    for i in rng.permutation(n).tolist():
        numbers = map(float, (age[i], tenure[i], hours[i]))
        rest = *map(float, scores[i]), round(float(salary[i]), 2)
        sheet.append([1001 + i, *numbers, str(team[i]), str(grade[i]), *rest])
    book.save(path := folder / "staff.xlsx")
    return path, "Salary", {"Person Tenure", "Job Team", "Job Grade", "Scores Results"}


def hospital(folder, rng, n=600):
    """Patients: record numbers, gaps in many columns, 999 for a missing value, and few who came back."""
    age, creatinine, stay = (
        rng.normal(62, 14, n).round(),
        rng.gamma(4, 0.3, n).round(2),
        1 + rng.poisson(5, n),
    )
    pulse, potassium = rng.normal(80, 12, n).round(), rng.normal(4.2, 0.4, n).round(2)
    smoker, ward, sex = (
        rng.choice(["yes", "no"], n),
        rng.choice(["A1", "B2", "C3", "D4"], n),
        rng.choice([*"FM"], n),
    )
    odds = -7.2 + 0.06 * (age - 62) + 2.2 * creatinine + 0.25 * stay + 1.4 * (smoker == "yes")
    back = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    came = [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 360, n)]
    head = [
        "MRN",
        "Admitted",
        "Age",
        "Sex",
        "Ward",
        "Creatinine (mg/dL)",
        "Pulse",
        "Potassium",
        "Days",
        "Smoker",
    ]
    columns = [
        rng.permutation(9 * 10**6)[:n] + 10**6,
        came,
        age,
        sex,
        ward,
        creatinine,
        pulse,
        potassium,
        stay,
    ]
    rows = [list(map(str, row)) for row in zip(*columns, smoker, back)]
    for row in rows:
        for j in (5, 6, 7):
            row[j] = ("", "n/a", "?")[j - 5] if rng.random() < 0.08 else row[j]
        row[2] = "999" if rng.random() < 0.02 else row[2]
    path = folder / "patients.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([[*head, "Readmitted"], *rows])
    return path, "Readmitted", {"Age", "Creatinine (mg/dL)", "Days", "Smoker"}


def likert_survey(folder, rng, n=300):
    """Answers in words, some left out, and a respondent number."""
    answers = rng.integers(0, 5, (n, 14))
    grade = answers[:, 1] + 0.8 * answers[:, 5] - 0.9 * answers[:, 9] + rng.normal(0, 1.0, n)
    names = [f"Q{j + 1}: {'The staff were helpful and took the time my case needed' if j == 1 else 'item'}"
             for j in range(14)]  # fmt: skip
    rows = [[LIKERT[a] if rng.random() > 0.04 else "" for a in row] for row in answers]
    path = folder / "survey.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Respondent", "Size", *names, "Overall rating"])
        for i, row in enumerate(rows):
            writer.writerow(
                [40_000 + 3 * i, rng.choice(["S", "M", "L", "XL"]), *row, round(10 + grade[i], 1)]
            )
    return path, "Overall rating", {names[1], names[5], names[9]}


def wide_omics(folder, rng, n=90, d=1500):
    """Few samples and many genes, in tabs."""
    X = rng.normal(7, 2, (n, d)).round(3)
    true = rng.choice(d, 4, replace=False)
    y = X[:, true] @ np.array([1.5, -1.3, 1.2, 1.1]) + rng.normal(0, 0.8, n)
    lines = [["sample", *(f"ENSG{j:06d}" for j in range(d)), "response"]]
    lines += [[f"S{i:03d}", *X[i], round(y[i], 3)] for i in range(n)]
    path = folder / "expression.tsv"
    path.write_text("\n".join("\t".join(map(str, line)) for line in lines) + "\n")
    return path, "response", {f"ENSG{j:06d}" for j in true}


def daily_sales(folder, rng, n=240):
    """One row a day, prices with a sign, a promotion, and a total and an average below."""
    days = [datetime.date(2024, 3, 1) + datetime.timedelta(i) for i in range(n)]
    promo, warm = rng.choice(["yes", "no"], n, p=[0.3, 0.7]), rng.normal(14, 6, n).round(1)
    weekday = np.array([day.isoweekday() for day in days])
    price = rng.normal(4.5, 0.5, n).round(2)
    sales = 900 + 260 * (promo == "yes") + 18 * warm + 60 * weekday - 120 * price + rng.normal(0, 60, n)
    lines = ["Date,Promo,Temp °C,Price,Staff,Visitors web,Receipt no,Sales"]
    for i, day in enumerate(days):
        cells = [
            promo[i],
            warm[i],
            f"${price[i]:.2f}",
            rng.integers(3, 9),
            rng.integers(200, 900),
            81_000 + 7 * i,
        ]
        lines.append(",".join(map(str, [day.strftime("%m/%d/%Y"), *cells, f'"${sales[i]:,.2f}"'])))
    lines += [f'Total,,,,,,,"${sales.sum():,.2f}"', f'Average,,,,,,,"${sales.mean():,.2f}"']
    path = folder / "sales.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, "Sales", {"Date", "Promo", "Temp °C", "Price"}


SIX = (german_export, titled_sheet, hospital, likert_survey, wide_omics, daily_sales)
