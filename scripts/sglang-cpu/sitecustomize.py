"""Lets a torchvision built for CUDA be imported beside a torch built for CPUs.

Its compiled operators cannot be loaded then, but it registers fakes of two of them all the same, and fails because the
operators do not exist. Nothing here needs them: declaring them is enough. `install.sh` puts this file into the
environment, where Python runs it at every start, so it imports nothing by itself.

With SSR_LEAN_ATTENTION=short or =shared it also puts lean_attention.py under SGLang's attention; that file says why.
"""

import importlib.abc
import importlib.util
import os
import sys

LEAN_ATTENTION = os.environ.get("SSR_LEAN_ATTENTION")
ATTENTION = "sglang.srt.layers.attention.torch_native_backend"


class _DeclareOperators(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            for operator in ("nms", "qnms"):
                torch.library.define(f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return None


class _LeanAttention(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != ATTENTION:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def run_and_patch(module):
            run(module)
            import lean_attention

            lean_attention.apply(module.TorchNativeAttnBackend, LEAN_ATTENTION)

        spec.loader.exec_module = run_and_patch
        return spec


if LEAN_ATTENTION:
    sys.meta_path.insert(0, _LeanAttention())
sys.meta_path.insert(0, _DeclareOperators())
