"""The ways of the tasks on the wiki: see bench/_ways.py."""

from __future__ import annotations

from _ways import DONE, Step, Ways

POND = "The beds are on the south side.\\n\\nThe pond is to the north."
WAYS = Ways(
    {
        "page Garden": [
            Step(r'(StaticText|main) "(The beds.*)?The pond is', DONE),
            Step(r'value="The beds.*pond is', "click", "button", "OK"),
            Step("Modifying 'Garden'", "fill", "textbox", "Type your text here", POND),
            Step(r"URL: http://[^/]+/Garden\n", "click", "link", "Modify"),
            Step(r"URL: \S+/Home\n", "click", "link", "Garden"),
        ],
        "page Compost": [
            Step(r'(StaticText|main) "Turn it in spring', DONE),
            Step(r'value="Turn it in spring', "click", "button", "OK"),
            Step("", "fill", "textbox", "Type your text here", "Turn it in spring."),
            Step("Create new item", "click", "link", "Markdown"),
        ],
        "Tomatos to Tomatoes": [
            Step(r"URL: \S+/Tomatoes\n", DONE),
            Step(r'"Target" value="Tomatoes"', "click", "button", "OK"),
            Step("Rename 'Tomatos'", "fill", "textbox", "Target", "Tomatoes"),
            Step(r"URL: \S+/Tomatos\n", "click", "link", "Rename"),
        ],
        "page Spam": [
            Step("Create new item named 'Spam'|has been deleted", DONE),
            Step(r'"Comment" value="advertising"', "click", "button", "OK"),
            Step("Delete 'Spam'", "fill", "textbox", "Comment", "advertising"),
            Step(r"URL: \S+/Spam\n", "click", "link", "Delete"),
        ],
        "Bring the page Opening hours": [
            Step(r"URL: http://[^/]+/Opening%20hours\n(.*\n)*.*Open from 9 to 17", DONE),
            Step(r"URL: \S+/\+revert", "click", "button", "OK"),
            Step("History of", "click", "link", "revert"),
            Step(r"Closed for ever", "click", "link", "History"),
        ],
        "Subscribe to": [
            Step('link "Unsubscribe"', DONE),
            Step("", "click", "link", "Subscribe"),
        ],
        "quick links": [
            Step('link "Remove Link"', DONE),
            Step("", "click", "link", "Add Link"),
        ],
        "history results": [
            Step(r'have been saved(.*\n)*.*per page" value="25"', DONE),
            Step(r'per page" value="25"', "click", "button", "Save"),
            Step("", "fill", "textbox", "History results per page", "25"),
        ],
        "How many revisions": [
            Step("History of", 'stop "2"'),
            Step("", "click", "link", "History"),
        ],
        "the tag tools": [
            Step(r"URL: http://[^/]+/Notes\n(.*\n)*.*tools", DONE),
            Step(r'"Summary" value="What to bring"(.*\n)*.*"Tags" value="tools"', "click", "button", "OK"),
            Step(r'"Tags" value="tools"', "fill", "textbox", "Summary", "What to bring"),
            Step("Modifying 'Notes'", "fill", "textbox", "Tags", "tools"),
            Step(r"URL: \S+/Notes\n", "click", "link", "Modify"),
        ],
    },
    wrong=("Logout", "History", "Meta", "Similar", "Cancel", "Preview", "Index", "Download", "Convert", "Destroy", "Home"),
)
