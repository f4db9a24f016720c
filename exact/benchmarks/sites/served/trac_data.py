"""The content of the Trac: made up, and the same each time."""

WORD = "lantern-42"
"""Password of every user."""
ACCOUNTS = ("alice", "bob", "carol", "dave")
DEVELOPERS = ("bob", "dave")

COMPONENTS = (
    ("core", "alice", "Reading and writing of signals"),
    ("docs", "carol", "Handbook and examples"),
    ("interface", "dave", "Command line and web pages"),
    ("packaging", "bob", "Wheels and images"),
)
MILESTONES = (
    ("1.0 Beacon", "2024-02-01T12:00:00", "2024-02-03T12:00:00", "First release."),
    ("1.1 Foghorn", "2024-06-15T12:00:00", "", "Sound signals."),
    ("2.0 Harbour", "2024-12-01T12:00:00", "", "Several lights at once."),
    ("Someday", "", "", "Ideas without a date."),
)
TICKETS = (
    ("Crash when the lamp file is empty", "defect", "core", "blocker", "1.1 Foghorn", "alice", "carol", "assigned", "crash lamp",
     "Reading an empty lamp file ends with an index error."),
    ("Handbook lacks a chapter on buoys", "task", "docs", "minor", "1.1 Foghorn", "carol", "bob", "new", "handbook", "Buoys are only mentioned."),
    ("Add dark theme to the status page", "enhancement", "interface", "minor", "2.0 Harbour", "dave", "alice", "new", "theme",
     "The status page is too bright at night."),
    ("Wheel for arm64 is missing", "defect", "packaging", "critical", "1.1 Foghorn", "bob", "dave", "assigned", "arm64 wheel",
     "pip builds from source on arm64."),
    ("Rotation speed is off by one", "defect", "core", "major", "1.0 Beacon", "alice", "bob", "closed:fixed", "rotation",
     "A speed of 3 turns the light 4 times a minute."),
    ("Typo in the installation guide", "defect", "docs", "trivial", "1.0 Beacon", "carol", "dave", "closed:fixed", "handbook", "Instal, not install."),
    ("Support two lamps on one mast", "enhancement", "core", "major", "2.0 Harbour", "alice", "carol", "new", "lamp mast",
     "Large harbours have two lamps on one mast."),
    ("Foghorn plays twice on restart", "defect", "core", "major", "1.1 Foghorn", "bob", "alice", "accepted", "sound",
     "After a restart the horn sounds twice. Once would do."),
    ("Status page shows the wrong tide", "defect", "interface", "critical", "1.1 Foghorn", "dave", "carol", "new", "tide",
     "The tide table is that of the day before."),
    ("Image for containers is too large", "task", "packaging", "minor", "2.0 Harbour", "bob", "bob", "new", "image", "It has 900 MB."),
    ("Lamp colours cannot be named", "enhancement", "core", "minor", "Someday", "", "dave", "new", "lamp colour", "Only numbers are understood."),
    ("Log file grows without end", "defect", "core", "major", "1.1 Foghorn", "alice", "dave", "assigned", "log", "It is never rotated."),
    ("Search of the handbook ignores umlauts", "defect", "docs", "minor", "Someday", "carol", "alice", "new", "handbook search",
     "Searching for Faehre does not find the ferry."),
    ("Keyboard shortcuts for the operator", "enhancement", "interface", "major", "2.0 Harbour", "dave", "bob", "new", "keyboard",
     "Operators wear gloves and want large keys."),
    ("Release notes of 1.0 are empty", "task", "docs", "major", "1.0 Beacon", "carol", "alice", "closed:wontfix", "release",
     "Nobody wrote them."),
    ("Foghorn volume cannot be set", "enhancement", "core", "critical", "1.1 Foghorn", "bob", "carol", "new", "sound",
     "Neighbours complain about the volume of 120 dB."),
    ("Signatures of wheels do not verify", "defect", "packaging", "blocker", "1.1 Foghorn", "bob", "alice", "new", "wheel security",
     "The key on the server is last year's."),
    ("Mast heights in feet", "enhancement", "core", "trivial", "Someday", "", "carol", "new", "mast", "Some charts have feet."),
    ("Operator page forgets the language", "defect", "interface", "minor", "1.1 Foghorn", "dave", "dave", "accepted", "language",
     "It is English again after each log-in."),
    ("Duplicate of the empty lamp file crash", "defect", "core", "minor", "", "alice", "dave", "new", "crash",
     "Looks like ticket 1."),
    ("Example for a harbour with tides", "task", "docs", "minor", "2.0 Harbour", "carol", "carol", "new", "example", "A worked example."),
    ("Lens calibration drifts in frost", "defect", "core", "critical", "2.0 Harbour", "alice", "bob", "assigned", "lens frost",
     "Below -10 degrees the beam moves by 2 degrees."),
    ("Obsolete spam ticket: buy cheap lanterns", "defect", "interface", "minor", "", "", "anonymous", "new", "spam", "Cheap lanterns, buy now."),
    ("Package index shows the old homepage", "defect", "packaging", "trivial", "1.1 Foghorn", "bob", "carol", "new", "homepage", "It is the one of 2021."),
)  # fmt: skip
"""Tickets: summary, type, component, priority, milestone, owner, reporter, status, keywords, description; numbered from 1."""

COMMENTS = (
    (1, "alice", 2, "I can reproduce it. The reader should return no lamps instead."),
    (1, "dave", 5, "The same happens with a file of blanks."),
    (4, "bob", 20, "The builder for arm64 arrives in May."),
    (8, "bob", 40, "It happens since the change of the queue in revision 812."),
    (9, "carol", 44, "Seen at the harbour of Ness, on three evenings."),
    (12, "alice", 50, "Rotate at 50 MB and keep five files."),
    (16, "dave", 60, "90 dB would be enough."),
    (22, "alice", 90, "Measured with the cold chamber. The holder shrinks."),
)
"""Comments: ticket, author, day, text."""

WIKI = (
    (
        "WikiStart",
        "alice",
        "= Lighthouse =\n\n * [wiki:ReleaseProcess How we release]\n * [wiki:TeamContacts Who does what]\n"
        " * [wiki:StyleGuide How we write]\n * [wiki:Glossary Words]\n * [wiki:MeetingNotes Meeting notes]\n * [wiki:OnCall Who is on call]\n",
    ),
    (
        "ReleaseProcess",
        "bob",
        "= How we release =\n\n 1. Freeze the branch on Monday.\n 2. Ask carol for the release notes.\n"
        " 3. Build the wheels on the machine `basalt`.\n 4. Sign them with key 7F3A.\n 5. Announce on Thursday.\n",
    ),
    (
        "TeamContacts",
        "alice",
        "= Who does what =\n\n||= Name =||= Part =||= Room =||= Phone =||\n|| alice || core || 2.11 || 4711 ||\n"
        "|| bob || packaging || 1.04 || 4720 ||\n|| carol || docs || 2.12 || 4733 ||\n|| dave || interface || 0.07 || 4748 ||\n",
    ),
    ("StyleGuide", "carol", "= How we write =\n\n * Short sentences.\n * At most 88 characters a line.\n * Headings in sentence case.\n"),
    (
        "Glossary",
        "carol",
        "= Words =\n\n beacon::\n   A fixed light.\n buoy::\n   A floating mark.\n leading light::\n"
        "   One of two lights that show a safe way when they are in line.\n",
    ),
    (
        "MeetingNotes",
        "dave",
        "= Meeting notes =\n\n * [wiki:MeetingNotes/January]\n * [wiki:MeetingNotes/February]\n * [wiki:MeetingNotes/March]\n",
    ),
    (
        "MeetingNotes/January",
        "dave",
        "= January =\n\nPresent: alice, bob, dave. We decided to drop Python 3.8. Next meeting in room 2.11.\n",
    ),
    (
        "MeetingNotes/February",
        "dave",
        "= February =\n\nPresent: alice, carol. We decided to move the release of 1.1 to June. The budget for the "
        "cold chamber is 3,400 euros.\n",
    ),
    ("MeetingNotes/March", "carol", "= March =\n\nPresent: bob, carol, dave. We decided to sign all wheels. Bob orders a new key.\n"),
    ("OnCall", "bob", "= Who is on call =\n\n * Weekdays: dave\n * Weekends: alice\n * Holidays: bob\n"),
    ("OldIdeas", "dave", "= Old ideas =\n\nNobody needs these any more. This page may be deleted.\n"),
    ("SandBox", "alice", "= Sand box =\n\nTry things here.\n"),
)
"""Wiki pages: name, author, text."""
