"""Networks with named stages and a feature map, their heads, and a bridge to other libraries' networks."""

from ._base import HeadFactory, Network, NormFactory
from .allcnnc import AllCNNC
from .bridge import TorchNetwork, from_torch, zoo_text
from .causal import CausalHead, causal_logits
from .cifar_resnet import CifarResNet, resnet32
from .cnn_small import SmallCNN
from .cosine import CosineHead, cosine_logits
from .create import create_model
from .dropout import DropoutHead
from .linear import LinearHead
from .meta_embedding import MetaEmbeddingHead, embed_with_memory
from .planar import PlanarHead
from .resnet import ResNet, resnet18, resnet50
from .resnet12 import ResNet12
from .wide_resnet import WideResNet, wrn_16_8

__all__ = [
    "AllCNNC",
    "CausalHead",
    "CifarResNet",
    "CosineHead",
    "DropoutHead",
    "HeadFactory",
    "LinearHead",
    "MetaEmbeddingHead",
    "Network",
    "NormFactory",
    "PlanarHead",
    "ResNet",
    "ResNet12",
    "SmallCNN",
    "TorchNetwork",
    "WideResNet",
    "causal_logits",
    "cosine_logits",
    "create_model",
    "embed_with_memory",
    "from_torch",
    "resnet18",
    "resnet32",
    "resnet50",
    "wrn_16_8",
    "zoo_text",
]
