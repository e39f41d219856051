"""Lets a torchvision built for CUDA be imported beside a torch built for CPUs.

Its compiled operators cannot be loaded then, but it registers fakes of two of them all the same, and fails because the
operators do not exist. Nothing here needs them: declaring them is enough. `install.sh` puts this file into the
environment, where Python runs it at every start, so it imports nothing by itself.
"""

import importlib.abc
import sys


class _DeclareOperators(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            for operator in ("nms", "qnms"):
                torch.library.define(f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return None


sys.meta_path.insert(0, _DeclareOperators())
