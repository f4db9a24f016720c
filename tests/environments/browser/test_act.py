"""Each action acts, and what it did is observed."""

import pytest
from environments_browser_pages import do, find, look  # placeholder

pytestmark = pytest.mark.asyncio(loop_scope="session")
