"""Serve a site of a suite and write each request down: `_logged_site.py LOG SERVER [ARGUMENT]...`. `bench/_thinking.py` starts it."""

import importlib.util
import json
import sys
from pathlib import Path


def main() -> None:
    log, server = Path(sys.argv[1]), sys.argv[2]
    spec = importlib.util.spec_from_file_location("serve", server)
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    sys.argv = sys.argv[2:]

    def logged(self, code="-", size="-") -> None:
        with log.open("a") as file:
            file.write(json.dumps({"method": self.command, "path": self.path, "status": int(code)}) + "\n")

    serve.Quiet.log_request = logged
    serve.main()


if __name__ == "__main__":
    main()
