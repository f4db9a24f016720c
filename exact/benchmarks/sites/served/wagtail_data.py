"""The content of the newspaper: made up, and the same each time."""

WORD = "seagull-17"
"""Password of every user."""
SECTIONS = (
    ("News", "news", "What happens between the piers."),
    ("Events", "events", "What is on this summer."),
    ("Guides", "guides", "How to get around."),
)
ARTICLES = (
    ("news", "Ferry to Ness runs again", "2024-03-04", "Ada Brook", "After six weeks in the yard the ferry is back.",
     "The ferry leaves at 7:40, 12:10 and 18:30. A return ticket costs 14 euros.\n\nThe new engine is from Aalborg."),
    ("news", "Council votes for a new pier", "2024-03-11", "Jon Reed", "Eleven members were in favour, four against.",
     "The pier will be 210 metres long and cost 4.2 million euros. Work begins in October."),
    ("news", "Storm breaks the north wall", "2024-02-19", "Ada Brook", "Waves of five metres.", "The repair takes until May. Mayor Lind thanked the 38 helpers."),
    ("news", "Fish market moves indoors", "2024-04-02", "Mia Stern", "The hall opens on Saturday.",
     "The market has 26 stalls. It is open from 6 to 13 on Tuesdays and Saturdays."),
    ("news", "Old lighthouse for sale", "2024-04-15", "Jon Reed", "Nobody has bid yet.", "The lighthouse of 1871 has nine rooms. The price is 390,000 euros."),
    ("news", "School builds a weather station", "2024-04-22", "Mia Stern", "Pupils measure wind and rain.",
     "The station stands on the roof of the gym. Its data is on the web each hour."),
    ("news", "Sailors win the island cup", "2024-05-06", "Ada Brook", "For the third time.", "The crew of the Heron won by 48 seconds. Skipper was Tove Lind."),
    ("guides", "Where to park", "2024-01-10", "Mia Stern", "Three places, one free.",
     "The car park at the station is free. At the market an hour costs 2 euros, at the pier 3 euros."),
    ("guides", "Walking the sea wall", "2024-01-17", "Jon Reed", "Two hours with a view.", "The path is 7.5 km long. Dogs must be on a lead."),
    ("guides", "Eating by the harbour", "2024-01-24", "Ada Brook", "Five kitchens we like.", "The Galley closes on Mondays. Try the plaice at the Anchor."),
    ("guides", "Swimming safely", "2024-01-31", "Mia Stern", "Flags and tides.", "A red flag means no swimming. The lifeguards are there from 10 to 18."),
)  # fmt: skip
EVENTS = (
    ("Harbour concert", "2024-06-08", "Market square", "free", "The brass band plays at 20:00."),
    ("Night market", "2024-06-15", "Fish hall", "3 euros", "Sixty stalls until midnight."),
    ("Rowing regatta", "2024-07-06", "Inner basin", "free", "Boats of eight, from 9:00."),
    ("Lighthouse tour", "2024-07-13", "Old lighthouse", "8 euros", "Meet at the gate, groups of twelve."),
    ("Crab race", "2024-08-03", "North pier", "1 euro", "Children first."),
)
DRAFTS = (("news", "Draft: tram to the beach", "2024-05-13", "Jon Reed", "Perhaps in 2030.", "The town asks for money from the state."),)
NOTICES = (
    ("Library closed on 1 May", "info", True),
    ("North wall path closed", "danger", True),
    ("High water on Friday night", "warning", True),
    ("Christmas tree collection", "info", False),
)
CONTACTS = (
    ("Ada Brook", "Reporter", "555-0101"),
    ("Jon Reed", "Reporter", "555-0102"),
    ("Mia Stern", "Editor", "555-0110"),
    ("Olaf Dahl", "Advertising", "555-0190"),
)
REDIRECTS = (("/ferry", "/news/ferry-to-ness-runs-again/"), ("/parking", "/guides/where-to-park/"), ("/old-shop", "/guides/"))
USERS = (("mara", "Mara", "Holm", ""), ("ben", "Ben", "Ito", "Editors"), ("ines", "Ines", "Ruiz", "Moderators"))
"""Users: name, first and last name, group; without a group an administrator."""
