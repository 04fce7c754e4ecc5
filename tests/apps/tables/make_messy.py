"""Writes the six messy tables: python tests/apps/tables/make_messy.py. Made up, but as such tables come."""

import csv
import datetime
import io
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "messy"


def homes(rng, n=150):
    """US real estate: dollars, thousands, percents, US dates, postal codes, prose."""
    words = [
        "charming",
        "bright",
        "spacious",
        "updated",
        "cozy",
        "corner",
        "lot",
        "near",
        "parks",
        "schools",
        "great",
        "views",
        "must",
        "see",
    ]
    heads = ["MLS #", "Address", "ZIP Code", "City", "List Price", "Sq Ft", "Beds", "HOA", "Tax Rate"]
    heads += ["Sold Date", "Pool", "Year Built", "State", "Remarks", "Sold Price"]
    rows = [heads]
    for i in range(n):
        feet, beds = int(rng.integers(600, 4200)), int(rng.integers(1, 6))
        pool, city = rng.random() < 0.3, str(rng.choice(["Mesa", "Tempe", "Gilbert"]))
        price = 150 * feet + 20_000 * pool + 60_000 * (city == "Tempe") + rng.normal() * 9000 + 40_000
        day = datetime.date(2019, 1, 5) + datetime.timedelta(days=int(rng.integers(0, 900)))
        rows.append(
            [
                f"AZ{600000 + 37 * i}",
                f"{int(rng.integers(1, 9999))} {rng.choice(['Oak', 'Elm', 'Main'])} St Unit {i}",
                f"{int(rng.choice([85201, 85202, 85281, 85233])):05d}",
                city,
                f"${price * rng.uniform(0.98, 1.05):,.0f}",
                f"{feet:,}",
                beds,
                "" if rng.random() < 0.4 else f"${int(rng.integers(50, 400))}",
                f"{rng.uniform(0.5, 1.5):.2f}%",
                f"{day.month}/{day.day}/{day.year}",
                rng.choice(["Yes", "Y"]) if pool else rng.choice(["No", "N"]),
                int(rng.integers(1950, 2020)) if rng.random() > 0.03 else "unknown",
                "AZ",
                " ".join(rng.choice(words, 12)),
                f"${price:,.0f}",
            ]
        )
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    (FOLDER / "homes.csv").write_text(text.getvalue(), encoding="utf-8-sig")


def german(rng, n=120):
    """A German export: lines above the header, semicolons, decimal commas, Windows-1252."""
    lines = ["Kundenauswertung;;;;;;;;", "Stand: 01.02.2024;;;;;;;;"]
    lines.append("Kunden-Nr.;PLZ;Größe (m²);Umsatz;Rabatt;Kunde seit;Newsletter;Branche;Kosten")
    for i in range(n):
        size, letter = rng.uniform(20, 900), rng.random() < 0.5
        trade = str(rng.choice(["Bäckerei", "Metzgerei", "Café"]))
        sales = 900 * size + 20_000 * letter + 90_000 * (trade == "Café") + rng.normal() * 4000
        day = datetime.date(2010, 3, 1) + datetime.timedelta(days=int(rng.integers(0, 4000)))
        spelled = [
            f"K-{10_000 + i}",
            f"{int(rng.choice([1067, 1069, 10115, 80331])):05d}",
            _comma(size, 1),
            _comma(sales, 2) + " €",
            rng.choice(["k.A.", "-"]) if rng.random() < 0.1 else _comma(rng.uniform(0, 15), 1) + " %",
            day.strftime("%d.%m.%Y"),
            "Ja" if letter else "Nein",
            trade,
            _comma(sales * 0.4 + rng.normal() * 900, 2),
        ]
        lines.append(";".join(map(str, spelled)))
    (FOLDER / "kunden.csv").write_bytes("\r\n".join(lines).encode("cp1252"))


def _comma(value, digits):
    return f"{value:,.{digits}f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def churn(rng, n=200):
    """Customers: an identifier, blanks for missing, a name twice, yes and no, classes."""
    heads = [
        "customerID",
        "gender",
        "SeniorCitizen",
        "tenure",
        "Contract",
        "AutoPay",
        "Charges",
        "Charges",
        "TotalCharges",
        "Churn",
    ]
    rows = [heads]
    for i in range(n):
        tenure, contract = (
            int(rng.integers(0, 72)),
            str(rng.choice(["Month-to-month", "One year", "Two year"])),
        )
        charge = rng.uniform(20, 120)
        score = -0.05 * tenure + 2.5 * (contract == "Month-to-month") + rng.normal() * 0.5
        rows.append(
            [
                f"{i * 7919 % 10000:04d}-{''.join(rng.choice(list('ABCDEFGH'), 5))}",
                rng.choice(["Male", "Female"]),
                int(rng.random() < 0.2),
                tenure,
                contract,
                rng.choice(["Yes", "No"]),
                f"{charge:.2f}",
                f"{charge * 12:.1f}",
                " " if tenure == 0 else f"{charge * tenure:.2f}",
                "Yes" if score > 0.3 else "No",
            ]
        )
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    (FOLDER / "churn.csv").write_text(text.getvalue())


def genes(rng, n=40, d=90):
    """Genes in rows and samples in columns, as biologists keep them."""
    X = rng.normal(size=(n, d)) * 2 + 7
    y = np.where(X[:, 3] - X[:, 17] + rng.normal(size=n) * 0.3 > 0, "tumour", "normal")
    lines = ["gene\t" + "\t".join(f"S{i:02d}" for i in range(n))]
    lines += [
        f"GENE{j}\t" + "\t".join("NA" if rng.random() < 0.01 else f"{v:.3f}" for v in X[:, j])
        for j in range(d)
    ]
    lines.append("status\t" + "\t".join(y))
    (FOLDER / "genes.tsv").write_text("\n".join(lines) + "\n")


def patients(rng, n=90):
    """A workbook: a title above the header, typed dates and truth values, empty cells, a second sheet."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Visits"
    sheet.append(["Clinic visits, 2022", None, None, None, None, None, None])
    sheet.append(["Patient", "Born", "Sex", "Smoker", "BMI", "Visit", "Blood pressure"])
    for i in range(n):
        age, bmi, smoker = rng.uniform(20, 80), rng.uniform(18, 38), bool(rng.random() < 0.3)
        born = datetime.datetime(2022, 6, 1) - datetime.timedelta(days=int(age * 365.25))
        visit = datetime.datetime(2022, 1, 3, 8) + datetime.timedelta(hours=int(rng.integers(0, 5000)))
        pressure = 90 + 0.6 * age + bmi * 0.8 + 9 * smoker + rng.normal() * 2
        weight = None if rng.random() < 0.15 else round(float(bmi), 1)
        sheet.append(
            [f"P{i:03d}", born, str(rng.choice(["f", "m"])), smoker, weight, visit, round(float(pressure), 1)]
        )
    book.create_sheet("Notes").append(["nothing", "here"])
    book.save(FOLDER / "patients.xlsx")


def sensors(rng, n=250):
    """Readings with ISO times, in UTF-16 with tabs, as some programs of Windows write them."""
    lines = ["time\tplant\tload %\ttemp_C\tstate\tpower_kW"]
    for i in range(n):
        time = datetime.datetime(2023, 5, 1) + datetime.timedelta(minutes=17 * i)
        load, temp, plant = rng.uniform(10, 100), rng.normal(20, 6), f"plant {i % 30:02d}"
        power = 3.5 * load - 2 * temp + rng.normal() * 3 + 10 * (i % 30 == 4)
        state = "ok" if i % 9 else "alarm"
        mark = "n/a" if rng.random() < 0.02 else f"{temp:.2f}"
        lines.append(f"{time:%Y-%m-%dT%H:%M:%S}Z\t{plant}\t{load:.1f}\t{mark}\t{state}\t{power:.3f}")
    (FOLDER / "sensors.txt").write_bytes("\r\n".join(lines).encode("utf-16"))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for number, make in enumerate((homes, german, churn, genes, patients, sensors)):
        make(np.random.default_rng(number))
