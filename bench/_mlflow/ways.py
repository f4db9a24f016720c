"""The ways of the tasks on MLflow: see bench/_ways.py."""

from __future__ import annotations

from _ways import DONE, Step, Ways

MENU = ("click", "button", "Open header dropdown menu")
WAYS = Ways(
    {
        "experiment named soil": [
            Step('link "soil"', DONE),
            Step('"Experiment Name" value="soil"', "click", "button", "Create"),
            Step('dialog "Create Experiment"', "fill", "textbox", "Experiment Name", "soil"),
            Step("", "click", "button", "Create"),
        ],
        "experiment yeild": [
            Step('link "yield"', DONE),
            Step('"Experiment name" value="yield"', "click", "button", "Save"),
            Step('heading "Edit experiment"', "fill", "textbox", "Experiment name", "yield"),
            Step('menuitem "Edit experiment"', "click", "menuitem", "Edit experiment"),
            Step('link "yeild"', *MENU),
        ],
        "experiment scratch": [
            Step(r'URL: \S+#/experiments\n(.*\n)*.*link "orchard"', DONE),
            Step('dialog "Delete Experiment', "click", "button", "Delete"),
            Step('menuitem "Delete"', "click", "menuitem", "Delete"),
            Step('link "scratch"', *MENU),
        ],
        "run oak": [
            Step('heading "oak-2"', DONE),
            Step('"New run name" value="oak-2"', "click", "button", "Save"),
            Step('dialog "Rename Run"', "fill", "textbox", "New run name", "oak-2"),
            Step('menuitem "Rename"', "click", "menuitem", "Rename"),
            Step('heading "oak"', *MENU),
            Step("", "click", "link", "oak"),
        ],
        "run broken": [
            Step('heading "Overview"', DONE),
            Step('dialog "Delete Experiment Run"', "click", "button", "Delete selected"),
            Step('menuitem "Delete"', "click", "menuitem", "Delete"),
            Step('heading "broken"', *MENU),
            Step("", "click", "link", "broken"),
        ],
        "run elm": [
            Step(r'heading "elm"(.*\n)*.*cell "0.91"', 'stop "0.91"'),
            Step("", "click", "link", "elm"),
        ],
        "model named wind-model": [
            Step('heading "wind-model"', DONE),
            Step('"Model name" value="wind-model"', "click", "button", "Create"),
            Step('dialog "Create Model"', "fill", "textbox", "Model name", "wind-model"),
            Step('dialog "Flexible', "click", "button", "Close"),
            Step("", "click", "button", "Create Model"),
        ],
        "model old-model": [
            Step('heading "Registered Models"', DONE),
            Step('dialog "Delete Model"', "click", "button", "Delete"),
            Step('menuitem "Delete"', "click", "menuitem", "Delete"),
            Step('heading "old-model"', *MENU),
        ],
        "the description": [
            Step('StaticText "Predicts rain', DONE),
            Step('textbox value="Predicts rain', "click", "button", "Save"),
            Step('button "Write"', "fill", "textbox", "", "Predicts rain."),
            Step("", "click", "button", "Edit"),
        ],
        "the tag owner": [
            Step('cell "owner"', DONE),
            Step('"tag value" value="ann"', "click", "button", "Add"),
            Step('"tag name" value="owner"', "fill", "textbox", "tag value", "ann"),
            Step('textbox "tag name"', "fill", "textbox", "tag name", "owner"),
            Step("", "click", "button", "Tags"),
        ],
    },
    wrong=("Delete", "Cancel", "Close", "Settings", "Prompts", "Edit", "Create", "Compare", "Got it", "Home", "Experiments"),
)
