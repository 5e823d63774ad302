"""What a letter calls the features of German Credit and their levels, in English and in German."""

from __future__ import annotations

from typing import Any

Words = dict[str, dict[str, Any]]  # by language; see `holdfast.tabular.phrases`

PHRASES: dict[str, Words] = {
    "checking_account": {
        "en": {
            "name": "balance of the checking account",
            "change": "raise the balance of your checking account from “{now}” to “{then}”",
        },
        "de": {
            "name": "Guthaben auf dem Girokonto",
            "change": "das Guthaben auf dem Girokonto von „{now}“ auf „{then}“ erhöhen",
            "levels": {
                "overdrawn": "überzogen",
                "below 200 DM": "unter 200 DM",
                "200 DM or more": "200 DM oder mehr",
                "none": "kein Konto",
            },
        },
    },
    "duration_months": {
        "en": {
            "name": "duration of the loan",
            "change": "change the duration of the loan from {now} to {then} months",
            "rise": "extend the duration of the loan from {now} to {then} months",
            "fall": "shorten the duration of the loan from {now} to {then} months",
        },
        "de": {
            "name": "Laufzeit des Kredits",
            "change": "die Laufzeit des Kredits von {now} auf {then} Monate ändern",
            "rise": "die Laufzeit des Kredits von {now} auf {then} Monate verlängern",
            "fall": "die Laufzeit des Kredits von {now} auf {then} Monate verkürzen",
        },
    },
    "credit_history": {
        "en": {"name": "credit history"},
        "de": {
            "name": "bisherige Kredite",
            "levels": {
                "no earlier credits": "keine früheren Kredite",
                "all repaid at this bank": "alle bei dieser Bank zurückgezahlt",
                "current ones repaid on time": "laufende pünktlich bedient",
                "late in the past": "früher im Verzug",
                "critical, or credits elsewhere": "kritisch, oder Kredite anderswo",
            },
        },
    },
    "purpose": {
        "en": {"name": "purpose of the loan"},
        "de": {
            "name": "Verwendungszweck",
            "levels": {
                "new car": "Neuwagen",
                "used car": "Gebrauchtwagen",
                "furniture": "Möbel",
                "radio or television": "Radio oder Fernseher",
                "household appliance": "Haushaltsgerät",
                "repairs": "Reparaturen",
                "education": "Ausbildung",
                "retraining": "Umschulung",
                "business": "Geschäft",
                "other": "Sonstiges",
            },
        },
    },
    "credit_amount": {
        "en": {
            "name": "amount of the loan",
            "change": "change the amount of the loan from {now} to {then} DM",
            "fall": "lower the amount of the loan from {now} to {then} DM",
        },
        "de": {
            "name": "Kreditbetrag",
            "change": "den Kreditbetrag von {now} auf {then} DM ändern",
            "fall": "den Kreditbetrag von {now} auf {then} DM senken",
        },
    },
    "savings": {
        "en": {"name": "savings", "change": "raise your savings from “{now}” to “{then}”"},
        "de": {
            "name": "Ersparnisse",
            "change": "die Ersparnisse von „{now}“ auf „{then}“ erhöhen",
            "levels": {
                "below 100 DM": "unter 100 DM",
                "100 to 500 DM": "100 bis 500 DM",
                "500 to 1000 DM": "500 bis 1000 DM",
                "1000 DM or more": "1000 DM oder mehr",
                "unknown or none": "unbekannt oder keine",
            },
        },
    },
    "employed_for": {
        "en": {"name": "time in the present job"},
        "de": {
            "name": "Dauer der Beschäftigung",
            "levels": {
                "unemployed": "ohne Arbeit",
                "under 1 year": "unter 1 Jahr",
                "1 to 4 years": "1 bis 4 Jahre",
                "4 to 7 years": "4 bis 7 Jahre",
                "7 years or more": "7 Jahre oder mehr",
            },
        },
    },
    "instalment_rate": {
        "en": {"name": "instalments as a share of the income"},
        "de": {"name": "Anteil der Raten am Einkommen"},
    },
    "status_and_sex": {
        "en": {"name": "marital status and sex"},
        "de": {
            "name": "Familienstand und Geschlecht",
            "levels": {
                "man, divorced or separated": "Mann, geschieden oder getrennt",
                "woman, married or divorced": "Frau, verheiratet oder geschieden",
                "man, single": "Mann, ledig",
                "man, married or widowed": "Mann, verheiratet oder verwitwet",
            },
        },
    },
    "other_debtors": {
        "en": {
            "name": "other debtors",
            "change": "apply with {then} instead of {now}",
            "levels": {"none": "no other debtor", "co-applicant": "a co-applicant", "guarantor": "a guarantor"},
        },
        "de": {
            "name": "weitere Schuldner",
            "change": "den Antrag mit {then} statt {now} stellen",
            "levels": {
                "none": "keinem weiteren Schuldner",
                "co-applicant": "einem Mitantragsteller",
                "guarantor": "einem Bürgen",
            },
        },
    },
    "resident_for": {"en": {"name": "years at the present address"}, "de": {"name": "Jahre an der jetzigen Adresse"}},
    "property": {
        "en": {"name": "property"},
        "de": {
            "name": "Vermögen",
            "levels": {
                "real estate": "Immobilien",
                "building savings or life insurance": "Bausparvertrag oder Lebensversicherung",
                "car or other": "Auto oder anderes",
                "unknown or none": "unbekannt oder keines",
            },
        },
    },
    "age": {"en": {"name": "age"}, "de": {"name": "Alter"}},
    "other_instalments": {
        "en": {
            "name": "instalments to others",
            "change": "pay off your instalments elsewhere (now: {now}; then: {then})",
            "levels": {"bank": "at a bank", "shops": "at shops", "none": "no others"},
        },
        "de": {
            "name": "Raten an andere",
            "change": "Ihre Raten bei anderen abzahlen (jetzt: {now}; dann: {then})",
            "levels": {"bank": "bei einer Bank", "shops": "bei Geschäften", "none": "keine anderen"},
        },
    },
    "housing": {
        "en": {"name": "housing"},
        "de": {"name": "Wohnung", "levels": {"rented": "gemietet", "owned": "Eigentum", "free": "mietfrei"}},
    },
    "existing_credits": {
        "en": {"name": "number of loans at this bank"},
        "de": {"name": "Zahl der Kredite bei dieser Bank"},
    },
    "job": {
        "en": {"name": "job"},
        "de": {
            "name": "Beruf",
            "levels": {
                "unskilled, not resident": "ungelernt, ohne festen Wohnsitz",
                "unskilled, resident": "ungelernt, mit festem Wohnsitz",
                "skilled or official": "Fachkraft oder Beamter",
                "management or self-employed": "Leitung oder selbstständig",
            },
        },
    },
    "dependants": {"en": {"name": "number of dependants"}, "de": {"name": "Zahl der Unterhaltsberechtigten"}},
    "telephone": {
        "en": {
            "name": "telephone",
            "change": "have a telephone in your own name (now: {now}; then: {then})",
        },
        "de": {
            "name": "Telefon",
            "change": "ein Telefon auf den eigenen Namen anmelden (jetzt: {now}; dann: {then})",
            "levels": {"none": "keines", "in own name": "auf den eigenen Namen"},
        },
    },
    "foreign_worker": {
        "en": {"name": "whether you are a foreign worker"},
        "de": {"name": "ob Sie ausländischer Arbeitnehmer sind", "levels": {"yes": "ja", "no": "nein"}},
    },
}
