"""A Chromium for the tests of pages: one that is here, or Debian's package.

    python integration/chromium.py path        print where it is
    python integration/chromium.py install     the same, after installing it where it is missing and that is allowed

$NAMEPLATE_CHROMIUM names one that is not on PATH. Nothing is downloaded but by the system's own package manager.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "chromium"
VARIABLE = "NAMEPLATE_CHROMIUM"
HELP = (
    "No Chromium was found, and the tests of pages need one. Install it (Debian: apt-get install chromium; "
    f"Ubuntu: snap install chromium; or Google Chrome), or name one by {VARIABLE}=/path/to/chromium."
)


def find() -> str | None:
    """Return the path of a Chromium, or None. A path that is given is not replaced by another where it is wrong."""
    given = os.environ.get(VARIABLE)
    if given:
        return shutil.which(given)
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> str | None:
    """Return the path of a Chromium, after installing one where there is none and that may be done."""
    found = find()
    if found or os.environ.get(VARIABLE):
        return found
    privilege = _privilege()
    if privilege is None or shutil.which("apt-get") is None:
        return None
    print(f"installing {PACKAGE} with apt-get", file=sys.stderr)
    apt = [*privilege, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    for words in (["update"], ["install", "--yes", "--no-install-recommends", PACKAGE]):
        done = subprocess.run([*apt, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # An update that one source refuses can still have found the package.
        if done.returncode and words[0] == "install":
            print(done.stdout[-2000:], file=sys.stderr)
            return None
    return find()


def _privilege() -> list[str] | None:
    """Return what a command is preceded by to run as root without a question; None where that cannot be."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True).returncode == 0:
        return [sudo, "-n"]
    return None


def main() -> int:
    """Print the path; 1 where there is none."""
    if sys.argv[1:] not in (["path"], ["install"]):
        print(__doc__)
        return 2
    path = install() if sys.argv[1] == "install" else find()
    print(path or HELP, file=sys.stdout if path else sys.stderr)
    return 0 if path else 1


if __name__ == "__main__":
    sys.exit(main())
